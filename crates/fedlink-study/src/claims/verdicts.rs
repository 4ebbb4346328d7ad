//! All verdicts of an experiment, as JSON and as text.

use super::{Answer, Claims, Comparison, Measured, Subject, Verdict};
use crate::error::Error;
use crate::length::Shortened;
use crate::table::table;
use serde::Serialize;
use std::fmt::Write;

/// `claims.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Verdicts {
    /// The claims, each with its verdict.
    pub claims: Vec<Verdict>,
    /// What was published, beside what was measured.
    pub expected: Vec<Comparison>,
    /// How the experiment was shortened, if it was: the verdicts are then about less than was claimed.
    pub shortened: Option<Shortened>,
}

impl Verdicts {
    /// Claims about curves of the bound.
    pub(crate) fn of_bound(
        claims: &Claims,
        subject: Subject,
        measured: &[Measured],
        shortened: Option<Shortened>,
    ) -> Result<Self, Error> {
        let judged = claims.list.iter().map(|claim| claim.verdict(subject, measured, claims.correction));
        Ok(Self { claims: judged.collect::<Result<_, _>>()?, expected: Vec::new(), shortened })
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
        if !self.claims.is_empty() {
            let count = |answer| self.claims.iter().filter(|claim| claim.verdict == answer).count();
            let [hold, do_not, undecided] =
                [Answer::Holds, Answer::DoesNotHold, Answer::Undecided].map(count);
            let _ = writeln!(text, "Claims: {hold} hold, {do_not} do not, {undecided} undecided\n");
        }
        let short = self.shortened.map_or_else(String::new, |shortened| format!(" ({shortened})"));
        for Verdict { name, claim, verdict, pairs, left_out, .. } in &self.claims {
            let _ = writeln!(text, "{name}: {verdict}{short}\n  {claim}");
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
            vec![line.curve.clone(), percent(line.published), ours, half, difference, line.verdict()]
        };
        let rows: Vec<Vec<String>> = self.expected.iter().map(row).collect();
        if !text.is_empty() {
            text.push('\n');
        }
        text + &table(&["final accuracy", "published", "ours", "±", "difference", "verdict"], &rows)
    }
}
