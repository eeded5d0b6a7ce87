//! Images of processes and their memory.

use std::collections::{HashMap, HashSet};

use super::Context;
use crate::{
    event::{Churn, Mm},
    model::{
        draft::{Draft, ImageDraft},
        fold::State,
        memory::{Space, Track},
        tree::{Ending, How, Image, ImageMemory, Process},
        trust::Gaps,
    },
};

/// The end of an address space comes this late after that of its process, at most.
const TEAR_DOWN_NS: u64 = 100_000_000;

/// Adds images whose events were lost but of which other events tell.
pub(super) fn repair(state: &mut State, context: &Context<'_>, gaps: &mut Gaps) {
    let mut lost: Vec<(usize, Mm, u64, bool)> = Vec::new();
    let mut borrowed: HashMap<usize, Mm> = HashMap::new();
    for space in state.spaces.iter() {
        if space.owner.is_none()
            && let Some(process) = space.seen_by
        {
            lost.push((process, space.mm, space.first_ns, space.rows.seen));
        }
        for process in &space.borrowers {
            borrowed.entry(*process).or_insert(space.mm);
        }
    }
    let mut owners = HashMap::new();
    for (process, mm, first_ns, has_rows) in lost {
        let draft = &mut state.processes[process];
        let is_root = context.root == Some(draft.key);
        let first = draft.images.iter().filter_map(|i| i.image.start_ns).min();
        let is_before = first.is_none_or(|start| first_ns <= start);
        let has_first =
            is_root || draft.fork.is_some() || draft.found.is_some() || has_inherited(draft);
        if is_root && !has_rows && is_before {
            // What executed the command: that is rtrace itself, not part of the tree.
            continue;
        }
        let image = if !has_first && is_before {
            ImageDraft::inherited(draft.key.start_ns, None, Some(mm))
        } else {
            gaps.execs += 1;
            ImageDraft::lost(mm)
        };
        draft.images.push(image);
        owners.insert(mm, (process, draft.images.len() - 1));
    }
    for space in state.spaces.iter_mut() {
        space.owner = space.owner.or(owners.get(&space.mm).copied());
    }
    first_images(state, context, &borrowed);
}

/// Every process but the root starts with an inherited image, also if nothing is known about it.
fn first_images(state: &mut State, context: &Context<'_>, borrowed: &HashMap<usize, Mm>) {
    for (at, draft) in state.processes.iter_mut().enumerate() {
        if context.root == Some(draft.key) {
            // What it was before its first exec is the recorder, which isn't listed.
            draft.images.retain(|i| i.image.how == How::Exec);
            continue;
        }
        if draft.fork.is_none() && draft.found.is_none() && !has_inherited(draft) {
            let mm = borrowed.get(&at).copied();
            let mut image = ImageDraft::inherited(draft.key.start_ns, None, mm);
            image.shared = mm.is_some();
            draft.images.push(image);
        }
    }
}

fn has_inherited(draft: &Draft) -> bool {
    let mut images = draft.images.iter();
    images.any(|i| i.image.how == How::Inherited)
}

/// Images in order, with ends and memory.
pub(super) fn images(draft: &Draft, state: &State, ending: Ending) -> Vec<Image> {
    let began = |i: &ImageDraft| {
        let space = || i.image.mm.and_then(|mm| state.spaces.get(mm));
        let start = i.image.start_ns.or_else(|| space().map(|s| s.first_ns));
        (i.image.how == How::Exec, start)
    };
    let mut drafts: Vec<&ImageDraft> = draft.images.iter().collect();
    drafts.sort_by_key(|i| began(i));
    let count = drafts.len();
    let mut images = Vec::with_capacity(count);
    for (n, image) in drafts.iter().enumerate() {
        let next = drafts.get(n + 1);
        let has_ended = next.is_some() || matches!(ending, Ending::Ended { .. });
        let end_ns = match (next, ending) {
            (Some(next), _) => next.image.start_ns,
            (None, Ending::Ended { at }) => at,
            (None, Ending::Alive | Ending::Unknown) => None,
        };
        images.push(Image {
            end_ns,
            memory: memory(image, state, has_ended),
            ..image.image.clone()
        });
    }
    images
}

