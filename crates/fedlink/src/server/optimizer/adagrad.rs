//! Adagrad at the server (FedAdagrad).

use super::adaptive::{ADAPTIVITY, Adaptive, Adaptivity};
use super::{ServerOptimizer, check_decay};
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key};
use serde::{Deserialize, Serialize};

/// The entry of this optimizer.
pub const ENTRY: Entry<dyn ServerOptimizer> = Entry::of::<ServerAdagradConfig>();

/// `[learn.server.adagrad]`.
///
/// m ← β₁·m + (1−β₁)·Δ̄, v ← v + Δ̄², θ ← θ + c·m/(√v + τ_a), entry by entry; m starts at zero and v at
/// τ_a². By default β₁ = 0, as in the paper's experiments, and m is Δ̄.
///
/// Source: Reddi et al., *Adaptive Federated Optimization* (2020), Algorithm 2. State: 2·d numbers in
/// double precision, and τ_a. Invariants: v never falls, so that an entry that arrives seldom takes no
/// longer steps than before; no entry moves by more than c·max|Δ̄|/τ_a; with `adaptivity = "auto"`, scaling
/// all updates changes no step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ServerAdagradConfig {
    /// β₁, 0 ≤ β₁ < 1.
    pub beta1: f64,
    /// τ_a.
    pub adaptivity: Adaptivity,
}

impl Default for ServerAdagradConfig {
    fn default() -> Self {
        Self { beta1: 0.0, adaptivity: Adaptivity::Auto }
    }
}

impl PartConfig for ServerAdagradConfig {
    type Part = dyn ServerOptimizer;
    const NAME: &'static str = "adagrad";
    const MEANING: &'static str =
        "FedAdagrad: learn.server_rate times the step over the root of the sum of all squares so far";
    const KEYS: &'static [Key] =
        &[key("beta1", "β₁, what is left of the mean after a round", "0 ≤ β₁ < 1"), ADAPTIVITY];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        check_decay("beta1", self.beta1)?;
        self.adaptivity.check()
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ServerOptimizer>, ConfigError> {
        let second = |v: f64, delta: f64| v + delta * delta;
        Ok(Box::new(Adaptive::new(self.beta1, self.adaptivity, second)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{SparseUpdate, Values};
    use crate::server::aggregate::Delta;

    #[test]
    fn the_first_step_of_equal_entries_is_known_in_closed_form() {
        let mut adagrad = ServerAdagradConfig::default().build(&Scope::default(), &()).unwrap();
        let mut theta = [0.0f32; 2];
        let delta = SparseUpdate { indices: vec![0, 1], values: Values::Each(vec![0.5, -0.5]) };
        adagrad.step(&mut theta, &Delta::Step(delta), 0.1);
        // τ_a = 0.5 and v = 2·τ_a², so that the step is 0.1·0.5/(0.5·(√2 + 1)) = 0.1·(√2 − 1).
        let step = 0.1 * (2f32.sqrt() - 1.0);
        assert!((theta[0] - step).abs() < 1e-8 && (theta[1] + step).abs() < 1e-8, "{theta:?}");
    }
}
