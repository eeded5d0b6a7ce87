//! Compiles the victim programs under `workloads/` with the C compiler into the package's output folder.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=workloads");
    for entry in fs::read_dir("workloads")? {
        let path = entry?.path();
        let Some(name) = path.file_stem() else {
            continue;
        };
        if path.is_dir() {
            compile(&c_files(&path)?, &out.join(name))?;
        } else if is_c(&path) {
            compile(std::slice::from_ref(&path), &out.join(name))?;
        }
    }
    println!("cargo::rustc-env=VICTIMS={}", out.display());
    Ok(())
}

fn is_c(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "c")
}

fn c_files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_c(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn compile(sources: &[PathBuf], program: &Path) -> Result<(), Box<dyn Error>> {
    let status = Command::new("cc")
        .args([
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-D_GNU_SOURCE",
            "-o",
        ])
        .arg(program)
        .args(sources)
        .status()
        .map_err(|error| format!("the C compiler `cc` can't be run: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cc failed on {}", program.display()).into())
    }
}
