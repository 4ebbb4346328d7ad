//! Reports of candidates before selection.

use crate::base::units::DeviceId;
use crate::radio::Known;
use serde::{Deserialize, Serialize};

/// A number that a candidate reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Ask {
    /// ‖Δ‖₂, the norm of its update.
    Norm,
    /// ‖Δ̂‖₂, the norm of its update as compressed if it had all n symbols to itself.
    CompressedNorm,
    /// The mean mini-batch loss of its local training.
    Loss,
    /// The root of the mean squared loss of the samples of its local training; the mean loss where a task or
    /// a node does not give the former.
    RmsLoss,
}

impl Ask {
    /// All numbers that a policy can request.
    pub const ALL: [Self; 4] = [Self::Norm, Self::CompressedNorm, Self::Loss, Self::RmsLoss];

    /// Its name in Python and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Norm => "norm",
            Self::CompressedNorm => "compressed-norm",
            Self::Loss => "loss",
            Self::RmsLoss => "rms-loss",
        }
    }

    /// The one called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ask| ask.name() == name)
    }
}

/// The reports of the candidates: a table with one row per candidate and one column per [`Ask`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reports {
    /// The candidates that reported, in the policy's order.
    pub devices: Vec<DeviceId>,
    asks: usize,
    /// Row after row.
    values: Vec<f32>,
    /// The gain of each candidate, which decides between equal reports; empty: the lower device does.
    gains: Vec<f64>,
}

impl Reports {
    /// A table of `devices.len()` rows of `asks` numbers each.
    pub fn new(devices: Vec<DeviceId>, asks: usize, values: Vec<f32>) -> Self {
        assert_eq!(values.len(), devices.len() * asks, "one number for each candidate and ask");
        Self { devices, asks, values, gains: Vec::new() }
    }

    /// Candidates that reported.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// Whether no candidate reported.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// Numbers in each row.
    pub fn asks(&self) -> usize {
        self.asks
    }

    /// The reports of the candidate at `index`, one for each [`Ask`].
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.asks..(index + 1) * self.asks]
    }

    /// The first answer of the candidate at `index`; 0 if the policy requests none.
    pub fn first(&self, index: usize) -> f32 {
        self.row(index).first().copied().unwrap_or(0.0)
    }

    /// The tie-breaker between equal reports, the larger first: the gain if reports have few bits, otherwise
    /// 0.
    pub fn tie(&self, index: usize) -> f64 {
        self.gains.get(index).copied().unwrap_or(0.0)
    }

    /// The same with every number as `read` has it.
    pub(crate) fn map(mut self, read: impl Fn(f32) -> f32) -> Self {
        self.values.iter_mut().for_each(|value| *value = read(*value));
        self
    }

    /// The same, equal reports going to the larger gain.
    pub(crate) fn with_gains(mut self, known: &Known) -> Self {
        self.gains = self.devices.iter().map(|device| known.gain(*device)).collect();
        self
    }

    /// The reports of `column`, in the order of the candidates.
    pub fn column(&self, column: usize) -> impl ExactSizeIterator<Item = f32> + '_ {
        (0..self.len()).map(move |index| self.row(index)[column])
    }

    /// The first answer that is not a finite number, and its device.
    pub fn not_finite(&self) -> Option<(DeviceId, f32)> {
        let index = self.values.iter().position(|value| !value.is_finite())?;
        Some((self.devices[index / self.asks], self.values[index]))
    }

    /// The index of a candidate.
    pub fn index_of(&self, device: DeviceId) -> Option<usize> {
        self.devices.iter().position(|candidate| *candidate == device)
    }
}
