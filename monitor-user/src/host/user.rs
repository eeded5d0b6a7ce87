//! Who called sudo, and with which environment.
//!
//! Sudo's default policy deletes most of the environment: PATH, conda's and FSL's variables,
//! `OMP_NUM_THREADS=1 sudo …`. What sudo itself received is still in `/proc/PID/environ` of the
//! sudo process, which root may read.

use std::{
    ffi::{CString, OsStr, OsString},
    fs, io,
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use nix::unistd::{
    Gid, Uid, User, geteuid, getgid, getgrouplist, getgroups, getuid, setegid, seteuid, setgroups,
};
use thiserror::Error;

/// The user behind sudo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoker {
    /// User id.
    pub uid: Uid,
    /// Main group id.
    pub gid: Gid,
    /// All group ids.
    pub groups: Vec<Gid>,
    /// The environment that sudo received.
    pub environment: Vec<(OsString, OsString)>,
}

/// Why the user behind sudo can't be told.
#[derive(Debug, Error)]
pub enum InvokerError {
    /// Sudo sets this for every command it runs.
    #[error("{0} is missing or no number")]
    Variable(&'static str),
    /// The user database doesn't know them.
    #[error("there is no user with number {0}")]
    Unknown(Uid),
    /// The system refused a look-up.
    #[error("cannot {what}")]
    LookUp {
        /// What was looked up.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Invoker {
    /// The user behind the sudo that started this process; `None` if sudo didn't, or if root called it.
    ///
    /// # Errors
    /// If sudo did and the user can't be told: to go on as root would be wrong then.
    pub fn find() -> Result<Option<Self>, InvokerError> {
        let sudo = nix::unistd::getppid().as_raw().unsigned_abs();
        // Only root's sudo is sudo. In a shell that sudo started, root is meant.
        if !geteuid().is_root() || !is_sudo(sudo) || !owner(sudo).is_some_and(Uid::is_root) {
            return Ok(None);
        }
        let uid = Uid::from_raw(number("SUDO_UID")?);
        if uid.is_root() {
            return Ok(None);
        }
        let look_up = |what| {
            move |source: nix::Error| InvokerError::LookUp {
                what,
                source: source.into(),
            }
        };
        let user = User::from_uid(uid)
            .map_err(look_up("look the user up"))?
            .ok_or(InvokerError::Unknown(uid))?;
        let name = CString::new(user.name).map_err(|_nul| InvokerError::Unknown(uid))?;
        let groups = getgrouplist(&name, user.gid).map_err(look_up("look the user's groups up"))?;
        // With `use_pty` this is sudo's monitor, a fork of the sudo that was called: it has the same.
        let environment =
            fs::read(format!("/proc/{sudo}/environ")).map_err(|source| InvokerError::LookUp {
                what: "read the environment that sudo received",
                source,
            })?;
        Ok(Some(Self {
            uid,
            gid: user.gid,
            groups,
            environment: split_environment(&environment),
        }))
    }
}

impl Invoker {
    /// Does something with this user's rights to files, then is root again. There must be one thread.
    ///
    /// Where the rights can't be taken on, it is done with root's.
    pub fn with_rights<T>(&self, act: impl FnOnce() -> T) -> T {
        let groups = getgroups().unwrap_or_default();
        let taken = setgroups(&self.groups)
            .and_then(|()| setegid(self.gid))
            .and_then(|()| seteuid(self.uid));
        let result = act();
        if taken.is_ok() {
            // Can't fail: the real user is root all the time.
            let _root_again = seteuid(getuid());
        }
        let _root_again = setegid(getgid()).and_then(|()| setgroups(&groups));
        result
    }
}

fn number(variable: &'static str) -> Result<u32, InvokerError> {
    let value = std::env::var(variable).ok();
    value
        .and_then(|value| value.parse().ok())
        .ok_or(InvokerError::Variable(variable))
}

fn is_sudo(pid: u32) -> bool {
    let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    // An upgrade may have replaced the file meanwhile.
    matches!(
        exe.file_name().map(OsStr::as_bytes),
        Some(b"sudo" | b"sudo (deleted)")
    )
}

/// Effective user id of a process: the real one of sudo is its caller's.
fn owner(pid: u32) -> Option<Uid> {
    let ids = status_field(pid, "Uid:")?;
    ids.split_whitespace()
        .nth(1)?
        .parse()
        .ok()
        .map(Uid::from_raw)
}

fn status_field(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(|rest| rest.trim().to_owned())
}

fn split_environment(bytes: &[u8]) -> Vec<(OsString, OsString)> {
    let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    bytes
        .split(|byte| *byte == 0)
        .filter_map(|entry| {
            let equals = entry.iter().position(|byte| *byte == b'=')?;
            Some((owned(&entry[..equals]), owned(&entry[equals + 1..])))
        })
        .collect()
}

/// `NAME=VALUE` as exec wants it.
pub(crate) fn entry(name: &OsStr, value: &OsStr) -> OsString {
    let mut entry = name.as_bytes().to_vec();
    entry.push(b'=');
    entry.extend_from_slice(value.as_bytes());
    OsString::from_vec(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_split_at_the_first_equals_sign() {
        let pairs = split_environment(b"A=1\0B=x=y\0EMPTY=\0no-sign\0\xff=\xfe\0");
        let shown: Vec<_> = pairs
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
            .collect();
        let wanted: [(&[u8], &[u8]); 4] = [
            (b"A", b"1"),
            (b"B", b"x=y"),
            (b"EMPTY", b""),
            (b"\xff", b"\xfe"),
        ];
        assert_eq!(shown, wanted);
        assert_eq!(entry(&pairs[1].0, &pairs[1].1), "B=x=y");
    }

    #[test]
    fn a_process_that_sudo_did_not_start_has_no_invoker() {
        // The test runner isn't sudo.
        assert!(!is_sudo(std::process::id()));
        assert_eq!(owner(std::process::id()), Some(geteuid()));
    }
}
