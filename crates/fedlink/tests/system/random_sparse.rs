//! Whole runs with `compress.scheme = "random-sparse"`.

use fedlink::base::rng::{Purpose, stream};
use fedlink::compress::{RandomSparse, SparseScheme};
use fedlink::data::{Dataset, Features, Samples};
use fedlink::spec::Config;
use fedlink::system::simulation::Simulation;
use std::sync::Arc;

const FEATURES: usize = 12;
const DIM: usize = FEATURES * 3 + 3;

/// Three classes, each bright in its own third of the features.
fn dataset() -> Arc<Dataset> {
    let samples = |count: u64, split| {
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        for i in 0..count {
            let mut noise = stream(1, Purpose::Test, split, i);
            let class = (i % 3) as u8;
            labels.push(class);
            pixels.extend((0..FEATURES).map(|f| {
                let bright = if f % 3 == usize::from(class) { 120 } else { 0 };
                bright + noise.below(100) as u8
            }));
        }
        Samples { features: Features::Bytes(pixels), labels }
    };
    let (train, test) = (samples(240, 0), samples(60, 1));
    let shape = [FEATURES, 1, 1];
    Arc::new(Dataset { name: "thirds".into(), features: FEATURES, shape, classes: 3, train, test })
}

fn config(policy: &str, k: u64) -> Config {
    let mut config = Config::default();
    config.data.devices = 6;
    config.data.samples_per_device = 40;
    config.learn.model = "softmax".into();
    config.learn.rate = Some(0.05);
    config.radio.symbols = 150;
    config.compress.scheme = "random-sparse".into();
    config.schedule.policy = policy.into();
    config.schedule.k = k;
    config.run.rounds = 30;
    config
}

fn run(config: &Config, threads: usize) -> fedlink::record::Outcome {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| Simulation::of(config, dataset()).unwrap().run(|_| ()).unwrap())
}

#[test]
fn every_policy_learns_and_gives_the_same_run_on_any_number_of_threads() {
    for policy in ["bc", "bn2", "bc-bn2", "bn2-c"] {
        let config = config(policy, 2);
        let (one, three) = (run(&config, 1), run(&config, 3));
        assert_eq!(one.digest, three.digest, "{policy:?}");
        assert!(one.final_accuracy.unwrap() > 0.8, "{policy:?}: {:?}", one.final_accuracy);
    }
}

#[test]
fn a_device_sends_exactly_the_q_entries_that_its_budget_holds() {
    let mut simulation = Simulation::of(&config("bc", 3), dataset()).unwrap();
    let (mut partly, mut silent) = (0, 0);
    for _ in 0..30 {
        for sent in simulation.step().unwrap().transmissions {
            assert_eq!(sent.q, RandomSparse {}.largest_q(DIM, sent.budget));
            assert_eq!(sent.entries, sent.q);
            assert!(sent.bits <= sent.budget);
            partly += usize::from(0 < sent.q && sent.q < DIM);
            silent += usize::from(sent.q == 0);
        }
    }
    assert!(partly > 0 && silent < 90, "the link must matter: {partly} partial, {silent} silent");
}

#[test]
fn a_single_device_sends_the_update_whose_norm_it_reported() {
    // BN2-C at K = 1: q* = q and the indices are the same, so ‖θ(t+1) − θ(t)‖ is the report of the
    // scheduled device.
    let mut simulation = Simulation::of(&config("bn2-c", 1), dataset()).unwrap();
    for _ in 0..30 {
        let before = simulation.theta().to_vec();
        let record = simulation.step().unwrap();
        let moved =
            simulation.theta().iter().zip(&before).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        let reported = f64::from(record.transmissions[0].report);
        assert!(
            (moved.sqrt() - reported).abs() < 1e-5 * reported.max(1e-3),
            "{} against {reported}",
            moved.sqrt()
        );
    }
}
