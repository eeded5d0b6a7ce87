//! Containers as their runtimes write them down: names, ids and pods, without asking any daemon.
//!
//! Who can be found: containers whose id has 64 hexadecimal digits, which Docker, Podman, containerd's Kubernetes side
//! and CRI-O give. Files that can't be read or understood are as if they weren't there: what they would tell is not
//! known then.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::event::Container;

mod choice;
mod docker;
pub mod groups;
mod kubernetes;
mod storage;

pub use choice::choose;

/// Largest file of a runtime that is read, bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Whether that is an id as runtimes give them.
pub fn is_id(text: &str) -> bool {
    text.len() == 64 && is_start_of_id(text)
}

/// Whether an id may begin like that.
fn is_start_of_id(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_digit)
}

/// What is read of a file.
type Parse = fn(&Path, &str) -> Vec<Container>;

/// State of a file: another one has changed.
type Stamp = (u64, u64, i64, i64);

/// All containers that are written down on this host. It remembers what it has read, so that looking again costs
/// little.
#[derive(Debug, Default)]
pub struct Containers {
    read: HashMap<PathBuf, (Stamp, Vec<Container>)>,
}

impl Containers {
    /// Those that are there now, each once, with what all sources know of it. `root` stands for `/`.
    pub fn look(&mut self, root: &Path) -> Vec<Container> {
        let mut all = BTreeMap::new();
        let mut read = HashMap::new();
        let sources = [
            docker::files(root),
            storage::files(root),
            kubernetes::files(root),
        ];
        for (path, parse) in sources.into_iter().flatten() {
            let Some(stamp) = stamp(&path) else {
                continue;
            };
            let known = self.read.remove(&path).filter(|(then, _)| *then == stamp);
            let found = match known {
                Some((_, found)) => found,
                None => content(&path).map_or_else(Vec::new, |text| parse(&path, &text)),
            };
            for container in &found {
                add(&mut all, container);
            }
            read.insert(path, (stamp, found));
        }
        for container in kubernetes::logged(root) {
            add(&mut all, &container);
        }
        self.read = read;
        all.into_values().collect()
    }
}

/// Puts together what sources know of one container; the first ones count for more.
fn add(all: &mut BTreeMap<String, Container>, container: &Container) {
    let Some(id) = container.id.clone().filter(|id| is_id(id)) else {
        return;
    };
    let known = all.remove(&id).unwrap_or_default();
    all.insert(id, known.or(container.clone()));
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

fn content(path: &Path) -> Option<String> {
    let is_small = fs::metadata(path).ok()?.len() <= MOST_BYTES;
    is_small.then(|| fs::read_to_string(path).ok()).flatten()
}

/// Folders in a folder.
fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// A path of the host below what stands for its `/`.
fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Home folders of all users of the host, each once.
fn homes(root: &Path) -> Vec<PathBuf> {
    let users = fs::read_to_string(root.join("etc/passwd")).unwrap_or_default();
    let mut homes: Vec<PathBuf> = users
        .lines()
        .filter_map(|line| line.split(':').nth(5))
        .filter(|home| home.len() > 1 && home.starts_with('/'))
        .map(|home| below(root, home))
        .collect();
    homes.sort();
    homes.dedup();
    homes
}

/// `None` for an empty text.
fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
