//! What a device does with the model it receives: τ mini-batch steps on its own data.

use super::inputs::{BatchBuffer, Inputs, Split};
use super::model::{Model, Workspace};
use super::optimizer::{Descent, LastStep, Optimizer};
use super::task::DeviceState;
use crate::registry::count::BatchSize;
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;

/// The recipe of local training, the same for all devices and rounds.
pub struct LocalTraining {
    /// What is trained.
    pub model: Box<dyn Model>,
    /// What it is trained and judged on.
    pub inputs: Inputs,
    /// By which rule.
    pub optimizer: Box<dyn Optimizer>,
    /// τ.
    pub steps: u64,
    /// Samples in a step.
    pub batch: BatchSize,
    /// η.
    pub rate: f32,
    /// The run's seed.
    pub seed: u64,
}

/// Memory that a worker reuses from device to device.
pub struct TrainingScratch {
    /// The device's samples, in the order in which batches take them.
    pub samples: Vec<u32>,
    batch: BatchBuffer,
    /// Samples that `work` has room for.
    max_rows: usize,
    work: Workspace,
}

impl LocalTraining {
    /// Memory to train in. It grows to the largest batch it meets.
    pub fn scratch(&self) -> TrainingScratch {
        TrainingScratch {
            samples: Vec::new(),
            batch: BatchBuffer::default(),
            max_rows: 0,
            work: self.model.workspace(0),
        }
    }

    /// A mini-batch cannot hold more samples than the device has.
    fn batch_rows(&self, samples: usize) -> usize {
        match self.batch {
            BatchSize::Full => samples,
            BatchSize::Count(count) => samples.min(count as usize),
        }
    }

    /// Runs τ steps from θ on the device's samples (`scratch.samples`, numbers of training samples),
    /// writes Δ = θ_m − θ to `update` and returns the mean loss over the steps.
    ///
    /// Step i takes a mini-batch drawn uniformly without replacement, anew for each step, from the stream of
    /// (round, device).
    pub fn run(
        &self,
        theta: &[f32],
        (round, device): (u64, DeviceId),
        state: &mut DeviceState,
        scratch: &mut TrainingScratch,
        update: &mut [f32],
    ) -> f64 {
        let rows = self.batch_rows(scratch.samples.len());
        if rows > scratch.max_rows {
            scratch.max_rows = rows;
            scratch.work = self.model.workspace(rows);
        }
        let mut stream = stream(self.seed, Purpose::Batch, round, u64::from(device.0));
        // The first step reads θ where it is and fills the device's model, the last one leaves Δ in its
        // place.
        let local_model = update;
        let mut loss = 0.0;
        for step in 1..=self.steps {
            if rows < scratch.samples.len() {
                stream.shuffle_prefix(&mut scratch.samples, rows);
            }
            let samples = scratch.samples[..rows].iter().map(|&sample| sample as usize);
            let columns = self.model.takes_columns();
            let batch = self.inputs.gather_for(columns, Split::Train, samples, &mut scratch.batch);
            let work = &mut scratch.work;
            let mut descend = |descent: &mut dyn Descent| {
                loss += match step {
                    1 => self.model.descend_from(theta, local_model, batch, work, descent),
                    _ => self.model.descend(local_model, batch, work, descent),
                };
            };
            self.optimizer.step(self.rate, state, &mut |descent| {
                if step == self.steps {
                    descend(&mut LastStep { step: descent, from: theta });
                } else {
                    descend(descent);
                }
            });
        }
        loss / self.steps as f64
    }
}
