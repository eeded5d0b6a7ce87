//! Compares a report with what the tree logged.

use std::collections::BTreeMap;

use super::log::{Created, ExecTruth, Node, Truth};
use crate::{
    differences::Differences,
    lone_surrogates::Text,
    report::{Exit, Id, Image, Process, Report},
};

/// All differences between a report and the truth.
///
/// `root_exec` is the command of the recording: the file and all arguments. `between` are stamps from before and
/// after it, ns since boot.
pub fn compare(
    report: &Report,
    truth: &Truth,
    root_exec: &[Text],
    between: (u64, u64),
) -> Differences {
    let mut found = Differences::default();
    let Some(ids) = identify(report, truth, between, &mut found) else {
        return found;
    };
    let comparison = Comparison {
        truth,
        ids: &ids,
        root_exec,
        between,
    };
    for (name, node) in &truth.nodes {
        if let Some(process) = ids.get(name.as_str()) {
            comparison.process(name, node, process, &mut found);
        }
    }
    totals(report, truth, &mut found);
    found
}

/// The reported process of each node: same pid, created during the call.
fn identify<'a>(
    report: &'a Report,
    truth: &'a Truth,
    between: (u64, u64),
    found: &mut Differences,
) -> Option<BTreeMap<&'a str, &'a Process>> {
    let mut ids = BTreeMap::new();
    for (name, node) in &truth.nodes {
        let (low, high) = node
            .created
            .as_ref()
            .map_or(between, |created| created.between);
        let is_it = |process: &&Process| {
            process.pid == node.pid && (low..=high).contains(&process.start_ns)
        };
        let candidates: Vec<_> = report.processes.iter().filter(is_it).collect();
        if let [process] = candidates.as_slice() {
            ids.insert(name.as_str(), *process);
        } else {
            found.add(format!(
                "{name}: pid {} is {} times in the report",
                node.pid,
                candidates.len()
            ));
        }
    }
    for process in &report.processes {
        if !ids.values().any(|known| known.id() == process.id()) {
            found.add(format!(
                "pid {} ({:?}) is in the report only",
                process.pid, process.comm
            ));
        }
    }
    found.same(
        "number of processes",
        report.processes.len(),
        truth.nodes.len(),
    );
    ids.contains_key("r").then_some(ids)
}

struct Comparison<'a> {
    truth: &'a Truth,
    ids: &'a BTreeMap<&'a str, &'a Process>,
    root_exec: &'a [Text],
    between: (u64, u64),
}

