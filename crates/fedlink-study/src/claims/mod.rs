//! Claims about curves in a small language, and their verdicts by the measurements. Runs of the system and
//! curves of the convergence bound use the same language.
//!
//! ```toml
//! [claims]                                # of runs
//! "update-aware wins" = "bn2-c@k=1 final > bc@k=1 final"
//! "fewer is better" = "k=10 final < k=1 final for every policy"
//! "good enough" = "bc@k=1 final > 0.9"
//! "best of all" = "bn2-c final > others final for every k"
//! "soonest" = { goal = "seconds until accuracy >= 0.85 for 3 evaluations", claim = "bc@k=1 < bc@k=10" }
//! ```
//!
//! ```toml
//! [claims]                                # of the bound
//! "K = 1 ends lowest" = "even@k=1 bound < even others bound"
//! "K = 3 ends far below K = 1" = "1.1 * uneven@k=3 bound < uneven@k=1 bound"
//! "beyond 5 it rises" = "tau=5 bound < tau=10|15|20 bound for every panel"
//! "fast" = "even@k=1 rounds-to-bound-125 < even@k=3 rounds-to-bound-125"
//! ```
//!
//! ```text
//! claim    = side (">" | "<") (side | number) ["for every" name {"," name}]
//! side     = [factor "*"] [selector] ["others"] metric
//! selector = term {"@" term}
//! term     = word | name "=" value {"|" value}
//! metric   = "final" | "best" | "loss" | "area" | "instability" | …
//!          | ("rounds-to-" | "bits-to-" | "seconds-to-" | "joules-to-") ("target" | share)
//!          | "bound" | "bound-at-" rounds | "rounds-to-bound-" level
//! ```
//!
//! With a [goal](crate::goals), sides have no metric: the goal is that of both. `rounds-to-0.9` is the goal
//! `rounds until accuracy >= 0.9`.
//!
//! A name is a swept key or its last part: of runs a key of the configuration, of the bound `panel`, `k` or
//! `tau`. A single word is a policy, of the bound a panel. A side must leave one curve: if those it fits
//! differ in a key, `for every` must name that key, and the claim is then made for each value that both sides
//! have. Two forms select several curves on purpose, and the claim is then made for each of them: several
//! values of a key (`tau=10|15|20`), and on the right `others`, which is every curve that the selector before
//! it fits, but for the one on the left.
//!
//! A factor above 0 multiplies its side: `1.1 * a < b` means that a is below b by more than a tenth of a.
//!
//! # How a claim is decided
//! At one seed all curves see the same split, initial model, batches and channels, and in one draw all curves
//! of the bound see the same channels. So the difference of the two sides is taken seed by seed, or draw by
//! draw. Its mean has Student's 95 % interval. The comparison *holds* if the interval lies on the claimed
//! side of zero, *does not hold* if it lies on the other side, and is *undecided* otherwise. A number on the
//! right is the same at every seed. Of several comparisons all must hold; one that does not hold is enough to
//! contradict the claim. Intervals are not corrected for multiple comparisons: of forty comparisons of equal
//! curves, one is expected to contradict at random. `correction = "holm"` among the claims makes all
//! comparisons of all claims of the file one family: see [`Correction`].
//!
//! A cost until conditions hold is decided by an exact test on the seeds, in which runs that did not reach
//! the goal take part: see [`Paired`](crate::goals::Paired).
//!
//! # Refusals
//! A claim is *refused*, with the reason, if its numbers must not decide it: at half of the seeds or more
//! both sides ended at chance level, or a battery was empty before the goal was reached; or the experiment
//! was run for fewer rounds than its file gives.
//!
//! # One seed and one draw
//! With fewer than two shared seeds a comparison of runs is undecided: a run is an experiment, and nothing
//! separates its outcome from random variation. A curve of the bound is computed: given the channels, or
//! their expectation, there is no other randomness in it. A single draw, or the curve for E\[ρ\], is
//! therefore judged by the sign of the difference; the verdict holds for these channels.
//!
//! A curve of the bound has no round after its last: the rounds to a level that it never
//! reaches are T + 1, on both sides, and the interval decides. Any number that a run lacks (it diverged, was
//! interrupted or has too few evaluations) leaves the claim undecided.

mod correction;
mod curves;
mod decide;
mod expected;
mod judge;
mod length;
mod list;
mod parse;
mod power;
mod registered;
#[cfg(test)]
mod tests;
mod verdict;

