//! Active federated learning.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::Quantity;
use crate::schedule::sampling::successive;
use crate::schedule::{Ask, Bias, Policy, Selection, Trains, View};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Active>();

/// Devices drawn by a softmax of their values v_m = √n_m·loss at their last training.
///
/// The α₁·M smallest values are dropped; then max(1, round((1−α₃)·K)) devices are drawn without replacement
/// with p ∝ e^(α₂·v), and the rest of the K uniformly from all that are left. Equal bits; no device reports
/// before selection.
///
/// Source: Goetz et al., *Active Federated Learning* (2019), as we read it (not to be confused with agnostic
/// federated learning). Not specified there: a device that never trained has the largest value seen so far.
/// Public code draws no device by value at K = 1, keeps the share that is to be dropped, or overflows the
/// exponential.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Active {
    /// α₁, share of the devices with the smallest values that are dropped
    #[key(default = 0.75, range = "0 ..= 1")]
    pub drop: f64,
    /// α₂ of the softmax
    #[key(default = 0.01, range = "≥ 0")]
    pub sharpness: f64,
    /// α₃, share of the K that is drawn uniformly
    #[key(default = 0.1, range = "0 ..= 1")]
    pub uniform: f64,
}

impl PartConfig for Active {
    type Part = dyn Policy;
    const NAME: &'static str = "active";
    const FAMILY: &'static str = "loss";
    const MEANING: &'static str =
        "devices drawn by a softmax of their last losses, some uniformly; equal bits";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Active {
    /// The softmax over `values`, zero for those that are dropped.
    fn probabilities(&self, values: &[f64]) -> Vec<f64> {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]).then(b.cmp(&a)));
        let dropped = ((self.drop * values.len() as f64) as usize).min(values.len().saturating_sub(1));
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The largest is subtracted, so that nothing overflows.
        let mut p: Vec<f64> = values.iter().map(|v| libm::exp(self.sharpness * (v - largest))).collect();
        order[..dropped].iter().for_each(|&i| p[i] = 0.0);
        p
    }
}

impl Persist for Active {}

impl Policy for Active {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let devices = view.eligible();
        let value = |device: DeviceId| {
            let loss = view.devices.last_loss(device)?;
            Some(libm::sqrt(view.samples(device) as f64) * f64::from(loss))
        };
        let known: Vec<Option<f64>> = devices.iter().map(|&device| value(device)).collect();
        let best = known.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let best = if best.is_finite() { best } else { 0.0 };
        let values: Vec<f64> = known.iter().map(|value| value.unwrap_or(best)).collect();
        let k = view.k.min(devices.len());
        let by_value = (libm::round((1.0 - self.uniform) * k as f64) as usize).clamp(k.min(1), k);
        let p = self.probabilities(&values);
        view.note_each(Quantity::Score, &devices, |i| values[i]);
        view.note_each(Quantity::Probability, &devices, |i| p[i]);
        // Those that were dropped are not drawn by value, even if too few are left.
        let able = p.iter().filter(|p| **p > 0.0).count();
        let mut rng = view.rng(0);
        let mut drawn = successive(&p, by_value.min(able), &mut rng);
        let mut is_left = vec![true; devices.len()];
        drawn.iter().for_each(|&i| is_left[i] = false);
        let left: Vec<usize> = (0..devices.len()).filter(|&i| is_left[i]).collect();
        let rest = successive(&vec![1.0; left.len()], k - drawn.len(), &mut rng);
        drawn.extend(rest.into_iter().map(|i| left[i]));
        drawn.sort_unstable();
        drawn.into_iter().map(|i| devices[i]).collect()
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::Loss]
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Scheduled)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn without_values_subsets_are_uniform() {
        let bench = Bench::new(5, 2);
        let policy = Active { drop: 0.0, sharpness: 0.0, uniform: 0.5 };
        let mut pairs = BTreeMap::new();
        let rounds = 20_000;
        for t in 0..rounds {
            *pairs.entry(bench.at(t, |view| policy.clone().candidates(view))).or_insert(0u32) += 1;
        }
        assert_eq!(pairs.len(), 10);
        let (mean, deviation) = (rounds as f64 / 10.0, (rounds as f64 * 0.09).sqrt());
        assert!(pairs.values().all(|&n| (f64::from(n) - mean).abs() < 4.5 * deviation), "{pairs:?}");
    }

    #[test]
    fn drawn_by_value_and_the_smallest_dropped() {
        let active = Active { drop: 0.5, sharpness: 1.0, uniform: 0.0 };
        let p = active.probabilities(&[1.0, 3.0, 2.0, 3.0 - std::f64::consts::LN_2]);
        // The two smallest are gone; the others e⁰ and e^(−ln 2).
        assert_eq!((p[0], p[2]), (0.0, 0.0));
        assert!((p[1] - 1.0).abs() < 1e-15 && (p[3] - 0.5).abs() < 1e-15);
        // Large values do not overflow.
        assert!(active.probabilities(&[1e300, 0.0]).iter().all(|p| p.is_finite()));
    }

    #[test]
    fn at_one_device_it_is_drawn_by_value() {
        let mut bench = Bench::new(4, 1).with_equal_sizes();
        for (m, loss) in [(0, 0.0), (1, 0.0), (2, 50.0), (3, 0.0)] {
            bench.note_loss(m, loss);
        }
        for t in 0..50 {
            let chosen = bench.at(t, |view| Active::default().candidates(view));
            assert_eq!(chosen, [DeviceId(2)], "three quarters are dropped");
        }
    }
}
