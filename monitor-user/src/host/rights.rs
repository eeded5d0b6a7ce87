//! What the calling process and the host allow, as `/proc` and `/sys` tell it.
//!
//! Everything is read below a folder that stands for `/`, so that tests can make up hosts.

use std::{fs, path::Path};

use rustix::{fs::getxattr, io::Errno};

/// Whether loading programs is allowed here, and what else limits it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Kernel release.
    pub release: String,
    /// Effective user.
    pub is_root: bool,
    /// Effective capabilities, a bit for each number (include/uapi/linux/capability.h).
    pub capabilities: u64,
    /// No program that this process executes gains rights by its file.
    pub no_new_privs: bool,
    /// Mode of kernel lockdown, such as `none`, `integrity`, `confidentiality`; `None`: no lockdown here.
    pub lockdown: Option<String>,
    /// `kernel.unprivileged_bpf_disabled`.
    pub unprivileged_bpf_disabled: Option<u32>,
    /// Memory that the process may lock, bytes; `None`: without limit.
    pub locked_memory_bytes: Option<u64>,
    /// Mounted versions of control groups, the lower first.
    pub cgroup_versions: Vec<u8>,
    /// Root in a user namespace of its own, as in a rootless container: its capabilities end there.
    pub is_in_user_namespace: bool,
    /// Mount of the file system that holds rtrace's own file: its options.
    pub own_mount_options: String,
    /// Kind of that file system, such as `ext4`.
    pub own_file_system: String,
    /// Whether rtrace's own file can be given capabilities: they are an extended attribute, which not
    /// every file system has. `None`: it doesn't tell.
    pub own_takes_capabilities: Option<bool>,
}

impl Rights {
    /// Looks below `root`; `own` is rtrace's file. What can't be read stays empty.
    pub fn look(root: &Path, own: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let status = read("proc/self/status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim).unwrap_or_default().to_owned()
        };
        let lockdown = read("sys/kernel/security/lockdown");
        let mounts = read("proc/self/mountinfo");
        let is_mounted = |kind: &str| mounts.lines().any(|line| mount_kind(line) == Some(kind));
        let groups = [(1, "cgroup"), (2, "cgroup2")];
        let groups = groups.into_iter().filter(|(_, kind)| is_mounted(kind));
        let (own_mount_options, own_file_system) = mount_of(&mounts, own).unwrap_or_default();
        Self {
            release: read("proc/sys/kernel/osrelease").trim().to_owned(),
            is_root: field("Uid:").split_whitespace().nth(1) == Some("0"),
            capabilities: u64::from_str_radix(&field("CapEff:"), 16).unwrap_or(0),
            no_new_privs: field("NoNewPrivs:") == "1",
            lockdown: chosen(&lockdown).map(str::to_owned),
            unprivileged_bpf_disabled: read("proc/sys/kernel/unprivileged_bpf_disabled")
                .trim()
                .parse()
                .ok(),
            locked_memory_bytes: locked(&read("proc/self/limits")),
            cgroup_versions: groups.map(|(version, _)| version).collect(),
            is_in_user_namespace: is_partial(&read("proc/self/uid_map")),
            own_mount_options,
            own_file_system,
            own_takes_capabilities: takes_capabilities(
                &root.join(own.strip_prefix("/").unwrap_or(own)),
            ),
        }
    }

    /// Whether a capability, by its number, is in effect.
    pub fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 == 1
    }
}

