//! `rtrace doctor`.

use std::{
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;

use super::{args::DoctorArguments, complain};
use crate::{
    doctor::{self, Check, Facts, Judgement, Kernel},
    host::{btf::Btf, memory_group, rights::Rights},
    record::{self, LoadError},
};

/// Recording isn't possible here.
const NOT_POSSIBLE: u8 = 1;

pub(super) fn run(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    if arguments.for_admin {
        let own = own_file();
        // The letter holds as it is for another place of the file.
        if let Some(check) = doctor::file_without_capabilities(&rights()) {
            complain(&format!("note: {}", check.line()));
        }
        let letter =
            doctor::for_admin(&own.to_string_lossy(), doctor::capabilities(&this_kernel()));
        print(&letter)?;
        return Ok(ExitCode::SUCCESS);
    }
    let judgement = match &arguments.btf {
        Some(path) => of_file(path)?,
        None => of_this_host(),
    };
    if arguments.json {
        print(&(serde_json::to_string_pretty(&judgement)? + "\n"))?;
    } else {
        print(&doctor::text(&judgement))?;
    }
    Ok(if judgement.can_record {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_POSSIBLE)
    })
}

/// On standard output. `rtrace doctor | head` is no failure.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write what was found")
        }
        _ => Ok(()),
    }
}

fn of_file(path: &Path) -> anyhow::Result<Judgement> {
    let btf = Btf::read(path).with_context(|| format!("cannot judge {}", path.display()))?;
    Ok(doctor::judge(&Facts {
        kernel: kernel(&btf),
        rights: None,
        load: None,
        charge: None,
    }))
}

/// What this process and this host allow, without a look at the kernel's types.
pub(super) fn rights() -> Rights {
    Rights::look(Path::new("/"), &own_file())
}

fn own_file() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "rtrace".into())
}

/// Why loading failed, as far as this host tells: what sudo wouldn't mend.
pub(super) fn hindrance(rights: &Rights) -> Option<Check> {
    let facts = Facts {
        kernel: this_kernel(),
        rights: Some(rights.clone()),
        load: None,
        charge: None,
    };
    doctor::hindrance(rights, doctor::judge(&facts).checks)
}

fn of_this_host() -> Judgement {
    let mut facts = Facts {
        kernel: this_kernel(),
        rights: Some(rights()),
        load: None,
        charge: None,
    };
    // What can't work isn't tried: the reason is known already.
    if doctor::judge(&facts).can_record {
        let tried = record::try_load();
        if let (Some(rights), Err(LoadError::Confidential)) = (&mut facts.rights, &tried) {
            rights.lockdown = Some("confidentiality".to_owned());
        }
        facts.charge = Some(memory_group::try_make());
        facts.load = Some(tried.map_err(|error| format!("{:#}", anyhow::Error::from(error))));
    }
    doctor::judge(&facts)
}

fn this_kernel() -> Kernel {
    match Btf::read(Path::new(record::BTF)) {
        Ok(btf) => kernel(&btf),
        Err(error) => Kernel::NoBtf(format!("{:#}", anyhow::Error::from(error))),
    }
}

fn kernel(btf: &Btf) -> Kernel {
    let support = record::support(btf);
    Kernel::Read {
        hooks: support.hooks,
        stand_ins: support.stand_ins,
        missing: support.missing,
        locks_memory: support.locks_memory,
    }
}
