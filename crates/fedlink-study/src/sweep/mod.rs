//! All runs of an experiment: planned, run side by side, saved, resumed, put together.
//!
//! ```text
//! Experiment ─► Plan ─► Runner::run (events to an Observer) ─► Vec<Done>
//!     ─► Assembled ─► results.csv, summary.json, …
//!                          │ cells/: checkpoints, finished runs      ▲
//!                          └──────────────► stored (merge, verify) ──┘
//! ```

mod assemble;
mod cell;
mod estimate;
mod folder;
mod log;
mod manifest;
mod observer;
mod plan;
mod runner;
mod stored;

pub use assemble::Assembled;
pub use estimate::{Forecast, RunForecast, forecast};
pub use folder::{check_same, freeze, frozen, frozen_any, unfinished};
pub use manifest::{is_complete, write_manifest};
pub use observer::{Event, Observer, Warning};
pub use plan::{Plan, Share};
pub use runner::{Done, Runner};
pub use stored::{Verified, finished_runs, merge, verify};
