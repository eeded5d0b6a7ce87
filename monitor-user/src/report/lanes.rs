//! Memory over time, split into lanes: by program, by part in a pool, or by process.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use crate::{
    model::{Moment, Quantity, Timeline},
    report::{
        Id, Report,
        forest::Forest,
        holders::{Holders, Name},
    },
};

/// What a lane stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A program; processes with a part in a pool, and copies that go on with their creator's program, apart.
    Program,
    /// A part in a pool, or the command itself.
    Role,
    /// A process.
    Process,
}

/// Memory of one lane, or of many small ones together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// What it is called, escaped.
    pub name: String,
    /// It is the sum of all that are smaller than the others.
    pub is_rest: bool,
    /// Bytes at the highest moment of each span.
    pub values: Vec<u64>,
}

impl Lane {
    /// Most that it ever had at the highest moment of a span, bytes.
    pub fn highest(&self) -> u64 {
        self.values.iter().copied().max().unwrap_or(0)
    }
}

/// Memory of the tree over time, at the highest moment of each span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// What is shown.
    pub quantity: Quantity,
    /// Start of the first span, ns since boot.
    pub start_ns: u64,
    /// Length of a span, ns.
    pub width_ns: u64,
    /// Number of spans.
    pub spans: usize,
    /// They add up to the sum over the tree.
    pub lanes: Vec<Lane>,
}

impl Lanes {
    /// Sum over the lanes at the highest moment of each span, bytes.
    pub fn sums(&self) -> Vec<u64> {
        let sum = |span: usize| {
            let values = self.lanes.iter().map(|lane| lane.values[span]);
            values.fold(0, u64::saturating_add)
        };
        (0..self.spans).map(sum).collect()
    }

    /// End of the last span, ns since boot.
    pub fn end_ns(&self) -> u64 {
        let length = self.width_ns.saturating_mul(self.spans as u64);
        self.start_ns.saturating_add(length)
    }
}

/// Collects the moments of a timeline into lanes.
pub struct LaneFold<'a> {
    by: By,
    quantity: Quantity,
    report: &'a Report,
    holders: Holders<'a>,
    start_ns: u64,
    width_ns: u64,
    spans: usize,
    names: HashMap<String, usize>,
    lanes: Vec<Lane>,
    /// Lane of each process and image, so that names are made once.
    known: HashMap<(Option<Id>, Option<usize>), usize>,
}

/// The names that a report gives to processes, which lanes are called by.
pub struct Names(Forest);

impl Names {
    /// Of a report.
    pub fn new(report: &Report) -> Self {
        Self(Forest::new(report))
    }
}

