//! Who trains, what feedback keeps, how a run ends.

use crate::common::{blobs, small_config};
use fedlink::Error;
use fedlink::compress::Feedback;
use fedlink::learn::optimizer::{OptimizerKind, StateMode};
use fedlink::radio::Channels;
use fedlink::schedule::policy::PolicyKind;
use fedlink::schedule::{Policy, ReportKind, Schedule, everyone};
use fedlink::simulation::Simulation;
use fedlink::units::DeviceId;
use std::ops::ControlFlow;

#[test]
fn only_candidates_train_unless_devices_remember() {
    use OptimizerKind::{Adam, Sgd};
    use StateMode::{Keep, Reset};
    let dataset = blobs(20, 600, 90);
    let trained = |policy, state, optimizer| {
        let mut config = small_config();
        config.schedule.policy = policy;
        config.learn.state = state;
        config.learn.optimizer = optimizer;
        Simulation::new(&config, dataset.clone()).unwrap().step().unwrap().trained
    };
    assert_eq!(trained(PolicyKind::Bc, Reset, Adam), 3);
    assert_eq!(trained(PolicyKind::BcBn2, Reset, Adam), 6);
    assert_eq!(trained(PolicyKind::Bn2, Reset, Adam), 12);
    assert_eq!(trained(PolicyKind::Bc, Keep, Adam), 12);
    // Plain descent remembers nothing, so there is nothing to keep.
    assert_eq!(trained(PolicyKind::Bc, Keep, Sgd), 3);
}

#[test]
fn training_only_the_candidates_changes_nothing_else() {
    // BC with a reset optimiser, against a policy that has everyone train and then picks as BC does.
    struct Wasteful;
    impl Policy for Wasteful {
        fn candidates(&mut self, channels: &Channels, _: usize) -> Vec<DeviceId> {
            everyone(channels)
        }
        fn report(&self) -> ReportKind {
            ReportKind::Nothing
        }
        fn select(&mut self, candidates: &[DeviceId], _: &[f32], channels: &Channels, k: usize) -> Schedule {
            let devices = fedlink::schedule::largest(candidates, k, |m| channels.gains[m]);
            Schedule { devices, weights: vec![1.0; k] }
        }
    }
    for state in [StateMode::Keep, StateMode::Reset] {
        for feedback in [Feedback::Off, Feedback::Scheduled] {
            let mut config = small_config();
            config.schedule.policy = PolicyKind::Bc;
            config.learn.state = state;
            config.compress.feedback = feedback;
            let dataset = blobs(20, 600, 90);
            let mut frugal = Simulation::new(&config, dataset.clone()).unwrap();
            let mut wasteful = Simulation::with_policy(&config, dataset, Box::new(Wasteful)).unwrap();
            frugal.run(&mut ()).unwrap();
            wasteful.run(&mut ()).unwrap();
            assert_eq!(frugal.theta(), wasteful.theta(), "{state:?} {feedback:?}");
        }
    }
}

#[test]
fn with_feedback_nothing_is_lost_only_late() {
    // One device, plain descent, a loss whose gradient barely moves: what was sent and what is still owed add
    // up to the sum of all updates. Checked against a run whose link holds everything twice over.
    let dataset = blobs(20, 600, 90);
    let mut config = small_config();
    config.data.devices = 1;
    config.schedule.k = 1;
    config.schedule.kc = None;
    config.radio.symbols = 20;
    config.learn.optimizer = OptimizerKind::Sgd;
    config.run.rounds = 60;
    let accuracy = |feedback, config: &fedlink::config::Config| {
        let mut config = config.clone();
        config.compress.feedback = feedback;
        Simulation::new(&config, dataset.clone()).unwrap().run(&mut ()).unwrap().final_loss.unwrap()
    };
    let (off, on) = (accuracy(Feedback::Off, &config), accuracy(Feedback::Scheduled, &config));
    assert!(on < off, "loss with feedback {on}, without {off}");
}

#[test]
fn a_link_that_carries_nothing_makes_silent_devices_that_still_count() {
    let mut config = small_config();
    config.radio.symbols = 1;
    config.radio.noise = 1e9;
    let mut simulation = Simulation::new(&config, blobs(20, 600, 90)).unwrap();
    let before = simulation.theta().to_vec();
    let outcome = simulation.run(&mut ()).unwrap();
    assert_eq!(simulation.theta(), before);
    assert_eq!(outcome.silent_transmissions, 12 * 3);
    assert_eq!((outcome.bits_per_round, outcome.mean_q), (0.0, 0.0));
    assert_eq!(simulation.rows().iter().map(|row| row.silent_devices).sum::<u64>(), 36);
}

