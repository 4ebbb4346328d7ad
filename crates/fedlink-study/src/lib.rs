//! Experiments with [`fedlink`] as files: their runs, their results, and the claims about them.
//!
//! ```text
//! file or preset ─► Source ─► Experiment ─► Sweep ─► Plan ─► Runner ─► Assembled ─► tables
//!                         ├─► theory::BoundExperiment   ─► panels and claims
//!                         └─► theory::TheoremExperiment ─► checks
//! ```
//!
//! - [`experiment`]: a file becomes curves, and a curve at a seed is a run. [`presets`] come with the
//!   program.
//! - [`theory`]: figures of the bound and checks of the theorem, with parsers of their own.
//! - [`sweep`]: the runs of an experiment: planned, run, saved, resumed, shared out, merged and verified. The
//!   caller receives the events through an [`Observer`](sweep::Observer) and stops the runs by a closure.
//! - [`results`], [`split`], [`summary`]: the results as values, CSV, JSON and plain tables.
//! - [`goals`]: until when and at what cost, and the statistics of runs that do not get there.
//! - [`events`]: `events.jsonl`, everything that happens in a folder.
//! - [`claims`]: claims about curves, and the verdicts of the measurements; [`statistics`].
//! - [`link_budget`](mod@link_budget): the link budget of a configuration, without training.
//! - [`output`]: the folder of the results. `fedlink_report::write_all` fills it, figures included.
//!
//! Nothing here writes to a terminal. Only [`data_folders`] and [`choose_instructions`] read the environment.
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
//! let sweep = experiment.expand(&Parts::default())?;
//! let plan = Plan::new(sweep, &fedlink_study::data_folders(None))?;
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
mod environment;
mod error;
pub mod events;
#[doc(hidden)]
pub mod example;
pub mod experiment;
mod folder;
pub mod goals;
pub mod link_budget;
pub mod plan;
pub mod presets;
pub mod race;
pub mod statistics;
pub mod sweep;
pub mod table;
mod tables;
pub mod theory;

pub use environment::{choose_instructions, data_folders, host_name};
pub use error::Error;
pub use folder::output;
pub use tables::{costs, groups, head, link, results, split, summary};
