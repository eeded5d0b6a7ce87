//! What an earlier set-up did, so that the next one can see at once that nothing is left to do.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use anyhow::Context;

use super::{
    fetch, linker,
    toolchain::{Llvm, Toolchain},
};
use crate::workspace::Workspace;

/// Read by `monitor-user/build.rs`.
const SETTINGS: &str = "toolchain.env";
/// Read by this file alone: a first line with the pins, then one line for each file that was relied on.
const RECORD: &str = "setup.record";

/// Whether all that the set-up found and built is still as it was, and the workspace's packages are there.
pub(super) fn is_current(workspace: &Workspace) -> bool {
    let Ok(record) = fs::read_to_string(workspace.target.join(RECORD)) else {
        return false;
    };
    let Ok(settings) = fs::read_to_string(workspace.target.join(SETTINGS)) else {
        return false;
    };
    let Some((pins, files)) = record.split_once('\n') else {
        return false;
    };
    let is_same = |line: &str| {
        line.splitn(3, ' ')
            .nth(2)
            .is_some_and(|path| state(Path::new(path)).is_ok_and(|now| now == line))
    };
    pins == pin_line(&settings) && files.lines().all(is_same) && fetch::is_complete(workspace)
}

/// Writes the settings for `build.rs`, if they changed, and the record.
///
/// # Errors
/// A file can't be written.
pub(super) fn write(
    workspace: &Workspace,
    toolchain: &Toolchain,
    linker: &Path,
) -> anyhow::Result<()> {
    let mut variables = toolchain.variables();
    variables.push(("BPF_LINKER", linker.display().to_string()));
    let settings: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    let settings = settings.concat();
    let file = workspace.target.join(SETTINGS);
    // An unchanged file keeps its time, or the BPF side would be built again.
    if fs::read_to_string(&file).ok().as_ref() != Some(&settings) {
        fs::write(&file, &settings).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let mut record = pin_line(&settings);
    for path in relied_on(toolchain, linker) {
        let line = state(&path).with_context(|| format!("cannot look at {}", path.display()))?;
        record.push('\n');
        record.push_str(&line);
    }
    let file = workspace.target.join(RECORD);
    fs::write(&file, record).with_context(|| format!("cannot write {}", file.display()))
}

fn relied_on(toolchain: &Toolchain, linker: &Path) -> Vec<PathBuf> {
    let llvm = match &toolchain.llvm {
        Llvm::System(folder) => folder.join("lib/libLLVM.so"),
        Llvm::Own(libraries) => libraries.clone(),
    };
    vec![
        toolchain.cargo.clone(),
        toolchain.rustc.clone(),
        toolchain.source.clone(),
        linker.to_owned(),
        llvm,
    ]
}

fn pin_line(settings: &str) -> String {
    format!(
        "bpf-linker {} {}",
        linker::VERSION,
        settings.trim_end().replace('\n', " ")
    )
}

/// Size, time and path of a file: another version of a program differs in one of the first two.
fn state(path: &Path) -> io::Result<String> {
    let data = fs::metadata(path)?;
    let changed = data
        .modified()?
        .duration_since(UNIX_EPOCH)
        .map_err(io::Error::other)?;
    Ok(format!(
        "{} {} {}",
        data.len(),
        changed.as_nanos(),
        path.display()
    ))
}
