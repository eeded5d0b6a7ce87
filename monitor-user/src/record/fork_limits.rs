//! Where the running kernel keeps what new processes and threads are refused for.
//!
//! Nothing of it must be there: what isn't found isn't known of failed calls of fork.

use monitor_ebpf::abi::RefusalPlaces;

use crate::host::btf::Btf;

/// Size of a pointer, bytes.
const POINTER: u32 = 8;
/// `RLIMIT_NPROC` of `include/uapi/asm-generic/resource.h`, the same on x86-64 and arm64.
const RLIMIT_NPROC: u32 = 6;

/// What belongs together is all there or all absent.
pub(super) fn places(btf: &Btf) -> RefusalPlaces {
    let user = user(btf).unwrap_or(RefusalPlaces::ABSENT);
    let namespace = namespace(btf).unwrap_or(RefusalPlaces::ABSENT);
    let group = group(btf).unwrap_or(RefusalPlaces::ABSENT);
    RefusalPlaces {
        task_proxy: namespace.task_proxy,
        proxy_namespace: namespace.proxy_namespace,
        namespace_pids: namespace.namespace_pids,
        namespace_pid_max: namespace.namespace_pid_max,
        css_set_pids: group.css_set_pids,
        css_parent: group.css_parent,
        group_css: group.group_css,
        group_tasks: group.group_tasks,
        group_limit: group.group_limit,
        ..user
    }
}

fn user(btf: &Btf) -> Option<RefusalPlaces> {
    let member = |of, path| Some(btf.member(of, path)?.offset);
    let limits = btf.member("signal_struct", "rlim")?;
    let before = btf.element_size(limits)?.checked_mul(RLIMIT_NPROC)?;
    let (cred_counts, counts_tasks, counts_bytes) = counts(btf)?;
    Some(RefusalPlaces {
        task_cred: member("task_struct", "real_cred")?,
        cred_uid: member("cred", "uid")?,
        cred_effective: member("cred", "cap_effective")?,
        cred_namespace: member("cred", "user_ns")?,
        user_namespace_level: member("user_namespace", "level")?,
        cred_counts,
        counts_tasks,
        counts_bytes,
        signal_limit: btf.within(limits, "rlim_cur")?.offset.checked_add(before)?,
        ..RefusalPlaces::ABSENT
    })
}

/// Where a user's threads are counted, and in how many bytes: for each user namespace since 5.14.
fn counts(btf: &Btf) -> Option<(u32, u32, u32)> {
    let member = |of, path| Some(btf.member(of, path)?.offset);
    if let Some(processes) = member("user_struct", "processes") {
        return Some((member("cred", "user")?, processes, 4));
    }
    let counts = btf.member("ucounts", "rlimit")?;
    let size = btf.element_size(counts)?;
    let before = size.checked_mul(btf.enumerator("rlimit_type", "UCOUNT_RLIMIT_NPROC")?)?;
    Some((
        member("cred", "ucounts")?,
        counts.offset.checked_add(before)?,
        size,
    ))
}

fn namespace(btf: &Btf) -> Option<RefusalPlaces> {
    let member = |of, path| Some(btf.member(of, path)?.offset);
    Some(RefusalPlaces {
        task_proxy: member("task_struct", "nsproxy")?,
        proxy_namespace: member("nsproxy", "pid_ns_for_children")?,
        namespace_pids: member("pid_namespace", "pid_allocated")?,
        // Of the whole host before 6.14.
        namespace_pid_max: member("pid_namespace", "pid_max").unwrap_or(u32::MAX),
        ..RefusalPlaces::ABSENT
    })
}

fn group(btf: &Btf) -> Option<RefusalPlaces> {
    let member = |of, path| Some(btf.member(of, path)?.offset);
    let pids = btf.enumerator("cgroup_subsys_id", "pids_cgrp_id")?;
    Some(RefusalPlaces {
        css_set_pids: pids
            .checked_mul(POINTER)?
            .checked_add(member("css_set", "subsys")?)?,
        css_parent: member("cgroup_subsys_state", "parent")?,
        group_css: member("pids_cgroup", "css")?,
        group_tasks: member("pids_cgroup", "counter")?,
        group_limit: member("pids_cgroup", "limit")?,
        ..RefusalPlaces::ABSENT
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::btf::fixtures::KERNELS;

    /// BTF of the newest kernel, in which a name isn't found.
    fn without(name: &str) -> RefusalPlaces {
        let mut raw = KERNELS[4].1.to_vec();
        let needle = [b"\0", name.as_bytes(), b"\0"].concat();
        let at = memchr::memmem::find(&raw, &needle).unwrap();
        raw[at + 1] = b'?';
        places(&Btf::parse(raw).unwrap())
    }

    #[test]
    fn what_belongs_together_is_all_there_or_all_absent() {
        let of = |found: RefusalPlaces| {
            [
                found.task_cred != u32::MAX && found.signal_limit != u32::MAX,
                found.task_proxy != u32::MAX && found.namespace_pids != u32::MAX,
                found.css_set_pids != u32::MAX && found.group_limit != u32::MAX,
            ]
        };
        assert_eq!(of(without("read_bytes")), [true; 3]);
        for name in ["cap_effective", "rlim_cur", "UCOUNT_RLIMIT_NPROC"] {
            assert_eq!(of(without(name)), [false, true, true], "{name}");
        }
        for name in ["pid_ns_for_children", "pid_allocated"] {
            assert_eq!(of(without(name)), [true, false, true], "{name}");
        }
        for name in ["pids_cgroup", "pids_cgrp_id"] {
            assert_eq!(of(without(name)), [true, true, false], "{name}");
        }
    }

    #[test]
    fn where_the_host_alone_has_a_largest_number_the_rest_is_known() {
        let found = without("pid_max");
        assert_eq!(found.namespace_pid_max, u32::MAX);
        assert_ne!(found.namespace_pids, u32::MAX);
    }
}
