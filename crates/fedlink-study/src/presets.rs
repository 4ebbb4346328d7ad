//! The experiments that come with the program, embedded, and the list of everything that can
//! be chosen by name.

use fedlink::data::catalog::CATALOG;
use serde::Serialize;

/// An embedded experiment.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// How it is asked for.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! preset {
    ($name:literal, $meaning:literal) => {
        Preset { name: $name, meaning: $meaning, text: include_str!(concat!("../presets/", $name, ".toml")) }
    };
}

/// Every preset.
pub const PRESETS: &[Preset] = &[
    preset!("demo", "the four policies at K = 1 on IID digits, in about a minute"),
    preset!("fig1", "Figure 1: the four policies at K = 1 and 10 on IID MNIST; --quick on digits"),
    preset!("fig2", "Figure 2: at K = 1, 5, 10 and 20, two classes on a device; --quick on digits"),
    preset!("fig3", "Figure 3: the convergence bound for several K, and what is claimed of it"),
    preset!("fig4", "Figure 4: the convergence bound for several τ, and what is claimed of it"),
    preset!(
        "adversary",
        "0 to 30 % of devices report false norms to be scheduled and do harm, with and without an audit"
    ),
    preset!("power-cap", "two classes on a device, with and without a cap on how often each may send"),
    preset!("theorem", "the convergence theorem compared with runs of the system it is about"),
];

/// The preset called `name`.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Something that can be chosen by name.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Choice {
    /// How it is written.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
}

/// The choices of one key.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The plural by which `fedlink list` knows them.
    pub plural: &'static str,
    /// The key that chooses; empty for presets, which are chosen by name.
    pub key: &'static str,
    /// What there is.
    pub all: Vec<Choice>,
}

/// All that can be chosen by name: the parts of the system ([`fedlink::config::kinds`]),
/// data sets and presets.
pub fn choices() -> Vec<Choices> {
    let of_kind = |kind: fedlink::registry::Listing| Choices {
        plural: kind.plural,
        key: kind.key,
        all: kind.parts.iter().map(|part| Choice { name: part.name, meaning: part.meaning }).collect(),
    };
    let datasets = CATALOG.iter().map(|entry| Choice { name: entry.name, meaning: entry.meaning }).collect();
    let presets =
        PRESETS.iter().map(|preset| Choice { name: preset.name, meaning: preset.meaning }).collect();
    let mut choices: Vec<Choices> = fedlink::config::kinds().into_iter().map(of_kind).collect();
    choices.push(Choices { plural: "datasets", key: "data.dataset", all: datasets });
    choices.push(Choices { plural: "presets", key: "", all: presets });
    choices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{BoundExperiment, Experiment, TheoremExperiment};

    #[test]
    fn every_listed_part_is_accepted_by_its_key_and_every_preset_loads() {
        for kind in choices() {
            for part in &kind.all {
                if kind.key.is_empty() {
                    let simulation = Experiment::preset(part.name).is_some();
                    let bound = BoundExperiment::preset(part.name).is_some();
                    let theorem = TheoremExperiment::preset(part.name).is_some();
                    let found = [simulation, bound, theorem].into_iter().filter(|found| *found).count();
                    assert_eq!(found, 1, "preset {}", part.name);
                } else {
                    let mut experiment = Experiment::default();
                    experiment.set(kind.key, part.name).unwrap();
                    assert_eq!(experiment.curves().unwrap().len(), 1);
                }
            }
        }
    }

    #[test]
    fn a_name_that_is_not_listed_is_refused_by_its_key() {
        for kind in choices().iter().filter(|kind| !["", "data.dataset"].contains(&kind.key)) {
            let message = Experiment::default().set(kind.key, "no-such-part").unwrap_err().to_string();
            assert!(message.starts_with(&format!("{}: is \"no-such-part\"", kind.key)), "{message}");
            for choice in &kind.all {
                assert!(message.contains(choice.name), "{message} does not name {}", choice.name);
            }
        }
    }
}
