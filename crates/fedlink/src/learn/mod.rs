//! Models, optimisers and local training.

pub mod aggregate;
pub mod inputs;
pub mod kernels;
pub mod local_training;
pub mod model;
pub mod optimizer;
pub mod task;
