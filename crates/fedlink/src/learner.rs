//! What the devices learn and how: a model of this library on a data set, or a task of one's own.

use crate::config::{Config, ConfigError, validate_dim};
use crate::data::Dataset;
use crate::data::partition::{Partition, partition};
use crate::learn::aggregate::OfSize;
use crate::learn::inputs::{BatchBuffer, Inputs, Split};
use crate::learn::local_training::{LocalTraining, TrainingScratch};
use crate::learn::model::{Init, Score, Workspace, model};
use crate::learn::optimizer::{OptimizerState, optimizer};
use crate::learn::task::{Task, Work};
use crate::pool::Pool;
use crate::record::Evaluation;
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;
use rayon::prelude::*;
use std::sync::Arc;

/// Test samples scored at a time. Fixed, because the order of summation follows it.
const EVALUATION_ROWS: usize = 250;

/// What is learnt, and how one device trains.
pub(crate) enum Learner {
    /// A model of this library.
    Model(Box<ModelTask>),
    /// Anything else.
    Own { task: Box<dyn Task>, theta0: Vec<f32> },
}

/// A model on a data set that is split among the devices.
pub(crate) struct ModelTask {
    dataset: Arc<Dataset>,
    partition: Box<dyn Partition>,
    training: LocalTraining,
    init: Init,
    evaluators: Pool<Evaluator>,
}

struct Evaluator {
    batch: BatchBuffer,
    work: Workspace,
}

impl Learner {
    pub(crate) fn new(config: &Config, work: Work) -> Result<Self, ConfigError> {
        match work {
            Work::Dataset(dataset) => Ok(Self::Model(Box::new(ModelTask::new(config, dataset)?))),
            Work::Own(task) => {
                let theta0 = task.theta0();
                if let Some(i) = theta0.iter().position(|weight| !weight.is_finite()) {
                    return Err(ConfigError::new("task", format!("θ(0) is {} in entry {i}", theta0[i])));
                }
                if theta0.is_empty() {
                    return Err(ConfigError::new("task", "θ(0) is empty, so there is nothing to learn"));
                }
                validate_dim("task", theta0.len())?;
                Ok(Self::Own { task, theta0 })
            }
        }
    }

    /// d.
    pub(crate) fn dim(&self) -> usize {
        match self {
            Self::Model(task) => task.training.model.dim(),
            Self::Own { theta0, .. } => theta0.len(),
        }
    }

    /// θ(0).
    pub(crate) fn theta0(&self) -> Vec<f32> {
        match self {
            Self::Model(task) => {
                let mut stream = stream(task.training.seed, Purpose::Init, 0, 0);
                task.training.model.init(task.init, &mut stream)
            }
            Self::Own { theta0, .. } => theta0.clone(),
        }
    }

    /// What each vector of a device's optimiser starts from; empty if it has none to remember.
    pub(crate) fn starts(&self) -> &[f32] {
        match self {
            Self::Model(task) => task.training.optimizer.starts(),
            Self::Own { .. } => &[],
        }
    }

    /// The optimiser's state of a device that has not trained yet.
    pub(crate) fn fresh_state(&self) -> OptimizerState {
        OptimizerState::filled(self.dim(), self.starts())
    }

    /// The same in memory that is there.
    pub(crate) fn reset(&self, state: &mut OptimizerState) {
        if let Self::Model(task) = self {
            task.training.optimizer.reset(state);
        }
    }

    /// Samples of a device.
    pub(crate) fn size_of(&self, device: DeviceId) -> usize {
        match self {
            Self::Model(task) => task.partition.size_of(device),
            Self::Own { task, .. } => task.size_of(device),
        }
    }

    /// Memory to train in, for a model of this library.
    pub(crate) fn scratch(&self) -> Option<TrainingScratch> {
        match self {
            Self::Model(task) => Some(task.training.scratch()),
            Self::Own { .. } => None,
        }
    }

    /// Whether devices are to train one after the other on the thread that runs the round.
    pub(crate) fn in_turn(&self) -> bool {
        match self {
            Self::Model(_) => false,
            Self::Own { task, .. } => task.in_turn(),
        }
    }

    /// One device's local training: Δ goes to `update`. Returns its loss. `scratch` is of this learner's making.
    pub(crate) fn train(
        &self,
        theta: &[f32],
        (round, device): (u64, DeviceId),
        state: &mut OptimizerState,
        scratch: &mut Option<TrainingScratch>,
        update: &mut [f32],
    ) -> OfSize {
        match self {
            Self::Model(task) => {
                let scratch = scratch.get_or_insert_with(|| task.training.scratch());
                task.partition.samples_of(device, &mut scratch.samples);
                let value = task.training.run(theta, (round, device), state, scratch, update);
                OfSize { value, size: scratch.samples.len() }
            }
            Self::Own { task, .. } => {
                let value = task.train(theta, round, device, update);
                OfSize { value, size: task.size_of(device) }
            }
        }
    }

    /// Accuracy and loss of θ on the test set.
    pub(crate) fn evaluate(&self, theta: &[f32]) -> Evaluation {
        match self {
            Self::Model(task) => task.evaluate(theta),
            Self::Own { task, .. } => task.evaluate(theta),
        }
    }
}

impl ModelTask {
    fn new(config: &Config, dataset: Arc<Dataset>) -> Result<Self, ConfigError> {
        let model = model(config, &dataset)?;
        let inputs = if model.takes_non_zeros() { Inputs::new } else { Inputs::dense };
        let training = LocalTraining {
            model,
            inputs: inputs(Arc::clone(&dataset), config.data.scaling),
            optimizer: optimizer(config),
            steps: config.learn.local_steps,
            batch: config.learn.batch,
            rate: config.rate() as f32,
            seed: config.run.seed,
        };
        let partition = partition(config, &dataset)?;
        Ok(Self { dataset, partition, training, init: config.learn.init, evaluators: Pool::new() })
    }

    fn evaluate(&self, theta: &[f32]) -> Evaluation {
        let LocalTraining { model, inputs, .. } = &self.training;
        let test = &self.dataset.test;
        let make = || Evaluator { batch: BatchBuffer::default(), work: model.workspace(EVALUATION_ROWS) };
        let score = |(chunk, labels): (usize, &[u8])| {
            self.evaluators.with(make, |evaluator| {
                let first = chunk * EVALUATION_ROWS;
                let batch = inputs.gather(Split::Test, first..first + labels.len(), &mut evaluator.batch);
                model.score(theta, batch, &mut evaluator.work)
            })
        };
        let scores: Vec<Score> = test.labels.par_chunks(EVALUATION_ROWS).enumerate().map(score).collect();
        let count = test.len() as f64;
        Evaluation {
            accuracy: scores.iter().map(|score| score.correct).sum::<usize>() as f64 / count,
            loss: scores.iter().map(|score| score.loss).sum::<f64>() / count,
        }
    }
}
