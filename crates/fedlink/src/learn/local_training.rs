//! Local training: τ mini-batch steps from the received model on the device's own data.

use super::correction::Adjustment;
use super::descent_options::{Adjusted, Collect, DescentOptions};
use super::inputs::{BatchBuffer, Inputs, Split};
use super::model::{Model, Workspace};
use super::optimizer::{Descent, LastStep, Optimizer};
use super::rate::Rate;
use super::steps::{LocalSteps, StepCounts};
use super::task::DeviceState;
use crate::base::kernels::subtract;
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use crate::parts::count::BatchSize;

/// The recipe of local training, the same for all devices and rounds.
pub struct LocalTraining {
    /// The model that is trained.
    pub model: Box<dyn Model>,
    /// The samples for training and evaluation.
    pub inputs: Inputs,
    /// The update rule.
    pub optimizer: Box<dyn Optimizer>,
    /// τ of each device.
    pub steps: StepCounts,
    /// Samples in a step.
    pub batch: BatchSize,
    /// η of each round.
    pub rate: Rate,
    /// Weight decay, clipping and adjustment of a step.
    pub options: DescentOptions,
    /// The run's seed.
    pub seed: u64,
}

/// Memory that a worker reuses from device to device.
pub struct TrainingScratch {
    /// The numbers of the device's samples, in the order of the batches.
    pub samples: Vec<u32>,
    batch: BatchBuffer,
    /// The number of samples for which `work` has room.
    max_rows: usize,
    work: Workspace,
    /// The whole gradient of a step, if it is clipped; else empty.
    gradient: Vec<f32>,
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
    /// Memory for training. It grows to the largest batch.
    pub fn scratch(&self) -> TrainingScratch {
        TrainingScratch {
            samples: Vec::new(),
            batch: BatchBuffer::default(),
            max_rows: 0,
            work: self.model.workspace(0),
            square: 0.0,
            gradient: vec![0.0; if self.options.clips() { self.model.dim() } else { 0 }],
        }
    }

    /// τ_m and η of a device in a round.
    pub fn steps_of(&self, round: u64, device: DeviceId) -> LocalSteps {
        LocalSteps { count: self.steps.of(device), rate: self.rate.at(round) }
    }

    /// The size of a mini-batch, at most the number of the device's samples.
    fn batch_rows(&self, samples: usize) -> usize {
        match self.batch {
            BatchSize::Full => samples,
            BatchSize::Count(count) => samples.min(count as usize),
        }
    }

    /// Runs τ steps from θ on the device's samples (`scratch.samples`, numbers of training samples), with
    /// gradients adjusted by `adjustment`. Writes Δ = θ_m − θ to `update` and returns the mean loss over
    /// the steps.
    ///
    /// Step i takes a mini-batch drawn uniformly without replacement, anew in each step, from the stream
    /// of (round, device).
    pub fn run(
        &self,
        theta: &[f32],
        (round, device): (u64, DeviceId),
        adjustment: Adjustment,
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
        let LocalSteps { count, rate } = self.steps_of(round, device);
        let kept = self.options.kept(rate);
        let rate = rate as f32;
        let plain = adjustment.is_none() && kept == 1.0 && !self.options.clips();
        // Plain steps: the first reads θ in place and fills the device's model, the last writes Δ in its
        // place.
        if !plain {
            local_model.copy_from_slice(theta);
        }
        let (mut loss, mut square) = (0.0, 0.0);
        let mut draw = |samples: &mut [u32]| {
            if rows < samples.len() {
                stream.shuffle_prefix(samples, rows);
            }
        };
        draw(&mut scratch.samples);
        for step in 1..=count {
            let columns = self.model.takes_columns();
            let samples = numbers(&scratch.samples[..rows]);
            let batch = self.inputs.gather_for(columns, Split::Train, samples, &mut scratch.batch);
            // The next step's samples are fetched while this one is computed.
            if step < count {
                draw(&mut scratch.samples);
                self.inputs.announce(Split::Train, numbers(&scratch.samples[..rows]));
            }
            let work = &mut scratch.work;
            if plain {
                let mut descend = |descent: &mut dyn Descent| {
                    loss += match step {
                        1 => self.model.descend_from(theta, local_model, batch, work, descent),
                        _ => self.model.descend(local_model, batch, work, descent),
                    };
                };
                self.optimizer.step(rate, state, &mut |descent| {
                    if step == count {
                        descend(&mut LastStep { step: descent, from: theta });
                    } else {
                        descend(descent);
                    }
                });
                square += scratch.work.mean_square();
                continue;
            }
            let gradient = &mut scratch.gradient;
            if self.options.clips() {
                gradient.fill(0.0);
                loss += self.model.descend(local_model, batch, work, &mut Collect { gradient });
                self.options.clip(gradient);
            }
            self.optimizer.step(rate, state, &mut |inner| {
                let mut descent = Adjusted { inner, adjustment, origin: theta, kept };
                if self.options.clips() {
                    descent.apply(0, local_model, gradient);
                } else {
                    loss += self.model.descend(local_model, batch, work, &mut descent);
                }
            });
            square += scratch.work.mean_square();
        }
        if !plain {
            subtract(local_model, theta);
        }
        scratch.square = square / count as f64;
        loss / count as f64
    }
}

fn numbers(samples: &[u32]) -> impl Iterator<Item = usize> + Clone {
    samples.iter().map(|&sample| sample as usize)
}
