//! Calls of kernel functions (kfuncs). Where they are is known only when the kernel is: the object
//! has a mark for each, and user space replaces it before loading.

/// Call of a kernel function: opcode and source register (`BPF_PSEUDO_KFUNC_CALL`), as the low bytes of
/// an instruction. Its upper half is the function's number in the kernel's BTF.
pub const KERNEL_CALL: u64 = 0x2085;

/// Stands for a call of `bpf_preempt_disable` (since 6.10).
pub const PREEMPT_DISABLE: u64 = 0x7fff_ff01 << 32 | KERNEL_CALL;

/// Stands for a call of `bpf_preempt_enable`.
pub const PREEMPT_ENABLE: u64 = 0x7fff_ff02 << 32 | KERNEL_CALL;

/// An instruction that does nothing: a jump to the next one.
pub const NOTHING: u64 = 0x05;
