//! Inflated norm: a false report, to be scheduled.

use super::{Attack, times};
use crate::base::state::Persist;
use crate::compress::Encoded;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use serde::{Deserialize, Serialize};

/// The entry of this attack.
pub const ENTRY: Entry<dyn Attack> = Entry::of::<InflatedNorm>();

/// The rule of an inflated report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FalseReport {
    /// `amount` times the truth.
    #[default]
    Times,
    /// `amount` itself.
    Constant,
}

/// The upload of a device with an inflated report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FalseUpload {
    /// Its honest Δ̂: its aim is to be scheduled, not to harm.
    #[default]
    Honest,
    /// −Δ̂: its aim is to be scheduled to harm.
    SignFlip,
}

/// Reports more than the truth. A policy that ranks devices by norms then schedules it and gives it most
/// of the
///  bits.
///
/// A policy without reports (BC) is not affected.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct InflatedNorm {
    /// rule of the report
    #[key(default = FalseReport::Times, allowed = "\"times\" (amount times the truth) | \"constant\" \
        (amount)")]
    pub report: FalseReport,
    /// factor or constant of the report
    #[key(default = 1000.0, range = "> 0")]
    pub amount: f32,
    /// its upload
    #[key(default = FalseUpload::Honest, allowed = "\"honest\" | \"sign-flip\"")]
    pub upload: FalseUpload,
}

impl PartConfig for InflatedNorm {
    type Part = dyn Attack;
    const NAME: &'static str = "inflated-norm";
    const MEANING: &'static str =
        "reports too large a norm, to be scheduled; uploads adversary.inflated-norm.upload";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Attack>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for InflatedNorm {}

impl Attack for InflatedNorm {
    fn report(&self, honest: f32) -> f32 {
        match self.report {
            FalseReport::Times => times(honest, self.amount),
            FalseReport::Constant => self.amount,
        }
    }

    fn tamper(&self, update: &mut Encoded) {
        if self.upload == FalseUpload::SignFlip {
            update.change_values(|value| -value);
        }
    }
}
