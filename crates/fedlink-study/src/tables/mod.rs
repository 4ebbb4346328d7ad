//! The numbers of runs as values, CSV, JSON and plain text.

pub mod costs;
pub(crate) mod csv;
pub mod groups;
pub mod head;
pub mod link;
mod measured;
pub mod results;
pub mod split;
pub mod summary;
mod text;