pub use correction::Correction;
pub use curves::CurveKeys;
pub use expected::{Comparison, Expected};
pub(crate) use length::Original;
pub use length::Shortened;
pub use list::Claims;
pub use power::Undecidable;
pub use registered::{Register, Registered};
pub use verdict::{Answer, Pair, Pairing, Verdict, Verdicts};

use crate::goals::{Goal, Metric, Metrics};
use curves::{Curves, Grouped, Selector};
use decide::Order;
use fedlink::spec::ConfigError;
use judge::Shared;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of the curves of an experiment. It decides the keys and metrics that a claim may name, and the
/// verdict on a single sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// Runs of the system, paired by seed.
    Runs,
    /// Curves of the convergence bound, paired by draw of the channel.
    Bound {
        /// The rounds T of every curve: it has values after 0, 1, …, T rounds.
        rounds: u64,
    },
}

/// One assertion about curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The goal of both sides, if it is written beside the text.
    pub goal: Option<String>,
    left: Side,
    order: Order,
    right: Right,
    /// The names after `for every`.
    every: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Side {
    /// Above 0.
    factor: f64,
    selector: Selector,
    /// Whether `others` is written: all that the selector fits, but for the other side.
    others: bool,
    goal: Goal,
}

#[derive(Clone, Debug, PartialEq)]
enum Right {
    Side(Side),
    Number(f64),
}

/// A curve that was run or computed: its keys, and the measurements of each seed or draw.
///
/// A claim is judged by a list of all curves of the experiment; a curve that was not run has no `runs`, and a
/// claim about it is undecided. Without that curve in the list, `for every` could seem fulfilled.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The keys that distinguish it from the other curves.
    pub keys: CurveKeys,
    /// Seed and measurements of each run, or of each draw of the channel.
    pub runs: Vec<(u64, Metrics)>,
}

/// The comparisons that a claim makes, and the curves without a partner.
struct Comparisons {
    pairs: Vec<(usize, Opponent)>,
    left_out: Vec<usize>,
}

/// The other side of a comparison.
#[derive(Clone, Copy)]
enum Opponent {
    Curve(usize),
    Number(f64),
}

/// The most pairs of curves that a claim may compare: with every other curve, pairs grow as the square.
const MAX_PAIRS: usize = 1_000_000;

impl Subject {
    /// The pairing of the two sides.
    pub fn pairing(self) -> Pairing {
        match self {
            Self::Runs => Pairing::Seed,
            Self::Bound { .. } => Pairing::Draw,
        }
    }

    /// Whether curves of this kind have the goal.
    fn check(self, goal: &Goal) -> Result<(), String> {
        let is_of_bound = goal.metric().is_some_and(Metric::is_of_bound);
        match (self, goal) {
            (Self::Bound { rounds }, Goal::Plain(Metric::BoundAt(at))) if *at > rounds => {
                Err(format!("{goal} is beyond the {rounds} rounds"))
            }
            (Self::Runs, _) if is_of_bound => {
                Err(format!("{goal} is a number of the bound; runs have final, best, loss, rounds-to-0.9 …"))
            }
            (Self::Bound { .. }, _) if !is_of_bound => Err(format!(
                "{goal} is a number of runs; the bound has bound, bound-at-200 and rounds-to-bound-125"
            )),
            _ => Ok(()),
        }
    }
}

