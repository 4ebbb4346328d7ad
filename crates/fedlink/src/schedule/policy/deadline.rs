//! As many devices as fit into a round.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::{Bias, Policy, Selection, Trains, View};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Deadline>();

/// The largest k ≤ K devices, the cheapest ones, that can each send R_min bits: Σ R_min/C_m(k) ≤ n. Equal
/// bits.
///
/// C_m(k) is the capacity at the power that k devices leave each other, M·P̄/k by the paper's rule; the round
/// then runs with that k, as a run with K = k would be. With `seconds` it is FedCS: devices are added one
/// after another, each time the one whose upload ends first if it follows those before and begins when it has
/// trained, max(Θ, T_m) + R_min/C_m(k)·T_s, while that is within `seconds`. T_m are the training times that
/// the clock expects (0 without `clock.compute`), T_s the seconds of a symbol.
///
/// Sources: after Nishio and Yonetani, *Client Selection for Federated Learning with Heterogeneous Resources
/// in Mobile Edge* (2019), and Shi, Zhou and Niu, *Device Scheduling with Fast Convergence for Wireless
/// Federated Learning* (2020), as we read them. Invariants: without `seconds` no larger set fits; the number
/// rises with n; no device is added beyond the deadline. If not even one fits, no device is scheduled. No
/// device reports, only the scheduled ones train.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// R_min, the bits that each sends at least
    #[key(default = 0.0, range = "≥ 0 (0: those of q = d/1000 entries, 33 + log2 C(d, q))")]
    pub min_bits: f64,
    /// time for training and uploads of R_min, one after another (FedCS); needs radio.bandwidth_hz
    #[key(default = 0.0, range = "≥ 0 (0: the symbols of the round count instead)")]
    pub seconds: f64,
}

impl PartConfig for Deadline {
    type Part = dyn Policy;
    const NAME: &'static str = "deadline";
    const FAMILY: &'static str = "channel";
    const MEANING: &'static str =
        "as many devices as can each send a least number of bits, or by a deadline (FedCS); equal bits";

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
    /// R_min.
    fn least_bits(&self, view: &View) -> f64 {
        if self.min_bits > 0.0 { self.min_bits } else { bits_of_a_thousandth(view.dim) }
    }

