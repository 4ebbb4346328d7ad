//! Claims about curves in a small language, and their verdicts by the measurements. Runs of the system and
//! curves of the convergence bound use the same language.
//!
//! ```toml
//! [claims]                                # of runs
//! "update-aware wins" = "bn2-c@k=1 final > bc@k=1 final"
//! "fewer is better" = "k=10 final < k=1 final for every policy"
//! "good enough" = "bc@k=1 final > 0.9"
//! "best of all" = "bn2-c final > others final for every k"
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
//! metric   = "final" | "best" | "loss" | "area" | "instability"
//!          | ("rounds-to-" | "bits-to-") ("target" | share)
//!          | "bound" | "bound-at-" rounds | "rounds-to-bound-" level
//! ```
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
//! curves, one is expected to contradict at random. `correction = "holm"` among the claims makes the
//! comparisons of each claim one family: see [`Correction`].
//!
//! # One seed and one draw
//! With fewer than two shared seeds a comparison of runs is undecided: a run is an experiment, and nothing
//! separates its outcome from random variation. A curve of the bound is computed: given the channels, or
//! their expectation, there is no other randomness in it. A single draw, or the curve for E\[ρ\], is
//! therefore judged by the sign of the difference; the verdict holds for these channels.
//!
//! # A target that was never reached
//! A run that ended at round T without the target shows that rounds-to-target is at least T + 1, and that
//! bits-to-target is at least the bits sent so far. A mean cannot be formed from bounds, but a sign can be
//! certain: where the other side got there earlier. If any seed has only a bound, the seeds are therefore
//! counted. Under equal odds the number of seeds in favor has the distribution of coin tosses; the comparison
//! holds if at least that many in favor have a probability of at most 2.5 %, and does not hold if the same is
//! true of the seeds against (the two-sided sign test at 5 %; six seeds of six, nine of ten). Seeds that
//! cannot be ordered, because neither side got there, count for the other side in both tests. This decides
//! which side is higher in most seeds, not by how much on average. Any other number that a run lacks (it
//! diverged, was interrupted or has too few evaluations) leaves the claim undecided.
//!
//! A curve of the bound has no round after its last: the rounds to a level that it never
//! reaches are T + 1, on both sides, and the interval decides.

mod correction;
mod curves;
mod decide;
mod expected;
mod length;
mod list;
mod metric;
mod parse;
mod reading;
#[cfg(test)]
mod tests;
mod verdict;

pub use correction::Correction;
pub use curves::CurveKeys;
pub use expected::{Comparison, Expected};
pub(crate) use length::Original;
pub use length::Shortened;
pub use list::Claims;
pub use metric::{Metric, Unit};
pub use reading::Metrics;
pub use verdict::{Answer, Pair, Pairing, Verdict, Verdicts};

