//! The control group whose processes are recorded, by itself or as that of a container: found or waited for, and when
//! the recording of it ends.
//!
//! Why nobody in it is missed is in the kernel side's `group.rs`.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use aya::maps::Array;
use monitor_ebpf::abi::{ANY_HIERARCHY, GROUP_PATH};

use super::{
    RecordError,
    attach::{Named, no_map, set, wrong},
    load::Loaded,
    refusal::LoadError,
    until::LINGER,
};
use crate::{
    event::{Container, RecordedGroup},
    host::{
        containers::{Containers, choose, groups, is_id},
        control_groups::{Existing, Hierarchies, Wanted, sees_the_top},
    },
};

/// How often it is looked whether a container is written down that isn't yet: far more often than a runtime needs from
/// there to its first process.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What is looked for.
enum Sought {
    /// A group by its path.
    Group(Wanted),
    /// The group of a container whose id is known.
    Id(String),
    /// A container that isn't there yet.
    Name,
}

/// A control group that is recorded.
pub(super) struct Target {
    named: Named,
    hierarchies: Hierarchies,
    containers: Containers,
    sought: Sought,
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
    /// It names no group, several containers, or something that can't be waited for from here.
    pub(super) fn new(named: &Named, stays: bool) -> Result<Self, RecordError> {
        let root = Path::new("/");
        let hierarchies = Hierarchies::read(root)
            .map_err(|error| RecordError::system("cannot read control groups", error))?;
        let sought = match named {
            Named::Path(path) => {
                let wanted = hierarchies.wanted(path);
                Sought::Group(wanted.map_err(|why| named.unusable(why))?)
            }
            Named::Container(_) => Sought::Name,
        };
        let named_alone = matches!(named, Named::Container(_)).then(|| Container {
            name: Some(named.text().to_owned()),
            ..Container::default()
        });
        let mut target = Self {
            named: named.clone(),
            hierarchies,
            containers: Containers::default(),
            sought,
            recorded: RecordedGroup {
                wanted: named.text().to_owned(),
                container: named_alone,
                ..RecordedGroup::default()
            },
            stays,
            empty_since: None,
        };
        target.seek_container(root)?;
        if target.find(None).is_none() && !sees_the_top(root) {
            let why =
                "it isn't there, and can't be waited for from within a namespace of control groups";
            return Err(named.unusable(why));
        }
        Ok(target)
    }

    /// Learns which container is meant, if one is.
    fn seek_container(&mut self, root: &Path) -> Result<(), RecordError> {
        let (Named::Container(text), Sought::Name) = (&self.named, &self.sought) else {
            return Ok(());
        };
        let mut all = self.containers.look(root);
        let running = self.running();
        let is_running = |container: &Container| {
            let is_it = |other: &Container| other.id == container.id;
            running.iter().any(is_it)
        };
        // Of whom no file tells there is still the group.
        for group in &running {
            if all.iter().all(|container| container.id != group.id) {
                all.push(group.clone());
            }
        }
        let chosen = choose(&all, text, is_running).map_err(|why| self.named.unusable(why))?;
        let unseen = || {
            is_id(text).then(|| Container {
                id: Some(text.clone()),
                ..Container::default()
            })
        };
        let Some(container) = chosen.or_else(unseen) else {
            return Ok(());
        };
        if let Some(id) = &container.id {
            self.sought = Sought::Id(id.clone());
        }
        self.recorded.container = Some(container);
        Ok(())
    }

    /// Containers by the groups that there are.
    fn running(&self) -> Vec<Container> {
        let all = self
            .hierarchies
            .named(&|name| groups::id_in(name).is_some());
        let mut found: Vec<Container> = Vec::new();
        for container in all.iter().filter_map(|group| groups::in_path(&group.path)) {
            if found.iter().all(|other| other.id != container.id) {
                found.push(container);
            }
        }
        found
    }

