//! What a host can record and what not, why, and what to do about it.
//!
//! A judgement over facts: it looks at nothing itself.

use serde::Serialize;

use crate::host::rights::Rights;

mod text;

pub use text::{for_admin, text};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Recording works, with less than there could be.
    Warn,
    /// There can be no recording.
    Fail,
    /// Not looked at.
    Unknown,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name.
    pub id: &'static str,
    /// How it ended.
    pub status: Status,
    /// What was found.
    pub text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// What a kernel's BTF says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// It can't be read: why.
    NoBtf(String),
    /// It was read.
    Read {
        /// Hooks that it has.
        hooks: usize,
        /// Hooks that it doesn't have, and what stands in for them.
        stand_ins: Vec<(String, String)>,
        /// What recording can't do without and isn't there.
        missing: Vec<String>,
        /// BPF memory counts against the limit of locked memory.
        locks_memory: bool,
    },
}

/// What is to be judged.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The kernel's BTF.
    pub kernel: Kernel,
    /// The host's and the caller's; `None`: only a BTF file is looked at.
    pub rights: Option<Rights>,
    /// Whether loading worked: how long each step took, ms, or why not. `None`: not tried.
    pub load: Option<Result<Vec<(&'static str, f64)>, String>>,
    /// Whether a memory control group could be made for a command: where, or why not. `None`: not tried.
    pub charge: Option<Result<String, String>>,
}

/// All checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// Whether the caller can record here.
    pub can_record: bool,
    /// In the order in which they build on each other.
    pub checks: Vec<Check>,
}

const KILL: u32 = 5;
const DAC_OVERRIDE: u32 = 1;
const SYS_PTRACE: u32 = 19;
const SYS_ADMIN: u32 = 21;
const SYS_RESOURCE: u32 = 24;
const PERFMON: u32 = 38;
const BPF: u32 = 39;
/// Locked memory that a recording with the usual buffer needs at most, bytes.
const ENOUGH_LOCKED: u64 = 64 << 20;

/// What does instead of root, in the words of `setcap`.
pub fn capabilities(kernel: &Kernel) -> &'static str {
    match kernel {
        Kernel::Read {
            locks_memory: true, ..
        } => "cap_bpf,cap_perfmon,cap_kill,cap_sys_resource=ep",
        _ => "cap_bpf,cap_perfmon,cap_kill=ep",
    }
}

/// Judges.
pub fn judge(facts: &Facts) -> Judgement {
    let mut checks = kernel(&facts.kernel);
    if let Some(rights) = &facts.rights {
        checks.extend(judge_rights(rights));
        checks.extend(locked_memory(rights, &facts.kernel));
    }
    checks.extend(facts.charge.as_ref().map(charge));
    checks.push(load(facts.load.as_ref()));
    Judgement {
        can_record: checks.iter().all(|check| check.status != Status::Fail),
        checks,
    }
}

/// What can be told of a host and the caller without a look at the kernel's types, which takes time.
pub fn judge_rights(rights: &Rights) -> Vec<Check> {
    let mut checks = vec![
        lockdown(rights),
        allowed(rights),
        extras(rights),
        groups(rights),
    ];
    checks.extend(own_file(rights));
    checks
}

/// The first of some failed checks that the line with sudo wouldn't mend. `None` of failures that it
/// would: a user without rights is told that line, not what they lack.
pub fn hindrance(rights: &Rights, checks: Vec<Check>) -> Option<Check> {
    let mut failed = checks
        .into_iter()
        .filter(|check| check.status == Status::Fail);
    if rights.is_root || lacking(rights).is_empty() {
        return failed.next();
    }
    failed
        .find(|check| ["btf", "hooks", "lockdown"].contains(&check.id))
        .or_else(|| no_new_rights(rights))
}

fn check(id: &'static str, status: Status, text: impl Into<String>) -> Check {
    Check {
        id,
        status,
        text: text.into(),
        fix: None,
    }
}

impl Check {
    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// What was found and what to do about it, in one line.
    pub fn line(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{} -> {fix}", self.text),
            None => self.text.clone(),
        }
    }
}

