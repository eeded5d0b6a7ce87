//! Debian packages, by `apt-get`, never at the cost of one that is installed.

use std::{env, process::Command};

use anyhow::{Context, bail};

use crate::{output, process};

/// A program that tests use, and the package that has it.
const TEST_PROGRAMS: [(&str, &str); 12] = [
    ("cc", "gcc"),
    ("make", "make"),
    ("/usr/bin/python3", "python3"),
    ("strace", "strace"),
    ("perf", "linux-perf"),
    ("bpftool", "bpftool"),
    ("mkfs.ext4", "e2fsprogs"),
    ("setcap", "libcap2-bin"),
    ("sudo", "sudo"),
    ("tmux", "tmux"),
    ("less", "less"),
    ("chromium", "chromium"),
];

/// Programs that are recorded for their own sake when all tests run: large ones, and a server that begins to serve.
const REAL_PROGRAMS: [(&str, &str); 3] = [
    ("nginx", "nginx-light"),
    ("orterun", "openmpi-bin"),
    ("mrconvert", "mrtrix3"),
];

/// The command line that installs packages, to show.
pub(super) fn command_line(packages: &[&str]) -> String {
    format!(
        "apt-get install --yes --no-install-recommends --no-remove {}",
        packages.join(" ")
    )
}

/// Installs packages, as root or through sudo; asks for the lists of packages first if one isn't known.
///
/// # Errors
/// There is no apt-get or no way to be root, or apt-get fails: a package isn't known, there is no network, or another
/// package would have to go.
pub(super) fn install(packages: &[&str]) -> anyhow::Result<()> {
    know(packages)?;
    let line = command_line(packages);
    output::note(&format!("xtask: {line}"));
    process::run(&mut as_root(&line)?).context(
        "apt-get can't install them without removing others, or at all (its messages are above)",
    )
}

/// Fetches apt's lists of packages if they lack one of these.
///
/// # Errors
/// There is no apt-get, no way to be root, or no network.
pub(crate) fn know(packages: &[&str]) -> anyhow::Result<()> {
    if process::find("apt-get").is_none() {
        bail!("there is no apt-get to get {} with", packages.join(" "));
    }
    let is_known = |package: &&str| {
        process::answer(Command::new("apt-cache").args(["show", "--no-all-versions", package]))
            .is_some()
    };
    if packages.iter().all(is_known) {
        return Ok(());
    }
    output::note("xtask: apt-get update");
    process::run(&mut as_root("apt-get update --quiet")?)
}

/// Installs what the tests use and isn't there: programs, Python's `venv`, and, beside Debian's cargo, its formatter
/// and linter. Silent if nothing is missing.
///
/// # Errors
/// apt-get can't install them; the message has the command.
pub(crate) fn test_programs() -> anyhow::Result<()> {
    let mut missing: Vec<&str> = TEST_PROGRAMS
        .iter()
        .filter(|(program, _)| process::find(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if process::answer(Command::new("python3").args(["-c", "import venv, ensurepip"])).is_none() {
        missing.push("python3-venv");
    }
    if env::var_os("CARGO").is_some_and(|cargo| cargo == "/usr/bin/cargo") {
        let beside = [
            ("cargo-fmt", "rustfmt-web"),
            ("cargo-clippy", "rust-web-clippy"),
        ];
        missing.extend(
            beside
                .iter()
                .filter(|(program, _)| process::find(program).is_none())
                .map(|(_, package)| *package),
        );
    }
    if missing.is_empty() {
        return Ok(());
    }
    output::note(&format!(
        "xtask: the tests use programs that aren't here: {}",
        missing.join(" ")
    ));
    let sudo = if process::is_root() { "" } else { "sudo " };
    install(&missing).with_context(|| {
        format!(
            "cannot install what the tests use; run `{sudo}apt-get update && {sudo}{}`, then this again",
            command_line(&missing)
        )
    })
}

/// Installs the real programs that aren't there. Silent if nothing is missing.
///
/// # Errors
/// apt-get can't install them.
pub(crate) fn real_programs() -> anyhow::Result<()> {
    let missing: Vec<&str> = REAL_PROGRAMS
        .iter()
        .filter(|(program, _)| process::find(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    install(&missing).context("cannot install programs that all tests record")
}

fn as_root(line: &str) -> anyhow::Result<Command> {
    let mut words = vec!["env", "DEBIAN_FRONTEND=noninteractive"];
    if !process::is_root() {
        if process::find("sudo").is_none() {
            bail!("installing packages needs root, and there is no sudo");
        }
        words.insert(0, "sudo");
    }
    words.extend(line.split(' '));
    // A machine that has just started may be installing its own updates.
    words.extend(["-o", "DPkg::Lock::Timeout=300"]);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    Ok(command)
}
