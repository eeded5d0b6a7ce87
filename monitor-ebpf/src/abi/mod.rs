//! Layouts shared by kernel and user space.
//!
//! Rules: `repr(C)`, fixed-width integers and byte arrays only, no hidden padding, sizes and
//! offsets asserted at compile time. Every record starts with a [`Header`].

mod call;
mod calls;
mod charge;
mod config;
mod environment;
mod header;
mod memory;
mod oom;
mod places;
mod process;
mod refusal;
mod signal;
mod sleep;
mod snapshot;
mod space;
mod title;
mod tracked;

pub use call::{CallRecord, PathRecord};
pub use calls::{KERNEL_CALL, NOTHING, PREEMPT_DISABLE, PREEMPT_ENABLE};
pub use charge::ChargeState;
pub use config::{Config, Layout, MOST_CPUS, Offset, PARTS, absent};
pub use environment::{ENV_CHUNK, ENV_CHUNKS, EnvRecord};
pub use header::{Header, Kind, Priority, Rescue};
pub use memory::{Churn, Memory, MemoryRecord, MmEndRecord, Parts, Resolution, TreeSums};
pub use oom::{CGROUP_NAME, OomRecord, OomScope};
pub use places::{
    ANY_HIERARCHY, GROUP_PATH, GroupPlaces, OomPlaces, OrphanPlaces, PathPlaces, RefusalPlaces,
    UsagePlaces, WatchPlaces,
};
pub use process::{
    ARGS_CHUNK, ARGS_CHUNKS, ArgsRecord, COMM_LEN, Cwd, EXEC_DATA, ExecRecord, ExitRecord,
    FILENAME_MAX, ForkRecord, ReapedRecord, RenameRecord, ThreadRecord, Usage,
};
pub use refusal::ForkFailedRecord;
pub use signal::{SignalInfo, SignalRecord};
pub use sleep::{SleepRecord, TaskState, ThreadState};
pub use snapshot::SnapshotRecord;
pub use space::AddressSpace;
pub use title::{TITLE_MAX, TitleRecord};
pub use tracked::TrackedProcess;

/// Raised whenever a layout in this module changes; written into every trace.
pub const ABI_VERSION: u32 = 8;

/// Asserts size and field offsets of a record at compile time.
///
/// The sum of the field sizes must equal the size of the struct, so hidden padding is an error.
macro_rules! assert_layout {
    ($ty:ty, $size:expr, { $($field:ident: $offset:expr),+ $(,)? }) => {
        const _: () = {
            assert!(core::mem::size_of::<$ty>() == $size);
            assert!(core::mem::align_of::<$ty>() == 8);
            $(assert!(core::mem::offset_of!($ty, $field) == $offset);)+
        };
    };
}
pub(crate) use assert_layout;