fn kernel(kernel: &Kernel) -> Vec<Check> {
    match kernel {
        Kernel::NoBtf(why) => vec![
            check("btf", Status::Fail, format!("the kernel's types can't be read: {why}")).fix(
                "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian, Ubuntu, Fedora and RHEL have had it since \
                 2021); in a container, let /sys/kernel/btf be seen",
            ),
            check("hooks", Status::Unknown, "can't be told without the kernel's types"),
        ],
        Kernel::Read {
            hooks,
            stand_ins,
            missing,
            ..
        } => {
            let all = hooks + stand_ins.len();
            let mut found = vec![check("btf", Status::Ok, "the kernel tells its types")];
            if !missing.is_empty() {
                found.push(
                    check("hooks", Status::Fail, missing.join("; "))
                        .fix("use Linux 5.10 or newer; rtrace knows kernels up to 7.2"),
                );
            } else if stand_ins.is_empty() {
                found.push(check("hooks", Status::Ok, format!("{hooks} of {all}")));
            } else {
                let told = stand_ins.iter().map(|(hook, says)| format!("no {hook}: {says}"));
                let told = told.collect::<Vec<_>>().join("; ");
                found.push(
                    check("hooks", Status::Warn, format!("{hooks} of {all}; {told}"))
                        .fix("nothing needs to be done; newer kernels tell it at first hand"),
                );
            }
            found
        }
    }
}

fn lockdown(rights: &Rights) -> Check {
    match rights.lockdown.as_deref() {
        Some("confidentiality") => check(
            "lockdown",
            Status::Fail,
            "the kernel is locked down for confidentiality: no program may read its memory, root's neither",
        )
        .fix("boot without lockdown=confidentiality, or switch Secure Boot's lockdown down to integrity"),
        Some(mode) => check("lockdown", Status::Ok, format!("mode {mode} allows it")),
        // Without /sys/kernel/security, as in some containers, a kernel that has it can't say so.
        None => check("lockdown", Status::Ok, "the kernel tells of none"),
    }
}

/// Capabilities that loading takes and the caller hasn't got.
fn lacking(rights: &Rights) -> Vec<&'static str> {
    [(BPF, "CAP_BPF"), (PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(number, _)| !rights.has(*number) && !rights.has(SYS_ADMIN))
        .map(|(_, name)| name)
        .collect()
}

fn allowed(rights: &Rights) -> Check {
    let lacking = lacking(rights);
    if lacking.is_empty() && rights.is_in_user_namespace {
        let text = "root here is root of a user namespace alone (a rootless container, unshare -r): loading programs \
                    takes the machine's root";
        return check("rights", Status::Fail, text)
            .fix("record from the host, outside of the container");
    }
    if lacking.is_empty() {
        let by = if rights.is_root {
            "root"
        } else {
            "capabilities"
        };
        return check(
            "rights",
            Status::Ok,
            format!("programs may be loaded ({by})"),
        );
    }
    let text = if rights.is_root {
        format!(
            "root here lacks {}: this is a container, or a service with fewer rights",
            lacking.join(" and ")
        )
    } else {
        format!("not root, and without {}", lacking.join(" and "))
    };
    let fix = if rights.is_root {
        "give the container these capabilities (docker run --cap-add BPF --cap-add PERFMON), or record from the host"
    } else {
        "run it through sudo, or ask for capabilities: `rtrace doctor --for-admin` prints what to ask for"
    };
    check("rights", Status::Fail, text).fix(fix)
}

fn extras(rights: &Rights) -> Check {
    let limits: Vec<&str> = [
        (
            KILL,
            "signals can't be passed on to a command that becomes another user",
        ),
        (
            SYS_PTRACE,
            "of other users' processes less can be read from /proc",
        ),
        (
            DAC_OVERRIDE,
            "a trace can be written only where the caller may write",
        ),
        (SYS_ADMIN, "run times of the BPF programs can't be measured"),
    ]
    .into_iter()
    .filter(|(number, _)| !rights.has(*number))
    .map(|(_, limit)| limit)
    .collect();
    if limits.is_empty() {
        check("limits", Status::Ok, "none")
    } else {
        check("limits", Status::Warn, limits.join("; "))
    }
}

