//! Adam at the server (FedAdam).

use super::ServerOptimizer;
use super::adaptive::{Adaptive, Adaptivity};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this optimizer.
pub const ENTRY: Entry<dyn ServerOptimizer> = Entry::of::<ServerAdamConfig>();

/// `[learn.server.adam]`.
///
/// m ← β₁·m + (1−β₁)·Δ̄, v ← β₂·v + (1−β₂)·Δ̄², θ ← θ + c·m/(√v + τ_a), entry by entry; m starts at zero, v
/// at τ_a², and there is no bias correction.
///
/// Source: Reddi et al., *Adaptive Federated Optimization* (2020), Algorithm 2. State: 2·d numbers in
/// double precision, and τ_a. Invariants: no entry moves by more than c·max|Δ̄|/τ_a; with `adaptivity =
/// "auto"`, scaling all updates changes no step, so that c is about what a weight moves in a round: 0.01 is
/// a start, 1 is mostly far too much.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ServerAdamConfig {
    /// β₁, weight of the old mean
    #[key(default = 0.9, range = "≥ 0 and < 1")]
    pub beta1: f64,
    /// β₂, weight of the old mean square
    #[key(default = 0.99, range = "≥ 0 and < 1")]
    pub beta2: f64,
    /// τ_a, added to the root; "auto": the median non-zero entry of the first step
    #[key(default = Adaptivity::Auto, allowed = "\"auto\" | ≥ 1e-15")]
    pub adaptivity: Adaptivity,
}

impl PartConfig for ServerAdamConfig {
    type Part = dyn ServerOptimizer;
    const NAME: &'static str = "adam";
    const MEANING: &'static str =
        "FedAdam: learn.server_rate times the mean of the steps over the root of their mean square";

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        self.adaptivity.check()
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ServerOptimizer>, ConfigError> {
        let beta2 = self.beta2;
        let second = move |v: f64, delta: f64| beta2 * v + (1.0 - beta2) * (delta * delta);
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
        let mut adam = ServerAdamConfig::default().build(&Scope::default(), &()).unwrap();
        let mut theta = [0.0f32; 2];
        let delta = SparseUpdate { indices: vec![0, 1], values: Values::Each(vec![0.5, -0.5]) };
        adam.step(&mut theta, &Delta::Step(delta), 0.1);
        // τ_a = 0.5 and v stays at τ_a², so that the step is 0.1·(0.1·0.5)/(0.5 + 0.5).
        assert_eq!(theta, [0.005, -0.005]);
    }
}
