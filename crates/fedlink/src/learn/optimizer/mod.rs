//! Local optimizers, one file each.

mod descent;

crate::register! {
    /// All local optimizers.
    OPTIMIZERS: dyn Optimizer;
    sgd,
    adam,
    adagrad,
}

pub use adagrad::AdaGrad;
pub use adam::Adam;
pub use descent::{Descent, apply_zero_gradient};
pub(crate) use descent::{FirstStep, LastStep, Tail};
pub use sgd::Sgd;

use super::task::DeviceState;
use crate::registry::{ConfigError, Entry, Kind, number};
use serde::{Deserialize, Serialize};

/// Whether a device's optimizer keeps its moments from round to round (`learn.state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StateMode {
    /// Every device keeps its own state; all devices train in every round, scheduled or not.
    #[default]
    Keep,
    /// Every round starts anew; only candidates train.
    Reset,
}

/// One update rule.
pub trait Optimizer: Send + Sync {
    /// η where `learn.rate` is left out.
    fn default_rate(&self) -> f64;

    /// What each of the state's vectors starts from; empty if the rule keeps no state.
    fn starts(&self) -> &[f32];

    /// One step of size `rate`: counts it in `state` and has `work` offer the gradient to it.
    fn step(&self, rate: f32, state: &mut DeviceState, work: &mut dyn FnMut(&mut dyn Descent));

    /// Makes `state` that of an optimizer that has not stepped yet, reusing its memory.
    fn reset(&self, state: &mut DeviceState) {
        state.steps = 0;
        for (slot, &start) in state.vectors.iter_mut().zip(self.starts()) {
            slot.fill(start);
        }
    }
}

impl Kind for dyn Optimizer {
    type Material = ();
    const PLURAL: &'static str = "optimizers";
    const KEY: &'static str = "learn.optimizer";
    const TABLE: &'static str = "learn";

    fn entries() -> &'static [Entry<Self>] {
        OPTIMIZERS
    }
}

/// Checks a decay or a momentum.
fn check_decay(key: &str, value: f64) -> Result<(), ConfigError> {
    number(key, value, |x| (0.0..1.0).contains(&x), "in 0..1 (1 excluded)")
}

/// Checks what keeps a denominator from zero.
fn check_epsilon(value: f64) -> Result<(), ConfigError> {
    number("epsilon", value, |x| x >= 1e-30, "a finite number of at least 1e-30")
}
