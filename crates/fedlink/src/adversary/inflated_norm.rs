//! Inflated norm: lies to be scheduled.

use super::{Attack, times};
use crate::compress::Encoded;
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key, number};
use crate::state::Persist;
use serde::{Deserialize, Serialize};

/// The entry of this attack.
pub const ENTRY: Entry<dyn Attack> = Entry::of::<InflatedNorm>();

/// How an inflated report is made.
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

/// What a device with an inflated report uploads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FalseUpload {
    /// Its honest Δ̂: it wants to be scheduled, not to harm.
    #[default]
    Honest,
    /// −Δ̂: it wants to be scheduled to do harm.
    SignFlip,
}

/// Reports more than the truth, so that a policy that goes by norms schedules it, and gives it
/// most of the bits.
///
/// A policy that asks for nothing (BC) is not affected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct InflatedNorm {
    /// How the report is made.
    pub report: FalseReport,
    /// Factor or constant.
    pub amount: f32,
    /// What is uploaded.
    pub upload: FalseUpload,
}

impl Default for InflatedNorm {
    fn default() -> Self {
        Self { report: FalseReport::Times, amount: 1000.0, upload: FalseUpload::Honest }
    }
}

impl PartConfig for InflatedNorm {
    type Part = dyn Attack;
    const NAME: &'static str = "inflated-norm";
    const MEANING: &'static str =
        "reports too large a norm, to be scheduled; uploads adversary.inflated-norm.upload";
    const KEYS: &'static [Key] = &[
        key("report", "what it reports", "\"times\" (amount times the truth) | \"constant\" (amount)"),
        key("amount", "factor or constant of the report", "> 0, at most 3.4e38"),
        key("upload", "what it uploads", "\"honest\" | \"sign-flip\""),
    ];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        check_amount(self.amount)
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Attack>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// Checks a factor or a constant.
pub(super) fn check_amount(amount: f32) -> Result<(), ConfigError> {
    number("amount", f64::from(amount), |x| x > 0.0, "a number above 0 and at most 3.4e38")
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
