//! The file system of a virtual machine: this machine's own programs and libraries at their own paths, and what is
//! tested, so that every kernel runs the very files that are tested here.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::BufWriter,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

use super::cpio::Archive;
use crate::process;

/// Folders that are links on every current system.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// Parts of Python's library that no test uses.
const LEFT_OUT: [&str; 10] = [
    "__pycache__",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "lib2to3",
    "ensurepip",
    "pydoc_data",
    "turtledemo",
    "dist-packages",
];

#[derive(Debug)]
enum Entry {
    Folder,
    /// Content of a file of this machine.
    File(PathBuf),
    /// Content and permissions.
    Bytes(Vec<u8>, u32),
    Link(PathBuf),
}

/// What an image will hold, by path.
#[derive(Debug)]
pub(super) struct Image {
    entries: BTreeMap<PathBuf, Entry>,
}

impl Image {
    /// Nothing but empty folders.
    pub(super) fn new() -> Self {
        let mut image = Self {
            entries: BTreeMap::new(),
        };
        for name in MERGED {
            let to = Path::new("usr").join(name);
            image.entries.insert(name.into(), Entry::Link(to.clone()));
            image.folder(&to);
        }
        for name in [
            "dev", "etc", "mnt", "proc", "root", "run", "scratch", "sys", "tmp",
        ] {
            image.folder(Path::new(name));
        }
        image
    }

    /// A file with this content.
    pub(super) fn bytes(&mut self, path: &str, content: &[u8], permissions: u32) {
        let entry = Entry::Bytes(content.to_owned(), permissions);
        self.put(Path::new(path), entry);
    }

    /// A file or folder of this machine with all that is in it, at its own path. Links are followed; what can't be
    /// read is left out.
    pub(super) fn tree(&mut self, path: &Path, left_out: &[&str]) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if left_out.contains(&name.as_ref()) {
            return;
        }
        if !path.is_dir() {
            if path.exists() {
                self.put(path, Entry::File(path.to_owned()));
            }
            return;
        }
        self.put(path, Entry::Folder);
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            self.tree(&entry.path(), left_out);
        }
    }

    /// A program of this machine and the libraries that it is linked to.
    ///
    /// # Errors
    /// It isn't there.
    pub(super) fn program(&mut self, name: &str) -> anyhow::Result<()> {
        let path = if name.contains('/') {
            PathBuf::from(name)
        } else {
            process::find(name).with_context(|| format!("there is no program {name}"))?
        };
        ensure!(path.exists(), "there is no {}", path.display());
        self.tree(&path, &[]);
        // Of a program without libraries ldd says nothing of use.
        let said = process::answer(Command::new("ldd").arg(&path)).unwrap_or_default();
        for library in libraries(&said) {
            self.tree(Path::new(library), &[]);
        }
        Ok(())
    }

    /// A program that was built here, as [`Self::program`], but without what only a debugger reads: that is nine tenths of
    /// it, and the image has to fit into the memory of a virtual machine. `scratch`: a folder for the smaller copy.
    ///
    /// # Errors
    /// It isn't there, or can't be copied.
    pub(super) fn built(&mut self, path: &Path, scratch: &Path) -> anyhow::Result<()> {
        self.program(&path.to_string_lossy())?;
        let copy = scratch.join(path.file_name().context("a program without a name")?);
        process::run(
            Command::new("strip")
                .args(["--strip-debug", "-o"])
                .args([&copy, path]),
        )?;
        self.put(path, Entry::File(copy));
        Ok(())
    }

    /// Python with its library.
    ///
    /// # Errors
    /// It isn't there.
    pub(super) fn python(&mut self, program: &str) -> anyhow::Result<()> {
        self.program(program)?;
        let ask = "import sys, sysconfig; print(sysconfig.get_path('stdlib'))";
        let library = process::answer(Command::new(program).args(["-I", "-c", ask]));
        let library = library.with_context(|| format!("{program} doesn't tell its library"))?;
        let library = Path::new(library.trim());
        self.tree(library, &LEFT_OUT);
        for module in fs::read_dir(library.join("lib-dynload"))
            .into_iter()
            .flatten()
            .flatten()
        {
            self.program(&module.path().to_string_lossy())?;
        }
        Ok(())
    }

    fn folder(&mut self, path: &Path) {
        self.put(path, Entry::Folder);
    }

    fn put(&mut self, path: &Path, entry: Entry) {
        let path = place(path);
        let above: Vec<PathBuf> = path.ancestors().skip(1).map(Path::to_owned).collect();
        for folder in above.into_iter().filter(|f| !f.as_os_str().is_empty()) {
            self.entries.entry(folder).or_insert(Entry::Folder);
        }
        self.entries.insert(path, entry);
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// A file can't be read, or there is no room.
    pub(super) fn write(&self, to: &Path) -> anyhow::Result<()> {
        let mut archive = Archive::new(BufWriter::new(File::create(to)?));
        // A folder sorts before what is in it.
        for (path, entry) in &self.entries {
            let name = path.to_str().context("a path that isn't UTF-8")?;
            match entry {
                // Anybody may make files in the folder for that, as everywhere.
                Entry::Folder if name == "tmp" => archive.folder(name, 0o1777)?,
                Entry::Folder => archive.folder(name, 0o755)?,
                Entry::Bytes(content, permissions) => archive.file(name, *permissions, content)?,
                Entry::Link(target) => archive.link(name, &target.to_string_lossy())?,
                Entry::File(source) => {
                    let content =
                        fs::read(source).with_context(|| format!("cannot read {name}"))?;
                    let permissions = fs::metadata(source)?.permissions().mode() & 0o7777;
                    archive.file(name, permissions, &content)?;
                }
            }
        }
        archive.finish()?;
        Ok(())
    }
}

/// Where a path of this machine goes: without the leading `/` and `..`, and below `usr` what is there in truth.
fn place(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    let is_merged = |name: &&str| out.starts_with(name) && out != Path::new(name);
    if MERGED.iter().any(is_merged) {
        Path::new("usr").join(out)
    } else {
        out
    }
}

/// Paths in what ldd prints: `libc.so.6 => /lib/libc.so.6 (0x...)` or `/lib64/ld-linux-x86-64.so.2 (0x...)`.
fn libraries(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_put_where_it_is_in_truth() {
        assert_eq!(place(Path::new("/bin/sh")), Path::new("usr/bin/sh"));
        assert_eq!(
            place(Path::new("/usr/lib/x/../y.so")),
            Path::new("usr/lib/y.so")
        );
        assert_eq!(place(Path::new("/binary/a")), Path::new("binary/a"));
        assert_eq!(place(Path::new("/bin")), Path::new("bin"));
    }

    #[test]
    fn libraries_are_the_paths_in_what_ldd_prints() {
        let said = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x2)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x3)\n\tlibx.so => not found\n";
        assert_eq!(
            libraries(said),
            [
                "/lib/x86_64-linux-gnu/libc.so.6",
                "/lib64/ld-linux-x86-64.so.2"
            ]
        );
    }
}
