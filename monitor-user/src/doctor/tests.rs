use super::*;

const ALL: u64 = u64::MAX;

fn host(capabilities: u64) -> Rights {
    Rights {
        release: "6.12.0".to_owned(),
        is_root: capabilities == ALL,
        capabilities,
        cgroup_versions: vec![2],
        own_mount_options: "rw,relatime".to_owned(),
        ..Rights::default()
    }
}

fn good() -> Facts {
    Facts {
        kernel: Kernel::Read {
            hooks: 8,
            stand_ins: Vec::new(),
            missing: Vec::new(),
            locks_memory: false,
        },
        rights: Some(host(ALL)),
        load: Some(Ok(vec![("types", 30.0), ("programs", 50.4)])),
        charge: Some(Ok("version 2, inside of /job".to_owned())),
    }
}

fn with(change: impl FnOnce(&mut Rights)) -> Facts {
    let mut facts = good();
    if let Some(rights) = &mut facts.rights {
        change(rights);
    }
    facts
}

/// The check that fails; each of these hosts has one.
fn fails(facts: &Facts) -> Check {
    let judgement = judge(facts);
    assert!(!judgement.can_record);
    let failed: Vec<_> = judgement
        .checks
        .into_iter()
        .filter(|check| check.status == Status::Fail)
        .collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    failed.into_iter().next().unwrap()
}

#[test]
fn a_good_host_has_nothing_to_mend() {
    let judgement = judge(&good());
    assert!(judgement.can_record);
    assert!(judgement.checks.iter().all(|check| check.fix.is_none()));
    let text = text(&judgement);
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("in 80 ms (types 30, programs 50)"), "{text}");
    assert!(text.ends_with("rtrace can record here.\n"), "{text}");
}

#[test]
fn each_hindrance_is_named_with_a_way_out() {
    let no_btf = Facts {
        kernel: Kernel::NoBtf("no such file".to_owned()),
        ..good()
    };
    let old = Facts {
        kernel: Kernel::Read {
            hooks: 7,
            stand_ins: Vec::new(),
            missing: vec!["the kernel has no tracepoint rss_stat".to_owned()],
            locks_memory: false,
        },
        ..good()
    };
    let refused = Facts {
        load: Some(Err("the verifier".to_owned())),
        ..good()
    };
    for (facts, id, word) in [
        (no_btf, "btf", "CONFIG_DEBUG_INFO_BTF"),
        (old, "hooks", "5.10"),
        (
            with(|r| r.lockdown = Some("confidentiality".to_owned())),
            "lockdown",
            "lockdown=",
        ),
        (
            with(|r| (r.capabilities, r.is_root) = (0, false)),
            "rights",
            "sudo",
        ),
        (with(|r| r.capabilities = 1 << KILL), "rights", "container"),
        (with(|r| r.is_in_user_namespace = true), "rights", "host"),
        (refused, "load", "fault"),
    ] {
        let check = fails(&facts);
        assert_eq!(check.id, id);
        let line = check.line();
        assert_eq!(line.lines().count(), 1, "{line}");
        let fix = check.fix.unwrap();
        assert!(fix.contains(word), "{fix}");
        assert!(line.contains(&check.text) && line.ends_with(&fix), "{line}");
    }
}

#[test]
fn a_host_without_a_group_for_the_command_records_with_less() {
    let facts = Facts {
        charge: Some(Err("it is read-only; the charge of /job is read".to_owned())),
        ..good()
    };
    let judgement = judge(&facts);
    assert!(judgement.can_record);
    let mut checks = judgement.checks.iter();
    let check = checks.find(|check| check.id == "charge").unwrap();
    assert_eq!(check.status, Status::Warn);
    assert!(check.line().contains("read-only") && check.line().contains("--charge PATH"));
}

#[test]
fn capabilities_of_a_file_that_do_nothing_are_explained() {
    let mount = with(|r| {
        r.capabilities = 0;
        r.own_mount_options = "rw,nosuid,nodev".to_owned();
    });
    let plain = with(|r| {
        r.capabilities = 0;
        r.own_file_system = "vfat".to_owned();
        r.own_takes_capabilities = Some(false);
    });
    let bound = with(|r| {
        r.capabilities = 0;
        r.no_new_privs = true;
        r.own_takes_capabilities = Some(false);
    });
    for (facts, word) in [
        (mount, "nosuid"),
        (plain, "without extended attributes (vfat)"),
        // Another place for the file wouldn't help then.
        (bound, "no_new_privs"),
    ] {
        let checks = judge(&facts).checks;
        let file = checks.iter().find(|check| check.id == "file").unwrap();
        assert!(file.text.contains(word), "{file:?}");
    }
    let cases = [Some(true), None].map(|takes| {
        with(|r| {
            r.capabilities = 0;
            r.own_takes_capabilities = takes;
        })
    });
    for facts in cases {
        let checks = judge(&facts).checks;
        assert!(checks.iter().all(|check| check.id != "file"), "{checks:?}");
    }
    // Who may load programs already isn't bothered with it.
    for root in [
        with(|r| r.no_new_privs = true),
        with(|r| r.own_takes_capabilities = Some(false)),
    ] {
        assert!(judge(&root).can_record);
    }
}

