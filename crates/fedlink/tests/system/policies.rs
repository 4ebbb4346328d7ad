//! Whole runs of every policy.

use super::common::{blobs, run, small_config};
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::DeviceId;
use fedlink::learn::task::{Evaluation, Job, Task, TaskError};
use fedlink::parts::Kind;
use fedlink::schedule::Policy;
use fedlink::spec::Config;
use fedlink::system::simulation::Simulation;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Every policy of the registry, and variants of some with other state, each with a small run.
fn runs() -> Vec<(String, Config)> {
    let named = |name: &str| {
        let mut config = small_config();
        config.schedule.policy = name.into();
        // Some schedule all devices or none.
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
        let mut first = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        (0..5).for_each(|_| drop(first.step().unwrap()));
        let mut saved = Vec::new();
        first.checkpoint(&mut saved).unwrap();
        let mut second = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        second.restore(Cursor::new(&saved)).unwrap();
        assert_eq!(second.run(|_| ()).unwrap(), whole, "{name} resumed");
    }
}

#[test]
fn divfl_first_schedules_every_device_and_its_shares_add_up_to_1() {
    let mut config = small_config();
    config.schedule.policy = "divfl".into();
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for t in 0..12 {
        let record = simulation.step().unwrap();
        let sent: Vec<u32> = record.transmissions.iter().map(|sent| sent.device.0).collect();
        // 12 devices, three of which are new in each of the first four rounds.
        if t < 4 {
            assert!(sent.iter().all(|device| seen.insert(*device)), "round {t}: {sent:?}");
        }
        let weights: f64 = record.transmissions.iter().filter_map(|sent| sent.weight).sum();
        assert!((weights - 1.0).abs() < 1e-12, "{weights}");
    }
    assert_eq!(seen.len(), 12);
}

/// Random updates, and their number.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Task for Counting {
    fn theta0(&self) -> Vec<f32> {
        vec![0.0; 40]
    }

    fn samples(&self, device: DeviceId) -> usize {
        10 + device.index()
    }

    fn train(&self, job: Job) -> Result<f64, TaskError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let mut rng = stream(2, Purpose::Test, job.t, u64::from(job.device.0));
        let length = 0.1 + rng.exponential();
        job.update.iter_mut().for_each(|entry| *entry = (length * rng.normal()) as f32);
        Ok(length)
    }

    fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError> {
        Ok(Evaluation::new(0.0, f64::from(theta[0].abs())))
    }
}

#[test]
fn no_device_trains_twice_in_a_round_also_with_reports_of_eight_bits() {
    for (name, mut config) in runs() {
        for bits in [0, 8] {
            config.schedule.report_bits = bits;
            let task = Counting::default();
            let Ok(mut simulation) = Simulation::of(&config, task.clone()) else {
                // It needs the loss on all training data, or reports that no device has.
                assert!(bits > 0 || name == "genie-loss", "{name}");
                continue;
            };
            for round in 0..12 {
                let before = task.0.load(Ordering::Relaxed);
                let record = simulation.step().unwrap();
                let trained = task.0.load(Ordering::Relaxed) - before;
                assert_eq!(trained, record.training.devices, "{name}, {bits} bits, round {round}");
            }
        }
    }
}
