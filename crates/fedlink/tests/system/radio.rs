//! The uplink of whole runs: mean gains from a file, and other fading laws.

use crate::common::{blobs, resumed, run, small_config};
use fedlink::prelude::*;
use std::fmt::Write;

/// A file with these gains in `folder`, as a path for a configuration.
fn gains_file(folder: &tempfile::TempDir, gains: &[f64]) -> String {
    let path = folder.path().join("gains.txt");
    let mut text = String::from("# mean gains\n");
    gains.iter().for_each(|gain| writeln!(text, "{gain}").unwrap());
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn records(config: &Config) -> Vec<RoundRecord> {
    let mut simulation = Simulation::of(config, blobs(20, 600, 90)).unwrap();
    (0..config.run.rounds).map(|_| simulation.step().unwrap()).collect()
}

#[test]
fn mean_gains_of_one_equal_no_mean_gains_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    for fading in ["rayleigh", "rician", "static"] {
        let mut config = small_config();
        config.radio.fading = fading.into();
        let plain = run(&config, blobs(20, 600, 90), 1);
        config.radio.mean_gains = gains_file(&folder, &[1.0; 12]);
        assert_eq!(run(&config, blobs(20, 600, 90), 1), plain, "{fading}");
    }
}

#[test]
fn four_times_the_gain_at_a_quarter_of_the_power_is_the_same_link() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config();
    config.schedule.policy = "bc".into();
    let plain = records(&config);
    config.radio.mean_gains = gains_file(&folder, &[4.0; 12]);
    config.radio.power = 0.25;
    let scaled = records(&config);
    for (plain, scaled) in plain.iter().zip(&scaled) {
        assert_eq!(plain.transmissions.len(), scaled.transmissions.len());
        for (a, b) in plain.transmissions.iter().zip(&scaled.transmissions) {
            assert_eq!((a.device, a.q, a.entries), (b.device, b.q, b.entries));
            assert!((b.gain / a.gain / 4.0 - 1.0).abs() < 1e-12);
            assert!((b.power.0 * 4.0 / a.power.0 - 1.0).abs() < 1e-12);
            assert!((b.capacity / a.capacity - 1.0).abs() < 1e-12);
            assert!((b.budget.0 / a.budget.0 - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn the_mean_gain_of_each_device_multiplies_its_fading() {
    let folder = tempfile::tempdir().unwrap();
    let gains: Vec<f64> = (0..12).map(|m| f64::from(m) * 0.5).collect();
    let mut config = small_config();
    (config.schedule.policy, config.schedule.k) = ("bc".into(), 12);
    let plain = records(&config);
    config.radio.mean_gains = gains_file(&folder, &gains);
    for (plain, scaled) in plain.iter().zip(&records(&config)) {
        for (a, b) in plain.transmissions.iter().zip(&scaled.transmissions) {
            assert_eq!(b.gain, gains[a.device.index()] * a.gain);
        }
        // Device 0 has a link without capacity: no symbols, no bits, silence.
        let zero_gain = &scaled.transmissions[0];
        assert_eq!((zero_gain.gain, zero_gain.symbols.0, zero_gain.q), (0.0, 0.0, 0));
    }
}

#[test]
fn a_file_with_the_wrong_number_of_mean_gains_is_refused_by_key_and_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config();
    config.radio.mean_gains = gains_file(&folder, &[1.0; 11]);
    let error = Simulation::of(&config, blobs(20, 600, 90)).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("radio.mean_gains: "), "{error}");
    assert!(error.ends_with("gains.txt: has 11 numbers, but data.devices is 12"), "{error}");
    config.radio.mean_gains = folder.path().join("missing.txt").display().to_string();
    let error = Simulation::of(&config, blobs(20, 600, 90)).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("missing.txt"), "{error}");
}

#[test]
fn links_without_fading_are_equal_and_the_lowest_indices_are_scheduled() {
    let mut config = small_config();
    (config.radio.fading, config.schedule.policy) = ("static".into(), "bc".into());
    for record in records(&config) {
        let devices: Vec<u32> = record.transmissions.iter().map(|sent| sent.device.0).collect();
        assert_eq!(devices, [0, 1, 2]);
        // P = M·P̄/K = 4.
        assert!(record.transmissions.iter().all(|sent| sent.gain == 1.0 && sent.capacity == 5f64.log2()));
        assert!(record.transmissions.iter().all(|sent| (sent.symbols.0 - 20.0).abs() < 1e-12));
    }
}

#[test]
fn every_fading_law_gives_the_same_run_on_any_threads_and_after_a_checkpoint() {
    let mut digests = std::collections::BTreeSet::new();
    for (fading, k_factor) in [("rayleigh", 1.0), ("rician", 1.0), ("rician", 8.0), ("static", 1.0)] {
        for policy in ["bc", "bn2-c"] {
            let mut config = small_config();
            (config.radio.fading, config.schedule.policy) = (fading.into(), policy.into());
            config.set("radio.rician.k_factor", k_factor).unwrap();
            let one = run(&config, blobs(20, 600, 90), 1);
            assert_eq!(run(&config, blobs(20, 600, 90), 3), one, "{fading} {policy}");
            assert_eq!(
                resumed(&config, || blobs(20, 600, 90), &Parts::default(), 5),
                one,
                "{fading} {policy}"
            );
            digests.insert(one.digest);
        }
    }
    assert_eq!(digests.len(), 8, "every law is another run");
}

#[test]
fn a_strong_line_of_sight_has_less_spread_of_gains_than_scattering() {
    let spread = |fading: &str| {
        let mut config = small_config();
        (config.radio.fading, config.schedule.policy, config.schedule.k) = (fading.into(), "bc".into(), 12);
        config.set("radio.rician.k_factor", 10.0).unwrap();
        let gains: Vec<f64> =
            records(&config).iter().flat_map(|record| &record.transmissions).map(|sent| sent.gain).collect();
        gains.iter().map(|gain| (gain - 1.0).powi(2)).sum::<f64>() / gains.len() as f64
    };
    // Variances 1, (1 + 2κ)/(1 + κ)² = 0.17 at κ = 10, and 0, over 144 gains.
    let (rayleigh, rician, fixed) = (spread("rayleigh"), spread("rician"), spread("static"));
    assert!(rayleigh > 0.5 && (0.08..0.3).contains(&rician) && fixed == 0.0, "{rayleigh} {rician}");
}
