//! Who had the memory when its sum was highest.

use super::{PROGRAMS, SIZE, TIMES, row, tagged_row};
use crate::{
    report::{
        Report,
        forest::Forest,
        holders::{Had, at_peak, at_peak_by_role},
        words,
    },
    units::Bytes,
};

/// By program, and by role if there are pools; nothing if only one process had any.
pub(super) fn lines(report: &Report, forest: &Forest, columns: usize) -> Vec<String> {
    let all = at_peak(report, forest);
    if all.is_empty() {
        return Vec::new();
    }
    let mut titles = vec![("at once".to_owned(), TIMES)];
    titles.extend(["RSS", "anon", "file", "shmem"].map(|word| (word.to_owned(), SIZE)));
    let mut out = vec![row(2, "at the highest sum of RSS", &titles, columns)];
    let left_out = all.len().saturating_sub(PROGRAMS);
    for (name, had) in all.into_iter().take(PROGRAMS) {
        out.push(tagged_row(&name, &figures(had), columns));
    }
    if left_out > 0 {
        let more = words::count(left_out as u64, "more program", "more programs");
        out.push(format!("    and {more}"));
    }
    let roles = at_peak_by_role(report);
    if !roles.is_empty() {
        out.push("  the same by role".to_owned());
    }
    let roles = roles.into_iter();
    out.extend(roles.map(|(role, had)| row(4, role, &figures(had), columns)));
    out
}

fn figures(had: Had) -> Vec<(String, usize)> {
    let times = (format!("{} x", words::grouped(had.processes)), TIMES);
    let sizes = [had.rss(), had.anon, had.file, had.shmem];
    let sizes = sizes.map(|bytes| (Bytes(bytes).to_string(), SIZE));
    [times].into_iter().chain(sizes).collect()
}
