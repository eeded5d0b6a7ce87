//! Memory over time, split into lanes: by program, by part in a pool, or by process.

use std::{cmp::Reverse, collections::HashMap};

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
    /// The lane with most at the highest moment of all first, the rest last. They add up to the sum over the tree.
    pub lanes: Vec<Lane>,
}

impl Lanes {
    /// Sum over the lanes at the highest moment of each span, bytes.
    pub fn sums(&self) -> Vec<u64> {
        let spans = self.lanes.first().map_or(0, |lane| lane.values.len());
        let sum = |span| self.lanes.iter().map(|lane| lane.values[span]).sum();
        (0..spans).map(sum).collect()
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
        let place = process.and_then(|id| self.holders.place(id, at));
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

    /// The lanes, of which at most `most` are told apart.
    pub fn finish(self, most: usize) -> Lanes {
        let mut lanes = self.lanes;
        let sum = |span: usize| -> u64 { lanes.iter().map(|lane| lane.values[span]).sum() };
        // Of equal sums the first.
        let highest = (0..self.spans).rev().max_by_key(|span| sum(*span));
        let at_highest = |lane: &Lane| highest.map_or(0, |span| lane.values[span]);
        lanes.sort_by(|a, b| a.name.cmp(&b.name));
        lanes.sort_by_key(|lane| Reverse((at_highest(lane), lane.highest())));
        if lanes.len() > most {
            let rest = lanes.split_off(most.saturating_sub(1));
            lanes.push(together(&rest, self.spans));
        }
        Lanes {
            quantity: self.quantity,
            start_ns: self.start_ns,
            width_ns: self.width_ns,
            lanes,
        }
    }
}

fn together(rest: &[Lane], spans: usize) -> Lane {
    let sum = |span: usize| rest.iter().map(|lane| lane.values[span]).sum();
    Lane {
        name: format!("{} others", rest.len()),
        is_rest: true,
        values: (0..spans).map(sum).collect(),
    }
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
        let lanes = fold.finish(most);
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
