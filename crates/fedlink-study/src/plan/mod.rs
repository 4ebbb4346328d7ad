//! From a question to an answer: which settings reach a goal at the least cost?
//!
//! ```text
//! scenario ─► Space: candidates ─► screen (link budget) ─► race ─► fresh seeds ─► Answer ─► best.toml, …
//! ```
//!
//! A [`Request`] holds the question. [`Planner`] answers it with a [race](crate::race) over runs in a folder,
//! so that a plan that was stopped continues and ends with the same decisions. [`Answer`] is plain data.

mod answer;
mod bench;
mod devices;
mod files;
mod infeasible;
mod insight;
mod journal;
mod planner;
mod request;
mod screen;
mod sensitivity;
mod space;
mod step;
#[cfg(test)]
mod tests;
mod text;
mod vary;
mod weigh;

pub use answer::{
    Answer, CandidateRow, ConditionFact, Cost, CurveFact, GroupFact, KnobFact, Lost, Priced, SensitivityFact,
    Stage, Tie,
};
pub use bench::PlanObserver;
pub use files::{Best, candidates_csv, write_files};
pub use planner::{Planned, Planner, check};
pub use request::{Budget, Constraint, Request, Sign};
pub use screen::Screened;
pub use space::{Axis, Space};
