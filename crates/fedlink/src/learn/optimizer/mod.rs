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
use crate::parts::{Entry, Kind};
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
    /// Whether a step is the rate times the gradient.
    fn is_plain_descent(&self) -> bool {
        false
    }

    /// η if `learn.rate` is left out.
    fn default_rate(&self) -> f64;

    /// The initial value of each of the state's vectors; empty if the rule keeps no state.
    fn starts(&self) -> &[f32];

    /// One step of size `rate`: counts it in `state` and lets `work` pass the gradient to it.
    fn step(&self, rate: f32, state: &mut DeviceState, work: &mut dyn FnMut(&mut dyn Descent));

    /// Makes `state` that of an optimizer before its first step, in the same memory.
    fn reset(&self, state: &mut DeviceState) {
        state.steps = 0;
        for (slot, &start) in state.vectors.iter_mut().zip(self.starts()) {
            slot.fill(start);
        }
    }
}

/// Facts of a local optimizer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct OptimizerFacts {
    /// The rate if `learn.rate` is left out.
    pub default_rate: f64,
    /// Whether a step is the rate times the gradient.
    pub is_plain_descent: bool,
}

/// The facts of an optimizer that is not known: its rate is that of the default one, so that a custom task
/// has the same `learn.rate` wherever it runs.
impl Default for OptimizerFacts {
    fn default() -> Self {
        Self { default_rate: 1e-3, is_plain_descent: false }
    }
}

impl Kind for dyn Optimizer {
    type Material = ();
    type Facts = OptimizerFacts;
    const PROBE: Option<&'static ()> = Some(&());
    const PLURAL: &'static str = "optimizers";
    const KEY: &'static str = "learn.optimizer";
    const TABLE: &'static str = "learn";

    fn entries() -> &'static [Entry<Self>] {
        OPTIMIZERS
    }

    fn facts_of(part: &Self) -> OptimizerFacts {
        OptimizerFacts { default_rate: part.default_rate(), is_plain_descent: part.is_plain_descent() }
    }
}
