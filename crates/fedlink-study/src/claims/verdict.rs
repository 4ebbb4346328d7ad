//! The verdicts on the claims of an experiment, as values, JSON and text.

use super::registered::{Register, Registered};
use super::{Claims, Comparison, Measured, Shortened, Subject};
use crate::error::Error;
use crate::goals::{Median, Paired, Unit};
use crate::statistics::{Estimate, estimate_at};
use crate::table::{number, table};
use serde::Serialize;
use std::fmt::{self, Write};

/// The pairing of the two sides of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Pairing {
    /// Runs of the same seed. One pair cannot decide.
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
    /// The measurements must not decide it; the note has the reason.
    #[serde(rename = "refused")]
    Refused,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
            Self::Refused => "refused",
        })
    }
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The claim's name.
    pub name: String,
    /// The text of the claim.
    pub claim: String,
    /// The goal of both sides, if it is written beside the claim.
    pub goal: Option<String>,
    /// Holds if every pair does, does not hold if any pair does not, is refused if any pair is, and is
    /// undecided otherwise.
    pub verdict: Answer,
    /// The time at which the claim was made; none if that is unknown.
    pub registered: Option<Registered>,
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
    /// a seed has no number, and for a cost.
    pub left_value: Option<Estimate>,
    /// The same of the curve on the right; none if there is a number instead.
    pub right_value: Option<Estimate>,
    /// Left less right at the same seed, each times its factor: mean and 95 % interval (in JSON the half
    /// width of a single seed is null). None if a seed has no number.
    pub difference: Option<Estimate>,
    /// Of a cost: the median of the curve on the left, without the factor.
    pub left_median: Option<Median>,
    /// The same of the curve on the right; none if there is a number instead.
    pub right_median: Option<Median>,
    /// Of a cost: the two sides seed by seed, with factors.
    pub comparison: Option<Paired>,
    /// The interval of the difference, or of the ratio of a cost, corrected for the number of comparisons;
    /// none without a [`Correction`](super::Correction).
    pub corrected: Option<[f64; 2]>,
    /// The two-sided p-value of "the sides are equal": of Student's test of the differences or, of a cost, of
    /// the exact test. None if there is no test.
    pub p: Option<f64>,
    /// The same adjusted for the number of comparisons; none without a correction.
    pub adjusted_p: Option<f64>,
    /// The reason for the decision, if the interval alone does not show it.
    pub note: Option<String>,
    /// The unit of the difference.
    #[serde(skip)]
    pub(super) unit: Unit,
    /// The pairing of the seeds.
    #[serde(skip)]
    pub(super) pairing: Pairing,
    /// Left less right at each seed, each times its factor; empty for a cost.
    #[serde(skip)]
    pub(super) differences: Vec<f64>,
}

impl Verdict {
    /// Concludes from the pairs.
    pub(super) fn conclude(&mut self) {
        self.verdict = Answer::all(self.pairs.iter().map(|pair| pair.verdict));
    }
}

impl Pair {
    /// Refuses to decide the comparison for this reason.
    pub(super) fn refuse(&mut self, reason: String) {
        self.verdict = Answer::Refused;
        self.p = None;
        self.note = Some(match self.note.take() {
            Some(note) => format!("{reason}; {note}"),
            None => reason,
        });
    }

    /// The interval of the difference, or of the ratio of a cost, at another level than 95 %.
    pub(super) fn interval_at(&self, level: f64) -> Option<[f64; 2]> {
        if let Some(comparison) = &self.comparison {
            return comparison.ratio_at(level);
        }
        let Estimate { mean, half_width } = estimate_at(level, self.differences.iter().copied());
        half_width.is_finite().then_some([mean - half_width, mean + half_width])
    }

    /// `0.42 of the seconds [0.30, 0.61], median 36.8 s [29.0, 45.1] (10/10) against > 60 s (3/10), sooner at
    /// 9 of 10 seeds, later at 1, p = 0.004`
    fn cost(&self, comparison: &Paired) -> Vec<String> {
        let mut facts = Vec::new();
        if let Some(ratio) = comparison.ratio {
            let mut text = format!("{} of the {}", number(ratio.mean), self.unit.of_difference());
            if let (Some(low), Some(high)) = (ratio.low, ratio.high) {
                let _ = write!(text, " [{}, {}]", number(low), number(high));
            }
            if let Some(horizon) = ratio.horizon {
                let _ = write!(text, " up to {}", self.unit.value(horizon));
            }
            facts.push(text);
        }
        facts.extend(
            self.corrected.map(|[low, high]| format!("corrected [{}, {}]", number(low), number(high))),
        );
        let median = |median: &Median| {
            let text = median.text(|cost| self.unit.value(cost));
            format!("{text} {}", median.interval(|cost| self.unit.value(cost))).trim_end().to_owned()
        };
        if let Some(left) = &self.left_median {
            let right = self
                .right_median
                .as_ref()
                .map_or_else(String::new, |right| format!(" against {}", median(right)));
            facts.push(format!("median {}{right}", median(left)));
        }
        let Paired { sooner, later, .. } = comparison;
        facts.push(format!("lower at {sooner} of {} seeds, higher at {later}", self.seeds));
        facts.extend(comparison.p.map(|p| format!("exact p = {p:.3}")));
        facts
    }
}

