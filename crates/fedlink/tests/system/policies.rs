//! Whole runs of every policy.

use super::common::{blobs, run, small_config};
use fedlink::config::Config;
use fedlink::registry::Kind;
use fedlink::schedule::Policy;
use fedlink::simulation::Simulation;
use std::io::Cursor;

/// Every policy of the registry, and forms of some that keep other state, each with a small run.
fn runs() -> Vec<(String, Config)> {
    let named = |name: &str| {
        let mut config = small_config();
        config.schedule.policy = name.into();
        // Some schedule everybody or nobody.
        if config.validate().is_err() {
            config.schedule.k = config.data.devices;
        }
        config
    };
    let mut runs: Vec<(String, Config)> =
        <dyn Policy>::entries().iter().map(|entry| (entry.name.to_owned(), named(entry.name))).collect();
    let mut similar = named("clustered");
    similar.set("schedule.clustered.by", "similarity").unwrap();
    runs.push(("clustered by similarity".into(), similar));
    let mut recent = named("power-of-choice");
    recent.set("schedule.power-of-choice.variant", "rpow-d").unwrap();
    runs.push(("rpow-d".into(), recent));
    runs
}

#[test]
fn a_run_of_any_policy_is_the_same_on_any_number_of_threads_and_when_resumed() {
    for (name, config) in runs() {
        let whole = run(&config, blobs(20, 600, 90), 1);
        assert_eq!(run(&config, blobs(20, 600, 90), 3), whole, "{name} on three threads");
        let mut first = Simulation::new(&config, blobs(20, 600, 90)).unwrap();
        (0..5).for_each(|_| drop(first.step().unwrap()));
        let mut saved = Vec::new();
        first.checkpoint(&mut saved).unwrap();
        let mut second = Simulation::new(&config, blobs(20, 600, 90)).unwrap();
        second.restore(Cursor::new(&saved)).unwrap();
        assert_eq!(second.run(&mut ()).unwrap(), whole, "{name} resumed");
    }
}

#[test]
fn divfl_hears_of_everybody_first_and_its_shares_add_up_to_1() {
    let mut config = small_config();
    config.schedule.policy = "divfl".into();
    let mut simulation = Simulation::new(&config, blobs(20, 600, 90)).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for t in 0..12 {
        let record = simulation.step().unwrap();
        let sent: Vec<u32> = record.transmissions.iter().map(|sent| sent.device.0).collect();
        // 12 devices, three of which are new in each of the first four rounds.
        if t < 4 {
            assert!(sent.iter().all(|device| seen.insert(*device)), "round {t}: {sent:?}");
        }
        let shares: f64 = record.transmissions.iter().filter_map(|sent| sent.share).sum();
        assert!((shares - 1.0).abs() < 1e-12, "{shares}");
    }
    assert_eq!(seen.len(), 12);
}
