//! Threads that wait.

/// The subject, a thread, waited for long: off the CPU, and not for want of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sleep {
    /// When it left the CPU, ns since boot.
    pub since_ns: u64,
    /// How it waited.
    pub state: WaitState,
    /// Name of the system call that it waited in; `None`: in none, or not known.
    pub call: Option<String>,
    /// It still does so: the recorder looked at the end of the recording. Else it ran again then.
    pub still: bool,
}

/// How a thread waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitState {
    /// For something to happen; a signal wakes it.
    #[default]
    Sleeping,
    /// For something to happen, whatever else does: mostly storage.
    Uninterruptible,
    /// A signal has stopped it.
    Stopped,
    /// A debugger has stopped it.
    Traced,
}

impl WaitState {
    const ALL: [Self; 4] = [
        Self::Sleeping,
        Self::Uninterruptible,
        Self::Stopped,
        Self::Traced,
    ];

    /// Its word in traces and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleeping => "sleeping",
            Self::Uninterruptible => "uninterruptible",
            Self::Stopped => "stopped",
            Self::Traced => "traced",
        }
    }

    /// The one of this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}
