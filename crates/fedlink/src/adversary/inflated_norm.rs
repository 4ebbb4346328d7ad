//! Inflated norm: lies to be scheduled.

use super::{Attack, change_values, times};
use crate::compress::SparseUpdate;
use serde::{Deserialize, Serialize};

/// How an inflated report is made (`adversary.report`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostileReport {
    /// `adversary.amount` times the truth.
    #[default]
    Times,
    /// `adversary.amount` itself.
    Constant,
}

/// What a device with an inflated report uploads (`adversary.upload`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostileUpload {
    /// Its honest Δ̂: it wants to be heard, not to harm.
    #[default]
    Honest,
    /// −Δ̂: it wants to be heard to do harm.
    SignFlip,
}

/// Reports more than the truth, so that a policy that goes by norms schedules it, and gives it most of the bits.
///
/// A policy that asks for nothing (BC) hears nothing of it.
#[derive(Clone, Copy, Debug)]
pub struct InflatedNorm {
    /// How the report is made.
    pub report: HostileReport,
    /// Factor or constant.
    pub amount: f32,
    /// What is uploaded.
    pub upload: HostileUpload,
}

impl Attack for InflatedNorm {
    fn report(&self, honest: f32) -> f32 {
        match self.report {
            HostileReport::Times => times(honest, self.amount),
            HostileReport::Constant => self.amount,
        }
    }

    fn tamper(&self, update: &mut SparseUpdate) {
        if self.upload == HostileUpload::SignFlip {
            change_values(update, |value| -value);
        }
    }
}
