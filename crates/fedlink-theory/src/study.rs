//! Several curves of the bound: every K × τ of two lists, on the same channels.

use super::average::expectation;
use super::bound::{Bound, BoundParameters, Curve, Parts, Terms};
use super::rate::Rate;
use super::rho::{Link, LinkParameters, RhoStore, max_table};
use super::{Estimate, MAX_ROUNDS, TheoryError, whole};
use crate::statistics::Moments;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most curves of a study.
const MAX_CURVES: u64 = 10_000;

/// The treatment of the channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mode {
    /// The mean over this many channels; draw i has the gains of a simulation under `seed` + i.
    Draws(u64),
    /// The mean over all channels (see [`expectation`]), with E\[ρ\] estimated from `samples` rounds.
    Expectation {
        /// Rounds drawn for each K.
        samples: usize,
    },
    /// No channel: ρ(t) as given, one value per round and the same for every K.
    Given(Vec<f64>),
}

/// A request for the bound at every K of a list and every τ of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The learning problem; the lists replace its `k` and `tau`.
    pub problem: BoundParameters,
    /// The radio link that determines ρ(t).
    pub link: LinkParameters,
    /// η(t), which may depend on τ.
    pub rate: Rate,
    /// The values of K.
    pub ks: Vec<u64>,
    /// The values of τ.
    pub taus: Vec<u64>,
    /// T, the rounds of every curve.
    pub rounds: usize,
    /// One channel, several, or all.
    pub mode: Mode,
    /// The seed of the channel. All K have the same gains.
    pub seed: u64,
}

/// One curve of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StudyCurve {
    /// Its label among the curves, such as `K=5`.
    pub label: String,
    /// The problem with this curve's K and τ.
    pub parameters: BoundParameters,
    /// The loss bound after 0, 1, …, T rounds. With a single draw, or with a given ρ, the intervals are
    /// infinite.
    pub losses: Vec<Estimate>,
    /// ρ(0), …, ρ(T−1), each the mean over the draws.
    pub rhos: Vec<f64>,
    /// [`Bound::floor`].
    pub floor: f64,
    /// The first round at which the (mean) bound is within 10 % of the floor; none if T rounds do not
    /// reach it, or if the floor is zero.
    pub near_floor: Option<usize>,
    /// The rest of the start and each term of B, as shares of the last bound.
    pub shares: Parts,
}

impl StudyCurve {
    /// The loss bound after the last round.
    pub fn last(&self) -> Estimate {
        self.losses[self.losses.len() - 1]
    }

    /// The mean of ρ over rounds and draws.
    pub fn mean_rho(&self) -> f64 {
        self.rhos.iter().sum::<f64>() / self.rhos.len() as f64
    }
}

impl Study {
    /// (K, τ) of every curve, by K and then by τ.
    pub fn grid(&self) -> Vec<(u64, u64)> {
        self.ks.iter().flat_map(|&k| self.taus.iter().map(move |&tau| (k, tau))).collect()
    }

    /// Checks everything that needs no channel; an error names the wrong value.
    pub fn check(&self) -> Result<(), TheoryError> {
        let curves = self.grid().len() as u64;
        whole("k and tau", curves, 1..=MAX_CURVES, " curves")?;
        let note = format!(" for {curves} curves");
        whole("rounds", self.rounds as u64, 1..=(max_table() / curves).min(MAX_ROUNDS as u64), &note)?;
        match &self.mode {
            Mode::Draws(draws) => whole("draws", *draws, 1..=1_000_000, "")?,
            Mode::Given(rhos) if rhos.len() != self.rounds => {
                return Err(TheoryError::Length { name: "rho", got: rhos.len(), needed: self.rounds });
            }
            Mode::Given(_) | Mode::Expectation { .. } => {}
        }
        Link::new(self.link)?;
        self.bounds()?;
        self.rates().map(|_| ())
    }

