//! OCEAN: as many devices as their energy allows.

use crate::base::state::{Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::{Quantity, RoundRecord};
use crate::schedule::{Bias, Policy, Selection, Trains, View};
use serde::{Deserialize, Serialize};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<OceanConfig>();

/// The weight of a scheduled device over the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Pattern {
    /// η_t = 2·t/T: later rounds matter more.
    #[default]
    Rising,
    /// η_t = 1.
    Constant,
}

/// `[schedule.ocean]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct OceanConfig {
    /// V, weight of a scheduled device against the queues
    #[key(default = 1.0, range = "> 0")]
    pub v: f64,
    /// η, its weight over the rounds
    #[key(default = Pattern::Rising, allowed = "\"rising\" (2·t/T) | \"constant\"")]
    pub pattern: Pattern,
    /// energy of a device in a round on average, in units of P̄·n/K
    #[key(default = 1.0, range = "> 0")]
    pub budget: f64,
    /// rounds after which the queues start anew
    #[key(default = 0, range = "≥ 0 (0: never)", max = u32::MAX)]
    pub frame: u64,
    /// R_min, the bits that a device sends at least
    #[key(default = 0.0, range = "≥ 0 (0: 8·(33 + log2 d))")]
    pub min_bits: f64,
    /// whether fewer than K are scheduled where more would cost too much
    #[key(default = true)]
    pub elastic: bool,
}

impl PartConfig for OceanConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "ocean";
    const FAMILY: &'static str = "channel";
    /// A device that does not fit is skipped; before, it ended the round's choice.
    const REVISION: u32 = 2;
    const MEANING: &'static str =
        "as many devices as queues of spent energy and the channel allow, more in later rounds; equal bits";

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        let queues = vec![0.0; scope.devices as usize];
        Ok(Box::new(Ocean {
            config: self,
            allowed: self.budget / scope.k as f64,
            rounds: scope.rounds,
            unit: 1.0,
            queues,
        }))
    }
}

/// In each round the devices that maximize V·η_t·|S| − Σ_S q_m·E_m subject to |S| ≤ K and Σ_S R_min/C_m ≤ n,
/// greedily: ascending by q_m·P_m/C_m while V·η_t > q_m·E_m, without the devices whose R_min/C_m is more than
/// the symbols that are left. Equal bits.
///
/// E_m = P_m·R_min/C_m, the energy of a device's smallest upload, and q_m ← max(0, q_m + (radiated energy) −
/// H/T), both in units of P̄·n; a round radiates P times the symbols that were granted, and H/T is `budget`
/// over K, so that a device which is scheduled its share of the rounds spends 1/K. All queues start anew
/// after every `frame` rounds. Without `elastic` the K cheapest are scheduled at any cost. Source: after Xu
/// and Wang, *Client Selection and Bandwidth Allocation in Wireless Federated Learning Networks: A Long-Term
/// Perspective* (2020), as we read it; power is given here, and bandwidth follows from equal bits.
///
/// Invariants: q ≥ 0; without a frame a device's mean energy over T rounds is at most H/T + q_m(T)/T; the set
/// is the best one where all R_min/C_m are equal. No device reports, only the scheduled ones train. State: M
/// queues.
#[derive(Clone, Debug)]
pub struct Ocean {
    config: OceanConfig,
    /// H/T.
    allowed: f64,
    /// T.
    rounds: u64,
    /// P̄·n, from the view of the round.
    unit: f64,
    queues: Vec<f64>,
}

/// The cost of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    /// q·E.
    price: f64,
    /// R_min/C.
    symbols: f64,
}

/// The indices of up to `k` devices, greedily: by price, of equals by symbols. A device that does not fit
/// into the symbols that are left is skipped.
fn greedy(costs: &[Cost], k: usize, worth: f64, symbols: f64) -> Vec<usize> {
    let fits = |cost: &Cost| cost.price < worth && cost.symbols <= symbols;
    let mut order: Vec<usize> = (0..costs.len()).filter(|&i| fits(&costs[i])).collect();
    let cheaper = |&a: &usize, &b: &usize| {
        let (a_cost, b_cost) = (costs[a], costs[b]);
        a_cost.price.total_cmp(&b_cost.price).then(a_cost.symbols.total_cmp(&b_cost.symbols)).then(a.cmp(&b))
    };
    order.sort_unstable_by(cheaper);
    let (mut left, mut chosen) = (symbols, Vec::new());
    for i in order {
        if chosen.len() == k {
            break;
        }
        if costs[i].symbols <= left {
            left -= costs[i].symbols;
            chosen.push(i);
        }
    }
    chosen
}

