//! Norm and channel in one number.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::Quantity;
use crate::schedule::{
    Ask, Bias, Pick, Policy, Reports, Schedule, Selection, Trains, View, largest_indices_by,
};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<NormChannel>();

/// The K largest ‖Δ_m‖·C_m^(γ/2), bits in proportion to it.
///
/// If the energy that a compressor sends grows with its bits as R^γ, this is BN2-C without compressing
/// anything before selection. Invariants: γ = 0 is BN2; γ → ∞ selects as BC; scaling all norms changes
/// nothing.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct NormChannel {
    /// γ, weight of the channel beside the norm
    #[key(default = 1.0, range = "0 ..= 1000")]
    pub gamma: f64,
}

impl PartConfig for NormChannel {
    type Part = dyn Policy;
    const NAME: &'static str = "norm-channel";
    const FAMILY: &'static str = "norm";
    const MEANING: &'static str =
        "the K largest ‖Δ‖·C^(γ/2), bits in proportion to it: BN2 (γ = 0) to BC (γ → ∞)";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for NormChannel {}

impl Policy for NormChannel {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        view.everyone()
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::Norm]
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Everyone).by_channel(self.gamma > 0.0)
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        // In logarithms, since C^500 would overflow; the best is 0, so that weights are within 0..=1.
        let logarithm = |row: usize| {
            let (norm, capacity) = (f64::from(reports.first(row)), view.links.capacity(reports.devices[row]));
            let channel = if self.gamma == 0.0 { 0.0 } else { 0.5 * self.gamma * libm::log(capacity) };
            if norm > 0.0 { libm::log(norm) + channel } else { f64::NEG_INFINITY }
        };
        let values: Vec<f64> = (0..reports.len()).map(logarithm).collect();
        let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let gain = |row: usize| view.links.gain(reports.devices[row]);
        view.note_each(Quantity::Score, &reports.devices, |row| values[row]);
        let rows = largest_indices_by(&reports.devices, view.k, |row| (values[row], gain(row)));
        let weight = |row: usize| {
            if best == f64::NEG_INFINITY || best.is_nan() { 0.0 } else { libm::exp(values[row] - best) }
        };
        Schedule { picks: rows.into_iter().map(|row| Pick::new(reports.devices[row], weight(row))).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::best_compressed_norm::BestCompressedNorm;
    use super::super::best_norm::BestNorm;
    use super::super::tests::{Bench, devices};
    use super::*;

    const NORMS: [f32; 6] = [3.0, 1.0, 2.0, 5.0, 4.0, 0.5];

    #[test]
    fn without_the_channel_it_is_bn2_and_with_nothing_but_the_channel_bc() {
        let bench = Bench::with_gains(&[1.0, 9.0, 2.0, 0.1, 3.0, 8.0], 3);
        let norm = bench.schedule(&mut NormChannel { gamma: 0.0 }, &NORMS);
        let bn2 = bench.schedule(&mut BestNorm {}, &NORMS);
        assert_eq!(devices(&norm), devices(&bn2));
        for (a, b) in norm.picks.iter().zip(&bn2.picks) {
            // The same ratios.
            assert!((a.bit_weight * 5.0 / b.bit_weight - 1.0).abs() < 1e-12);
        }
        assert_eq!(devices(&bench.schedule(&mut NormChannel { gamma: 1000.0 }, &NORMS)), [1, 4, 5]);
    }

    #[test]
    fn where_the_sent_energy_is_a_power_of_the_bits_it_is_bn2_c() {
        let gains = [1.0, 9.0, 2.0, 0.1, 3.0, 8.0];
        let bench = Bench::with_gains(&gains, 3);
        for gamma in [0.2f64, 0.5, 1.0, 1.7] {
            // ‖Δ̂‖ = ‖Δ‖·R^(γ/2) with R = n·C, the bits of a device alone in the band.
            let sent = |m: usize| NORMS[m] * (5000.0 * f64::log2(1.0 + gains[m])).powf(gamma / 2.0) as f32;
            let sent: Vec<f32> = (0..6).map(sent).collect();
            let ours = bench.schedule(&mut NormChannel { gamma }, &NORMS);
            let theirs = bench.schedule(&mut BestCompressedNorm {}, &sent);
            assert_eq!(devices(&ours), devices(&theirs), "γ = {gamma}");
            let ratio = |i: usize| ours.picks[i].bit_weight / theirs.picks[i].bit_weight;
            assert!((1..3).all(|i| (ratio(i) / ratio(0) - 1.0).abs() < 1e-6), "γ = {gamma}");
        }
    }

    #[test]
    fn the_choice_is_the_largest_product_by_brute_force() {
        let gains = [1.0, 9.0, 2.0, 0.1, 3.0, 8.0];
        for gamma in [0.3, 1.0, 2.0] {
            let schedule = Bench::with_gains(&gains, 2).schedule(&mut NormChannel { gamma }, &NORMS);
            let value = |m: usize| f64::from(NORMS[m]) * f64::log2(1.0 + gains[m]).powf(gamma / 2.0);
            let mut order: Vec<usize> = (0..6).collect();
            order.sort_by(|&a, &b| value(b).total_cmp(&value(a)));
            let mut best = order[..2].to_vec();
            best.sort_unstable();
            assert_eq!(devices(&schedule), best);
        }
    }
}
