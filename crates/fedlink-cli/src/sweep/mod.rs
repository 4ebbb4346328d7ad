//! All runs of an experiment: planned, run side by side, saved, taken up again, put together.

mod assemble;
mod cell;
mod estimate;
mod folder;
mod log;
mod manifest;
mod plan;
mod runner;

pub use assemble::{Extras, assemble, finished_cells};
pub use estimate::dry_run;
pub use folder::{check_same, freeze, frozen, unfinished};
pub use plan::{Plan, Share};
pub use runner::Runner;
