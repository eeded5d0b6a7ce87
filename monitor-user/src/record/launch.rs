//! Starts the command so that nothing of it is missed and nothing of the recorder is recorded.
//!
//! The child is forked while the recorder has one thread, and waits on a pipe until the kernel side
//! knows it. It leaves by itself if the recorder dies before. Whatever exec says comes back on a
//! second pipe. Both are closed by a successful exec, so the command inherits nothing.

use std::{
    ffi::{CString, OsStr, OsString},
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags, OFlag},
    libc,
    sys::{
        prctl,
        resource::{Resource, getrlimit, setrlimit},
    },
    unistd::{
        AccessFlags, ForkResult, Gid, Pid, Uid, faccessat, fork, pipe2, setgid, setgroups, setuid,
    },
};
use thiserror::Error;

use super::RecordError;
use crate::host::{
    sigpipe,
    user::{Invoker, entry},
};

/// What the child reports to have failed.
const IDENTITY: u8 = 1;
const EXEC: u8 = 2;

const SHELL: &std::ffi::CStr = c"/bin/sh";

/// Why the command couldn't be started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// There is no such program. Exit status 127, as `env` and `timeout` have it.
    #[error("{}: command not found", .0.display())]
    NotFound(PathBuf),
    /// It is there, but the system doesn't run it. Exit status 126; 127 if what it names as its
    /// interpreter isn't there.
    #[error("cannot run {}: {}", path.display(), plain(.source))]
    NotExecutable {
        /// The program.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A word of the command contains a NUL.
    #[error("a word of the command contains a NUL byte")]
    Nul,
}

/// What the system said, without the number that Rust adds.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or(&text)
        .to_lowercase()
}

/// A command whose program has been found.
pub struct Command {
    path: CString,
    identity: Option<Identity>,
    /// Before 5.11 loading BPF programs raises it: the command gets what the caller had.
    memlock: Option<(u64, u64)>,
    no_new_privileges: bool,
    argv: Vec<CString>,
    envp: Vec<CString>,
    /// For a file that is neither a program nor has an interpreter line: what a shell would do.
    shell_argv: Vec<CString>,
}

impl Command {
    /// Looks the program up in the `PATH` of the command's environment, as execvp does. With an
    /// invoker, the command gets that user's rights.
    ///
    /// # Errors
    /// If there is none, or none that may be run.
    pub fn find(
        words: &[OsString],
        environment: &[(OsString, OsString)],
        invoker: Option<&Invoker>,
    ) -> Result<Self, LaunchError> {
        let search = environment
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.as_os_str());
        let name = words
            .first()
            .ok_or_else(|| LaunchError::NotFound(PathBuf::new()))?;
        let find = || look_up(name, search);
        // Where root's rights differ from the user's, the user's count.
        let path = invoker.map_or_else(find, |invoker| invoker.with_rights(find))?;
        let path = c_string(path.as_os_str())?;
        let argv = words
            .iter()
            .map(|word| c_string(word))
            .collect::<Result<Vec<_>, _>>()?;
        let envp = environment
            .iter()
            .map(|(name, value)| c_string(&entry(name, value)))
            .collect::<Result<Vec<_>, _>>()?;
        let identity = invoker.map(Identity::new);
        let shell_argv = [SHELL.to_owned(), path.clone()]
            .into_iter()
            .chain(argv.iter().skip(1).cloned())
            .collect();
        Ok(Self {
            path,
            identity,
            memlock: getrlimit(Resource::RLIMIT_MEMLOCK).ok(),
            no_new_privileges: false,
            argv,
            envp,
            shell_argv,
        })
    }

    /// Nothing that the command executes can gain privileges, as setuid programs do.
    #[must_use]
    pub fn without_new_privileges(mut self) -> Self {
        self.no_new_privileges = true;
        self
    }

    /// Forks the child that will become the command. The recorder must have one thread.
    pub(super) fn fork(self) -> Result<Child, RecordError> {
        let pipe = || {
            pipe2(OFlag::O_CLOEXEC)
                .map_err(|error| RecordError::system("cannot make a pipe", error))
        };
        let (gate_read, gate_write) = pipe()?;
        let (failure_read, failure_write) = pipe()?;
        let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
            list.iter()
                .map(|word| word.as_ptr())
                .chain([std::ptr::null()])
                .collect()
        };
        let plan = Plan {
            path: &self.path,
            argv: pointers(&self.argv),
            envp: pointers(&self.envp),
            shell_argv: pointers(&self.shell_argv),
            identity: self.identity.as_ref(),
            memlock: self.memlock,
            no_new_privileges: self.no_new_privileges,
        };
        #[expect(
            unsafe_code,
            reason = "no safe interface gives the child's pid before its exec"
        )]
        // SAFETY: there is one thread, and the child only makes system calls.
        let forked = unsafe { fork() };
        let forked = forked.map_err(|error| RecordError::system("cannot fork", error))?;
        match forked {
            ForkResult::Parent { child } => Ok(Child {
                pid: child,
                gate: gate_write,
                failure: failure_read,
                path: self.path,
            }),
            ForkResult::Child => {
                drop((gate_write, failure_read));
                plan.become_command(&gate_read, &failure_write)
            }
        }
    }
}

