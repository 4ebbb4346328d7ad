//! A small data set and small systems for tests of the whole library.

#![allow(dead_code, reason = "the test of allocations takes the data sets alone")]

use fedlink::base::rng::{Purpose, stream};
use fedlink::data::{Dataset, Features, Samples};
use fedlink::learn::task::Work;
use fedlink::parts::Parts;
use fedlink::record::Outcome;
use fedlink::spec::Config;
use fedlink::system::simulation::Simulation;
use std::sync::Arc;

/// Three classes of noisy bytes around three random patterns of `features` numbers.
pub fn blobs(features: usize, train: usize, test: usize) -> Arc<Dataset> {
    let samples = |count: usize, split: u64| {
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        for i in 0..count {
            let label = (i % 3) as u8;
            let mut pattern = stream(1, Purpose::Test, 10, u64::from(label));
            let mut noise = stream(1, Purpose::Test, 20 + split, i as u64);
            pixels.extend(
                (0..features).map(|_| (127.0 + 60.0 * pattern.normal() + 60.0 * noise.normal()) as u8),
            );
            labels.push(label);
        }
        Samples { features: Features::Bytes(pixels), labels }
    };
    Arc::new(Dataset {
        name: "blobs".into(),
        features,
        shape: [1, features, 1],
        classes: 3,
        train: samples(train, 0),
        test: samples(test, 1),
    })
}

/// As [`blobs`], with all numbers that are not bright set to zero: three in four.
pub fn mostly_zero(features: usize, train: usize, test: usize) -> Arc<Dataset> {
    let mut dataset = Arc::unwrap_or_clone(blobs(features, train, test));
    for part in [&mut dataset.train, &mut dataset.test] {
        if let Features::Bytes(bytes) = &mut part.features {
            bytes.iter_mut().filter(|byte| **byte < 185).for_each(|byte| *byte = 0);
        }
    }
    Arc::new(dataset)
}

/// Twelve devices with thirty samples each and a small MLP.
pub fn small_config() -> Config {
    let mut config = Config::default();
    config.data.devices = 12;
    config.data.samples_per_device = 30;
    config.learn.model = "mlp".into();
    config.set("learn.mlp.hidden", vec![8]).expect("a key");
    config.learn.batch = fedlink::spec::BatchSize::Count(10);
    config.learn.rate = Some(0.01);
    config.radio.symbols = 60;
    config.schedule.k = 3;
    config.set("schedule.bc-bn2.kc", 6).expect("a key");
    config.run.rounds = 12;
    config.run.evaluate_every = 5;
    config
}

/// A whole run on this number of threads.
pub fn run(config: &Config, work: impl Into<Work> + Send, threads: usize) -> Outcome {
    run_with(config, work, &Parts::default(), threads)
}

/// A whole run with custom parts on this number of threads.
pub fn run_with(config: &Config, work: impl Into<Work> + Send, parts: &Parts, threads: usize) -> Outcome {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        Simulation::with_parts(config, work, parts).expect("a valid run").run(|_| ()).expect("no error")
    })
}

/// A run that is interrupted after `rounds` rounds and resumed in a fresh simulation.
pub fn resumed<W: Into<Work>>(config: &Config, work: impl Fn() -> W, parts: &Parts, rounds: u64) -> Outcome {
    let mut first = Simulation::with_parts(config, work(), parts).expect("a valid run");
    (0..rounds).for_each(|_| drop(first.step().expect("no error")));
    let mut bytes = Vec::new();
    first.checkpoint(&mut bytes).expect("memory takes all");
    let mut second = Simulation::with_parts(config, work(), parts).expect("a valid run");
    second.restore(std::io::Cursor::new(bytes)).expect("a saved state is valid");
    assert_eq!(second.rounds_done(), rounds);
    second.run(|_| ()).expect("no error")
}
