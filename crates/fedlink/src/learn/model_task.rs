//! The built-in task: a model of this library on a data set that is split among the devices.

use super::inputs::{BatchBuffer, Split};
use super::local_training::{LocalTraining, TrainingScratch};
use super::model::{Init, Score, Workspace};
use super::optimizer::StateMode;
use super::task::{DeviceState, Evaluation, Job, Task, TaskError};
use crate::data::Dataset;
use crate::data::partition::Partition;
use crate::parallel::prelude::*;
use crate::pool::Pool;
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;
use std::sync::Arc;

/// Test samples scored at a time. Fixed, because the order of summation follows it.
const EVALUATION_ROWS: usize = 250;

/// A model on a data set that is split among the devices.
pub struct ModelTask {
    dataset: Arc<Dataset>,
    partition: Box<dyn Partition>,
    training: LocalTraining,
    init: Init,
    state: StateMode,
    workers: Pool<Worker>,
    evaluators: Pool<Evaluator>,
}

/// What a worker reuses from device to device.
struct Worker {
    scratch: TrainingScratch,
    /// The optimizer's state of a device that keeps none.
    state: DeviceState,
}

struct Evaluator {
    batch: BatchBuffer,
    work: Workspace,
}

impl ModelTask {
    /// The model of `training` on `dataset`, split by `partition`.
    pub fn new(
        dataset: Arc<Dataset>,
        partition: Box<dyn Partition>,
        training: LocalTraining,
        init: Init,
        state: StateMode,
    ) -> Self {
        let (workers, evaluators) = (Pool::new(), Pool::new());
        Self { dataset, partition, training, init, state, workers, evaluators }
    }

    fn worker(&self) -> Worker {
        Worker { scratch: self.training.scratch(), state: self.fresh_state() }
    }

    /// The state of a device that has not trained yet.
    fn fresh_state(&self) -> DeviceState {
        DeviceState::filled(self.training.model.dim(), self.training.optimizer.starts())
    }
}

impl Task for ModelTask {
    fn name(&self) -> String {
        self.dataset.name.clone()
    }

    fn theta0(&self) -> Vec<f32> {
        let mut stream = stream(self.training.seed, Purpose::Init, 0, 0);
        self.training.model.init(self.init, &mut stream)
    }

    fn samples(&self, device: DeviceId) -> usize {
        self.partition.size_of(device)
    }

    fn flops_per_sample(&self) -> f64 {
        self.training.model.flops_per_sample()
    }

    fn train(&self, job: Job) -> Result<f64, TaskError> {
        let Job { t, device, theta, state, update } = job;
        let loss = self.workers.with(
            || self.worker(),
            |worker| {
                let state = if let Some(state) = state {
                    if state.vectors.is_empty() {
                        *state = self.fresh_state();
                    }
                    state
                } else {
                    self.training.optimizer.reset(&mut worker.state);
                    &mut worker.state
                };
                self.partition.samples_of(device, &mut worker.scratch.samples);
                self.training.run(theta, (t, device), state, &mut worker.scratch, update)
            },
        );
        Ok(loss)
    }

    fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError> {
        let LocalTraining { model, inputs, .. } = &self.training;
        let test = &self.dataset.test;
        let make = || Evaluator { batch: BatchBuffer::default(), work: model.workspace(EVALUATION_ROWS) };
        let score = |(chunk, labels): (usize, &[u8])| {
            self.evaluators.with(make, |evaluator| {
                let first = chunk * EVALUATION_ROWS;
                let samples = first..first + labels.len();
                let batch = inputs.gather_for(false, Split::Test, samples, &mut evaluator.batch);
                model.score(theta, batch, &mut evaluator.work)
            })
        };
        let scores: Vec<Score> = test.labels.par_chunks(EVALUATION_ROWS).enumerate().map(score).collect();
        let count = test.len() as f64;
        Ok(Evaluation::new(
            scores.iter().map(|score| score.correct).sum::<usize>() as f64 / count,
            scores.iter().map(|score| score.loss).sum::<f64>() / count,
        ))
    }

    fn state_vectors(&self) -> Option<usize> {
        let vectors = self.training.optimizer.starts().len();
        (self.state == StateMode::Keep && vectors > 0).then_some(vectors)
    }
}
