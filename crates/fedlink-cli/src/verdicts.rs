//! What an experiment claims, set against its results.

use crate::report::ClaimVerdict;
use crate::results::RunResult;
use crate::table::table;
use fedlink_study::claims::{Comparison, Measured, Verdict};
use fedlink_study::experiment::{Curve, Experiment};
use fedlink_study::statistics::Estimate;
use serde::Serialize;
use std::fmt::Write;

/// `claims.json`.
#[derive(Serialize)]
pub struct Verdicts {
    claims: Vec<Verdict>,
    expected: Vec<Comparison>,
}

impl Verdicts {
    /// The claims of `experiment` judged by runs, each with the place of its curve among `curves`.
    pub fn new<'a>(
        experiment: &Experiment,
        curves: &[Curve],
        runs: impl IntoIterator<Item = (usize, &'a RunResult)>,
    ) -> anyhow::Result<Self> {
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
    pub fn json(&self) -> anyhow::Result<String> {
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

    /// For the report: the claims, and every published value as the claim that it is ours.
    pub fn for_report(&self) -> Vec<ClaimVerdict> {
        let claim = |verdict: &Verdict| ClaimVerdict {
            claim: format!("{}: {}", verdict.name, verdict.claim),
            verdict: verdict.verdict.to_string(),
            difference: None,
            detail: verdict.pairs.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        };
        let published = |line: &Comparison| {
            let ours = match (line.ours, &line.note) {
                (Some(Estimate { mean, half_width }), _) if half_width.is_finite() => {
                    format!("ours: {:.2} % ± {:.2}, {} seeds", 100.0 * mean, 100.0 * half_width, line.seeds)
                }
                (Some(Estimate { mean, .. }), _) => format!("ours: {:.2} %, one seed", 100.0 * mean),
                (None, note) => note.clone().unwrap_or_default(),
            };
            let verdict = match line.covered {
                Some(true) => "holds",
                Some(false) => "does not hold",
                None => "undecided",
            };
            ClaimVerdict {
                claim: format!("{} ends at the published {:.1} %", line.curve, 100.0 * line.published),
                verdict: verdict.to_owned(),
                difference: None,
                detail: ours,
            }
        };
        self.claims.iter().map(claim).chain(self.expected.iter().map(published)).collect()
    }
}
