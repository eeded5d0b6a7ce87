//! Independent records of a run, by programs that share nothing with rtrace.

mod compare;
pub mod perf;
pub mod strace;

pub use compare::compare;

use std::{collections::BTreeMap, process::Command};

use anyhow::ensure;

use crate::lone_surrogates::Text;

/// What the other program saw of one process.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Process that created it, if the witness saw that.
    pub creator: Option<u32>,
    /// Execs that worked.
    pub execs: Vec<SeenExec>,
    /// Exit code.
    pub code: Option<u32>,
    /// Deadly signal.
    pub signal: Option<u32>,
    /// Whether it ended while the witness looked.
    pub ended: bool,
    /// Threads besides the first.
    pub threads: u32,
}

/// An exec as the other program saw it.
#[derive(Clone, Debug)]
pub struct SeenExec {
    /// Path given to exec.
    pub filename: Text,
    /// Arguments, if the witness sees them.
    pub argv: Option<Vec<Text>>,
}

/// Processes by pid.
pub type Tree = BTreeMap<u32, Seen>;

/// Checks that a program is installed.
///
/// # Errors
/// It can't be run; the error names its Debian package.
pub fn installed(program: &str, package: &str) -> anyhow::Result<()> {
    let runs = Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    ensure!(
        runs,
        "{program} is needed as an independent record: apt-get install {package}"
    );
    Ok(())
}

/// Only `root` and what descends from it.
pub fn below(tree: &Tree, root: u32) -> Tree {
    let is_below = |pid: &u32| {
        let mut at = Some(*pid);
        // Bounded by the number of processes, so that a loop in a broken record ends.
        for _ in 0..=tree.len() {
            match at {
                Some(pid) if pid == root => return true,
                Some(pid) => at = tree.get(&pid).and_then(|seen| seen.creator),
                None => return false,
            }
        }
        false
    };
    tree.iter()
        .filter(|(pid, _)| is_below(pid))
        .map(|(pid, seen)| (*pid, seen.clone()))
        .collect()
}
