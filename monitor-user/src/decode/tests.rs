//! Records as the kernel side lays them out.

use monitor_ebpf::abi::{
    ArgsRecord, CGROUP_NAME, Churn, ENV_CHUNK, ENV_CHUNKS, EnvRecord, ExecRecord, ExitRecord,
    ForkRecord, Header, Kind, Memory, MemoryRecord, OomRecord, OomScope, Parts, SnapshotRecord,
};
use zerocopy::IntoBytes;

use super::*;
use crate::event::{self, Exec, What};

const PAGE: u64 = 4096;

fn header(kind: u16, pid: u32, time_ns: u64) -> Header {
    Header {
        time_ns,
        start_ns: 7,
        pid,
        tid: pid,
        kind,
        cpu: 1,
        len: 0,
    }
}

fn exec_record(pid: u32, time_ns: u64, filename: &[u8], total: usize, first: &[u8]) -> Vec<u8> {
    let record = ExecRecord {
        header: header(Kind::EXEC, pid, time_ns),
        mm: 5,
        args_total: u32::try_from(total).unwrap(),
        filename_len: u32::try_from(filename.len()).unwrap(),
        args_len: u32::try_from(first.len()).unwrap(),
        cwd_len: 4,
        comm: *b"name\0garbage....",
        ..ExecRecord::default()
    };
    [record.as_bytes(), b"b\0a\0", filename, first].concat()
}

fn args_record(pid: u32, time_ns: u64, offset: usize, bytes: &[u8]) -> Vec<u8> {
    let record = ArgsRecord {
        header: header(Kind::ARGS, pid, time_ns),
        offset: u32::try_from(offset).unwrap(),
        args_len: u32::try_from(bytes.len()).unwrap(),
    };
    [record.as_bytes(), bytes].concat()
}

fn decode_all(records: &[Vec<u8>]) -> (Vec<Event>, u64) {
    let (mut decoder, mut events) = (Decoder::new(PAGE, Kept::default()), Vec::new());
    for record in records {
        decoder.push(record, |event| events.push(event));
    }
    decoder.finish(|event| events.push(event));
    (events, decoder.malformed())
}

#[test]
fn a_process_that_was_there_is_told_with_its_memory() {
    let record = SnapshotRecord {
        header: header(Kind::SNAPSHOT, 5, 9),
        mm: 3,
        parent_start_ns: 2,
        parent_pid: 4,
        threads: 6,
        ns_pid: 2,
        ns_level: 1,
        memory: Memory {
            rss: [1, 2, 3, 4],
            total_vm: 50,
        },
        comm: *b"worker\0.........",
        ..SnapshotRecord::default()
    };
    let gone = SnapshotRecord {
        mm: 0,
        threads: 0,
        is_forked: 1,
        ..record
    };
    let (events, malformed) = decode_all(&[record.as_bytes().to_vec(), gone.as_bytes().to_vec()]);
    assert_eq!((events.len(), malformed), (2, 0));
    let snapshot = |event: &Event| match &event.what {
        What::Snapshot(snapshot) => snapshot.clone(),
        other => panic!("no snapshot: {other:?}"),
    };
    let first = snapshot(&events[0]);
    let parent = first.parent.unwrap();
    assert_eq!((parent.pid, parent.start_ns, first.zombie), (4, 2, false));
    let found = first.found.unwrap();
    assert_eq!(
        (found.mm, found.threads, found.has_executed),
        (Some(3), 6, true)
    );
    assert_eq!((found.ns_pid, found.ns_level), (Some(2), Some(1)));
    assert_eq!((found.comm, found.argv), (b"worker".to_vec(), None));
    let memory = found.memory.unwrap();
    assert_eq!((memory.anon, memory.vms), (2 * PAGE, 50 * PAGE));
    let last = snapshot(&events[1]);
    assert!(last.zombie);
    let found = last.found.unwrap();
    assert_eq!(
        (found.mm, found.memory, found.has_executed),
        (None, None, false)
    );
}

