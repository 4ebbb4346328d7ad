//! Differential privacy of devices: noise on the sum of clipped updates, and the privacy loss of a run.
//!
//! Every update is clipped to ‖Δ̂‖ ≤ S (`defense.clip`). The server adds N(0, (z·S)²) to every entry of
//! the sum and then divides by a number that does not depend on the devices that sent. Two runs are
//! neighbors if they differ in the updates of one device, which are zero in one of them.
//! `docs/privacy.md` has the limits of the protection.

pub mod accountant;

use crate::base::parallel::prelude::*;
use crate::base::rng::{Purpose, stream};
use crate::parts::parts_with;
use crate::record::Guarantee;
use crate::schedule::{Ask, Policy, Sampling};
use accountant::{Epsilon, epsilon, limited, overflow, tight_epsilon};
use serde::{Deserialize, Serialize};

/// The place where noise is added (`privacy.at`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NoiseAt {
    /// At the server, to the sum of the updates.
    #[default]
    Server,
    /// At each device, which is refused.
    Device,
}

/// Entries that share a stream of noise. The number is part of the key of each entry: never change it.
const CHUNK: usize = 4096;

/// The noise of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Mechanism {
    /// z, the deviation of the noise on the sum as a multiple of S.
    pub noise: f64,
    /// S, the norm to which updates are clipped.
    pub clip: f64,
    /// The weight of a device: 1/K, or 1/(q·M) under Poisson sampling.
    pub weight: f64,
    /// δ.
    pub delta: f64,
}

impl Mechanism {
    /// The deviation of an entry of the step: weight·z·S.
    pub fn deviation(&self) -> f64 {
        self.weight * self.noise * self.clip
    }

    /// Replaces `entries` by the noise of round `t`, a function of (seed, t, index) alone.
    pub fn fill(&self, entries: &mut [f32], seed: u64, t: u64) {
        let deviation = self.deviation();
        entries.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, entries)| {
            let mut rng = stream(seed, Purpose::Privacy, t, chunk as u64);
            entries.iter_mut().for_each(|entry| *entry = (deviation * rng.normal()) as f32);
        });
    }
}

/// The quantities, besides the noise, that a guarantee depends on.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Exposure<'a> {
    /// The policy's name.
    pub policy: &'a str,
    /// The reports that the policy requests.
    pub asks: &'a [Ask],
    /// Its sampling of devices.
    pub sampling: Sampling,
    /// M.
    pub devices: u64,
    /// K.
    pub k: u64,
    /// Rounds done.
    pub rounds: u64,
    /// The number of rounds in which the most scheduled device was scheduled.
    pub busiest: u64,
}

impl Mechanism {
    /// The guarantee after the rounds so far.
    pub fn guarantee(&self, exposure: &Exposure) -> Guarantee {
        let Exposure { policy, asks, sampling, devices, k, rounds, busiest } = *exposure;
        let Self { noise, clip, delta, .. } = *self;
        let mut guarantee = Guarantee { delta, noise, clip, compositions: busiest, ..Guarantee::default() };
        if !asks.is_empty() {
            let names: Vec<&str> = asks.iter().map(|ask| ask.name()).collect();
            guarantee.caveats.push(format!(
                "schedule.policy = \"{policy}\" has devices report their {}, and reports are sent without \
                 noise: there is no guarantee for any value of privacy.noise",
                names.join(" and ")
            ));
            return guarantee;
        }
        let all = |delta: f64| epsilon(busiest, 1.0, noise, delta);
        let (mut plain, mut tight) = (all(delta), tight_epsilon(busiest, 1.0, noise, delta));
        match sampling {
            Sampling::Poisson { rate } => {
                let beyond = overflow(devices, rate, k);
                let sampled = |of: fn(u64, f64, f64, f64) -> Epsilon| {
                    limited(rounds, beyond, delta, |delta| of(rounds, rate, noise, delta))
                };
                match (sampled(epsilon), sampled(tight_epsilon)) {
                    (Some(amplified), Some(tightly)) if amplified.value <= plain.value => {
                        (plain, tight) = (amplified, tightly);
                        (guarantee.rate, guarantee.compositions) = (Some(rate), rounds);
                        guarantee.caveats.push(
                            "ε assumes amplification by sampling: it holds against an observer of the \
                             models who does not see the schedule; one who listens to the radio sees it"
                                .into(),
                        );
                    }
                    (None, _) | (_, None) => guarantee.caveats.push(format!(
                        "ε is without amplification by sampling: a round samples more than K = {k} devices \
                         (each with probability {rate}) with probability {beyond:.1e}, too often for δ = \
                         {delta:e}; increase schedule.k or decrease schedule.poisson.rate"
                    )),
                    _ => {}
                }
            }
            Sampling::Other => guarantee.caveats.push(format!(
                "ε is without amplification by sampling, which schedule.policy = \"{policy}\" does not \
                 have: it counts the {busiest} transmissions of the device that was scheduled most; \
                 {} has it",
                parts_with::<dyn Policy>(|facts| facts.sampling != Sampling::Other)
            )),
        }
        guarantee.caveats.push(
            "the server sees every update before the noise and must be trusted; noise is a function of \
             run.seed, so keep run.seed secret"
                .into(),
        );
        (guarantee.epsilon, guarantee.order) = (Some(plain.value), Some(plain.order));
        guarantee.tight_epsilon = Some(tight.value);
        guarantee
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MECHANISM: Mechanism = Mechanism { noise: 10.0, clip: 0.5, weight: 0.1, delta: 1e-5 };

    fn exposure(sampling: Sampling) -> Exposure<'static> {
        Exposure { policy: "x", asks: &[], sampling, devices: 40, k: 40, rounds: 500, busiest: 500 }
    }

