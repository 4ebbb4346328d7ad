//! Published values compared with ours.

use super::Shortened;
use super::curves::{CurveKeys, Curves, Selector};
use super::{Measured, Subject};
use crate::goals::{Goal, Metric};
use crate::statistics::{Estimate, estimate};
use fedlink::spec::ConfigError;
use serde::Serialize;
use toml::Table;

/// One line of `[expected]`: `"bc@k=1" = 0.912`, the published final accuracy of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    text: String,
    selector: Selector,
    /// The published final accuracy, as a share.
    pub value: f64,
}

/// A published value and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The curve, as a selector.
    pub curve: String,
    /// The published final accuracy.
    pub published: f64,
    /// Our seeds.
    pub seeds: usize,
    /// Our mean with its 95 % interval (in JSON the half width of a single seed is null); none if a seed has
    /// no final accuracy.
    pub ours: Option<Estimate>,
    /// Our mean less the published value.
    pub difference: Option<f64>,
    /// Whether the published value lies in our interval; none if there is no interval, or if it was
    /// shortened.
    pub covered: Option<bool>,
    /// The reductions of the curve; the published value is then not judged.
    pub shortened: Option<Shortened>,
    /// The reason for a missing number.
    pub note: Option<String>,
}

impl Expected {
    /// Reads `[expected]`: final accuracies by curve, each with the text of the curve.
    pub(crate) fn parse_all(table: Table) -> Result<Vec<(String, Self)>, ConfigError> {
        let read = |(curve, value): (String, toml::Value)| {
            let share = value.as_float().or(value.as_integer().map(|whole| whole as f64));
            let share =
                share.ok_or_else(|| ConfigError::new(key(&curve), "must be a share, such as 0.912"))?;
            Self::parse(&curve, share).map(|expected| (curve, expected))
        };
        table.into_iter().map(read).collect()
    }

    /// Reads one line of `[expected]`.
    pub fn parse(curve: &str, value: f64) -> Result<Self, ConfigError> {
        let error = |problem| ConfigError::new(key(curve), problem);
        if !(0.0..=1.0).contains(&value) {
            return Err(error(format!("is {value}; must be a share from 0 to 1, such as 0.912 for 91.2 %")));
        }
        let selector = Selector::parse(curve).map_err(error)?;
        Ok(Self { text: curve.to_owned(), selector, value })
    }

    /// Whether it names exactly one of the curves.
    pub fn check(&self, curves: &[CurveKeys]) -> Result<(), ConfigError> {
        self.curve(&Curves::new(Subject::Runs, curves)).map(|_| ())
    }

    fn curve(&self, curves: &Curves) -> Result<usize, ConfigError> {
        let selected = curves.select(&self.selector);
        let only = selected.and_then(|selection| curves.only(&selection));
        only.map_err(|problem| ConfigError::new(key(&self.text), problem))
    }

    /// Compares the published value with ours. `shortened` gives the reductions of the curve at an index for
    /// a number of seeds that were run.
    pub fn compare(
        &self,
        measured: &[Measured],
        shortened: impl Fn(usize, u64) -> Option<Shortened>,
    ) -> Result<Comparison, ConfigError> {
        let curves = Curves::new(Subject::Runs, measured.iter().map(|curve| &curve.keys));
        let index = self.curve(&curves)?;
        let runs = &measured[index].runs;
        let mut values = Vec::new();
        let mut note = runs.is_empty().then(|| "it has not been run".to_owned());
        for (seed, metrics) in runs {
            match metrics.read(&Goal::Plain(Metric::Final)).number() {
                Ok(value) => values.push(value),
                Err(reason) => note = note.or_else(|| Some(format!("seed {seed}: {reason}"))),
            }
        }
        let ours = note.is_none().then(|| estimate(values));
        let interval = ours.filter(|ours| ours.half_width.is_finite());
        if ours.is_some() && interval.is_none() {
            note = Some("one seed has no interval".into());
        }
        let shortened = shortened(index, runs.len() as u64).filter(|_| !runs.is_empty());
        Ok(Comparison {
            shortened,
            curve: curves.name(index),
            published: self.value,
            seeds: runs.len(),
            ours,
            difference: ours.map(|ours| ours.mean - self.value),
            covered: interval.filter(|_| shortened.is_none()).map(|ours| ours.covers(self.value)),
            note,
        })
    }
}

impl Comparison {
    /// The verdict of our runs on the published value.
    pub fn verdict(&self) -> String {
        match (self.shortened, self.covered) {
            (Some(shortened), _) => format!("not judged: shortened ({shortened})"),
            (None, Some(true)) => "holds".into(),
            (None, Some(false)) => "does not hold".into(),
            (None, None) => "undecided".into(),
        }
    }
}

