//! The output folder: its files, the disk below them, and the locks on them.

pub(crate) mod disk;
pub(crate) mod lock;
pub(crate) mod names;
pub mod output;
pub(crate) mod own;
