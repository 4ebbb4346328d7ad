//! Experiments with [`fedlink`] as files, and what is claimed of them.
//!
//! - [`experiment`]: a file becomes curves, a curve at a seed is a run; figures of the bound and checks of the theorem
//!   are experiments too.
//! - [`presets`]: the experiments that come with the program.
//! - [`claims`]: what somebody asserts of the curves, and whether the measurements bear it out.
//! - [`statistics`]: means with intervals.

#![forbid(unsafe_code)]

pub mod claims;
mod error;
pub mod experiment;
pub mod presets;
pub mod statistics;

pub use error::Error;
