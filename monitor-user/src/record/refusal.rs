//! Why the kernel side can't be put in place.

use std::io;

use aya::programs::ProgramError;
use thiserror::Error;

use crate::host::btf::BtfError;

/// Why the kernel side couldn't be put in place.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The kernel's types.
    #[error("this kernel doesn't tell its types (CONFIG_DEBUG_INFO_BTF)")]
    Btf(#[from] BtfError),
    /// Something that recording can't do without.
    #[error("this kernel can't be recorded: {0}")]
    Unsupported(String),
    /// Not allowed.
    #[error("loading BPF programs needs root: run `sudo rtrace record -- COMMAND`")]
    NotPermitted,
    /// The kernel keeps its memory from programs.
    #[error(
        "the kernel lets no program read its memory, as one that is locked down for confidentiality does -> boot \
         without lockdown=confidentiality"
    )]
    Confidential,
    /// The loader refused the object.
    #[error("cannot load the BPF programs: {0}")]
    Object(String),
    /// The kernel refused a program.
    #[error("cannot load the BPF program for {hook}: {reason}")]
    Program {
        /// The hook.
        hook: &'static str,
        /// What the loader said, with the verifier's last words.
        reason: String,
    },
}

pub(super) fn refused(hook: &'static str, error: &ProgramError) -> LoadError {
    not_permitted(error).unwrap_or_else(|| refusal(hook, chain(error)))
}

/// What a program was refused for. Where lockdown can't be seen, as in a container without
/// /sys/kernel/security, this is where it shows: the verifier knows no helper that reads.
fn refusal(hook: &'static str, reason: String) -> LoadError {
    let is_kept = |words: &str| reason.contains(&format!("{words} bpf_probe_read"));
    // Older kernels have the first words for it, newer ones the second.
    if is_kept("unknown func") || is_kept("cannot use helper") {
        return LoadError::Confidential;
    }
    LoadError::Program { hook, reason }
}

/// Whether the cause is that the caller isn't allowed to.
pub(super) fn not_permitted(error: &(dyn std::error::Error + 'static)) -> Option<LoadError> {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(io) = current.downcast_ref::<io::Error>()
            && io.raw_os_error() == Some(nix::libc::EPERM)
            && !nix::unistd::geteuid().is_root()
        {
            return Some(LoadError::NotPermitted);
        }
        cause = current.source();
    }
    None
}

/// An error with its causes. The verifier's log is long: its last lines tell why.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        text = format!("{text}: {current}");
        cause = current.source();
    }
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 24 {
        return text;
    }
    [&lines[..2], &["..."], &lines[lines.len() - 20..]]
        .concat()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_keeps_its_memory_is_told_from_other_refusals() {
        for (said, is_kept) in [
            ("unknown func bpf_probe_read#4", true),
            (
                "program of this type cannot use helper bpf_probe_read_kernel#113",
                true,
            ),
            ("43: (85) call bpf_probe_read#4\nR1 type=fp", false),
            ("unknown func bpf_ringbuf_reserve#131", false),
        ] {
            let error = refusal("rss_stat", format!("a\n{said}\nprocessed 35 insns"));
            assert_eq!(matches!(error, LoadError::Confidential), is_kept, "{said}");
        }
    }
}