    fn bounds(&self) -> Result<Vec<Bound>, TheoryError> {
        let devices = self.link.devices;
        let bound = |&(k, tau): &(u64, u64)| Bound::new(BoundParameters { devices, k, tau, ..self.problem });
        self.grid().iter().map(bound).collect()
    }

    /// η(t) for each τ.
    fn rates(&self) -> Result<BTreeMap<u64, Vec<f64>>, TheoryError> {
        let rates = |&tau: &u64| Ok((tau, self.rate.values(self.problem.mu, tau, self.rounds)?));
        self.taus.iter().map(rates).collect()
    }

    /// Computes all curves.
    pub fn run(&self) -> Result<Vec<StudyCurve>, TheoryError> {
        self.run_watched(|_| {})
    }

    /// Computes all curves and passes those of every single draw to `watch`, in the order of
    /// [`Study::grid`].
    ///
    /// In [`Mode::Expectation`] there are no single draws, and a given ρ counts as one. The result does
    /// not depend on the number of threads.
    pub fn run_watched(&self, watch: impl FnMut(&[Curve])) -> Result<Vec<StudyCurve>, TheoryError> {
        self.run_on(&mut RhoStore::default(), watch)
    }

    /// As [`Study::run_watched`], with channels that another study may have drawn already.
    pub fn run_on(
        &self,
        store: &mut RhoStore,
        mut watch: impl FnMut(&[Curve]),
    ) -> Result<Vec<StudyCurve>, TheoryError> {
        self.check()?;
        let link = Link::new(self.link)?;
        let (bounds, rates) = (self.bounds()?, self.rates()?);
        let rates_of = |bound: &Bound| &rates[&bound.parameters().tau][..];
        let averages = match &self.mode {
            Mode::Draws(draws) => {
                let rhos = |k, draw| store.rhos(&link, k, self.rounds, self.seed.wrapping_add(draw));
                self.draws(*draws, rhos, &bounds, rates_of, &mut watch)?
            }
            Mode::Given(rhos) => {
                let rhos: Arc<[f64]> = rhos[..].into();
                self.draws(1, |_, _| Ok(Arc::clone(&rhos)), &bounds, rates_of, &mut watch)?
            }
            Mode::Expectation { samples } => {
                let mut rhos = BTreeMap::new();
                for &k in &self.ks {
                    rhos.insert(k, link.mean_rho(k, *samples, self.seed)?);
                }
                let mean = |bound: &Bound| {
                    let rho = rhos[&bound.parameters().k];
                    let average = expectation(bound, rates_of(bound), rho)?;
                    let rhos = vec![rho.mean; self.rounds];
                    Ok(Average { losses: average.losses, parts: average.parts, rhos })
                };
                bounds.iter().map(mean).collect::<Result<_, TheoryError>>()?
            }
        };
        Ok(bounds.iter().zip(averages).map(|(bound, average)| self.curve(bound, average)).collect())
    }

    fn curve(&self, bound: &Bound, Average { losses, parts, rhos }: Average) -> StudyCurve {
        let parameters = *bound.parameters();
        let floor = bound.floor();
        let near = |loss: &Estimate| floor > 0.0 && (loss.mean - floor).abs() <= 0.1 * floor;
        StudyCurve {
            label: self.label(parameters.k, parameters.tau),
            parameters,
            near_floor: losses.iter().position(near),
            losses,
            rhos,
            floor,
            shares: parts.shares(),
        }
    }

    /// The label has only the parameters that differ; both if none differs.
    fn label(&self, k: u64, tau: u64) -> String {
        match (self.ks.len() > 1, self.taus.len() > 1) {
            (true, false) => format!("K={k}"),
            (false, true) => format!("τ={tau}"),
            _ => format!("K={k} τ={tau}"),
        }
    }

