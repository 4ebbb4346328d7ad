//! The mean of every entry over the devices that sent it, shrunk toward zero.

use super::{Aggregator, Contribution, Delta, equal_shares};
use crate::base::state::Persist;
use crate::compress::{SparseUpdate, Values};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this rule.
pub const ENTRY: Entry<dyn Aggregator> = Entry::of::<ShrunkConfig>();

/// `[learn.shrunk]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ShrunkConfig {
    /// κ, what is added to the number of senders; 0: their mean
    #[key(default = 1.0, range = "0 ..= 1e9")]
    pub kappa: f64,
}

impl PartConfig for ShrunkConfig {
    type Part = dyn Aggregator;
    const NAME: &'static str = "shrunk";
    const MEANING: &'static str =
        "each entry's sum over the devices that sent it, divided by their number plus learn.shrunk.kappa";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Aggregator>, ConfigError> {
        Ok(Box::new(Shrunk { kappa: self.kappa, sums: Vec::new(), senders: Vec::new() }))
    }
}

/// Δ̄_i = Σ_m Δ̂_{m,i}/(N_i + κ), N_i being the number of devices that sent entry i; entries that no device
/// sent stay.
///
/// A mean over K devices divides every entry by K, also where one device alone sent it: with sparse updates
/// the step shrinks as K grows, and the server rate must be tuned for every K. Here one κ serves all K. If
/// the updates of the devices are μ + ε_m with variances τ² and σ² of the two terms, the posterior mean of
/// μ_i given the values that arrived has κ = σ²/τ²: about 0.5 where devices have data alike, several where
/// they differ.
///
/// Source: our derivation (empirical Bayes). Devices count alike: weights that a policy gives are not used.
/// Invariants: κ = 0 is the mean over the senders; where supports are disjoint it is the mean over the K
/// devices with the server rate K/(1+κ); no entry leaves the range of zero and the values sent.
///
/// ```
/// let text = "[learn]\naggregate = \"shrunk\"\nshrunk.kappa = 2.0";
/// let config = fedlink::spec::Config::from_toml(text).unwrap();
/// assert_eq!(config.own_table("learn", "shrunk")["kappa"].as_float(), Some(2.0));
/// ```
#[derive(Clone, Debug)]
pub struct Shrunk {
    kappa: f64,
    /// Σ_m Δ̂_{m,i} and N_i of this round; memory that rounds reuse.
    sums: Vec<f64>,
    senders: Vec<u32>,
}

impl Persist for Shrunk {}

impl Aggregator for Shrunk {
    fn weights(&self, devices: usize, _: &dyn Fn(usize) -> usize) -> Vec<f32> {
        equal_shares(devices)
    }

    fn aggregate<'a>(&mut self, contributions: &[Contribution<'a>], _: usize) -> Delta<'a> {
        self.sums.clear();
        self.senders.clear();
        for Contribution { update, factor, .. } in contributions {
            update.for_each(|i, value| {
                let i = i as usize;
                if i >= self.sums.len() {
                    self.sums.resize(i + 1, 0.0);
                    self.senders.resize(i + 1, 0);
                }
                self.sums[i] += f64::from(value * factor);
                self.senders[i] += 1;
            });
        }
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for ((i, &sum), &senders) in (0..).zip(&self.sums).zip(&self.senders).filter(|(_, n)| **n > 0) {
            indices.push(i);
            values.push((sum / (f64::from(senders) + self.kappa)) as f32);
        }
        Delta::Step(SparseUpdate { indices, values: Values::Each(values) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Mean;
    use crate::compress::Encoded;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const DIM: usize = 10;

    fn moved(rule: &mut dyn Aggregator, updates: &[Encoded], rate: f32) -> Vec<f32> {
        let k = updates.len();
        let weights = rule.weights(k, &|_| 1);
        let contribution = |(update, weight)| Contribution { update, weight, factor: 1.0 };
        let contributions: Vec<Contribution> = updates.iter().zip(weights).map(contribution).collect();
        let mut theta = vec![0.0; DIM];
        rule.aggregate(&contributions, k).add_to(&mut theta, rate);
        theta
    }

    fn shrunk(kappa: f64) -> Box<dyn Aggregator> {
        ShrunkConfig { kappa }.build(&Scope::default(), &()).unwrap()
    }

    fn sparse(entries: &BTreeMap<u32, f32>) -> Encoded {
        let values = Values::Each(entries.values().copied().collect());
        Encoded::Sparse(SparseUpdate { indices: entries.keys().copied().collect(), values })
    }

    proptest! {
        #[test]
        fn every_entry_is_the_sum_over_its_senders_by_their_number_and_kappa(
            updates in prop::collection::vec(
                prop::collection::btree_map(0..DIM as u32, -4.0..4.0f32, 0..DIM), 1..8,
            ),
            kappa in prop_oneof![Just(0.0), 0.0..20.0f64],
        ) {
            let encoded: Vec<Encoded> = updates.iter().map(sparse).collect();
            let theta = moved(&mut *shrunk(kappa), &encoded, 1.0);
            for i in 0..DIM as u32 {
                let sent: Vec<f64> =
                    updates.iter().filter_map(|one| one.get(&i)).map(|&x| x.into()).collect();
                let sum: f64 = sent.iter().sum();
                let exact = if sent.is_empty() { 0.0 } else { sum / (sent.len() as f64 + kappa) };
                prop_assert!((f64::from(theta[i as usize]) - exact).abs() < 1e-6);
            }
        }

        #[test]
        fn disjoint_supports_give_the_mean_with_the_server_rate_k_over_one_plus_kappa(
            values in prop::collection::vec(-4.0..4.0f32, DIM), k in 1usize..8, kappa in 0.0..9.0f64,
        ) {
            let device = |m: usize| {
                let own = (0..).zip(&values).filter(|(i, _)| *i as usize % k == m);
                sparse(&own.map(|(i, &value): (u32, &f32)| (i, value)).collect())
            };
            let updates: Vec<Encoded> = (0..k).map(device).collect();
            let ours = moved(&mut *shrunk(kappa), &updates, 1.0);
            let mean = moved(&mut Mean {}, &updates, (k as f64 / (1.0 + kappa)) as f32);
            for (ours, mean) in ours.iter().zip(&mean) {
                prop_assert!((ours - mean).abs() < 1e-5, "{ours} {mean}");
            }
        }

        #[test]
        fn identical_dense_uploads_come_back_exactly_if_kappa_is_zero(
            values in prop::collection::vec(-4.0..4.0f32, DIM), k in 1usize..20,
        ) {
            let updates = vec![Encoded::Dense(values.clone()); k];
            prop_assert_eq!(moved(&mut *shrunk(0.0), &updates, 1.0), values);
        }
    }
}
