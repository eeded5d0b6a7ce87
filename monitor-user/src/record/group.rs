//! The control group whose processes are recorded: found or waited for, and when the recording of it ends.
//!
//! Why nobody in it is missed is in the kernel side's `group.rs`.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use aya::maps::Array;
use monitor_ebpf::abi::{ANY_HIERARCHY, GROUP_PATH};

use super::{
    RecordError,
    attach::{no_map, set, wrong},
    load::Loaded,
    refusal::LoadError,
    until::LINGER,
};
use crate::{
    event::RecordedGroup,
    host::control_groups::{Hierarchies, Wanted, sees_the_top},
};

/// A group that can't be recorded.
pub(super) fn unusable(name: &str, why: impl Into<String>) -> RecordError {
    RecordError::Group {
        path: name.into(),
        why: why.into(),
    }
}

/// A control group that is recorded.
pub(super) struct Target {
    hierarchies: Hierarchies,
    wanted: Wanted,
    /// What is known of it.
    pub(super) recorded: RecordedGroup,
    /// The recording goes on while nobody is in it.
    stays: bool,
    /// Since when nobody has been there.
    empty_since: Option<Instant>,
}

impl Target {
    /// Understands what was named. `stays`: it is recorded for a given time, whether somebody is there or not.
    ///
    /// # Errors
    /// It names no group, or one that can't be waited for from here.
    pub(super) fn new(name: &str, stays: bool) -> Result<Self, RecordError> {
        let root = Path::new("/");
        let hierarchies = Hierarchies::read(root)
            .map_err(|error| RecordError::system("cannot read control groups", error))?;
        let wanted = hierarchies
            .wanted(name)
            .map_err(|why| unusable(name, why))?;
        if hierarchies.find(&wanted).is_none() && !sees_the_top(root) {
            let why =
                "it isn't there, and can't be waited for from within a namespace of control groups";
            return Err(unusable(name, why));
        }
        Ok(Self {
            hierarchies,
            wanted,
            recorded: RecordedGroup {
                wanted: name.to_owned(),
                ..RecordedGroup::default()
            },
            stays,
            empty_since: None,
        })
    }

    /// Tells the kernel side, the hooks of which are at work: first what to wait for, then what is there already.
    pub(super) fn tell(&mut self, loaded: &mut Loaded) -> Result<(), LoadError> {
        let mut name = [0_u8; GROUP_PATH];
        let path = self.wanted.path.as_bytes();
        let room = name
            .get_mut(..path.len())
            .ok_or_else(|| LoadError::Object("the path of a control group is too long".into()))?;
        room.copy_from_slice(path);
        let hierarchy = self.wanted.hierarchy.unwrap_or(ANY_HIERARCHY);
        set(loaded, "WANTED_GROUPS", name, hierarchy)?;
        let chosen = chosen(loaded);
        let wanted = Wanted {
            hierarchy: chosen.or(self.wanted.hierarchy),
            ..self.wanted.clone()
        };
        if let Some(group) = self.hierarchies.find(&wanted) {
            set(loaded, "GROUPS", group.id, 1_u8)?;
            if chosen.is_none() {
                let map = loaded.ebpf.map_mut("HIERARCHY").ok_or_else(no_map)?;
                let mut map = Array::<_, u32>::try_from(map).map_err(|error| wrong(&error))?;
                map.set(0, group.hierarchy + 1, 0)
                    .map_err(|error| wrong(&error))?;
            }
            self.recorded.hierarchy = self.hierarchies.words(group.hierarchy);
            self.recorded.path = Some(group.path);
        }
        Ok(())
    }

    /// Learns where it is, once it has been made.
    pub(super) fn look(&mut self, loaded: &Loaded) {
        if self.recorded.path.is_some() {
            return;
        }
        let Some(hierarchy) = chosen(loaded) else {
            return;
        };
        self.recorded.path = made(loaded);
        self.recorded.hierarchy = self.hierarchies.words(hierarchy);
    }

    /// Whether the recording of it is over: somebody was there, and nobody has been for a moment.
    pub(super) fn is_over(&mut self, any_alive: bool, now: Instant) -> bool {
        if any_alive || self.stays || self.recorded.first_ns.is_none() {
            self.empty_since = None;
            return false;
        }
        let since = *self.empty_since.get_or_insert(now);
        now.saturating_duration_since(since) >= EMPTY
    }
}

/// How long nobody is there before it counts as over: a shell that runs one command after the other, or a runtime,
/// may leave it for a moment.
const EMPTY: Duration = LINGER;

/// Number of the hierarchy of the group.
fn chosen(loaded: &Loaded) -> Option<u32> {
    let map = Array::<_, u32>::try_from(loaded.ebpf.map("HIERARCHY")?).ok()?;
    map.get(&0, 0).ok()?.checked_sub(1)
}

/// Path of the group that was made while it was waited for.
fn made(loaded: &Loaded) -> Option<String> {
    let map = Array::<_, [u8; GROUP_PATH]>::try_from(loaded.ebpf.map("MADE_GROUP")?).ok()?;
    let path = map.get(&0, 0).ok()?;
    let end = path.iter().position(|byte| *byte == 0)?;
    let path = path.get(..end).filter(|path| !path.is_empty())?;
    Some(String::from_utf8_lossy(path).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(stays: bool, first_ns: Option<u64>) -> Target {
        Target {
            hierarchies: Hierarchies::default(),
            wanted: Wanted {
                path: "/a".to_owned(),
                hierarchy: None,
            },
            recorded: RecordedGroup {
                first_ns,
                ..RecordedGroup::default()
            },
            stays,
            empty_since: None,
        }
    }

    #[test]
    fn it_is_over_once_nobody_has_been_there_for_a_moment() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut group = target(false, Some(1));
        assert!(!group.is_over(true, start));
        assert!(!group.is_over(false, start) && !group.is_over(false, after(299)));
        assert!(group.is_over(false, after(300)));
        // Somebody came in between.
        assert!(!group.is_over(true, after(400)) && !group.is_over(false, after(500)));
        assert!(!group.is_over(false, after(799)));
        assert!(group.is_over(false, after(800)));
    }

    #[test]
    fn it_is_not_over_before_somebody_was_there_nor_before_its_time() {
        let start = Instant::now();
        let late = start + Duration::from_mins(1);
        for mut group in [target(false, None), target(true, Some(1))] {
            assert!(!group.is_over(false, start) && !group.is_over(false, late));
        }
    }
}
