//! The verdicts on the claims of an experiment, as values, JSON and text.

use super::metric::Unit;
use super::{Claims, Comparison, Measured, Shortened, Subject};
use crate::error::Error;
use crate::statistics::Estimate;
use crate::table::table;
use serde::Serialize;
use std::fmt::{self, Write};

/// The pairing of the two sides of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Pairing {
    /// Runs of the same seed. One pair decides nothing.
    Seed,
    /// Curves of the bound for the same draw of the channel. One pair is judged by its sign.
    Draw,
}

/// The decision of the measurements on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum Answer {
    /// The measurements support it.
    #[serde(rename = "holds")]
    Holds,
    /// The measurements contradict it.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// The measurements do neither.
    #[serde(rename = "undecided")]
    Undecided,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
        })
    }
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The claim's name.
    pub name: String,
    /// The claim as it is written.
    pub claim: String,
    /// Holds if every pair does, does not hold if any pair does not, and is undecided otherwise.
    pub verdict: Answer,
    /// The unit of the differences.
    pub unit: Unit,
    /// The pairing of the differences.
    pub paired_by: Pairing,
    /// The comparisons that it makes, in the order of the curves.
    pub pairs: Vec<Pair>,
    /// Curves that `for every` ranges over and that have no partner on the other side.
    pub left_out: Vec<String>,
}

/// The comparison of two curves, or of a curve and a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Pair {
    /// The curve on the left as a selector, with its factor.
    pub left: String,
    /// The curve with its factor, or the number, on the right.
    pub right: String,
    /// The decision on this comparison.
    pub verdict: Answer,
    /// Seeds of runs, or of draws of the channel, that both sides have.
    pub seeds: usize,
    /// The value of the curve on the left at these seeds, without the factor: mean and 95 % interval. None if
    /// a seed has no number.
    pub left_value: Option<Estimate>,
    /// The same of the curve on the right; none if there is a number instead.
    pub right_value: Option<Estimate>,
    /// Left less right at the same seed, each times its factor: mean and 95 % interval (in JSON the half
    /// width of a single seed is null). None if a seed has no number.
    pub difference: Option<Estimate>,
    /// The two-sided p-value of "the sides are equal": of Student's test of the differences or, where seeds
    /// are counted, of the sign test. None if there is no test.
    pub p: Option<f64>,
    /// The same adjusted for the number of comparisons; none without a [`Correction`](super::Correction).
    pub adjusted_p: Option<f64>,
    /// The reason for the decision, if the interval alone does not show it.
    pub note: Option<String>,
    /// The unit of the difference.
    #[serde(skip)]
    pub(super) unit: Unit,
    /// The pairing of the seeds.
    #[serde(skip)]
    pub(super) pairing: Pairing,
}

/// `bn2-c@k=1 − bc@k=1: +1.20 percentage points [+0.70, +1.70], 92.30 % against 91.10 %, 10 seeds: holds`
impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut facts = Vec::new();
        if let Some(Estimate { mean, half_width }) = self.difference {
            let difference = format!("{} {}", self.unit.signed(mean), self.unit.of_difference());
            let ends = [mean - half_width, mean + half_width].map(|end| self.unit.signed(end)).join(", ");
            facts.push(if half_width.is_finite() { format!("{difference} [{ends}]") } else { difference });
        }
        if let (Some(left), Some(right)) = (self.left_value, self.right_value) {
            facts.push(format!("{} against {}", self.unit.value(left.mean), self.unit.value(right.mean)));
        }
        match (self.pairing, self.seeds) {
            (Pairing::Seed, 1) => facts.push("1 seed".into()),
            (Pairing::Seed, seeds) => facts.push(format!("{seeds} seeds")),
            // The note says so, for one draw and for the curve of the expected ρ.
            (Pairing::Draw, 1) => {}
            (Pairing::Draw, draws) => facts.push(format!("{draws} draws")),
        }
        write!(f, "{} − {}: {}: {}", self.left, self.right, facts.join(", "), self.verdict)?;
        self.note.iter().try_for_each(|note| write!(f, " ({note})"))
    }
}

impl Answer {
    /// All of several claims together.
    pub(super) fn all(answers: impl IntoIterator<Item = Self>) -> Self {
        answers.into_iter().fold(Self::Holds, |all, answer| match (all, answer) {
            (Self::DoesNotHold, _) | (_, Self::DoesNotHold) => Self::DoesNotHold,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            (Self::Holds, Self::Holds) => Self::Holds,
        })
    }
}

/// `claims.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Verdicts {
    /// The claims, each with its verdict.
    pub claims: Vec<Verdict>,
    /// The published values with the measured ones.
    pub expected: Vec<Comparison>,
    /// How the experiment was shortened, if it was: the verdicts are then about a part of it.
    pub shortened: Option<Shortened>,
}

impl Verdicts {
    /// The claims about curves of the bound, judged.
    pub(crate) fn of_bound(
        claims: &Claims,
        subject: Subject,
        measured: &[Measured],
        shortened: Option<Shortened>,
    ) -> Result<Self, Error> {
        Ok(Self { claims: claims.verdicts(subject, measured)?, expected: Vec::new(), shortened })
    }

    /// Whether there are no claims and no published values.
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
