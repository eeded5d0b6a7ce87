//! The user's environment as it was before cargo, and rustup's stand-in for cargo, changed it.
//!
//! What they change was found by experiment (cargo 1.95 and 1.96, rustup 1.29; `cargo run` replaces itself by
//! the program, so the program's parent is whoever called cargo):
//!
//! * cargo sets `CARGO`, `CARGO_MANIFEST_DIR`, `CARGO_MANIFEST_PATH` and `CARGO_PKG_*`, puts the build folders and
//!   the toolchain's library folder in front of `LD_LIBRARY_PATH`, and names the system's certificates in
//!   `SSL_CERT_FILE` and `SSL_CERT_DIR` where these don't name an existing file.
//! * rustup sets `RUSTUP_TOOLCHAIN`, `RUSTUP_TOOLCHAIN_SOURCE`, `RUSTUP_HOME` and `CARGO_HOME`, counts
//!   `RUST_RECURSION_COUNT` up, puts the toolchain's `lib` in front of `LD_LIBRARY_PATH`, and `CARGO_HOME/bin` in
//!   front of a `PATH` that doesn't have it.
//!
//! Some of that can't be told from a value of the user's by looking at it. The caller's own environment helps there,
//! but a shell's (in `/proc`) is the one it started with, without later exports: so it is a hint, never the source.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use crate::certificates;

/// Environment variables by name.
pub(crate) type Env = BTreeMap<OsString, OsString>;

/// What is known about the process that called cargo.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    /// Its environment when it started.
    pub(crate) env: Env,
    /// Name of its program, such as `bash`.
    pub(crate) program: String,
}

impl Caller {
    /// Whether its environment may be taken as a hint: not if it runs under a cargo itself, nor if it is one of
    /// the programs whose purpose is to give the command another environment.
    fn is_hint(&self) -> bool {
        !self.env.contains_key(OsStr::new("CARGO_MANIFEST_DIR"))
            && !["sudo", "su", "doas", "runuser"].contains(&self.program.as_str())
    }

    /// Whether it may have exported variables after its start.
    fn is_shell(&self) -> bool {
        [
            "sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "csh", "tcsh", "busybox",
        ]
        .contains(&self.program.as_str())
    }
}

/// Undoes the changes of cargo and rustup in `own`, the environment of a program that `cargo run` started.
///
/// `target` is the folder of build output; `exists` tells whether a file exists. An environment without `CARGO`
/// wasn't changed by cargo and comes back as it is.
pub(crate) fn restore(
    own: &Env,
    caller: Option<&Caller>,
    target: &Path,
    exists: &dyn Fn(&Path) -> bool,
) -> Env {
    let Some(cargo) = own.get(OsStr::new("CARGO")).map(PathBuf::from) else {
        return own.clone();
    };
    let caller = caller.filter(|caller| caller.is_hint());
    let mut work = Work {
        env: own.clone(),
        caller,
    };
    let rustup = rustup_home(own).filter(|home| cargo.starts_with(home.join("toolchains")));

    work.env.retain(|name, _| !is_set_by_cargo(name));
    if let Some(value) = work.hint("CARGO").filter(|value| **value != *cargo) {
        work.env.insert("CARGO".into(), value);
    }
    work.libraries(target, rustup.as_deref());
    for (name, value) in certificates::probe(exists) {
        work.drop_added(name, value.as_os_str());
    }
    if rustup.is_some() {
        work.rustup();
    }
    work.env
}

fn is_set_by_cargo(name: &OsStr) -> bool {
    let name = name.as_bytes();
    matches!(
        name,
        b"CARGO" | b"CARGO_MANIFEST_DIR" | b"CARGO_MANIFEST_PATH"
    ) || name.starts_with(b"CARGO_PKG_")
}

fn rustup_home(env: &Env) -> Option<PathBuf> {
    env.get(OsStr::new("RUSTUP_HOME")).map(PathBuf::from)
}

struct Work<'a> {
    env: Env,
    caller: Option<&'a Caller>,
}

