//! A learning task of one's own, for what is not trained by this library.

use crate::data::Dataset;
use crate::record::Evaluation;
use crate::units::DeviceId;
use std::sync::Arc;

/// What devices learn, and how one of them trains. Radio, scheduling, compression, error feedback and aggregation go
/// on around it as they do around the library's own models.
///
/// A result may depend on nothing but θ, the round and the device: a device whose update was not kept is trained a
/// second time in the same round.
///
/// ```
/// use fedlink::learn::task::Task;
/// use fedlink::record::Evaluation;
/// use fedlink::units::DeviceId;
///
/// /// Every device pulls θ half of the way towards its own number.
/// struct Pull;
///
/// impl Task for Pull {
///     fn theta0(&self) -> Vec<f32> {
///         vec![0.0; 4]
///     }
///     fn size_of(&self, _: DeviceId) -> usize {
///         1
///     }
///     fn train(&self, theta: &[f32], _: u64, device: DeviceId, update: &mut [f32]) -> f64 {
///         update.iter_mut().zip(theta).for_each(|(u, t)| *u = 0.5 * (device.0 as f32 - t));
///         f64::from(update[0].abs())
///     }
///     fn evaluate(&self, theta: &[f32]) -> Evaluation {
///         Evaluation { accuracy: 0.0, loss: f64::from(theta[0].abs()) }
///     }
/// }
///
/// # fn main() -> Result<(), fedlink::Error> {
/// let mut config = fedlink::config::Config::default();
/// config.run.rounds = 5;
/// let mut simulation = fedlink::simulation::Simulation::with_parts(&config, Pull, Default::default())?;
/// assert!(simulation.run(&mut ())?.final_loss.unwrap() > 0.0);
/// # Ok(())
/// # }
/// ```
pub trait Task: Send + Sync {
    /// θ(0). Its length is d.
    fn theta0(&self) -> Vec<f32>;

    /// How many samples a device has, at least one; what it counts under `learn.aggregate = "by-size"`.
    fn size_of(&self, device: DeviceId) -> usize;

    /// Local training from `theta` in round `round`, counted from 0: writes Δ to `update` and returns the training
    /// loss. A loss or an update that is not finite ends the run.
    fn train(&self, theta: &[f32], round: u64, device: DeviceId, update: &mut [f32]) -> f64;

    /// How good `theta` is.
    fn evaluate(&self, theta: &[f32]) -> Evaluation;

    /// Whether devices are to train one after the other on the thread that runs the round, not side by side.
    fn in_turn(&self) -> bool {
        false
    }
}

/// What is to be learnt.
pub enum Work {
    /// The configured model, on this data set.
    Dataset(Arc<Dataset>),
    /// A task of one's own; of `[data]` and `[learn]` only the number of devices and `learn.aggregate` matter.
    Own(Box<dyn Task>),
}

impl From<Arc<Dataset>> for Work {
    fn from(dataset: Arc<Dataset>) -> Self {
        Self::Dataset(dataset)
    }
}

impl<T: Task + 'static> From<T> for Work {
    fn from(task: T) -> Self {
        Self::Own(Box::new(task))
    }
}
