//! Python environments with packages, made once for each list of packages.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;

use crate::process;

/// The Python of an environment below `scratch` that has the packages of all these lists, and perhaps more; one that
/// lacks some is made anew.
///
/// # Errors
/// A list can't be read, or the packages can't be installed.
pub(super) fn environment(scratch: &Path, lists: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let mut wanted = String::new();
    for list in lists {
        wanted +=
            &fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?;
    }
    let folder = scratch.join("venv");
    let python = folder.join("bin/python");
    let installed = folder.join("installed.txt");
    let is_there = fs::read_to_string(&installed).is_ok_and(|text| has_all(&text, &wanted));
    if is_there && process::is_program(&python) {
        return Ok(python);
    }
    process::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder),
    )?;
    let mut install = Command::new(&python);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    for list in lists {
        install.arg("--requirement").arg(list);
    }
    process::run(&mut install)?;
    fs::write(&installed, wanted)
        .with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(python)
}

/// Whether every line of `wanted` is in `installed`.
fn has_all(installed: &str, wanted: &str) -> bool {
    wanted
        .lines()
        .all(|line| installed.lines().any(|known| known == line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_with_more_packages_will_do() {
        assert!(has_all("a==1\nb==2\n", "a==1\n"));
        assert!(!has_all("a==1\n", "a==1\nb==2\n"));
        assert!(!has_all("a==1\n", "a==2\n"));
    }
}