fn memory(image: &ImageDraft, state: &State, has_ended: bool) -> Option<ImageMemory> {
    if image.shared || image.track.is_some() {
        let end_rss = image.left_with.filter(|_| has_ended);
        return of_track(&image.track?, end_rss, false, None);
    }
    let space: &Space = state.spaces.get(image.image.mm?)?;
    let mut track = space.rows;
    let mut end_rss = None;
    if let Some(end) = &space.end {
        track.note_end(end);
        // Without the end there are only rows, and the last of those come from the tear-down.
        end_rss = Some(end.last.rss()).filter(|_| has_ended);
    }
    let churn = space.end.map_or(space.churn, |end| end.churn);
    of_track(&track, end_rss, space.end.is_some(), Some((space, churn)))
}

fn of_track(
    track: &Track,
    end_rss: Option<u64>,
    kept: bool,
    own: Option<(&Space, Option<Churn>)>,
) -> Option<ImageMemory> {
    track.seen.then_some(ImageMemory {
        start: own.and_then(|(space, _)| space.start),
        churn: own.and_then(|(_, churn)| churn),
        floors: own.map(|(space, _)| space.floors).unwrap_or_default(),
        peak: track.peak,
        peak_ns: track.peak_ns,
        peak_bound: track.peak_bound,
        peak_vms: track.peak_vms,
        peak_swap: track.peak_swap,
        end_rss,
        kept_at_every_event: kept,
    })
}

/// Says whose address space a shared one is: that of the process that it was made for, else of the
/// creator.
pub(super) fn owners(processes: &mut [Process], state: &State) {
    for process in processes {
        let Some(draft) = state
            .by_key
            .get(&process.key)
            .map(|at| &state.processes[*at])
        else {
            continue;
        };
        let shared: HashSet<Mm> = draft
            .images
            .iter()
            .filter(|i| i.shared)
            .filter_map(|i| i.image.mm)
            .collect();
        let creator = process.created.creator;
        for image in &mut process.images {
            let Some(mm) = image.mm.filter(|mm| shared.contains(mm)) else {
                continue;
            };
            if image.how == How::Inherited {
                let owner = state.spaces.get(mm).and_then(|space| space.owner);
                let key = owner.map(|(at, _)| state.processes[at].key);
                image.shared_mm_with = key.or(creator);
            }
        }
    }
}

/// Address spaces whose end never came although nobody can be using them any more.
pub(super) fn unclosed(processes: &[Process], state: &State, context: &Context<'_>) -> u64 {
    let hooks = &context.recording.missing_hooks;
    let Some(end_ns) = context.recording.end_ns.filter(|_| context.has_end) else {
        return 0;
    };
    if hooks.iter().any(|hook| hook.contains("exit_mmap")) {
        return 0;
    }
    let mut used: HashSet<Mm> = HashSet::new();
    let mut left: HashSet<Mm> = HashSet::new();
    for process in processes {
        for (n, image) in process.images.iter().enumerate() {
            let Some(mm) = image.mm else { continue };
            let is_over = n + 1 < process.images.len()
                || match process.ending {
                    Ending::Ended { at: Some(at) } => at.saturating_add(TEAR_DOWN_NS) < end_ns,
                    Ending::Ended { at: None } => true,
                    Ending::Alive | Ending::Unknown => false,
                };
            if is_over {
                left.insert(mm);
            } else {
                used.insert(mm);
            }
        }
    }
    let is_open = |space: &&Space| {
        space.end.is_none() && left.contains(&space.mm) && !used.contains(&space.mm)
    };
    state.spaces.iter().filter(is_open).count() as u64
}
