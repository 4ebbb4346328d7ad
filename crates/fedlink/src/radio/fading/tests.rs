//! What every fading law must keep, from the registry.

use super::*;
use crate::registry::Scope;
use toml::Table;

/// The gains of `devices` devices in round `t`.
pub fn gains(fading: &dyn Fading, t: u64, devices: usize) -> Vec<f64> {
    DeviceId::all(devices).map(|device| fading.gain(t, device)).collect()
}

#[test]
fn every_law_is_random_access_finite_and_has_mean_one() {
    for entry in FADINGS {
        let make = |seed| entry.build(&Table::new(), &Scope { seed, ..Scope::default() }, &()).unwrap();
        let in_order: Vec<Vec<f64>> = (0..500).map(|t| gains(&*make(1), t, 20)).collect();
        // One gain alone, from a law that was asked nothing before, is the gain after all others.
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
