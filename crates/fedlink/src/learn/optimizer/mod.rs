//! Local optimisers, one file each.

mod adagrad;
mod adam;
mod descent;
mod sgd;

pub use adagrad::AdaGrad;
pub use adam::Adam;
pub(crate) use descent::Tail;
pub use descent::{Descent, coast};
pub use sgd::Sgd;

use crate::config::Config;
use serde::{Deserialize, Serialize};

/// The name of an optimiser in a configuration (`learn.optimizer`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerKind {
    /// Stochastic gradient descent, with momentum if `learn.momentum` is not zero.
    Sgd,
    /// Adam.
    #[default]
    Adam,
    /// `AdaGrad`.
    Adagrad,
}

/// Whether a device's optimiser remembers its moments from round to round (`learn.state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateMode {
    /// Every device keeps its own state; all devices train in every round, scheduled or not.
    #[default]
    Keep,
    /// Every round starts anew; only candidates train.
    Reset,
}

/// What an optimiser remembers between steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OptimizerState {
    /// Steps taken so far.
    pub steps: u64,
    /// Vectors of the size of θ: momentum, moments, accumulators.
    pub slots: Vec<Vec<f32>>,
}

impl OptimizerState {
    /// A state with one vector of `dim` entries for each of `starts`, filled with it.
    pub fn filled(dim: usize, starts: &[f32]) -> Self {
        Self { steps: 0, slots: starts.iter().map(|&start| vec![start; dim]).collect() }
    }
}

/// One update rule.
pub trait Optimizer: Send + Sync {
    /// What each of the state's vectors starts from; empty if the rule remembers nothing.
    fn starts(&self) -> &[f32];

    /// One step of size `rate`: counts it in `state` and has `work` offer the gradient to it.
    fn step(&self, rate: f32, state: &mut OptimizerState, work: &mut dyn FnMut(&mut dyn Descent));

    /// Makes `state` that of an optimiser that has not stepped yet, reusing its memory.
    fn reset(&self, state: &mut OptimizerState) {
        state.steps = 0;
        for (slot, &start) in state.slots.iter_mut().zip(self.starts()) {
            slot.fill(start);
        }
    }
}

/// The optimiser that `config` asks for.
pub fn optimizer(config: &Config) -> Box<dyn Optimizer> {
    let learn = &config.learn;
    let epsilon = learn.epsilon as f32;
    match learn.optimizer {
        OptimizerKind::Sgd => Box::new(Sgd { momentum: learn.momentum as f32 }),
        OptimizerKind::Adam => {
            Box::new(Adam { beta1: learn.beta1 as f32, beta2: learn.beta2 as f32, epsilon })
        }
        OptimizerKind::Adagrad => {
            Box::new(AdaGrad { epsilon, initial_accumulator: [learn.initial_accumulator as f32] })
        }
    }
}
