//! The table of images: the programs that processes were.

use super::{
    cell::Cell,
    columns::{Column, columns},
};
use crate::report::{ImageReport, ProcessReport};

/// An image with its process and its place there.
pub(super) struct Row<'a> {
    /// The process.
    pub(super) process: &'a ProcessReport,
    /// From 0.
    pub(super) place: u64,
    /// The image.
    pub(super) image: &'a ImageReport,
}

/// Every row, by process and place.
pub(super) fn rows(processes: &[ProcessReport]) -> impl Iterator<Item = Row<'_>> {
    processes.iter().flat_map(|process| {
        (0..).zip(&process.images).map(move |(place, image)| Row {
            process,
            place,
            image,
        })
    })
}

/// A row for each program that a process was.
pub(super) fn columns<'a>() -> Vec<Column<Row<'a>>> {
    columns! { Row<'a>:
    "pid", "the process", |r| r.process.pid.into();
    "process_start_ns", "when the kernel created that", |r| r.process.start_ns.into();
    "image", "which of its programs, from 0", |r| r.place.into();
    "program", "what a person would call it; empty if it is inherited, or the exec was lost",
        |r| r.image.program().as_ref().into();
    "start_ns", "from then", |r| r.image.start_ns.into();
    "end_ns", "until then", |r| r.image.end_ns.into();
    "how", "`inherited` or `exec`", |r| r.image.how.into();
    "filename", "path given to exec", |r| r.image.filename.as_ref().into();
    "comm", "name at its start", |r| r.image.comm.as_ref().into();
    "argv", "arguments; JSON", |r| r.image.argv.as_ref().map_or(Cell::Unknown, Cell::json);
    "argv_bytes", "bytes of all arguments with their NULs", |r| r.image.argv_bytes.into();
    "argv_truncated", "whether `argv` is cut", |r| r.image.argv_truncated.into();
    "cwd", "working directory at its start", |r| r.image.cwd.as_ref().into();
    "peak_rss_bytes", "highest RSS", |r| r.image.peak_rss_bytes.into();
    "peak_rss_bound_bytes", "the true peak differs from that by this at most", |r| r.image.peak_rss_bound_bytes.into();
    "peak_rss_anon_bytes", "of it, anonymous pages", |r| r.image.peak_rss_anon_bytes.into();
    "peak_rss_file_bytes", "of it, pages of files", |r| r.image.peak_rss_file_bytes.into();
    "peak_rss_shmem_bytes", "of it, pages of shared memory", |r| r.image.peak_rss_shmem_bytes.into();
    "peak_rss_ns", "that moment", |r| r.image.peak_rss_ns.into();
    "peak_swap_bytes", "highest swap use", |r| r.image.peak_swap_bytes.into();
    "start_rss_bytes", "RSS that it began with", |r| r.image.start_rss_bytes.into();
    "inherited_anon_bytes", "anonymous pages that it has from its creator's fork", |r| r.image.inherited_anon_bytes.into();
    "anon_grown_bytes", "anonymous pages that came since, those included that have gone again",
        |r| r.image.anon_grown_bytes.into();
    "write_faults", "write faults on pages that were there; each copied a page at most", |r| r.image.write_faults.into();
    "end_rss_bytes", "RSS before exec or end", |r| r.image.end_rss_bytes.into();
    "peak_vms_bytes", "largest address space", |r| r.image.peak_vms_bytes.into();
    "shared_mm_with_pid", "process whose address space it uses", |r| r.image.shared_mm_with.map(|id| id.pid).into();
    "shared_mm_with_start_ns", "when that was created", |r| r.image.shared_mm_with.and_then(|id| id.start_ns).into();
    }.into()
}
