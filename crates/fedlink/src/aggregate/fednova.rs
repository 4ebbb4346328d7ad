//! FedNova: the mean of the updates per local step.

use super::{Aggregator, Contribution, Delta, equal_shares, size_shares, weighted_sum};
use crate::base::state::Persist;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this rule.
pub const ENTRY: Entry<dyn Aggregator> = Entry::of::<FedNova>();

/// Δ̄ = τ_eff·Σ p_m·Δ̂_m/τ_m with τ_eff = Σ p_m·τ_m, over the devices that count, p_m being 1/K or n_m/Σ n:
/// a device that takes more local steps pulls no harder than another.
///
/// Where weights do not add up to one (policies that give their own), τ_eff is divided by their sum, so that
/// equal steps always count as in a plain weighted sum. A device that was silent counts in τ_eff too.
///
/// Source: Wang et al., *Tackling the Objective Inconsistency Problem in Heterogeneous Federated
/// Optimization* (2020), for plain local descent. Bits: τ_m, which the server knows here. State: none.
/// Invariants: with equal steps it is [`mean`](super::Mean) (or [`by-size`](super::BySize)) to the bit. Of
/// use where `learn.local_steps_min` makes steps differ.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct FedNova {
    /// whether devices count by their number of samples; else alike
    pub by_size: bool,
}

impl PartConfig for FedNova {
    type Part = dyn Aggregator;
    const NAME: &'static str = "fednova";
    const MEANING: &'static str = "the mean of the updates by local step, times the mean number of steps";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Aggregator>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for FedNova {}

impl Aggregator for FedNova {
    fn weights(&self, devices: usize, samples: &dyn Fn(usize) -> usize) -> Vec<f32> {
        if self.by_size { size_shares(devices, samples) } else { equal_shares(devices) }
    }

    fn aggregate<'a>(&mut self, contributions: &[Contribution<'a>], _: usize) -> Delta<'a> {
        weighted_sum(contributions)
    }

    fn by_size(&self) -> bool {
        self.by_size
    }

    fn by_steps(&self) -> bool {
        true
    }
}

/// p_m becomes p_m·τ_eff/τ_m, with τ_eff = Σ p·τ/Σ p.
pub(crate) fn normalize_steps(weights: &mut [f32], steps: &[u64]) {
    let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    if total == 0.0 {
        return;
    }
    let before = weights.to_vec();
    for (weight, &own) in weights.iter_mut().zip(steps) {
        // The ratios of equal steps are exactly 1, so that their sum is exactly the total.
        let ratio = |(weight, &steps): (&f32, &u64)| f64::from(*weight) * (steps as f64 / own as f64);
        let sum: f64 = before.iter().zip(steps).map(ratio).sum();
        *weight = (f64::from(*weight) * (sum / total)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_are_those_of_the_formula_and_unchanged_if_steps_are_equal(
            devices in prop::collection::vec((0.0..1.0f32, 1u64..50), 1..12), equal in 1u64..1000,
        ) {
            let (weights, steps): (Vec<f32>, Vec<u64>) = devices.into_iter().unzip();
            let mut same = weights.clone();
            normalize_steps(&mut same, &vec![equal; weights.len()]);
            prop_assert_eq!(&same, &weights);
            let mut ours = weights.clone();
            normalize_steps(&mut ours, &steps);
            let total: f64 = weights.iter().map(|&x| f64::from(x)).sum();
            let effective: f64 =
                weights.iter().zip(&steps).map(|(&p, &tau)| f64::from(p) * tau as f64).sum::<f64>() / total;
            for ((ours, weight), tau) in ours.iter().zip(&weights).zip(&steps) {
                let exact = if total == 0.0 { 0.0 } else { f64::from(*weight) * effective / *tau as f64 };
                prop_assert!((f64::from(*ours) - exact).abs() <= 1e-6 * exact, "{ours} {exact}");
            }
        }
    }
}