    /// The mean over the draws; `rhos_of` has ρ(t) of a K in a draw.
    fn draws<'a>(
        &self,
        draws: u64,
        mut rhos_of: impl FnMut(u64, u64) -> Result<Arc<[f64]>, TheoryError>,
        bounds: &[Bound],
        rates_of: impl Fn(&Bound) -> &'a [f64] + Sync,
        watch: &mut impl FnMut(&[Curve]),
    ) -> Result<Vec<Average>, TheoryError> {
        let share = 1.0 / draws as f64;
        let mut moments = vec![vec![Moments::default(); self.rounds + 1]; bounds.len()];
        let mut parts = vec![Parts { initial: 0.0, terms: Terms::default() }; bounds.len()];
        let mut means = vec![vec![0.0; self.rounds]; bounds.len()];
        // A silent draw is a valid draw; there is no bound only if all draws of a K are silent.
        let mut silences: BTreeMap<u64, (u64, TheoryError)> = BTreeMap::new();
        for draw in 0..draws {
            let mut rhos = BTreeMap::new();
            for &k in &self.ks {
                let row = match rhos_of(k, draw) {
                    Err(error @ TheoryError::SilentLink { .. }) => {
                        silences.entry(k).or_insert((0, error)).0 += 1;
                        vec![0.0; self.rounds].into()
                    }
                    other => other?,
                };
                rhos.insert(k, row);
            }
            let curve = |bound: &Bound| bound.curve(rates_of(bound), &rhos[&bound.parameters().k]);
            let curves: Vec<Curve> = bounds.par_iter().map(curve).collect::<Result<_, _>>()?;
            for (i, curve) in curves.iter().enumerate() {
                curve.losses().into_iter().zip(&mut moments[i]).for_each(|(loss, sum)| sum.add(loss));
                parts[i] = parts[i].plus(curve.parts.scaled(share));
                let drawn = &rhos[&bounds[i].parameters().k];
                means[i].iter_mut().zip(&drawn[..]).for_each(|(mean, rho)| *mean += share * rho);
            }
            watch(&curves);
        }
        if let Some((_, error)) = silences.into_values().find(|(silent, _)| *silent == draws) {
            return Err(error);
        }
        let average = |((row, parts), rhos): ((Vec<Moments>, Parts), Vec<f64>)| Average {
            losses: row.iter().map(Moments::estimate).collect(),
            parts,
            rhos,
        };
        Ok(moments.into_iter().zip(parts).zip(means).map(average).collect())
    }
}

/// The mean of a curve over the channels.
struct Average {
    losses: Vec<Estimate>,
    parts: Parts,
    rhos: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::average::monte_carlo;

    fn study() -> Study {
        let link = LinkParameters { devices: 12, dim: 800, symbols: 900, ..Default::default() };
        let problem = BoundParameters {
            devices: 12,
            k: 1,
            tau: 1,
            mu: 1.0,
            l: 5.0,
            g: 3.0,
            gamma: 2.0,
            distance0: 50.0,
        };
        Study {
            problem,
            link,
            rate: Rate::FromLimit { c: 40.0 },
            ks: vec![1, 5],
            taus: vec![1, 4],
            rounds: 60,
            mode: Mode::Draws(7),
            seed: 3,
        }
    }

    #[test]
    fn every_curve_is_the_average_of_its_k_and_tau() {
        let study = study();
        let curves = study.run().unwrap();
        let labels: Vec<&str> = curves.iter().map(|curve| curve.label.as_str()).collect();
        assert_eq!(labels, ["K=1 τ=1", "K=1 τ=4", "K=5 τ=1", "K=5 τ=4"]);
        let link = Link::new(study.link).unwrap();
        for (curve, (k, tau)) in curves.iter().zip(study.grid()) {
            let bound = Bound::new(BoundParameters { k, tau, ..study.problem }).unwrap();
            let rates = bound.rates(&study.rate, 60).unwrap();
            let average = monte_carlo(&bound, &rates, &link, 3, 7).unwrap();
            assert_eq!(curve.losses, average.losses);
            assert_eq!(curve.shares, average.parts.shares());
            assert_eq!(curve.floor, bound.floor());
            let mean = (0..7).map(|draw| link.rhos(k, 60, 3 + draw).unwrap()[41]).sum::<f64>() / 7.0;
            assert!((curve.rhos[41] / mean - 1.0).abs() < 1e-14);
        }
        let mean = Study { mode: Mode::Expectation { samples: 500 }, ..study.clone() }.run().unwrap();
        let bound = Bound::new(BoundParameters { k: 5, tau: 4, ..study.problem }).unwrap();
        let rates = bound.rates(&study.rate, 60).unwrap();
        let average = expectation(&bound, &rates, link.mean_rho(5, 500, 3).unwrap()).unwrap();
        assert_eq!(mean[3].losses, average.losses);
    }