impl Claim {
    /// Reads a claim; messages call it `name`.
    ///
    /// ```
    /// use fedlink_study::claims::Claim;
    /// assert!(Claim::parse("fewer is better", "k=10 final < k=1 final for every policy").is_ok());
    /// assert!(Claim::parse("much lower", "1.1 * k=5 bound < k=3 bound").is_ok());
    /// assert!(Claim::parse("no metric", "bc@k=1 > 0.9").is_err());
    /// ```
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        parse::claim(name, text, None).map_err(|problem| error(name, problem))
    }

    /// Reads a claim whose sides are compared by a goal, such as `seconds until accuracy >= 0.85`.
    ///
    /// ```
    /// use fedlink_study::claims::Claim;
    /// assert!(Claim::with_goal("sooner", "bc@k=1 < bc@k=10", "seconds until accuracy >= 0.85").is_ok());
    /// ```
    pub fn with_goal(name: &str, text: &str, goal: &str) -> Result<Self, ConfigError> {
        parse::claim(name, text, Some(goal)).map_err(|problem| error(name, problem))
    }

    /// Checks that the claim names these curves.
    pub fn check(&self, subject: Subject, curves: &[CurveKeys]) -> Result<(), ConfigError> {
        let comparisons = self.comparisons(subject, &Curves::new(subject, curves));
        comparisons.map(|_| ()).map_err(|problem| error(&self.name, problem))
    }

    /// Checks that runs have the numbers of the claim: seconds and joules need `units`, and the accuracies of
    /// classes and devices need `fairness`.
    pub fn check_recorded(&self, units: bool, fairness: bool) -> Result<(), ConfigError> {
        let missing = |goal: &Goal| match goal.needs_fairness() {
            _ if !units && goal.needs_units() => Some(format!(
                "{goal} needs a radio with units: set radio.bandwidth_hz, or claim rounds-to-0.9 or \
                 bits-to-0.9"
            )),
            Some(name) if !fairness => Some(format!(
                "{name} is recorded with run.fairness = true only: set it, or claim the accuracy"
            )),
            _ => None,
        };
        self.goals().find_map(missing).map_or(Ok(()), |problem| Err(error(&self.name, problem)))
    }

    /// The verdict of the measurements on this claim alone, `correction` being made for the number of its
    /// comparisons; an error where [`check`](Self::check) would give one.
    pub fn verdict(
        &self,
        subject: Subject,
        measured: &[Measured],
        correction: Correction,
    ) -> Result<Verdict, ConfigError> {
        let mut verdict = self.judge(subject, measured)?;
        correction.apply(&mut verdict.pairs.iter_mut().collect::<Vec<_>>());
        verdict.conclude();
        Ok(verdict)
    }

    /// The verdict without a correction.
    fn judge(&self, subject: Subject, measured: &[Measured]) -> Result<Verdict, ConfigError> {
        let curves = Curves::new(subject, measured.iter().map(|curve| &curve.keys));
        let comparisons = self.comparisons(subject, &curves).map_err(|problem| error(&self.name, problem))?;
        let pair = |&(left, opponent): &(usize, Opponent)| {
            let shared = shared(&measured[left], opponent, measured);
            self.pair(subject.pairing(), &curves, (left, opponent), &shared)
        };
        let mut verdict = Verdict {
            name: self.name.clone(),
            claim: self.text.clone(),
            goal: self.goal.clone(),
            verdict: Answer::Undecided,
            registered: None,
            unit: self.left.goal.unit(),
            paired_by: subject.pairing(),
            pairs: comparisons.pairs.iter().map(pair).collect(),
            left_out: comparisons.left_out.iter().map(|&curve| curves.name(curve)).collect(),
        };
        verdict.conclude();
        Ok(verdict)
    }

    /// The goals of both sides.
    pub fn goals(&self) -> impl Iterator<Item = &Goal> {
        std::iter::once(&self.left.goal).chain(self.right.side().map(|side| &side.goal))
    }

    /// The plain metrics of both sides.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        self.goals().filter_map(Goal::metric)
    }

    fn comparisons(&self, subject: Subject, curves: &Curves) -> Result<Comparisons, String> {
        self.goals().try_for_each(|goal| subject.check(goal))?;
        let left = curves.select(&self.left.selector)?;
        let right = self.right.side().map(|side| curves.select(&side.selector)).transpose()?;
        let mut every = Vec::new();
        for name in &self.every {
            // A key that is the same for all curves has one value: there is nothing to range over.
            let Some(key) = curves.key(name)? else { continue };
            let given = |side: &curves::Selection| side.fixed.contains(&key);
            if given(&left) || right.as_ref().is_some_and(given) {
                return Err(format!("`for every {name}`: the claim gives {key} a value already"));
            }
            every.push(key);
        }
        let lefts = curves.group(&left, &every, false)?;
        let (side, right) = match (&self.right, right) {
            (Right::Side(side), Some(right)) => (side, right),
            (Right::Number(number), _) => {
                let pairs = lefts.into_iter().flat_map(|(_, curves)| curves);
                let pairs = pairs.map(|curve| (curve, Opponent::Number(*number))).collect();
                return Ok(Comparisons { pairs, left_out: Vec::new() });
            }
            (Right::Side(_), None) => return Err("selects nothing on the right".into()),
        };
        let rights = curves.group(&right, &every, side.others)?;
        let count = |groups: &Grouped| groups.iter().map(|(_, curves)| curves.len()).sum::<usize>();
        // With one curve per group there are at most as many pairs as curves.
        let widest = rights.iter().map(|(_, curves)| curves.len()).max().unwrap_or(0);
        if count(&lefts).saturating_mul(widest) > MAX_PAIRS {
            let curves = count(&lefts);
            return Err(format!(
                "compares {curves} curves with up to {widest} each, more than {MAX_PAIRS} pairs"
            ));
        }
        let comparisons = matched(&lefts, &rights, side.others)
            .ok_or_else(|| format!("compares more than {MAX_PAIRS} pairs of curves"))?;
        let same_goal = side.goal == self.left.goal;
        for &(left, opponent) in &comparisons.pairs {
            if matches!(opponent, Opponent::Curve(right) if right == left) && same_goal {
                return Err(format!("compares {} with itself", curves.name(left)));
            }
        }
        match comparisons.pairs.is_empty() {
            true if side.others => Err("`others` leaves no curve to compare with".into()),
            true => Err(format!("for no {} are there curves on both sides", self.every.join(", "))),
            false => Ok(comparisons),
        }
    }
}

