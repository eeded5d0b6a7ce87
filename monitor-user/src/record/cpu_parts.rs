//! Finds where CPUs keep their parts of counters, before recording begins.

use std::fs;

use aya::{
    Btf, Ebpf,
    maps::Array,
    programs::{BtfTracePoint, ProgramError},
};
use monitor_ebpf::abi::MOST_CPUS;
use nix::unistd::gettid;

/// The program that finds the offsets, and the hook that it waits at.
const PROGRAM: &str = "cpu_offsets";
const HOOK: &str = "task_rename";

/// Thread whose renaming the program waits for.
pub(super) fn own_thread() -> u32 {
    gettid().as_raw().unsigned_abs()
}

/// An offset for each CPU.
type Offsets = [u64; MOST_CPUS as usize];

/// Whether the kernel side knows the offset of each of so many CPUs now.
///
/// # Errors
/// The kernel refuses the program.
pub(super) fn find(ebpf: &mut Ebpf, types: &Btf, cpus: u32) -> Result<bool, ProgramError> {
    let Some(program) = ebpf.program_mut(PROGRAM) else {
        return Ok(false);
    };
    let program: &mut BtfTracePoint = program.try_into()?;
    program.load(HOOK, types)?;
    program.attach()?;
    let has_run = rename_as_before().is_ok();
    program.unload()?;
    let offsets = ebpf.map("CPU_OFFSETS").map(Array::<_, Offsets>::try_from);
    let Some(Ok(offsets)) = offsets else {
        return Ok(false);
    };
    let Ok(offsets) = offsets.get(&0, 0) else {
        return Ok(false);
    };
    // A CPU without an offset would have its parts left out of every sum.
    let known = offsets.iter().take_while(|offset| **offset != 0);
    Ok(has_run && known.count() >= cpus as usize)
}

/// Gives this thread the name that it has: the kernel shows that like any other renaming.
fn rename_as_before() -> std::io::Result<()> {
    let path = format!("/proc/self/task/{}/comm", own_thread());
    let name = fs::read_to_string(&path)?;
    fs::write(&path, name.trim_end_matches('\n'))
}
