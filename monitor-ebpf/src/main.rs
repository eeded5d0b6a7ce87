//! BPF programs of rtrace.
#[cfg(not(target_arch = "bpf"))]
fn main() {}
