//! Tasks of one's own, and rounds put together from the parts of a system.

use crate::common::{blobs, small_config};
use fedlink::compress::SparseUpdate;
use fedlink::config::Config;
use fedlink::learn::optimizer::StateMode;
use fedlink::learn::task::Task;
use fedlink::radio::slots::split_slots;
use fedlink::record::Evaluation;
use fedlink::round::System;
use fedlink::schedule::policy::{PolicyKind, policy};
use fedlink::simulation::{OwnParts, Simulation};
use fedlink::units::{Bits, DeviceId};

const POLICIES: [PolicyKind; 4] = [PolicyKind::Bc, PolicyKind::Bn2, PolicyKind::BcBn2, PolicyKind::Bn2C];

fn config(kind: PolicyKind) -> Config {
    let mut config = small_config();
    config.learn.state = StateMode::Reset;
    config.schedule.policy = kind;
    config
}

/// The library's own training as if it were somebody else's.
struct Borrowed {
    system: System,
    in_turn: bool,
}

impl Task for Borrowed {
    fn theta0(&self) -> Vec<f32> {
        self.system.theta0()
    }

    fn size_of(&self, _: DeviceId) -> usize {
        30
    }

    fn train(&self, theta: &[f32], round: u64, device: DeviceId, update: &mut [f32]) -> f64 {
        let (delta, loss) = self.system.update(theta, round, device);
        update.copy_from_slice(&delta);
        loss
    }

    fn evaluate(&self, theta: &[f32]) -> Evaluation {
        self.system.evaluate(theta)
    }

    fn in_turn(&self) -> bool {
        self.in_turn
    }
}

#[test]
fn a_task_that_trains_as_the_library_does_has_its_digest() {
    let dataset = blobs(20, 600, 90);
    for kind in POLICIES {
        let config = config(kind);
        let built_in = Simulation::new(&config, dataset.clone()).unwrap().run(&mut ()).unwrap();
        for in_turn in [false, true] {
            let task = Borrowed { system: System::new(&config, dataset.clone()).unwrap(), in_turn };
            let mut own = Simulation::with_parts(&config, task, OwnParts::default()).unwrap();
            assert_eq!(own.run(&mut ()).unwrap().digest, built_in.digest, "{kind:?}, in turn: {in_turn}");
        }
    }
}

#[test]
fn rounds_put_together_from_the_parts_of_a_system_lead_to_the_same_model() {
    let dataset = blobs(20, 600, 90);
    for kind in POLICIES {
        let config = config(kind);
        let mut simulation = Simulation::new(&config, dataset.clone()).unwrap();
        simulation.run(&mut ()).unwrap();
        let system = System::new(&config, dataset.clone()).unwrap();
        assert!(!system.remembers());
        let mut policy = policy(kind, config.kc() as usize);
        let mut theta = system.theta0();
        for t in 0..config.run.rounds {
            let channels = system.channels(t);
            let candidates = policy.candidates(&channels, system.k);
            let update = |device: DeviceId| system.update(&theta, t, device).0;
            let report = |&device: &DeviceId| system.report(policy.report(), &update(device), t, device);
            let reports: Vec<f32> = candidates.iter().map(report).collect();
            let schedule = policy.select(&candidates, &reports, &channels, system.k);
            let capacities: Vec<f64> = schedule.devices.iter().map(|&m| channels.capacity(m)).collect();
            let slots = split_slots(&schedule.weights, &capacities, system.symbols, system.slots);
            let send = |i: usize| {
                let device = schedule.devices[i];
                let budget = Bits(slots[i].0 * capacities[i]);
                system.compress(&update(device), budget, t, device).1
            };
            let sent: Vec<SparseUpdate> = (0..system.k).map(send).collect();
            system.aggregate(&mut theta, &schedule.devices, &sent);
        }
        let same = theta.iter().zip(simulation.theta()).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{kind:?}");
    }
}

#[test]
fn a_system_says_whether_its_devices_remember() {
    let mut config = config(PolicyKind::Bc);
    config.learn.state = StateMode::Keep;
    assert!(System::new(&config, blobs(20, 600, 90)).unwrap().remembers());
}

#[test]
fn a_task_that_starts_nowhere_is_refused() {
    struct Start(Vec<f32>);
    impl Task for Start {
        fn theta0(&self) -> Vec<f32> {
            self.0.clone()
        }
        fn size_of(&self, _: DeviceId) -> usize {
            1
        }
        fn train(&self, _: &[f32], _: u64, _: DeviceId, _: &mut [f32]) -> f64 {
            0.0
        }
        fn evaluate(&self, _: &[f32]) -> Evaluation {
            Evaluation { accuracy: 0.0, loss: 0.0 }
        }
    }
    for (theta0, problem) in [(vec![], "empty"), (vec![0.0, f32::NAN], "NaN in entry 1")] {
        let result = Simulation::with_parts(&config(PolicyKind::Bc), Start(theta0), OwnParts::default());
        let message = result.map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(problem), "{message}");
    }
}
