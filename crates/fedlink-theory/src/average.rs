//! The bound's mean over the channel, by simulation and exactly.

use super::bound::{Bound, Curve, Parts, Terms};
use super::rho::Link;
use super::{Estimate, TheoryError, real, whole};
use crate::statistics::Moments;
use rayon::prelude::*;
use serde::Serialize;

/// Curves held in memory at a time.
const BATCH: u64 = 64;

/// The loss bound averaged over the channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Average {
    /// The mean loss bound after 0, 1, …, T rounds, with 95 % intervals.
    pub losses: Vec<Estimate>,
    /// The parts of the last mean.
    pub parts: Parts,
}

/// The mean over `draws` independent channels: draw i has the gains of a simulation under `seed` + i.
///
/// The result does not depend on the number of threads.
pub fn monte_carlo(
    bound: &Bound,
    rates: &[f64],
    link: &Link,
    seed: u64,
    draws: u64,
) -> Result<Average, TheoryError> {
    whole("draws", draws, 1..=1_000_000, "")?;
    same_devices(bound, link)?;
    let mut moments = vec![Moments::default(); rates.len() + 1];
    let mut parts = Parts { initial: 0.0, terms: Terms::default() };
    let (mut silent_draws, mut silence) = (0, None);
    let draw = |i: u64| -> Result<(Curve, Option<TheoryError>), TheoryError> {
        let (rhos, silent) = match link.rhos(bound.parameters().k, rates.len(), seed.wrapping_add(i)) {
            Err(error @ TheoryError::SilentLink { .. }) => (vec![0.0; rates.len()], Some(error)),
            other => (other?, None),
        };
        Ok((bound.curve(rates, &rhos)?, silent))
    };
    for first in (0..draws).step_by(BATCH as usize) {
        let curves: Vec<_> = (first..draws.min(first + BATCH)).into_par_iter().map(draw).collect();
        for curve in curves {
            let (curve, silent) = curve?;
            curve.losses().into_iter().zip(&mut moments).for_each(|(loss, sum)| sum.add(loss));
            parts = parts.plus(curve.parts.scaled(1.0 / draws as f64));
            silent_draws += u64::from(silent.is_some());
            silence = silent.or(silence);
        }
    }
    match silence {
        // A silent draw is a valid draw; there is no bound only if all draws are silent.
        Some(error) if silent_draws == draws => Err(error),
        _ => Ok(Average { losses: moments.iter().map(Moments::estimate).collect(), parts }),
    }
}

/// The mean over all channels, given E\[ρ\].
///
/// ρ(t) is independent from round to round, so x(t), which depends on earlier rounds only, is independent
/// of it; and A and B are affine in ρ. Hence `E[x(t+1)] = (1 − E[ρ]·c)·E[x(t)] + E[ρ]·b` exactly, where c
/// and b are those of a round with ρ = 1: the bound at the mean ρ is the mean of the bound. Only E\[ρ\]
/// itself is uncertain; the derivative of the bound with respect to it carries its interval over (first
/// order in the interval's width).
pub fn expectation(bound: &Bound, rates: &[f64], rho: Estimate) -> Result<Average, TheoryError> {
    real("rho", rho.half_width, |x| x >= 0.0, "known with a finite interval")?;
    let curve = bound.curve(rates, &vec![rho.mean; rates.len()])?;
    let half_l = 0.5 * bound.parameters().l;
    let mut slope = 0.0;
    let mut losses = vec![Estimate { mean: curve.loss(0), half_width: 0.0 }];
    for (t, &eta) in rates.iter().enumerate() {
        let x = curve.distances[t];
        slope = bound.contraction(rho.mean, eta) * slope + bound.terms(1.0, eta).sum() - bound.pull(eta) * x;
        losses.push(Estimate {
            mean: curve.loss(t + 1),
            half_width: half_l * f64::abs(slope) * rho.half_width,
        });
    }
    Ok(Average { losses, parts: curve.parts })
}