impl Ocean {
    /// V·η_t in round `t`, from 1.
    fn worth(&self, t: u64) -> f64 {
        let eta = match self.config.pattern {
            Pattern::Rising => 2.0 * t as f64 / self.rounds.max(1) as f64,
            Pattern::Constant => 1.0,
        };
        self.config.v * eta
    }

    fn cost(&self, view: &View, device: DeviceId) -> Cost {
        let bits = match self.config.min_bits {
            0.0 => 8.0 * (33.0 + libm::log2(view.dim.max(1) as f64)),
            bits => bits,
        };
        let capacity = view.links.capacity(device);
        if capacity <= 0.0 {
            return Cost { price: f64::INFINITY, symbols: f64::INFINITY };
        }
        let symbols = bits / capacity;
        let energy = view.links.power(device).0 * symbols / self.unit;
        Cost { price: self.queues[device.index()] * energy, symbols }
    }
}

impl Persist for Ocean {
    fn save(&self) -> State {
        State::of(&self.queues)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        let queues: Vec<f64> = state.read()?;
        if queues.len() != self.queues.len() || queues.iter().any(|q| !(q.is_finite() && *q >= 0.0)) {
            return Err(StateError("its queues are not those of this run".into()));
        }
        self.queues = queues;
        Ok(())
    }
}

