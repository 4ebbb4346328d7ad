//! ρ(t), the share of entries that the link carries in a round.

use super::{Estimate, MAX_ROUNDS, TheoryError, real, whole};
use crate::statistics::Moments;
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::{Bits, DeviceId, Power};
use fedlink::compress::{RandomSparse, SparseScheme};
use fedlink::radio::fading::{Fading, Rayleigh};
use fedlink::radio::link::{capacity, transmit_power};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The most numbers in a table over K and rounds, on a machine with any amount of memory.
const MAX_TABLE: u64 = 200_000_000;
/// The most bytes per number: eight, and a planner has four tables at a time (the draws by round, the
/// same by K, the curves of a row on every thread, and their means).
const BYTES_A_NUMBER: u64 = 4 * 8;

/// The most numbers in a table over K and rounds on this machine.
pub(super) fn max_table() -> u64 {
    table_within(fedlink::base::memory::total())
}

fn table_within(memory: Option<u64>) -> u64 {
    memory.map_or(MAX_TABLE, |bytes| (bytes / BYTES_A_NUMBER).clamp(1, MAX_TABLE))
}
/// The most numbers in a [`RhoStore`].
const MAX_KEPT: usize = 10_000_000;

/// The choice of the K devices of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Choice {
    /// The K largest gains.
    #[default]
    Best,
    /// K devices uniformly at random, independently of their channels.
    Uniform,
}

/// The parameters of ρ besides K.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkParameters {
    /// M, devices.
    pub devices: u64,
    /// d, entries of an update.
    pub dim: u64,
    /// n, channel symbols in a round.
    pub symbols: u64,
    /// P̄, average power of a device.
    pub power: f64,
    /// σ², noise variance.
    pub noise: f64,
    /// The choice of the K devices.
    pub choice: Choice,
}

/// The link of the paper's figures 3 and 4 (which do not give d; it is that of the paper's model).
impl Default for LinkParameters {
    fn default() -> Self {
        Self { devices: 100, dim: 203_530, symbols: 100_000, power: 1.0, noise: 1.0, choice: Choice::Best }
    }
}

/// The uplink in the bound: K devices with equal bits, compressed by [`RandomSparse`].
///
/// In a round the gains g are drawn, K devices chosen, and the n symbols split so that all carry the same
/// `R = n / Σ_j 1/C_j` bits, `C_j = log2(1 + g_j·P/σ²)`, `P = M·P̄/K`. Then q is the largest integer ≤ d
/// with `log2 C(d,q) + 33q ≤ R`, and `ρ = q/d`. The gains of round t under a seed are those of a
/// simulation under that seed. Invariants: 0 ≤ ρ ≤ 1; ρ rises with n and P̄ and falls with σ²; a
/// zero-gain link among the K gives ρ = 0; the result does not depend on the number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    parameters: LinkParameters,
}

impl Link {
    /// Checks the parameters; an error names the wrong one.
    pub fn new(parameters: LinkParameters) -> Result<Self, TheoryError> {
        whole("devices", parameters.devices, 1..=10_000_000, "")?;
        whole("dim", parameters.dim, 1..=(1 << 31) - 1, "")?;
        whole("symbols", parameters.symbols, 1..=1 << 53, "")?;
        real("power", parameters.power, |x| x > 0.0, "a finite number above 0")?;
        real("noise", parameters.noise, |x| x > 0.0, "a finite number above 0")?;
        Ok(Self { parameters })
    }

    /// Its parameters.
    pub fn parameters(&self) -> &LinkParameters {
        &self.parameters
    }

    /// ρ(0), …, ρ(`rounds`−1) with K = `k` under `seed`. A round too weak for one entry has ρ = 0; if all
    /// are, it is an error.
    pub fn rhos(&self, k: u64, rounds: usize, seed: u64) -> Result<Vec<f64>, TheoryError> {
        let table = self.efficiencies(k..=k, rounds, seed)?;
        let rhos = table.rhos(self, self.parameters.symbols).pop().unwrap_or_default();
        table.check_some(self, std::slice::from_ref(&rhos))?;
        Ok(rhos)
    }

    /// E\[ρ\] with its interval, from `samples` independent rounds under `seed`.
    pub fn mean_rho(&self, k: u64, samples: usize, seed: u64) -> Result<Estimate, TheoryError> {
        whole("samples", samples as u64, 2..=MAX_ROUNDS as u64, "")?;
        let mut moments = Moments::default();
        self.rhos(k, samples, seed)?.into_iter().for_each(|rho| moments.add(rho));
        Ok(moments.estimate())
    }

