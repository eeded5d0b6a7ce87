//! When a recording ends.

use std::time::Duration;

use tokio::time::Instant;

use super::running::End;

/// How long descendants that outlive the command are waited for: helpers leave within 80 ms.
pub(super) const LINGER: Duration = Duration::from_millis(300);

/// When a recording ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Until {
    /// After this time at the latest, whatever still runs.
    pub duration: Option<Duration>,
    /// What is waited for after the command's end.
    pub after: After,
}

/// What is waited for after the command's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum After {
    /// Descendants that leave within 300 ms; if there are none, nothing.
    #[default]
    Helpers,
    /// The end of the last descendant, at most for so long.
    All(Option<Duration>),
}

impl Until {
    /// Counted from now.
    pub(super) fn deadline(self) -> Option<Instant> {
        // One that is too far off for the clock never comes.
        Instant::now().checked_add(self.duration?)
    }
}

impl After {
    pub(super) fn waits_for_all(self) -> bool {
        matches!(self, Self::All(_))
    }

    /// Counted from now.
    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::All(Some(time)) => Instant::now().checked_add(time),
            Self::All(None) | Self::Helpers => None,
        }
    }
}

/// What ended a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The command has ended.
    Command(End),
    /// Time is up; what was recorded still runs.
    Time,
    /// Nobody is left of those that were named.
    Gone,
    /// Somebody wants it, and there is no command that the signal is for.
    Asked,
}

/// The first of two moments, of which each may never come.
pub(super) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_of_two_moments_counts_and_never_is_later_than_all() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        assert_eq!(earlier(Some(later), Some(now)), Some(now));
        assert_eq!(earlier(None, Some(later)), Some(later));
        assert_eq!(earlier(Some(now), None), Some(now));
        assert_eq!(earlier(None, None), None);
    }

    #[test]
    fn a_time_beyond_the_clock_never_comes() {
        let until = |duration| Until {
            duration: Some(duration),
            after: After::All(Some(duration)),
        };
        assert!(until(Duration::from_secs(1)).deadline().is_some());
        assert_eq!(until(Duration::MAX).deadline(), None);
        assert_eq!(until(Duration::MAX).after.deadline(), None);
        assert_eq!(After::Helpers.deadline(), None);
        assert!(!After::Helpers.waits_for_all() && After::All(None).waits_for_all());
    }
}