fn key(curve: &str) -> String {
    format!("expected.\"{curve}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::Metrics;
    use crate::goals::rows;

    fn curve(policy: &str, k: &str, finals: &[f64]) -> Measured {
        let keys = vec![("schedule.policy".into(), policy.into()), ("schedule.k".into(), k.into())];
        let run =
            |(seed, accuracy): (usize, &f64)| (seed as u64, Metrics::new(&rows(&[0.1, *accuracy]), 0.8));
        Measured { keys, runs: finals.iter().enumerate().map(run).collect() }
    }

    fn measured() -> Vec<Measured> {
        vec![
            curve("bc", "1", &[0.90, 0.91, 0.92]),
            curve("bc", "10", &[0.5]),
            curve("bn2", "1", &[]),
            curve("bn2", "10", &[0.7, 0.7]),
        ]
    }

    fn compare(text: &str, value: f64) -> Comparison {
        Expected::parse(text, value).unwrap().compare(&measured(), |_, _| None).unwrap()
    }

    fn problem(text: &str, value: f64) -> String {
        let keys: Vec<CurveKeys> = measured().into_iter().map(|curve| curve.keys).collect();
        Expected::parse(text, value).and_then(|expected| expected.check(&keys)).unwrap_err().to_string()
    }

    #[test]
    fn a_published_value_is_set_beside_our_interval() {
        // Sample deviation 0.01 over three seeds: 0.91 ± 4.302653·0.01/√3 = 0.91 ± 0.024841.
        let near = compare("bc@k=1", 0.93);
        let ours = near.ours.unwrap();
        assert!((ours.mean - 0.91).abs() < 1e-12 && (ours.half_width - 0.024_841_4).abs() < 1e-6);
        assert!((near.difference.unwrap() + 0.02).abs() < 1e-12);
        assert_eq!(
            (near.curve.as_str(), near.seeds, near.covered, near.note),
            ("bc@k=1", 3, Some(true), None)
        );
        assert_eq!(compare("bc@k=1", 0.94).covered, Some(false));
        assert_eq!(compare("bn2@k=10", 0.7).covered, Some(true));
    }

    #[test]
    fn without_an_interval_nothing_is_covered() {
        let one = compare("bc@k=10", 0.5);
        assert_eq!((one.covered, one.ours.unwrap().mean), (None, 0.5));
        assert!(one.note.unwrap().contains("one seed"));
        let none = compare("bn2@k=1", 0.5);
        assert_eq!((none.covered, none.ours, none.difference), (None, None, None));
        assert!(none.note.unwrap().contains("not been run"));
    }

    #[test]
    fn a_run_that_ended_early_has_no_final_value() {
        let mut measured = measured();
        measured[0].runs[1].1 = Metrics::unfinished(&rows(&[0.1, 0.2]), 0.8, "diverged");
        let comparison = Expected::parse("bc@k=1", 0.9).unwrap().compare(&measured, |_, _| None).unwrap();
        assert_eq!((comparison.ours, comparison.covered), (None, None));
        assert_eq!(comparison.note.unwrap(), "seed 1: it ended early (diverged)");
    }

    #[test]
    fn a_shortened_curve_is_shown_and_not_judged() {
        let short = |index: usize, seeds| {
            assert_eq!(index, 0);
            Some(Shortened { rounds: 60, of_rounds: 500, seeds, of_seeds: 10, quick: false, draws: false })
        };
        let comparison = Expected::parse("bc@k=1", 0.5).unwrap().compare(&measured(), short).unwrap();
        assert_eq!((comparison.covered, comparison.ours.is_some()), (None, true));
        assert_eq!(comparison.verdict(), "not judged: shortened (60 of 500 rounds, 3 of 10 seeds)");
        assert_eq!(compare("bc@k=1", 0.5).verdict(), "does not hold");
        assert_eq!(compare("bc@k=1", 0.91).verdict(), "holds");
        assert_eq!(compare("bc@k=10", 0.91).verdict(), "undecided");
    }

    #[test]
    fn exactly_one_curve_must_be_named() {
        assert_eq!(
            problem("bc", 0.5),
            "expected.\"bc\": \"bc\" leaves schedule.k open (it fits bc@k=1, bc@k=10); add a term such as k=1"
        );
        assert!(problem("bc@k=2", 0.5).contains("no curve has schedule.k = 2; write one of bc@k=1, bc@k=10"));
        assert!(problem("bc@k=1", 91.2).contains("such as 0.912"));
        assert!(problem("bc@k=1", f64::NAN).contains("a share from 0 to 1"));
        assert!(problem("bc@@k=1", 0.5).contains("joined by @"));
    }
}
