//! h_m: the state that the server keeps per device where devices send changes (`compress.feedback = "ef21"`).

use crate::aggregate::Contribution;
use crate::base::state::{MAX_COUNT, StateError};
use crate::base::units::DeviceId;
use crate::compress::Encoded;
use crate::compress::feedback::{advance, age_factor};
use serde::{Deserialize, Serialize};

/// The states of all devices. The state of a device that has sent nothing takes no memory and means zero.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DeviceStates {
    /// κ.
    kappa: f64,
    rows: Vec<Row>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Row {
    /// The round, from 1, of the last upload in it; 0: none.
    round: u64,
    #[serde(with = "dense")]
    h: Encoded,
}

impl DeviceStates {
    /// Zero for each of `devices` devices.
    pub fn new(kappa: f64, devices: usize) -> Self {
        Self { kappa, rows: vec![Row::default(); devices] }
    }

    /// The round, from 1, of the last upload in h_m; 0: none.
    pub fn round(&self, device: DeviceId) -> u64 {
        self.rows[device.index()].round
    }

    /// h_m as it was after its last upload; none if there was none.
    pub fn state(&self, device: DeviceId) -> Option<&[f32]> {
        match &self.rows.get(device.index())?.h {
            Encoded::Dense(values) => Some(values),
            _ => None,
        }
    }

    /// ‖h_m‖ as it was after its last upload.
    pub fn norm(&self, device: DeviceId) -> f32 {
        self.rows[device.index()].h.norm()
    }

    /// h_m ← κ^gap·h_m + v̂, for an upload in round `t` from 0.
    pub fn advance(&mut self, device: DeviceId, t: u64, update: &Encoded, dim: usize) {
        let Row { round, h } = &mut self.rows[device.index()];
        let factor = age_factor(self.kappa, (t + 1).saturating_sub(*round));
        let mut values = match std::mem::take(h) {
            Encoded::Dense(values) => values,
            _ => Vec::new(),
        };
        advance(&mut values, factor, update, dim);
        (*h, *round) = (Encoded::Dense(values), t + 1);
    }

    /// Zero again.
    pub fn forget(&mut self, device: DeviceId) {
        self.rows[device.index()] = Row::default();
    }

    /// All states that are not zero as the server counts them in round `t` from 0, each with its weight.
    pub fn contributions(&self, t: u64, weights: &[f32]) -> Vec<Contribution<'_>> {
        let mut all = Vec::new();
        for (row, &weight) in self.rows.iter().zip(weights).filter(|(row, _)| row.round > 0) {
            let factor = age_factor(self.kappa, (t + 1).saturating_sub(row.round));
            all.push(Contribution { update: &row.h, weight, factor });
        }
        all
    }

    /// States that were read back, if they can be of this run with models of `dim` entries.
    pub fn accept(&self, read: Self, dim: usize) -> Result<Self, StateError> {
        let fits = |row: &Row| match &row.h {
            Encoded::Dense(values) => values.len() == dim && (1..=MAX_COUNT).contains(&row.round),
            _ => row.round == 0,
        };
        if read.rows.len() != self.rows.len() || !read.rows.iter().all(fits) {
            return Err(StateError("the states of the devices are not of this run's size".into()));
        }
        Ok(Self { kappa: self.kappa, ..read })
    }
}

/// A dense update as its numbers; none for one that is silent.
mod dense {
    use super::Encoded;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(h: &Encoded, serializer: S) -> Result<S::Ok, S::Error> {
        match h {
            Encoded::Dense(values) => values.serialize(serializer),
            _ => [0.0f32; 0].as_slice().serialize(serializer),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Encoded, D::Error> {
        let values = Vec::<f32>::deserialize(deserializer)?;
        Ok(if values.is_empty() { Encoded::Silent } else { Encoded::Dense(values) })
    }
}
