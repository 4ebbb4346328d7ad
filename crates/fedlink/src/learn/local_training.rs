//! What a device does with the model it receives: τ mini-batch steps on its own data.

use super::model::{Batch, Model, Workspace};
use super::optimizer::{Optimizer, OptimizerState};
use crate::config::BatchSize;
use crate::data::{Samples, Scaler};
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;

/// The recipe of local training, the same for all devices and rounds.
pub struct LocalTraining {
    /// What is trained.
    pub model: Box<dyn Model>,
    /// How stored numbers become the model's inputs.
    pub scaler: Scaler,
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
    features: usize,
    inputs: Vec<f32>,
    labels: Vec<u8>,
    gradient: Vec<f32>,
    work: Workspace,
}

impl LocalTraining {
    /// Memory for devices with samples of `features` numbers. It grows to the largest batch it meets.
    pub fn scratch(&self, features: usize) -> TrainingScratch {
        TrainingScratch {
            samples: Vec::new(),
            features,
            inputs: Vec::new(),
            labels: Vec::new(),
            gradient: vec![0.0; self.model.dim()],
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

    /// Runs τ steps from θ on the device's samples (`scratch.samples`, indices into `data`), writes
    /// Δ = θ_m − θ to `update` and returns the mean loss over the steps.
    ///
    /// Step i takes a mini-batch drawn uniformly without replacement, anew for each step, from the stream of
    /// (round, device).
    pub fn run(
        &self,
        theta: &[f32],
        data: &Samples,
        (round, device): (u64, DeviceId),
        state: &mut OptimizerState,
        scratch: &mut TrainingScratch,
        update: &mut [f32],
    ) -> f64 {
        let rows = self.batch_rows(scratch.samples.len());
        let features = scratch.features;
        if rows > scratch.labels.len() {
            scratch.inputs.resize(rows * features, 0.0);
            scratch.labels.resize(rows, 0);
            scratch.work = self.model.workspace(rows);
        }
        let mut stream = stream(self.seed, Purpose::Batch, round, u64::from(device.0));
        let local_model = update;
        local_model.copy_from_slice(theta);
        let mut loss = 0.0;
        for _ in 0..self.steps {
            if rows < scratch.samples.len() {
                stream.shuffle_prefix(&mut scratch.samples, rows);
            }
            for (i, &sample) in scratch.samples[..rows].iter().enumerate() {
                let row = &mut scratch.inputs[i * features..(i + 1) * features];
                self.scaler.write(data, sample as usize, row);
                scratch.labels[i] = data.labels[sample as usize];
            }
            let batch = Batch { inputs: &scratch.inputs[..rows * features], labels: &scratch.labels[..rows] };
            loss += self.model.gradient(local_model, batch, &mut scratch.work, &mut scratch.gradient);
            self.optimizer.step(local_model, &scratch.gradient, self.rate, state);
        }
        local_model.iter_mut().zip(theta).for_each(|(local, global)| *local -= global);
        loss / self.steps as f64
    }
}
