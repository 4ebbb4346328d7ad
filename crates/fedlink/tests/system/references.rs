//! The references: all devices, no link, and knowledge that no server can have.

use crate::common::{blobs, resumed, run, small_config};
use fedlink::learn::task::Task;
use fedlink::prelude::*;
use fedlink::system::server::Server;

fn config(policy: &str, k: u64) -> Config {
    let mut config = small_config();
    config.schedule.policy = policy.into();
    config.schedule.k = k;
    config
}

#[test]
fn an_ideal_run_is_federated_averaging_of_whole_updates() {
    let mut config = config("ideal", 12);
    config.learn.optimizer = "sgd".into();
    config.run.rounds = 3;
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    let mut theta = simulation.theta().to_vec();
    for t in 0..3 {
        // The mean of all updates, added up in double precision.
        let updates: Vec<Vec<f32>> =
            (0..12).map(|m| simulation.fleet.update(&theta, t, DeviceId(m)).unwrap().0).collect();
        let step = |i: usize| updates.iter().map(|update| f64::from(update[i])).sum::<f64>() / 12.0;
        theta = theta.iter().enumerate().map(|(i, &x)| (f64::from(x) + step(i)) as f32).collect();
        let record = simulation.step().unwrap();
        assert_eq!(record.transmissions.len(), 12);
        for sent in &record.transmissions {
            assert_eq!(sent.bits.0, 32.0 * theta.len() as f64);
            assert_eq!(sent.entries, theta.len());
        }
        for (a, b) in simulation.theta().iter().zip(&theta) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
        theta = simulation.theta().to_vec();
    }
}

#[test]
fn all_and_ideal_schedule_every_device_in_every_round() {
    for policy in ["all", "ideal"] {
        let outcome = run(&config(policy, 12), blobs(20, 600, 90), 2);
        assert_eq!(outcome.scheduled, [12; 12], "{policy}");
    }
}

#[test]
fn references_do_not_depend_on_threads_or_on_a_stop() {
    for (policy, k) in [("all", 12), ("ideal", 12), ("genie-align", 3), ("genie-loss", 3)] {
        let config = config(policy, k);
        let one = run(&config, blobs(20, 600, 90), 1);
        assert_eq!(run(&config, blobs(20, 600, 90), 3), one, "{policy}");
        assert_eq!(resumed(&config, || blobs(20, 600, 90), &Parts::default(), 5), one, "{policy}");
    }
}

#[test]
fn the_genie_of_the_loss_has_the_lowest_loss_after_a_round_of_one_device() {
    // With one device per round the choice is a brute force over all devices: no other policy has a lower
    // training loss.
    let after_one_round = |policy: &str, seed: u64| {
        let mut config = config(policy, 1);
        (config.run.rounds, config.run.seed) = (1, seed);
        let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        simulation.step().unwrap();
        let task: &dyn Task = simulation.fleet.task();
        task.training_loss(simulation.theta()).unwrap()
    };
    for seed in 0..5 {
        let genie = after_one_round("genie-loss", seed);
        for policy in ["bc", "bn2", "bn2-c", "random", "round-robin", "genie-align"] {
            assert!(genie <= after_one_round(policy, seed), "{policy}, seed {seed}");
        }
    }
}

#[test]
fn policies_of_simulations_only_are_refused_on_nodes() {
    for (policy, k) in [("genie-align", 3), ("genie-loss", 3), ("ideal", 12)] {
        let error = Server::of(&config(policy, k).resolve(&Parts::default()).unwrap(), vec![0.0; 50], None)
            .err()
            .unwrap();
        let message = error.to_string();
        assert!(message.starts_with(&format!("schedule.policy: is \"{policy}\", which ")), "{message}");
        assert!(message.ends_with("is for simulations; choose another policy for real nodes"), "{message}");
    }
    assert!(Server::of(&config("all", 12).resolve(&Parts::default()).unwrap(), vec![0.0; 50], None).is_ok());
}

#[test]
fn too_large_a_run_for_a_genie_and_a_scheme_without_effect_are_refused() {
    let problem =
        |config: &Config| Simulation::of(config, blobs(20, 60_000, 90)).err().expect("a refusal").to_string();
    let mut many = config("genie-align", 3);
    (many.data.devices, many.data.samples_per_device) = (1001, 30);
    assert!(problem(&many).contains("is for up to 1000 devices, but data.devices is 1001"));
    (many.schedule.policy, many.data.devices, many.schedule.k) = ("genie-loss".into(), 900, 10);
    assert!(problem(&many).contains("but data.devices · schedule.k is 9000"));
    let mut ideal = config("ideal", 12);
    ideal.compress.scheme = "top-k".into();
    assert!(problem(&ideal).starts_with("compress.scheme: is \"top-k\", which has no effect"));
}

#[test]
fn shares_by_interval_do_not_depend_on_threads_or_on_a_stop() {
    let mut config = config("bc", 3);
    config.learn.aggregate = "by-interval".into();
    let one = run(&config, blobs(20, 600, 90), 1);
    assert_eq!(run(&config, blobs(20, 600, 90), 3), one);
    assert_eq!(resumed(&config, || blobs(20, 600, 90), &Parts::default(), 5), one);
    config.learn.aggregate = "mean".into();
    assert_ne!(run(&config, blobs(20, 600, 90), 1).digest, one.digest);
}

#[test]
fn a_run_that_never_schedules_most_devices_reports_it_with_the_reason() {
    let mut config = config("bn2-c", 2);
    config.data.partition = "quantity".into();
    (config.compress.feedback, config.run.rounds) = ("scheduled".into(), 24);
    // The link of each device is ten times better than that of the next: the first two are always the
    // best.
    config.radio.fading = "static".into();
    let gains: Vec<String> = (0..12).map(|m| format!("{:e}", 100.0 / 10f64.powi(m))).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gains.csv");
    std::fs::write(&path, gains.join("\n")).unwrap();
    config.radio.mean_gains = path.to_str().unwrap().into();
    let outcome = run(&config, blobs(20, 600, 90), 1);
    let heard = outcome.heard();
    assert!(heard < 6, "{:?}", outcome.scheduled);
    let warning = outcome.warnings.iter().find(|warning| warning.starts_with("heard ")).expect("a warning");
    assert!(
        warning.starts_with(&format!("heard {heard}/12: ")) && warning.contains("compress.feedback"),
        "{warning}"
    );
    // A fixed choice is intended, and a fair one schedules all devices.
    for policy in ["fixed", "round-robin"] {
        config.schedule.policy = policy.into();
        let warnings = run(&config, blobs(20, 600, 90), 1).warnings;
        assert!(warnings.iter().all(|warning| !warning.starts_with("heard ")), "{warnings:?}");
    }
}
