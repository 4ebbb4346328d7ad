//! The task of the devices: the extension point for built-in models and for training by other code.

use super::correction::Adjustment;
use super::steps::LocalSteps;
use crate::base::units::{DeviceId, Shape};
use crate::data::Dataset;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The task of the devices, and the training of one of them. Radio, scheduling, compression, error
/// feedback and aggregation do not depend on it.
///
/// A result may depend on the [`Job`] only: unless devices keep state, a device whose update was not kept
/// is trained again in the same round.
///
/// ```
/// use fedlink::learn::task::{Evaluation, Job, Task, TaskError};
/// use fedlink::base::units::DeviceId;
///
/// /// Every device pulls θ half of the way toward its own number.
/// struct Pull;
///
/// impl Task for Pull {
///     fn theta0(&self) -> Vec<f32> {
///         vec![0.0; 4]
///     }
///     fn samples(&self, _: DeviceId) -> usize {
///         1
///     }
///     fn train(&self, job: Job) -> Result<f64, TaskError> {
///         job.update.iter_mut().zip(job.theta).for_each(|(u, t)| *u = 0.5 * (job.device.0 as f32 - t));
///         Ok(f64::from(job.update[0].abs()))
///     }
///     fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError> {
///         Ok(Evaluation::new(0.0, f64::from(theta[0].abs())).with("distance", f64::from(theta[1])))
///     }
/// }
///
/// # fn main() -> Result<(), fedlink::Error> {
/// let mut config = fedlink::spec::Config::default();
/// config.run.rounds = 5;
/// let mut simulation = fedlink::system::simulation::Simulation::of(&config, Pull)?;
/// assert!(simulation.run(|_| ())?.final_loss.unwrap() > 0.0);
/// # Ok(())
/// # }
/// ```
pub trait Task: Send + Sync {
    /// The name of the task in labels and records.
    fn name(&self) -> String {
        let full = std::any::type_name::<Self>();
        full.rsplit("::").next().unwrap_or(full).to_owned()
    }

    /// θ(0). Its length is d.
    fn theta0(&self) -> Vec<f32>;

    /// The number of samples of a device, at least one; its weight under `learn.aggregate = "by-size"`.
    fn samples(&self, device: DeviceId) -> usize;

    /// Local training of one device: writes Δ to `job.update` and returns the training loss. A loss or an
    /// update that is not finite ends the run.
    fn train(&self, job: Job) -> Result<f64, TaskError>;

    /// The accuracy and the loss of `theta`.
    fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError>;

    /// Whether [`Self::training_loss`] is implemented.
    fn has_training_loss(&self) -> bool {
        false
    }

    /// Mean loss of `theta` over the whole training set, for comparisons that no server can make.
    fn training_loss(&self, _theta: &[f32]) -> Result<f64, TaskError> {
        Err(TaskError("it does not give the loss on its training data".into()))
    }

    /// Floating-point operations of one sample in one step, forward and backward; by default 6·d, those of
    /// dense layers (2 for each weight forward, 4 backward).
    fn flops_per_sample(&self) -> f64 {
        6.0 * self.theta0().len() as f64
    }

    /// The layers of θ as matrices, in the order of θ, for compression schemes that use them; empty if θ has
    /// none.
    fn shapes(&self) -> Vec<Shape> {
        Vec::new()
    }

    /// The number of training samples of each class on a device; none if the samples have no classes, or
    /// the task does not provide it. For policies that use labels, which devices then have to disclose,
    /// and for the accuracy of a device with `run.fairness` ([`fairness`](super::fairness)).
    fn label_counts(&self, _device: DeviceId) -> Option<Vec<u32>> {
        None
    }

    /// The training of devices: in parallel on all threads, or in cohorts.
    fn cohorts(&self) -> Cohorts {
        Cohorts::SideBySide
    }

    /// Local training of a cohort, one result for each job; by default one device after the other.
    fn train_cohort(&self, jobs: Vec<Job>) -> Vec<Result<f64, TaskError>> {
        jobs.into_iter().map(|job| self.train(job)).collect()
    }

    /// Vectors of the size of θ that a device keeps between rounds, or none if devices keep no state.
    fn state_vectors(&self) -> Option<usize> {
        None
    }

    /// Whether a device trains in every round, scheduled or not; by default if devices keep state, since
    /// their later updates depend on it.
    fn everyone_trains(&self) -> bool {
        self.state_vectors().is_some()
    }

    /// The local steps of a device in round `t` (from 0), of a task that adds [`Job::adjustment`] to the
    /// gradient of each; none (the default) if it does not, and then `learn.correction` and
    /// `learn.aggregate = "fednova"` are refused.
    fn local_steps(&self, _t: u64, _device: DeviceId) -> Option<LocalSteps> {
        None
    }

    /// The number of test samples, if it is known; a folder of results records it.
    fn test_samples(&self) -> Option<usize> {
        None
    }

