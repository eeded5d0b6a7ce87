//! Signals that the recorder lives through.

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::RecordError;

/// The terminal's signals go to the command as well, those meant to end it are passed on.
pub(super) struct Signals {
    pub(super) child: Stream,
    pub(super) interrupt: Stream,
    pub(super) quit: Stream,
    pub(super) terminate: Stream,
    pub(super) hangup: Stream,
}

impl Signals {
    /// From here on these signals don't end the recorder.
    pub(super) fn new() -> Result<Self, RecordError> {
        let listen = |kind| {
            signal(kind).map_err(|error| RecordError::system("cannot handle signals", error))
        };
        Ok(Self {
            child: listen(SignalKind::child())?,
            interrupt: listen(SignalKind::interrupt())?,
            quit: listen(SignalKind::quit())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Comes back once somebody wants the recorder itself to end: there is no command that the signal is for.
    pub(super) async fn asked_to_end(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.quit.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
