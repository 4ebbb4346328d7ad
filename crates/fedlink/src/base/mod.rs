//! The foundation of all other modules: random numbers, units, state, arithmetic, buffers, memory, files,
//! CSV rows.

pub(crate) mod buffers;
pub mod files;
pub mod hex;
pub mod kernels;
pub mod memory;
pub(crate) mod parallel;
pub mod rng;
pub(crate) mod rows;
pub mod state;
pub mod units;