#[test]
fn evaluated_rounds_are_every_so_many_and_the_last() {
    let mut simulation = Simulation::new(&small_config(), blobs(20, 600, 90)).unwrap();
    simulation.run(&mut ()).unwrap();
    let rounds: Vec<u64> = simulation.rows().iter().map(|row| row.round).collect();
    assert_eq!(rounds, [5, 10, 12]);
}

#[test]
fn the_worst_average_power_is_the_busiest_device_s() {
    let mut config = small_config();
    config.schedule.k = 4;
    config.radio.power = 2.0;
    let mut simulation = Simulation::new(&config, blobs(20, 600, 90)).unwrap();
    let mut times = vec![0u32; 12];
    let outcome = simulation
        .run(&mut |record: &fedlink::record::RoundRecord| {
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
fn an_observer_can_end_a_run_and_keep_what_is_there() {
    let mut simulation = Simulation::new(&small_config(), blobs(20, 600, 90)).unwrap();
    let outcome = simulation
        .run(&mut |record: &fedlink::record::RoundRecord| {
            if record.round == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(outcome.rounds, 7);
    assert_eq!(simulation.rows().len(), 1);
}

#[test]
fn divergence_is_an_error_that_names_the_round() {
    let mut config = small_config();
    config.learn.optimizer = OptimizerKind::Sgd;
    config.learn.rate = Some(1e30);
    let error = Simulation::new(&config, blobs(20, 600, 90)).unwrap().run(&mut ()).unwrap_err();
    assert!(matches!(error, Error::Diverged { round: 1..=5, .. }), "{error}");
}

#[test]
fn a_policy_that_breaks_its_contract_is_an_error_not_a_panic() {
    struct Rogue(Vec<u32>, Vec<u32>, Vec<f64>);
    impl Policy for Rogue {
        fn candidates(&mut self, _: &Channels, _: usize) -> Vec<DeviceId> {
            self.0.iter().copied().map(DeviceId).collect()
        }
        fn report(&self) -> ReportKind {
            ReportKind::Norm
        }
        fn select(&mut self, _: &[DeviceId], _: &[f32], _: &Channels, _: usize) -> Schedule {
            Schedule { devices: self.1.iter().copied().map(DeviceId).collect(), weights: self.2.clone() }
        }
    }
    let good = vec![0, 1, 2, 3];
    let cases = [
        (Rogue(vec![0, 1], vec![], vec![]), "2 candidates, but K = 3"),
        (Rogue(vec![0, 1, 12], vec![], vec![]), "candidate 12 does not exist"),
        (Rogue(vec![0, 1, 1], vec![], vec![]), "candidate 1 is named twice"),
        (Rogue(good.clone(), vec![0, 1], vec![1.0; 2]), "2 devices and 2 weights"),
        (Rogue(good.clone(), vec![0, 1, 1], vec![1.0; 3]), "device 1 is scheduled twice"),
        (Rogue(good.clone(), vec![0, 1, 5], vec![1.0; 3]), "device 5 is scheduled but was no candidate"),
        (Rogue(good.clone(), vec![0, 1, 2], vec![1.0, f64::NAN, 1.0]), "a weight is NaN"),
        (Rogue(good, vec![0, 1, 2], vec![1.0, -1.0, 1.0]), "a weight is -1"),
    ];
    for (rogue, problem) in cases {
        let mut simulation =
            Simulation::with_policy(&small_config(), blobs(20, 600, 90), Box::new(rogue)).unwrap();
        let message = simulation.step().unwrap_err().to_string();
        assert!(message.contains(problem), "{message:?} does not say {problem:?}");
    }
}

#[test]
fn a_policy_may_pick_someone_whose_update_was_not_kept() {
    // The smallest reports instead of the largest: none of them is in the set of the best.
    struct Worst;
    impl Policy for Worst {
        fn candidates(&mut self, channels: &Channels, _: usize) -> Vec<DeviceId> {
            everyone(channels)
        }
        fn report(&self) -> ReportKind {
            ReportKind::Norm
        }
        fn select(&mut self, candidates: &[DeviceId], reports: &[f32], _: &Channels, k: usize) -> Schedule {
            let devices = fedlink::schedule::largest(candidates, k, |m| -f64::from(reports[m]));
            Schedule { devices, weights: vec![1.0; k] }
        }
    }
    let run = |momentum| {
        let mut config = small_config();
        config.learn.optimizer = OptimizerKind::Sgd;
        config.learn.momentum = momentum;
        let mut simulation = Simulation::with_policy(&config, blobs(20, 600, 90), Box::new(Worst)).unwrap();
        simulation.run(&mut ()).unwrap();
        simulation.theta().to_vec()
    };
    // A momentum too small to change a digit makes every device remember, and so every update be kept.
    assert_eq!(run(0.0), run(1e-30));
}
