//! A process that removes the command's control group once the recorder is gone.
//!
//! Removing it takes root's rights, which the recorder has given up by then. This one keeps the single right that it
//! takes, reads nothing from anybody, and does nothing but wait for the end of the recorder, whatever that is.

use std::{
    ffi::{CString, OsStr},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    time::Duration,
};

use caps::{CapSet, Capability};
use nix::{
    errno::Errno,
    fcntl::OFlag,
    libc,
    sys::signal::SigSet,
    unistd::{ForkResult, Pid, fork, pipe2, setsid},
};

/// How often, and how long after the recorder's end, the group is tried to be removed: its last process may be about
/// to leave. Where one stays, the group does too, until a recorder starts in the same place.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(5);

/// Its descriptors: the pipe that ends with the recorder, and the folder in which the group is.
const END: i32 = 0;
const ABOVE: i32 = 1;

/// The janitor. Dropping it has the group removed, and waits for that.
#[derive(Debug)]
pub(super) struct Janitor {
    pid: Pid,
    recorder_lives: Option<OwnedFd>,
}

impl Janitor {
    /// Starts it. There must be one thread, and the command's process must be there already: else that would keep the
    /// pipe open. `above`: the folder in which the group is.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn start(above: &OwnedFd, group: &OsStr) -> io::Result<Self> {
        let name = CString::new(group.as_bytes())?;
        let (ends, recorder_lives) = pipe2(OFlag::O_CLOEXEC)?;
        #[expect(
            unsafe_code,
            reason = "a process that shares nothing with the recorder"
        )]
        // SAFETY: there is one thread.
        let forked = unsafe { fork() }?;
        match forked {
            ForkResult::Parent { child } => Ok(Self {
                pid: child,
                recorder_lives: Some(recorder_lives),
            }),
            ForkResult::Child => {
                wait_and_remove(&ends, above, &name);
                #[expect(
                    unsafe_code,
                    reason = "nothing of the recorder is to be cleaned up here"
                )]
                // SAFETY: a system call.
                unsafe {
                    libc::_exit(0)
                }
            }
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.recorder_lives = None;
        // It ends by itself, within a tenth of a second.
        let _ended = nix::sys::wait::waitpid(self.pid, None);
    }
}

/// The janitor's life. Failures have nobody to be told to; the next recorder tries again.
#[expect(unsafe_code, reason = "descriptors are put in their places by number")]
fn wait_and_remove(ends: &OwnedFd, above: &OwnedFd, name: &CString) {
    // The terminal's signals are not for it, and it must outlive a recorder whose group of processes is killed.
    let _unblocked = SigSet::all().thread_block();
    let _in_group = setsid();
    let kept = [Capability::CAP_DAC_OVERRIDE].into_iter().collect();
    for set in [CapSet::Effective, CapSet::Permitted] {
        let held = caps::read(None, CapSet::Permitted).unwrap_or_default();
        let _refused = caps::set(None, set, &held.intersection(&kept).copied().collect());
    }
    // SAFETY: system calls on this process's own descriptors. All others are closed: the recorder's would stay open
    // after its end, its BPF programs with them.
    unsafe {
        libc::dup2(ends.as_raw_fd(), END);
        libc::dup2(above.as_raw_fd(), ABOVE);
        libc::syscall(libc::SYS_close_range, 2_u32, u32::MAX, 0_u32);
        let mut byte = 0_u8;
        while libc::read(END, (&raw mut byte).cast(), 1) < 0 && Errno::last() == Errno::EINTR {}
        for _ in 0..TRIES {
            if libc::unlinkat(ABOVE, name.as_ptr(), libc::AT_REMOVEDIR) == 0
                || Errno::last() != Errno::EBUSY
            {
                return;
            }
            std::thread::sleep(BETWEEN);
        }
    }
}
