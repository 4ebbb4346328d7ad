//! The text of an experiment, and its kind.

use crate::error::Error;
use crate::presets::{PRESETS, preset};
use fedlink::base::files;
use fedlink::spec::{ConfigError, nearest};
use std::path::Path;
use toml::{Table, Value};

/// A preset or a file before it is parsed.
#[derive(Clone, Debug)]
pub struct Source {
    /// The preset or the path, as given.
    pub given: String,
    /// The name of the preset or the stem of the file: it names the results.
    pub name: String,
    /// The content.
    pub text: String,
}

/// The kinds of files of experiments. Each has a parser of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Runs of the system: [`Experiment`](super::Experiment).
    System,
    /// A figure of the bound, by a section `[bound]`: [`BoundExperiment`](crate::theory::BoundExperiment).
    Bound,
    /// A check of the theorem, by a section `[theorem]`:
    /// [`TheoremExperiment`](crate::theory::TheoremExperiment).
    Theorem,
}

impl Source {
    /// The preset called `name`, or else the file.
    pub fn open(name: &str) -> Result<Self, Error> {
        if let Some(preset) = preset(name) {
            return Ok(Self::of_text(name, preset.text));
        }
        let path = Path::new(name);
        let looks_like_a_file = path.components().count() > 1 || path.extension().is_some();
        if !looks_like_a_file && !path.is_file() {
            let names = || PRESETS.iter().map(|preset| preset.name);
            let presets = names().collect::<Vec<_>>().join(", ");
            return Err(Error::UnknownExperiment {
                name: name.into(),
                presets,
                nearest: nearest(name, names()),
            });
        }
        let mut text = read_text(path)?;
        // The configuration of a folder of results, which names parts as its version did.
        if path.file_name().is_some_and(|name| name == "config.toml")
            && path.with_file_name("files.txt").is_file()
        {
            text = with_names_of_today(&text);
        }
        let stem = path.file_stem().map_or_else(|| name.into(), |stem| stem.to_string_lossy().into_owned());
        Ok(Self { given: name.to_owned(), name: stem, text })
    }

    /// A text that messages and results call `name`.
    pub fn of_text(name: &str, text: &str) -> Self {
        Self { given: name.to_owned(), name: name.to_owned(), text: text.to_owned() }
    }

    /// The kind, by the section that the file has. In a file that is not TOML, the line that opens the
    /// section decides.
    pub fn kind(&self) -> FileKind {
        let table = toml::from_str::<Table>(&self.text);
        let opens = |line: &str, name: &str| {
            let line = line.split('#').next().unwrap_or_default();
            line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) == Some(name)
        };
        let has = |name: &str| match &table {
            Ok(table) => table.get(name).is_some_and(Value::is_table),
            Err(_) => self.text.lines().any(|line| opens(line, name)),
        };
        match () {
            () if has("bound") => FileKind::Bound,
            () if has("theorem") => FileKind::Theorem,
            () => FileKind::System,
        }
    }

    /// An error unless the experiment runs the system.
    pub fn check_is_sweep(&self) -> Result<(), Error> {
        match self.kind() {
            FileKind::System => Ok(()),
            FileKind::Bound | FileKind::Theorem => Err(Error::NotASimulation(self.given.clone().into())),
        }
    }
}

/// The text of a stored configuration with parts by their names of today.
pub(crate) fn with_names_of_today(text: &str) -> String {
    let mut text = text.to_owned();
    for kind in fedlink::spec::kinds() {
        let key = kind.key.rsplit('.').next().unwrap_or(kind.key);
        for part in kind.parts.iter().filter(|part| !part.former_name.is_empty()) {
            let (old, new) = (format!("\"{}\"", part.former_name), format!("\"{}\"", part.name));
            let line = |line: &str| {
                let names = !line.trim_start().starts_with('#') && line.contains(key);
                if names { line.replace(&old, &new) } else { line.to_owned() }
            };
            text = text.split_inclusive('\n').map(line).collect();
        }
    }
    text
}

/// The most bytes of an experiment: many times the size of the largest sweep that is allowed.
const MAX_BYTES: u64 = 16 << 20;

/// The text of an experiment's file. A file that is endless or larger than memory is refused by its length.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = files::read_up_to(path, MAX_BYTES).map_err(Error::file("read", path))?;
    let refuse = |problem: String| ConfigError::new(path.display().to_string(), problem).into();
    let too_long = || {
        refuse(format!("is longer than the {MAX_BYTES} bytes that an experiment may have; name a TOML file"))
    };
    let bytes = bytes.ok_or_else(too_long)?;
    String::from_utf8(bytes).map_err(|error| {
        let position = error.utf8_error().valid_up_to();
        refuse(format!("is not UTF-8 text at byte {position}; name a TOML file"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::theory::{BoundExperiment, TheoremExperiment};
    use fedlink::parts::Parts;
    use std::fs::File;

    #[test]
    fn every_preset_opens_with_its_name_and_one_kind() {
        for preset in PRESETS {
            let source = Source::open(preset.name).unwrap();
            assert_eq!(source.name, preset.name);
            let kinds = [
                (FileKind::System, Experiment::read(&source, &Parts::default()).is_ok()),
                (FileKind::System, Experiment::preset(preset.name).is_some()),
                (FileKind::Bound, BoundExperiment::preset(preset.name).is_some()),
                (FileKind::Theorem, TheoremExperiment::preset(preset.name).is_some()),
            ];
            for (kind, opens) in kinds {
                assert_eq!(opens, source.kind() == kind, "{}: {kind:?}", preset.name);
            }
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_preset() {
        let message = Source::open("dmo").unwrap_err().to_string();
        assert!(message.contains("neither a preset (demo, fig1") && message.ends_with("did you mean demo?"));
        let message = Source::open("missing.toml").unwrap_err().to_string();
        assert!(message.starts_with("cannot read missing.toml: "), "{message}");
    }

    #[test]
    fn a_file_that_is_not_text_or_far_too_long_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge.toml");
        let refused = || {
            let error = Source::open(path.to_str().unwrap()).unwrap_err();
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
    fn the_results_of_a_file_are_named_by_its_stem() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, "[bound]\nrounds = 5\n").unwrap();
        let source = Source::open(path.to_str().unwrap()).unwrap();
        assert_eq!((source.name.as_str(), source.kind()), ("mine", FileKind::Bound));
        let mut bound = BoundExperiment::read(&source).unwrap();
        assert_eq!(bound.name, "mine");
        bound.set_seeds(7).unwrap();
        assert!(bound.to_toml().contains("draws = 7"));
        assert!(bound.set("run.rounds", "3").is_err());
        assert!(matches!(Experiment::open(path.to_str().unwrap()), Err(Error::NotASimulation(_))));
    }

    #[test]
    fn a_section_is_found_in_every_notation() {
        let kind = |text: &str| Source::of_text("x", text).kind();
        for text in [
            "[bound]\nk = 1\n",
            "bound.k = 1\n",
            "bound = { k = 1 }\n",
            "[ bound ] # of what?\n",
            "[bound]\nk =\n",
        ] {
            assert_eq!(kind(text), FileKind::Bound, "{text}");
        }
        for text in ["", "# [bound]\n", "[run]\nrounds = 3\n", "bound = 3\n", "[[bound]]\n", "[bounds]\n"] {
            assert_eq!(kind(text), FileKind::System, "{text}");
        }
        assert_eq!(kind("[theorem]\ntau =\n"), FileKind::Theorem);
    }
}
