//! An initramfs: an archive of the form that the kernel unpacks at its start (`newc`, Linux
//! Documentation/driver-api/early-userspace/buffer-format.rst).

use std::io::{self, Write};

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// Writes an archive, entry by entry.
#[derive(Debug)]
pub(super) struct Archive<W> {
    out: W,
    entries: u32,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, entries: 0 }
    }

    /// A folder; those above it must be there.
    pub(super) fn folder(&mut self, name: &str, permissions: u32) -> io::Result<()> {
        self.entry(name, FOLDER | permissions, &[])
    }

    pub(super) fn file(&mut self, name: &str, permissions: u32, content: &[u8]) -> io::Result<()> {
        self.entry(name, FILE | permissions, content)
    }

    pub(super) fn link(&mut self, name: &str, to: &str) -> io::Result<()> {
        self.entry(name, LINK | 0o777, to.as_bytes())
    }

    /// Ends the archive.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.entries += 1;
        let too_long = |_| io::Error::other(format!("{name} is too large for an initramfs"));
        let size = u32::try_from(content.len()).map_err(too_long)?;
        let name_size = u32::try_from(name.len() + 1).map_err(too_long)?;
        // Inode, mode, uid, gid, links, time, size, device (2), special device (2), length of the name, checksum.
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        let mut header = b"070701".to_vec();
        for field in fields {
            write!(header, "{field:08X}")?;
        }
        header.extend(name.bytes());
        header.push(0);
        self.padded(&header)?;
        self.padded(content)
    }

    fn padded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        let rest = bytes.len().next_multiple_of(4) - bytes.len();
        self.out.write_all(&[0; 3][..rest])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_contents_end_at_multiples_of_four() {
        let mut archive = Archive::new(Vec::new());
        archive.folder("a", 0o755).unwrap();
        archive.file("a/b", 0o644, b"12345").unwrap();
        archive.link("c", "a/b").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8(bytes).unwrap();
        let starts: Vec<_> = text.match_indices("070701").map(|(at, _)| at).collect();
        // 110 bytes of header, then name with NUL, then content, each padded.
        assert_eq!(starts, [0, 112, 112 + 116 + 8, 112 + 116 + 8 + 112 + 4]);
        assert_eq!(&text[112 + 116..112 + 116 + 5], "12345");
    }
}