impl Work<'_> {
    fn get(&self, name: &str) -> Option<&OsString> {
        self.env.get(OsStr::new(name))
    }

    fn hint(&self, name: &str) -> Option<OsString> {
        self.caller?.env.get(OsStr::new(name)).cloned()
    }

    fn set(&mut self, name: &str, value: Option<OsString>) {
        match value {
            Some(value) => self.env.insert(name.into(), value),
            None => self.env.remove(OsStr::new(name)),
        };
    }

    /// Removes a variable that has the value which would have been added, unless the caller had one too.
    fn drop_added(&mut self, name: &str, added: &OsStr) {
        if self.get(name).is_some_and(|value| value == added) {
            self.set(name, self.hint(name));
        }
    }

    /// Removes the folders in front of `LD_LIBRARY_PATH` that cargo and rustup put there.
    ///
    /// A variable that was set but empty leaves an empty last part behind, one that wasn't set leaves none.
    fn libraries(&mut self, target: &Path, rustup: Option<&Path>) {
        const NAME: &str = "LD_LIBRARY_PATH";
        let Some(value) = self.get(NAME).cloned() else {
            return;
        };
        let is_added = |part: &OsStr| {
            let path = Path::new(part);
            path.starts_with(target)
                || is_toolchain_library(path)
                || rustup.is_some_and(|home| {
                    path.starts_with(home.join("toolchains")) && path.ends_with("lib")
                })
        };
        // The user's own part may itself begin with a folder that looks added.
        if let Some(own) = self.hint(NAME).filter(|own| !own.is_empty())
            && let Some(front) = value.as_bytes().strip_suffix(own.as_bytes())
            && let Some(front) = front.strip_suffix(b":")
            && parts(OsStr::from_bytes(front))
                .iter()
                .all(|part| is_added(part))
        {
            self.set(NAME, Some(own));
            return;
        }
        let kept: Vec<OsString> = parts(&value)
            .into_iter()
            .skip_while(|part| is_added(part))
            .collect();
        self.set(NAME, (!kept.is_empty()).then(|| joined(&kept)));
    }

    fn rustup(&mut self) {
        self.path();
        let chosen_by_env = self
            .get("RUSTUP_TOOLCHAIN_SOURCE")
            .is_some_and(|source| source == "env");
        let toolchain = self.hint("RUSTUP_TOOLCHAIN").or_else(|| {
            // The full name of what the user named: the nearest there is.
            self.get("RUSTUP_TOOLCHAIN")
                .filter(|_| chosen_by_env)
                .cloned()
        });
        self.set("RUSTUP_TOOLCHAIN", toolchain);
        self.set(
            "RUSTUP_TOOLCHAIN_SOURCE",
            self.hint("RUSTUP_TOOLCHAIN_SOURCE"),
        );
        let count = self
            .get("RUST_RECURSION_COUNT")
            .and_then(|count| count.to_str()?.parse::<u32>().ok());
        let before = count
            .and_then(|count| count.checked_sub(1))
            .filter(|count| *count > 0);
        self.set(
            "RUST_RECURSION_COUNT",
            before.map(|count| count.to_string().into()),
        );
        for (name, folder) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
            let Some(home) = self.get("HOME") else {
                continue;
            };
            let usual = Path::new(home).join(folder).into_os_string();
            if self.hint(name).is_none_or(|own| own != usual) && self.get(name) == Some(&usual) {
                self.set(name, None);
            }
        }
    }

    /// Removes `CARGO_HOME/bin` from the front of `PATH` if it is known that rustup put it there.
    ///
    /// Where that isn't known it stays: one folder too many does no harm, the user's cargo missing from `PATH` does.
    fn path(&mut self) {
        let (Some(value), Some(home), Some(caller)) =
            (self.get("PATH"), self.get("CARGO_HOME"), self.caller)
        else {
            return;
        };
        let folder = Path::new(home).join("bin");
        let (first, rest) = match value.as_bytes().iter().position(|byte| *byte == b':') {
            Some(colon) => (
                &value.as_bytes()[..colon],
                Some(OsStr::from_bytes(&value.as_bytes()[colon + 1..])),
            ),
            None => (value.as_bytes(), None),
        };
        let before = caller.env.get(OsStr::new("PATH")).cloned();
        let is_rest = before.as_deref().filter(|path| !path.is_empty()) == rest;
        if Path::new(OsStr::from_bytes(first)) != folder || !is_rest {
            return;
        }
        // A login shell extends PATH after its start. It also says in `_` which file it ran: a cargo from
        // elsewhere wouldn't have been found if this folder had come first.
        let ran = self.get("_").map(Path::new);
        let elsewhere =
            ran.is_some_and(|ran| ran.ends_with("cargo") && ran.parent() != Some(&folder));
        if !caller.is_shell() || elsewhere {
            self.set("PATH", before);
        }
    }
}

/// Whether this is a folder of compiled standard libraries, `.../lib/rustlib/TARGET/lib`.
fn is_toolchain_library(path: &Path) -> bool {
    let mut names = path.iter().rev();
    names.next().is_some_and(|name| name == "lib")
        && names.next().is_some()
        && names.next().is_some_and(|name| name == "rustlib")
}

fn parts(value: &OsStr) -> Vec<OsString> {
    value
        .as_bytes()
        .split(|byte| *byte == b':')
        .map(|part| OsString::from_vec(part.to_vec()))
        .collect()
}

fn joined(parts: &[OsString]) -> OsString {
    parts.join(OsStr::new(":"))
}

#[cfg(test)]
#[path = "user_env_tests.rs"]
mod tests;
