//! Models, optimizers, local training, and the task built from them.

pub mod correction;
mod descent_options;
pub mod fairness;
pub mod inputs;
pub mod local_training;
pub mod model;
mod model_task;
pub mod optimizer;
pub mod rate;
pub mod steps;
pub mod task;

pub use descent_options::DescentOptions;
pub use model_task::ModelTask;
