//! The parts of `docs/adding-parts.md`, which are also in the lists of the contract tests.

pub mod nesterov;
pub mod pf;
pub mod received_mean;
pub mod uniform;
pub mod weibull;
