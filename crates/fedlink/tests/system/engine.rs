//! The devices that train, the state of error feedback, and the end of a run.

use crate::common::{blobs, small_config};
use fedlink::learn::optimizer::StateMode;
use fedlink::prelude::*;
use fedlink::schedule::largest;
use std::ops::ControlFlow;

#[test]
fn only_candidates_train_unless_devices_keep_state() {
    use StateMode::{Keep, Reset};
    let dataset = blobs(20, 600, 90);
    let trained = |policy: &str, state, optimizer: &str| {
        let mut config = small_config();
        config.schedule.policy = policy.into();
        config.learn.state = state;
        config.learn.optimizer = optimizer.into();
        Simulation::of(&config, dataset.clone()).unwrap().step().unwrap().training.devices
    };
    assert_eq!(trained("bc", Reset, "adam"), 3);
    assert_eq!(trained("bc-bn2", Reset, "adam"), 6);
    assert_eq!(trained("bn2", Reset, "adam"), 12);
    assert_eq!(trained("bc", Keep, "adam"), 12);
    // Plain descent has no state, so there is nothing to keep.
    assert_eq!(trained("bc", Keep, "sgd"), 3);
}

#[test]
fn training_only_the_candidates_does_not_change_the_results() {
    // BC with a reset optimizer, compared with a policy in which all devices train and which then selects
    // as BC does.
    struct Wasteful;
    impl Persist for Wasteful {}
    impl Policy for Wasteful {
        fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
            view.everyone()
        }
        fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
            Schedule::equal(largest(&reports.devices, view.k, |m| view.links.gains[m]))
        }
    }
    let parts = Parts::default().policy("wasteful", "this test", |_, _| Ok(Box::new(Wasteful)));
    for state in [StateMode::Keep, StateMode::Reset] {
        for feedback in ["off", "scheduled"] {
            let mut config = small_config();
            config.schedule.policy = "bc".into();
            config.learn.state = state;
            config.compress.feedback = feedback.into();
            let dataset = blobs(20, 600, 90);
            let mut frugal = Simulation::of(&config, dataset.clone()).unwrap();
            config.schedule.policy = "wasteful".into();
            let mut wasteful = Simulation::with_parts(&config, dataset, &parts).unwrap();
            frugal.run(|_| ()).unwrap();
            wasteful.run(|_| ()).unwrap();
            assert_eq!(frugal.theta(), wasteful.theta(), "{state:?} {feedback:?}");
        }
    }
}

#[test]
fn with_feedback_every_entry_is_sent_sooner_or_later() {
    // One device, plain descent, a loss whose gradient is almost constant: the sent updates and the
    // residual add up to the sum of all updates. The reference is a run whose link holds twice the whole
    // update.
    let dataset = blobs(20, 600, 90);
    let mut config = small_config();
    config.data.devices = 1;
    config.schedule.k = 1;
    config.radio.symbols = 20;
    config.learn.optimizer = "sgd".into();
    config.run.rounds = 60;
    let accuracy = |feedback: &str, config: &fedlink::spec::Config| {
        let mut config = config.clone();
        config.compress.feedback = feedback.into();
        Simulation::of(&config, dataset.clone()).unwrap().run(|_| ()).unwrap().final_loss.unwrap()
    };
    let (off, on) = (accuracy("off", &config), accuracy("scheduled", &config));
    assert!(on < off, "loss with feedback {on}, without {off}");
}

#[test]
fn devices_on_a_link_without_capacity_are_silent_and_count_as_zero() {
    let mut config = small_config();
    config.radio.symbols = 1;
    config.radio.noise = 1e9;
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    let before = simulation.theta().to_vec();
    let outcome = simulation.run(|_| ()).unwrap();
    assert_eq!(simulation.theta(), before);
    assert_eq!(outcome.silent_transmissions, 12 * 3);
    assert_eq!((outcome.bits_per_round, outcome.mean_q), (0.0, 0.0));
    assert_eq!(simulation.rows().iter().map(|row| row.silent_devices).sum::<u64>(), 36);
}

#[test]
fn rounds_are_evaluated_at_the_interval_and_at_the_end() {
    let mut simulation = Simulation::of(&small_config(), blobs(20, 600, 90)).unwrap();
    simulation.run(|_| ()).unwrap();
    let rounds: Vec<u64> = simulation.rows().iter().map(|row| row.round).collect();
    assert_eq!(rounds, [5, 10, 12]);
}

#[test]
fn the_worst_average_power_is_that_of_the_most_scheduled_device() {
    let mut config = small_config();
    config.schedule.k = 4;
    config.radio.power = 2.0;
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    let mut times = vec![0u32; 12];
    let outcome = simulation
        .run(|record: &fedlink::record::RoundRecord| {
            record.transmissions.iter().for_each(|sent| times[sent.device.index()] += 1);
            ControlFlow::Continue(())
        })
        .unwrap();
    // P = M·P̄/K = 6, spent in the rounds the device was scheduled in.
    let worst = f64::from(*times.iter().max().unwrap());
    assert!((outcome.worst_average_power.0 - 6.0 * worst / 12.0).abs() < 1e-12);
    assert_eq!(outcome.scheduled, times);
    assert_eq!(f64::from(times[outcome.worst_device.index()]), worst);
}

