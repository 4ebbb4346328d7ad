//! Curves by their keys, and the selectors of claims.

use super::Subject;
use fedlink::spec::{KEYS, nearest};
use std::collections::{BTreeMap, BTreeSet};

/// The keys that distinguish a curve from the others (`section.name`; of the bound `panel`, `k`, `tau`), each
/// with its value as text. Keys that all curves share may be included; a selector may name them but need not.
pub type CurveKeys = Vec<(String, String)>;

/// Curves that a message lists before it counts the rest.
const LISTED: usize = 12;

/// `bc@k=1|10`: a value, or several, for each of some keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selector {
    text: String,
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    /// The key, whole or its last part; none for a word alone.
    name: Option<String>,
    /// Its text in the claim, with the bars between several values.
    value: String,
}

impl Term {
    /// The values with bars between them.
    fn values(&self) -> impl Iterator<Item = &str> {
        self.value.split('|').map(str::trim)
    }
}

impl Selector {
    /// Reads terms joined by `@`. An empty text selects every curve.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let mut terms = Vec::new();
        for term in text.split('@').filter(|_| !text.is_empty()) {
            let (name, value) = match term.split_once('=') {
                Some((name, value)) => (Some(name.trim().to_owned()), value.trim()),
                None => (None, term.trim()),
            };
            let term = Term { name, value: value.to_owned() };
            // A list may contain spaces, [256, 128]; anywhere else a space is a missing @.
            let unusable = |text: &str| text.is_empty() || text.contains(char::is_whitespace);
            let unusable_value = |value: &str| value.is_empty() || !value.starts_with('[') && unusable(value);
            if term.name.as_deref().is_some_and(unusable) || term.values().any(unusable_value) {
                return Err(format!(
                    "{text:?}: a term is a policy (of the bound: a panel) or name=value, several values have \
                     | between them, and terms are joined by @, as in bc@k=1|10"
                ));
            }
            terms.push(term);
        }
        Ok(Self { text: text.to_owned(), terms })
    }
}

/// The curves of an experiment, to be selected from.
pub(super) struct Curves<'a> {
    subject: Subject,
    curves: Vec<&'a CurveKeys>,
    /// Every key of any curve, in the order in which they come.
    keys: Vec<&'a str>,
    /// The keys that distinguish curves; all keys for a single curve.
    distinguishing: Vec<&'a str>,
}

/// The curves that a selector fits.
pub(super) struct Selection<'a> {
    text: &'a str,
    /// The keys that it gives a value.
    pub fixed: Vec<&'a str>,
    /// The fixed keys with several values.
    listed: Vec<&'a str>,
    curves: Vec<usize>,
}

/// The curves for each combination of values of some keys.
pub(super) type Grouped<'a> = Vec<(Vec<Option<&'a str>>, Vec<usize>)>;

impl<'a> Curves<'a> {
    pub fn new(subject: Subject, curves: impl IntoIterator<Item = &'a CurveKeys>) -> Self {
        let curves: Vec<&CurveKeys> = curves.into_iter().collect();
        let mut seen = BTreeSet::new();
        let all = curves.iter().flat_map(|curve| curve.iter().map(|(key, _)| key.as_str()));
        let keys: Vec<&str> = all.filter(|key| seen.insert(*key)).collect();
        let mut known = Self { subject, distinguishing: keys.clone(), curves, keys };
        if known.curves.len() > 1 {
            let all: Vec<usize> = (0..known.curves.len()).collect();
            known.distinguishing = known.keys.iter().copied().filter(|key| known.differ(&all, key)).collect();
        }
        known
    }

