//! As many devices as fit into a round.

use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key, number};
use crate::schedule::{Policy, Reports, Schedule, View};
use crate::state::Persist;
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Deadline>();

/// The largest k ≤ K devices, the cheapest ones, that can each send R_min bits: Σ R_min/C_m(k) ≤ n. Equal
/// bits.
///
/// C_m(k) is the capacity at the power that k devices leave each other, M·P̄/k by the paper's rule; the round
/// is then played with that k, as a run with K = k would be. With `seconds` it is FedCS: devices are added
/// one after another, each time the one whose upload ends first if it follows those before and begins when it
/// has trained, max(Θ, T_m) + R_min/C_m(k)·T_s, while that is within `seconds`. T_m are the training times
/// that the clock expects (0 without `clock.compute`), T_s the seconds of a symbol.
///
/// Sources: after Nishio and Yonetani, *Client Selection for Federated Learning with Heterogeneous Resources
/// in Mobile Edge* (2019), and Shi, Zhou and Niu, *Device Scheduling with Fast Convergence for Wireless
/// Federated Learning* (2020), as we read them. Invariants: without `seconds` no larger set fits; the number
/// rises with n; no device is added beyond the deadline. Where not even one fits nobody is scheduled. Nobody
/// reports, only the scheduled ones train.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Deadline {
    /// R_min; 0: the bits of d/1000 entries.
    pub min_bits: f64,
    /// The time that FedCS has; 0: the round's symbols count.
    pub seconds: f64,
}

impl Default for Deadline {
    fn default() -> Self {
        Self { min_bits: 0.0, seconds: 0.0 }
    }
}

impl PartConfig for Deadline {
    type Part = dyn Policy;
    const NAME: &'static str = "deadline";
    const FAMILY: &'static str = "speed";
    const MEANING: &'static str =
        "as many devices as can each send a least number of bits, or by a deadline (FedCS); equal bits";
    const KEYS: &'static [Key] = &[
        key(
            "min_bits",
            "R_min, the bits that each sends at least",
            "≥ 0 (0: those of q = d/1000 entries, 33 + log2 C(d, q))",
        ),
        key(
            "seconds",
            "time for training and uploads of R_min, one after another (FedCS); needs radio.bandwidth_hz",
            "≥ 0 (0: the symbols of the round count instead)",
        ),
    ];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        for (key, value) in [("min_bits", self.min_bits), ("seconds", self.seconds)] {
            number(key, value, |x| x >= 0.0, "a finite number of at least 0")?;
        }
        Ok(())
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// 33 + log2 C(d, q) bits of q = max(1, d/1000) entries of one value.
fn bits_of_a_thousandth(dim: usize) -> f64 {
    let q = (dim / 1000).max(1);
    let bits = |i: usize| libm::log2((dim - i) as f64 / (q - i) as f64);
    33.0 + (0..q.min(dim)).map(bits).sum::<f64>()
}

impl Deadline {
    /// Up to `k` devices, in the order in which they are added, of those that fit if k are scheduled.
    fn fitting(&self, view: &View, k: usize) -> Vec<DeviceId> {
        let bits = if self.min_bits > 0.0 { self.min_bits } else { bits_of_a_thousandth(view.dim) };
        let symbols = |device: DeviceId| bits / view.capacity_at(device, k);
        let mut waiting: Vec<(DeviceId, f64)> =
            view.eligible().into_iter().map(|device| (device, symbols(device))).collect();
        if let Some(symbol_s) = view.symbol_s.filter(|_| self.seconds > 0.0) {
            return by_seconds(view, waiting, k, (symbol_s, self.seconds));
        }
        let cheaper = |a: &(DeviceId, f64), b: &(DeviceId, f64)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
        if k < waiting.len() {
            waiting.select_nth_unstable_by(k, cheaper);
            waiting.truncate(k);
        }
        waiting.sort_unstable_by(cheaper);
        let mut used = 0.0;
        let fits = |(_, symbols): &(DeviceId, f64)| (used += symbols, used <= view.symbols as f64).1;
        waiting.into_iter().take_while(fits).map(|(device, _)| device).collect()
    }
}

/// FedCS: up to `k` of the `waiting` devices, which need so many symbols each, one after another while time
/// lasts.
fn by_seconds(
    view: &View,
    mut waiting: Vec<(DeviceId, f64)>,
    k: usize,
    (symbol_s, limit): (f64, f64),
) -> Vec<DeviceId> {
    let (mut elapsed, mut chosen) = (0.0f64, Vec::new());
    while chosen.len() < k {
        let end = |&(device, symbols): &(DeviceId, f64)| {
            elapsed.max(view.train_s(device).unwrap_or(0.0)) + symbols * symbol_s
        };
        let ends = waiting.iter().map(end).enumerate();
        let Some((index, first)) = ends.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, end)| *end <= limit)
        else {
            break;
        };
        elapsed = first;
        chosen.push(waiting.remove(index).0);
    }
    chosen
}

impl Persist for Deadline {}