fn exec_of(event: &Event) -> &Exec {
    match &event.what {
        What::Exec(exec) => exec,
        other => panic!("not an exec: {other:?}"),
    }
}

#[test]
fn pages_become_bytes_and_what_is_below_zero_is_nothing() {
    let record = MemoryRecord {
        header: header(Kind::MEMORY, 0, 3),
        mm: 9,
        now: Memory {
            rss: [1, 2, 3, -4],
            total_vm: 10,
        },
        parts: Parts {
            data_vm: 5,
            exec_vm: 2,
            stack_vm: 1,
            page_tables: 8192,
        },
        churn: Churn {
            grown: 6,
            write_faults: u64::MAX,
        },
        cpu_ns: 77,
        charge: 7,
    };
    let (events, malformed) = decode_all(&[record.as_bytes().to_vec()]);
    assert_eq!(malformed, 0);
    assert_eq!(events[0].subject, None);
    let What::Memory {
        mm: 9,
        now,
        parts: Some(parts),
        churn: Some(churn),
        // Whose thread it was isn't known.
        cpu_ns: None,
        charge: Some(28_672),
    } = events[0].what
    else {
        panic!("{events:?}")
    };
    assert_eq!(
        (now.file, now.anon, now.swap, now.shmem, now.vms),
        (PAGE, 2 * PAGE, 3 * PAGE, 0, 10 * PAGE)
    );
    assert_eq!(now.rss(), 3 * PAGE);
    assert_eq!((churn.grown, churn.write_faults), (6 * PAGE, None));
    assert_eq!(
        (parts.data, parts.exec, parts.stack, parts.page_tables),
        (5 * PAGE, 2 * PAGE, PAGE, 8192)
    );
    let unknown = MemoryRecord {
        charge: u64::MAX,
        ..record
    };
    let (events, _) = decode_all(&[unknown.as_bytes().to_vec()]);
    assert!(matches!(events[0].what, What::Memory { charge: None, .. }));
}

#[test]
fn what_the_kernel_does_not_know_is_none() {
    let record = ForkRecord {
        header: header(Kind::FORK, 5, 1),
        clone_flags: u64::MAX,
        made_ns: 70_000,
        creator_page_tables: u64::MAX,
        ..ForkRecord::default()
    };
    let (events, _) = decode_all(&[record.as_bytes().to_vec()]);
    let What::Fork(fork) = &events[0].what else {
        panic!("{events:?}")
    };
    assert_eq!(
        (
            fork.fork_ns,
            fork.creator_rss,
            fork.creator_vms,
            fork.creator_page_tables
        ),
        (None, None, None, None)
    );
    assert_eq!(
        (
            fork.clone_flags,
            fork.creator,
            fork.creator_threads,
            fork.mm
        ),
        (None, None, None, None)
    );
}

#[test]
fn a_creation_is_told_with_its_creators_memory() {
    let record = ForkRecord {
        header: header(Kind::FORK, 5, 1),
        called_ns: 1_000,
        made_ns: 71_000,
        creator_memory: Memory {
            rss: [1, 2, 3, 4],
            total_vm: 10,
        },
        creator_page_tables: 8192,
        ..ForkRecord::default()
    };
    let (events, _) = decode_all(&[record.as_bytes().to_vec()]);
    let What::Fork(fork) = &events[0].what else {
        panic!("{events:?}")
    };
    assert_eq!(
        (
            fork.fork_ns,
            fork.creator_rss,
            fork.creator_vms,
            fork.creator_page_tables
        ),
        (Some(70_000), Some(7 * PAGE), Some(10 * PAGE), Some(8192))
    );
}

