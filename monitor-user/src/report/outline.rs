//! The process tree as rows: one for a process, or for many that are alike.

use crate::report::{escape::width, forest::Forest};

/// How much of a tree is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// So many alike siblings are shown in one row.
    pub(super) fold: usize,
    /// Different kinds of children shown of one process; the rest is summed up.
    pub(super) kinds: usize,
    /// Rows of the whole tree; the rest is summed up.
    pub(super) rows: usize,
}

impl Limits {
    /// Each process in a row of its own.
    pub(super) const NONE: Self = Self {
        fold: usize::MAX,
        kinds: usize::MAX,
        rows: usize::MAX,
    };
}

/// What a row shows. Numbers are places in `Report::processes`.
pub(super) enum What {
    /// One process, or many that are alike.
    Alike(Vec<usize>),
    /// Processes that are left out, with all that they made.
    Rest(Vec<usize>),
}

/// Where a row hangs in the tree.
#[derive(Clone)]
pub(super) struct Branch {
    depth: usize,
    /// What stands below the creator.
    stem: String,
    is_last: bool,
}

impl Branch {
    fn below(parent: Option<&Self>, is_last: bool) -> Self {
        let stem = parent.map_or_else(String::new, |p| {
            format!("{}{}", p.stem, if p.is_last { "   " } else { "│  " })
        });
        Self {
            depth: parent.map_or(0, |p| p.depth) + 1,
            stem,
            is_last,
        }
    }

    /// In `room` columns. What is too deep for them says its depth instead.
    pub(super) fn text(&self, room: usize) -> String {
        let end = if self.is_last { "└─ " } else { "├─ " };
        if width(&self.stem) + 3 <= room {
            format!("{}{end}", self.stem)
        } else {
            format!("… {} deep ", self.depth)
        }
    }
}

/// The rows of a tree.
pub(super) struct Outline {
    /// From the top down, each with its branch; there is none at the top.
    pub(super) rows: Vec<(What, Option<Branch>)>,
    /// Processes for which no row was left.
    pub(super) hidden: usize,
}

impl Outline {
    pub(super) fn new(forest: &Forest, limits: Limits) -> Self {
        let tops = entries(forest, &forest.tops, limits);
        let mut pending: Vec<(What, Option<Branch>)> =
            tops.into_iter().rev().map(|what| (what, None)).collect();
        let mut rows = Vec::new();
        let mut shown = 0;
        while let Some((what, branch)) = pending.pop() {
            if rows.len() >= limits.rows {
                let hidden = forest.labels.len() - shown;
                return Self { rows, hidden };
            }
            match &what {
                What::Rest(members) => shown += forest.count(members),
                What::Alike(members) => {
                    shown += members.len();
                    let mut children: Vec<usize> = members
                        .iter()
                        .flat_map(|m| forest.children[*m].iter().copied())
                        .collect();
                    children.sort_unstable();
                    let below = entries(forest, &children, limits);
                    let last = below.len().saturating_sub(1);
                    for (n, what) in below.into_iter().enumerate().rev() {
                        let branch = Some(Branch::below(branch.as_ref(), n == last));
                        pending.push((what, branch));
                    }
                }
            }
            rows.push((what, branch));
        }
        Self { rows, hidden: 0 }
    }
}

/// What is shown of siblings.
fn entries(forest: &Forest, siblings: &[usize], limits: Limits) -> Vec<What> {
    let mut entries: Vec<Vec<usize>> = Vec::new();
    for kind in forest.alike(siblings) {
        if kind.len() < limits.fold {
            entries.extend(kind.into_iter().map(|n| vec![n]));
        } else {
            entries.push(kind);
        }
    }
    entries.sort_by_key(|kind| kind.first().copied());
    let rest = entries.split_off(entries.len().min(limits.kinds));
    let rest: Vec<usize> = rest.into_iter().flatten().collect();
    let mut out: Vec<What> = entries.into_iter().map(What::Alike).collect();
    if !rest.is_empty() {
        out.push(What::Rest(rest));
    }
    out
}
