//! Counters of resident memory, of which CPUs keep parts to themselves (since 6.2).

use aya_ebpf::helpers::generated::bpf_probe_read_kernel;
use monitor_ebpf::abi::{MOST_CPUS, absent};

use super::{Mm, frozen, word_at};
use crate::{
    emit::{count, cpu, now, setting},
    maps::{CPU_OFFSETS, UNSETTLED, layout},
    skip::FEW_CPUS,
};

impl Mm {
    /// One RSS counter, pages: its shared value and, since 6.2, what each CPU keeps to itself. Before 6.2 threads keep
    /// parts, which are left out.
    #[inline(always)]
    pub(crate) fn counter(self, member: u32) -> i64 {
        if absent(at!(mm_rss_parts)) {
            return self.shared_counter(member);
        }
        let first = self.reading::<false, 1>(member);
        let reading = if first.is_settled {
            first
        } else {
            self.reading::<false, 1>(member)
        };
        if !reading.is_settled {
            count(&UNSETTLED, 0);
        }
        reading.value
    }

    /// One RSS counter without what CPUs or threads keep to themselves, pages.
    #[inline(always)]
    fn shared_counter(self, member: u32) -> i64 {
        let place = at!(mm_rss_stride) * (member & 3);
        let mut value = 0_i64;
        // SAFETY: a fault leaves zero. Not a direct load: before 6.2 the verifier refuses to look into `struct
        // mm_rss_stat`.
        unsafe {
            bpf_probe_read_kernel(
                (&raw mut value).cast(),
                8,
                self.0.add((at!(mm_rss_stat) + place) as usize).cast(),
            );
        }
        value
    }

    /// One RSS counter with the parts of all CPUs (since 6.2).
    ///
    /// That is the kernel's own way to an exact value (`percpu_counter_sum`), without its lock. A CPU whose part has
    /// come to a batch adds it to `count` and then clears it, holding the lock (`percpu_counter_add_batch` in
    /// `lib/percpu_counter.c`): what is read meanwhile lacks that part or has it twice. If the lock was free after
    /// `count` was read, all that `count` had was cleared; if `count` is the same at the end, nothing that was read has
    /// been added to it since. In this order: free before `count` is read, it could be taken and given back in between.
    ///
    /// `IS_TYPED`: the verifier knows this as an `mm_struct`, so that it can be read at a third of the cost.
    /// `WAITS`: how often to look whether the lock is free.
    #[inline(always)]
    pub(crate) fn reading<const IS_TYPED: bool, const WAITS: u32>(self, member: u32) -> Reading {
        let member = if IS_TYPED { fixed(member) } else { member & 3 };
        let place = at!(mm_rss_stride) * member;
        let (mut count, mut is_free) = (0, false);
        for _ in 0..WAITS {
            count = self.word::<IS_TYPED>(at!(mm_rss_stat) + place);
            is_free = self.half_word::<IS_TYPED>(at!(mm_rss_lock) + place) == 0;
            if is_free {
                break;
            }
            // Only for the time that this takes: more turns would cost the verifier more.
            let _now = now();
        }
        let at_parts = at!(mm_rss_parts) + place;
        let sum = if setting!(cpus) <= FEW_CPUS {
            sum::<FEW_CPUS>(self.word::<IS_TYPED>(at_parts))
        } else {
            // As a plain number: the verifier doesn't let a pointer that it knows be handed over.
            sum_of_parts(word_at(self.address(), at_parts))
        };
        let value = count as i64 + sum;
        let is_settled = is_free && self.word::<IS_TYPED>(at!(mm_rss_stat) + place) == count;
        Reading {
            value,
            count: count as i64,
            is_settled,
        }
    }

