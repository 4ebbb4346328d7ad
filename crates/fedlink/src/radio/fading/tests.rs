//! The invariants of every fading law in the registry, and statistics that several tests share.

use super::*;
use crate::base::rng::{Purpose, stream};
use crate::parts::{ConfigError, Scope};
use toml::{Table, Value};

/// The gains of `devices` devices in round `t`.
pub fn gains(fading: &dyn Fading, t: u64, devices: usize) -> Vec<f64> {
    DeviceId::all(devices).map(|device| fading.gain(t, device)).collect()
}

/// √N·D of Kolmogorov and Smirnov against the distribution function `cdf`: its 99.99 % point is 2.23.
pub fn kolmogorov(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let count = sample.len() as f64;
    let far = |(i, x): (usize, &f64)| {
        let cdf = cdf(*x);
        (cdf - i as f64 / count).abs().max((cdf - (i + 1) as f64 / count).abs())
    };
    sample.iter().enumerate().map(far).fold(0.0, f64::max) * count.sqrt()
}

/// Asserts that the mean of independent numbers is within four of its standard errors of `truth`.
pub fn near_mean(sample: impl Iterator<Item = f64>, truth: f64, what: &str) {
    let sample: Vec<f64> = sample.collect();
    let count = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / count;
    let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let slack = 4.0 * (variance / count).sqrt() + 1e-12;
    assert!((mean - truth).abs() < slack, "{what}: {mean} is not within {slack} of {truth}");
}

/// The laws of the list and the documented custom one.
fn laws() -> impl Iterator<Item = &'static Entry<dyn Fading>> {
    FADINGS.iter().chain([&crate::documented::weibull::ENTRY])
}

/// Builds the law of `entry`: with its defaults, or from a trace of mean 1.
fn build(entry: &Entry<dyn Fading>, seed: u64, propagation: &Propagation) -> Box<dyn Fading> {
    try_build(entry, seed, propagation).unwrap()
}

fn try_build(
    entry: &Entry<dyn Fading>,
    seed: u64,
    propagation: &Propagation,
) -> Result<Box<dyn Fading>, ConfigError> {
    let scope = Scope { seed, ..Scope::default() };
    if entry.name != "trace" {
        return entry.build(&Table::new(), &scope, propagation);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gains.csv");
    std::fs::write(&path, "0.5,1.5,1\n1.5,0.5,1\n").unwrap();
    let file = Value::String(path.to_str().unwrap().to_owned());
    entry.build(&Table::from_iter([("file".to_owned(), file)]), &scope, propagation)
}

#[test]
fn every_law_is_random_access_finite_and_has_mean_one() {
    for entry in laws() {
        let make = |seed| build(entry, seed, &Propagation::default());
        let few = Propagation::default();
        assert_eq!(contract::findings(|| try_build(entry, 3, &few).ok()), [""; 0], "{}", entry.name);
        let in_order: Vec<Vec<f64>> = (0..500).map(|t| gains(&*make(1), t, 20)).collect();
        // One gain alone, from a law that has computed nothing before, equals the gain computed after all
        // others.
        for (t, m) in [(0, 0), (499, 19), (250, 7), (3, 12)] {
            let alone = make(1).gain(t, DeviceId(m));
            assert_eq!(alone.to_bits(), in_order[t as usize][m as usize].to_bits(), "{}", entry.name);
        }
        let all: Vec<f64> = in_order.concat();
        assert!(all.iter().all(|g| g.is_finite() && *g >= 0.0), "{}", entry.name);
        // A variance above 1 would be worse than Rayleigh fading: 5 standard errors of 10 000 such draws.
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean - 1.0).abs() < 0.05, "{}: mean {mean}", entry.name);
    }
}

#[test]
fn a_gain_alone_is_the_gain_after_all_earlier_rounds_under_any_correlation() {
    let memories = [
        Memory::Independent,
        Memory::GaussMarkov { correlation: 0.97 },
        Memory::GaussMarkov { correlation: -0.4 },
        Memory::Doppler { hertz: 9.3, period_s: 0.04 },
    ];
    let profiles = [None, Profile::named("tdl-b100", None).unwrap()];
    let blocks = Blocks { count: 5, spacing_hz: 180e3 };
    let mut connected = Vec::new();
    for entry in laws() {
        for memory in memories {
            for (antennas, profile) in [1, 3].into_iter().flat_map(|n| profiles.iter().map(move |p| (n, p))) {
                let propagation =
                    Propagation { antennas, memory, profile: profile.clone(), blocks, period_s: None };
                // Laws without an amplitude refuse keys that need one.
                let Ok(law) = try_build(entry, 8, &propagation) else { continue };
                connected.push((entry.name, memory != Memory::Independent, profile.is_some()));
                let gains: Vec<Vec<f64>> = (0..130).map(|t| gains(&*law, t, 6)).collect();
                let mut out = [0.0; 5];
                law.blocks(77, DeviceId(4), &mut out);
                for (t, m) in [(129, 5), (77, 4), (1, 0), (64, 3)] {
                    let fresh = try_build(entry, 8, &propagation).unwrap();
                    let alone = fresh.gain(t, DeviceId(m));
                    assert_eq!(
                        alone.to_bits(),
                        gains[t as usize][m as usize].to_bits(),
                        "{} {memory:?}",
                        entry.name
                    );
                    let mut blocks = [0.0; 5];
                    fresh.blocks(77, DeviceId(4), &mut blocks);
                    assert_eq!(blocks, out, "{} {memory:?}", entry.name);
                }
            }
        }
    }
    for law in ["rayleigh", "rician"] {
        assert!(connected.contains(&(law, true, true)) && connected.contains(&(law, true, false)), "{law}");
    }
    for law in ["nakagami", "static", "trace"] {
        assert!(connected.contains(&(law, false, false)), "{law}");
    }
}

#[test]
fn every_law_has_blocks_and_estimates_and_none_moves_the_truth() {
    for entry in laws() {
        let fading = build(entry, 2, &Propagation::default());
        let before = gains(&*fading, 6, 30);
        for device in DeviceId::all(30) {
            let mut rng = stream(2, Purpose::CsiError, 6, u64::from(device.0));
            let seen = fading.estimate(6, device, 0.3, &mut rng);
            assert!(seen.is_finite() && seen >= 0.0, "{}", entry.name);
            assert_eq!(fading.estimate(6, device, 0.0, &mut rng), fading.gain(6, device), "{}", entry.name);
            let mut out = [f64::NAN; 3];
            fading.blocks(6, device, &mut out);
            assert_eq!(out, [fading.gain(6, device); 3], "{}", entry.name);
            assert_eq!(fading.earlier(6, device, 0.1), None, "{}", entry.name);
        }
        assert_eq!(gains(&*fading, 6, 30), before, "{}", entry.name);
        assert_eq!((fading.antennas(), fading.failure()), (1, None), "{}", entry.name);
    }
}

#[test]
fn antennas_multiply_the_mean_of_every_law_that_has_them() {
    let propagation = Propagation { antennas: 4, ..Propagation::default() };
    for entry in laws().filter(|entry| entry.name != "trace") {
        let fading = build(entry, 3, &propagation);
        assert_eq!(fading.antennas(), 4, "{}", entry.name);
        near_mean((0..500).flat_map(|t| gains(&*fading, t, 20)), 4.0, entry.name);
    }
}