    /// Up to `k` devices, in the order in which they are added, of those that fit if k are scheduled.
    fn fitting(&self, view: &View, k: usize) -> Vec<DeviceId> {
        let bits = self.least_bits(view);
        let symbols = |device: DeviceId| bits / view.capacity_at(device, k);
        let mut waiting: Vec<(DeviceId, f64)> =
            view.eligible().into_iter().map(|device| (device, symbols(device))).collect();
        if let Some(symbol_s) = view.symbol_s.filter(|_| self.seconds > 0.0) {
            return by_seconds(view, &waiting, k, (symbol_s, self.seconds));
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

    /// The largest k ≤ K of which the k cheapest fit into the symbols, or 0.
    ///
    /// With fewer devices each needs fewer symbols. So a number that fits and one that does not are bounds
    /// for each device's symbols in between. Devices that are among the cheapest for no number in between are
    /// left out of the later passes: few passes are over all devices.
    fn most_that_fit(&self, view: &View) -> usize {
        let (bits, symbols) = (self.least_bits(view), view.symbols as f64);
        let mut pool: Vec<Bounds> = view
            .eligible()
            .into_iter()
            .map(|device| Bounds { device, low: 0.0, high: f64::INFINITY })
            .collect();
        // (k, the symbols of the k cheapest)
        let (mut fits, mut too_many) = ((0, 0.0), (view.k.min(pool.len()) + 1, f64::INFINITY));
        let mut needs = Vec::with_capacity(pool.len());
        for step in 0u32.. {
            if too_many.0 - fits.0 == 1 {
                break;
            }
            let k = probe(fits, too_many, symbols, step);
            needs.clear();
            needs.extend(pool.iter().map(|bounds| bits / view.capacity_at(bounds.device, k)));
            let are_enough = smallest(&mut needs.clone(), k).iter().sum::<f64>();
            if are_enough <= symbols {
                fits = (k, are_enough);
                pool.iter_mut().zip(&needs).for_each(|(bounds, needs)| bounds.low = *needs);
            } else {
                too_many = (k, are_enough);
                pool.iter_mut().zip(&needs).for_each(|(bounds, needs)| bounds.high = *needs);
            }
            let mut highest: Vec<f64> = pool.iter().map(|bounds| bounds.high).collect();
            if let Some(&limit) = smallest(&mut highest, too_many.0 - 1).last() {
                pool.retain(|bounds| bounds.low <= limit);
            }
        }
        fits.0
    }
}

/// The symbols that a device needs for a number of devices that fits, and for one that does not.
struct Bounds {
    device: DeviceId,
    low: f64,
    high: f64,
}

/// The `count` smallest numbers, ascending.
fn smallest(numbers: &mut [f64], count: usize) -> &[f64] {
    let count = count.min(numbers.len());
    if count < numbers.len() {
        numbers.select_nth_unstable_by(count, f64::total_cmp);
    }
    numbers[..count].sort_unstable_by(f64::total_cmp);
    &numbers[..count]
}

/// A number of devices between one that fits and one that does not: at first the largest, then that of a
/// power law through the symbols of both, and every other time the middle, so that it ends soon whatever the
/// law is.
fn probe(fits: (usize, f64), too_many: (usize, f64), symbols: f64, step: u32) -> usize {
    let (least, most) = (fits.0 + 1, too_many.0 - 1);
    let [(low, low_needs), (high, high_needs)] = [fits, too_many].map(|(k, needs)| (k as f64, needs));
    let guess = match (fits.0, step) {
        (_, 0) => most as f64,
        // k devices of many need no more than their part.
        (0, 1) => high * symbols / high_needs,
        (1.., step) if step % 2 == 1 => {
            let power = libm::log(high / low) / libm::log(high_needs / low_needs);
            low * libm::pow(symbols / low_needs, power)
        }
        _ => 0.5 * (low + high),
    };
    // The conversion turns NaN into 0.
    (guess as usize).clamp(least, most)
}

/// FedCS: up to `k` of the `waiting` devices, each with the symbols that it needs, one after another while
/// time lasts: each time the one that ends first, of equals one that needs less time on the link.
fn by_seconds(
    view: &View,
    waiting: &[(DeviceId, f64)],
    k: usize,
    (symbol_s, limit): (f64, f64),
) -> Vec<DeviceId> {
    let upload = |i: usize| waiting[i].1 * symbol_s;
    let trains = |i: usize| view.train_s(waiting[i].0).unwrap_or(0.0);
    let queue = |time: &dyn Fn(usize) -> f64| -> BinaryHeap<Reverse<(Seconds, usize)>> {
        (0..waiting.len()).map(|i| Reverse((Seconds(time(i)), i))).collect()
    };
    // Devices that train at this time, by the end of training and by the end of an upload that follows at
    // once; devices that have trained, by the length of the upload.
    let (mut training, mut early) = (queue(&trains), queue(&|i| trains(i) + upload(i)));
    let mut ready = BinaryHeap::new();
    let mut is_ready = vec![false; waiting.len()];
    let (mut elapsed, mut chosen) = (0.0f64, Vec::new());
    while chosen.len() < k {
        while let Some(&Reverse((_, i))) = training.peek().filter(|next| next.0.0.0 <= elapsed) {
            training.pop();
            if !std::mem::replace(&mut is_ready[i], true) {
                ready.push(Reverse((Seconds(upload(i)), i)));
            }
        }
        while early.peek().is_some_and(|next| is_ready[next.0.1]) {
            early.pop();
        }
        let next = [
            ready.peek().map(|&Reverse((Seconds(time), i))| (Seconds(elapsed + time), i)),
            early.peek().map(|&Reverse(next)| next),
        ];
        let first = next.iter().flatten().min().filter(|(end, _)| end.0 <= limit);
        let Some(&(Seconds(end), i)) = first else { break };
        // A device that is chosen while it trains is in neither queue any more.
        if std::mem::replace(&mut is_ready[i], true) {
            ready.pop()
        } else {
            early.pop()
        };
        elapsed = end;
        chosen.push(waiting[i].0);
    }
    chosen
}

/// Seconds in their order.
#[derive(Clone, Copy, PartialEq)]
struct Seconds(f64);

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Persist for Deadline {}

impl Policy for Deadline {
    fn needs_units(&self) -> Option<&'static str> {
        (self.seconds > 0.0).then_some("seconds")
    }

    fn round_k(&mut self, view: &View) -> usize {
        if self.seconds <= 0.0 || view.symbol_s.is_none() {
            return self.most_that_fit(view).max(1);
        }
        // By bisection: with more devices each has less power and all together more to send.
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

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Scheduled).by_channel(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use crate::compress::bits::log2_choose;
    use proptest::prelude::*;

    /// The schedule of a round with the k that the policy sets.
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

        /// The deadline holds for every scheduled device, each is the first to end of those left, and where
        /// all train equally long no other order has more.
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
                // No device that would still be in time is left out.
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
    fn where_no_device_fits_none_is_scheduled() {
        let policy = Deadline { min_bits: 1e6, seconds: 0.0 };
        assert_eq!(play(Bench::new(5, 3), policy), []);
    }

    #[test]
    fn a_round_is_played_with_the_power_of_the_k_that_fits() {
        let mut config = crate::spec::Config::default();
        (config.data.devices, config.data.samples_per_device) = (12, 20);
        config.learn.model = "softmax".into();
        (config.schedule.policy, config.schedule.k, config.run.rounds) = ("deadline".into(), 8, 12);
        config.radio.symbols = 600;
        config.set("schedule.deadline.min_bits", 600.0).unwrap();
        let data = crate::data::load("digits", &[]).unwrap();
        let mut simulation = crate::system::simulation::Simulation::of(&config, data).unwrap();
        let mut sizes = std::collections::BTreeSet::new();
        for t in 0..12 {
            let record = simulation.step().unwrap();
            let k = record.transmissions.len();
            sizes.insert(k);
            let mut same = config.clone();
            same.schedule.k = k as u64;
            let radio =
                crate::system::build::radio(&same.resolve(&crate::parts::Parts::default()).unwrap(), 10)
                    .unwrap();
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
