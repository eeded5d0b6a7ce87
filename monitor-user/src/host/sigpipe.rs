//! What SIGPIPE did when rtrace was started.
//!
//! Rust's runtime has the signal ignored before `main` begins and doesn't keep what was set before.
//! The command must find it as the caller left it: services of systemd run with it ignored, shells
//! don't. So it is looked at when the system loads the program, which is earlier.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

static WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether SIGPIPE was ignored when this process was started.
pub fn was_ignored() -> bool {
    WAS_IGNORED.load(Ordering::Relaxed)
}

/// Called by the C library before the runtime starts (ELF gABI, "Initialization and Termination
/// Functions").
#[expect(
    unsafe_code,
    reason = "no code of this program runs earlier in any other way"
)]
// SAFETY: a function of C's form, which only asks the system and stores a flag.
#[unsafe(link_section = ".init_array")]
#[used]
static AT_LOAD: extern "C" fn() = look;

#[expect(unsafe_code, reason = "nix has no way to ask without setting")]
extern "C" fn look() {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null pointer asks without setting; the answer is valid if the call says so.
    unsafe {
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr()) == 0 {
            let is_ignored = action.assume_init().sa_sigaction == libc::SIG_IGN;
            WAS_IGNORED.store(is_ignored, Ordering::Relaxed);
        }
    }
}
