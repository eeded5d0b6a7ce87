//! Recording: loads the kernel side, starts the command, hands decoded events to sinks.

mod attach;
mod charge;
mod collect;
mod config;
mod cpu_parts;
mod directory;
mod fork_limits;
mod group;
mod hooks;
mod janitor;
mod launch;
mod load;
mod losses;
mod maps;
mod object;
mod options;
mod places;
mod prepare;
mod privileges;
mod redact;
mod refusal;
mod ring;
mod running;
mod signals;
mod sink;
mod sorter;
mod survivors;
mod until;
mod verify;

pub use attach::{Attach, Named};
pub use collect::{Outcome, record};
pub use hooks::{HOOKS, Hook, Support, support};
pub use launch::{Command, LaunchError};
pub use load::{BTF, Passes, Resolution, try_load};
pub use options::Options;
pub use refusal::LoadError;
pub use running::Running;
pub use sink::Sink;
pub use until::{After, Until};

use thiserror::Error;

/// Why nothing could be recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The kernel side couldn't be put in place.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The command couldn't be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The control group that was named can't be used.
    #[error("cannot use the control group {}: {why}", path.display())]
    Group {
        /// Its folder.
        path: std::path::PathBuf,
        /// Why not.
        why: String,
    },
    /// The container that was named can't be recorded.
    #[error("cannot record container {name}: {why}")]
    Container {
        /// As it was named.
        name: String,
        /// Why not.
        why: String,
    },
    /// A process that was named can't be recorded.
    #[error("cannot record process {pid}: {why}")]
    Process {
        /// Its pid.
        pid: u32,
        /// Why not.
        why: String,
    },
    /// Not allowed.
    #[error("only root may record all processes of the host")]
    WholeHost,
    /// Something on the way failed.
    #[error("{what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl RecordError {
    fn system(what: &'static str, source: impl Into<std::io::Error>) -> Self {
        Self::System {
            what,
            source: source.into(),
        }
    }
}
