//! Hosts that aren't there: the real program in a mount namespace of its own, where files that tell
//! about the kernel are made up. The kernel stays what it is, so results are marked as simulated.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use tempfile::TempDir;

/// Where the kernel describes its own types.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Where security modules are told.
pub const SECURITY: &str = "/sys/kernel/security";

/// A host as a program that is started in it sees it.
#[derive(Debug)]
pub struct Host {
    folder: TempDir,
    /// Commands of a shell that make it.
    script: Vec<String>,
    /// What takes rights from the program and starts it.
    wrapper: Vec<String>,
}

impl Host {
    /// The host as it is.
    ///
    /// # Errors
    /// There is no room for files.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            folder: tempfile::tempdir()?,
            script: vec!["set -e".to_owned()],
            wrapper: Vec::new(),
        })
    }

    /// A folder is empty.
    #[must_use]
    pub fn hiding(self, folder: &str) -> Self {
        self.then(format!("mount -t tmpfs tmpfs {folder}"))
    }

    /// The kernel describes its types in this way.
    ///
    /// # Errors
    /// There is no room for files.
    pub fn with_btf(self, content: &[u8]) -> anyhow::Result<Self> {
        let file = self.folder.path().join("btf");
        fs::write(&file, content)?;
        Ok(self.then(format!("mount --bind '{}' {BTF}", file.display())))
    }

    /// The kernel is locked down.
    #[must_use]
    pub fn with_lockdown(self, modes: &str) -> Self {
        self.hiding(SECURITY)
            .then(format!("echo '{modes}' > {SECURITY}/lockdown"))
    }

    /// Root lacks capabilities, such as `-bpf,-perfmon`.
    #[must_use]
    pub fn withholding(mut self, capabilities: &str) -> Self {
        // What isn't bounded root would have back with the next exec.
        let setpriv = [
            "setpriv",
            "--bounding-set",
            capabilities,
            "--inh-caps",
            capabilities,
        ];
        self.wrapper.extend(setpriv.map(str::to_owned));
        self
    }

    /// Root is root of a user namespace alone.
    #[must_use]
    pub fn in_user_namespace(mut self) -> Self {
        let unshare = ["unshare", "--user", "--map-root-user"];
        self.wrapper.extend(unshare.map(str::to_owned));
        self
    }

    fn then(mut self, line: String) -> Self {
        self.script.push(line);
        self
    }

    /// A call of a program in it, as root; arguments can be added.
    pub fn command(&self, program: &Path) -> Command {
        let mut call = Command::new("unshare");
        call.args(["--mount", "sh", "-c"])
            .arg(format!("{}\nexec \"$@\"", self.script.join("\n")))
            .arg("sh")
            .args(&self.wrapper)
            .arg(program);
        call
    }
}

/// The running kernel's types, with a name changed in its first letter, so that it isn't found.
///
/// # Errors
/// The kernel has no types, or no such name.
pub fn btf_without(name: &str) -> anyhow::Result<Vec<u8>> {
    let (btf, changed) = renamed(&format!("\0{name}\0"))?;
    ensure!(changed == 1, "{name} is there {changed} times");
    Ok(btf)
}

/// The running kernel's types without those that tell its tracepoints, as before 5.5.
///
/// # Errors
/// The kernel has no types, or none that tell tracepoints.
pub fn btf_without_tracepoints() -> anyhow::Result<Vec<u8>> {
    let (btf, changed) = renamed("\0btf_trace_")?;
    ensure!(changed > 1, "it has none anyway");
    Ok(btf)
}

/// With each name that begins so in capitals there, and how many they are. The first byte of `names` is
/// the end of the name before.
fn renamed(names: &str) -> anyhow::Result<(Vec<u8>, usize)> {
    let mut btf = fs::read(BTF)?;
    let places: Vec<usize> = btf
        .windows(names.len())
        .enumerate()
        .filter(|(_, window)| *window == names.as_bytes())
        .map(|(at, _)| at)
        .collect();
    for at in &places {
        let letter = btf.get_mut(at + 1).context("cut")?;
        *letter = letter.to_ascii_uppercase();
    }
    Ok((btf, places.len()))
}

/// The mode of kernel lockdown that this machine is in, if it tells one.
pub fn lockdown() -> Option<String> {
    let modes = fs::read_to_string(Path::new(SECURITY).join("lockdown")).ok()?;
    Some(modes.split_once('[')?.1.split_once(']')?.0.to_owned())
}
