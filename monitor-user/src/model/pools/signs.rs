//! What a program's arguments say about its part in a pool.

use crate::model::{
    program,
    tree::{How, Process},
};

/// What Python's libraries start by a command line of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// A process of the start method `spawn`.
    Spawned,
    /// The fork server.
    Forkserver,
    /// The process that removes what others leave behind.
    Tracker,
    /// A worker of loky.
    Loky,
}

/// What the last program of a process is; `None` for anything else, and if its arguments were lost.
///
/// The command lines are those of `Lib/multiprocessing` from CPython 3.4 to 3.14, `spawn.get_command_line`,
/// `forkserver.ensure_running`, `resource_tracker.ensure_running` (`semaphore_tracker` before 3.8), and of loky 2 to
/// 3.5, `loky/backend/popen_loky_posix.py` and `resource_tracker.py`, alone or as a part of joblib. A program frozen by
/// `PyInstaller` or the like calls itself with `--multiprocessing-fork`.
pub(super) fn sign(process: &Process) -> Option<Sign> {
    let image = process.images.last().filter(|i| i.how == How::Exec)?;
    of_arguments(image.argv.as_ref()?)
}

fn of_arguments(argv: &[Vec<u8>]) -> Option<Sign> {
    let mut rest = argv.iter().skip(1).map(Vec::as_slice);
    while let Some(arg) = rest.next() {
        match arg {
            b"-c" => return of_code(rest.next()?, rest.next()),
            b"-m" => {
                let is_loky = rest.next()?.ends_with(b"loky.backend.popen_loky_posix");
                return is_loky.then_some(Sign::Loky);
            }
            b"--multiprocessing-fork" => return Some(Sign::Spawned),
            // Options of Python that take the next argument along.
            b"-W" | b"-X" => drop(rest.next()?),
            [b'-', ..] => {}
            _ => return None,
        }
    }
    None
}

fn of_code(code: &[u8], next: Option<&[u8]>) -> Option<Sign> {
    let module = code.strip_prefix(b"from ")?;
    let end = module.iter().position(|b| *b == b' ')?;
    let (module, rest) = module.split_at(end);
    if !rest.starts_with(b" import ") {
        return None;
    }
    match module {
        b"multiprocessing.spawn" => {
            (next == Some(b"--multiprocessing-fork")).then_some(Sign::Spawned)
        }
        b"multiprocessing.forkserver" => Some(Sign::Forkserver),
        b"multiprocessing.resource_tracker" | b"multiprocessing.semaphore_tracker" => {
            Some(Sign::Tracker)
        }
        module => {
            let is_tracker = module.ends_with(b"loky.backend.resource_tracker")
                || module.ends_with(b"loky.backend.semaphore_tracker");
            is_tracker.then_some(Sign::Tracker)
        }
    }
}

/// Whether a process hands out jobs to others by its nature: a shell, a build tool, a launcher of MPI programs. Its
/// children are jobs or equals, not workers.
pub(super) fn runs_jobs(process: &Process) -> bool {
    let Some(image) = process.program() else {
        return false;
    };
    let called = image.argv.as_ref().and_then(|argv| argv.first());
    let name = called.or(image.filename.as_ref()).map(|n| program::base(n));
    let name = name.map(|n| n.strip_prefix(b"-").unwrap_or(n));
    name.is_some_and(|name| {
        matches!(
            name,
            b"sh"
                | b"bash"
                | b"dash"
                | b"zsh"
                | b"ksh"
                | b"mksh"
                | b"fish"
                | b"tcsh"
                | b"csh"
                | b"busybox"
                | b"make"
                | b"gmake"
                | b"ninja"
                | b"xargs"
                | b"parallel"
                | b"mpirun"
                | b"mpiexec"
                | b"mpiexec.hydra"
                | b"orterun"
                | b"prterun"
                | b"orted"
                | b"prted"
                | b"hydra_pmi_proxy"
                | b"srun"
                | b"slurmstepd"
        )
    })
}

/// What programs of equal workers have in common: file and arguments, numbers taken out. `None` without arguments.
pub(super) fn likeness(process: &Process) -> Option<Vec<u8>> {
    let image = process.images.last().filter(|i| i.how == How::Exec)?;
    let mut out = image.filename.clone()?;
    for arg in image.argv.as_ref()? {
        out.push(0);
        let mut was_digit = false;
        for byte in arg {
            let is_digit = byte.is_ascii_digit();
            if !is_digit {
                out.push(*byte);
            } else if !was_digit {
                out.push(b'#');
            }
            was_digit = is_digit;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(argv: &[&str]) -> Option<Sign> {
        let argv: Vec<Vec<u8>> = argv.iter().map(|a| a.as_bytes().to_vec()).collect();
        of_arguments(&argv)
    }

    #[test]
    fn command_lines_of_pythons_from_3_6_to_3_13() {
        let spawn =
            "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)";
        let py = "/usr/bin/python3";
        for (argv, expected) in [
            (
                &[py, "-c", spawn, "--multiprocessing-fork"][..],
                Sign::Spawned,
            ),
            (
                &[
                    py,
                    "-B",
                    "-X",
                    "dev",
                    "-Wd",
                    "-c",
                    spawn,
                    "--multiprocessing-fork",
                ],
                Sign::Spawned,
            ),
            (
                &["/opt/app", "--multiprocessing-fork", "pipe_handle=7"],
                Sign::Spawned,
            ),
            (
                &[
                    py,
                    "-c",
                    "from multiprocessing.forkserver import main; main(4, 5, ['__main__'], **{})",
                ],
                Sign::Forkserver,
            ),
            (
                &[
                    py,
                    "-c",
                    "from multiprocessing.resource_tracker import main;main(3)",
                ],
                Sign::Tracker,
            ),
            (
                &[
                    py,
                    "-c",
                    "from multiprocessing.semaphore_tracker import main;main(3)",
                ],
                Sign::Tracker,
            ),
            (
                &[
                    py,
                    "-c",
                    "from joblib.externals.loky.backend.resource_tracker import main; main(8, False)",
                ],
                Sign::Tracker,
            ),
            (
                &[
                    py,
                    "-m",
                    "loky.backend.popen_loky_posix",
                    "--process-name",
                    "LokyProcess-1",
                ],
                Sign::Loky,
            ),
            (
                &[
                    py,
                    "-m",
                    "joblib.externals.loky.backend.popen_loky_posix",
                    "--pipe",
                    "9",
                ],
                Sign::Loky,
            ),
        ] {
            assert_eq!(of(argv), Some(expected), "{argv:?}");
        }
    }

    #[test]
    fn lookalikes_are_none_of_them() {
        for argv in [
            &["python3", "pool.py", "--multiprocessing-fork"][..],
            &[
                "python3",
                "-c",
                "from multiprocessing.spawn import spawn_main",
            ],
            &["python3", "-c", "print('from multiprocessing.spawn ')"],
            &[
                "python3",
                "-c",
                "from multiprocessing.spawn_x import y",
                "--multiprocessing-fork",
            ],
            &["python3", "-m", "loky.backend.other"],
            &["grep", "--", "x"],
            &["python3", "-m"],
            &["python3", "-c"],
            &[],
        ] {
            assert_eq!(of(argv), None, "{argv:?}");
        }
    }
}
