//! K independent draws.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::Quantity;
use crate::schedule::sampling::Target;
use crate::schedule::{Bias, Pick, Policy, Reports, Schedule, Selection, Trains, View, Weight};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Multinomial>();

/// K independent draws with probabilities π; a device that was drawn j times sends once and counts j/K.
///
/// Source: the sampling scheme of Li et al., *Federated Optimization in Heterogeneous Networks* (2020), as we
/// read it. Invariants: every device has the weight π on average; at most K different devices are scheduled.
/// Bits are proportional to weights.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Multinomial {
    /// π, the probability of a draw
    #[key(default = Target::BySize, allowed = "\"equal\" | \"by-size\"")]
    pub target: Target,
}

impl PartConfig for Multinomial {
    type Part = dyn Policy;
    const NAME: &'static str = "multinomial";
    const FAMILY: &'static str = "unbiased";
    const MEANING: &'static str =
        "K independent draws in proportion to samples; a device drawn j times counts j/K";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Multinomial {
    /// The devices that are drawn, ascending, with their numbers of draws.
    fn draw(self, view: &View) -> Vec<(DeviceId, u32)> {
        let devices = view.eligible();
        let weights = self.target.weights(&devices, view.links.devices(), |device| view.samples(device));
        let sum: f64 = if view.is_logged() { weights.iter().sum() } else { 1.0 };
        view.note_each(Quantity::Probability, &devices, |i| weights[i] / sum);
        let mut total = 0.0;
        let ends: Vec<f64> = weights.iter().map(|weight| (total += weight, total).1).collect();
        let mut rng = view.rng(0);
        let mut counts = vec![0; devices.len()];
        for _ in 0..if devices.is_empty() { 0 } else { view.k } {
            let point = rng.uniform() * total;
            let drawn = ends.partition_point(|end| *end <= point);
            counts[drawn.min(devices.len() - 1)] += 1;
        }
        devices.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
    }
}

impl Persist for Multinomial {}

impl Policy for Multinomial {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.draw(view).into_iter().map(|(device, _)| device).collect()
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Unbiased, Trains::Scheduled).with_weights()
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        // The same numbers are drawn again, since no state is kept; a device that failed meanwhile is left
        // out.
        let k = view.k as f64;
        let pick = |(device, count): (DeviceId, u32)| {
            let weight = f64::from(count) / k;
            Pick { device, bit_weight: weight, weight: Weight::Own(weight) }
        };
        let mut there = reports.devices.clone();
        there.sort_unstable();
        let drawn = self.draw(view).into_iter().filter(|(device, _)| there.binary_search(device).is_ok());
        Schedule { picks: drawn.map(pick).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;

    #[test]
    fn every_device_counts_its_probability_on_average() {
        let bench = Bench::new(6, 3);
        let rounds = 30_000u64;
        let mut sums = [0.0; 6];
        for t in 0..rounds {
            let schedule = bench.at(t, |view| {
                let mut policy = Multinomial::default();
                let candidates = policy.candidates(view);
                policy.select(view, &Reports::new(candidates, 0, vec![]))
            });
            assert!((1..=3).contains(&schedule.picks.len()));
            let total: f64 = schedule.picks.iter().map(|pick| pick.bit_weight).sum();
            assert!((total - 1.0).abs() < 1e-12);
            schedule.picks.iter().for_each(|pick| sums[pick.device.index()] += pick.bit_weight);
        }
        // 10 … 15 samples, 75 in all.
        for (m, sum) in sums.iter().enumerate() {
            let p = (10 + m) as f64 / 75.0;
            let deviation = (p * (1.0 - p) / 3.0 / rounds as f64).sqrt();
            assert!((sum / rounds as f64 - p).abs() < 4.5 * deviation, "{sums:?}");
        }
    }
}
