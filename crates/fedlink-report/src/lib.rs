//! The results of experiments: charts, one self-contained HTML page, LaTeX, Parquet.
//!
//! ```text
//! fedlink_study::sweep::Runner::run ─► runs
//!     ─► write_all ─► results.csv, plots/, report.html, …, manifest.json
//! BoundExperiment::run   ─► bound_output   ┐
//! TheoremExperiment::run ─► theorem_output ┴─► TheoryOutput::write
//! ```
//!
//! [`write_all`] is the one function that fills the folder of a sweep; the command and the Python package
//! both call it. A [`chart`] is data; [`figure`], [`latex`] and the page of [`report`] draw it. [`plots`],
//! [`report`], [`latex`] and [`parquet`] can be used alone, too.

#![forbid(unsafe_code)]

pub mod bound_report;
pub mod chart;
mod error;
pub mod figure;
mod file_names;
pub mod latex;
mod looks;
pub mod parquet;
pub mod plan_page;
pub mod plots;
pub mod report;
pub mod theorem_report;
mod theory;
mod write;

pub use error::Error;
pub use theory::{TheoryOutput, bound_output, theorem_output};
pub use write::{WriteOptions, write_all};
