//! Adagrad at the server (FedAdagrad).

use super::ServerOptimizer;
use super::adaptive::{Adaptive, Adaptivity};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

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
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ServerAdagradConfig {
    /// β₁, weight of the old mean
    #[key(range = "≥ 0 and < 1")]
    pub beta1: f64,
    /// τ_a, added to the root; "auto": the median non-zero entry of the first step
    #[key(default = Adaptivity::Auto, allowed = "\"auto\" | ≥ 1e-15")]
    pub adaptivity: Adaptivity,
}

impl PartConfig for ServerAdagradConfig {
    type Part = dyn ServerOptimizer;
    const NAME: &'static str = "adagrad";
    const MEANING: &'static str =
        "FedAdagrad: learn.server_rate times the step over the root of the sum of all squares so far";

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
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
    use crate::aggregate::Delta;
    use crate::compress::{SparseUpdate, Values};

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
