//! Who made whom, what each process is called, and which processes are alike.

use std::collections::{BTreeMap, HashMap};

use crate::report::{
    Id, ImageReport, ProcessReport, Report,
    escape::{escape, shorten},
    words,
};

/// The processes of a report as a forest. Places are those in `Report::processes`.
pub(super) struct Forest {
    /// Children of each process, by start.
    pub(super) children: Vec<Vec<usize>>,
    /// Processes without a known creator: the root first.
    pub(super) tops: Vec<usize>,
    /// What each process is called, escaped.
    pub(super) labels: Vec<String>,
    /// Name of the program that each process executed or inherited, escaped.
    programs: Vec<String>,
    /// How each process ended if that isn't "with exit code 0".
    pub(super) ends: Vec<String>,
    /// Equal numbers: same name, same end, same offspring.
    shapes: Vec<usize>,
}

/// Columns of a program's name in front of one that a process gave itself, so that both are seen.
const BEFORE: usize = 20;
/// Name of a program whose exec was lost.
const UNKNOWN: &str = "(program not known)";

impl Forest {
    pub(super) fn new(report: &Report) -> Self {
        let processes = &report.processes;
        let places: HashMap<Id, usize> = (0..).zip(processes).map(|(n, p)| (p.id(), n)).collect();
        let creators: Vec<Option<usize>> = (0..)
            .zip(processes)
            // Creators come before what they make; anything else would be a circle.
            .map(|(n, p)| places.get(&p.creator?).copied().filter(|at| *at < n))
            .collect();
        let mut children = vec![Vec::new(); processes.len()];
        let mut tops = Vec::new();
        for (n, creator) in creators.iter().enumerate() {
            match creator {
                Some(creator) => children[*creator].push(n),
                None => tops.push(n),
            }
        }
        tops.sort_by_key(|n| Some(processes[*n].id()) != report.root);
        let programs = programs(processes, &creators);
        let labels: Vec<String> = processes
            .iter()
            .zip(&programs)
            .map(|(p, program)| label(p, program))
            .collect();
        let ends: Vec<String> = processes.iter().map(end).collect();
        let shapes = shapes(&labels, &ends, &children);
        Self {
            children,
            tops,
            labels,
            programs,
            ends,
            shapes,
        }
    }

    /// What the program of an image of a process is called, escaped.
    pub(super) fn program(&self, process: usize, image: &ImageReport) -> String {
        match image.program() {
            Some(program) => escape(&program.0),
            None if image.how == "exec" => UNKNOWN.to_owned(),
            None => self.programs[process].clone(),
        }
    }

    /// Number of processes with all that they made.
    pub(super) fn count(&self, processes: &[usize]) -> usize {
        let mut pending = processes.to_vec();
        let mut n = 0;
        while let Some(process) = pending.pop() {
            n += 1;
            pending.extend(&self.children[process]);
        }
        n
    }

    /// Puts alike processes together, in the order of the first of each kind.
    pub(super) fn alike(&self, processes: &[usize]) -> Vec<Vec<usize>> {
        let mut kinds: Vec<Vec<usize>> = Vec::new();
        let mut places: HashMap<usize, usize> = HashMap::new();
        for process in processes {
            let at = *places.entry(self.shapes[*process]).or_insert_with(|| {
                kinds.push(Vec::new());
                kinds.len() - 1
            });
            kinds[at].push(*process);
        }
        kinds
    }
}

/// The last program that each process executed, else what its creator was at that moment.
fn programs(processes: &[ProcessReport], creators: &[Option<usize>]) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(processes.len());
    // What a process was when it started; creators come first.
    let mut first: Vec<String> = Vec::with_capacity(processes.len());
    for (n, process) in processes.iter().enumerate() {
        let inherited = creators[n].map_or_else(
            || comm_of(process),
            |creator| {
                program_at(&processes[creator], process.start_ns)
                    .unwrap_or_else(|| first[creator].clone())
            },
        );
        let last = process.images.last();
        out.push(match last {
            Some(image) if image.how == "exec" => image
                .program()
                .map_or_else(|| UNKNOWN.to_owned(), |p| escape(&p.0)),
            _ => inherited.clone(),
        });
        first.push(inherited);
    }
    out
}

/// Program that a process had executed by some time.
fn program_at(process: &ProcessReport, time_ns: u64) -> Option<String> {
    let began = |image: &ImageReport| match image.start_ns {
        Some(start) => start <= time_ns,
        // It was that before the recording began; when an exec was lost, its arguments are too.
        None => image.argv.is_some(),
    };
    let mut images = process.images.iter().rev();
    let image = images.find(|i| i.how == "exec" && began(i))?;
    image.program().map(|p| escape(&p.0))
}

fn comm_of(process: &ProcessReport) -> String {
    let comm = process.comm.as_ref().map(|c| escape(&c.0));
    comm.filter(|c| !c.is_empty())
        .unwrap_or_else(|| UNKNOWN.to_owned())
}

fn label(process: &ProcessReport, program: &str) -> String {
    let Some(last) = process.images.last() else {
        return comm_of(process);
    };
    // What it calls itself says more than what was executed; which may be the name of another program's.
    let titled = process
        .title
        .as_ref()
        .map(|title| format!("{} as {}", shorten(program, BEFORE), escape(&title.0)));
    if last.how == "exec" {
        return titled.unwrap_or_else(|| program.to_owned());
    }
    // It has a name of its own only if it gave itself one. That may be another program's, so what it
    // is comes first.
    let renamed = process.comm.as_ref().filter(|_| process.comm != last.comm);
    let name = match (titled, renamed.filter(|_| last.comm.is_some())) {
        (Some(titled), _) => titled,
        (None, Some(comm)) => format!("{} as {}", shorten(program, BEFORE), escape(&comm.0)),
        (None, None) => program.to_owned(),
    };
    match process.created_by {
        Some("vfork") => format!("{name} (vfork)"),
        Some("clone_vm") => format!("{name} (shared memory)"),
        // Among workers that look alike it is another thing.
        Some("fork") if process.role == Some("manager") => format!("{name} (manager)"),
        Some("fork") => format!("{name} (fork)"),
        _ => name,
    }
}

/// How a process ended, in at most ten columns; nothing for the usual end.
fn end(process: &ProcessReport) -> String {
    match (&process.exit, process.alive_at_end) {
        (Some(exit), _) => match (exit.signal, exit.code) {
            (Some(_), _) if exit.oom == Some(true) => "OOM killed".to_owned(),
            (Some(signal), _) => words::signal_name(signal),
            (None, Some(0)) if process.zombie_at_end == Some(true) => "zombie".to_owned(),
            (None, Some(0)) => String::new(),
            (None, Some(code)) => format!("code {code}"),
            (None, None) => "ended".to_owned(),
        },
        (None, Some(true)) => "alive".to_owned(),
        (None, _) => "not known".to_owned(),
    }
}

fn shapes(labels: &[String], ends: &[String], children: &[Vec<usize>]) -> Vec<usize> {
    type Shape<'a> = (&'a str, &'a str, BTreeMap<usize, usize>);
    let mut known: HashMap<Shape<'_>, usize> = HashMap::new();
    let mut shapes = vec![0; labels.len()];
    // Children stand behind their creators, so going backwards they are done first.
    for n in (0..labels.len()).rev() {
        let mut offspring = BTreeMap::new();
        for child in &children[n] {
            *offspring.entry(shapes[*child]).or_insert(0) += 1;
        }
        let shape = (labels[n].as_str(), ends[n].as_str(), offspring);
        let next = known.len();
        shapes[n] = *known.entry(shape).or_insert(next);
    }
    shapes
}
