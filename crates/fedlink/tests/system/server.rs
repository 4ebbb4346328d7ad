//! The aggregation at the server: weights, server rate, momentum; and policies that sample or take turns.

use crate::common::{blobs, resumed, run, run_with, small_config};
use fedlink::learn::optimizer::StateMode;
use fedlink::prelude::*;

fn config(policy: &str) -> Config {
    let mut config = small_config();
    config.learn.state = StateMode::Reset;
    config.schedule.policy = policy.into();
    config
}

fn after_one_round(config: &Config) -> Vec<f32> {
    let mut simulation = Simulation::of(config, blobs(20, 600, 90)).unwrap();
    simulation.step().unwrap();
    simulation.theta().to_vec()
}

/// BC with the weights that a test gives.
struct Shared(Weight);

impl Persist for Shared {}

impl Policy for Shared {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        fedlink::schedule::largest(&view.everyone(), view.k, |m| view.links.gains[m])
    }

    fn select(&mut self, _: &View, reports: &Reports) -> Schedule {
        let pick = |&device: &DeviceId| Pick::new(device, 1.0).with_weight(self.0);
        Schedule::new(reports.devices.iter().map(pick).collect())
    }
}

/// Records and model of a run with these weights.
fn with_share(weight: Weight, change: impl Fn(&mut Config)) -> (Vec<RoundRecord>, Vec<f32>) {
    let parts = Parts::default().policy("shared", "this test", move |_, _| Ok(Box::new(Shared(weight))));
    let mut config = config("shared");
    change(&mut config);
    let mut simulation = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
    let records = (0..config.run.rounds).map(|_| simulation.step().unwrap()).collect();
    (records, simulation.theta().to_vec())
}

#[test]
fn shares_of_one_kth_are_the_mean_to_the_bit() {
    for k in [1, 3, 4, 7, 12] {
        let change = |config: &mut Config| config.schedule.k = k;
        let (rule, theta) = with_share(Weight::Rule, change);
        let (mut weighted, same) = with_share(Weight::Own(1.0 / k as f64), change);
        assert!(theta.iter().zip(&same).all(|(a, b)| a.to_bits() == b.to_bits()), "K = {k}");
        for sent in weighted.iter_mut().flat_map(|record| &mut record.transmissions) {
            assert_eq!(sent.weight.take(), Some(1.0 / k as f64));
        }
        assert_eq!(weighted, rule, "but for the weights the records are the same");
    }
}

#[test]
fn a_share_counts_independently_of_the_others_and_zero_has_no_effect() {
    let one_round = |config: &mut Config| config.run.rounds = 1;
    let start = Simulation::of(&config("bc"), blobs(20, 600, 90)).unwrap().theta().to_vec();
    assert_eq!(with_share(Weight::Own(0.0), one_round).1, start);
    let moved = |weight: f64| -> Vec<f64> {
        let (_, theta) = with_share(Weight::Own(weight), one_round);
        theta.iter().zip(&start).map(|(a, b)| f64::from(a - b)).collect()
    };
    let (one, four) = (moved(0.25), moved(1.0));
    assert!(one.iter().any(|step| *step != 0.0));
    for (one, four) in one.iter().zip(&four) {
        assert!((4.0 * one - four).abs() < 1e-6, "{four} is not four times {one}");
    }
}

#[test]
fn the_server_rate_scales_the_first_step() {
    let (full, half) = (config("bc"), {
        let mut config = config("bc");
        config.learn.server_rate = 0.5;
        config
    });
    let start = Simulation::of(&full, blobs(20, 600, 90)).unwrap().theta().to_vec();
    let (full, half) = (after_one_round(&full), after_one_round(&half));
    let mut moved = 0;
    for ((start, full), half) in start.iter().zip(&full).zip(&half) {
        let (full, half) = (f64::from(full - start), f64::from(half - start));
        assert!((full - 2.0 * half).abs() < 1e-6, "{full} is not twice {half}");
        moved += usize::from(full != 0.0);
    }
    assert!(moved > 0);
}

#[test]
fn momentum_equals_plain_addition_in_the_first_round_and_is_faster_after() {
    let mut momentum = config("bc");
    momentum.learn.server_optimizer = "momentum".into();
    assert_eq!(after_one_round(&momentum), after_one_round(&config("bc")));
    assert_ne!(
        run(&momentum, blobs(20, 600, 90), 1).digest,
        run(&config("bc"), blobs(20, 600, 90), 1).digest
    );
    // β = 0 keeps no state: the sum is the step.
    momentum.set("learn.server.momentum.beta", 0.0).unwrap();
    let plain = run(&config("bc"), blobs(20, 600, 90), 1);
    let forgetful = run(&momentum, blobs(20, 600, 90), 1);
    assert_eq!(forgetful.final_accuracy, plain.final_accuracy);
    let far = (forgetful.final_loss.unwrap() - plain.final_loss.unwrap()).abs();
    assert!(far < 1e-5, "{far}");
}

