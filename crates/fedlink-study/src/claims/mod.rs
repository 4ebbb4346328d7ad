//! What a paper asserts of its curves, in a small language, and whether the measurements bear it out.
//!
//! ```toml
//! [claims]
//! "update-aware wins" = "bn2-c@k=1 final > bc@k=1 final"
//! "fewer is better" = "k=10 final < k=1 final for every policy"
//! "good enough" = "bc@k=1 final > 0.9"
//! ```
//!
//! ```text
//! claim    = side (">" | "<") (side | number) ["for every" name {"," name}]
//! side     = [selector] metric
//! selector = term {"@" term}
//! term     = policy | name "=" value
//! metric   = "final" | "best" | "loss" | "area" | "instability"
//!          | ("rounds-to-" | "bits-to-") ("target" | share)
//! ```
//!
//! A name is a key of the configuration or its last part. A side must leave one curve: if those it fits differ in a
//! key, `for every` must name that key, and the claim is then made for each value that both sides have.
//!
//! # How a claim is decided
//! At one seed all curves see the same split, initial model, batches and channels, so the difference of the two
//! sides is taken seed by seed. Its mean has Student's 95 % interval. The comparison *holds* if the interval lies on
//! the claimed side of zero, *does not hold* if it lies on the other side, and is *undecided* otherwise, as it is
//! with fewer than two shared seeds. A number on the right is the same at every seed. Of several comparisons all
//! must hold; one that does not hold is enough to contradict the claim. Each interval stands for itself: of forty
//! comparisons of equals, one is expected to contradict by chance.
//!
//! # A target that was never reached
//! A run that ended at round T without the target says that rounds-to-target is at least T + 1, and that
//! bits-to-target is at least the bits sent so far. A mean cannot be formed from bounds, but a sign can be certain:
//! where the other side got there earlier. If any seed has only a bound, the seeds are therefore counted. Under equal
//! odds the number of seeds in favour has the distribution of coin tosses; the comparison holds if so many or more in
//! favour have a probability of at most 2.5 %, and does not hold if that is true of those against (the two-sided
//! sign test at 5 %; six seeds of six, nine of ten). Seeds that cannot be told, because neither side got there,
//! count for the other side in both tests. This says which side is higher in most seeds, not by how much on average.
//! Any other number that a run lacks (it diverged, was interrupted or has too few evaluations) leaves the claim
//! undecided.

mod curves;
mod expected;
mod metric;
#[cfg(test)]
mod tests;
mod verdict;

pub use curves::CurveKeys;
pub use expected::{Comparison, Expected};
pub use metric::{Metric, Metrics, TARGET, Unit};
pub use verdict::{Answer, Pair, Verdict};

use curves::{Curves, Grouped, Selector};
use fedlink::config::ConfigError;
use metric::Reading;
use std::collections::BTreeMap;
use verdict::{Order, decide};

/// Longest claim that is read, in bytes.
const MAX_LENGTH: usize = 1000;

/// One assertion about curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// What it is called.
    pub name: String,
    /// As it is written.
    pub text: String,
    left: Side,
    order: Order,
    right: Right,
    /// The names after `for every`.
    every: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Side {
    selector: Selector,
    metric: Metric,
}

#[derive(Clone, Debug, PartialEq)]
enum Right {
    Side(Side),
    Number(f64),
}

/// A curve that was run: its keys, and for each seed what was measured.
///
/// Every curve of the experiment belongs into the list from which a claim is judged; one that was not run has no
/// `runs`. A claim about it is then undecided, where a curve left out could make `for every` seem fulfilled.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What tells it from the others.
    pub keys: CurveKeys,
    /// Seed and measurements of each run.
    pub runs: Vec<(u64, Metrics)>,
}

/// The comparisons that a claim makes, and the curves without a partner.
struct Comparisons {
    pairs: Vec<(usize, Opponent)>,
    left_out: Vec<usize>,
}

/// What a curve is compared with.
#[derive(Clone, Copy)]
enum Opponent {
    Curve(usize, Metric),
    Number(f64),
}

