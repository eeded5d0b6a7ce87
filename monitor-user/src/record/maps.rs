//! What is put into the maps of the kernel side and read from them.

use std::collections::BTreeMap;

use aya::{
    maps::{Array, HashMap, MapData, PerCpuArray, RingBuf},
    programs::BtfTracePoint,
};
use aya_log::EbpfLogger;
use monitor_ebpf::abi::{ChargeState, Rescue, ThreadState, TrackedProcess, TreeSums};
use zerocopy::FromBytes;

use super::{
    load::{EXACTLY, Loaded, NO_MAP, StderrLog, is_later, later},
    refusal::{LoadError, chain},
    verify::Kept,
};

impl Loaded {
    /// The ring buffer; can be taken once.
    pub(super) fn take_ring(&mut self) -> Result<RingBuf<MapData>, LoadError> {
        let map = self
            .ebpf
            .take_map("EVENTS")
            .ok_or_else(|| LoadError::Object(NO_MAP.into()))?;
        RingBuf::try_from(map).map_err(|error| LoadError::Object(error.to_string()))
    }

    /// The maps to compare with `/proc`, for a thread of its own.
    pub(super) fn kept(&self) -> Result<Kept, LoadError> {
        Kept::new(&self.ebpf)
    }

    /// Enters the process that will execute the command.
    pub(super) fn track_root(&mut self, pid: u32) -> Result<(), LoadError> {
        let root = TrackedProcess {
            flags: TrackedProcess::PENDING,
            clone_flags: u64::MAX,
            ..TrackedProcess::default()
        };
        let bytes: [u8; size_of::<TrackedProcess>()] = zerocopy::transmute!(root);
        let map = self
            .ebpf
            .map_mut("PROCESSES")
            .ok_or_else(|| LoadError::Object(NO_MAP.into()))?;
        let mut map: HashMap<_, u32, [u8; size_of::<TrackedProcess>()]> = map
            .try_into()
            .map_err(|error: aya::maps::MapError| LoadError::Object(error.to_string()))?;
        map.insert(pid, bytes, 0)
            .map_err(|error| LoadError::Object(chain(&error)))
    }

    /// Has the kernel side read what the command's memory control group is charged, from its exec on.
    pub(super) fn read_charge(&mut self) -> Result<(), LoadError> {
        let state = ChargeState {
            wanted: 1,
            ..ChargeState::default()
        };
        let bytes: [u8; size_of::<ChargeState>()] = zerocopy::transmute!(state);
        let map = self
            .ebpf
            .map_mut("CHARGE")
            .ok_or_else(|| LoadError::Object(NO_MAP.into()))?;
        let mut map: Array<_, [u8; size_of::<ChargeState>()]> = map
            .try_into()
            .map_err(|error: aya::maps::MapError| LoadError::Object(error.to_string()))?;
        map.set(0, bytes, 0)
            .map_err(|error| LoadError::Object(chain(&error)))
    }

