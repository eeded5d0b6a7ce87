//! Where readers write: standard output, or a file that is whole or isn't there.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

/// Writes with `fill` to `output`, or to standard output if there is none or it is `-`. A reader that stops
/// reading is no failure.
///
/// A file is filled beside its place, as `NAME.partial`, and takes it when it is whole. It is readable by its owner
/// alone, as a trace is, since it tells the same. What isn't a plain file, such as a pipe, is written to as it is.
///
/// # Errors
/// If nothing can be written there, or it is one of the traces that are read.
pub(super) fn write(
    output: Option<&Path>,
    traces: &[PathBuf],
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let Some(path) = output.filter(|path| *path != Path::new("-")) else {
        let written = fill_all(io::stdout().lock(), fill);
        return match written {
            // `rtrace report | head` is no failure.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(error).context("cannot write to standard output")
            }
            _ => Ok(()),
        };
    };
    let cannot = || format!("cannot write {}", path.display());
    let there = match fs::metadata(path) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(cannot),
    };
    if let Some(there) = &there {
        if there.is_dir() {
            bail!("{}: it is a folder", cannot());
        }
        let is_same = |trace: &PathBuf| {
            fs::metadata(trace).is_ok_and(|t| (t.dev(), t.ino()) == (there.dev(), there.ino()))
        };
        if traces.iter().any(is_same) {
            bail!("{}: it is the trace that is read", cannot());
        }
        if !there.is_file() {
            let opened = OpenOptions::new().write(true).open(path);
            return opened
                .and_then(|place| fill_all(place, fill))
                .with_context(cannot);
        }
    }
    let partial = Partial::new(path).with_context(cannot)?;
    partial.fill(path, fill).with_context(cannot)
}

fn fill_all(
    writer: impl Write,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(writer);
    fill(&mut out)?;
    out.flush()
}

/// A file that goes away unless it takes its place.
struct Partial {
    file: File,
    path: PathBuf,
}

impl Partial {
    fn new(path: &Path) -> io::Result<Self> {
        let mut name = path
            .file_name()
            .ok_or(ErrorKind::InvalidFilename)?
            .to_owned();
        name.push(".partial");
        let path = path.with_file_name(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = match options.open(&path) {
            // One that a reader left that was killed; a link is removed, not followed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                fs::remove_file(&path)?;
                options.open(&path)?
            }
            opened => opened?,
        };
        Ok(Self { file, path })
    }

    fn fill(
        &self,
        place: &Path,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let written = fill_all(&self.file, fill).and_then(|()| fs::rename(&self.path, place));
        if written.is_err() {
            // The failure to write is what is told of.
            let _left = fs::remove_file(&self.path);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out.csv");
        let trace = folder.path().join("t.parquet");
        fs::write(&trace, "trace").unwrap();
        let traces = [folder.path().join("other"), trace.clone()];
        let fails = write(Some(&place), &traces, |out| {
            out.write_all(b"half")?;
            Err(ErrorKind::StorageFull.into())
        });
        let said = format!("{:#}", fails.unwrap_err());
        assert!(said.starts_with("cannot write "), "{said}");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names(), 1);
        // What is in the way of the other file goes, and is not followed.
        std::os::unix::fs::symlink(&trace, folder.path().join("out.csv.partial")).unwrap();
        for text in ["one", "two"] {
            write(Some(&place), &traces, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), text);
        }
        assert_eq!(names(), 2);
        assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&trace).unwrap(), "trace");
    }

    #[test]
    fn neither_the_trace_nor_a_folder_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t.parquet");
        fs::write(&trace, "trace").unwrap();
        let traces = [folder.path().join("other"), trace.clone()];
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&trace, &link).unwrap();
        for place in [&trace, &link, &folder.path().to_owned(), &trace.join("x")] {
            let refused = write(Some(place), &traces, |out| out.write_all(b"x"));
            assert!(refused.is_err(), "{}", place.display());
        }
        assert_eq!(fs::read_to_string(&trace).unwrap(), "trace");
    }
}
