//! The process tree and its memory: a pure fold over events.
//!
//! [`Model`] takes one event after the other and gives a [`Tree`] at the end. It knows neither BPF
//! nor files, has no clock, and its memory grows with processes and address spaces, never with
//! events. [`Summary`] is the small part of it that a recorder can afford: it forgets the dead.
//!
//! What an address space holds is kept by the number of the address space, not by process: fork
//! fills a copy before the child has a pid, exec builds a new one before the program has changed,
//! vfork and `CLONE_VM` children use their creator's.
//!
//! After a loss the model repairs what follows from other events. What doesn't follow is `None`
//! and a sentence in [`Trust::notes`], never a guess.

mod activity;
pub mod bounds;
mod build;
mod draft;
mod floors;
mod fold;
mod marks;
mod memory;
mod moments;
mod order;
mod polled;
pub mod pools;
pub mod program;
mod sharing;
mod steps;
mod summary;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
#[cfg(test)]
mod tests;
mod threads;
mod timeline;
mod titles;
mod tree;
mod trust;
mod watch;

pub use activity::Stall;
pub use floors::Floors;
pub use fold::Model;
pub use marks::Mark;
pub use moments::{Moment, Moments, Quantity};
pub use polled::Polled;
pub use sharing::InUse;
pub use steps::{Growth, Part, Step};
pub use summary::{Peak, Share, Summary};
pub use threads::ThreadLife;
pub use timeline::{Bucket, Timeline};
pub use titles::Title;
pub use tree::{
    Created, CreatedBy, CreatorFrom, Ending, How, Image, ImageMemory, Parent, Process, Totals,
    Tree, Trust, clone_flag_names,
};
pub use trust::skipped_events;
pub use watch::{Blocked, ExecFailure, Wait};
