//! An experiment of any kind, by the name of a preset or of a file.

use super::bound::has_section;
use super::{BoundExperiment, Experiment, TheoremExperiment};
use crate::claims::{Claims, Expected};
use crate::error::Error;
use crate::presets::{PRESETS, preset};
use fedlink::config::{ConfigError, located, nearest, syntax_error};
use fedlink::parts::Parts;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use toml::{Table, Value};

/// An experiment of any kind.
#[derive(Clone, Debug)]
pub enum AnyExperiment {
    /// Runs of the system.
    Simulation(Experiment),
    /// A figure of the bound: a file with a section `[bound]`.
    Bound(BoundExperiment),
    /// A check of the theorem: a file with a section `[theorem]`.
    Theorem(Box<TheoremExperiment>),
}

impl AnyExperiment {
    /// The preset called `name`, or else the file.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::open_with(name, &Parts::default())
    }

    /// As [`AnyExperiment::open`], with custom parts that it may name.
    pub fn open_with(name: &str, parts: &Parts) -> Result<Self, Error> {
        let (stem, text) = read(name)?;
        let mut experiment = Self::parse_with(name, &text, parts)?;
        experiment.rename(stem);
        Ok(experiment)
    }

    /// Gives it another name, which its results and messages bear.
    pub fn rename(&mut self, name: String) {
        match self {
            Self::Simulation(experiment) => experiment.name = name,
            Self::Bound(experiment) => experiment.name = name,
            Self::Theorem(experiment) => experiment.name = name,
        }
    }

    /// Parses a file; `name` stands for it in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(name, text, &Parts::default())
    }

    /// As [`AnyExperiment::parse`], with custom parts that it may name.
    pub fn parse_with(name: &str, text: &str, parts: &Parts) -> Result<Self, ConfigError> {
        let file = toml::from_str::<Table>(text);
        if has_section(&file, text, "bound") {
            BoundExperiment::parse(name, text).map(Self::Bound)
        } else if has_section(&file, text, "theorem") {
            TheoremExperiment::parse(name, text).map(Box::new).map(Self::Theorem)
        } else {
            Experiment::from_file(name, text, file, parts).map(Self::Simulation)
        }
    }

    /// Where it came from, for the output folder and messages.
    pub fn name(&self) -> &str {
        match self {
            Self::Simulation(experiment) => &experiment.name,
            Self::Bound(experiment) => &experiment.name,
            Self::Theorem(experiment) => &experiment.name,
        }
    }

    /// Sets one key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        match self {
            Self::Simulation(experiment) => experiment.set(key, value),
            Self::Bound(experiment) => experiment.set(key, value),
            Self::Theorem(experiment) => experiment.set(key, value),
        }
    }

    /// Sets over how many seeds, or draws of the channel, means are formed.
    pub fn set_seeds(&mut self, seeds: u64) -> Result<(), ConfigError> {
        let seeds = seeds.to_string();
        match self {
            Self::Simulation(experiment) => experiment.set("run.seeds", &seeds),
            Self::Bound(experiment) => experiment.set("bound.draws", &seeds),
            Self::Theorem(experiment) => experiment.set_seeds(&seeds),
        }
    }

    /// The experiment as a file.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        match self {
            Self::Simulation(experiment) => experiment.to_toml(),
            Self::Bound(experiment) => Ok(experiment.to_toml().to_owned()),
            Self::Theorem(experiment) => Ok(experiment.to_toml().to_owned()),
        }
    }
}

/// `[claims]` and `[expected]` of a file, to be judged by the curves of another experiment. What else the
/// file holds does not matter, and nothing but the two sections need be there.
#[derive(Clone, Debug)]
pub struct ClaimsFile {
    /// Where they came from, for messages.
    pub name: String,
    pub(super) claims: Claims,
    pub(super) expected: Vec<(String, Expected)>,
}

impl ClaimsFile {
    /// Those of the preset called `name`, or else of the file.
    pub fn open(name: &str) -> Result<Self, Error> {
        Ok(Self::parse(name, &read(name)?.1)?)
    }