impl Claim {
    /// Reads a claim; `name` stands for it in messages.
    ///
    /// ```
    /// use fedlink_study::claims::Claim;
    /// assert!(Claim::parse("fewer is better", "k=10 final < k=1 final for every policy").is_ok());
    /// assert!(Claim::parse("no metric", "bc@k=1 > 0.9").is_err());
    /// ```
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        read(name, text).map_err(|problem| error(name, problem))
    }

    /// Whether the claim says something about these curves.
    pub fn check(&self, curves: &[CurveKeys]) -> Result<(), ConfigError> {
        self.comparisons(&Curves::new(curves)).map(|_| ()).map_err(|problem| error(&self.name, problem))
    }

    /// What the measurements say; an error where [`check`](Self::check) would give one.
    pub fn verdict(&self, measured: &[Measured]) -> Result<Verdict, ConfigError> {
        let curves = Curves::new(measured.iter().map(|curve| &curve.keys));
        let comparisons = self.comparisons(&curves).map_err(|problem| error(&self.name, problem))?;
        let unit = self.left.metric.unit();
        let pair = |&(left, right): &(usize, Opponent)| {
            let shared = self.shared(&measured[left], right, measured);
            let (verdict, difference, note) = decide(self.order, &shared);
            let right = match right {
                Opponent::Curve(right, _) => curves.name(right),
                Opponent::Number(number) => number.to_string(),
            };
            Pair { left: curves.name(left), right, verdict, seeds: shared.len(), difference, note, unit }
        };
        let pairs: Vec<Pair> = comparisons.pairs.iter().map(pair).collect();
        Ok(Verdict {
            name: self.name.clone(),
            claim: self.text.clone(),
            verdict: Answer::all(pairs.iter().map(|pair| pair.verdict)),
            unit,
            pairs,
            left_out: comparisons.left_out.iter().map(|&curve| curves.name(curve)).collect(),
        })
    }

    /// The readings of both sides at the seeds that both have, by seed.
    fn shared(&self, left: &Measured, right: Opponent, all: &[Measured]) -> Vec<(u64, Reading, Reading)> {
        let by_seed = |curve: &Measured, metric: Metric| -> BTreeMap<u64, Reading> {
            curve.runs.iter().map(|(seed, metrics)| (*seed, metrics.read(metric))).collect()
        };
        let own = by_seed(left, self.left.metric).into_iter();
        match right {
            Opponent::Number(number) => {
                own.map(|(seed, reading)| (seed, reading, Reading::Known(number))).collect()
            }
            Opponent::Curve(right, metric) => {
                let mut others = by_seed(&all[right], metric);
                own.filter_map(|(seed, reading)| Some((seed, reading, others.remove(&seed)?))).collect()
            }
        }
    }

    fn comparisons(&self, curves: &Curves) -> Result<Comparisons, String> {
        let left = curves.select(&self.left.selector)?;
        let right = match &self.right {
            Right::Side(side) => Ok((side, curves.select(&side.selector)?)),
            Right::Number(number) => Err(*number),
        };
        let mut every = Vec::new();
        for name in &self.every {
            // A key that is the same for all curves has one value: there is nothing to range over.
            let Some(key) = curves.key(name)? else { continue };
            if left.fixed.contains(&key) || right.as_ref().is_ok_and(|(_, right)| right.fixed.contains(&key))
            {
                return Err(format!("`for every {name}`: the claim gives {key} a value already"));
            }
            every.push(key);
        }
        let lefts = curves.group(&left, &every)?;
        let (side, right) = match right {
            Ok(right) => right,
            Err(number) => {
                let pairs = lefts.into_iter().map(|(_, curve)| (curve, Opponent::Number(number))).collect();
                return Ok(Comparisons { pairs, left_out: Vec::new() });
            }
        };
        let rights = curves.group(&right, &every)?;
        let comparisons = matched(&lefts, &rights, side.metric);
        let with_itself = |(left, opponent): &&(usize, Opponent)| matches!(opponent, Opponent::Curve(right, metric) if right == left && *metric == self.left.metric);
        if let Some((curve, _)) = comparisons.pairs.iter().find(with_itself) {
            return Err(format!("compares {} with itself", curves.name(*curve)));
        }
        if comparisons.pairs.is_empty() {
            return Err(format!("for no {} are there curves on both sides", self.every.join(", ")));
        }
        Ok(comparisons)
    }
}