#[test]
fn an_observer_can_end_a_run_and_keep_its_records() {
    let mut simulation = Simulation::of(&small_config(), blobs(20, 600, 90)).unwrap();
    let outcome = simulation
        .run(
            |record: &fedlink::record::RoundRecord| {
                if record.round == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        )
        .unwrap();
    assert_eq!(outcome.rounds, 7);
    assert_eq!(simulation.rows().len(), 1);
}

#[test]
fn divergence_is_an_error_that_names_the_round() {
    let mut config = small_config();
    config.learn.optimizer = "sgd".into();
    config.learn.rate = Some(1e30);
    let error = Simulation::of(&config, blobs(20, 600, 90)).unwrap().run(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Diverged { round: 1..=5, .. }), "{error}");
}

#[test]
fn a_policy_may_schedule_a_device_whose_update_was_not_kept() {
    // The smallest reports instead of the largest: none of them is in the set of the best.
    struct Worst;
    impl Persist for Worst {}
    impl Policy for Worst {
        fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
            view.everyone()
        }
        fn asks(&self) -> &[Ask] {
            &[Ask::Norm]
        }
        fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
            Schedule::equal(largest(&reports.devices, view.k, |m| -f64::from(reports.first(m))))
        }
    }
    let parts = Parts::default().policy("worst", "this test", |_, _| Ok(Box::new(Worst)));
    let run = |momentum: f64| {
        let mut config = small_config();
        config.schedule.policy = "worst".into();
        config.learn.optimizer = "sgd".into();
        config.set("learn.sgd.momentum", momentum).unwrap();
        let mut simulation = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
        simulation.run(|_| ()).unwrap();
        simulation.theta().to_vec()
    };
    // With a momentum too small to change a digit, every device keeps state, so every update is kept.
    assert_eq!(run(0.0), run(1e-30));
}

#[test]
fn computing_the_cost_of_a_round_changes_nothing() {
    for policy in ["bc", "bn2", "random", "round-robin"] {
        let mut config = small_config();
        config.schedule.policy = policy.into();
        config.defense.participation_cap = true;
        config.learn.state = StateMode::Reset;
        let whole = Simulation::of(&config, blobs(20, 600, 90)).unwrap().run(|_| ()).unwrap();
        let mut asked = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        while asked.rounds_done() < config.run.rounds {
            let needs = asked.needs().unwrap();
            assert_eq!(needs.dim, asked.theta().len());
            assert_eq!(needs, asked.needs().unwrap());
            let record = asked.step().unwrap();
            assert_eq!(needs.trained, record.training.devices, "{policy}");
        }
        assert_eq!(asked.outcome(), whole, "{policy}");
    }
}

#[test]
fn the_cost_of_a_round_follows_the_calls_of_a_custom_policy() {
    struct Three;
    impl Persist for Three {}
    impl Policy for Three {
        fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
            view.everyone().into_iter().take(3).collect()
        }
        fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
            let picks = reports.devices.iter().take(view.k).map(|&device| Pick::new(device, 1.0));
            Schedule::new(picks.collect())
        }
    }
    let parts = Parts::default().policy("three", "this test", |_, _| Ok(Box::new(Three)));
    let mut config = small_config();
    config.schedule.policy = "three".into();
    config.schedule.k = 2;
    config.learn.state = StateMode::Reset;
    let mut simulation = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
    assert_eq!(simulation.needs().unwrap().trained, 3);
    assert_eq!(simulation.step().unwrap().training.devices, 3);
}

#[test]
fn weights_that_are_all_zero_are_reported_once_and_mean_equal_shares() {
    struct Weightless(f64);
    impl Persist for Weightless {}
    impl Policy for Weightless {
        fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
            view.everyone().into_iter().take(view.k).collect()
        }
        fn select(&mut self, _: &View, reports: &Reports) -> Schedule {
            Schedule::new(reports.devices.iter().map(|&device| Pick::new(device, self.0)).collect())
        }
    }
    let run = |weight: f64| {
        let parts =
            Parts::default().policy("mine", "this test", move |_, _| Ok(Box::new(Weightless(weight))));
        let mut config = small_config();
        config.schedule.policy = "mine".into();
        let mut simulation = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
        let mut warnings = simulation.run(|_| ()).unwrap().warnings;
        warnings.retain(|warning| !warning.starts_with("heard "));
        (simulation.theta().to_vec(), warnings)
    };
    let (zeros, ones) = (run(0.0), run(1.0));
    assert_eq!(zeros.0, ones.0);
    let warning = "in 12 rounds every bit weight of policy mine was 0, and the bits were shared equally";
    assert_eq!((zeros.1, ones.1), (vec![warning.to_owned()], vec![]));
}