    /// Parses a file; `name` stands for it in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        let mut file: Table = toml::from_str(text).map_err(|error| syntax_error(name, text, &error))?;
        let mut section = |section: &str| match file.remove(section) {
            None => Ok(Table::new()),
            Some(Value::Table(table)) => Ok(table),
            Some(_) => Err(ConfigError::new(section, format!("must be a section: write [{section}]"))),
        };
        let mut parse = || {
            let claims = Claims::parse(section("claims")?)?;
            let expected = Expected::parse_all(section("expected")?)?;
            if claims.list.is_empty() && expected.is_empty() {
                return Err(ConfigError::new("claims", "the file has neither claims nor expected values"));
            }
            Ok(Self { name: name.to_owned(), claims, expected })
        };
        parse().map_err(|error| located(name, text, error))
    }

    /// Whether it expects final accuracies, which only runs of the system have.
    pub fn expects(&self) -> bool {
        !self.expected.is_empty()
    }
}

impl Experiment {
    /// The preset called `name`, or else the file; it must be about runs of the system.
    pub fn open(name: &str) -> Result<Self, Error> {
        match AnyExperiment::open(name)? {
            AnyExperiment::Simulation(experiment) => Ok(experiment),
            AnyExperiment::Bound(_) | AnyExperiment::Theorem(_) => Err(Error::NotASimulation(name.into())),
        }
    }
}

/// The text of the preset or file called `name`, and what its results are called.
fn read(name: &str) -> Result<(String, String), Error> {
    if let Some(preset) = preset(name) {
        return Ok((name.to_owned(), preset.text.to_owned()));
    }
    let path = Path::new(name);
    let looks_like_a_file = path.components().count() > 1 || path.extension().is_some();
    if !looks_like_a_file && !path.is_file() {
        let names = || PRESETS.iter().map(|preset| preset.name);
        let presets = names().collect::<Vec<_>>().join(", ");
        return Err(Error::UnknownExperiment { name: name.into(), presets, nearest: nearest(name, names()) });
    }
    let text = read_text(path)?;
    let stem = path.file_stem().map_or_else(|| name.into(), |stem| stem.to_string_lossy().into_owned());
    Ok((stem, text))
}

/// Bytes of an experiment that are read: many times what the largest sweep takes that is allowed.
const MAX_BYTES: u64 = 16 << 20;

/// The text of an experiment's file. One that is endless, or larger than memory, is refused by its length.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(Error::file("read", path))?;
    let refuse = |problem: String| ConfigError::new(path.display().to_string(), problem).into();
    if bytes.len() as u64 > MAX_BYTES {
        let problem =
            format!("is longer than the {MAX_BYTES} bytes that an experiment may have; name a TOML file");
        return Err(refuse(problem));
    }
    String::from_utf8(bytes).map_err(|error| {
        let position = error.utf8_error().valid_up_to();
        refuse(format!("is not UTF-8 text at byte {position}; name a TOML file"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_opens_as_what_it_is_and_keeps_its_name() {
        for preset in PRESETS {
            let any = AnyExperiment::open(preset.name).unwrap();
            assert_eq!(any.name(), preset.name);
            let simulation = matches!(any, AnyExperiment::Simulation(_));
            assert_eq!(simulation, Experiment::preset(preset.name).is_some());
            assert_eq!(simulation, Experiment::open(preset.name).is_ok());
        }
    }

    #[test]
    fn a_name_that_nobody_knows_is_met_with_the_nearest_preset() {
        let message = AnyExperiment::open("dmo").unwrap_err().to_string();
        assert!(message.contains("neither a preset (demo, fig1") && message.ends_with("did you mean demo?"));
        let message = AnyExperiment::open("missing.toml").unwrap_err().to_string();
        assert!(message.starts_with("cannot read missing.toml: "), "{message}");
    }

    #[test]
    fn a_file_that_is_no_text_or_far_too_long_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge.toml");
        let refused = || {
            let error = AnyExperiment::open(path.to_str().unwrap()).unwrap_err();
            assert!(matches!(error, Error::Config(_)) && !error.is_machines_fault());
            error.to_string()
        };
        std::fs::write(&path, b"[run]\n\xff").unwrap();
        assert!(refused().ends_with("huge.toml: is not UTF-8 text at byte 6; name a TOML file"));
        // A hole takes no disk.
        File::create(&path).unwrap().set_len(100_000_000_000).unwrap();
        assert!(refused().contains("huge.toml: is longer than the 16777216 bytes"));
    }

    #[test]
    fn a_file_s_results_are_called_as_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, "[bound]\nrounds = 5\n").unwrap();
        let mut any = AnyExperiment::open(path.to_str().unwrap()).unwrap();
        assert!(matches!(any, AnyExperiment::Bound(_)) && any.name() == "mine");
        any.set_seeds(7).unwrap();
        assert!(any.to_toml().unwrap().contains("draws = 7"));
        assert!(any.set("run.rounds", "3").is_err());
    }
}
