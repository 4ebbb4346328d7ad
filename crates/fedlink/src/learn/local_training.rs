//! What a device does with the model it receives: τ mini-batch steps on its own data.

use super::inputs::{BatchBuffer, Inputs, Split};
use super::model::{Model, Workspace};
use super::optimizer::Optimizer;
use super::task::DeviceState;
use crate::kernels::subtract;
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
    /// The mean of the squared losses of all samples of the last training.
    square: f64,
}

impl TrainingScratch {
    /// The root of the mean squared loss of the samples of the last training.
    pub fn rms_loss(&self) -> f64 {
        libm::sqrt(self.square)
    }
}

impl LocalTraining {
    /// Memory to train in. It grows to the largest batch it meets.
    pub fn scratch(&self) -> TrainingScratch {
        TrainingScratch {
            samples: Vec::new(),
            batch: BatchBuffer::default(),
            max_rows: 0,
            work: self.model.workspace(0),
            square: 0.0,
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
        let local_model = update;
        local_model.copy_from_slice(theta);
        let (mut loss, mut square) = (0.0, 0.0);
        for _ in 0..self.steps {
            if rows < scratch.samples.len() {
                stream.shuffle_prefix(&mut scratch.samples, rows);
            }
            let samples = scratch.samples[..rows].iter().map(|&sample| sample as usize);
            let batch = self.inputs.gather(Split::Train, samples, &mut scratch.batch);
            self.optimizer.step(self.rate, state, &mut |descent| {
                loss += self.model.descend(local_model, batch, &mut scratch.work, descent);
            });
            square += scratch.work.mean_square();
        }
        scratch.square = square / self.steps as f64;
        subtract(local_model, theta);
        loss / self.steps as f64
    }
}