use crate::statistics::{Estimate, estimate};
use curves::{Curves, Grouped, Selector};
use decide::{Order, decide, p_value};
use fedlink::spec::ConfigError;
use reading::Reading;
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
    metric: Metric,
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

    /// Whether curves of this kind have the metric.
    fn check(self, metric: Metric) -> Result<(), String> {
        match (self, metric) {
            (Self::Bound { rounds }, Metric::BoundAt(at)) if at > rounds => {
                Err(format!("{metric} is beyond the {rounds} rounds"))
            }
            (Self::Runs, _) if metric.is_of_bound() => Err(format!(
                "{metric} is a number of the bound; runs have final, best, loss, rounds-to-0.9 …"
            )),
            (Self::Bound { .. }, _) if !metric.is_of_bound() => Err(format!(
                "{metric} is a number of runs; the bound has bound, bound-at-200 and rounds-to-bound-125"
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
        parse::claim(name, text).map_err(|problem| error(name, problem))
    }

    /// Checks that the claim names these curves.
    pub fn check(&self, subject: Subject, curves: &[CurveKeys]) -> Result<(), ConfigError> {
        let comparisons = self.comparisons(subject, &Curves::new(subject, curves));
        comparisons.map(|_| ()).map_err(|problem| error(&self.name, problem))
    }

    /// Checks that runs have the numbers of the claim: seconds and joules need `units`, and the accuracies of
    /// classes and devices need `fairness`.
    pub fn check_recorded(&self, units: bool, fairness: bool) -> Result<(), ConfigError> {
        let missing = |metric: Metric| match metric {
            _ if !units && metric.needs_units() => Some(format!(
                "{metric} needs a radio with units: set radio.bandwidth_hz, or claim rounds-to-0.9 or \
                 bits-to-0.9"
            )),
            _ if !fairness && metric.needs_fairness() => {
                Some(format!("{metric} is recorded with run.fairness = true only: set it, or claim final"))
            }
            _ => None,
        };
        self.metrics().find_map(missing).map_or(Ok(()), |problem| Err(error(&self.name, problem)))
    }

    /// The verdict of the measurements, `correction` being made for the number of comparisons; an error where
    /// [`check`](Self::check) would give one.
    pub fn verdict(
        &self,
        subject: Subject,
        measured: &[Measured],
        correction: Correction,
    ) -> Result<Verdict, ConfigError> {
        let curves = Curves::new(subject, measured.iter().map(|curve| &curve.keys));
        let comparisons = self.comparisons(subject, &curves).map_err(|problem| error(&self.name, problem))?;
        let pair = |&(left, opponent): &(usize, Opponent)| {
            let shared = self.shared(&measured[left], opponent, measured);
            self.pair(subject.pairing(), &curves, (left, opponent), &shared)
        };
        let mut pairs: Vec<Pair> = comparisons.pairs.iter().map(pair).collect();
        correction.apply(&mut pairs);
        Ok(Verdict {
            name: self.name.clone(),
            claim: self.text.clone(),
            verdict: Answer::all(pairs.iter().map(|pair| pair.verdict)),
            unit: self.left.metric.unit(),
            paired_by: subject.pairing(),
            pairs,
            left_out: comparisons.left_out.iter().map(|&curve| curves.name(curve)).collect(),
        })
    }

    /// The metrics of both sides.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        std::iter::once(self.left.metric).chain(self.right.side().map(|side| side.metric))
    }

    /// The comparison of `left` with its opponent, given the readings of both, by seed.
    fn pair(
        &self,
        pairing: Pairing,
        curves: &Curves,
        (left, opponent): (usize, Opponent),
        shared: &[(u64, Reading, Reading)],
    ) -> Pair {
        let named = |factor: f64, curve: usize| match factor {
            1.0 => curves.name(curve),
            factor => format!("{factor} * {}", curves.name(curve)),
        };
        let right_factor = self.right.side().map_or(1.0, |side| side.factor);
        let scaled: Vec<(u64, Reading, Reading)> = shared
            .iter()
            .map(|(seed, left, right)| (*seed, left.times(self.left.factor), right.times(right_factor)))
            .collect();
        let (verdict, difference, note) = decide(self.order, pairing, &scaled);
        let (right, right_value) = match opponent {
            Opponent::Curve(curve) => {
                (named(right_factor, curve), mean(shared.iter().map(|(_, _, right)| right)))
            }
            Opponent::Number(number) => (number.to_string(), None),
        };
        Pair {
            left: named(self.left.factor, left),
            right,
            verdict,
            seeds: shared.len(),
            left_value: mean(shared.iter().map(|(_, left, _)| left)),
            right_value,
            difference,
            p: p_value(pairing, &scaled),
            adjusted_p: None,
            note,
            unit: self.left.metric.unit(),
            pairing,
        }
    }

    /// The readings of both sides at the seeds that both have, by seed.
    fn shared(&self, left: &Measured, right: Opponent, all: &[Measured]) -> Vec<(u64, Reading, Reading)> {
        let by_seed = |curve: &Measured, metric: Metric| -> BTreeMap<u64, Reading> {
            curve.runs.iter().map(|(seed, metrics)| (*seed, metrics.read(metric))).collect()
        };
        let own = by_seed(left, self.left.metric).into_iter();
        match (right, self.right.side()) {
            (Opponent::Curve(right), Some(side)) => {
                let mut others = by_seed(&all[right], side.metric);
                own.filter_map(|(seed, reading)| Some((seed, reading, others.remove(&seed)?))).collect()
            }
            (Opponent::Number(number), _) => {
                own.map(|(seed, reading)| (seed, reading, Reading::Known(number))).collect()
            }
            (Opponent::Curve(_), None) => Vec::new(),
        }
    }

    fn comparisons(&self, subject: Subject, curves: &Curves) -> Result<Comparisons, String> {
        self.metrics().try_for_each(|metric| subject.check(metric))?;
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
        let comparisons = matched(&lefts, &rights, side.others);
        let same_metric = side.metric == self.left.metric;
        for &(left, opponent) in &comparisons.pairs {
            if matches!(opponent, Opponent::Curve(right) if right == left) && same_metric {
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

/// Left and right curves with the same values, in the order of the left ones, and those without a partner.
/// With `others`, no curve is compared with itself.
fn matched(lefts: &Grouped, rights: &Grouped, others: bool) -> Comparisons {
    let partners: BTreeMap<_, &Vec<usize>> = rights.iter().map(|(values, curves)| (values, curves)).collect();
    let mut pairs = Vec::new();
    let mut paired = BTreeSet::new();
    for (values, group) in lefts {
        for &left in group {
            let partners = partners.get(values).into_iter().flat_map(|curves| curves.iter());
            for &right in partners.filter(|&&right| !(others && right == left)) {
                pairs.push((left, Opponent::Curve(right)));
                paired.extend([left, right]);
            }
        }
    }
    let all = lefts.iter().chain(rights).flat_map(|(_, curves)| curves.iter().copied());
    let left_out: BTreeSet<usize> = all.filter(|curve| !paired.contains(curve)).collect();
    Comparisons { pairs, left_out: left_out.into_iter().collect() }
}

/// Mean and interval of readings; none if a number is missing or the list is empty.
fn mean<'a>(readings: impl Iterator<Item = &'a Reading>) -> Option<Estimate> {
    let values: Option<Vec<f64>> = readings.map(|reading| reading.clone().number().ok()).collect();
    values.filter(|values| !values.is_empty()).map(estimate)
}

fn error(name: &str, problem: String) -> ConfigError {
    ConfigError::new(format!("claims.\"{name}\""), problem)
}
