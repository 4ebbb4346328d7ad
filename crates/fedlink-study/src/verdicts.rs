//! What an experiment claims, set against its results.

pub use crate::claims::Verdicts;

use crate::claims::{Measured, Subject};
use crate::error::Error;
use crate::experiment::{Curve, Experiment};
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
        for (curve, run) in runs {
            measured[curve].runs.push((run.seed, run.metrics()));
        }
        let claims = experiment.claims().iter().map(|claim| claim.verdict(Subject::Runs, &measured));
        let expected = experiment.expected().map(|expected| expected.compare(&measured));
        Ok(Self { claims: claims.collect::<Result<_, _>>()?, expected: expected.collect::<Result<_, _>>()? })
    }
}
