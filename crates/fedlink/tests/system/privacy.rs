//! Noise for privacy: the influence of one device, the noise, the accounting, and refused settings.

use crate::common::{blobs, resumed, run, small_config};
use fedlink::base::rng::{Purpose, stream};
use fedlink::prelude::*;
use fedlink::privacy::accountant::{epsilon, limited, overflow};

const DIM: usize = 300;

/// Random updates of very different norms; those of `silent` are zero.
struct Updates {
    silent: Option<DeviceId>,
    scale: f32,
}

impl Task for Updates {
    fn theta0(&self) -> Vec<f32> {
        vec![0.0; DIM]
    }

    fn samples(&self, _: DeviceId) -> usize {
        1
    }

    fn train(&self, job: Job) -> Result<f64, TaskError> {
        let mut rng = stream(5, Purpose::Test, job.t, job.device.0.into());
        let scale = if self.silent == Some(job.device) { 0.0 } else { self.scale };
        let size = scale * 10f32.powi(job.device.0 as i32 % 5 - 2);
        job.update.iter_mut().for_each(|entry| *entry = size * rng.normal() as f32);
        Ok(1.0)
    }

    fn evaluate(&self, _: &[f32]) -> Result<Evaluation, TaskError> {
        Ok(Evaluation::new(0.5, 1.0))
    }
}

fn private(policy: &str) -> Config {
    let mut config = small_config();
    config.schedule.policy = policy.into();
    config.schedule.k = if policy == "poisson" { 12 } else { 3 };
    config.radio.symbols = 2000;
    config.defense.clip = fedlink::aggregate::Clip::Norm(0.5);
    config.privacy.noise = 2.0;
    config
}

fn after_one_round(config: &Config, task: Updates) -> (Vec<f32>, RoundRecord) {
    let mut simulation = Simulation::of(config, task).unwrap();
    let record = simulation.step().unwrap();
    (simulation.theta().to_vec(), record)
}

#[test]
fn a_device_that_sends_zero_changes_the_sum_by_at_most_the_clip() {
    for (policy, count) in [("random", 3.0), ("bc", 3.0), ("round-robin", 3.0), ("poisson", 6.0)] {
        let mut largest = 0.0f64;
        for seed in 0..10 {
            let mut config = private(policy);
            config.run.seed = seed;
            let (all, record) = after_one_round(&config, Updates { silent: None, scale: 1.0 });
            for device in DeviceId::all(12) {
                let (without, other) = after_one_round(&config, Updates { silent: Some(device), scale: 1.0 });
                let difference: f64 = all.iter().zip(&without).map(|(a, b)| f64::from(a - b).powi(2)).sum();
                // The noise is that of the round, and the sum is divided by 3, or by q·M = 6.
                let of_sum = difference.sqrt() * count;
                assert!(of_sum <= 0.5 * (1.0 + 1e-4), "{policy}, device {device}: {of_sum}");
                largest = largest.max(of_sum);
                let scheduled = |record: &RoundRecord| -> Vec<DeviceId> {
                    record.transmissions.iter().map(|sent| sent.device).collect()
                };
                assert_eq!(scheduled(&record), scheduled(&other));
                assert!(scheduled(&record).contains(&device) || of_sum == 0.0, "{policy}");
            }
        }
        // Large updates reach the bound.
        assert!((largest - 0.5).abs() < 1e-4, "{policy}: {largest}");
    }
}

#[test]
fn the_noise_has_the_deviation_of_the_clip_also_in_rounds_without_devices() {
    for (policy, rate, weight) in [("random", None, 1.0 / 3.0), ("poisson", Some(0.02), 1.0 / (0.02 * 12.0))]
    {
        let mut config = private(policy);
        if let Some(rate) = rate {
            config.set("schedule.poisson.rate", rate).unwrap();
        }
        let mut simulation = Simulation::of(&config, Updates { silent: None, scale: 0.0 }).unwrap();
        let (mut before, mut sum, mut count, mut empty) = (vec![0.0; DIM], 0.0, 0.0, 0);
        for _ in 0..12 {
            let record = simulation.step().unwrap();
            empty += usize::from(record.transmissions.is_empty());
            for (now, before) in simulation.theta().iter().zip(&before) {
                sum += f64::from(now - before).powi(2);
                count += 1.0;
            }
            before = simulation.theta().to_vec();
        }
        assert_eq!(empty > 0, policy == "poisson", "{policy}: {empty} rounds without devices");
        // (weight·z·S)², within five deviations of a mean of squares.
        let variance: f64 = weight * weight * (2.0 * 0.5) * (2.0 * 0.5);
        assert!(
            (sum / count / variance - 1.0).abs() < 5.0 * (2.0f64 / count).sqrt(),
            "{policy}: {}",
            sum / count
        );
    }
}

#[test]
fn slots_under_poisson_sampling_do_not_depend_on_the_sample() {
    let mut config = private("poisson");
    config.schedule.k = 7;
    let mut simulation = Simulation::of(&config, Updates { silent: None, scale: 1.0 }).unwrap();
    let mut sizes = std::collections::BTreeSet::new();
    for _ in 0..12 {
        let record = simulation.step().unwrap();
        sizes.insert(record.transmissions.len());
        for sent in &record.transmissions {
            // ⌊2000/7⌋.
            assert_eq!(sent.symbols.0, 285.0);
            assert!((sent.budget.0 - 285.0 * sent.capacity).abs() < 1e-9);
            assert_eq!(sent.weight, Some(1.0 / (7.0 / 24.0 * 12.0)));
        }
    }
    assert!(sizes.len() > 2, "{sizes:?}");
}