#[test]
fn arguments_keep_their_bytes_and_their_empty_ones() {
    let list = b"a\0\0\xff\xfe\0last\0";
    let (events, _) = decode_all(&[exec_record(5, 1, b"/bin/a", list.len(), list)]);
    let exec = exec_of(&events[0]);
    assert_eq!(exec.filename, b"/bin/a");
    assert_eq!(exec.comm, b"name");
    assert_eq!(
        exec.cwd.as_ref().map(|cwd| cwd.path.as_slice()),
        Some(&b"/a/b"[..])
    );
    assert_eq!(
        exec.argv,
        [
            b"a".to_vec(),
            b"".to_vec(),
            b"\xff\xfe".to_vec(),
            b"last".to_vec()
        ]
    );
    assert!(!exec.argv_truncated);
    let (events, _) = decode_all(&[exec_record(5, 1, b"/bin/a", 1, b"\0")]);
    assert_eq!(
        exec_of(&events[0]).argv,
        [b"".to_vec()],
        "one empty argument"
    );
    let (events, _) = decode_all(&[exec_record(5, 1, b"/bin/a", 0, b"")]);
    assert!(exec_of(&events[0]).argv.is_empty(), "none at all");
}

#[test]
fn long_arguments_come_in_pieces_that_other_records_may_part() {
    let list: Vec<u8> = (0..30_000_u32)
        .map(|n| if n % 100 == 99 { 0 } else { b'x' })
        .collect();
    let other = ExitRecord {
        header: header(Kind::EXIT, 99, 2),
        ..ExitRecord::default()
    };
    let (events, malformed) = decode_all(&[
        exec_record(5, 1, b"/bin/a", list.len(), &list[..8192]),
        other.as_bytes().to_vec(),
        args_record(5, 1, 8192, &list[8192..24_576]),
        exec_record(6, 1, b"/bin/b", 2, b"b\0"),
        args_record(5, 1, 24_576, &list[24_576..]),
    ]);
    assert_eq!(malformed, 0);
    assert_eq!(events.len(), 3);
    let long = exec_of(
        events
            .iter()
            .find(|event| event.subject.unwrap().process.pid == 5)
            .unwrap(),
    );
    assert_eq!(long.argv.len(), 300);
    assert_eq!(long.argv_bytes, 30_000);
    assert!(!long.argv_truncated);
}

#[test]
fn a_lost_piece_cuts_the_list_and_says_so() {
    let list = vec![b'y'; 40_000];
    let first = || exec_record(5, 1, b"/bin/a", list.len(), &list[..8192]);
    let exit = ExitRecord {
        header: header(Kind::EXIT, 5, 9),
        ..ExitRecord::default()
    }
    .as_bytes()
    .to_vec();
    let next = || exec_record(5, 4, b"/bin/b", 2, b"b\0");
    let gap = args_record(5, 1, 24_576, &list[24_576..]);
    for (what, records) in [
        ("end of recording", vec![first()]),
        ("gap", vec![first(), gap]),
        ("exit", vec![first(), exit]),
        ("next exec", vec![first(), next()]),
    ] {
        let (events, _) = decode_all(&records);
        let exec = exec_of(&events[0]);
        assert!(exec.argv_truncated, "{what}");
        assert_eq!(exec.argv[0].len(), 8192, "{what}");
        assert_eq!(exec.argv_bytes, 40_000, "{what}");
    }
}

#[test]
fn an_exec_does_not_wait_for_ever() {
    let (mut decoder, mut events) = (Decoder::new(PAGE, Kept::default()), Vec::new());
    for (pid, time) in [(5, 30), (6, 10), (7, 20)] {
        decoder.push(
            &exec_record(pid, time, b"/bin/a", 40_000, &[b'y'; 8192]),
            |event| events.push(event),
        );
    }
    assert!(events.is_empty());
    decoder.give_up_before(30, |event| events.push(event));
    assert_eq!(
        events.iter().map(|event| event.time_ns).collect::<Vec<_>>(),
        [10, 20]
    );
    assert!(events.iter().all(|event| exec_of(event).argv_truncated));
    decoder.finish(|event| events.push(event));
    assert_eq!(events.len(), 3);
}