impl<'a> LaneFold<'a> {
    /// For moments of this timeline.
    pub fn new(
        report: &'a Report,
        names: &'a Names,
        timeline: &Timeline,
        (by, quantity): (By, Quantity),
    ) -> Self {
        Self {
            by,
            quantity,
            report,
            holders: Holders::new(report, &names.0),
            start_ns: timeline.points().next().map_or(0, |(start, _)| start),
            width_ns: timeline.width_ns(),
            spans: timeline.points().count(),
            names: HashMap::new(),
            lanes: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Takes a moment.
    pub fn see(&mut self, moment: Moment<'_>) {
        for share in moment.shares {
            let bytes = self.quantity.of(share);
            if bytes == 0 {
                continue;
            }
            let process = share.process.map(|key| Id {
                pid: key.pid,
                start_ns: Some(key.start_ns),
            });
            let lane = self.lane(process, moment.time_ns, &share.program);
            let value = &mut self.lanes[lane].values[moment.span];
            *value = value.saturating_add(bytes);
        }
    }

    fn lane(&mut self, process: Option<Id>, at: u64, program: &[u8]) -> usize {
        let place = process.and_then(|id| self.holders.place(id, at, program));
        let image = place.map(|(_, image)| image);
        let key = (process, image);
        if let Some(lane) = self.known.get(&key).filter(|_| place.is_some()) {
            return *lane;
        }
        let name = self.name(process, at, program);
        let lane = *self.names.entry(name.clone()).or_insert_with(|| {
            self.lanes.push(Lane {
                name,
                is_rest: false,
                values: vec![0; self.spans],
            });
            self.lanes.len() - 1
        });
        self.known.insert(key, lane);
        lane
    }

    fn name(&self, process: Option<Id>, at: u64, program: &[u8]) -> String {
        let name = self.holders.name(process, at, program);
        match self.by {
            By::Program => name.to_string(),
            By::Role => {
                let Name { tag, .. } = name;
                let is_main = process.is_some() && process == self.report.root;
                match tag {
                    Some(role) if role != "fork" => role.to_owned(),
                    _ if is_main => "main".to_owned(),
                    _ => "other".to_owned(),
                }
            }
            By::Process => {
                let pid = process.map_or_else(|| "?".to_owned(), |id| id.pid.to_string());
                format!("{pid} {name}")
            }
        }
    }

    /// All lanes.
    pub fn finish(self) -> Lanes {
        Lanes {
            quantity: self.quantity,
            start_ns: self.start_ns,
            width_ns: self.width_ns,
            spans: self.spans,
            lanes: self.lanes,
        }
    }
}

/// Gives several recordings the same lanes in the same order, at most `most`: those with most at the highest moment of
/// a recording first, and the sum of all that are smaller last.
pub fn tell_apart(recordings: &[Lanes], most: usize) -> Vec<Lanes> {
    let mut sizes: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for lanes in recordings {
        let sums = lanes.sums();
        // Of equal sums the first.
        let peak = (0..sums.len()).rev().max_by_key(|span| sums[*span]);
        for lane in &lanes.lanes {
            let at_peak = peak.map_or(0, |span| lane.values[span]);
            let size = sizes.entry(lane.name.clone()).or_default();
            *size = (size.0.max(at_peak), size.1.max(lane.highest()));
        }
    }
    let mut names: Vec<(String, (u64, u64))> = sizes.into_iter().collect();
    // The map has sorted by name, so equals stay in that order.
    names.sort_by_key(|(_, size)| Reverse(*size));
    let kept = if names.len() > most {
        most.saturating_sub(1)
    } else {
        names.len()
    };
    let rest = names.len() - kept;
    names.truncate(kept);
    let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    let rest = (rest > 0).then(|| format!("{rest} others"));
    recordings
        .iter()
        .map(|lanes| rearranged(lanes, &names, rest.as_deref()))
        .collect()
}

/// With lanes of these names in their order, and the sum of all others as a lane if it has a name.
fn rearranged(all: &Lanes, names: &[String], rest: Option<&str>) -> Lanes {
    let empty = |name: &str, is_rest: bool| Lane {
        name: name.to_owned(),
        is_rest,
        values: vec![0; all.spans],
    };
    let mut lanes: Vec<Lane> = names.iter().map(|name| empty(name, false)).collect();
    lanes.extend(rest.map(|name| empty(name, true)));
    for lane in &all.lanes {
        let place = names.iter().position(|name| *name == lane.name);
        if let Some(into) = lanes.get_mut(place.unwrap_or(names.len())) {
            for (sum, value) in into.values.iter_mut().zip(&lane.values) {
                *sum = sum.saturating_add(*value);
            }
        }
    }
    Lanes { lanes, ..*all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Moments, testkit::Story};

    fn lanes(story: &Story, by: By, most: usize) -> Lanes {
        let tree = story.tree();
        let report = Report::new(&tree, &story.recorded());
        let names = Names::new(&report);
        let mut fold = LaneFold::new(&report, &names, &tree.timeline, (by, Quantity::Rss));
        let mut moments = Moments::new(&tree.timeline, Quantity::Rss);
        for event in story.events() {
            moments.push(event, &mut |moment| fold.see(moment));
        }
        moments.finish(&mut |moment| fold.see(moment));
        let lanes = tell_apart(&[fold.finish()], most).remove(0);
        let highest: Vec<u64> = tree.timeline.points().map(|(_, b)| b.max_rss).collect();
        assert_eq!(lanes.sums(), highest);
        lanes
    }

    fn names(lanes: &Lanes) -> Vec<(&str, u64)> {
        let lanes = lanes.lanes.iter();
        lanes
            .map(|lane| (lane.name.as_str(), lane.highest() >> 20))
            .collect()
    }

    fn story() -> Story {
        let mut story = Story::new();
        story.root(1, &["python3", "main.py"]).memory(1, 99);
        for (child, program) in [(2, "/usr/bin/bet"), (3, "/usr/bin/fast")] {
            story.after(5).fork(1, child).memory(child, 119);
            story.after(5).exec(child, &[program]);
            story.memory(child, 300 + u64::from(child));
        }
        story.after(5).fork(1, 4).memory(4, 109);
        story.after(5).exit(2, 0).reaped(2).exit(3, 0).reaped(3);
        story
    }

    #[test]
    fn a_program_is_told_from_what_it_was_before() {
        let by_program = lanes(&story(), By::Program, 9);
        assert_eq!(
            names(&by_program),
            [
                ("fast", 304),
                ("bet", 303),
                ("python3 main.py (fork)", 120),
                ("python3 main.py", 100),
            ]
        );
    }

    #[test]
    fn recordings_beside_each_other_have_the_same_lanes() {
        let first = lanes(&story(), By::Program, usize::MAX);
        let mut other = Story::new();
        other.root(1, &["python3", "main.py"]).memory(1, 999);
        other
            .after(5)
            .exec(1, &["fast"])
            .memory(1, 5)
            .after(5)
            .exit(1, 0);
        let second = lanes(&other, By::Program, usize::MAX);
        let both = tell_apart(&[first.clone(), second.clone()], 3);
        // While the new program was being built, the old one still had its memory.
        assert_eq!(
            names(&second),
            [
                ("python3 main.py", 1000),
                ("(program not known)", 1),
                ("fast", 6)
            ]
        );
        for (shown, whole) in both.iter().zip([&first, &second]) {
            let names: Vec<&str> = shown.lanes.iter().map(|l| l.name.as_str()).collect();
            assert_eq!(names, ["python3 main.py", "fast", "3 others"]);
            assert_eq!(shown.sums(), whole.sums());
        }
        assert_eq!(both[1].lanes[2].highest(), 1 << 20);
    }

    #[test]
    fn small_lanes_are_put_together() {
        let by_process = lanes(&story(), By::Process, 3);
        assert_eq!(
            names(&by_process),
            [("3 fast", 304), ("2 bet", 303), ("4 others", 220)]
        );
        assert!(by_process.lanes[2].is_rest);
        let by_role = lanes(&story(), By::Role, 9);
        assert_eq!(names(&by_role)[1], ("main", 100));
    }
}
