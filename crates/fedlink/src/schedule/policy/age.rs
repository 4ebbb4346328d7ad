//! Age of update and channel.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::Quantity;
use crate::schedule::{Bias, Policy, Selection, Trains, View, largest_indices_by};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Age>();

/// The K largest f_α(1 + a_m)·C_m^κ with equal bits: a_m rounds since device m was scheduled last, f_α(x) =
/// log2 x at α = 1 and x^(1−α)/(1−α) below.
///
/// Source: after Yang, Arafa, Quek and Poor, *Age-Based Scheduling Policy for Federated Learning in Mobile
/// Edge Networks* (2019), as we read it; sub-channels there are symbols a bit, 1/C, here. Invariants: κ = 0
/// is a strict cycle from round ⌈M/K⌉ on; κ → ∞ selects as BC. No device reports, only the K train.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Age {
    /// α of f: 1 is log2, below x^(1−α)
    #[key(default = 1.0, range = "0 ..= 1")]
    pub alpha: f64,
    /// κ, weight of the channel; 0: age alone
    #[key(default = 1.0, range = "0 ..= 1000")]
    pub kappa: f64,
}

impl PartConfig for Age {
    type Part = dyn Policy;
    const NAME: &'static str = "age";
    const FAMILY: &'static str = "fairness";
    const MEANING: &'static str =
        "the K largest f(age)·C^κ: who waited longest over a good channel, equal bits";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Age {
    /// ln f_α(1 + age), which orders as f does.
    fn logarithm(&self, age: u64) -> f64 {
        let x = age as f64 + 1.0;
        if self.alpha == 1.0 { libm::log(libm::log2(x)) } else { (1.0 - self.alpha) * libm::log(x) }
    }
}

impl Persist for Age {}

impl Policy for Age {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let devices = view.eligible();
        let value = |i: usize| {
            let device = devices[i];
            let channel = match self.kappa {
                0.0 => 0.0,
                kappa => kappa * libm::log(view.links.capacity(device)),
            };
            // Of equals, the larger gain; a just scheduled device has f = 0, whatever its channel.
            (self.logarithm(view.devices.age(device, view.t)) + channel, view.links.gain(device))
        };
        view.note_each(Quantity::Score, &devices, |i| value(i).0);
        largest_indices_by(&devices, view.k, value).into_iter().map(|i| devices[i]).collect()
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::OverRounds, Trains::Scheduled).by_channel(self.kappa > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;

    #[test]
    fn without_the_channel_it_is_a_strict_cycle() {
        let (m, k) = (12, 3);
        let mut bench = Bench::new(m, k);
        let mut turns: Vec<Vec<u64>> = vec![Vec::new(); m];
        for t in 0..40 {
            let chosen = bench.at(t, |view| Age { kappa: 0.0, ..Age::default() }.candidates(view));
            bench.schedule_devices(&chosen, t);
            chosen.iter().for_each(|device| turns[device.index()].push(t));
        }
        for times in turns {
            assert!(times.windows(2).skip(1).all(|pair| pair[1] - pair[0] == (m / k) as u64), "{times:?}");
        }
    }

    #[test]
    fn with_nothing_but_the_channel_it_is_bc() {
        let bench = Bench::with_gains(&[1.0, 9.0, 2.0, 0.1, 3.0, 8.0], 2);
        let chosen = bench.at(9, |view| Age { kappa: 1000.0, alpha: 0.5 }.candidates(view));
        assert_eq!(chosen, [DeviceId(1), DeviceId(5)]);
    }

    #[test]
    fn the_choice_is_the_largest_product() {
        let mut bench = Bench::with_gains(&[3.0, 3.0, 7.0, 1.0], 1);
        // Ages before round 8: 8 (never), 2, 0, 7.
        for (device, t) in [(1, 5), (2, 7), (3, 0)] {
            bench.schedule_devices(&[DeviceId(device)], t);
        }
        // log2(9)·2, log2(3)·2, 0, log2(8)·1.
        assert_eq!(bench.at(8, |view| Age::default().candidates(view)), [DeviceId(0)]);
    }
}