#[test]
fn a_piece_of_another_exec_is_not_mixed_in() {
    let (events, _) = decode_all(&[
        exec_record(5, 10, b"/bin/a", 40_000, &[b'y'; 8192]),
        args_record(5, 3, 8192, b"from an earlier exec whose record was lost"),
    ]);
    assert_eq!(exec_of(&events[0]).argv[0].len(), 8192);
}

#[test]
fn nothing_that_a_buffer_may_hold_makes_it_panic() {
    let whole = [
        exec_record(5, 1, b"/bin/a", 40_000, &[b'y'; 300]),
        args_record(5, 1, 300, b"more"),
        ForkRecord {
            header: header(Kind::FORK, 5, 1),
            ..ForkRecord::default()
        }
        .as_bytes()
        .to_vec(),
    ];
    for record in &whole {
        for length in 0..record.len() {
            let (events, malformed) = decode_all(&[record[..length].to_vec()]);
            assert!(events.len() + usize::try_from(malformed).unwrap() <= 1);
        }
        for place in 24..record.len().min(160) {
            let mut broken = record.clone();
            broken[place] ^= 0xff;
            let (_, _) = decode_all(&[broken.clone(), broken]);
        }
    }
    let unknown = Header {
        kind: 4242,
        ..header(0, 1, 1)
    };
    assert_eq!(decode_all(&[unknown.as_bytes().to_vec()]), (vec![], 1));
}

#[test]
fn a_victim_has_a_limit_only_if_that_ran_out() {
    let mut record = OomRecord {
        header: header(Kind::OOM, 5, 1),
        mm: 7,
        memory: Memory {
            rss: [1, 2, 3, -4],
            total_vm: 5,
        },
        limit: 10,
        scope: OomScope::CGROUP,
        has_memory: 1,
        cgroup: [0; CGROUP_NAME],
    };
    record.cgroup[..3].copy_from_slice(b"a\xffb");
    let decoded = |record: &OomRecord| {
        let (events, malformed) = decode_all(&[record.as_bytes().to_vec()]);
        assert_eq!((events.len(), malformed), (1, 0));
        match &events[0].what {
            What::Oom(oom) => oom.clone(),
            other => panic!("{other:?}"),
        }
    };
    let oom = decoded(&record);
    let memory = oom.memory.unwrap();
    assert_eq!((oom.mm, memory.anon, memory.shmem), (Some(7), 2 * PAGE, 0));
    assert_eq!((memory.swap, memory.vms), (3 * PAGE, 5 * PAGE));
    assert_eq!(oom.scope, Some(event::OomScope::Cgroup));
    assert_eq!(oom.cgroup.as_deref(), Some("a\u{fffd}b"));
    assert_eq!(oom.limit, Some(10 * PAGE));
    for (scope, expected) in [
        (OomScope::HOST, Some(event::OomScope::Host)),
        (OomScope::UNKNOWN, None),
        (77, None),
    ] {
        record.scope = scope;
        let oom = decoded(&record);
        assert_eq!((oom.scope, oom.cgroup, oom.limit), (expected, None, None));
    }
    (record.scope, record.limit) = (OomScope::CGROUP, u64::MAX);
    (record.mm, record.has_memory) = (0, 0);
    let oom = decoded(&record);
    assert_eq!(
        (oom.mm, oom.memory, oom.cgroup, oom.limit),
        (None, None, None, None)
    );
}

fn env_record(time_ns: u64, offset: usize, total: usize, bytes: &[u8]) -> Vec<u8> {
    let record = EnvRecord {
        header: header(Kind::ENV, 5, time_ns),
        offset: u32::try_from(offset).unwrap(),
        env_total: u32::try_from(total).unwrap(),
        env_len: u32::try_from(bytes.len()).unwrap(),
        reserved: 0,
    };
    [record.as_bytes(), bytes].concat()
}