    /// The shared `count` of one RSS counter and the part of the running CPU (since 6.2), pages.
    #[inline(always)]
    pub(crate) fn own_part(self, member: u32) -> Option<(i64, i64)> {
        let place = at!(mm_rss_stride) * fixed(member);
        let parts = self.word::<true>(at!(mm_rss_parts) + place);
        let (offsets, cpu) = (CPU_OFFSETS.get_ptr(0)?, cpu());
        if cpu >= MOST_CPUS {
            return None;
        }
        // SAFETY: a map value, within its bounds.
        let offset = unsafe { *offsets.cast::<u64>().add(cpu as usize) };
        let part = part_at(parts.wrapping_add(offset));
        // Behind the part: what of it has been added to `count` is seen there.
        let count = self.word::<true>(at!(mm_rss_stat) + place);
        Some((count as i64, i64::from(part)))
    }

    /// Four bytes, as [`Self::word`].
    #[inline(always)]
    fn half_word<const IS_TYPED: bool>(self, place: u32) -> u32 {
        if !IS_TYPED {
            return word_at(self.address(), place) as u32;
        }
        // SAFETY: as in `word`.
        unsafe { core::ptr::read_volatile(self.0.add(place as usize).cast::<u32>()) }
    }

    /// A word at a place, which the verifier has to know as a number if it `IS_TYPED`.
    #[inline(always)]
    fn word<const IS_TYPED: bool>(self, place: u32) -> u64 {
        if !IS_TYPED {
            return word_at(self.address(), place);
        }
        // SAFETY: the verifier checks it and makes the load safe against faults.
        unsafe { core::ptr::read_volatile(self.0.add(place as usize).cast::<u64>()) }
    }

    #[inline(always)]
    pub(super) fn counters(self) -> [i64; 4] {
        [0, 1, 2, 3].map(|member| self.counter(member))
    }
}

/// An RSS counter with the parts of all CPUs.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    /// Pages.
    pub(crate) value: i64,
    /// The shared part of it.
    pub(crate) count: i64,
    /// No CPU has added its part to the shared `count` meanwhile.
    pub(crate) is_settled: bool,
}

/// What all CPUs keep to themselves of a counter, pages; `parts` stands for the places of all of them.
///
/// A function of its own, with a name that the linker keeps and a plain number as argument: such a one the verifier
/// follows once for each program, not at each call, so that the number of CPUs hardly matters to it.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn sum_of_parts(parts: u64) -> i64 {
    sum::<MOST_CPUS>(parts)
}

/// The same on the spot, of so many CPUs at most.
#[inline(always)]
fn sum<const MOST: u32>(parts: u64) -> i64 {
    let Some(offsets) = CPU_OFFSETS.get_ptr(0) else {
        return 0;
    };
    let mut sum = 0;
    for cpu in 0..MOST {
        if cpu >= setting!(cpus) {
            break;
        }
        // SAFETY: a map value that has more than these.
        let offset = unsafe { *offsets.cast::<u64>().add(cpu as usize) };
        sum += i64::from(part_at(parts.wrapping_add(offset)));
    }
    sum
}

/// What a CPU keeps to itself of a counter, pages.
#[inline(always)]
fn part_at(address: u64) -> i32 {
    let mut part = 0_i32;
    // SAFETY: an address of the kernel's own making, a fault leaves zero.
    unsafe {
        bpf_probe_read_kernel((&raw mut part).cast(), 4, address as *const _);
    }
    part
}

/// A member as a number that the verifier knows, each on a way of its own: it wants to know where it looks.
#[inline(always)]
fn fixed(member: u32) -> u32 {
    match member & 3 {
        0 => constant::<0>(),
        1 => constant::<1>(),
        2 => constant::<2>(),
        _ => constant::<3>(),
    }
}

/// In assembly: LLVM makes one way of four that differ by a number only.
#[inline(always)]
fn constant<const N: u32>() -> u32 {
    let value: u64;
    // SAFETY: it touches nothing else.
    unsafe {
        core::arch::asm!("{value} = {n}", value = out(reg) value, n = const N, options(nostack));
    }
    value as u32
}
