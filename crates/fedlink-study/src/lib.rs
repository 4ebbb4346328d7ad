//! Experiments with [`fedlink`] as files, and what is claimed of them.
//!
//! ```text
//! file or preset ─► AnyExperiment ─► Simulation
//!     ─► sweep::Plan ─► sweep::Runner ─► sweep::Assembled ─► tables
//!                                 ├► Bound      ─► BoundExperiment::run           ─► panels and claims
//!                                 └► Theorem    ─► TheoremExperiment::run         ─► checks
//! ```
//!
//! - [`experiment`]: a file becomes curves, a curve at a seed is a run; figures of the bound and checks of
//!   the theorem are experiments too. [`presets`] come with the program.
//! - [`sweep`]: all runs of an experiment, planned, run, saved, resumed, shared out, merged and verified.
//!   Whoever starts them watches through an [`Observer`](sweep::Observer) and stops them through a closure.
//! - [`results`], [`verdicts`], [`split`]: what came out, as values, CSV, JSON and plain tables.
//! - [`claims`]: what somebody asserts of the curves, and whether the measurements
//!   bear it out; [`statistics`].
//! - [`survey`]: the link budget of a configuration, without training anything.
//! - [`output`]: the folder that all of it is written to. `fedlink_report::write_all`
//!   fills it, figures included.
//!
//! Nothing here writes to a terminal, and [`data_folders`] alone reads the environment.
//!
//! ```
//! use fedlink::parts::Parts;
//! use fedlink_study::experiment::Experiment;
//! use fedlink_study::sweep::{Assembled, Plan, Runner, freeze};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut experiment = Experiment::open("demo")?;
//! for (key, value) in [("learn.model", "softmax"), ("run.rounds", "2"), ("schedule.policy", "bc")] {
//!     experiment.set(key, value)?;
//! }
//! let plan = Plan::new(experiment, &fedlink_study::data_folders(None), &Parts::default())?;
//! let folder = tempfile::tempdir()?;
//! freeze(folder.path(), &plan)?;
//! let pool = rayon::ThreadPoolBuilder::new().build()?;
//! let mut runner = Runner::new(&plan, folder.path(), &pool);
//! runner.checkpoint_every = 10;
//! let runs = runner.run(&plan.longest_first())?;
//! println!("{}", Assembled::new(&plan, &runs)?.text());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod claims;
pub mod costs;
mod disk;
mod environment;
mod error;
#[doc(hidden)]
pub mod example;
pub mod experiment;
mod folders;
mod length;
pub mod link;
mod lock;
mod measured;
mod names;
pub mod output;
pub mod presets;
pub mod results;
pub mod split;
pub mod statistics;
pub mod summary;
pub mod survey;
pub mod sweep;
pub mod table;
pub mod verdicts;

pub use environment::choose_instructions;
pub use error::Error;
pub use folders::data_folders;