impl Policy for Deadline {
    /// The largest k of which k fit, by bisection: with more devices each has less power and all together
    /// more to send.
    fn round_k(&mut self, view: &View) -> usize {
        let (mut fits, mut too_many) = (0, view.k + 1);
        while too_many - fits > 1 {
            let middle = usize::midpoint(fits, too_many);
            if self.fitting(view, middle).len() == middle { fits = middle } else { too_many = middle }
        }
        fits.max(1)
    }

    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let mut chosen = self.fitting(view, view.k);
        chosen.sort_unstable();
        chosen
    }

    fn select(&mut self, _: &View, reports: &Reports) -> Schedule {
        Schedule::equal(reports.devices.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use crate::compress::bits::log2_choose;
    use proptest::prelude::*;

    /// What is scheduled, the round being played with the k that the policy sets.
    fn play(mut bench: Bench, mut policy: Deadline) -> Vec<DeviceId> {
        bench.k = bench.at(0, |view| policy.round_k(view));
        bench.at(0, |view| policy.candidates(view))
    }

    proptest! {
        /// Of all subsets S with Σ R_min/C_m(|S|) ≤ n, none is larger; more symbols never make it smaller.
        #[test]
        fn no_larger_set_fits_and_more_symbols_fit_no_fewer(
            gains in prop::collection::vec(0.01..30.0f64, 1..=8),
            k in 1usize..=8,
            min_bits in 500.0..9000.0f64,
        ) {
            let (m, k) = (gains.len(), k.min(gains.len()));
            let policy = Deadline { min_bits, seconds: 0.0 };
            let mut before = 0;
            for symbols in [1000, 5000, 6000, 20_000] {
                let mut bench = Bench::with_gains(&gains, k);
                bench.symbols = symbols;
                let count = play(bench, policy).len();
                let fits = |mask: &u32| {
                    let size = f64::from(mask.count_ones());
                    let needs = |i: usize| min_bits / (1.0 + gains[i] / size).log2();
                    let all: f64 = (0..m).filter(|i| (mask >> i) & 1 == 1).map(needs).sum();
                    all <= symbols as f64
                };
                let subsets = (1u32..1 << m).filter(|mask| mask.count_ones() as usize <= k);
                let largest = subsets.filter(fits).map(|mask| mask.count_ones() as usize).max().unwrap_or(0);
                prop_assert_eq!(count, largest);
                prop_assert!(count >= before);
                before = count;
            }
        }

        /// The deadline holds for everybody, each is the first to end of those left, and where all train
        /// alike no other order has more.
        #[test]
        fn fedcs_ends_in_time(
            devices in prop::collection::vec((0.05..20.0f64, 0.0..3.0f64), 1..=7),
            seconds in 0.5..8.0f64,
        ) {
            let (gains, train_s): (Vec<f64>, Vec<f64>) = devices.into_iter().unzip();
            let m = gains.len();
            let mut bench = Bench::with_gains(&gains, m);
            bench.symbol_s = Some(1e-3);
            bench.facts.train_s = train_s.clone();
            let policy = Deadline { min_bits: 1000.0, seconds };
            let upload = |i: usize, k: usize| (1000.0 / (1.0 + gains[i] / k as f64).log2()) * 1e-3;
            for k in 1..=m {
                let order = bench.at(0, |view| policy.fitting(view, k));
                let mut now = 0.0f64;
                let mut left: Vec<usize> = (0..m).collect();
                for device in &order {
                    let end = |i: usize| now.max(train_s[i]) + upload(i, k);
                    let earliest = left.iter().map(|&i| end(i)).fold(f64::INFINITY, f64::min);
                    now = end(device.index());
                    prop_assert!((now - earliest).abs() < 1e-12 && now <= seconds);
                    left.retain(|&i| i != device.index());
                }
                // Nobody who would still be in time is left out.
                let late = left.iter().all(|&i| now.max(train_s[i]) + upload(i, k) > seconds);
                prop_assert!(order.len() == k || late);
            }
        }
    }

    #[test]
    fn the_least_bits_are_those_of_a_thousandth_of_the_entries() {
        for dim in [1, 10, 999, 1000, 7850, 203_530] {
            let q = (dim / 1000).max(1) as u64;
            let wanted = 33.0 + log2_choose(dim as u64, q);
            assert!((bits_of_a_thousandth(dim) - wanted).abs() < 1e-9 * wanted, "{dim}");
        }
    }

    #[test]
    fn where_nobody_fits_nobody_is_scheduled() {
        let policy = Deadline { min_bits: 1e6, seconds: 0.0 };
        assert_eq!(play(Bench::new(5, 3), policy), []);
    }

    #[test]
    fn a_round_is_played_with_the_power_of_the_k_that_fits() {
        let mut config = crate::config::Config::default();
        (config.data.devices, config.data.samples_per_device) = (12, 20);
        config.learn.model = "softmax".into();
        (config.schedule.policy, config.schedule.k, config.run.rounds) = ("deadline".into(), 8, 12);
        config.radio.symbols = 600;
        config.set("schedule.deadline.min_bits", 600.0).unwrap();
        let data = crate::data::load("digits", &[]).unwrap();
        let mut simulation = crate::simulation::Simulation::new(&config, data).unwrap();
        let mut sizes = std::collections::BTreeSet::new();
        for t in 0..12 {
            let record = simulation.step().unwrap();
            let k = record.transmissions.len();
            sizes.insert(k);
            let mut same = config.clone();
            same.schedule.k = k as u64;
            let radio = crate::setup::radio(&same, &crate::parts::Parts::default(), 10).unwrap();
            let known = radio.links(t).known;
            for sent in &record.transmissions {
                assert_eq!(sent.capacity.to_bits(), known.capacity(sent.device).to_bits());
                assert!((sent.power.0 - 12.0 / k as f64).abs() < 1e-12);
                assert!(sent.budget.0 >= 600.0 - 1e-9, "each has its least bits: {}", sent.budget.0);
            }
        }
        assert!(sizes.len() > 1 && !sizes.contains(&0), "{sizes:?}");
    }
}
