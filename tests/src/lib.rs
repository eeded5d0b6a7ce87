//! Shared by the tests against a real kernel: runs the finished `rtrace` binary on victim programs and
//! compares its report with what is known otherwise.
//!
//! * [`bpf`] asks the kernel what is loaded,
//! * [`disk`] is a file system that can be filled or broken,
//! * [`harness`] records a command in a fresh folder and reads the report,
//! * [`hosts`] are hosts that can't record, simulated,
//! * [`kernel_log`] is what the kernel wrote of those that it killed for memory,
//! * [`report`] is the JSON report as typed values,
//! * [`runner`] is the `main` of test programs whose list of tests is made at run time,
//! * [`story`] is the text report without what differs from run to run,
//! * [`truth`] reads what a random tree logged about itself and compares,
//! * [`witness`] is an independent record of the same run by `perf` or `strace`.
//!
//! The tests need root, BTF and the tools named in the errors; they fail rather than skip without.

pub mod bpf;
pub mod clock;
pub mod differences;
pub mod disk;
pub mod groups;
pub mod harness;
pub mod hosts;
pub mod kernel_log;
pub mod lone_surrogates;
pub mod report;
pub mod runner;
pub mod story;
pub mod truth;
pub mod victims;
pub mod witness;