/// Whom the command runs as.
struct Identity {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl Identity {
    fn new(invoker: &Invoker) -> Self {
        Self {
            uid: invoker.uid,
            gid: invoker.gid,
            groups: invoker.groups.clone(),
        }
    }

    /// Gives root up for good. In this order: without root, groups can't be set any more.
    fn take(&self) -> nix::Result<()> {
        setgroups(&self.groups)?;
        setgid(self.gid)?;
        setuid(self.uid)
    }
}

/// What exec gets, laid out before the fork.
struct Plan<'a> {
    path: &'a CString,
    argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
    shell_argv: Vec<*const libc::c_char>,
    identity: Option<&'a Identity>,
    memlock: Option<(u64, u64)>,
    no_new_privileges: bool,
}

impl Plan<'_> {
    /// The child's way to the command: wait, exec, report a failure, leave.
    #[expect(
        unsafe_code,
        reason = "exec with argument lists that were laid out before the fork"
    )]
    fn become_command(&self, gate: &OwnedFd, failure: &OwnedFd) -> ! {
        let mut byte = [0_u8];
        let opened = nix::unistd::read(gate, &mut byte);
        // SAFETY: system calls with pointers to live, NUL-terminated lists.
        unsafe {
            if opened != Ok(1) {
                // The recorder is gone.
                libc::_exit(125);
            }
            let (stage, errno) = self.try_exec();
            let [a, b, c, d] = (errno as i32).to_ne_bytes();
            let report = [stage, a, b, c, d];
            libc::write(failure.as_raw_fd(), report.as_ptr().cast(), report.len());
            libc::_exit(127)
        }
    }

    /// Returns only if that isn't possible, with what failed and why.
    #[expect(unsafe_code, reason = "see become_command")]
    fn try_exec(&self) -> (u8, Errno) {
        if let Some((soft, hard)) = self.memlock {
            // Only lower than it is now, so it can't be refused.
            let _lowered = setrlimit(Resource::RLIMIT_MEMLOCK, soft, hard);
        }
        if self.no_new_privileges
            && let Err(error) = prctl::set_no_new_privs()
        {
            return (IDENTITY, error);
        }
        if let Some(Err(error)) = self.identity.map(Identity::take) {
            return (IDENTITY, error);
        }
        // SAFETY: system calls with pointers to live, NUL-terminated lists.
        unsafe {
            // Rust's start-up ignores it.
            if !sigpipe::was_ignored() {
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            }
            libc::execve(self.path.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr());
            if Errno::last() == Errno::ENOEXEC {
                libc::execve(SHELL.as_ptr(), self.shell_argv.as_ptr(), self.envp.as_ptr());
            }
        }
        (EXEC, Errno::last())
    }
}

/// The forked child.
pub(super) struct Child {
    pub(super) pid: Pid,
    gate: OwnedFd,
    failure: OwnedFd,
    path: CString,
}

