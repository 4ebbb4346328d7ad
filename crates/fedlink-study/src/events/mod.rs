//! `events.jsonl`: everything that happens in a folder of results, one line per event.
//!
//! Every process that works in the folder appends to the file, so that the file alone is enough to watch the
//! folder, even one that other machines fill. [`Event`] has the fields of a line; [`EventLog`] appends lines;
//! [`EventReader`] reads those that were appended since it read last; [`Study`] is the state after them.

mod event;
mod log;
mod study;

pub use event::{Event, GroupUse, Head, Line, Quantities, RunFacts};
pub use log::{EVENTS, EventLog, EventReader};
pub use study::{Message, State, Study, WatchedProcess, WatchedRun, pace, seconds_left};