fn groups(rights: &Rights) -> Check {
    let text = match rights.cgroup_versions[..] {
        [] => "not mounted",
        [1] => "version 1",
        [2] => "version 2",
        _ => "versions 1 and 2",
    };
    check("cgroups", Status::Ok, text)
}

/// Why rtrace can't come by rights. Of no concern to who may load programs already.
fn own_file(rights: &Rights) -> Option<Check> {
    if rights.has(BPF) || rights.has(SYS_ADMIN) {
        return None;
    }
    no_new_rights(rights).or_else(|| file_without_capabilities(rights))
}

/// Neither sudo nor a file's capabilities would help.
pub fn no_new_rights(rights: &Rights) -> Option<Check> {
    let text = "this process may not gain rights (no_new_privs), from sudo or a file's capabilities neither";
    let fix =
        "start it outside of the container or service that set it (NoNewPrivileges=, bwrap, snap)";
    rights
        .no_new_privs
        .then(|| check("file", Status::Fail, text).fix(fix))
}

/// Why capabilities of rtrace's file would do nothing, or can't be given to it.
pub fn file_without_capabilities(rights: &Rights) -> Option<Check> {
    let mut options = rights.own_mount_options.split(',');
    let text = if options.any(|option| option == "nosuid") {
        "rtrace's file is on a file system mounted nosuid: capabilities given to it do nothing"
            .to_owned()
    } else if rights.own_takes_capabilities == Some(false) {
        format!(
            "rtrace's file is on a file system without extended attributes ({}): it can't be given capabilities",
            rights.own_file_system
        )
    } else {
        return None;
    };
    let fix = "copy it to another one, such as /usr/local/bin";
    Some(check("file", Status::Fail, text).fix(fix))
}

/// Before 5.11 a buffer of the usual size is far above the usual limit.
fn locked_memory(rights: &Rights, kernel: &Kernel) -> Option<Check> {
    let limit = rights.locked_memory_bytes?;
    let counts = matches!(
        kernel,
        Kernel::Read {
            locks_memory: true,
            ..
        }
    );
    if !counts || rights.has(SYS_RESOURCE) || limit >= ENOUGH_LOCKED {
        return None;
    }
    let text = format!(
        "on this kernel BPF memory counts as locked, and only {} KiB may be (ulimit -l)",
        limit >> 10
    );
    let fix = format!(
        "raise the limit to {} MiB (limits.conf, LimitMEMLOCK=), or give rtrace's file cap_sys_resource too",
        ENOUGH_LOCKED >> 20
    );
    Some(check("memlock", Status::Fail, text).fix(fix))
}

fn charge(made: &Result<String, String>) -> Check {
    match made {
        Ok(place) => check(
            "charge",
            Status::Ok,
            format!("a memory control group can be made for the command ({place})"),
        ),
        Err(why) => check(
            "charge",
            Status::Warn,
            format!("the command gets no memory control group of its own: {why}"),
        )
        .fix("nothing needs to be done; a group that is there can be named with --charge PATH"),
    }
}

fn load(load: Option<&Result<Vec<(&'static str, f64)>, String>>) -> Check {
    match load {
        None => check("load", Status::Unknown, "not tried"),
        Some(Ok(steps)) => {
            let sum: f64 = steps.iter().map(|(_, ms)| ms).sum();
            let each: Vec<String> = steps
                .iter()
                .map(|(step, ms)| format!("{step} {ms:.0}"))
                .collect();
            check(
                "load",
                Status::Ok,
                format!(
                    "all programs were loaded and attached in {sum:.0} ms ({})",
                    each.join(", ")
                ),
            )
        }
        Some(Err(why)) => check(
            "load",
            Status::Fail,
            format!("loading was tried and failed: {why}"),
        )
        .fix("see the lines above; if they are all fine, this is a fault of rtrace"),
    }
}

#[cfg(test)]
mod tests;
