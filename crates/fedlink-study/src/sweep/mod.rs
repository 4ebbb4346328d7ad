//! The runs of an experiment: planned, done side by side, saved, resumed, put together.
//!
//! ```text
//! Experiment::expand ─► Sweep ─► Plan ─► freeze ─► Runner::run (events to an Observer) ─► Vec<Done>
//!     ─► Assembled ─► results.csv, …
//!                                    │ runs/: checkpoints, finished runs       ▲
//!                                    └────────► (merge, verify, rerun) ────────┘   status: the progress
//! ```

mod assemble;
mod check;
mod data;
mod estimate;
mod events;
mod freeze;
mod log;
mod manifest;
mod observer;
mod plan;
#[cfg(test)]
mod power_cut;
mod process;
mod progress;
mod register;
mod rerun;
mod run_files;
mod runner;
mod sources;
mod status;
mod stored_run;
mod twice;
mod verify;

pub use assemble::{Assembled, RoundTable};
pub use check::{check_part, own_table};
pub use data::{DataFact, DataFacts};
pub use estimate::{Forecast, RunForecast, forecast, rounds_saved};
pub use events::RunEvents;
pub use freeze::{FolderState, folder_state, freeze, frozen, has_all_runs, unfinished};
pub use log::{LogRounds, LogSeal};
pub use manifest::{is_complete, write_manifest};
pub use observer::{Event, Observer, Warning};
pub use plan::{Plan, Share};
pub use process::Process;
pub use progress::Progress;
pub use rerun::{Difference, Rerun, rerun};
pub use runner::{Done, Runner};
pub use status::{CurveProgress, GoalProgress, RunState, RunStatus, SweepStatus, run_states, status};
pub use twice::{Irreproducible, make_twice, note_irreproducible};
pub use verify::{Verified, finished_runs, merge, verify};
/// The readers of the files in a folder, for the fuzz targets.
#[doc(hidden)]
pub use {
    data::{differences, parse_data},
    manifest::records_complete,
    stored_run::StoredRun,
};
