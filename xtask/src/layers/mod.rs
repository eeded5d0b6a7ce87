//! `cargo xtask layers`: the modules of rtrace use each other in one direction only.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, ensure};

use crate::output;

mod paths;
mod table;

use paths::Named;
use table::Layer;

/// Checks a folder of sources and prints what is wrong.
///
/// # Errors
/// The sources can't be read.
pub(crate) fn command(source: &Path) -> anyhow::Result<ExitCode> {
    let problems = check(source)?;
    for problem in &problems {
        output::result(problem);
    }
    if problems.is_empty() {
        output::result("layers: every arrow points the right way");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// One line for each wrong arrow, `FILE:LINE: WHAT`, sorted by file.
fn check(source: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    collect(source, &mut files)?;
    ensure!(
        !files.is_empty(),
        "there are no sources in {}",
        source.display()
    );
    files.sort();
    let mut problems = Vec::new();
    for file in files {
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let inside = module(file.strip_prefix(source)?);
        problems.extend(
            in_file(&inside, &text)
                .into_iter()
                .map(|(line, problem)| format!("{}:{line}: {problem}", file.display())),
        );
    }
    Ok(problems)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The module that a file holds: `model/tree.rs` is `model`, `tree`; `lib.rs` is none.
fn module(file: &Path) -> Vec<String> {
    let mut names: Vec<String> = file
        .with_extension("")
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if names.last().is_some_and(|name| name == "mod") || names == ["lib"] {
        names.pop();
    }
    names
}

fn in_file(file: &[String], text: &str) -> Vec<(usize, String)> {
    let Some(top) = file.first() else {
        return Vec::new();
    };
    let Some(layer) = table::find(top) else {
        return vec![(
            1,
            format!("`{top}` is no known layer: give it a place in xtask/src/layers/table.rs"),
        )];
    };
    let mut problems = Vec::new();
    for named in paths::named(text) {
        if let Some(other) = top_module(file, &named)
            && let Some(problem) = arrow(layer, other)
        {
            problems.push((named.line, problem));
        }
        if layer.is_pure && !is_test(file, &named) && names_the_world(&named.names) {
            problems.push((
                named.line,
                format!(
                    "`{}` is pure and may not name `{}`",
                    layer.name,
                    named.names.join("::")
                ),
            ));
        }
    }
    problems.dedup();
    problems
}

/// The top module that a path leads into, if it goes through the root of the crate.
fn top_module<'a>(file: &[String], named: &'a Named) -> Option<&'a str> {
    let first = named.names.first()?;
    if first == "crate" || (first == "rtrace" && file == ["main"]) {
        return named.names.get(1).map(String::as_str);
    }
    let ups = named
        .names
        .iter()
        .skip_while(|name| *name == "self")
        .take_while(|name| *name == "super")
        .count();
    let selves = named
        .names
        .iter()
        .take_while(|name| *name == "self")
        .count();
    (ups > 0 && ups == file.len() + named.inside.len())
        .then(|| named.names.get(selves + ups).map(String::as_str))
        .flatten()
}

fn arrow(from: &Layer, to: &str) -> Option<String> {
    if from.name == to || from.uses.contains(&to) {
        return None;
    }
    Some(match table::find(to) {
        Some(_) => format!("`{}` may not use `{to}`", from.name),
        None => format!("`{}` uses `{to}`, which is no known layer", from.name),
    })
}

fn names_the_world(names: &[String]) -> bool {
    let is_world = |path: &&[&str]| {
        names.len() >= path.len() && path.iter().zip(names).all(|(want, name)| want == name)
    };
    table::WORLD.iter().any(is_world)
        || names
            .iter()
            .any(|name| table::CLOCKS.contains(&name.as_str()))
}

fn is_test(file: &[String], named: &Named) -> bool {
    file.iter()
        .chain(&named.inside)
        .any(|name| name == "tests" || name.ends_with("_tests"))
}

#[cfg(test)]
mod tests;
