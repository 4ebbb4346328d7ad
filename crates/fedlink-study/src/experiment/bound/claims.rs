//! What is claimed of a panel, and whether it is so.

use super::Panel;
use crate::statistics::Moments;
use fedlink::config::count::optional;
use fedlink_theory::Estimate;
use fedlink_theory::bound::Curve;
use fedlink_theory::study::{Study, StudyCurve};
use serde::{Deserialize, Serialize};

/// A claim: one curve of a panel is better than others.
///
/// "Better" is judged by the loss bound after `at` rounds (by default the last), or with `rounds_to` by the rounds
/// until the loss bound is at most that level. `factor` times the better value must still be below the other (by
/// default 1; 1.1 says "better by a tenth"). With several draws, factor·better − other is formed for each draw and
/// the claim holds, or does not hold, if the 95 % interval of its mean is all below, or all above, zero; else it is
/// undecided. A single draw is judged by its sign.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The panel's name.
    pub panel: String,
    /// The claim in words.
    pub says: String,
    /// The curve that is claimed to be better.
    pub better: Selector,
    /// The curves that it is claimed to be better than; by default all others of the panel.
    #[serde(default)]
    pub than: Vec<Selector>,
    /// Judge by the loss after that many rounds.
    #[serde(default, deserialize_with = "optional")]
    pub at: Option<u64>,
    /// Judge by the rounds until the loss is at most this.
    #[serde(default)]
    pub rounds_to: Option<f64>,
    /// How many times better.
    #[serde(default = "one")]
    pub factor: f64,
}

fn one() -> f64 {
    1.0
}

/// A curve of a panel by its K, its τ or both.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// K.
    #[serde(default, deserialize_with = "optional")]
    pub k: Option<u64>,
    /// τ.
    #[serde(default, deserialize_with = "optional")]
    pub tau: Option<u64>,
}

/// Whether a claim is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is.
    Holds,
    /// It is not.
    DoesNotHold,
    /// The interval over the draws covers zero.
    Undecided,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
        }
    }
}

/// The better curve against one other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The other curve's label.
    pub than: String,
    /// The value of the curve that is claimed to be better. Rounds that are never reached count as one more than
    /// there are.
    pub better: Estimate,
    /// The value of the other.
    pub other: Estimate,
    /// factor·better − other.
    pub difference: Estimate,
    /// Whether it is below zero.
    pub verdict: Verdict,
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimResult {
    /// The panel's name.
    pub panel: String,
    /// The claim in words.
    pub says: String,
    /// What was tested, precisely.
    pub tested: String,
    /// The verdict: holds if every comparison does, does not hold if one does not.
    pub verdict: Verdict,
    /// One for each other curve.
    pub comparisons: Vec<Comparison>,
}

impl Claim {
    /// Whether the claim can be judged on these panels.
    pub(super) fn check(&self, panels: &[Panel]) -> Result<(), String> {
        let wrong = |key: &str, problem: String| Err(format!("claim {:?}: {key}: {problem}", self.says));
        let Some(panel) = panels.iter().find(|panel| panel.name == self.panel) else {
            let names: Vec<&str> = panels.iter().map(|panel| panel.name.as_str()).collect();
            return wrong("panel", format!("{:?} is none of {}", self.panel, names.join(", ")));
        };
        for selector in std::iter::once(&self.better).chain(&self.than) {
            let found = panel.study.grid().into_iter().filter(|curve| selector.takes(*curve)).count();
            if found != 1 {
                let problem = format!("{} names {found} curves of the panel, not one", selector.words());
                return wrong("better/than", problem);
            }
        }
        if self.others(&panel.study).is_empty() {
            return wrong("than", "leaves no curve to compare with".into());
        }
        if self.at.is_some() && self.rounds_to.is_some() {
            return wrong("at", "cannot stand beside rounds_to".into());
        }
        if self.at.is_some_and(|at| at > panel.study.rounds as u64) {
            return wrong("at", format!("is beyond the {} rounds", panel.study.rounds));
        }
        let finite = |x: f64| x.is_finite() && x > 0.0;
        if !finite(self.factor) || !self.rounds_to.is_none_or(finite) {
            return wrong("factor/rounds_to", "must be above 0".into());
        }
        Ok(())
    }

    fn others(&self, study: &Study) -> Vec<usize> {
        let better = self.better;
        let taken = |curve: &(u64, u64)| match &self.than[..] {
            [] => !better.takes(*curve),
            than => than.iter().any(|selector| selector.takes(*curve)),
        };
        study.grid().iter().enumerate().filter(|(_, curve)| taken(curve)).map(|(i, _)| i).collect()
    }