    /// The key that a word alone gives a value of.
    fn leading(&self) -> &'static str {
        match self.subject {
            Subject::Runs => "schedule.policy",
            Subject::Bound { .. } => "panel",
        }
    }

    fn value(&self, curve: usize, key: &str) -> Option<&'a str> {
        self.curves[curve].iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Whether the curves of `some` do not all have the same value.
    fn differ(&self, some: &[usize], key: &str) -> bool {
        some.windows(2).any(|pair| self.value(pair[0], key) != self.value(pair[1], key))
    }

    /// The curve as a claim would select it: `bc@k=1`, of the keys in which any two curves differ.
    pub fn name(&self, curve: usize) -> String {
        let term = |&key: &&'a str| {
            let value = self.value(curve, key)?;
            Some(if key == self.leading() {
                value.to_owned()
            } else {
                format!("{}={value}", self.short(key))
            })
        };
        let terms: Vec<String> = self.distinguishing.iter().filter_map(term).collect();
        if terms.is_empty() { "the curve".into() } else { terms.join("@") }
    }

    /// A key's last part, if that is no other key's too.
    fn short(&self, key: &'a str) -> &'a str {
        let namesakes = self.keys.iter().filter(|other| last_part(other) == last_part(key)).count();
        if namesakes > 1 { key } else { last_part(key) }
    }

    /// `bc@k=1, bc@k=10, …`
    fn list(&self, curves: &[usize]) -> String {
        let mut names: Vec<String> = curves.iter().take(LISTED).map(|&curve| self.name(curve)).collect();
        if curves.len() > LISTED {
            names.push(format!("{} more", curves.len() - LISTED));
        }
        names.join(", ")
    }

    fn list_all(&self) -> String {
        let all: Vec<usize> = (0..self.curves.len()).collect();
        match &all[..] {
            [] => "there are no curves".into(),
            [_] if self.keys.is_empty() => {
                "the experiment has one curve: write the claim without a selector".into()
            }
            all => format!("write one of {}", self.list(all)),
        }
    }

    /// The key called `name`, whole or by its last part; none if it is a key of the configuration of runs
    /// that distinguishes no curves.
    pub fn key(&self, name: &str) -> Result<Option<&'a str>, String> {
        let found: Vec<&str> = match self.keys.iter().find(|key| **key == name) {
            Some(key) => vec![*key],
            None => self.keys.iter().copied().filter(|key| last_part(key) == name).collect(),
        };
        let configured = if self.subject == Subject::Runs { KEYS } else { &[] };
        match found[..] {
            [key] => Ok(Some(key)),
            [] if configured.iter().any(|key| key.name == name || last_part(key.name) == name) => Ok(None),
            [] => {
                let known = self.keys.iter().copied().chain(configured.iter().map(|key| key.name));
                let hint = match nearest(name, known) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("the curves differ in {}", self.keys.join(", ")),
                };
                Err(format!("{name:?} is not a key; {hint}"))
            }
            _ => Err(format!("{name:?} could be {}; write the whole key", found.join(" or "))),
        }
    }

    /// The curves that `selector` fits; at least one. If none has all the keys that it gives a value, curves
    /// fit that lack some of them: a key of a part that a curve does not choose cannot differ from a value.
    pub fn select(&self, selector: &'a Selector) -> Result<Selection<'a>, String> {
        let (mut fixed, mut listed, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        for term in &selector.terms {
            let name = term.name.as_deref().unwrap_or(self.leading());
            let Some(key) = self.key(name)? else {
                return Err(format!("no sweep gives {name} the value {}; {}", term.value, self.list_all()));
            };
            if fixed.contains(&key) {
                return Err(format!("{:?} gives {key} two values", selector.text));
            }
            fixed.push(key);
            let is_known = |value: &str| {
                let known = |curve| self.value(curve, key).is_some_and(|own| same_value(own, value));
                (0..self.curves.len()).any(known)
            };
            // A bar may be part of a value.
            if is_known(&term.value) {
                wanted.push((key, vec![term.value.as_str()]));
                continue;
            }
            if let Some(value) = term.values().find(|value| !is_known(value)) {
                let values = (0..self.curves.len()).filter_map(|curve| self.value(curve, key));
                let hint = nearest(value, values);
                let hint = hint.map_or_else(String::new, |near| format!("did you mean {near}? "));
                return Err(format!("no curve has {key} = {value}; {hint}{}", self.list_all()));
            }
            listed.push(key);
            wanted.push((key, term.values().collect()));
        }
        let fitting = |without: bool| -> Vec<usize> {
            let fits = |curve: usize, key: &str, values: &[&str]| match self.value(curve, key) {
                None => without,
                Some(own) => values.iter().any(|value| same_value(own, value)),
            };
            let all = 0..self.curves.len();
            all.filter(|&curve| wanted.iter().all(|(key, values)| fits(curve, key, values))).collect()
        };
        let curves = Some(fitting(false)).filter(|some| !some.is_empty()).unwrap_or_else(|| fitting(true));
        if curves.is_empty() {
            return Err(format!("no curve is {}; {}", selector.text, self.list_all()));
        }
        Ok(Selection { text: &selector.text, fixed, listed, curves })
    }

    /// The selected curves grouped by their values of the keys `every`. With `all`, a group may have any
    /// number of curves. Otherwise two curves in a group are an error, unless they differ in a listed key:
    /// the selector is ambiguous.
    pub fn group(&self, selection: &Selection<'a>, every: &[&str], all: bool) -> Result<Grouped<'a>, String> {
        let mut seen = BTreeMap::new();
        let mut groups = BTreeMap::new();
        let mut grouped: Grouped = Vec::new();
        for &curve in &selection.curves {
            let of = |keys: &[&str]| keys.iter().map(|key| self.value(curve, key)).collect::<Vec<_>>();
            let (values, listed) = (of(every), of(&selection.listed));
            if let Some(other) = seen.insert((values.clone(), listed), curve)
                && !all
            {
                let (problem, key) = self.ambiguous(selection, other, curve);
                return Err(problem + &key.map_or_else(String::new, |key| format!(", or `for every {key}`")));
            }
            let index = *groups.entry(values.clone()).or_insert_with(|| {
                grouped.push((values, Vec::new()));
                grouped.len() - 1
            });
            grouped[index].1.push(curve);
        }
        Ok(grouped)
    }

    /// The one curve that was selected.
    pub fn only(&self, selection: &Selection) -> Result<usize, String> {
        match selection.curves[..] {
            [curve] => Ok(curve),
            _ => Err(self.ambiguous(selection, selection.curves[0], selection.curves[1]).0),
        }
    }

    /// The error for two selected curves where one is required, and the key that distinguishes them.
    fn ambiguous(&self, selection: &Selection, one: usize, other: usize) -> (String, Option<&'a str>) {
        let what = match selection.text {
            "" => "a side without a selector".to_owned(),
            text => format!("{text:?}"),
        };
        let Some(key) = self.keys.iter().copied().find(|key| self.differ(&[one, other], key)) else {
            return (format!("{what} fits two curves with equal keys"), None);
        };
        let value = self.value(one, key).or(self.value(other, key)).unwrap_or_default();
        let (short, fits) = (self.short(key), self.list(&selection.curves));
        let problem =
            format!("{what} leaves {key} open (it fits {fits}); add a term such as {short}={value}");
        (problem, Some(short))
    }
}

fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn without_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Whether two texts are equal without spaces, or are the same number (`1e-3` and `0.001`).
fn same_value(a: &str, b: &str) -> bool {
    let number = |text: &str| text.replace('_', "").parse::<f64>().ok().filter(|value| value.is_finite());
    let (a, b) = (without_space(a), without_space(b));
    a == b || number(&a).is_some_and(|value| number(&b) == Some(value))
}