/// What comes out of an environment: variables, and whether it was whole.
fn environments(kept: &[&str], records: &[Vec<u8>]) -> Vec<(Vec<String>, bool)> {
    let more = kept.iter().map(|name| name.as_bytes().to_vec()).collect();
    let mut decoder = Decoder::new(PAGE, Kept { more });
    let mut events = Vec::new();
    for record in records {
        decoder.push(record, |event| events.push(event));
    }
    assert_eq!(decoder.malformed(), 0);
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let environment = |event: &Event| match &event.what {
        What::Environment(e) => (e.values.iter().map(text).collect(), e.is_whole),
        other => panic!("no environment: {other:?}"),
    };
    events.iter().map(environment).collect()
}

#[test]
fn of_an_environment_only_what_is_kept_goes_on() {
    let bytes = b"HOME=/root\0OMP_NUM_THREADS=4\0SECRET=MALLOC_ARENA_MAX=1\0MALLOC_ARENA_MAX=2\0\
                  XPYTHONMALLOC=a\0PYTHONMALLOC=malloc\0CUDA_VISIBLE_DEVICES=\0MINE=x\0PMIX_RANK=3\0OMP_NUM_THREADS\0";
    let record = env_record(9, 0, bytes.len(), bytes);
    let always = [
        "OMP_NUM_THREADS=4",
        "MALLOC_ARENA_MAX=2",
        "PYTHONMALLOC=malloc",
        "CUDA_VISIBLE_DEVICES=",
        "PMIX_RANK=3",
    ];
    let of = |kept: &[&str]| environments(kept, std::slice::from_ref(&record));
    assert_eq!(of(&[]), [(always.map(str::to_owned).to_vec(), true)]);
    let with_mine = [&always[..4], &["MINE=x", "PMIX_RANK=3"]].concat();
    assert_eq!(of(&["MINE"])[0].0, with_mine);
    assert_eq!(
        environments(&[], &[env_record(9, 0, 0, b"")]),
        [(vec![], true)]
    );
}

#[test]
fn an_environment_in_pieces_is_put_together_or_left_out() {
    let filler = |size: usize| [b"A=".to_vec(), vec![b'x'; size - 3], vec![0]].concat();
    let first = filler(ENV_CHUNK - 4);
    let whole = [first, b"MALLOC_PERTURB_=1\0".to_vec()].concat();
    let (head, tail) = whole.split_at(ENV_CHUNK);
    let total = whole.len();
    let pieces = [
        env_record(9, 0, total, head),
        env_record(9, ENV_CHUNK, total, tail),
    ];
    let expected = [(vec!["MALLOC_PERTURB_=1".to_owned()], true)];
    assert_eq!(environments(&[], &pieces), expected);
    // The first was lost; or the rest of one, and another program began.
    assert_eq!(environments(&[], &pieces[1..]), []);
    let other = env_record(10, 0, 2, b"B\0");
    let mixed = [pieces[0].clone(), other, pieces[1].clone()];
    assert_eq!(environments(&[], &mixed), [(vec![], true)]);
}

#[test]
fn what_is_cut_of_an_environment_is_not_taken_for_a_value() {
    let most = ENV_CHUNK * ENV_CHUNKS;
    let mut bytes = vec![0; most];
    let cut = b"PYTHONMALLOC=mal";
    bytes[..7].copy_from_slice(b"MALLOC_");
    bytes[7..10].copy_from_slice(b"A=1");
    bytes[most - cut.len()..].copy_from_slice(cut);
    let pieces: Vec<_> = (0..)
        .zip(bytes.chunks(ENV_CHUNK))
        .map(|(n, piece)| env_record(9, n * ENV_CHUNK, most + 9, piece))
        .collect();
    let expected = [(vec!["MALLOC_A=1".to_owned()], false)];
    assert_eq!(environments(&[], &pieces), expected);
}
