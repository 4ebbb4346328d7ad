//! Experiments with the convergence bound and the theorem as files. Each kind has a parser of its own.

mod bound;
mod file;
mod theorem;

pub use bound::{BoundExperiment, EXPECTATION_SAMPLES, Panel, PanelResult};
pub use theorem::{TheoremExperiment, TheoremResult};
