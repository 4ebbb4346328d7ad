//! The built-in task: a model of this library on a data set that is split among the devices.

use super::inputs::{BatchBuffer, Split};
use super::local_training::{LocalTraining, TrainingScratch};
use super::model::{Init, Score, Workspace};
use super::optimizer::StateMode;
use super::steps::LocalSteps;
use super::task::{ClassScore, DeviceState, Evaluation, Job, Task, TaskError};
use crate::base::buffers::Pool;
use crate::base::parallel::prelude::*;
use crate::base::rng::{Purpose, stream};
use crate::base::units::{DeviceId, Shape};
use crate::data::Dataset;
use crate::data::partition::Partition;
use std::sync::Arc;

/// Test samples scored at a time. It is fixed because it determines the order of summation.
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

/// Memory that a worker reuses from device to device.
struct Worker {
    scratch: TrainingScratch,
    /// The optimizer's state of a device without state of its own.
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

    /// The scores of `theta` on a part of the data set, per block of samples.
    fn scores(&self, theta: &[f32], split: Split) -> Vec<Score> {
        let LocalTraining { model, inputs, .. } = &self.training;
        let samples = if split == Split::Train { &self.dataset.train } else { &self.dataset.test };
        let make = || Evaluator { batch: BatchBuffer::default(), work: model.workspace(EVALUATION_ROWS) };
        let score = |(chunk, labels): (usize, &[u8])| {
            self.evaluators.with(make, |evaluator| {
                let first = chunk * EVALUATION_ROWS;
                let batch =
                    inputs.gather_for(false, split, first..first + labels.len(), &mut evaluator.batch);
                model.score(theta, batch, &mut evaluator.work)
            })
        };
        samples.labels.par_chunks(EVALUATION_ROWS).enumerate().map(score).collect()
    }

    /// The state of a device before its first training.
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

    fn label_counts(&self, device: DeviceId) -> Option<Vec<u32>> {
        let (mut samples, mut counts) = (Vec::new(), vec![0; self.dataset.classes]);
        self.partition.samples_of(device, &mut samples);
        samples.iter().for_each(|&i| counts[usize::from(self.dataset.train.labels[i as usize])] += 1);
        Some(counts)
    }

    fn flops_per_sample(&self) -> f64 {
        self.training.model.flops_per_sample()
    }

    fn shapes(&self) -> Vec<Shape> {
        self.training.model.shapes()
    }

    fn train(&self, job: Job) -> Result<f64, TaskError> {
        let Job { t, device, theta, state, adjustment, update, rms_loss } = job;
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
                let loss =
                    self.training.run(theta, (t, device), adjustment, state, &mut worker.scratch, update);
                *rms_loss = Some(worker.scratch.rms_loss());
                loss
            },
        );
        Ok(loss)
    }

    fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError> {
        let scores = self.scores(theta, Split::Test);
        let test = &self.dataset.test;
        let count = test.len() as f64;
        let mut evaluation = Evaluation::new(
            scores.iter().map(|score| score.correct).sum::<usize>() as f64 / count,
            scores.iter().map(|score| score.loss).sum::<f64>() / count,
        );
        evaluation.classes = vec![ClassScore::default(); self.dataset.classes];
        test.labels.iter().for_each(|&label| evaluation.classes[usize::from(label)].samples += 1);
        for score in &scores {
            for (class, &correct) in evaluation.classes.iter_mut().zip(&score.correct_of_class) {
                class.correct += u64::from(correct);
            }
        }
        Ok(evaluation)
    }

    fn has_training_loss(&self) -> bool {
        true
    }

    fn training_loss(&self, theta: &[f32]) -> Result<f64, TaskError> {
        let scores = self.scores(theta, Split::Train);
        Ok(scores.iter().map(|score| score.loss).sum::<f64>() / self.dataset.train.len() as f64)
    }

    fn state_vectors(&self) -> Option<usize> {
        let vectors = self.training.optimizer.starts().len();
        (self.state == StateMode::Keep && vectors > 0).then_some(vectors)
    }

    fn local_steps(&self, t: u64, device: DeviceId) -> Option<LocalSteps> {
        Some(self.training.steps_of(t, device))
    }
}
