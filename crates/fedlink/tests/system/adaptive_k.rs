//! A K that falls over the rounds, and the capacity of links at another K.

use super::common::{blobs, small_config};
use fedlink::base::units::DeviceId;
use fedlink::parts::Parts;
use fedlink::radio::{CapacityAt, Known};
use fedlink::spec::Config;
use fedlink::system::build::radio;
use fedlink::system::simulation::Simulation;
use std::io::Cursor;
use toml::Value;

/// Radios with every kind of dependence of capacities on K.
fn radios() -> Vec<(&'static str, Config)> {
    let with = |keys: &[(&str, Value)]| {
        let mut config = small_config();
        config.schedule.k = 6;
        config.radio.symbols = Config::default().radio.symbols;
        for (key, value) in keys {
            config.set(key, value.clone()).unwrap_or_else(|error| panic!("{key}: {error}"));
        }
        config
    };
    let units = || ("radio.bandwidth_hz", 180e3.into());
    vec![
        ("the paper's", with(&[])),
        ("equal energy", with(&[("radio.power_policy", "equal-energy".into())])),
        ("waterfilling", with(&[("radio.power_policy", "waterfilling".into())])),
        ("one power", with(&[("radio.power_policy", "fixed".into())])),
        ("a maximum", with(&[("radio.power_max", 3.0.into())])),
        ("estimates", with(&[("radio.csi_error", 0.1.into()), ("radio.backoff_db", 2.0.into())])),
        ("short packets", with(&[("radio.rate", "finite-blocklength".into())])),
        ("units", with(&[units()])),
        ("blocks", with(&[units(), ("radio.access", "ofdma".into()), ("radio.profile", "tdl-a30".into())])),
    ]
}

/// The server's knowledge in round `t` of a run with this K.
fn known(config: &Config, k: u64, t: u64) -> Known {
    let mut config = config.clone();
    (config.schedule.k, config.schedule.decay, config.schedule.k_min) = (k, 0.0, 1);
    config.validate().unwrap();
    radio(&config.resolve(&Parts::default()).unwrap(), 500).unwrap().links(t).known
}

#[test]
fn capacities_at_another_k_are_those_of_a_run_with_that_k_to_the_bit() {
    for (name, config) in radios() {
        config.validate().unwrap_or_else(|error| panic!("{name}: {error}"));
        let radio = radio(&config.resolve(&Parts::default()).unwrap(), 500).unwrap();
        for t in 0..4 {
            let own = radio.links(t).known;
            for k in 1..=12 {
                let other = known(&config, k, t);
                for device in DeviceId::all(12) {
                    let (got, wanted) =
                        (radio.capacity_at(t, &own, device, k as usize), other.capacity(device));
                    assert_eq!(got.to_bits(), wanted.to_bits(), "{name}, round {t}, K = {k}, {device}");
                }
            }
        }
    }
}

#[test]
fn a_round_of_a_falling_k_has_the_links_of_a_run_with_its_k() {
    for (name, mut config) in radios() {
        (config.schedule.decay, config.schedule.k_min) = (0.4, 2);
        config.validate().unwrap();
        let radio = radio(&config.resolve(&Parts::default()).unwrap(), 500).unwrap();
        // 6·e^(−0.4·t): 6, 4.02, 2.70, 1.81, 1.21.
        for (t, k) in (0..).zip([6, 5, 3, 2, 2]) {
            assert_eq!(radio.k_at(t), k, "{name}");
            assert_eq!(radio.links(t).known, known(&config, k as u64, t), "{name}, round {t}");
        }
    }
}

#[test]
fn a_falling_k_lowers_the_schedule_of_every_policy_and_a_resumed_run_is_the_same() {
    for policy in ["bc", "bn2-c", "random", "lyapunov", "age"] {
        let mut config = small_config();
        config.schedule.policy = policy.into();
        (config.schedule.k, config.schedule.decay, config.schedule.k_min) = (6, 0.4, 2);
        let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        let mut saved = Vec::new();
        for (t, k) in [6, 5, 3, 2, 2].into_iter().enumerate() {
            if t == 3 {
                simulation.checkpoint(&mut saved).unwrap();
            }
            let record = simulation.step().unwrap();
            assert_eq!(record.transmissions.len(), k, "{policy}");
            // P = M·P̄/K_t.
            assert!(record.transmissions.iter().all(|sent| sent.power.0 == 12.0 / k as f64), "{policy}");
        }
        let whole = simulation.run(|_| ()).unwrap();
        let mut resumed = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        resumed.restore(Cursor::new(&saved)).unwrap();
        assert_eq!(resumed.run(|_| ()).unwrap(), whole, "{policy}");
    }
}

#[test]
fn round_robin_continues_in_order_when_k_falls() {
    let mut config = small_config();
    config.schedule.policy = "round-robin".into();
    (config.schedule.k, config.schedule.decay, config.schedule.k_min) = (6, 0.4, 2);
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    // 6 + 5 + 3 + 2 + 2 + 2 + 2 + 2: twice 12 devices.
    let records: Vec<_> = (0..8).map(|_| simulation.step().unwrap()).collect();
    let mut counts = [0; 12];
    records.iter().flat_map(|record| &record.transmissions).for_each(|sent| counts[sent.device.index()] += 1);
    assert_eq!(counts, [2; 12]);
}

#[test]
fn keys_of_a_falling_k_without_effect_are_refused() {
    let problem = |change: &dyn Fn(&mut Config)| {
        let mut config = small_config();
        change(&mut config);
        config.validate().unwrap_err().to_string()
    };
    let error = problem(&|c| c.schedule.k_min = 2);
    assert!(error.starts_with("schedule.k_min: has no effect here: it is how far schedule.decay"), "{error}");
    let error = problem(&|c| (c.schedule.k, c.schedule.decay) = (1, 0.1));
    assert!(error.starts_with("schedule.decay: has no effect here: it lowers schedule.k"), "{error}");
    let error = problem(&|c| (c.schedule.k_min, c.schedule.decay) = (4, 0.1));
    assert!(error.starts_with("schedule.k_min: is 4, but must be in 1..=3"), "{error}");
    for bad in [-0.1, f64::NAN, f64::INFINITY] {
        let error = problem(&|c| c.schedule.decay = bad);
        assert!(error.starts_with("schedule.decay: is"), "{error}");
    }
}
