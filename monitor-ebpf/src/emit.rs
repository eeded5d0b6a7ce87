//! The only place that takes ring-buffer room and counts what found none.

use aya_ebpf::{
    helpers::generated::{bpf_get_smp_processor_id, bpf_ktime_get_boot_ns, bpf_ringbuf_output},
    maps::{PerCpuArray, ring_buf::RingBufEntry},
};
use monitor_ebpf::abi::{Header, Kind, Priority};

use crate::maps::{EVENTS, FULL, LOST};

const BPF_RB_NO_WAKEUP: u64 = 1;
const BPF_RB_FORCE_WAKEUP: u64 = 2;
const BPF_RB_AVAIL_DATA: u64 = 0;
/// What the ring buffer itself puts before each record.
const RECORD_HEADER: u64 = 8;

/// A field of the frozen settings.
macro_rules! setting {
    ($field:ident $([$n:literal])?) => {
        // SAFETY: a reference is valid; volatile, since user space rewrites it before loading.
        unsafe { core::ptr::read_volatile(&$crate::maps::config().$field$([$n])?) }
    };
}
pub(crate) use setting;

/// Whom a record is about.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) start_ns: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

impl Subject {
    pub(crate) const NONE: Self = Self {
        start_ns: 0,
        pid: 0,
        tid: 0,
    };
}

/// Now, ns since boot.
#[inline(always)]
pub(crate) fn now() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { bpf_ktime_get_boot_ns() }
}

/// The running CPU.
#[inline(always)]
pub(crate) fn cpu() -> u32 {
    // SAFETY: a helper without arguments.
    unsafe { bpf_get_smp_processor_id() }
}

/// Fills the header of a record.
#[inline(always)]
pub(crate) fn fill_header(
    header: *mut Header,
    kind: u16,
    len: u32,
    time_ns: u64,
    subject: Subject,
) {
    // SAFETY: the callers' records are theirs and begin with a header.
    unsafe {
        (*header).time_ns = time_ns;
        (*header).start_ns = subject.start_ns;
        (*header).pid = subject.pid;
        (*header).tid = subject.tid;
        (*header).kind = kind;
        (*header).cpu = cpu() as u16;
        (*header).len = len;
    }
}

/// Writes one record in place: `fill` sets everything behind the header. Whether there was room.
///
#[inline(always)]
pub(crate) fn emit<T: 'static>(
    kind: u16,
    time_ns: u64,
    subject: Subject,
    fill: impl FnOnce(*mut T),
) -> bool {
    let before = EVENTS.query(BPF_RB_AVAIL_DATA);
    if is_refused(kind, before) {
        count(&LOST, u32::from(kind));
        return false;
    }
    let Some(mut slot): Option<RingBufEntry<T>> = EVENTS.reserve(0) else {
        count(&LOST, u32::from(kind));
        return false;
    };
    let record = slot.as_mut_ptr();
    fill_header(record.cast(), kind, size_of::<T>() as u32, time_ns, subject);
    fill(record);
    slot.submit(wakeup(before, size_of::<T>() as u64));
    true
}

/// Whether what is left of the buffer is kept for records that matter more.
#[inline(always)]
fn is_refused(kind: u16, used: u64) -> bool {
    match Kind::priority(kind) {
        Priority::Memory => used > setting!(memory_limit_bytes),
        Priority::Detail => used > setting!(detail_limit_bytes),
        Priority::Lifecycle => false,
    }
}

/// Copies a record of `size` bytes out of a map value; whether there was room. A loss counts as one
/// of the kind `lost_as`: that of what is lost for good.
#[inline(always)]
pub(crate) fn output(lost_as: u16, record: *const u8, size: u32) -> bool {
    let before = EVENTS.query(BPF_RB_AVAIL_DATA);
    copy_out(lost_as, record, size, wakeup(before, u64::from(size)))
}

/// The same for pieces of something larger: they aren't worth a wakeup, nor the last of the buffer.
#[inline(always)]
pub(crate) fn output_piece(kind: u16, record: *const u8, size: u32) -> bool {
    if is_refused(kind, EVENTS.query(BPF_RB_AVAIL_DATA)) {
        count(&LOST, u32::from(kind));
        return false;
    }
    copy_out(kind, record, size, BPF_RB_NO_WAKEUP)
}

#[inline(always)]
fn copy_out(kind: u16, record: *const u8, size: u32, flags: u64) -> bool {
    // SAFETY: the verifier checks that `size` bytes can be read at `record`.
    let result = unsafe {
        bpf_ringbuf_output(
            (&raw const EVENTS).cast_mut().cast(),
            record.cast_mut().cast(),
            u64::from(size),
            flags,
        )
    };
    if result < 0 {
        count(&LOST, u32::from(kind));
    }
    result >= 0
}

/// Wakes the reader only when this record passes the fill mark: a wakeup costs ten times a record.
/// The reader also looks by itself on a timer, so a mark missed between two CPUs does no harm.
#[inline(always)]
fn wakeup(before: u64, size: u64) -> u64 {
    let mark = setting!(wake_bytes);
    if before < mark && before + size + RECORD_HEADER >= mark {
        BPF_RB_FORCE_WAKEUP
    } else {
        BPF_RB_NO_WAKEUP
    }
}

/// An entry of a table found no room: 0 processes, 1 address spaces.
#[inline(always)]
pub(crate) fn count_full(table: u32) {
    count(&FULL, table);
}

/// Adds one to a per-CPU counter.
#[inline(always)]
pub(crate) fn count(counters: &PerCpuArray<u64>, index: u32) {
    if let Some(counter) = counters.get_ptr_mut(index) {
        // SAFETY: a per-CPU value; no other CPU writes it.
        unsafe { *counter += 1 }
    }
}
