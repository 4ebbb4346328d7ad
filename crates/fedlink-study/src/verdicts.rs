//! What an experiment claims, set against its results.

use crate::claims::{Comparison, Measured, Verdict};
use crate::error::Error;
use crate::experiment::{Curve, Experiment};
use crate::results::RunResult;
use crate::table::table;
use serde::Serialize;
use std::fmt::Write;

/// `claims.json`.
#[derive(Serialize)]
pub struct Verdicts {
    /// The claims, each with its verdict.
    pub claims: Vec<Verdict>,
    /// What was published, beside what was measured.
    pub expected: Vec<Comparison>,
}

impl Verdicts {
    /// The claims of `experiment` judged by runs, each with the place of its curve among `curves`.
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
        let claims = experiment.claims().iter().map(|claim| claim.verdict(&measured));
        let expected = experiment.expected().map(|expected| expected.compare(&measured));
        Ok(Self { claims: claims.collect::<Result<_, _>>()?, expected: expected.collect::<Result<_, _>>()? })
    }

    /// Whether nothing was claimed.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.expected.is_empty()
    }

    /// `claims.json`.
    pub fn json(&self) -> Result<String, Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// As text: a verdict for each claim with its comparisons, and a table of published values.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Verdict { name, claim, verdict, pairs, left_out, .. } in &self.claims {
            let _ = writeln!(text, "{name}: {verdict}\n  {claim}");
            for pair in pairs {
                let _ = writeln!(text, "  {pair}");
            }
            if !left_out.is_empty() {
                let _ = writeln!(text, "  without a partner: {}", left_out.join(", "));
            }
        }
        if self.expected.is_empty() {
            return text;
        }
        let percent = |share: f64| format!("{:.2} %", 100.0 * share);
        let row = |line: &Comparison| {
            let ours = line.ours.map_or_else(|| "–".into(), |ours| percent(ours.mean));
            let half = line.ours.map(|ours| ours.half_width).filter(|half| half.is_finite());
            let half = half.map_or_else(|| "–".into(), |half| format!("{:.2}", 100.0 * half));
            let difference = line.difference.map_or_else(|| "–".into(), |by| format!("{:+.2}", 100.0 * by));
            vec![line.curve.clone(), percent(line.published), ours, half, difference]
        };
        let rows: Vec<Vec<String>> = self.expected.iter().map(row).collect();
        if !text.is_empty() {
            text.push('\n');
        }
        text + &table(&["final accuracy", "published", "ours", "±", "difference"], &rows)
    }
}