/// Left and right curves with the same values, in the order of the left ones, and those without a partner.
fn matched(lefts: &Grouped, rights: &Grouped, metric: Metric) -> Comparisons {
    let mut partners: BTreeMap<_, usize> = rights.iter().map(|(values, curve)| (values, *curve)).collect();
    let (mut pairs, mut left_out) = (Vec::new(), Vec::new());
    for (values, left) in lefts {
        match partners.remove(values) {
            Some(right) => pairs.push((*left, Opponent::Curve(right, metric))),
            None => left_out.push(*left),
        }
    }
    left_out.extend(partners.into_values());
    left_out.sort_unstable();
    Comparisons { pairs, left_out }
}

fn error(name: &str, problem: String) -> ConfigError {
    ConfigError::new(format!("claims.\"{name}\""), problem)
}

fn read(name: &str, text: &str) -> Result<Claim, String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("a claim may have {MAX_LENGTH} characters; this one has {}", text.len()));
    }
    let form = "write a claim as \"bn2-c@k=1 final > bc@k=1 final\" or \"k=10 final < 0.9 for every policy\"";
    let places: Vec<usize> = text.match_indices(['<', '>']).map(|(place, _)| place).collect();
    let [place] = places[..] else {
        return Err(format!("{text:?} must have one > or <; {form}"));
    };
    let (left, rest) = (&text[..place], &text[place + 1..]);
    if rest.starts_with('=') {
        return Err(format!("{text:?}: write > or <; an interval cannot tell them from ≥ and ≤"));
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let end = words.iter().position(|word| *word == "for").unwrap_or(words.len());
    let every = match &words[end..] {
        [] => Vec::new(),
        ["for", "every", names @ ..] => names_of(&names.join(" "))?,
        _ => return Err(format!("{text:?}: after `for` comes `every`, then names of keys; {form}")),
    };
    let left = side(&left.split_whitespace().collect::<Vec<_>>())?;
    let right = match words[..end] {
        [] => return Err(format!("{text:?} says nothing after the {}; {form}", &text[place..=place])),
        [word] if word.parse::<f64>().is_ok() => Right::Number(number(word, left.metric)?),
        _ => Right::Side(side(&words[..end])?),
    };
    if let Right::Side(right) = &right
        && right.metric.unit() != left.metric.unit()
    {
        return Err(format!("{} and {} cannot be compared: their units differ", left.metric, right.metric));
    }
    let order = if text[place..].starts_with('>') { Order::Above } else { Order::Below };
    Ok(Claim { name: name.to_owned(), text: text.to_owned(), left, order, right, every })
}

/// `bc@k=1 final`: the last word is the metric, the words before it are the selector.
fn side(words: &[&str]) -> Result<Side, String> {
    let Some((metric, selector)) = words.split_last() else {
        return Err("a side is a selector and a metric, such as bc@k=1 final".into());
    };
    Ok(Side { metric: Metric::parse(metric)?, selector: Selector::parse(&selector.join(" "))? })
}

fn number(word: &str, metric: Metric) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(number) if metric.unit() == Unit::Share && number.abs() > 1.0 => {
            Err(format!("{metric} is a share from 0 to 1, {word} is not; for 90 % write 0.9"))
        }
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("{word:?} is not a finite number")),
    }
}

fn names_of(list: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    let twice = (1..names.len()).find(|&i| names[..i].contains(&names[i]));
    match twice {
        _ if names.iter().any(String::is_empty) => {
            Err("`for every` needs names of keys with commas between them, such as policy, k".into())
        }
        Some(i) => Err(format!("`for every` names {} twice", names[i])),
        None => Ok(names),
    }
}
