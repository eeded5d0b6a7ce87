//! What the kernel side holds of processes and their memory, read from its maps.

use std::os::fd::AsFd;

use aya::{
    Ebpf,
    maps::{HashMap, Map, MapData},
};
use monitor_ebpf::abi::{AddressSpace, TrackedProcess};
use zerocopy::FromBytes;

use crate::record::refusal::LoadError;

type Processes = HashMap<MapData, u32, [u8; size_of::<TrackedProcess>()]>;
type Spaces = HashMap<MapData, u64, [u8; size_of::<AddressSpace>()]>;

/// Descriptors of its own, for a thread of its own.
pub(in crate::record) struct Kept {
    processes: Processes,
    spaces: Spaces,
}

/// Most entries looked at in a round: a list that changes while it is read may begin again.
const MOST_PROCESSES: usize = 1 << 17;

impl Kept {
    /// Needs the rights that loading needs: the loader asks the kernel what the maps are.
    pub(in crate::record) fn new(ebpf: &Ebpf) -> Result<Self, LoadError> {
        let failed = |error: aya::maps::MapError| LoadError::Object(error.to_string());
        Ok(Self {
            processes: copy(ebpf, "PROCESSES")?.try_into().map_err(failed)?,
            spaces: copy(ebpf, "ADDRESS_SPACES")?.try_into().map_err(failed)?,
        })
    }

    /// Processes that run the command or what came from it, by pid.
    pub(super) fn running(&self) -> Vec<(u32, TrackedProcess)> {
        let pids = self.processes.keys().take(MOST_PROCESSES);
        let mut pids: Vec<u32> = pids.filter_map(Result::ok).collect();
        pids.sort_unstable();
        pids.dedup();
        let entry = |pid| Some((pid, self.process(pid)?));
        pids.into_iter().filter_map(entry).collect()
    }

    /// A process, unless it has ended or hasn't executed the command.
    pub(super) fn process(&self, pid: u32) -> Option<TrackedProcess> {
        let bytes = self.processes.get(&pid, 0).ok()?;
        let process = TrackedProcess::read_from_bytes(&bytes).ok()?;
        let isnt_shown = TrackedProcess::PENDING | TrackedProcess::DEAD;
        (process.flags & isnt_shown == 0 && process.mm_address != 0).then_some(process)
    }

    /// A process's address space, unless it is being torn down.
    pub(super) fn space(&self, process: &TrackedProcess) -> Option<AddressSpace> {
        let bytes = self.spaces.get(&process.mm_address, 0).ok()?;
        let space = AddressSpace::read_from_bytes(&bytes).ok()?;
        (space.id == process.mm && space.flags & AddressSpace::ENDING == 0).then_some(space)
    }
}

fn copy(ebpf: &Ebpf, name: &str) -> Result<Map, LoadError> {
    let Some(Map::HashMap(map)) = ebpf.map(name) else {
        return Err(LoadError::Object(format!("the object has no map {name}")));
    };
    let failed = |error: String| LoadError::Object(format!("cannot read the map {name}: {error}"));
    let copy = map.fd().as_fd().try_clone_to_owned();
    let copy = copy.map_err(|error| failed(error.to_string()))?;
    let copy = MapData::from_fd(copy).map_err(|error| failed(error.to_string()))?;
    Ok(Map::HashMap(copy))
}