    #[test]
    fn the_watcher_gets_every_draw_and_the_result_is_their_mean() {
        let mut sums = [0.0; 4];
        let mut draws = 0;
        let watch = |curves: &[Curve]| {
            draws += 1;
            sums.iter_mut().zip(curves).for_each(|(sum, curve)| *sum += curve.final_loss());
        };
        let curves = study().run_watched(watch).unwrap();
        assert_eq!(draws, 7);
        for (sum, curve) in sums.iter().zip(curves) {
            assert!((sum / 7.0 / curve.last().mean - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_given_rho_is_used_as_it_is() {
        let given: Vec<f64> = (0..60).map(|t| f64::from(t % 5) / 10.0).collect();
        let study = Study { mode: Mode::Given(given.clone()), ..study() };
        for (curve, (k, tau)) in study.run().unwrap().iter().zip(study.grid()) {
            let bound = Bound::new(BoundParameters { k, tau, ..study.problem }).unwrap();
            let exact = bound.curve(&bound.rates(&study.rate, 60).unwrap(), &given).unwrap();
            assert_eq!(curve.losses.iter().map(|loss| loss.mean).collect::<Vec<_>>(), exact.losses());
            assert_eq!(curve.rhos, given);
            assert!((curve.mean_rho() - 0.2).abs() < 1e-15);
        }
        let wrong = |rhos: Vec<f64>| Study { mode: Mode::Given(rhos), ..study.clone() }.run().unwrap_err();
        assert!(wrong(vec![0.1; 59]).to_string().starts_with("rho: has 59 values, but 60 rounds"));
        assert!(wrong(vec![1.5; 60]).to_string().starts_with("rho: is 1.5"));
    }

    #[test]
    fn the_time_to_the_floor_is_the_first_round_within_a_tenth_of_it() {
        let mut study = study();
        (study.rounds, study.mode, study.ks, study.taus) = (4000, Mode::Draws(1), vec![1], vec![4]);
        study.problem.g = 0.3;
        let curve = study.run().unwrap().remove(0);
        let t = curve.near_floor.unwrap();
        let share = |t: usize| (curve.losses[t].mean / curve.floor - 1.0).abs();
        assert!(share(t) <= 0.1 && (0..t).all(|t| share(t) > 0.1));
        study.taus = vec![1];
        assert_eq!(study.run().unwrap()[0].near_floor, None);
    }

    #[test]
    fn invalid_parameters_of_a_study_are_named() {
        let message = |change: fn(&mut Study)| {
            let mut study = study();
            change(&mut study);
            study.run().unwrap_err().to_string()
        };
        assert!(message(|s| s.ks = vec![]).starts_with("k and tau: is 0"));
        assert!(message(|s| s.ks = vec![3, 13]).starts_with("k: is 13"));
        assert!(message(|s| s.rounds = 0).starts_with("rounds: is 0"));
        assert!(message(|s| s.mode = Mode::Draws(0)).starts_with("draws: is 0"));
        assert!(message(|s| s.link.symbols = 1).starts_with("symbols: n = 1"));
        assert!(message(|s| s.rate = Rate::Constant(0.9)).contains("tau = 4"));
    }
}
