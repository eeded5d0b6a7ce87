//! A small file system of its own, to be filled or broken.

use std::{os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use crate::victims::victim;

/// A mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct Disk {
    folder: TempDir,
}

impl Disk {
    /// One in memory, of this many KiB.
    ///
    /// # Errors
    /// It can't be mounted.
    pub fn in_memory(kib: u32) -> anyhow::Result<Self> {
        let disk = Self {
            folder: tempfile::tempdir()?,
        };
        let options = format!("size={kib}k");
        disk.mount(&["-t", "tmpfs", "-o", &options, "tmpfs"])?;
        Ok(disk)
    }

    /// One that has no extended attributes (ramfs, which every kernel has).
    ///
    /// # Errors
    /// It can't be mounted.
    pub fn without_attributes() -> anyhow::Result<Self> {
        Self::with(&["-t", "ramfs", "ramfs"])
    }

    /// One whose files give no rights.
    ///
    /// # Errors
    /// It can't be mounted.
    pub fn nosuid() -> anyhow::Result<Self> {
        Self::with(&["-t", "tmpfs", "-o", "nosuid", "tmpfs"])
    }

    /// One that can only be read.
    ///
    /// # Errors
    /// It can't be mounted.
    pub fn read_only() -> anyhow::Result<Self> {
        Self::with(&["-t", "tmpfs", "-o", "ro", "tmpfs"])
    }

    /// Anybody may come to it.
    fn with(what: &[&str]) -> anyhow::Result<Self> {
        let disk = Self {
            folder: tempfile::tempdir()?,
        };
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(disk.folder.path(), open)?;
        disk.mount(what)?;
        Ok(disk)
    }

    /// One of ext4 in a file, of 8 MiB.
    ///
    /// # Errors
    /// It can't be made or mounted: no `mkfs.ext4`, or no loop devices.
    pub fn in_a_file() -> anyhow::Result<Self> {
        let disk = Self {
            folder: tempfile::tempdir()?,
        };
        let image = disk.image();
        std::fs::File::create(&image)?.set_len(8 << 20)?;
        run(Command::new("mkfs.ext4").arg("-q").arg(&image))?;
        disk.mount_again()?;
        Ok(disk)
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    fn mount(&self, what: &[&str]) -> anyhow::Result<()> {
        std::fs::create_dir_all(self.path())?;
        run(Command::new("mount").args(what).arg(self.path()))
    }

    /// Every access fails from now on; what was written is safe.
    ///
    /// # Errors
    /// It isn't one in a file.
    pub fn shut_down(&self) -> anyhow::Result<()> {
        run(Command::new(victim("shut_down_fs")).arg(self.path()))
    }

    /// What the kernel does by itself after an error: from now on it can only be read.
    ///
    /// # Errors
    /// It isn't one in a file.
    pub fn abort(&self) -> anyhow::Result<()> {
        run(Command::new("mount")
            .args(["-o", "remount,abort"])
            .arg(self.path()))
    }

    /// Fills it to its last byte.
    pub fn fill(&self) {
        // It fails when there is no room any more: that is the point.
        let _full = std::fs::write(self.path().join("filler"), vec![1; 64 << 20]);
    }

    /// Mounts the file again, as after a restart.
    ///
    /// # Errors
    /// It can't be mounted.
    pub fn mount_again(&self) -> anyhow::Result<()> {
        // It isn't mounted the first time.
        let _not_mounted = run(Command::new("umount").arg(self.path()));
        let image = self.image();
        let image = image.to_str().context("a path that isn't UTF-8")?;
        self.mount(&["-o", "loop", image])
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _gone = run(Command::new("umount").arg("--lazy").arg(self.path()));
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