impl Comparison<'_> {
    fn process(&self, name: &str, node: &Node, process: &Process, found: &mut Differences) {
        let what = |part: &str| format!("{name} (pid {}), {part}", node.pid);
        match &node.created {
            Some(created) => self.creation(&what, created, process, found),
            None => found.same(
                what("created_by"),
                process.created_by.as_deref(),
                Some("root"),
            ),
        }
        self.images(name, node, process, found);
        self.end(name, node, process, found);
        found.same(
            what("name at the end"),
            process.comm.as_ref(),
            node.comm().as_ref(),
        );
        found.same(
            what("threads created"),
            process.threads_created,
            Some(node.threads_made),
        );
        found.same(
            what("most threads"),
            process.threads_max,
            Some(node.threads_max),
        );
        found.same(
            what("survived the root"),
            process.survived_root,
            Some(false),
        );
    }

    fn creation(
        &self,
        what: &dyn Fn(&str) -> String,
        created: &Created,
        process: &Process,
        found: &mut Differences,
    ) {
        let creator = self
            .ids
            .get(created.parent.as_str())
            .map(|creator| creator.id());
        found.same(what("creator"), process.creator, creator);
        found.same(
            what("creating thread"),
            process.creator_tid,
            Some(created.tid),
        );
        found.same(
            what("threads of the creator"),
            process.creator_threads,
            Some(created.threads),
        );
        let by = process
            .created_by
            .as_deref()
            .map(|by| if by == "posix_spawn" { "vfork" } else { by });
        let how = if created.how == "posix_spawn" {
            "vfork"
        } else {
            &created.how
        };
        found.same(what("created_by"), by, Some(how));
        let has = |flag: &str| {
            process
                .clone_flags
                .as_ref()
                .map(|flags| flags.iter().any(|name| name == flag))
        };
        found.same(what("CLONE_VM"), has("CLONE_VM"), Some(how != "fork"));
        found.same(
            what("CLONE_VFORK"),
            has("CLONE_VFORK"),
            Some(how == "vfork"),
        );
    }

    fn images(&self, name: &str, node: &Node, process: &Process, found: &mut Differences) {
        let what =
            |index: usize, part: &str| format!("{name} (pid {}), image {index}, {part}", node.pid);
        let (is_root, images) = (node.created.is_none(), &process.images);
        found.same(
            what(0, "number of images"),
            images.len(),
            1 + node.execs.len(),
        );
        for (index, image) in images.iter().enumerate() {
            let next = images
                .get(index + 1)
                .map_or(process.end_ns, |next| next.start_ns);
            found.same(what(index, "until"), image.end_ns, next);
            let how = if index == 0 && !is_root {
                "inherited"
            } else {
                "exec"
            };
            found.same(what(index, "how"), image.how.as_str(), how);
        }
        if let (Some(image), Some(created)) = (images.first(), &node.created) {
            found.same(what(0, "from"), image.start_ns, Some(process.start_ns));
            found.same(what(0, "name"), image.comm.as_ref(), Some(&created.name));
            let shared = (created.how != "fork")
                .then(|| self.ids.get(created.parent.as_str()).map(|p| p.id()));
            found.same(
                what(0, "shares memory with"),
                image.shared_mm_with,
                shared.flatten(),
            );
        } else if let (Some(image), Some((filename, _))) =
            (images.first(), self.root_exec.split_first())
        {
            found.same(what(0, "file"), image.filename.as_ref(), Some(filename));
            found.same(
                what(0, "arguments"),
                image.argv.as_deref(),
                Some(self.root_exec),
            );
        }
        let limit = self.latest_end(node);
        for (index, exec) in node.execs.iter().enumerate() {
            if let Some(image) = images.get(index + 1) {
                let high = exec
                    .image
                    .as_ref()
                    .map_or(limit, |(first_ran, _)| *first_ran);
                one_exec(&|part| what(index + 1, part), exec, image, high, found);
            }
        }
    }

    /// When the process had ended for sure.
    fn latest_end(&self, node: &Node) -> u64 {
        match (&node.created, node.waited) {
            (None, _) => self.between.1,
            (_, Some((_, returned))) => returned,
            _ => self.truth.quiet_ns,
        }
    }

    fn end(&self, name: &str, node: &Node, process: &Process, found: &mut Differences) {
        let what = |part: &str| format!("{name} (pid {}), {part}", node.pid);
        let Some(end) = &node.end else { return };
        let (after, signal) = match node.killed {
            Some((sent, signal)) => (sent, Some(signal)),
            None => (end.after_ns, end.signal),
        };
        // Which process it was isn't in the log; that it was one is.
        let sender = process.exit.as_ref().and_then(|exit| exit.sender.clone());
        let kind = sender.as_ref().map(|sender| sender.kind.as_str());
        found.same(what("sender"), kind, signal.map(|_| "user"));
        let truth = Exit {
            code: end.code,
            signal,
            core: Some(false),
            oom: Some(false),
            sender,
        };
        found.same(what("exit"), process.exit.as_ref(), Some(&truth));
        found.between(what("end"), process.end_ns, after, self.latest_end(node));
        let Some(created) = &node.created else { return };
        if let (Some(zombie), Some((called, _)), Some(ended)) =
            (process.zombie_ns, node.waited, process.end_ns)
        {
            let least = called.saturating_sub(ended);
            found.between(what("time as a zombie"), Some(zombie), least, u64::MAX);
        }
        let parent = process.final_parent;
        if created.orphan && !self.truth.subreaper {
            let inside = self.ids.values().any(|known| Some(known.id()) == parent);
            found.same(
                what("orphan's parent is outside"),
                parent.is_some() && !inside,
                true,
            );
        } else {
            let name = if created.orphan {
                "r"
            } else {
                created.parent.as_str()
            };
            let truth: Option<Id> = self.ids.get(name).map(|process| process.id());
            found.same(what("last parent"), parent, truth);
        }
    }
}

fn one_exec(
    what: &dyn Fn(&str) -> String,
    exec: &ExecTruth,
    image: &Image,
    high: u64,
    found: &mut Differences,
) {
    let size = exec.argv.iter().map(|arg| arg.0.len() as u64 + 1).sum();
    found.same(what("file"), image.filename.as_ref(), Some(&exec.filename));
    found.same(what("arguments"), image.argv.as_ref(), Some(&exec.argv));
    found.same(what("size of the arguments"), image.argv_bytes, Some(size));
    found.same(what("arguments cut"), image.argv_truncated, Some(false));
    found.same(what("name"), image.comm.as_ref(), Some(&exec.name()));
    if let Some((_, own_name)) = &exec.image {
        found.same(
            what("name as the image saw it"),
            image.comm.as_ref(),
            Some(own_name),
        );
    }
    found.between(what("from"), image.start_ns, exec.before_ns, high);
}

fn totals(report: &Report, truth: &Truth, found: &mut Differences) {
    let threads = truth
        .nodes
        .values()
        .map(|node| u64::from(node.threads_made))
        .sum();
    let depth = truth
        .nodes
        .keys()
        .map(|name| name.matches('.').count() as u64)
        .max();
    found.same(
        "processes of the tree",
        report.tree.processes,
        truth.nodes.len() as u64,
    );
    found.same(
        "threads of the tree",
        report.tree.threads_created,
        Some(threads),
    );
    found.same("depth of the tree", report.tree.max_depth, depth);
    found.same("lost events", report.trust.lost_events, 0);
    found.same("complete", report.trust.complete, true);
}
