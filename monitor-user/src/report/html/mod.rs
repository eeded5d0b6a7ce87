//! The report as one page: a file that needs no network and runs no script.
//!
//! Everything that programs chose (names, arguments, paths) gets in as text only: characters that could harm are
//! shown as escapes, as in a terminal, and the template escapes what HTML would read as markup. As a second wall the
//! page forbids itself to load or run anything.

mod findings;
mod memory;
mod processes;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::{Report, escape::shorten, forest::Forest, outline::Limits, say, say::Sentence};

/// Nothing may be loaded and no script may run. Styles are those in the page.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("style.css");
/// Columns of the command in the window's title.
const TITLE: usize = 60;
/// Rows of the process tree unless all is asked for.
const LIMITS: Limits = Limits {
    fold: 3,
    kinds: 50,
    rows: 2000,
};

/// Writes the page.
///
/// `chart`: memory over time as [`crate::report::chart::svg`] gives it; `all`: every process in a row of its own.
///
/// # Errors
/// Those of the writer.
pub fn write(
    report: &Report,
    chart: Option<&str>,
    all: bool,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    out.write_all(page(report, chart, all).into_string().as_bytes())
}

fn page(report: &Report, chart: Option<&str>, all: bool) -> Markup {
    let forest = Forest::new(report);
    let title = say::title(report);
    let limits = if all { Limits::NONE } else { LIMITS };
    let processes = processes::Rows::new(report, &forest, limits);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { (shorten(&title, TITLE)) " - rtrace" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    @for fact in say::facts(report) { (sentence(&fact)) }
                }
                main {
                    (findings::section(report, &forest, &processes))
                    (memory::section(report, &forest, chart))
                    (pools(report, &forest))
                    (processes.section())
                    section {
                        h2 { "Trust" }
                        @for fact in say::trust(report) { (sentence(&fact)) }
                    }
                }
            }
        }
    }
}

fn sentence(sentence: &Sentence) -> Markup {
    html! { p .bad[sentence.is_bad] { (sentence.text) } }
}

fn pools(report: &Report, forest: &Forest) -> Markup {
    let instead = say::threads_only(report, forest).filter(|_| report.pools.is_empty());
    html! {
        @if !report.pools.is_empty() || instead.is_some() {
            section {
                h2 { "Pools" }
                @if let Some(sentence) = instead { p { (sentence) } }
                @for pool in &report.pools {
                    h3 { (say::pool_title(report, forest, pool)) }
                    p { (say::pool_facts(pool).join(", ")) }
                }
            }
        }
    }
}
