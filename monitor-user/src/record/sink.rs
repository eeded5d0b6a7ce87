//! Where events go, in a thread of its own: writing must not hold up who empties the ring buffer.

use std::sync::mpsc::Receiver;

use crate::event::{Event, Recording};

/// Takes events in order. Runs in a thread of its own.
pub trait Sink: Send {
    /// Takes a batch in order of time.
    fn events(&mut self, events: &[Event]);
    /// Called more than twice a second, with what is known of the recording so far.
    fn tick(&mut self, recording: &Recording);
    /// Called as often while the command has ended and its descendants are waited for: since when, ns since boot.
    fn waiting(&mut self, since_ns: u64);
}

/// What the collector hands over.
pub(super) enum Message {
    /// In order of time.
    Events(Vec<Event>),
    /// See [`Sink::tick`].
    Tick(Box<Recording>),
    /// See [`Sink::waiting`].
    Waiting(u64),
}

/// Hands over what comes, until the collector ends.
pub(super) fn run_sink<S: Sink>(mut sink: S, messages: &Receiver<Message>) -> S {
    while let Ok(message) = messages.recv() {
        match message {
            Message::Events(events) => sink.events(&events),
            Message::Tick(recording) => sink.tick(&recording),
            Message::Waiting(since_ns) => sink.waiting(since_ns),
        }
    }
    sink
}
