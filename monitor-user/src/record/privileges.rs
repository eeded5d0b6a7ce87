//! What the recorder may do once the kernel side is in place and the command's process is there: as
//! little as possible.
//!
//! Under sudo it becomes the user who called: every file is opened, renamed and removed with that
//! user's rights. Of root's capabilities it keeps the one to pass signals on, before 5.19 the one to
//! read BPF maps, to check itself the one to read what `/proc` keeps for debuggers, and without a user behind sudo those to write where root may write.

use std::{collections::HashSet, fs};

use caps::{CapSet, Capability, securebits};
use nix::{
    sys::prctl,
    unistd::{geteuid, setgroups, setresgid, setresuid},
};

use super::RecordError;
use crate::host::user::Invoker;

/// Far below what others have; not -1000, which would make a recorder that goes wrong immortal.
const OOM_SCORE: i32 = -900;
const OOM_FILE: &str = "/proc/self/oom_score_adj";

/// Gives up what isn't needed any more. There must be one thread, and the command's process, which
/// inherits nothing of this, must exist already.
///
/// `is_verified`: what is recorded will be compared with `/proc/PID/smaps_rollup` of the command and its descendants.
/// `can_read_maps` tells whether BPF maps can be read with what is in effect when it is called.
///
/// # Errors
/// If root's identity can't be given up: to go on with it would be wrong.
pub(super) fn give_up(
    invoker: Option<&Invoker>,
    is_verified: bool,
    can_read_maps: impl Fn() -> bool,
) -> Result<(), RecordError> {
    let score = fs::read_to_string(OOM_FILE).unwrap_or_default();
    if score
        .trim()
        .parse()
        .is_ok_and(|score: i32| score > OOM_SCORE)
    {
        // Needs CAP_SYS_RESOURCE. Without it the recorder is as likely to be killed as others.
        let _unprotected = fs::write(OOM_FILE, OOM_SCORE.to_string());
    }
    let failed = |what| move |error: std::io::Error| RecordError::system(what, error);
    if let Some(user) = invoker {
        become_user(user).map_err(failed("cannot become the user who called sudo"))?;
    }
    let held = caps::read(None, CapSet::Permitted).unwrap_or_default();
    if held.is_empty() {
        return Ok(());
    }
    let mut kept = HashSet::from([Capability::CAP_KILL]);
    if geteuid().is_root() {
        kept.extend([Capability::CAP_DAC_OVERRIDE, Capability::CAP_CHOWN]);
    }
    if is_verified {
        // Who holds fewer capabilities than a process may not look into it, even as the same user
        // (`cap_ptrace_access_check`).
        kept.insert(Capability::CAP_SYS_PTRACE);
    }
    kept.retain(|capability| held.contains(capability));
    let set = |set, kept: &HashSet<Capability>| {
        caps::set(None, set, kept)
            .map_err(std::io::Error::other)
            .map_err(failed("cannot give up capabilities"))
    };
    set(CapSet::Effective, &kept)?;
    // Since 5.19 a map's descriptor is enough (kernel/bpf/syscall.c, `__sys_bpf`).
    if !can_read_maps() && held.contains(&Capability::CAP_BPF) {
        kept.insert(Capability::CAP_BPF);
        set(CapSet::Effective, &kept)?;
    }
    set(CapSet::Permitted, &kept)
}

fn become_user(user: &Invoker) -> Result<(), std::io::Error> {
    // Else the capabilities would go with root's identity.
    securebits::set_keepcaps(true).map_err(std::io::Error::other)?;
    setgroups(&user.groups)?;
    setresgid(user.gid, user.gid, user.gid)?;
    setresuid(user.uid, user.uid, user.uid)?;
    securebits::set_keepcaps(false).map_err(std::io::Error::other)?;
    // The kernel hides /proc/self from who has changed identity; the counters of the BPF programs are
    // read from there. That lets nobody trace the recorder: it has a capability that the user lacks.
    prctl::set_dumpable(true)?;
    Ok(())
}