impl Policy for Ocean {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.unit = view.average_power.0 * view.symbols as f64;
        let devices = view.eligible();
        let costs: Vec<Cost> = devices.iter().map(|&device| self.cost(view, device)).collect();
        view.note_each(Quantity::Score, &devices, |i| costs[i].price);
        view.note_each(Quantity::Queue, &devices, |i| self.queues[devices[i].index()]);
        let chosen = if self.config.elastic {
            let worth = self.worth(view.t + 1);
            view.note_each(Quantity::Threshold, &devices, |_| worth);
            greedy(&costs, view.k, worth, view.symbols as f64)
        } else {
            let cost = |i: usize| (-costs[i].price, -costs[i].symbols);
            crate::schedule::largest_indices_by(&devices, view.k, cost)
        };
        let mut chosen: Vec<DeviceId> = chosen.into_iter().map(|i| devices[i]).collect();
        chosen.sort_unstable();
        chosen
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Scheduled).by_channel(true).by_average_power()
    }

    fn observe(&mut self, outcome: &RoundRecord) {
        for sent in &outcome.transmissions {
            if let Some(queue) = self.queues.get_mut(sent.device.index()) {
                *queue += sent.power.0 * sent.airtime.0 / self.unit;
            }
        }
        let ends = self.config.frame > 0 && outcome.round.is_multiple_of(self.config.frame);
        let allowed = self.allowed;
        self.queues.iter_mut().for_each(|q| *q = if ends { 0.0 } else { (*q - allowed).max(0.0) });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, counts, run_policy};
    use super::*;
    use proptest::prelude::*;

    fn ocean(config: OceanConfig, devices: u64, k: u64, rounds: u64) -> Ocean {
        let scope = Scope { devices, k, rounds, ..Scope::default() };
        Ocean {
            config,
            allowed: config.budget / scope.k as f64,
            rounds,
            unit: 5000.0,
            queues: vec![0.0; scope.devices as usize],
        }
    }

    /// V·η·|S| − Σ price, or −∞ if the symbols do not last.
    fn value(costs: &[Cost], set: &[usize], worth: f64, symbols: f64) -> f64 {
        let used: f64 = set.iter().map(|&i| costs[i].symbols).sum();
        if used > symbols * (1.0 + 1e-12) {
            return f64::NEG_INFINITY;
        }
        set.iter().map(|&i| worth - costs[i].price).sum()
    }

    proptest! {
        /// Against all subsets: exact where all need the same symbols; otherwise feasible and, where symbols
        /// are the limit, at least half of the best.
        #[test]
        fn the_set_is_the_best_of_all_subsets_where_symbols_are_alike(
            prices in prop::collection::vec(0.0..3.0f64, 1..=8),
            k in 1usize..=8,
            worth in 0.01..4.0f64,
            share in 0.05..2.0f64,
        ) {
            let costs: Vec<Cost> = prices.iter().map(|&price| Cost { price, symbols: 1.0 }).collect();
            let symbols = share * prices.len() as f64;
            let set = greedy(&costs, k, worth, symbols);
            let got = value(&costs, &set, worth, symbols);
            let subsets = (0u32..1 << costs.len()).filter(|mask| mask.count_ones() as usize <= k);
            let best = subsets
                .map(|mask| {
                    let set: Vec<usize> = (0..costs.len()).filter(|i| (mask >> i) & 1 == 1).collect();
                    value(&costs, &set, worth, symbols)
                })
                .fold(f64::NEG_INFINITY, f64::max);
            prop_assert!((got - best).abs() < 1e-12, "{} {}", got, best);
        }

        #[test]
        fn no_set_is_too_large_or_uses_more_symbols_than_there_are(
            costs in prop::collection::vec((0.0..3.0f64, 0.01..2.0f64), 1..=8),
            k in 1usize..=8,
            worth in 0.01..4.0f64,
        ) {
            let cost = |(price, symbols)| Cost { price, symbols };
            let costs: Vec<Cost> = costs.into_iter().map(cost).collect();
            let set = greedy(&costs, k, worth, 2.5);
            prop_assert!(set.len() <= k && value(&costs, &set, worth, 2.5) >= 0.0);
            prop_assert!(set.iter().all(|&i| costs[i].price < worth));
        }
    }

    /// Device 0 is too weak for the whole round; its queue stays 0, so that it is always the cheapest.
    #[test]
    fn a_device_that_cannot_fit_does_not_keep_the_others_from_sending() {
        let cost = |price, symbols| Cost { price, symbols };
        let costs = [cost(0.0, 9.0), cost(0.1, 3.0), cost(0.2, 4.0), cost(0.3, 3.0), cost(0.4, 1.0)];
        assert_eq!(greedy(&costs, 4, 1.0, 8.0), [1, 2, 4]);
        let mut gains = [3.0; 5];
        gains[0] = 1e-9;
        let bench = Bench::with_gains(&gains, 3);
        let mut policy = ocean(OceanConfig { min_bits: 1000.0, v: 1e9, ..OceanConfig::default() }, 5, 3, 10);
        assert_eq!(bench.at(0, |view| policy.candidates(view)), [DeviceId(1), DeviceId(2), DeviceId(3)]);
    }

    #[test]
    fn the_queues_follow_the_recursion_and_start_anew_with_every_frame() {
        let config = OceanConfig { budget: 0.001, frame: 4, ..OceanConfig::default() };
        let mut policy = ocean(config, 3, 2, 10);
        // of_devices records one symbol at power 1: 1/5000; allowed are 0.001/2.
        let (spent, allowed) = (1.0 / 5000.0, 0.0005);
        let mut wanted = [0.0f64; 3];
        for (round, sent) in [(1, vec![0, 1]), (2, vec![0]), (3, vec![0, 2]), (4, vec![1]), (5, vec![])] {
            let devices: Vec<DeviceId> = sent.iter().map(|&m| DeviceId(m)).collect();
            policy.queues[0] += 0.01;
            wanted[0] += 0.01;
            policy.observe(&RoundRecord::of_devices(round, &devices));
            for (m, queue) in (0..).zip(&mut wanted) {
                *queue = (*queue + if sent.contains(&m) { spent } else { 0.0 } - allowed).max(0.0);
            }
            if round == 4 {
                wanted.fill(0.0);
            }
            assert!(
                policy.queues.iter().zip(wanted).all(|(got, wanted)| (got - wanted).abs() < 1e-15),
                "{round}"
            );
        }
    }

    #[test]
    fn a_device_in_debt_waits_and_later_rounds_are_worth_more() {
        let bench = Bench::with_gains(&[3.0; 4], 3);
        let config = OceanConfig { min_bits: 1000.0, ..OceanConfig::default() };
        let mut policy = ocean(config, 4, 3, 10);
        // E = 1·(1000/2)/5000 = 0.1; prices 0, 0.3, 0.9 and 5.
        policy.queues = vec![0.0, 3.0, 9.0, 50.0];
        let at = |t: u64| bench.at(t, |view| policy.clone().candidates(view));
        // V·η in rounds 1, 2 and 10: 0.2, 0.4 and 2.
        assert_eq!(at(0), [DeviceId(0)]);
        assert_eq!(at(1), [DeviceId(0), DeviceId(1)]);
        assert_eq!(at(9), [DeviceId(0), DeviceId(1), DeviceId(2)]);
        let mut fixed = Ocean { config: OceanConfig { elastic: false, ..config }, ..policy.clone() };
        assert_eq!(bench.at(0, |view| fixed.candidates(view)).len(), 3);
        // 5000 symbols are enough for two of 2000 each.
        let mut dear = Ocean { config: OceanConfig { min_bits: 4000.0, v: 1e9, ..config }, ..policy.clone() };
        assert_eq!(bench.at(0, |view| dear.candidates(view)), [DeviceId(0), DeviceId(1)]);
    }

    #[test]
    fn with_a_small_budget_turns_are_shared() {
        let config = OceanConfig { budget: 1e-5, elastic: false, ..OceanConfig::default() };
        let schedules =
            run_policy(&mut ocean(config, 6, 2, 60), &vec![vec![1.0, 9.0, 2.0, 5.0, 4.0, 3.0]; 60], 2);
        assert!(counts(&schedules, 6).iter().all(|&n| n >= 8), "{:?}", counts(&schedules, 6));
    }
}