    fn tested(&self, study: &Study) -> String {
        let what = match (self.rounds_to, self.at) {
            (Some(level), _) => {
                format!("rounds until the bound is at most {level} ({} if never)", study.rounds + 1)
            }
            (None, at) => format!("bound after {} rounds", at.unwrap_or(study.rounds as u64)),
        };
        if self.factor == 1.0 {
            format!("{what}, lower")
        } else {
            format!("{what}, {} times lower", self.factor)
        }
    }
}

impl Selector {
    fn takes(&self, (k, tau): (u64, u64)) -> bool {
        self.k.is_none_or(|own| own == k) && self.tau.is_none_or(|own| own == tau)
    }

    fn words(&self) -> String {
        let part = |name: &str, value: Option<u64>| value.map(|value| format!("{name} = {value}"));
        let parts: Vec<String> = part("k", self.k).into_iter().chain(part("tau", self.tau)).collect();
        format!("{{ {} }}", parts.join(", "))
    }
}

/// Collects what a claim needs, draw by draw.
pub(super) struct Judge<'a> {
    claim: &'a Claim,
    study: &'a Study,
    better: usize,
    others: Vec<usize>,
    /// The better value, the other and the difference, for each comparison.
    moments: Vec<[Moments; 3]>,
    draws: u64,
}

impl<'a> Judge<'a> {
    pub fn new(claim: &'a Claim, study: &'a Study) -> Self {
        let better = study.grid().iter().position(|curve| claim.better.takes(*curve)).expect("checked");
        let others = claim.others(study);
        let moments = vec![[Moments::default(); 3]; others.len()];
        Self { claim, study, better, others, moments, draws: 0 }
    }

    /// Takes in the curves of one draw.
    pub fn see(&mut self, curves: &[Curve]) {
        let value = |i: usize| match (self.claim.rounds_to, self.claim.at) {
            (Some(level), _) => curves[i].first_below(level).unwrap_or(self.study.rounds + 1) as f64,
            (None, at) => curves[i].loss(at.map_or(self.study.rounds, |at| at as usize)),
        };
        let better = value(self.better);
        let values: Vec<f64> = self.others.iter().map(|&i| value(i)).collect();
        self.take(better, &values);
    }

    /// Takes in means where there are no draws.
    pub fn see_mean(&mut self, curves: &[StudyCurve]) {
        let value = |i: usize| match (self.claim.rounds_to, self.claim.at) {
            (Some(level), _) => {
                let first = curves[i].losses.iter().position(|loss| loss.mean <= level);
                first.unwrap_or(self.study.rounds + 1) as f64
            }
            (None, at) => curves[i].losses[at.map_or(self.study.rounds, |at| at as usize)].mean,
        };
        let better = value(self.better);
        let values: Vec<f64> = self.others.iter().map(|&i| value(i)).collect();
        self.take(better, &values);
    }

    fn take(&mut self, better: f64, others: &[f64]) {
        self.draws += 1;
        for (moments, other) in self.moments.iter_mut().zip(others) {
            let values = [better, *other, self.claim.factor * better - other];
            moments.iter_mut().zip(values).for_each(|(moments, value)| moments.add(value));
        }
    }

    pub fn result(self, curves: &[StudyCurve]) -> ClaimResult {
        let comparison = |(&i, moments): (&usize, &[Moments; 3])| {
            let [better, other, difference] = [0, 1, 2].map(|j| moments[j].estimate());
            let width = if self.draws == 1 { 0.0 } else { difference.half_width };
            let verdict = if difference.mean + width < 0.0 {
                Verdict::Holds
            } else if difference.mean - width > 0.0 {
                Verdict::DoesNotHold
            } else {
                Verdict::Undecided
            };
            Comparison { than: curves[i].label.clone(), better, other, difference, verdict }
        };
        let comparisons: Vec<Comparison> = self.others.iter().zip(&self.moments).map(comparison).collect();
        let any = |verdict| comparisons.iter().any(|comparison| comparison.verdict == verdict);
        let verdict = if any(Verdict::DoesNotHold) {
            Verdict::DoesNotHold
        } else if any(Verdict::Undecided) {
            Verdict::Undecided
        } else {
            Verdict::Holds
        };
        ClaimResult {
            panel: self.claim.panel.clone(),
            says: self.claim.says.clone(),
            tested: self.claim.tested(self.study),
            verdict,
            comparisons,
        }
    }
}
