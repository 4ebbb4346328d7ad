//! Folders of results as a live page: a small, read-only web server.
//!
//! ```text
//! events.jsonl ─► EventReader ─► Study ─► fedlink_report::report::live_parts ─► server-sent events ─► page
//! ```
//!
//! The server has four addresses: the page, its style, its script and its events. None of them names a file,
//! so that nothing but what the events of the folders say can be read. It reads the folders only while a page
//! is open, and of their events only those that were appended.

#![forbid(unsafe_code)]

mod access;
mod feed;
mod serve;

pub use access::Access;
pub use serve::{Server, Stop};
