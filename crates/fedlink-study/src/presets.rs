//! The experiments that come with the program, embedded, and the list of everything that can
//! be chosen by name.

use fedlink::data::catalog::CATALOG;
use serde::Serialize;

/// An embedded experiment.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
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
    preset!("fig3", "Figure 3: the convergence bound for several K, and the claims about it"),
    preset!("fig4", "Figure 4: the convergence bound for several τ, and the claims about it"),
    preset!(
        "adversary",
        "0 to 30 % of devices report false norms to be scheduled and do harm, with and without an audit"
    ),
    preset!("power-cap", "two classes on a device, with and without a cap on how often each may send"),
    preset!("policies", "all policies on digits, IID and with two classes on a device, in minutes"),
    preset!("compressors", "compression schemes with and without error feedback, two classes on a device"),
    preset!("theorem", "the convergence theorem compared with runs of the system it is about"),
    preset!(
        "paper-cell",
        "Figure 1 in seconds and joules: its devices at 500 m in a cell; --quick on digits"
    ),
    preset!("yang", "50 users in a square, fixed payloads over FDMA (arXiv 1911.02417)"),
    preset!("chen", "resource blocks with interference, losses and a deadline (arXiv 1909.07972)"),
    preset!("fedl", "5 users at 2 to 50 m, fixed payloads over TDMA (arXiv 1910.13067)"),
    preset!("mab", "fixed payloads in 15 kHz each under a deadline (arXiv 2007.02315)"),
    preset!("d2d", "the link budget of Xing, Simeone and Bi: 50 kHz for a second at 1 mW"),
    preset!("e2ws", "150 devices for 15 resource blocks with interference and losses (FL-E2WS)"),
    preset!("edge-air", "the link budget of arXiv 2501.18058: 16 antennas, 100 kHz, a CSI error of 0.1"),
    preset!("d-dsgd", "25 devices share 1962 symbols without fading (arXiv 1901.00844); --quick on digits"),
];

/// The preset called `name`.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// A choice by name.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Choice {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// Its declared properties; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub declared: String,
}

impl Choice {
    fn new(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning, declared: String::new() }
    }
}

/// The choices of one key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Choices {
    /// The plural in `fedlink list`.
    pub plural: &'static str,
    /// The key that chooses; empty for presets.
    pub key: &'static str,
    /// The choices.
    pub all: Vec<Choice>,
}

