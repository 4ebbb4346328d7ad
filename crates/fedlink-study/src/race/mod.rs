//! A race: many candidates are compared by paired seeds, and fewer and fewer remain.
//!
//! ```text
//! candidates ─► rung: tune step lengths on seeds of their own ─► run on paired seeds ─► drop ─┐
//!                 ▲                                                                           │
//!                 └────── more rounds, more seeds, fewer candidates (and their neighbors) ────┘
//! finalists ─► confirm on fresh seeds, which chose nothing
//! ```
//!
//! A candidate leaves in one of two ways, and its record names which. It is *proven worse* if a paired test
//! rejects "not worse than the leader"; the best candidate is dropped so with at most the stated error rate
//! in the whole race ([`beaten`]). It is *set aside* if the budget does not continue all and others rank
//! higher. Runs of a rung that are too short for the goal are ranked by an easier one, between chance level
//! and the goal ([`LEVELS`]); a test never uses an easier goal.
//!
//! The race schedules [`Trial`]s and reads costs. It does not know what a candidate is: a [`Bench`] does
//! the runs.

mod bench;
mod budget;
mod compare;
mod engine;
#[cfg(test)]
mod synthetic;
#[cfg(test)]
mod tests;

pub use bench::{Arm, Bench, Decision, LEVELS, Observed, Trial, Verdict};
pub use budget::{Purse, Rung, Rungs, Runs};
pub use compare::{Ranking, beaten, level_of, par2, ranking};
pub use engine::{CONFIRM_SEEDS, Ended, Finished, Race, TUNE_SEEDS};
