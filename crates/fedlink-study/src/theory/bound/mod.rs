//! Figures of the bound as files: the curves of each panel, and the claims about them.
//!
//! ```toml
//! [bound]                      # shared by all panels; defaults are the values of the paper's figure 3
//! k = [1, 3, 5]
//! tau = 3
//! eta = "inverse-time"         # or a number, or an expression in t, mu and tau
//! draws = 20
//!
//! [[panel]]                    # its own gamma, g, mu, l, k, tau, eta; without panels, [bound] is one
//! name = "uneven"
//! gamma = 10
//! g = 10
//!
//! [claims]                     # see `crate::claims`; a curve has the keys panel, k and tau
//! "K = 5 ends below K = 3" = "uneven@k=5 bound < uneven@k=3 bound"
//! ```

use super::file::{Counts, RateText, read, read_set, set_in};
use crate::claims::{Claim, Claims, CurveKeys, Measured, Subject, Verdicts};
use crate::claims::{Original, Shortened};
use crate::error::Error;
use crate::experiment::{ClaimsFile, FileKind, Source};
use crate::goals::{Metric, Metrics};
use crate::presets::preset;
use fedlink::parts::count::count;
use fedlink::spec::ConfigError;
use fedlink_theory::TheoryError;
use fedlink_theory::bound::{BoundParameters, Curve};
use fedlink_theory::rho::{Choice, LinkParameters, RhoStore};
use fedlink_theory::study::{Mode, Study, StudyCurve};
use serde::Deserialize;
use toml::{Table, Value};

/// Rounds from which E\[ρ\] is estimated with `expectation`.
pub const EXPECTATION_SAMPLES: usize = 10_000;

/// `[bound]`: the values that all panels share.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BoundSection {
    #[serde(deserialize_with = "count")]
    devices: u64,
    #[serde(deserialize_with = "count")]
    dim: u64,
    #[serde(deserialize_with = "count")]
    symbols: u64,
    power: f64,
    noise: f64,
    channels: Choice,
    mu: f64,
    l: f64,
    g: f64,
    gamma: f64,
    d0: f64,
    k: Counts,
    tau: Counts,
    eta: RateText,
    #[serde(deserialize_with = "count")]
    rounds: u64,
    #[serde(deserialize_with = "count")]
    draws: u64,
    expectation: bool,
    #[serde(deserialize_with = "count")]
    seed: u64,
}

/// The paper's figure 3 with uneven data.
impl Default for BoundSection {
    fn default() -> Self {
        let link = LinkParameters::default();
        Self {
            devices: link.devices,
            dim: link.dim,
            symbols: link.symbols,
            power: link.power,
            noise: link.noise,
            channels: link.choice,
            mu: 1.0,
            l: 5.0,
            g: 10.0,
            gamma: 10.0,
            d0: 500.0,
            k: Counts(vec![1, 3, 5, 10, 15, 20]),
            tau: Counts(vec![3]),
            eta: RateText("inverse-time".into()),
            rounds: 1000,
            draws: 1,
            expectation: false,
            seed: 0,
        }
    }
}

/// `[[panel]]`: the values that differ from `[bound]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PanelSection {
    name: String,
    title: Option<String>,
    mu: Option<f64>,
    l: Option<f64>,
    g: Option<f64>,
    gamma: Option<f64>,
    k: Option<Counts>,
    tau: Option<Counts>,
    eta: Option<RateText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    bound: BoundSection,
    #[serde(default)]
    panel: Vec<PanelSection>,
    #[serde(default)]
    claims: Table,
    original: Option<OriginalSection>,
}

/// `[original]`: the length that the experiment's own file gives it, if it was shortened.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginalSection {
    rounds: u64,
    draws: u64,
}

/// One panel of a figure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Panel {
    /// Its name in claims and file names.
    pub name: String,
    /// The heading.
    pub title: String,
    /// Its curves.
    pub study: Study,
}

/// An experiment with the bound: a file with a section `[bound]`.
#[derive(Clone, Debug)]
pub struct BoundExperiment {
    /// The preset or file, for the output folder and messages.
    pub name: String,
    panels: Vec<Panel>,
    /// The claims about the panels, checked against them.
    claims: Claims,
    /// The length that the file gives it.
    original: OriginalSection,
    /// The file with all settings.
    text: String,
}

/// A panel with its curves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PanelResult {
    /// The study that its curves are of.
    pub panel: Panel,
    /// Its curves, in the order of [`Study::grid`].
    pub curves: Vec<StudyCurve>,
}

