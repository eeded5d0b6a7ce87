//! Control groups that tests make.

use std::{
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use anyhow::Context;

/// A control group of a test, removed when it is dropped.
#[derive(Debug)]
pub struct Group {
    /// Its folder.
    pub folder: PathBuf,
}

/// Top folder of version 2, or of the hierarchy for pids where version 1 has controllers.
pub fn top() -> &'static Path {
    let pids = Path::new("/sys/fs/cgroup/pids");
    if pids.exists() {
        pids
    } else {
        Path::new("/sys/fs/cgroup")
    }
}

/// Top folder of version 2, if it is mounted.
pub fn top_of_version_2() -> Option<&'static Path> {
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
    places
        .into_iter()
        .find(|folder| folder.join("cgroup.controllers").exists())
}

impl Group {
    /// A group that isn't made yet.
    pub fn planned(top: &Path, name: &str) -> Self {
        Self {
            folder: top.join(format!("rtrace_test_{}_{name}", std::process::id())),
        }
    }

    /// Makes one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn make(top: &Path, name: &str) -> anyhow::Result<Self> {
        let group = Self::planned(top, name);
        group.begin()?;
        Ok(group)
    }

    /// Makes one that was planned.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn begin(&self) -> anyhow::Result<()> {
        fs::create_dir(&self.folder).with_context(|| self.folder.display().to_string())
    }

    /// What a shell runs to move itself into it.
    pub fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.folder.display())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Not before the kernel has forgotten those who were in it.
        for _ in 0..200 {
            if fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            sleep(Duration::from_millis(10));
        }
    }
}