/// `bn2-c@k=1 − bc@k=1: +1.20 percentage points [+0.70, +1.70], 92.30 % against 91.10 %, 10 seeds: holds`
impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(comparison) = &self.comparison {
            let facts = self.cost(comparison).join(", ");
            write!(f, "{} against {}: {facts}: {}", self.left, self.right, self.verdict)?;
            return self.note.iter().try_for_each(|note| write!(f, " ({note})"));
        }
        let mut facts = Vec::new();
        if let Some(Estimate { mean, half_width }) = self.difference {
            let difference = format!("{} {}", self.unit.signed(mean), self.unit.of_difference());
            let ends = [mean - half_width, mean + half_width].map(|end| self.unit.signed(end)).join(", ");
            facts.push(if half_width.is_finite() { format!("{difference} [{ends}]") } else { difference });
        }
        if let Some(ends) = self.corrected {
            facts.push(format!("corrected [{}]", ends.map(|end| self.unit.signed(end)).join(", ")));
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
            (Self::Refused, _) | (_, Self::Refused) => Self::Refused,
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
    /// The reductions of the experiment, if there are any: the verdicts are then about a part of it.
    pub shortened: Option<Shortened>,
    /// Claims that were there at the first run and are not any more.
    pub removed: Vec<String>,
    /// Whether the correction for many comparisons was changed after the first run.
    pub correction_changed: bool,
}

impl Verdicts {
    /// The claims about curves of the bound, judged.
    pub(crate) fn of_bound(
        claims: &Claims,
        subject: Subject,
        measured: &[Measured],
        shortened: Option<Shortened>,
    ) -> Result<Self, Error> {
        let claims = claims.verdicts(subject, measured)?;
        Ok(Self { claims, expected: Vec::new(), shortened, removed: Vec::new(), correction_changed: false })
    }

    /// Refuses every claim if the experiment was run for fewer rounds than its file gives.
    pub(crate) fn refuse_shortened(&mut self) {
        let Some(shortened) = self.shortened.filter(|shortened| shortened.rounds < shortened.of_rounds)
        else {
            return;
        };
        for verdict in &mut self.claims {
            for pair in &mut verdict.pairs {
                pair.refuse(format!("shortened: {shortened}"));
            }
            verdict.conclude();
        }
    }

    /// Marks the claims that were added or changed after the first run.
    pub(crate) fn register(&mut self, register: &Register, claims: &Claims) {
        for verdict in &mut self.claims {
            let claim = claims.list.iter().find(|claim| claim.name == verdict.name);
            verdict.registered = claim.map(|claim| register.of(claim));
        }
        self.removed = register.removed(claims);
        self.correction_changed = register.correction_changed(claims);
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
            let [hold, do_not, undecided, refused] =
                [Answer::Holds, Answer::DoesNotHold, Answer::Undecided, Answer::Refused].map(count);
            let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
            let _ = writeln!(text, "Claims: {hold} hold, {do_not} do not, {undecided} undecided{refused}\n");
        }
        let short = self.shortened.map_or_else(String::new, |shortened| format!(" ({shortened})"));
        for Verdict { name, claim, goal, verdict, registered, pairs, left_out, .. } in &self.claims {
            let late = registered.as_ref().map_or_else(String::new, Registered::remark);
            let goal = goal.as_ref().map_or_else(String::new, |goal| format!("; goal: {goal}"));
            let _ = writeln!(text, "{name}: {verdict}{short}{late}\n  {claim}{goal}");
            for pair in pairs {
                let _ = writeln!(text, "  {pair}");
            }
            if !left_out.is_empty() {
                let _ = writeln!(text, "  without a partner: {}", left_out.join(", "));
            }
        }
        for name in &self.removed {
            let _ = writeln!(text, "{name}: removed after the results");
        }
        if self.correction_changed {
            text += "the correction for many comparisons was changed after the results\n";
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