impl BoundExperiment {
    /// The preset called `name`, if it is about the bound.
    pub fn preset(name: &str) -> Option<Self> {
        let source = Source::of_text(name, preset(name)?.text);
        (source.kind() == FileKind::Bound).then(|| Self::read(&source).expect("presets are valid"))
    }

    /// The experiment in `source`.
    pub fn read(source: &Source) -> Result<Self, ConfigError> {
        Ok(Self { name: source.name.clone(), ..Self::parse(&source.given, &source.text)? })
    }

    /// Parses a file; messages call it `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        Self::from_file(name, text.to_owned(), read(name, text)?)
    }

    /// Sets the number of draws of the channel.
    pub fn set_seeds(&mut self, draws: u64) -> Result<(), ConfigError> {
        self.set("bound.draws", &draws.to_string())
    }

    /// Sets one key of `[bound]`, as `--set bound.rounds=200` does. The value is read as TOML; any
    /// other value is text.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let Some(key_name) = key.strip_prefix("bound.") else {
            let problem = "is not a key of this experiment; write one of [bound], such as bound.rounds";
            return Err(ConfigError::new(key, problem));
        };
        let text = set_in(&self.text, "bound", key_name, value)?;
        let original = self.original;
        *self = Self::from_file(&self.name, text.clone(), read_set(key, &text)?)?;
        self.original = original;
        self.write_original();
        Ok(())
    }

    /// Rounds and draws of a curve.
    fn length(&self) -> OriginalSection {
        let draws = |panel: &Panel| match panel.study.mode {
            Mode::Draws(draws) => draws,
            _ => 1,
        };
        let rounds = self.panels.iter().map(|panel| panel.study.rounds as u64).max();
        let draws = self.panels.iter().map(draws).max();
        OriginalSection { rounds: rounds.unwrap_or(0), draws: draws.unwrap_or(0) }
    }

    /// Whether and in what it is shorter than its own file.
    pub fn shortened(&self) -> Option<Shortened> {
        let (now, own) = (self.length(), self.original);
        let original = Original { rounds: own.rounds, seeds: own.draws, quick: false };
        original.shortened(now.rounds, now.draws).map(|short| Shortened { draws: true, ..short })
    }

    /// Writes the original length into the file, if the experiment was shortened.
    fn write_original(&mut self) {
        let Ok(mut table) = toml::from_str::<Table>(&self.text) else { return };
        let before = table.remove("original");
        if self.shortened().is_some() {
            let numbers = [("rounds", self.original.rounds), ("draws", self.original.draws)];
            let numbers = numbers.map(|(name, number)| (name.to_owned(), Value::from(number as i64)));
            table.insert("original".into(), Value::Table(numbers.into_iter().collect()));
        } else if before.is_none() {
            return;
        }
        self.text = table.to_string();
    }

    /// The claims about the panels.
    pub fn claims(&self) -> &[Claim] {
        &self.claims.list
    }

    /// Replaces the claims by those of `file`; an error if they name panels or curves that are not there.
    pub fn claim_as(&mut self, file: &ClaimsFile) -> Result<(), ConfigError> {
        self.claims.clone_from(&file.claims);
        self.check_claims().map_err(|error| ConfigError::new(&file.name, error.to_string()))
    }

    fn check_claims(&self) -> Result<(), ConfigError> {
        let keys: Vec<CurveKeys> = self.panels.iter().flat_map(Panel::curve_keys).collect();
        self.claims().iter().try_for_each(|claim| claim.check(self.subject(), &keys))
    }

    /// The subject of the claims. All panels have the same number of rounds.
    fn subject(&self) -> Subject {
        Subject::Bound { rounds: self.panels.first().map_or(0, |panel| panel.study.rounds as u64) }
    }

    /// The studies of the file, in its order; each is one plot.
    pub fn panels(&self) -> &[Panel] {
        &self.panels
    }

    /// The experiment as a file.
    pub fn to_toml(&self) -> &str {
        &self.text
    }

    fn from_file(name: &str, text: String, file: File) -> Result<Self, ConfigError> {
        let mut sections = file.panel;
        if sections.is_empty() {
            sections.push(PanelSection { name: "bound".into(), ..PanelSection::default() });
        }
        let mut panels: Vec<Panel> = Vec::new();
        for section in sections {
            let fits_a_file_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            let unusable = section.name.is_empty() || !section.name.chars().all(fits_a_file_name);
            if unusable || panels.iter().any(|panel| panel.name == section.name) {
                let problem = format!(
                    "panel.name: is {:?}, but must be a unique name of letters, digits, - and _",
                    section.name
                );
                return Err(ConfigError::new(name, problem));
            }
            panels.push(
                panel(&file.bound, section).map_err(|error| ConfigError::new(name, error.to_string()))?,
            );
        }
        let located = |error: ConfigError| ConfigError::new(name, error.to_string());
        let claims = Claims::parse(file.claims, &Table::new()).map_err(located)?;
        let original = OriginalSection { rounds: 0, draws: 0 };
        let mut experiment = Self { name: name.into(), panels, claims, original, text };
        experiment.original = file.original.unwrap_or_else(|| experiment.length());
        experiment.check_claims().map_err(located)?;
        Ok(experiment)
    }

    /// Computes every panel and judges every claim.
    pub fn run(&self) -> Result<(Vec<PanelResult>, Verdicts), Error> {
        let (mut panels, mut measured) = (Vec::new(), Vec::new());
        let mut asked: Vec<Metric> = Vec::new();
        for metric in self.claims().iter().flat_map(Claim::metrics) {
            if !asked.contains(&metric) {
                asked.push(metric);
            }
        }
        // Panels share the link: the next panel reuses the draws of the one before.
        let mut store = RhoStore::default();
        for panel in &self.panels {
            let study = &panel.study;
            let empty = |keys: CurveKeys| Measured { keys, runs: Vec::new() };
            let mut drawn: Vec<Measured> = panel.curve_keys().map(empty).collect();
            let mut seed = study.seed;
            let watch = |draw: &[Curve]| {
                for (measured, curve) in drawn.iter_mut().zip(draw) {
                    measured.runs.push((seed, Metrics::of_bound(&curve.losses(), &asked)));
                }
                seed = seed.wrapping_add(1);
            };
            let curves = study.run_on(&mut store, watch)?;
            if let Mode::Expectation { .. } = study.mode {
                for (measured, curve) in drawn.iter_mut().zip(&curves) {
                    let losses: Vec<f64> = curve.losses.iter().map(|loss| loss.mean).collect();
                    measured.runs.push((study.seed, Metrics::of_bound(&losses, &asked)));
                }
            }
            measured.extend(drawn);
            panels.push(PanelResult { panel: panel.clone(), curves });
        }
        let verdicts = Verdicts::of_bound(&self.claims, self.subject(), &measured, self.shortened())?;
        Ok((panels, verdicts))
    }
}

