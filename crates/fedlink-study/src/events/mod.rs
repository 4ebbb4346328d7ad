//! `events.jsonl`: everything that happens in a folder of results, one line per event.
//!
//! Every process that works in the folder appends to the file, so that the file alone is enough to watch the
//! folder, even one that other machines fill. [`Event`] has the fields of a line; [`EventLog`] appends lines;
//! [`EventReader`] reads those that were appended since it read last.

mod event;
mod log;

pub use event::{Event, Line, Quantities};
pub use log::{EVENTS, EventLog, EventReader};