/// All choices by name: the parts of the system ([`fedlink::spec::kinds`]),
/// data sets and presets.
pub fn choices() -> Vec<Choices> {
    let of_kind = |kind: &fedlink::parts::Listing| Choices {
        plural: kind.plural,
        key: kind.key,
        all: kind
            .parts
            .iter()
            .map(|part| Choice { declared: part.declared.clone(), ..Choice::new(part.name, part.meaning) })
            .collect(),
    };
    let datasets = CATALOG.iter().map(|entry| Choice::new(entry.name, entry.meaning)).collect();
    let presets = PRESETS.iter().map(|preset| Choice::new(preset.name, preset.meaning)).collect();
    let mut choices: Vec<Choices> = fedlink::spec::kinds().iter().map(of_kind).collect();
    choices.push(Choices { plural: "datasets", key: "data.dataset", all: datasets });
    choices.push(Choices { plural: "presets", key: "", all: presets });
    choices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::theory::{BoundExperiment, TheoremExperiment};

    /// The settings that the parts of `key` need.
    fn surroundings(key: &str) -> Vec<(&'static str, &'static str)> {
        let all = [
            ("radio.bandwidth_hz", "1e6"),
            ("radio.power_max_dbm", "24"),
            ("cell.layout", "disc"),
            ("cell.pathloss", "3gpp-macro"),
            ("clock.compute", "flops"),
            ("learn.optimizer", "sgd"),
        ];
        all.into_iter().filter(|(name, _)| *name != key).collect()
    }

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
                    // Some policies schedule all devices; some parts need a radio with units, some of them
                    // also a cell or a model of computation; some need plain descent.
                    if experiment
                        .clone()
                        .expand(&fedlink::parts::Parts::default())
                        .is_err_and(|error| error.to_string().starts_with("schedule.k: "))
                    {
                        experiment.set("schedule.k", "40").unwrap();
                    }
                    if experiment.clone().expand(&fedlink::parts::Parts::default()).is_err() {
                        for (key, value) in surroundings(kind.key) {
                            experiment.set(key, value).unwrap();
                        }
                    }
                    let sweep =
                        experiment.expand(&fedlink::parts::Parts::default()).unwrap_or_else(|error| {
                            panic!("{} = {}: {error}", kind.key, part.name);
                        });
                    assert_eq!(sweep.curves.len(), 1);
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

    /// The mean SNR in dB over the whole band of a device of the preset, if it were at this distance and not
    /// shadowed, at the power that it sends with.
    fn snr_db(name: &str, distance_m: f64) -> f64 {
        let experiment = Experiment::preset(name).unwrap();
        let mut config = experiment
            .expand(&fedlink::parts::Parts::default())
            .unwrap()
            .curves
            .remove(0)
            .spec
            .config()
            .clone();
        config.cell.layout = "ring".into();
        config.cell.radius_m = Some(distance_m);
        config.cell.min_m = None;
        config.cell.shadowing_db = 0.0;
        let config = config.resolve(&fedlink::parts::Parts::default()).unwrap();
        let radio = fedlink::system::build::radio(&config, 7850).unwrap();
        let gain = radio.mean_gain(0, fedlink::base::units::DeviceId(0));
        fedlink::base::units::to_db(gain * radio.power().0 / radio.noise())
    }

    #[test]
    fn the_mean_snr_of_every_cell_is_that_of_its_source_at_three_distances() {
        // Name, how many share the band, and (distance in m, SNR in dB in a share of it). Worked out by hand:
        // P − PL − (N₀ + NF + 10·log10(W/shares)), with the interference of a block instead of noise where
        // there is any.
        let cases = [
            ("paper-cell", 1.0, [(100.0, 42.3), (250.0, 27.4), (500.0, 16.0)]),
            ("yang", 50.0, [(50.0, 48.8), (100.0, 37.5), (250.0, 22.5)]),
            ("chen", 12.0, [(100.0, 12.2), (250.0, 4.3), (500.0, -1.8)]),
            ("fedl", 1.0, [(2.0, 48.0), (26.0, 3.4), (50.0, -8.0)]),
            ("mab", 20.0, [(100.0, 39.5), (250.0, 24.5), (500.0, 13.2)]),
            ("d2d", 1.0, [(20.0, 39.6), (100.0, 13.3), (200.0, 2.0)]),
            ("e2ws", 15.0, [(100.0, 11.0), (300.0, 1.4), (500.0, -3.0)]),
            // Of one antenna.
            ("edge-air", 1.0, [(10.0, 26.2), (50.0, 1.6), (100.0, -9.0)]),
        ];
        for (name, shares, points) in cases {
            for (distance_m, expected) in points {
                let found = snr_db(name, distance_m) + fedlink::base::units::to_db(shares);
                assert!(
                    (found - expected).abs() < 0.06,
                    "{name} at {distance_m} m: {found} dB, not {expected}"
                );
            }
        }
    }

    #[test]
    fn the_digital_scheme_of_25_devices_has_the_bits_of_its_source() {
        let config = Experiment::preset("d-dsgd")
            .unwrap()
            .expand(&fedlink::parts::Parts::default())
            .unwrap()
            .curves
            .remove(0)
            .spec;
        let radio = fedlink::system::build::radio(&config, 7850).unwrap();
        let devices: Vec<fedlink::base::units::DeviceId> = fedlink::base::units::DeviceId::all(25).collect();
        let known = radio.links(0).known;
        // s/(2M)·log2(1 + M·P/s) with s = 3925, M = 25, P = 500: 162.1 bits.
        let bits = 3925.0 / 50.0 * f64::log2(1.0 + 25.0 * 500.0 / 3925.0);
        for grant in radio.grant(&devices, &[1.0; 25], &known) {
            assert!((grant.budget.0 / bits - 1.0).abs() < 1e-3, "{} bits, not {bits}", grant.budget.0);
        }
        // Twelve entries of one value fit: log2 of the subsets of 7850 weights, and 33 bits for the value.
        let takes =
            |q: i32| (0..q).map(|i| f64::log2(f64::from(7850 - i) / f64::from(q - i))).sum::<f64>() + 33.0;
        assert!(takes(12) <= bits && bits < takes(13), "{} {}", takes(12), takes(13));
    }

    #[test]
    fn the_paper_s_cell_is_the_paper_s_radio_in_units() {
        let config = Experiment::preset("paper-cell")
            .unwrap()
            .expand(&fedlink::parts::Parts::default())
            .unwrap()
            .curves
            .remove(0)
            .spec;
        let radio = fedlink::system::build::radio(&config, 203_530).unwrap();
        let gain = radio.mean_gain(0, fedlink::base::units::DeviceId(7));
        let snr = gain * radio.average_power().0 / radio.noise();
        assert!((snr - 1.0).abs() < 0.01, "P̄·β/σ² is {snr}");
        assert_eq!((radio.band().symbols, radio.k()), (5000, 1));
        // M·P̄/K, not cut to radio.power_max_dbm.
        assert!((radio.power().0 / radio.average_power().0 - 40.0).abs() < 1e-9);
    }
}