    /// The number of classes, if there are any; a claim is not decided by accuracies that a model without
    /// learning reaches.
    fn classes(&self) -> Option<usize> {
        None
    }

    /// Whether the task keeps the states of all devices itself; a checkpoint then has what [`Self::save`]
    /// returns.
    fn keeps_states_itself(&self) -> bool {
        false
    }

    /// The states of all devices, of a task that keeps them itself.
    fn save(&self) -> Result<Vec<u8>, TaskError> {
        Ok(Vec::new())
    }

    /// Restores the states that [`Self::save`] returned.
    fn load(&self, _states: &[u8]) -> Result<(), TaskError> {
        Ok(())
    }
}

/// The training of devices, in parallel or in cohorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cohorts {
    /// By [`Task::train`], on all threads at once.
    SideBySide,
    /// By [`Task::train_cohort`], up to this number of devices at a time, on the thread that runs the
    /// round.
    Of(usize),
}

/// One device's local training.
#[non_exhaustive]
pub struct Job<'a> {
    /// The round, counted from 0.
    pub t: u64,
    /// The device.
    pub device: DeviceId,
    /// θ(t).
    pub theta: &'a [f32],
    /// The device's state between rounds; none if the task keeps no state. Empty before its first
    /// training.
    pub state: Option<&'a mut DeviceState>,
    /// The term that `learn.correction` adds to the gradient of each local step; none for a task without
    /// [`Task::local_steps`].
    pub adjustment: Adjustment<'a>,
    /// Receives Δ = θ_m − θ(t); its previous content is undefined.
    pub update: &'a mut [f32],
    /// May receive the root of the mean squared loss of the samples, for policies that use it; if a task
    /// does not set it, the training loss is used.
    pub rms_loss: &'a mut Option<f64>,
}

/// The losses of a local training.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Losses {
    /// The training loss: the mean over the mini-batches.
    pub mean: f64,
    /// The root of the mean squared loss of the samples.
    pub rms: f64,
}

impl Losses {
    /// A training loss, and the root mean square if it is known; otherwise the loss is used.
    pub fn new(mean: f64, rms: Option<f64>) -> Self {
        Self { mean, rms: rms.unwrap_or(mean) }
    }
}

impl From<f64> for Losses {
    fn from(mean: f64) -> Self {
        Self::new(mean, None)
    }
}

/// The state of a device between rounds, for its task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceState {
    /// Optimizer steps taken so far.
    pub steps: u64,
    /// Vectors of the size of θ: momentum, moments, accumulators.
    pub vectors: Vec<Vec<f32>>,
    /// Anything else.
    pub bytes: Vec<u8>,
}

impl DeviceState {
    /// A state with one vector of `dim` entries per element of `starts`, filled with that element.
    pub fn filled(dim: usize, starts: &[f32]) -> Self {
        let vectors = starts.iter().map(|&start| vec![start; dim]).collect();
        Self { steps: 0, vectors, bytes: Vec::new() }
    }
}

/// The quality of a model: accuracy, loss, and further metrics of the task, by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Evaluation {
    /// Share of right answers on the test set.
    pub accuracy: f64,
    /// Mean loss on the test set.
    pub loss: f64,
    /// The scores of each class; empty if the task does not provide them. `run.fairness` derives metrics
    /// from them ([`fairness`](super::fairness)).
    #[serde(skip)]
    pub classes: Vec<ClassScore>,
    /// Further metrics, in the task's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<(String, f64)>,
}

impl Evaluation {
    /// A test accuracy in 0..=1 and a mean test loss, without further metrics.
    pub fn new(accuracy: f64, loss: f64) -> Self {
        Self { accuracy, loss, classes: Vec::new(), metrics: Vec::new() }
    }

    /// The same with one more metric.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: f64) -> Self {
        self.metrics.push((name.into(), value));
        self
    }
}

/// The quality of a model on the test samples of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassScore {
    /// Right answers.
    pub correct: u64,
    /// Test samples.
    pub samples: u64,
}

impl ClassScore {
    /// The share of right answers; none if there are no samples.
    pub fn accuracy(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.correct as f64 / self.samples as f64)
    }
}

/// The reason why a task could not train or evaluate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TaskError(pub String);

/// The task of a run.
#[derive(Clone)]
#[non_exhaustive]
pub enum Work {
    /// The configured model, on this data set.
    Dataset(Arc<Dataset>),
    /// A custom task; of `[data]` and `[learn]` only the number of devices and the server's keys apply.
    Custom(Arc<dyn Task>),
}

impl From<Arc<Dataset>> for Work {
    fn from(dataset: Arc<Dataset>) -> Self {
        Self::Dataset(dataset)
    }
}

impl From<Arc<dyn Task>> for Work {
    fn from(task: Arc<dyn Task>) -> Self {
        Self::Custom(task)
    }
}

impl<T: Task + 'static> From<T> for Work {
    fn from(task: T) -> Self {
        Self::Custom(Arc::new(task))
    }
}