    /// Name of the program that looks who is there.
    pub(super) fn walk_program(&self) -> &'static str {
        if self.is_exact {
            "find_tasks_exactly"
        } else {
            "find_tasks"
        }
    }

    /// What it has seen of it.
    pub(super) fn charge(&self) -> Option<ChargeState> {
        let map = self.ebpf.map("CHARGE")?;
        let map = Array::<_, [u8; size_of::<ChargeState>()]>::try_from(map).ok()?;
        ChargeState::read_from_bytes(&map.get(&0, 0).ok()?).ok()
    }

    /// Whether the command's exec has been seen; `None` if its process ended before.
    pub(super) fn root_has_started(&self, pid: u32) -> Option<bool> {
        let tracked = self.tracked();
        let (_, root) = tracked.iter().find(|(known, _)| *known == pid)?;
        Some(root.flags & TrackedProcess::PENDING == 0)
    }

    /// Stops recording: no program runs after this.
    pub(super) fn detach(&mut self) {
        for (_, program) in self.ebpf.programs_mut() {
            let program: Result<&mut BtfTracePoint, _> = program.try_into();
            // What can't be unloaded, or never was loaded, goes when the recorder ends.
            let _kept = program.map(BtfTracePoint::unload);
        }
    }

    /// Whether the kernel lets maps be read with the privileges in effect.
    pub(super) fn can_read_maps(&self) -> bool {
        let map = self.ebpf.map("LOST").map(PerCpuArray::<_, u64>::try_from);
        matches!(map, Some(Ok(counters)) if counters.get(&0, 0).is_ok())
    }

    /// Processes that are traced now, the dead that haven't been freed included.
    pub(super) fn tracked(&self) -> Vec<(u32, TrackedProcess)> {
        let mut all = Vec::new();
        self.each_tracked(|pid, process| {
            all.push((pid, process));
            true
        });
        all
    }

    /// One of them.
    pub(super) fn tracked_process(&self, pid: u32) -> Option<TrackedProcess> {
        let map = self.ebpf.map("PROCESSES")?;
        let map = HashMap::<_, u32, [u8; size_of::<TrackedProcess>()]>::try_from(map).ok()?;
        TrackedProcess::read_from_bytes(&map.get(&pid, 0).ok()?).ok()
    }

    /// Whether something holds for any of them; looks no further than the first.
    pub(super) fn is_any(&self, holds: impl Fn(&TrackedProcess) -> bool) -> bool {
        let mut is_found = false;
        self.each_tracked(|_, process| {
            is_found = holds(&process);
            !is_found
        });
        is_found
    }

    /// Shows one after the other, as long as `take` wants more.
    fn each_tracked(&self, mut take: impl FnMut(u32, TrackedProcess) -> bool) {
        let Some(map) = self.ebpf.map("PROCESSES") else {
            return;
        };
        let Ok(map) = HashMap::<_, u32, [u8; size_of::<TrackedProcess>()]>::try_from(map) else {
            return;
        };
        // An entry that goes away meanwhile is no error: it isn't there any more.
        for (pid, bytes) in map.iter().filter_map(Result::ok) {
            let wants_more =
                TrackedProcess::read_from_bytes(&bytes).is_ok_and(|process| take(pid, process));
            if !wants_more {
                return;
            }
        }
    }

    /// Threads of traced processes that wait now, by thread.
    pub(super) fn waiting(&self) -> Vec<(u32, ThreadState)> {
        let Some(map) = self.ebpf.map("THREADS") else {
            return Vec::new();
        };
        let Ok(map) = HashMap::<_, u32, [u8; size_of::<ThreadState>()]>::try_from(map) else {
            return Vec::new();
        };
        map.iter()
            .filter_map(Result::ok)
            .filter_map(|(tid, bytes)| Some((tid, ThreadState::read_from_bytes(&bytes).ok()?)))
            .filter(|(_, thread)| thread.since_ns != 0)
            .collect()
    }

    /// Sums over all address spaces; `None` where counters can't be read exactly.
    pub(super) fn tree_sums(&self) -> Option<TreeSums> {
        if self.rss_bound.bytes > 0 {
            return None;
        }
        let map = self.ebpf.map("TREE")?;
        let map = Array::<_, [u8; size_of::<TreeSums>()]>::try_from(map).ok()?;
        TreeSums::read_from_bytes(&map.get(&0, 0).ok()?).ok()
    }

    /// A per-CPU counter array: by index, then by CPU.
    pub(super) fn counters(&self, map: &str) -> Vec<Vec<u64>> {
        let Some(Ok(counters)) = self.ebpf.map(map).map(PerCpuArray::<_, u64>::try_from) else {
            return Vec::new();
        };
        (0..counters.len())
            .map(|index| {
                counters
                    .get(&index, 0)
                    .map_or_else(|_| Vec::new(), |values| values.to_vec())
            })
            .collect()
    }

    /// Runs that the kernel skipped since the program was running on that CPU already, by program;
    /// kernels before 5.12 don't tell.
    ///
    /// Where a hook has more programs, an event is missing only if all were skipped: it is in the count of
    /// each, and wasn't reported by a later one.
    pub(super) fn recursion_misses(&self) -> BTreeMap<String, u64> {
        let told = self.told("recursion_misses:");
        let rescued = self.counters("RESCUED");
        let rescued = |hook: &str| {
            let n = Rescue::HOOKS.iter().position(|known| *known == hook);
            n.and_then(|n| rescued.get(n))
                .map_or(0, |counts| counts.iter().sum())
        };
        let firsts = told.iter().filter(|(program, _)| !is_later(program));
        firsts
            .map(|(program, skipped)| {
                let left = skipped.saturating_sub(rescued(program));
                let later = later(program);
                let later = later.iter().filter_map(|program| told.get(program));
                let hook = program.strip_suffix(EXACTLY).unwrap_or(program);
                (hook.to_owned(), later.fold(left, |least, n| least.min(*n)))
            })
            .collect()
    }

    /// Instructions that the verifier looked at, by program; kernels before 5.16 don't tell.
    pub(super) fn verified_instructions(&self) -> BTreeMap<String, u64> {
        self.told("verified_insns:")
    }

    /// A number of each program, from its descriptor's `/proc` entry, which needs no privilege.
    fn told(&self, field: &str) -> BTreeMap<String, u64> {
        use std::os::fd::{AsFd, AsRawFd};
        let number = |fd: i32| {
            let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
            text.lines()
                .find_map(|line| line.strip_prefix(field))?
                .trim()
                .parse()
                .ok()
        };
        self.ebpf
            .programs()
            .filter_map(|(name, program)| {
                let fd = program.fd().ok()?.as_fd().as_raw_fd();
                Some((name.to_owned(), number(fd)?))
            })
            .collect()
    }

    /// Begins to read the programs' own messages, for stderr.
    pub(super) fn start_log(&mut self) -> Result<EbpfLogger<StderrLog>, LoadError> {
        EbpfLogger::init_with_logger(&mut self.ebpf, StderrLog)
            .map_err(|error| LoadError::Object(chain(&error)))
    }
}
