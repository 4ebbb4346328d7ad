//! What an experiment claims, set against its results.

pub use crate::claims::Verdicts;

use crate::claims::{Measured, Subject};
use crate::error::Error;
use crate::experiment::{Curve, Experiment, Shortened};
use crate::results::RunResult;

impl Verdicts {
    /// The claims of `experiment` judged by runs, each with the index of its curve among `curves`.
    pub fn new<'a>(
        experiment: &Experiment,
        curves: &[Curve],
        runs: impl IntoIterator<Item = (usize, &'a RunResult)>,
    ) -> Result<Self, Error> {
        let empty = |curve: &Curve| Measured { keys: curve.keys.clone(), runs: Vec::new() };
        let mut measured: Vec<Measured> = curves.iter().map(empty).collect();
        // A run that was stopped says nothing yet: it would have ended elsewhere.
        for (index, run) in runs.into_iter().filter(|(_, run)| run.status.has_ended()) {
            measured[index].runs.push((run.seed, run.metrics(curves[index].config.run.target)));
        }
        let whole = experiment.shortened();
        let claims = experiment.all_claims();
        let judged =
            claims.list.iter().map(|claim| claim.verdict(Subject::Runs, &measured, claims.correction));
        let shortened = |index: usize, seeds: u64| curves[index].shortened(whole, seeds);
        let expected = experiment.expected().map(|expected| expected.compare(&measured, shortened));
        Ok(Self {
            claims: judged.collect::<Result<_, _>>()?,
            expected: expected.collect::<Result<_, _>>()?,
            shortened: shortest(curves, &measured, whole),
        })
    }
}

/// How the curve that has the smallest part of its seeds was shortened.
fn shortest(curves: &[Curve], measured: &[Measured], whole: Option<Shortened>) -> Option<Shortened> {
    let of = |(curve, measured): (&Curve, &Measured)| curve.shortened(whole, measured.runs.len() as u64);
    curves.iter().zip(measured).filter_map(of).min_by_key(|shortened| shortened.seeds)
}
