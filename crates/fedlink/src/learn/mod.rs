//! Models, optimizers, local training, and the task that they make.

pub mod fairness;
pub mod inputs;
pub mod local_training;
pub mod model;
mod model_task;
pub mod optimizer;
pub mod task;

pub use model_task::ModelTask;