impl Right {
    fn side(&self) -> Option<&Side> {
        match self {
            Self::Side(side) => Some(side),
            Self::Number(_) => None,
        }
    }
}

/// Left and right curves with the same values, in the order of the left ones, and those without a partner. A
/// curve that lacks a key fits every value of it. With `others`, no curve is compared with itself. None if
/// there are more than [`MAX_PAIRS`].
fn matched(lefts: &Grouped, rights: &Grouped, others: bool) -> Option<Comparisons> {
    let is_whole = |values: &[Option<&str>]| values.iter().all(Option::is_some);
    let fit = |one: &[Option<&str>], other: &[Option<&str>]| {
        one.iter().zip(other).all(|(one, other)| one.is_none() || other.is_none() || one == other)
    };
    let partners: BTreeMap<_, &Vec<usize>> = rights.iter().map(|(values, curves)| (values, curves)).collect();
    let open: Vec<_> = rights.iter().filter(|(values, _)| !is_whole(values)).collect();
    let mut pairs = Vec::new();
    let mut paired = BTreeSet::new();
    for (values, group) in lefts {
        let fitting: Vec<&Vec<usize>> = if is_whole(values) {
            let open = open.iter().filter(|(right, _)| fit(values, right)).map(|(_, curves)| curves);
            partners.get(values).copied().into_iter().chain(open).collect()
        } else {
            rights.iter().filter(|(right, _)| fit(values, right)).map(|(_, curves)| curves).collect()
        };
        for &left in group {
            let partners = fitting.iter().flat_map(|curves| curves.iter());
            for &right in partners.filter(|&&right| !(others && right == left)) {
                pairs.push((left, Opponent::Curve(right)));
                paired.extend([left, right]);
            }
            if pairs.len() > MAX_PAIRS {
                return None;
            }
        }
    }
    let all = lefts.iter().chain(rights).flat_map(|(_, curves)| curves.iter().copied());
    let left_out: BTreeSet<usize> = all.filter(|curve| !paired.contains(curve)).collect();
    Some(Comparisons { pairs, left_out: left_out.into_iter().collect() })
}

/// The runs of both sides at the seeds that both have, by seed.
fn shared<'a>(left: &'a Measured, right: Opponent, all: &'a [Measured]) -> Vec<Shared<'a>> {
    let by_seed = |curve: &'a Measured| -> BTreeMap<u64, &'a Metrics> {
        curve.runs.iter().map(|(seed, metrics)| (*seed, metrics)).collect()
    };
    let own = by_seed(left).into_iter();
    match right {
        Opponent::Curve(right) => {
            let others = by_seed(&all[right]);
            own.filter_map(|(seed, left)| Some(Shared { seed, left, right: Some(others.get(&seed)?) }))
                .collect()
        }
        Opponent::Number(_) => own.map(|(seed, left)| Shared { seed, left, right: None }).collect(),
    }
}

fn error(name: &str, problem: String) -> ConfigError {
    ConfigError::new(format!("claims.\"{name}\""), problem)
}
