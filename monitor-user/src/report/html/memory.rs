//! Where the memory was.

use maud::{Markup, PreEscaped, html};

use crate::{
    report::{
        Report,
        forest::Forest,
        holders::{Had, at_peak, at_peak_by_role},
        words,
    },
    units::Bytes,
};

/// Programs listed by memory.
const PROGRAMS: usize = 20;

/// The chart, and who had what when it was most.
pub(super) fn section(report: &Report, forest: &Forest, chart: Option<&str>) -> Markup {
    let mut programs = at_peak(report, forest);
    let left_out = programs.split_off(programs.len().min(PROGRAMS)).len() as u64;
    let programs: Vec<(String, Had)> = programs
        .into_iter()
        .map(|(name, had)| (name.to_string(), had))
        .collect();
    let roles = at_peak_by_role(report).into_iter();
    let roles: Vec<(String, Had)> = roles.map(|(role, had)| (role.to_owned(), had)).collect();
    html! {
        section {
            h2 { "Memory" }
            // The library that drew it escapes names as XML.
            @if let Some(chart) = chart { figure { (PreEscaped(chart)) } }
            @if !programs.is_empty() {
                (table("at the highest sum of RSS", &programs))
                @if left_out > 0 { p.faint { "and " (words::count(left_out, "more program", "more programs")) } }
            }
            @if !roles.is_empty() { (table("the same by role", &roles)) }
        }
    }
}

fn table(title: &str, rows: &[(String, Had)]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th { (title) }
                    @for word in ["processes", "RSS", "anon", "file", "shmem"] { th.number { (word) } }
                }
            }
            tbody {
                @for (name, had) in rows {
                    tr {
                        td.name { (name) }
                        td.number { (words::grouped(had.processes)) }
                        @for bytes in [had.rss(), had.anon, had.file, had.shmem] { td.number { (Bytes(bytes)) } }
                    }
                }
            }
        }
    }
}
