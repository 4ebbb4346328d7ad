//! The check of the theorem as a file: a section `[theorem]`, and the problems `[quadratic]` and `[softmax]`.

use super::file::{RateText, read, read_set, set_in};
use crate::error::Error;
use crate::experiment::{FileKind, Source};
use crate::presets::preset;
use fedlink::parts::count::count;
use fedlink::spec::{BatchSize, Config, ConfigError};
use fedlink_theory::check::{Check, CheckRequest, Problem, Quadratic, QuadraticParameters, Schedule, check};
use fedlink_theory::measure::{MeasureOptions, SoftmaxProblem};
use fedlink_theory::rho::LinkParameters;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    theorem: TheoremSection,
    quadratic: Option<QuadraticSection>,
    softmax: Option<SoftmaxSection>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TheoremSection {
    #[serde(deserialize_with = "count")]
    tau: u64,
    #[serde(deserialize_with = "count")]
    rounds: u64,
    #[serde(deserialize_with = "count")]
    seed: u64,
    schedules: Vec<Schedule>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuadraticSection {
    #[serde(deserialize_with = "count")]
    devices: u64,
    #[serde(deserialize_with = "count")]
    k: u64,
    #[serde(deserialize_with = "count")]
    dim: u64,
    mu: f64,
    l: f64,
    spread: f64,
    gradient_noise: f64,
    d0: f64,
    #[serde(deserialize_with = "count")]
    symbols: u64,
    eta: RateText,
    #[serde(deserialize_with = "count")]
    seeds: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SoftmaxSection {
    #[serde(default)]
    dataset: Option<String>,
    #[serde(deserialize_with = "count")]
    devices: u64,
    #[serde(deserialize_with = "count")]
    k: u64,
    #[serde(deserialize_with = "count")]
    samples_per_device: u64,
    #[serde(deserialize_with = "count")]
    classes_per_device: u64,
    #[serde(deserialize_with = "count")]
    batch: u64,
    lambda: f64,
    #[serde(deserialize_with = "count")]
    pool: u64,
    #[serde(deserialize_with = "count")]
    symbols: u64,
    eta: RateText,
    #[serde(deserialize_with = "count")]
    seeds: u64,
}

/// An experiment that checks the theorem.
#[derive(Clone, Debug)]
pub struct TheoremExperiment {
    /// Its origin, for the output folder and messages.
    pub name: String,
    text: String,
    file: File,
}

/// One problem with a check for each schedule.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TheoremResult {
    /// `quadratic` or `softmax`.
    pub problem: &'static str,
    /// One for each schedule.
    pub checks: Vec<Check>,
}

impl TheoremExperiment {
    /// The preset called `name`, if it is about the theorem.
    pub fn preset(name: &str) -> Option<Self> {
        let source = Source::of_text(name, preset(name)?.text);
        (source.kind() == FileKind::Theorem).then(|| Self::read(&source).expect("presets are valid"))
    }

    /// The experiment in `source`.
    pub fn read(source: &Source) -> Result<Self, ConfigError> {
        Ok(Self { name: source.name.clone(), ..Self::parse(&source.given, &source.text)? })
    }

    /// Parses a file; messages call it `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        let file: File = read(name, text)?;
        if file.quadratic.is_none() && file.softmax.is_none() {
            let problem = "has no problem to check on: add a section [quadratic] or [softmax]";
            return Err(ConfigError::new(name, problem));
        }
        if file.theorem.schedules.is_empty() {
            let problem = "theorem.schedules: is empty, but must name uniform, best-channel or best-norm";
            return Err(ConfigError::new(name, problem));
        }
        Ok(Self { name: name.into(), text: text.into(), file })
    }

    /// Sets one key, such as `theorem.rounds` or `quadratic.seeds`.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let sections = ["theorem", "quadratic", "softmax"];
        let Some((section, name)) = key.split_once('.').filter(|(section, _)| sections.contains(section))
        else {
            let problem = "is not a key of this experiment; write one of [theorem], [quadratic] or [softmax]";
            return Err(ConfigError::new(key, problem));
        };
        let text = set_in(&self.text, section, name, value)?;
        self.file = read_set(key, &text)?;
        self.text = text;
        Ok(())
    }

    /// Sets the number of seeds of every problem.
    pub fn set_seeds(&mut self, seeds: u64) -> Result<(), ConfigError> {
        let problems = [
            ("quadratic.seeds", self.file.quadratic.is_some()),
            ("softmax.seeds", self.file.softmax.is_some()),
        ];
        for (key, _) in problems.into_iter().filter(|(_, is_there)| *is_there) {
            self.set(key, &seeds.to_string())?;
        }
        Ok(())
    }

    /// The experiment as a file.
    pub fn to_toml(&self) -> &str {
        &self.text
    }

    /// Runs every schedule on every problem; data sets are looked for in `folders`.
    pub fn run(&self, folders: &[PathBuf]) -> Result<Vec<TheoremResult>, Error> {
        let mut results = Vec::new();
        if let Some(section) = &self.file.quadratic {
            let problem = Quadratic::new(QuadraticParameters {
                devices: section.devices,
                dim: section.dim,
                mu: section.mu,
                l: section.l,
                spread: section.spread,
                noise: section.gradient_noise,
                distance0: section.d0,
                seed: self.file.theorem.seed,
            })?;
            let (k, symbols, seeds) = (section.k, section.symbols, section.seeds);
            results.push(self.checks("quadratic", &problem, (k, symbols, seeds), &section.eta)?);
        }
        if let Some(section) = &self.file.softmax {
            let config = self.softmax_config(section)?;
            let dataset = fedlink::data::load(&config.data.dataset, folders)?;
            let options =
                MeasureOptions { lambda: section.lambda, pool: section.pool as usize, path_rounds: 1 };
            let problem =
                SoftmaxProblem::new(&config.resolve(&fedlink::parts::Parts::default())?, &dataset, options)?;
            let (k, symbols, seeds) = (section.k, section.symbols, section.seeds);
            results.push(self.checks("softmax", &problem, (k, symbols, seeds), &section.eta)?);
        }
        Ok(results)
    }

    fn softmax_config(&self, section: &SoftmaxSection) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        if let Some(dataset) = &section.dataset {
            config.data.dataset.clone_from(dataset);
        }
        config.data.partition = "classes".into();
        config.data.devices = section.devices;
        config.data.samples_per_device = section.samples_per_device;
        config.learn.batch = BatchSize::Count(section.batch);
        config.learn.local_steps = self.file.theorem.tau;
        config.run.seed = self.file.theorem.seed;
        config.set("data.classes.per_device", section.classes_per_device as i64)?;
        Ok(config)
    }

    fn checks(
        &self,
        name: &'static str,
        problem: &dyn Problem,
        (k, symbols, seeds): (u64, u64, u64),
        eta: &RateText,
    ) -> Result<TheoremResult, Error> {
        let TheoremSection { tau, rounds, seed, schedules } = &self.file.theorem;
        let check_one = |&schedule: &Schedule| {
            let request = CheckRequest {
                link: LinkParameters { symbols, ..LinkParameters::default() },
                schedule,
                k,
                tau: *tau,
                rate: eta.0.parse()?,
                rounds: *rounds as usize,
                seed: *seed,
                seeds,
            };
            Ok(check(problem, &request)?)
        };
        let checks = schedules.iter().map(check_one).collect::<Result<_, Error>>()?;
        Ok(TheoremResult { problem: name, checks })
    }
}