#[test]
fn epsilon_is_that_of_the_accountant_at_every_evaluation() {
    for policy in ["random", "bc", "poisson"] {
        let config = private(policy);
        let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        let mut counts = [0u64; 12];
        while simulation.rounds_done() < 12 {
            let record = simulation.step().unwrap();
            record.transmissions.iter().for_each(|sent| counts[sent.device.index()] += 1);
            let Some(evaluation) = &record.evaluation else { continue };
            let expected = match policy {
                "poisson" => epsilon(record.round, 0.5, 2.0, 1e-5),
                _ => epsilon(*counts.iter().max().unwrap(), 1.0, 2.0, 1e-5),
            };
            assert_eq!(evaluation.metrics, [("epsilon".to_owned(), expected.value)], "{policy}");
        }
        let privacy = simulation.outcome().privacy.unwrap();
        assert_eq!(privacy.epsilon, Some(simulation.rows().last().unwrap().metrics[0].1));
        assert_eq!(privacy.rate, (policy == "poisson").then_some(0.5));
    }
}

#[test]
fn samples_beyond_the_slots_are_charged_to_delta() {
    let mut config = private("poisson");
    (config.schedule.k, config.privacy.noise) = (11, 5.0);
    config.set("schedule.poisson.rate", 0.05).unwrap();
    let mut simulation = Simulation::of(&config, Updates { silent: None, scale: 1.0 }).unwrap();
    let privacy = simulation.run(|_| ()).unwrap().privacy.unwrap();
    // The probability that all twelve devices are sampled is 0.05¹².
    assert!((overflow(12, 0.05, 11) / 0.05f64.powi(12) - 1.0).abs() < 1e-9);
    let exact = |delta: f64| epsilon(12, 0.05, 5.0, delta);
    let expected = limited(12, 0.05f64.powi(12), 1e-5, exact).unwrap();
    assert!((privacy.epsilon.unwrap() - expected.value).abs() < 1e-12 && privacy.rate == Some(0.05));
}

#[test]
fn a_policy_with_reports_has_no_guarantee() {
    for policy in ["bn2", "bn2-c", "bc-bn2", "power-of-choice", "active"] {
        let config = private(policy);
        let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        let asks = !simulation.server.asks().is_empty();
        let privacy = simulation.run(|_| ()).unwrap().privacy.unwrap();
        assert_eq!(privacy.epsilon.is_none(), asks, "{policy}");
        assert_eq!(simulation.rows().last().unwrap().metrics.is_empty(), asks, "{policy}");
        assert!(!asks || privacy.caveats[0].contains("there is no guarantee"), "{privacy:?}");
    }
}

#[test]
fn a_private_run_is_the_same_on_any_threads_and_after_a_restart() {
    for policy in ["random", "poisson"] {
        let (config, dataset) = (private(policy), blobs(20, 600, 90));
        let whole = run(&config, dataset.clone(), 1);
        assert_eq!(whole, run(&config, dataset.clone(), 3), "{policy}");
        assert_eq!(whole, resumed(&config, || dataset.clone(), &Parts::default(), 5), "{policy}");
        let mut other = config.clone();
        other.privacy.noise = 2.5;
        assert_ne!(whole.digest, run(&other, dataset, 1).digest);
    }
}

#[test]
fn settings_that_would_break_the_guarantee_are_refused() {
    let problem = |change: &dyn Fn(&mut Config)| {
        let mut config = private("random");
        change(&mut config);
        let task = Updates { silent: None, scale: 1.0 };
        let refused = Simulation::of(&config, task).and_then(|mut run| run.step().map(drop));
        refused.unwrap_err().to_string()
    };
    let set =
        |key: &'static str, value: &'static str| move |config: &mut Config| config.set(key, value).unwrap();
    let cases: [(String, &str); 8] = [
        (problem(&set("defense.clip", "median")), "privacy.noise: is 2, which needs a norm S"),
        (problem(&set("defense.clip", "off")), "set defense.clip to a number"),
        (
            problem(&set("learn.aggregate", "median")),
            "learn.aggregate is \"median\"; write learn.aggregate = \"mean\"",
        ),
        (problem(&set("privacy.at", "device")), "privacy.at: is \"device\": a device that sends a part"),
        (
            problem(&|c| (c.privacy.noise, c.privacy.delta) = (0.0, 1e-6)),
            "privacy.delta: has no effect here: it is for noise",
        ),
        (
            problem(&|c| (c.schedule.policy, c.radio.access) = ("poisson".into(), "fdma".into())),
            "schedule.policy: is \"poisson\", which gives every device n/K symbols; it needs radio.access \
             = \"tdma\"",
        ),
        (problem(&set("schedule.policy", "multinomial")), "privacy.noise: needs updates that count the same"),
        (problem(&|c| c.privacy.delta = 0.0), "privacy.delta: is 0, but must be > 0 and < 1"),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "{message}");
    }
}