impl Child {
    /// Lets the child execute the command; returns when it has.
    pub(super) fn release(self) -> Result<Pid, RecordError> {
        let mut gate = std::fs::File::from(self.gate);
        let mut failure = std::fs::File::from(self.failure);
        gate.write_all(b"x")
            .map_err(|error| RecordError::system("cannot start the command", error))?;
        drop(gate);
        let mut report = [0_u8; 5];
        // End of file: exec has closed the pipe, or the child was killed before.
        match failure.read_exact(&mut report) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(self.pid),
            Err(error) => Err(RecordError::system(
                "cannot learn whether the command runs",
                error,
            )),
            Ok(()) => {
                // The child leaves by itself; its status says nothing more than this error.
                let _reaped = nix::sys::wait::waitpid(self.pid, None);
                let [stage, errno @ ..] = report;
                let source = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
                if stage == IDENTITY {
                    return Err(RecordError::system(
                        "cannot become the user who called sudo",
                        source,
                    ));
                }
                let path = PathBuf::from(OsStr::from_bytes(self.path.as_bytes()));
                Err(LaunchError::NotExecutable { path, source }.into())
            }
        }
    }
}

fn c_string(text: &OsStr) -> Result<CString, LaunchError> {
    CString::new(text.as_bytes()).map_err(|_nul| LaunchError::Nul)
}

/// Finds a program as execvp does: a name with a slash is a path, another is looked for in each
/// folder of `PATH`; a file there that may not be run is remembered for the message.
fn look_up(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, LaunchError> {
    let not_found = || LaunchError::NotFound(PathBuf::from(name));
    if name.is_empty() {
        return Err(not_found());
    }
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return check(&file)
            .map(|()| file.clone())
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => not_found(),
                _ => LaunchError::NotExecutable { path: file, source },
            });
    }
    let default = OsStr::new("/usr/local/bin:/usr/bin:/bin");
    let mut refused = None;
    for folder in std::env::split_paths(path.unwrap_or(default)) {
        let folder = if folder.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            folder
        };
        let file = folder.join(name);
        match check(&file) {
            Ok(()) => return Ok(file),
            Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
                refused.get_or_insert(LaunchError::NotExecutable { path: file, source });
            }
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(not_found))
}

/// Whether a file can be executed.
fn check(file: &Path) -> io::Result<()> {
    if file.metadata()?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    faccessat(AT_FDCWD, file, AccessFlags::X_OK, AtFlags::AT_EACCESS).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(folder: &Path, name: &str, mode: u32) {
        let path = folder.join(name);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_first_executable_file_in_path_is_taken() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        file(first.path(), "tool", 0o644);
        file(second.path(), "tool", 0o755);
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        assert_eq!(
            look_up(OsStr::new("tool"), Some(&path)).unwrap(),
            second.path().join("tool")
        );
    }

    #[test]
    fn what_cannot_be_run_is_told_apart_from_what_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        file(folder.path(), "notes", 0o644);
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let path = folder.path().as_os_str();
        for name in ["notes", "sub"] {
            let by_name = look_up(OsStr::new(name), Some(path));
            assert!(
                matches!(by_name, Err(LaunchError::NotExecutable { .. })),
                "{name}"
            );
            let by_path = look_up(folder.path().join(name).as_os_str(), None);
            assert!(
                matches!(by_path, Err(LaunchError::NotExecutable { .. })),
                "{name} by path"
            );
        }
        for name in ["", "nothing", "./nothing", "notes/below"] {
            let result = look_up(OsStr::new(name), Some(path));
            assert!(matches!(result, Err(LaunchError::NotFound(_))), "{name:?}");
        }
    }

    #[test]
    fn messages_are_one_plain_line() {
        let error = LaunchError::NotExecutable {
            path: "x".into(),
            source: io::Error::from_raw_os_error(libc::EACCES),
        };
        assert_eq!(error.to_string(), "cannot run x: permission denied");
        assert_eq!(
            LaunchError::NotFound("y".into()).to_string(),
            "y: command not found"
        );
    }
}