    /// Waits until a container is there that isn't yet. `end`: for no longer.
    ///
    /// # Errors
    /// Several are meant, or time is up.
    pub(super) fn wait(
        &mut self,
        end: Option<Instant>,
        tell: fn(&RecordedGroup),
    ) -> Result<(), RecordError> {
        if !matches!(self.sought, Sought::Name) {
            return Ok(());
        }
        tell(&self.recorded);
        let root = Path::new("/");
        loop {
            // To look at all groups takes longer, and no runtime makes one before it has written that down.
            let all = self.containers.look(root);
            if !matches!(choose(&all, self.named.text(), |_| false), Ok(None)) {
                self.seek_container(root)?;
            }
            if !matches!(self.sought, Sought::Name) {
                return Ok(());
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Err(self.named.unusable("there was none in that time"));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The group if it is there, in a given hierarchy or any.
    fn find(&self, hierarchy: Option<u32>) -> Option<Existing> {
        match &self.sought {
            Sought::Group(wanted) => self.hierarchies.find(&Wanted {
                hierarchy: hierarchy.or(wanted.hierarchy),
                ..wanted.clone()
            }),
            Sought::Id(id) => {
                let mut there = self
                    .hierarchies
                    .named(&|name| groups::id_in(name) == Some(id));
                there.retain(|group| hierarchy.is_none_or(|number| number == group.hierarchy));
                let first = there.iter().position(|group| group.has_processes);
                (!there.is_empty()).then(|| there.swap_remove(first.unwrap_or(0)))
            }
            Sought::Name => None,
        }
    }

    /// Tells the kernel side, the hooks of which are at work: first what to wait for, then what is there already.
    pub(super) fn tell(&mut self, loaded: &mut Loaded) -> Result<(), LoadError> {
        match &self.sought {
            Sought::Group(wanted) => {
                await_group(loaded, &wanted.path, wanted.hierarchy)?;
            }
            Sought::Id(id) => {
                for name in groups::names_of(id) {
                    await_group(loaded, &name, None)?;
                }
            }
            Sought::Name => {}
        }
        let chosen = chosen(loaded);
        if let Some(group) = self.find(chosen) {
            set(loaded, "GROUPS", group.id, 1_u8)?;
            if chosen.is_none() {
                let map = loaded.ebpf.map_mut("HIERARCHY").ok_or_else(no_map)?;
                let mut map = Array::<_, u32>::try_from(map).map_err(|error| wrong(&error))?;
                map.set(0, group.hierarchy + 1, 0)
                    .map_err(|error| wrong(&error))?;
            }
            self.is_at(group.path, group.hierarchy);
        }
        Ok(())
    }

    /// Notes where it is, and which container that is.
    fn is_at(&mut self, path: String, hierarchy: u32) {
        self.recorded.hierarchy = self.hierarchies.words(hierarchy);
        if let Some(in_path) = groups::in_path(&path) {
            let known = self.recorded.container.take().or_else(|| {
                let mut all = self.containers.look(Path::new("/")).into_iter();
                all.find(|container| container.id == in_path.id)
            });
            self.recorded.container = Some(known.unwrap_or_default().or(in_path));
        }
        self.recorded.path = Some(path);
    }

    /// Learns where it is, once it has been made.
    pub(super) fn look(&mut self, loaded: &Loaded) {
        if self.recorded.path.is_some() {
            return;
        }
        let Some(hierarchy) = chosen(loaded) else {
            return;
        };
        if let Some(path) = made(loaded) {
            self.is_at(path, hierarchy);
        }
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

/// Has the kernel side wait for a group of that path, or of that name alone.
fn await_group(loaded: &mut Loaded, path: &str, hierarchy: Option<u32>) -> Result<(), LoadError> {
    let mut name = [0_u8; GROUP_PATH];
    let room = name
        .get_mut(..path.len())
        .ok_or_else(|| LoadError::Object("the path of a control group is too long".into()))?;
    room.copy_from_slice(path.as_bytes());
    set(
        loaded,
        "WANTED_GROUPS",
        name,
        hierarchy.unwrap_or(ANY_HIERARCHY),
    )
}

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
            named: Named::Path("/a".to_owned()),
            hierarchies: Hierarchies::default(),
            containers: Containers::default(),
            sought: Sought::Group(Wanted {
                path: "/a".to_owned(),
                hierarchy: None,
            }),
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
