//! Who called sudo, and with which environment.
//!
//! Sudo's default policy deletes most of the environment: PATH, conda's and FSL's variables,
//! `OMP_NUM_THREADS=1 sudo …`. What sudo itself received is still in `/proc/PID/environ` of the
//! sudo process, which root may read.

use std::{
    ffi::{CString, OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use nix::unistd::{Gid, Uid, User, geteuid, getgrouplist};

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

impl Invoker {
    /// The user behind the sudo that started this process; `None` if sudo didn't, or if root called it.
    pub fn find() -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let sudo = outermost_sudo(nix::unistd::getppid().as_raw().unsigned_abs())?;
        // Not from SUDO_UID: who started sudo is what the kernel says of sudo's parent.
        let uid = owner(parent(sudo)?)?;
        if uid.is_root() {
            return None;
        }
        let user = User::from_uid(uid).ok().flatten()?;
        let name = CString::new(user.name).ok()?;
        let groups = getgrouplist(&name, user.gid).ok()?;
        let environment = split_environment(&fs::read(format!("/proc/{sudo}/environ")).ok()?);
        Some(Self {
            uid,
            gid: user.gid,
            groups,
            environment,
        })
    }
}

/// The sudo that was called: with `use_pty` there is another one between it and the command.
fn outermost_sudo(mut pid: u32) -> Option<u32> {
    let mut found = None;
    while is_sudo(pid) {
        found = Some(pid);
        pid = parent(pid)?;
    }
    found
}

fn is_sudo(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe"))
        .is_ok_and(|exe| exe.file_name() == Some(OsStr::new("sudo")))
}

fn parent(pid: u32) -> Option<u32> {
    status_field(pid, "PPid:")?.parse().ok()
}

/// Real user id of a process.
fn owner(pid: u32) -> Option<Uid> {
    status_field(pid, "Uid:")?
        .split_whitespace()
        .next()?
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
        assert_eq!(outermost_sudo(std::process::id()), None);
    }
}
