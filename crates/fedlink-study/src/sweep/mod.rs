//! All runs of an experiment: planned, run side by side, saved, resumed, put together.
//!
//! ```text
//! Experiment ─► Plan ─► freeze ─► Runner::run (events to an Observer) ─► Vec<Done>
//!     ─► Assembled ─► results.csv, …
//!                                    │ cells/: checkpoints, finished runs      ▲
//!                                    └────────► stored (merge, verify, rerun) ─┘   status: how far it is
//! ```

mod assemble;
mod cell;
mod data;
mod estimate;
mod folder;
mod format;
mod log;
mod maker;
mod manifest;
mod observer;
mod plan;
#[cfg(test)]
mod power_cut;
mod progress;
mod rerun;
mod runner;
mod status;
mod stored;

pub use assemble::Assembled;
pub use data::{DataFact, DataFacts};
pub use estimate::{Forecast, RunForecast, forecast, rounds_saved};
pub use folder::{Standing, freeze, frozen, frozen_any, standing, unfinished};
pub use log::LogRounds;
pub use maker::Maker;
pub use manifest::{is_complete, write_manifest};
pub use observer::{Event, Observer, Warning};
pub use plan::{Plan, Share};
pub use progress::Progress;
pub use rerun::{Difference, Rerun, rerun};
pub use runner::{Done, Runner};
pub use status::{RunState, RunStatus, SweepStatus, run_states, status};
pub use stored::{Verified, finished_runs, merge, verify};
/// The readers of the files in a folder, for the fuzz targets.
#[doc(hidden)]
pub use {
    data::{differences, parse_data},
    format::StoredCell,
    manifest::records_complete,
};