/// What a recording would say in place of the line with sudo.
fn hinders(facts: &Facts) -> Option<&'static str> {
    let rights = facts.rights.as_ref().unwrap();
    hindrance(rights, judge(facts).checks).map(|check| check.id)
}

#[test]
fn only_what_sudo_would_not_mend_hinders_a_user_without_rights() {
    let user: fn(&mut Rights) = |r| {
        (r.capabilities, r.is_root) = (0, false);
        r.own_mount_options = "nosuid".to_owned();
        r.locked_memory_bytes = Some(64 << 10);
    };
    let old = |mut facts: Facts| {
        if let Kernel::Read { locks_memory, .. } = &mut facts.kernel {
            *locks_memory = true;
        }
        facts
    };
    assert_eq!(hinders(&good()), None);
    assert_eq!(hinders(&old(with(user))), None);
    let bound = with(|r| {
        user(r);
        r.no_new_privs = true;
    });
    assert_eq!(hinders(&bound), Some("file"));
    let locked = with(|r| {
        user(r);
        r.lockdown = Some("confidentiality".to_owned());
    });
    assert_eq!(hinders(&locked), Some("lockdown"));
    let no_btf = Facts {
        kernel: Kernel::NoBtf("cut".to_owned()),
        ..with(user)
    };
    assert_eq!(hinders(&no_btf), Some("btf"));
    // Who has the rights is told whatever else fails.
    let limited = with(|r| {
        user(r);
        r.capabilities = 1 << KILL | 1 << BPF | 1 << PERFMON;
    });
    assert_eq!(hinders(&old(limited)), Some("memlock"));
    let contained = with(|r| r.capabilities = 1 << KILL);
    assert_eq!(hinders(&contained), Some("rights"));
}

#[test]
fn three_capabilities_are_enough_and_their_limits_are_said() {
    let facts = with(|r| {
        r.is_root = false;
        r.capabilities = 1 << KILL | 1 << BPF | 1 << PERFMON;
    });
    let judgement = judge(&facts);
    assert!(judgement.can_record);
    let limits = judgement.checks.iter().find(|check| check.id == "limits");
    let limits = limits.unwrap();
    assert_eq!(limits.status, Status::Warn);
    assert!(!limits.text.contains("signals"), "{limits:?}");
}

#[test]
fn an_old_kernel_says_what_stands_in() {
    let facts = Facts {
        kernel: Kernel::Read {
            hooks: 7,
            stand_ins: vec![("exit_mmap".to_owned(), "counters tell".to_owned())],
            missing: Vec::new(),
            locks_memory: false,
        },
        rights: None,
        load: None,
        charge: None,
    };
    let judgement = judge(&facts);
    assert!(judgement.can_record);
    assert_eq!(
        judgement.checks[1].text,
        "7 of 8; no exit_mmap: counters tell"
    );
    assert_eq!(judgement.checks[2].status, Status::Unknown);
}

#[test]
fn a_limit_of_locked_memory_matters_on_old_kernels_only() {
    let old = |change: fn(&mut Rights)| {
        let mut facts = with(change);
        if let Kernel::Read { locks_memory, .. } = &mut facts.kernel {
            *locks_memory = true;
        }
        facts
    };
    let limited: fn(&mut Rights) = |r| {
        (r.is_root, r.capabilities) = (false, 1 << KILL | 1 << BPF | 1 << PERFMON);
        r.locked_memory_bytes = Some(64 << 10);
    };
    let facts = old(limited);
    assert_eq!(fails(&facts).id, "memlock");
    assert!(capabilities(&facts.kernel).contains("cap_sys_resource"));
    assert!(judge(&with(limited)).can_record);
    assert!(
        judge(&old(|r| r.locked_memory_bytes = Some(64 << 10))).can_record,
        "root may raise it"
    );
}

#[test]
fn what_is_sent_to_an_administrator_has_how_why_and_undo() {
    let letter = for_admin("/usr/local/bin/rtrace", capabilities(&good().kernel));
    for part in [
        "sudo setcap cap_bpf,cap_perfmon,cap_kill=ep /usr/local/bin/rtrace\n",
        "Why that is safe",
        "sudo setcap -r /usr/local/bin/rtrace\n",
    ] {
        assert!(letter.contains(part), "{letter}");
    }
}
