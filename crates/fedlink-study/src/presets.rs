//! The experiments that come with the program, embedded, and the list of everything that can be chosen by name.

use fedlink::parts::{Kind, Part};

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
    preset!("adversary", "0 to 30 % of devices lie to be scheduled and do harm, with and without an audit"),
    preset!("power-cap", "two classes on a device, with and without a cap on how often each may send"),
    preset!("theorem", "the convergence theorem set beside runs of the system it speaks of"),
];

/// The preset called `name`.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// All that can be chosen by name: the parts of the system ([`fedlink::parts::kinds`]) and the presets.
pub fn kinds() -> Vec<Kind> {
    let part = |preset: &Preset| Part { name: preset.name, meaning: preset.meaning };
    let mut kinds = fedlink::parts::kinds();
    kinds.push(Kind { name: "presets", key: "", parts: PRESETS.iter().map(part).collect() });
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{BoundExperiment, Experiment, TheoremExperiment};

    #[test]
    fn every_listed_part_is_accepted_by_its_key_and_every_preset_loads() {
        for kind in kinds() {
            for part in &kind.parts {
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
    fn every_value_a_key_accepts_is_listed() {
        // An unknown value makes the parser name all it knows.
        for kind in kinds().iter().filter(|kind| !["", "data.dataset"].contains(&kind.key)) {
            let mut experiment = Experiment::default();
            let message = experiment.set(kind.key, "no-such-part").unwrap_err().to_string();
            let known: Vec<&str> =
                message.split('`').skip(1).step_by(2).filter(|name| *name != "no-such-part").collect();
            let listed: Vec<&str> = kind.parts.iter().map(|part| part.name).collect();
            assert_eq!(known, listed, "{}: {message}", kind.key);
        }
    }
}
