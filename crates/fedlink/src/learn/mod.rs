//! Models, optimisers and local training.

pub mod kernels;
pub mod local_training;
pub mod model;
pub mod optimizer;