#[test]
fn momentum_is_resumed_from_a_checkpoint_and_the_same_on_any_threads() {
    for (policy, aggregate) in [("bn2", "mean"), ("random", "trimmed-mean")] {
        let mut config = config(policy);
        config.learn.server_optimizer = "momentum".into();
        (config.learn.aggregate, config.learn.server_rate) = (aggregate.into(), 0.7);
        let one = run(&config, blobs(20, 600, 90), 1);
        assert_eq!(run(&config, blobs(20, 600, 90), 3), one);
        for cut in [1, 6, 11] {
            assert_eq!(resumed(&config, || blobs(20, 600, 90), &Parts::default(), cut), one, "after {cut}");
        }
    }
}

#[test]
fn random_and_round_robin_are_the_same_on_any_threads_and_after_a_checkpoint() {
    for policy in ["random", "round-robin"] {
        for state in [StateMode::Keep, StateMode::Reset] {
            let mut config = config(policy);
            config.learn.state = state;
            let one = run(&config, blobs(20, 600, 90), 1);
            assert_eq!(run(&config, blobs(20, 600, 90), 3), one, "{policy}");
            for cut in [2, 7] {
                let resumed = resumed(&config, || blobs(20, 600, 90), &Parts::default(), cut);
                assert_eq!(resumed, one, "{policy}, after {cut} rounds");
            }
            config.run.seed = 9;
            assert_ne!(run(&config, blobs(20, 600, 90), 1).digest, one.digest, "{policy}");
        }
    }
}

#[test]
fn round_robin_spends_the_same_power_on_every_device() {
    // 12 rounds of 3 out of 12 devices: three turns each, and the allowed average power.
    let outcome = run(&config("round-robin"), blobs(20, 600, 90), 2);
    assert_eq!(outcome.scheduled, [3; 12]);
    assert!(
        outcome.average_power.iter().all(|power| (power - 1.0).abs() < 1e-12),
        "{:?}",
        outcome.average_power
    );
    assert!((outcome.worst_average_power.0 - 1.0).abs() < 1e-12);
}

#[test]
fn an_excluded_device_loses_its_turn_and_others_are_sampled() {
    for (policy, loses) in [("random", false), ("round-robin", true)] {
        let mut config = config(policy);
        (config.adversary.share, config.adversary.kind) = (0.5, "not-a-number".into());
        // Enough symbols that no device is silent, since silence is allowed.
        (config.radio.symbols, config.run.rounds) = (3000, 30);
        (config.defense.audit, config.defense.strikes) = (true, 1);
        let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        let outcome = simulation.run(|_| ()).unwrap();
        assert_eq!(outcome.excluded.len(), 6, "{policy}");
        for device in &outcome.excluded {
            assert_eq!(outcome.scheduled[device.index()], 1, "{policy}: struck out at once");
        }
        let sent: u32 = outcome.scheduled.iter().sum();
        assert_eq!(sent < 90, loses, "{policy}: {sent} of 90 turns");
    }
}

#[test]
fn an_unbiased_share_of_a_random_choice_is_one_over_m_times_its_probability() {
    /// K devices at random, each counting 1/(M·p) = 1/K.
    struct Unbiased;
    impl Persist for Unbiased {}
    impl Policy for Unbiased {
        fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
            fedlink::schedule::policy::Random {}.candidates(view)
        }
        fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
            let p = view.k as f64 / view.links.devices() as f64;
            let weight = Weight::Own(1.0 / (view.links.devices() as f64 * p));
            let pick = |&device: &DeviceId| Pick::new(device, 1.0).with_weight(weight);
            Schedule::new(reports.devices.iter().map(pick).collect())
        }
    }
    let parts = Parts::default().policy("unbiased", "this test", |_, _| Ok(Box::new(Unbiased)));
    let ours = run_with(&config("unbiased"), blobs(20, 600, 90), &parts, 1);
    let theirs = run(&config("random"), blobs(20, 600, 90), 1);
    assert_eq!((ours.final_loss, ours.scheduled), (theirs.final_loss, theirs.scheduled));
    assert_ne!(ours.digest, theirs.digest, "the weights are part of the digest");
}