    /// The bits per symbol that each of K devices can send, `1/Σ_j 1/C_j`, for all K of a range and all
    /// rounds. (Multiplied by n these are the budgets R, so one table serves every n.)
    pub(super) fn efficiencies(
        &self,
        ks: RangeInclusive<u64>,
        rounds: usize,
        seed: u64,
    ) -> Result<Efficiencies, TheoryError> {
        let devices = self.parameters.devices;
        whole("k", *ks.start(), 1..=devices, " (K cannot exceed devices)")?;
        whole("k", *ks.end(), *ks.start()..=devices, " (K cannot exceed devices)")?;
        whole("rounds", rounds as u64, 1..=MAX_ROUNDS as u64, "")?;
        let count = ks.end() - ks.start() + 1;
        let most = max_table();
        let note = format!(" for {count} values of K (at most {most} numbers are kept)");
        whole("rounds", rounds as u64, 1..=most / count, &note)?;
        let by_round: Vec<Vec<f64>> =
            (0..rounds as u64).into_par_iter().map(|t| self.round(ks.clone(), t, seed)).collect();
        let rows = (0..count as usize).map(|i| by_round.iter().map(|row| row[i]).collect()).collect();
        Ok(Efficiencies { first_k: *ks.start(), rows })
    }

    /// One round of the table.
    fn round(&self, ks: RangeInclusive<u64>, t: u64, seed: u64) -> Vec<f64> {
        let LinkParameters { devices, power, noise, choice, .. } = self.parameters;
        let mut gains = gains(seed, t, devices as usize);
        match choice {
            Choice::Best => gains.sort_unstable_by(|a, b| b.total_cmp(a)),
            // The first K of a random order are a random K; a larger K only adds devices.
            Choice::Uniform => {
                stream(seed, Purpose::Uniform, t, 0).shuffle_prefix(&mut gains, *ks.end() as usize);
            }
        }
        let efficiency = |k: u64| {
            let power = transmit_power(devices as usize, k as usize, Power(power));
            1.0 / gains[..k as usize].iter().map(|&gain| 1.0 / capacity(gain, power, noise)).sum::<f64>()
        };
        ks.map(efficiency).collect()
    }

    /// ρ for a budget of `bits`.
    fn rho(&self, bits: f64) -> f64 {
        let dim = self.parameters.dim as usize;
        RandomSparse {}.largest_q(dim, Bits(bits)) as f64 / dim as f64
    }
}

/// The gains of all devices in round `t`: those of a simulation with Rayleigh fading under this seed.
pub(crate) fn gains(seed: u64, t: u64, devices: usize) -> Vec<f64> {
    DeviceId::all(devices).map(|device| Rayleigh { seed }.gain(t, device)).collect()
}

/// Stored ρ(t), so that several plans for one link draw it once. The store keeps as many as fit and draws the
/// rest again.
#[derive(Debug, Default)]
pub struct RhoStore {
    /// The link and the number of rounds of `kept`.
    of: Option<(LinkParameters, usize)>,
    /// By K and seed.
    kept: BTreeMap<(u64, u64), Arc<[f64]>>,
}

impl RhoStore {
    /// As [`Link::rhos`].
    pub fn rhos(&mut self, link: &Link, k: u64, rounds: usize, seed: u64) -> Result<Arc<[f64]>, TheoryError> {
        let of = Some((link.parameters, rounds));
        if self.of != of {
            *self = Self { of, ..Self::default() };
        }
        if let Some(rhos) = self.kept.get(&(k, seed)) {
            return Ok(Arc::clone(rhos));
        }
        let rhos: Arc<[f64]> = link.rhos(k, rounds, seed)?.into();
        if (self.kept.len() + 1).saturating_mul(rounds) <= MAX_KEPT {
            self.kept.insert((k, seed), Arc::clone(&rhos));
        }
        Ok(rhos)
    }
}

/// Bits per symbol, for every K (rows, from `first_k`) and round.
pub(super) struct Efficiencies {
    pub(super) first_k: u64,
    rows: Vec<Vec<f64>>,
}

impl Efficiencies {
    /// ρ for every K and round if the round has `symbols`.
    pub(super) fn rhos(&self, link: &Link, symbols: u64) -> Vec<Vec<f64>> {
        let (dim, symbols) = (link.parameters.dim as usize, symbols as f64);
        let cells = || self.rows.iter().flatten().copied();
        let max_q = RandomSparse {}.largest_q(dim, Bits(symbols * cells().fold(0.0, f64::max)));
        // If there are more cells than values of q, computing r(1), …, r(max_q) once takes less time than
        // a search per cell.
        let costs: Option<Vec<f64>> = (max_q < cells().count())
            .then(|| (1..=max_q).into_par_iter().map(|q| RandomSparse {}.bits(dim, q).0).collect());
        let rho = |bits: f64| match &costs {
            Some(costs) => costs.partition_point(|&cost| cost <= bits) as f64 / dim as f64,
            None => link.rho(bits),
        };
        let row = |row: &Vec<f64>| row.par_iter().map(|bits| rho(symbols * bits)).collect();
        self.rows.iter().map(row).collect()
    }

