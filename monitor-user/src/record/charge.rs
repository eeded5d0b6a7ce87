//! The command's memory control group: chosen or made before the command runs, read while it does, removed at the end.

use std::{
    os::fd::OwnedFd,
    path::Path,
    time::{Duration, Instant},
};

use monitor_ebpf::abi::ChargeState;
use nix::{
    fcntl::{OFlag, open},
    sys::stat::Mode,
};

use super::{RecordError, janitor::Janitor};
use crate::{
    event::{Charge, ChargeScope},
    host::memory_group::{Choice, Group, Meter},
};

/// Least time between two looks at what a charge consists of: one costs some ten microseconds, and a charge may grow
/// all the time.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// What is watched of a group, and the group's end.
#[derive(Debug)]
pub(super) struct Watch {
    /// What is known so far.
    charge: Charge,
    /// `None`: the group can't be read.
    meter: Option<Meter>,
    /// The kernel's own peak when the recording began, bytes.
    peak_before: Option<u64>,
    /// The highest charge at an event, pages, for which there was a look.
    looked_at: u64,
    last_look: Option<Instant>,
    /// Removes the group when the watch ends; only one that was made.
    _janitor: Option<Janitor>,
}

/// A group that a recording is to use, found before anything is started.
#[derive(Debug)]
pub(super) enum Plan {
    /// The charge isn't wanted.
    Off,
    /// One of the command's own, if it can be made inside of this one. Else why this one isn't known.
    Inside(Result<Group, String>),
    /// This one.
    Given(Group),
}

impl Plan {
    /// Finds the group.
    ///
    /// # Errors
    /// If a group was named that can't be used.
    pub(super) fn new(choice: &Choice) -> Result<Self, RecordError> {
        let present = || Group::present(Path::new("/"), std::process::id());
        match choice {
            Choice::Off => Ok(Self::Off),
            Choice::Auto => Ok(Self::Inside(present())),
            Choice::Path(path) => present()
                .and_then(|present| Group::named(path, &present))
                .map(Self::Given)
                .map_err(|why| RecordError::Group {
                    path: path.clone(),
                    why,
                }),
        }
    }

    /// Puts the process that will become the command into the group. There must be one thread.
    ///
    /// # Errors
    /// If the process can't be put into a group that was named.
    pub(super) fn begin(self, pid: u32) -> Result<Option<Watch>, RecordError> {
        match self {
            Self::Off => Ok(None),
            Self::Given(group) => {
                group.join(pid).map_err(|error| RecordError::Group {
                    path: group.folder.clone(),
                    why: error.to_string(),
                })?;
                let charged = group.charged().unwrap_or(group);
                Ok(Some(Watch::of(&charged, ChargeScope::Given, None, None)))
            }
            Self::Inside(Err(why)) => Ok(Some(Watch::nothing(why))),
            Self::Inside(Ok(present)) => {
                present.remove_stale();
                Ok(Some(match own(&present, pid) {
                    Ok((group, janitor)) => {
                        Watch::of(&group, ChargeScope::Own, None, Some(janitor))
                    }
                    Err(why) => match present.charged() {
                        Some(charged) => Watch::of(&charged, ChargeScope::Shared, Some(why), None),
                        None => Watch::nothing(why),
                    },
                }))
            }
        }
    }
}

/// A group of the command's own with the process in it, and who removes it.
fn own(present: &Group, pid: u32) -> Result<(Group, Janitor), String> {
    let group = present.make_child()?;
    let start = || -> std::io::Result<Janitor> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_RDONLY;
        let above: OwnedFd = open(&present.folder, flags, Mode::empty())?;
        let name = group.folder.file_name().unwrap_or_default();
        let janitor = Janitor::start(&above, name)?;
        group.join(pid)?;
        Ok(janitor)
    };
    match start() {
        Ok(janitor) => Ok((group, janitor)),
        Err(error) => {
            group.remove();
            Err(format!(
                "the command can't be put into a group of its own: {error}"
            ))
        }
    }
}

impl Watch {
    fn of(
        group: &Group,
        scope: ChargeScope,
        why_shared: Option<String>,
        janitor: Option<Janitor>,
    ) -> Self {
        let meter = Meter::open(group).ok();
        Self {
            charge: Charge {
                group: group.name.clone(),
                version: group.version.number(),
                scope,
                why_shared,
                ..Charge::default()
            },
            peak_before: meter.as_ref().and_then(Meter::peak),
            meter,
            looked_at: 0,
            last_look: None,
            _janitor: janitor,
        }
    }

    /// Where nothing is charged, or where isn't known.
    fn nothing(why: String) -> Self {
        Self {
            charge: Charge {
                why_shared: Some(why),
                ..Charge::default()
            },
            meter: None,
            peak_before: None,
            looked_at: 0,
            last_look: None,
            _janitor: None,
        }
    }

    /// Whether there is a charge that the kernel side can read.
    pub(super) fn is_charged(&self) -> bool {
        self.meter.is_some()
    }

    /// What is known so far.
    pub(super) fn charge(&self) -> Charge {
        self.charge.clone()
    }

    /// Takes what the kernel side has seen; looks at what the charge consists of if there was a new peak.
    pub(super) fn look(&mut self, state: &ChargeState, page_size: u64) {
        if state.counter == 0 {
            return;
        }
        let bytes = |pages: u64| Some(pages.saturating_mul(page_size));
        self.charge.start = bytes(state.start);
        self.charge.seen_peak = bytes(state.peak);
        self.charge.seen_peak_ns = Some(state.peak_ns).filter(|ns| *ns != 0);
        let is_soon = self
            .last_look
            .is_some_and(|last| last.elapsed() < BETWEEN_LOOKS);
        if state.peak <= self.looked_at || is_soon {
            return;
        }
        let Some(meter) = &self.meter else { return };
        self.looked_at = state.peak;
        self.last_look = Some(Instant::now());
        let split = meter.split();
        if split.total > self.charge.at_peak.and_then(|best| best.total) {
            self.charge.at_peak = Some(split);
        }
        self.charge.peak = self.kernels_peak();
    }

    /// Takes what is left at the end.
    pub(super) fn finish(&mut self) {
        let Some(meter) = &self.meter else { return };
        self.charge.processes_at_end = meter.processes();
        self.charge.at_end = Some(meter.split());
        self.charge.peak = self.kernels_peak();
    }

    /// The kernel's own peak if it was reached in this recording. One that is no higher than before may be an older one.
    fn kernels_peak(&self) -> Option<u64> {
        let peak = self.meter.as_ref()?.peak()?;
        let is_new = self.charge.scope == ChargeScope::Own
            || self.peak_before.is_some_and(|before| peak > before);
        is_new.then_some(peak)
    }
}
