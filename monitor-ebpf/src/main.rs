//! BPF programs of rtrace. Off the BPF target this is an empty stub, so that one workspace builds both sides.
//!
//! One file per hook family. Each program does four things: filter, read, fill, submit. Only
//! [`emit`] reserves ring-buffer room, only [`filter`] decides who is traced, only [`kernel`] reads
//! kernel memory. There is no formatting and no policy here.
#![cfg_attr(target_arch = "bpf", no_std, no_main, feature(asm_experimental_arch))]
#![cfg_attr(
    target_arch = "bpf",
    expect(
        unsafe_code,
        reason = "BPF programs read kernel memory and raw map values"
    )
)]

#[cfg(target_arch = "bpf")]
mod address_space;
#[cfg(target_arch = "bpf")]
mod atomic;
#[cfg(target_arch = "bpf")]
mod birth;
#[cfg(target_arch = "bpf")]
mod call;
#[cfg(target_arch = "bpf")]
mod charge;
#[cfg(target_arch = "bpf")]
mod cpu_parts;
#[cfg(target_arch = "bpf")]
mod creation;
#[cfg(target_arch = "bpf")]
mod death;
#[cfg(target_arch = "bpf")]
mod emit;
#[cfg(target_arch = "bpf")]
mod environment;
#[cfg(target_arch = "bpf")]
mod exec;
#[cfg(target_arch = "bpf")]
mod fault;
#[cfg(target_arch = "bpf")]
mod filter;
#[cfg(target_arch = "bpf")]
mod group;
#[cfg(target_arch = "bpf")]
mod kernel;
#[cfg(target_arch = "bpf")]
mod look;
#[cfg(target_arch = "bpf")]
mod mapping;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod memory;
#[cfg(target_arch = "bpf")]
mod name;
#[cfg(target_arch = "bpf")]
mod oom;
#[cfg(target_arch = "bpf")]
mod pass;
#[cfg(target_arch = "bpf")]
mod peak;
#[cfg(target_arch = "bpf")]
mod preempt;
#[cfg(target_arch = "bpf")]
mod signal;
#[cfg(target_arch = "bpf")]
mod skip;
#[cfg(target_arch = "bpf")]
mod snapshot;
#[cfg(target_arch = "bpf")]
mod switch;
#[cfg(target_arch = "bpf")]
mod title;
#[cfg(target_arch = "bpf")]
mod tree;

#[cfg(not(target_arch = "bpf"))]
fn main() {}

/// Some helpers may be called by programs under a GPL-compatible licence only.
#[cfg(target_arch = "bpf")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // The verifier refuses a program that can get here.
    loop {}
}
