//! The BPF object, made to fit the running kernel.

use aya::include_bytes_aligned;
use monitor_ebpf::abi::{KERNEL_CALL, NOTHING, PREEMPT_DISABLE, PREEMPT_ENABLE};

use super::hooks::preempts_programs;
use crate::host::btf::Btf;

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/rtrace-bpf"));

/// The object as this kernel is to get it.
///
/// The loader knows nothing of calls of kernel functions, so their marks are replaced in the bytes:
/// by calls where programs can be preempted and may forbid it, else by nothing.
pub(super) fn object(btf: &Btf) -> Vec<u8> {
    let functions = preempts_programs(btf)
        .then(|| {
            Some([
                btf.function("bpf_preempt_disable")?,
                btf.function("bpf_preempt_enable")?,
            ])
        })
        .flatten();
    let mut object = OBJECT.to_vec();
    for (n, mark) in [PREEMPT_DISABLE, PREEMPT_ENABLE].into_iter().enumerate() {
        let instruction =
            functions.map_or(NOTHING, |numbers| u64::from(numbers[n]) << 32 | KERNEL_CALL);
        replace(&mut object, mark, instruction);
    }
    object
}

/// Instructions have eight bytes and stand at multiples of eight, as the sections they are in do.
fn replace(object: &mut [u8], mark: u64, instruction: u64) {
    let (places, _rest) = object.as_chunks_mut::<8>();
    for place in places {
        if *place == mark.to_le_bytes() {
            *place = instruction.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use monitor_ebpf::abi::Rescue;

    use super::*;
    use crate::host::btf::fixtures::{KERNELS, kernel};
    use crate::record::HOOKS;

    /// One for each hook but that of the scheduler, which can't be preempted; later ones, two for counters with
    /// parts, that which finds the parts, two that look who is there, one for environments, and
    /// two for control groups: of moves, and of threads that come.
    const PROGRAMS: usize = HOOKS.len() - 1 + 2 * Rescue::HOOKS.len() + 1 + 2 + 1 + 2 + 1 + 2;

    fn count(object: &[u8], instruction: u64) -> usize {
        let places = object.as_chunks::<8>().0;
        places
            .iter()
            .filter(|place| **place == instruction.to_le_bytes())
            .count()
    }

    #[test]
    fn each_program_forbids_preemption_once_and_allows_it_once() {
        let marks = [PREEMPT_DISABLE, PREEMPT_ENABLE].map(|mark| count(OBJECT, mark));
        assert_eq!(marks, [PROGRAMS, PROGRAMS]);
    }

    #[test]
    fn no_mark_is_left_and_only_kernels_that_preempt_get_calls() {
        for (version, _) in KERNELS {
            let btf = kernel(version);
            let object = object(&btf);
            for mark in [PREEMPT_DISABLE, PREEMPT_ENABLE] {
                assert_eq!(count(&object, mark), 0, "{version}");
            }
            for name in ["bpf_preempt_disable", "bpf_preempt_enable"] {
                let number = btf.function(name);
                let is_called = number
                    .is_some_and(|n| count(&object, u64::from(n) << 32 | KERNEL_CALL) == PROGRAMS);
                assert_eq!(is_called, version == "7.2", "{version}: {name}");
            }
        }
    }
}