/// Soft limit of a line such as `Max locked memory         65536                65536                bytes`.
fn locked(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The word in brackets: `none [integrity] confidentiality`.
fn chosen(lockdown: &str) -> Option<&str> {
    Some(lockdown.split_once('[')?.1.split_once(']')?.0)
}

/// Kind of file system of a line of `mountinfo` (Linux Documentation/filesystems/proc.rst, 3.5).
fn mount_kind(line: &str) -> Option<&str> {
    line.split_once(" - ")?.1.split(' ').next()
}

/// Options and kind of the mount that a path is on: the one with the longest matching folder, the last
/// of those.
fn mount_of(mounts: &str, path: &Path) -> Option<(String, String)> {
    let mount = |line: &str| {
        let mut fields = line.split(' ').skip(4);
        let folder = fields.next()?.replace("\\040", " ");
        let options = fields.next()?.to_owned();
        let kind = mount_kind(line).unwrap_or_default().to_owned();
        path.starts_with(&folder)
            .then_some((folder.len(), (options, kind)))
    };
    let mounts = mounts.lines().filter_map(mount);
    mounts
        .max_by_key(|(length, _)| *length)
        .map(|(_, found)| found)
}

/// Whether `uid_map` leaves some of the machine's users out, as that of a user namespace does.
fn is_partial(uid_map: &str) -> bool {
    let mut lines = uid_map.lines();
    let whole = ["0", "0", "4294967295"];
    lines
        .next()
        .is_some_and(|line| !line.split_whitespace().eq(whole))
}

/// Asks for the attribute that capabilities are kept in.
fn takes_capabilities(file: &Path) -> Option<bool> {
    // Longer than any version of it (include/uapi/linux/capability.h, `vfs_ns_cap_data`).
    let mut value = [0_u8; 64];
    match getxattr(file, "security.capability", &mut value) {
        Ok(_) | Err(Errno::NODATA) => Some(true),
        Err(Errno::OPNOTSUPP) => Some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_host_is_read_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in [
            (
                "proc/self/status",
                "Uid:\t1000\t1000\t0\t1000\nCapEff:\t00000000c0000020\nNoNewPrivs:\t1\n",
            ),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            (
                "proc/self/limits",
                "Max locked memory  65536  131072  bytes\n",
            ),
            ("proc/sys/kernel/unprivileged_bpf_disabled", "2\n"),
            (
                "sys/kernel/security/lockdown",
                "none integrity [confidentiality]\n",
            ),
            (
                "proc/self/mountinfo",
                "1 1 8:1 / / rw - ext4 /dev/a rw\n2 1 0:5 / /sys/fs/cgroup rw - cgroup2 c rw\n\
                 3 1 8:2 / /home\\040x rw,nosuid - vfat /dev/b rw\n",
            ),
            ("proc/self/uid_map", "         0       1000          1\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let rights = Rights::look(root.path(), Path::new("/home x/rtrace"));
        assert!(!rights.is_root && rights.no_new_privs);
        assert!(rights.has(5) && rights.has(31) && !rights.has(38));
        assert_eq!(rights.lockdown.as_deref(), Some("confidentiality"));
        assert_eq!(rights.unprivileged_bpf_disabled, Some(2));
        assert_eq!(rights.cgroup_versions, [2]);
        assert!(rights.is_in_user_namespace);
        assert_eq!(rights.own_mount_options, "rw,nosuid");
        assert_eq!(rights.own_file_system, "vfat");
        assert_eq!(rights.own_takes_capabilities, None, "it isn't there");
        assert_eq!(rights.release, "6.1.0");
        assert_eq!(rights.locked_memory_bytes, Some(65536));
    }

    #[test]
    fn a_host_that_tells_nothing_has_no_rights() {
        let root = tempfile::tempdir().unwrap();
        let rights = Rights::look(root.path(), Path::new("/x"));
        assert_eq!(rights, Rights::default());
    }

    #[test]
    fn the_machines_own_user_namespace_has_all_users() {
        assert!(!is_partial("         0          0 4294967295\n"));
        assert!(is_partial("0 100000 65536\n"));
        assert!(is_partial("0 1000 1\n1 100000 65536\n"));
        assert!(!is_partial(""), "not known isn't partial");
    }

    #[test]
    fn proc_holds_no_capabilities_of_files() {
        // Of all file systems the one that is mounted everywhere.
        assert_eq!(takes_capabilities(Path::new("/proc/version")), Some(false));
    }
}