    /// An error if no ρ is above zero.
    pub(super) fn check_some(&self, link: &Link, rhos: &[Vec<f64>]) -> Result<(), TheoryError> {
        if rhos.iter().flatten().any(|&rho| rho > 0.0) {
            return Ok(());
        }
        let LinkParameters { dim, symbols, .. } = link.parameters;
        let best = self.rows.iter().flatten().copied().fold(0.0, f64::max);
        Err(TheoryError::SilentLink {
            symbols,
            k: self.first_k,
            max: best * symbols as f64,
            needed: RandomSparse {}.bits(dim as usize, 1).0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink::radio::access::slots::{SlotKind, split_slots};

    fn link(change: impl FnOnce(&mut LinkParameters)) -> Link {
        let mut parameters = LinkParameters { devices: 20, dim: 5000, symbols: 3000, ..Default::default() };
        change(&mut parameters);
        Link::new(parameters).unwrap()
    }

    /// The definition in steps: gains, K largest, slots for equal bits, linear scan for q.
    fn rho_by_hand(parameters: &LinkParameters, k: usize, t: u64, seed: u64) -> f64 {
        let gains = gains(seed, t, parameters.devices as usize);
        let mut order: Vec<usize> = (0..gains.len()).collect();
        order.sort_by(|&a, &b| gains[b].total_cmp(&gains[a]));
        let power = Power(parameters.devices as f64 * parameters.power / k as f64);
        let capacities: Vec<f64> =
            order[..k].iter().map(|&m| capacity(gains[m], power, parameters.noise)).collect();
        let slots = split_slots(&vec![1.0; k], &capacities, parameters.symbols, SlotKind::Real);
        let budget = slots[0].0 * capacities[0];
        let (mut q, mut index_bits) = (0u64, 0.0f64);
        while q < parameters.dim {
            let next = index_bits + ((parameters.dim - q) as f64 / (q + 1) as f64).log2();
            if next + 33.0 * (q + 1) as f64 > budget {
                break;
            }
            (q, index_bits) = (q + 1, next);
        }
        q as f64 / parameters.dim as f64
    }

    #[test]
    fn a_table_never_takes_more_than_the_machine_has() {
        assert_eq!(table_within(None), MAX_TABLE);
        assert_eq!(table_within(Some(u64::MAX)), MAX_TABLE);
        assert_eq!(table_within(Some(4_000_000_000)), 125_000_000);
        assert_eq!(table_within(Some(0)), 1);
    }

    #[test]
    fn rho_equals_its_definition_step_by_step() {
        let link = link(|_| {});
        for k in [1, 2, 7, 20] {
            let rhos = link.rhos(k, 50, 4).unwrap();
            for (t, &rho) in rhos.iter().enumerate() {
                assert_eq!(rho, rho_by_hand(link.parameters(), k as usize, t as u64, 4), "K = {k}, t = {t}");
            }
        }
    }

    #[test]
    fn rho_rises_with_symbols_and_power_and_falls_with_noise_and_k() {
        let base = link(|_| {}).rhos(3, 100, 1).unwrap();
        let all_at_least = |more: &[f64], less: &[f64]| more.iter().zip(less).all(|(a, b)| a >= b);
        assert!(all_at_least(&link(|p| p.symbols = 4000).rhos(3, 100, 1).unwrap(), &base));
        assert!(all_at_least(&link(|p| p.power = 2.0).rhos(3, 100, 1).unwrap(), &base));
        assert!(all_at_least(&base, &link(|p| p.noise = 2.0).rhos(3, 100, 1).unwrap()));
        assert!(all_at_least(&base, &link(|_| {}).rhos(4, 100, 1).unwrap()));
    }

    #[test]
    fn a_large_budget_carries_every_entry() {
        assert_eq!(link(|p| p.symbols = 10_000_000).rhos(2, 5, 0).unwrap(), [1.0; 5]);
    }

    #[test]
    fn both_choices_of_all_devices_are_equal() {
        let best = link(|_| {}).rhos(20, 50, 2).unwrap();
        let uniform = link(|p| p.choice = Choice::Uniform).rhos(20, 50, 2).unwrap();
        assert_eq!(best, uniform);
    }

    #[test]
    fn the_best_channels_carry_more_than_random_ones() {
        let best = link(|_| {}).mean_rho(3, 400, 0).unwrap();
        let uniform = link(|p| p.choice = Choice::Uniform).mean_rho(3, 400, 0).unwrap();
        assert!(uniform.mean + uniform.half_width < best.mean - best.half_width, "{uniform:?} {best:?}");
    }

    #[test]
    fn a_random_choice_takes_every_device_equally_often() {
        // With K = 1 the budget determines the gain, hence the device. χ² on 19 degrees of freedom, 99.99 %
        // point 50.8.
        let link = link(|p| p.choice = Choice::Uniform);
        let mut counts = [0u32; 20];
        for t in 0..4000 {
            let bits = link.round(1..=1, t, 8)[0];
            let gains = gains(8, t, 20);
            let same = |&gain: &f64| (capacity(gain, Power(20.0), 1.0) - bits).abs() < 1e-9;
            counts[gains.iter().position(same).unwrap()] += 1;
        }
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 200.0).powi(2) / 200.0).sum();
        assert!(chi2 < 50.8, "χ² = {chi2}");
    }

    #[test]
    fn a_table_for_several_k_equals_that_for_each_k_alone() {
        for choice in [Choice::Best, Choice::Uniform] {
            let link = link(|p| p.choice = choice);
            let table = link.efficiencies(2..=9, 30, 6).unwrap().rhos(&link, 3000);
            for k in 2..=9 {
                assert_eq!(table[k - 2], link.rhos(k as u64, 30, 6).unwrap(), "{choice:?}, K = {k}");
            }
        }
    }

    #[test]
    fn a_table_of_costs_gives_the_results_of_a_search() {
        for (symbols, dim) in [(1, 5000), (60, 5000), (900, 40), (100_000, 40)] {
            let link = link(|p| (p.symbols, p.dim) = (symbols, dim));
            let efficiencies = link.efficiencies(1..=20, 40, 3).unwrap();
            let rhos = efficiencies.rhos(&link, symbols);
            let largest = rhos.iter().flatten().copied().fold(0.0, f64::max) * dim as f64;
            assert!(largest < 800.0, "{largest} entries at most, or no table is made");
            for (bits, rho) in efficiencies.rows.iter().flatten().zip(rhos.iter().flatten()) {
                assert_eq!(*rho, link.rho(symbols as f64 * bits));
            }
        }
    }

    #[test]
    fn a_store_gives_the_values_of_its_link_and_forgets_another_link() {
        let (mut store, near) = (RhoStore::default(), link(|_| {}));
        let far = link(|p| p.noise = 50.0);
        for link in [&near, &near, &far, &near] {
            for (k, rounds, seed) in [(1, 20, 3), (4, 20, 3), (4, 20, 5), (4, 7, 5)] {
                let drawn = link.rhos(k, rounds, seed).unwrap();
                assert_eq!(store.rhos(link, k, rounds, seed).unwrap()[..], drawn);
            }
        }
        let again = store.rhos(&near, 4, 7, 5).unwrap();
        assert!(Arc::ptr_eq(&again, &store.rhos(&near, 4, 7, 5).unwrap()), "drawn once");
    }

    #[test]
    fn rho_does_not_depend_on_the_number_of_threads() {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| link(|_| {}).rhos(5, 200, 9).unwrap())
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn silent_rounds_are_zero_and_a_silent_link_is_an_error() {
        // One entry of 5000 costs 45.3 bits.
        let sometimes = link(|p| p.symbols = 9).rhos(1, 200, 0).unwrap();
        assert!(sometimes.contains(&0.0) && sometimes.iter().any(|&rho| rho > 0.0));
        let message = link(|p| p.symbols = 1).rhos(20, 50, 0).unwrap_err().to_string();
        assert!(message.starts_with("symbols: n = 1 carries at most"), "{message}");
        assert!(message.contains("a single entry costs 45.3"), "{message}");
    }

    #[test]
    fn impossible_parameters_are_named() {
        let message = |change: fn(&mut LinkParameters)| {
            let mut parameters = LinkParameters::default();
            change(&mut parameters);
            Link::new(parameters).unwrap_err().to_string()
        };
        assert!(message(|p| p.devices = 0).starts_with("devices: is 0, but must be in 1..="));
        assert!(message(|p| p.dim = 0).starts_with("dim: is 0"));
        assert!(message(|p| p.symbols = 0).starts_with("symbols: is 0"));
        assert!(message(|p| p.power = 0.0).starts_with("power: is 0, but must be a finite number above 0"));
        assert!(message(|p| p.noise = f64::NAN).starts_with("noise: is NaN"));
        let k = link(|_| {}).rhos(21, 5, 0).unwrap_err().to_string();
        assert!(k.starts_with("k: is 21, but must be in 1..=20"), "{k}");
        assert!(link(|_| {}).rhos(0, 5, 0).is_err());
        assert!(link(|_| {}).rhos(1, usize::MAX, 0).is_err());
    }
}