/// The bound and the link must have the same number of devices.
pub(super) fn same_devices(bound: &Bound, link: &Link) -> Result<(), TheoryError> {
    let (ours, theirs) = (bound.parameters().devices, link.parameters().devices);
    whole("devices", ours, theirs..=theirs, " (the link's number of devices)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::BoundParameters;
    use crate::rate::Rate;
    use crate::rho::LinkParameters;

    fn problem(k: u64, g: f64, gamma: f64) -> Bound {
        let parameters =
            BoundParameters { devices: 100, k, tau: 3, mu: 1.0, l: 5.0, g, gamma, distance0: 500.0 };
        Bound::new(parameters).unwrap()
    }

    #[test]
    fn the_mean_of_the_bound_is_the_bound_at_the_mean_rho() {
        // Small link and few devices, so that ρ varies much and a product of means would not agree by
        // chance.
        let parameters = LinkParameters { devices: 4, dim: 60, symbols: 300, ..Default::default() };
        let link = Link::new(parameters).unwrap();
        let parameters = BoundParameters { devices: 4, k: 2, ..*problem(2, 2.0, 3.0).parameters() };
        let bound = Bound::new(parameters).unwrap();
        let rates = bound.rates(&Rate::FromLimit { c: 10.0 }, 12).unwrap();
        let simulated = monte_carlo(&bound, &rates, &link, 1000, 4000).unwrap();
        let exact = expectation(&bound, &rates, link.mean_rho(2, 400_000, 7).unwrap()).unwrap();
        for (t, (mc, ex)) in simulated.losses.iter().zip(&exact.losses).enumerate() {
            // The intervals are 1.96 standard errors: twice as wide is nearly four. The
            // first value is certain.
            let slack = 2.0 * mc.half_width.hypot(ex.half_width) + 1e-9 * ex.mean;
            assert!((mc.mean - ex.mean).abs() <= slack, "t = {t}: {mc:?} {ex:?}");
        }
        let spread = simulated.losses[6];
        assert!(spread.half_width > 1e-3 * spread.mean, "the channel must matter: {spread:?}");
        assert!((simulated.parts.sum() / simulated.losses[12].mean - 1.0).abs() < 1e-12);
        assert!((exact.parts.sum() / exact.losses[12].mean - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_interval_of_the_mean_is_the_change_of_the_bound_over_the_interval_of_rho() {
        let bound = problem(5, 1.0, 1.0);
        let rates = bound.rates(&Rate::default(), 300).unwrap();
        let rho = Estimate { mean: 0.004, half_width: 1e-6 };
        let average = expectation(&bound, &rates, rho).unwrap();
        let at = |mean| bound.curve(&rates, &[mean; 300]).unwrap().final_loss();
        let change = 0.5 * (at(0.004 - 1e-6) - at(0.004 + 1e-6)).abs();
        assert!((average.losses[300].half_width / change - 1.0).abs() < 1e-4);
    }

    /// The paper's figure 3 after 1000 rounds, from an independent computation with a single
    /// channel of its own.
    const FIGURE_3: [(u64, f64, f64); 6] = [
        (1, 8.36, 498.0),
        (3, 7.54, 414.0),
        (5, 7.69, 411.0),
        (10, 48.7, 468.0),
        (15, 196.0, 587.0),
        (20, 377.0, 711.0),
    ];

    #[test]
    fn figure_3_ends_where_an_independent_computation_ends() {
        let link = Link::new(LinkParameters::default()).unwrap();
        for (k, even, uneven) in FIGURE_3 {
            let rho = link.mean_rho(k, 4000, 0).unwrap();
            for (bound, published) in [(problem(k, 1.0, 1.0), even), (problem(k, 10.0, 10.0), uneven)] {
                let rates = bound.rates(&Rate::default(), 1000).unwrap();
                let ours = expectation(&bound, &rates, rho).unwrap().losses[1000].mean;
                // Their value is one draw with three digits, ours the mean over all draws.
                assert!((ours / published - 1.0).abs() < 0.005, "K = {k}: {ours} against {published}");
            }
        }
    }

    #[test]
    fn averages_do_not_depend_on_the_number_of_threads() {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let link = Link::new(LinkParameters::default()).unwrap();
            let bound = problem(5, 1.0, 1.0);
            let rates = bound.rates(&Rate::default(), 20).unwrap();
            pool.install(|| monte_carlo(&bound, &rates, &link, 3, 100).unwrap())
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn a_link_without_any_entry_is_an_error_and_one_with_some_is_not() {
        let bound =
            |k| Bound::new(BoundParameters { devices: 20, k, ..*problem(1, 1.0, 1.0).parameters() }).unwrap();
        let link = |symbols| {
            Link::new(LinkParameters { devices: 20, dim: 5000, symbols, ..Default::default() }).unwrap()
        };
        let run = |k, symbols| monte_carlo(&bound(k), &[0.3; 3], &link(symbols), 0, 30);
        assert!(matches!(run(20, 1), Err(TheoryError::SilentLink { .. })));
        assert!(run(1, 8).unwrap().losses[3].half_width > 0.0);
        assert!(run(1, 8).unwrap().losses[3].half_width.is_finite());
    }

    #[test]
    fn different_numbers_of_devices_are_refused() {
        let link = Link::new(LinkParameters { devices: 99, ..Default::default() }).unwrap();
        let message = monte_carlo(&problem(1, 1.0, 1.0), &[0.3], &link, 0, 2).unwrap_err().to_string();
        assert!(message.starts_with("devices: is 100, but must be in 99..=99"), "{message}");
    }
}