    #[test]
    fn noise_has_its_stated_deviation_and_differs_by_entry_round_and_seed() {
        let dim = 200_000;
        let draw = |seed, t| {
            let mut entries = vec![7.0; dim];
            MECHANISM.fill(&mut entries, seed, t);
            entries
        };
        let (a, b, c) = (draw(1, 0), draw(1, 1), draw(2, 0));
        assert_eq!(a, draw(1, 0));
        // weight·z·S.
        let deviation = 0.1 * 10.0 * 0.5;
        let n = dim as f64;
        let product = |a: &[f32], b: &[f32]| {
            a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>()
                / (n * deviation * deviation)
        };
        for noise in [&a, &b, &c] {
            // Five standard errors of a mean and of a variance.
            let mean = noise.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
            assert!(mean.abs() < 5.0 * deviation / n.sqrt(), "{mean}");
            assert!(
                (product(noise, noise) - 1.0).abs() < 5.0 * (2.0 / n).sqrt(),
                "{}",
                product(noise, noise)
            );
        }
        for (x, y) in [(&a[..], &b[..]), (&a, &c), (&b, &c), (&a[CHUNK..], &a[..dim - CHUNK]), (&a[1..], &a)]
        {
            assert!(product(x, y).abs() < 5.0 / n.sqrt(), "{}", product(x, y));
        }
    }

    #[test]
    fn noise_is_the_same_on_any_number_of_threads() {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut entries = vec![0.0; 3 * CHUNK + 5];
            pool.install(|| MECHANISM.fill(&mut entries, 3, 4));
            entries
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn only_poisson_sampling_amplifies() {
        let other = MECHANISM.guarantee(&exposure(Sampling::Other));
        assert_eq!((other.rate, other.compositions, other.order), (None, 500, Some(3)));
        assert!((other.epsilon.unwrap() - 13.256).abs() < 5e-4, "{other:?}");
        assert!(other.caveats[0].contains("without amplification"), "{other:?}");
        let poisson = MECHANISM.guarantee(&exposure(Sampling::Poisson { rate: 0.25 }));
        assert_eq!((poisson.rate, poisson.compositions, poisson.order), (Some(0.25), 500, Some(9)));
        assert!((poisson.epsilon.unwrap() - 2.871).abs() < 5e-4, "{poisson:?}");
        assert!(poisson.tight_epsilon < poisson.epsilon);
        assert!(poisson.caveats[0].contains("listens to the radio"), "{poisson:?}");
    }

    #[test]
    fn a_limit_that_is_often_reached_removes_the_amplification() {
        let often = Exposure { k: 12, busiest: 150, ..exposure(Sampling::Poisson { rate: 0.25 }) };
        let guarantee = MECHANISM.guarantee(&often);
        assert_eq!((guarantee.rate, guarantee.compositions), (None, 150));
        assert_eq!(guarantee.epsilon, Some(epsilon(150, 1.0, 10.0, 1e-5).value));
        assert!(guarantee.caveats[0].contains("more than K = 12 devices"), "{guarantee:?}");
    }

    #[test]
    fn reports_remove_the_guarantee() {
        for sampling in [Sampling::Other, Sampling::Poisson { rate: 0.1 }] {
            let asks = &[Ask::Norm, Ask::Loss];
            let guarantee = MECHANISM.guarantee(&Exposure { asks, ..exposure(sampling) });
            assert_eq!((guarantee.epsilon, guarantee.tight_epsilon), (None, None));
            assert!(guarantee.caveats[0].contains("report their norm and loss"), "{guarantee:?}");
        }
    }
}
