//! fedlink for Python: the extension module `fedlink._fedlink`. Users import the package in `python/fedlink`.
//!
//! Arrays are copied on the way in, so that the interpreter can run on while the library works on them. Every
//! argument is checked here, by name; a bad one raises `ValueError` or `TypeError`.

#![deny(unsafe_code)]
#![expect(clippy::needless_pass_by_value, reason = "the functions are called by generated code")]

mod arguments;
mod arrays;
mod audit;
mod command;
mod config;
mod data;
mod errors;
mod link_budget;
mod links;
mod messages;
mod node;
mod parts;
mod plan;
mod primitives;
mod random;
mod saved;
mod server;
mod simulation;
mod study;
mod system;
mod table;
mod theory;

#[pyo3::pymodule]
mod _fedlink {
    #[pymodule_export]
    use super::audit::audit;
    #[pymodule_export]
    use super::command::command;
    #[pymodule_export]
    use super::data::{Dataset, dataset, split};
    #[pymodule_export]
    use super::errors::DivergedError;
    #[pymodule_export]
    use super::link_budget::{LinkBudget, link_budget};
    #[pymodule_export]
    use super::links::Links;
    #[pymodule_export]
    use super::messages::{Call, Encoded, Grant, Upload};
    #[pymodule_export]
    use super::node::{Device, Encoder, Report};
    #[pymodule_export]
    use super::parts::{Record, Reports, View, task_name};
    #[pymodule_export]
    use super::plan::{PlanOutcome, plan};
    #[pymodule_export]
    use super::primitives::{
        asks, candidates, capacity, decode, dsgd, dsgd_bits, dsgd_dense, encode, gains, largest_q, norm,
        select, split_slots,
    };
    #[pymodule_export]
    use super::server::{Server, check_nodes};
    #[pymodule_export]
    use super::simulation::Simulation;
    #[pymodule_export]
    use super::study::{
        StudyCurve, StudyOutcome, StudyRun, accuracy_svg, check, merge, rerun, run, status, verify,
    };
    #[pymodule_export]
    use super::system::System;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::theory::{bound, bound_plan};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        fedlink_study::choose_instructions().map_err(pyo3::exceptions::PyValueError::new_err)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