impl Panel {
    /// The keys of its curves, in the order of [`Study::grid`].
    fn curve_keys(&self) -> impl Iterator<Item = CurveKeys> {
        self.study.grid().into_iter().map(|(k, tau)| {
            let keys = [("panel", self.name.clone()), ("k", k.to_string()), ("tau", tau.to_string())];
            keys.map(|(key, value)| (key.to_owned(), value)).into()
        })
    }
}

fn panel(bound: &BoundSection, section: PanelSection) -> Result<Panel, TheoryError> {
    let link = LinkParameters {
        devices: bound.devices,
        dim: bound.dim,
        symbols: bound.symbols,
        power: bound.power,
        noise: bound.noise,
        choice: bound.channels,
    };
    let (gamma, g) = (section.gamma.unwrap_or(bound.gamma), section.g.unwrap_or(bound.g));
    let study = Study {
        problem: BoundParameters {
            devices: bound.devices,
            k: 1,
            tau: 1,
            mu: section.mu.unwrap_or(bound.mu),
            l: section.l.unwrap_or(bound.l),
            g,
            gamma,
            distance0: bound.d0,
        },
        link,
        rate: section.eta.as_ref().unwrap_or(&bound.eta).0.parse()?,
        ks: section.k.unwrap_or_else(|| bound.k.clone()).0,
        taus: section.tau.unwrap_or_else(|| bound.tau.clone()).0,
        rounds: bound.rounds as usize,
        mode: if bound.expectation {
            Mode::Expectation { samples: EXPECTATION_SAMPLES }
        } else {
            Mode::Draws(bound.draws)
        },
        seed: bound.seed,
    };
    study.check()?;
    let title = section.title.unwrap_or_else(|| format!("Loss bound for Γ = {gamma}, G = {g}"));
    Ok(Panel { name: section.name, title, study })
}

#[cfg(test)]
mod tests;
