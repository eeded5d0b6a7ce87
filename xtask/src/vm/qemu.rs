//! Starts virtual machines, in software: no right and no device of this machine is needed.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context;

use super::mirror;
use crate::{output, process, setup};

const PROGRAM: &str = "qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";
/// What `timeout` ends with when it had to stop the program.
const TIMED_OUT: i32 = 124;

/// An emulator that can be started.
#[derive(Debug)]
pub(super) struct Qemu {
    program: PathBuf,
    /// Where its own libraries and firmware are, if it was only unpacked.
    folder: Option<PathBuf>,
}

/// What to start.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    pub(super) kernel: &'a Path,
    pub(super) initramfs: &'a Path,
    pub(super) cpus: u32,
    /// Variables of the first program's environment.
    pub(super) environment: &'a [(String, String)],
    /// What else the kernel is started with.
    pub(super) kernel_options: &'a str,
    pub(super) limit: Duration,
}

impl Qemu {
    /// The machine's own; without one, Debian's, unpacked beside the build: its installation may remove packages.
    ///
    /// # Errors
    /// There is none, and none can be had.
    pub(super) fn find(cache: &Path) -> anyhow::Result<Self> {
        if let Some(program) = process::find(PROGRAM) {
            return Ok(Self {
                program,
                folder: None,
            });
        }
        let folder = cache.join("qemu");
        let found = Self {
            program: folder.join("usr/bin").join(PROGRAM),
            folder: Some(folder.clone()),
        };
        if found.is_usable() {
            return Ok(found);
        }
        setup::know(&[PACKAGE])?;
        output::note(&format!("xtask: unpacking {PACKAGE}"));
        // What an earlier attempt left may be of another version.
        let _nothing = fs::remove_dir_all(&folder);
        mirror::unpack_beside(PACKAGE, &folder)?;
        anyhow::ensure!(
            found.is_usable(),
            "{PACKAGE} doesn't run from where it was unpacked"
        );
        Ok(found)
    }

    fn is_usable(&self) -> bool {
        process::answer(self.command(&self.program).arg("--version")).is_some()
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some(folder) = &self.folder {
            let folders = ["usr/lib", "lib"].map(|name| folder.join(name).join("x86_64-linux-gnu"));
            let mut path = OsString::new();
            for folder in folders {
                path.push(folder);
                path.push(":");
            }
            command.env("LD_LIBRARY_PATH", path);
        }
        command
    }

    /// Runs a machine to its end; each line of its console is handed over. Whether it ended by itself.
    ///
    /// # Errors
    /// It can't be started.
    pub(super) fn run(
        &self,
        machine: &Machine<'_>,
        mut each_line: impl FnMut(&str),
    ) -> anyhow::Result<bool> {
        let mut command = self.command(Path::new("timeout"));
        command
            .arg("--kill-after=10")
            .arg(machine.limit.as_secs().to_string())
            .arg(&self.program);
        if let Some(folder) = &self.folder {
            for firmware in ["qemu", "seabios"] {
                command
                    .arg("-L")
                    .arg(folder.join("usr/share").join(firmware));
            }
        }
        let variables: Vec<String> = machine
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        command
            // Not KVM, even where there is a /dev/kvm: a host without the processor's help (PVM) has one too, which stops in
            // the midst of decompressing Debian's kernels ("KVM internal error. Suberror: 1").
            //
            // One thread for all CPUs. With one for each, CPUs of 6.1 were caught for good in `copy_process`, where
            // the kernel had just changed its code for a tracepoint: the new instruction was in memory, and QEMU 7.2
            // still had the breakpoint that stands there meanwhile.
            .args(["-accel", "tcg,thread=single", "-cpu", "max", "-m", "3G"])
            .args(["-display", "none", "-vga", "none", "-nic", "none"])
            .args(["-monitor", "none", "-serial", "stdio", "-no-reboot"])
            .args(["-smp", &machine.cpus.to_string()])
            .arg("-kernel")
            .arg(machine.kernel)
            .arg("-initrd")
            .arg(machine.initramfs)
            .arg("-append")
            // A kernel that panics restarts at once, which ends the emulator.
            .arg(format!(
                "console=ttyS0 loglevel=3 panic=-1 {} {}",
                machine.kernel_options,
                variables.join(" ")
            ));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", process::words(&command)))?;
        if let Some(console) = child.stdout.take() {
            for line in BufReader::new(console).split(b'\n') {
                let line = line.context("reading the console of a virtual machine")?;
                each_line(String::from_utf8_lossy(&line).trim_end_matches('\r'));
            }
        }
        let status = child.wait()?;
        Ok(status.code() != Some(TIMED_OUT))
    }
}
