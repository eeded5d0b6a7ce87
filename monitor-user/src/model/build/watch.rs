//! Signals, failed calls and waits of a process, as far as they were watched.

use super::Context;
use crate::{
    event::Sender,
    model::{
        draft::Draft,
        tree::Ending,
        watch::{Blocked, Wait},
    },
};

/// The first version of the record layout that has these records.
const SINCE: u32 = 4;
/// The hook that shows failed calls.
const CALLS: &str = "sys_exit";
/// A signal ends a process within this time, ns, if it isn't known when it was sent.
const DYING_NS: u64 = 50_000_000;

/// Whether failed calls were watched.
pub(super) fn has_calls(context: &Context<'_>) -> bool {
    context.recording.has_hook(CALLS, SINCE)
}

/// Who sent the signal that ended it.
pub(super) fn sender(draft: &Draft) -> Option<Sender> {
    let (end_ns, _, exit) = draft.exit()?;
    let (_, signal) = draft.watched.fatal(exit.signal()?, *end_ns)?;
    Some(signal.sender.clone())
}

/// Whether it did nothing but wait until it was killed, or until the recording ended.
pub(super) fn blocked_at_end(
    draft: &Draft,
    ending: Ending,
    context: &Context<'_>,
) -> Option<Blocked> {
    context.recording.sleep_ns?;
    if ending == Ending::Alive {
        // Those that were there when it was found.
        let first = draft
            .found
            .as_ref()
            .map_or(1, |(_, _, found)| found.threads);
        let births = draft.threads.saturating_add(first);
        return draft
            .watched
            .blocked_still(births.saturating_sub(draft.thread_exits));
    }
    let (end_ns, _, exit) = draft.exit()?;
    let sent = draft.watched.fatal(exit.signal()?, *end_ns);
    let killed_ns = sent.map_or(end_ns.saturating_sub(DYING_NS), |(at, _)| at);
    draft.watched.blocked_until_killed(killed_ns)
}

/// Its longest waits in order of time.
pub(super) fn waits(draft: &Draft) -> Vec<Wait> {
    let mut waits = draft.watched.waits.clone();
    waits.sort_by_key(|wait| (wait.since_ns, wait.tid));
    waits
}
