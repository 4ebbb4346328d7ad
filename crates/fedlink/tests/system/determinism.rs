//! The same configuration and seed give the same bits.

use crate::common::{blobs, mostly_zero, small_config};
use fedlink::data::Dataset;
use fedlink::learn::optimizer::StateMode;
use fedlink::record::Outcome;
use fedlink::spec::{BatchSize, Config};
use fedlink::system::simulation::Simulation;
use std::sync::Arc;

const POLICIES: [&str; 4] = ["bc", "bn2", "bc-bn2", "bn2-c"];

fn run(config: &Config, dataset: &Arc<Dataset>, threads: usize) -> Outcome {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| Simulation::of(config, Arc::clone(dataset)).unwrap().run(|_| ()).unwrap())
}

#[test]
fn the_digest_does_not_depend_on_the_number_of_threads() {
    for dataset in [blobs(20, 600, 90), mostly_zero(20, 600, 90)] {
        is_the_same_for_any_number_of_threads(&dataset);
    }
}

fn is_the_same_for_any_number_of_threads(dataset: &Arc<Dataset>) {
    for policy in POLICIES {
        for state in [StateMode::Keep, StateMode::Reset] {
            for feedback in ["off", "scheduled", "always"] {
                let mut config = small_config();
                config.schedule.policy = policy.into();
                config.learn.state = state;
                config.compress.feedback = feedback.into();
                let one = run(&config, dataset, 1);
                for threads in [2, 3] {
                    assert_eq!(one, run(&config, dataset, threads), "{policy:?} {state:?} {feedback:?}");
                }
            }
        }
    }
}

#[test]
fn devices_of_any_size_train_in_full_batches_on_any_number_of_threads() {
    // A worker's memory grows with its devices, which depend on the threads.
    let dataset = blobs(20, 600, 90);
    for partition in ["quantity", "dirichlet", "shards"] {
        let mut config = small_config();
        config.data.partition = partition.into();
        config.set("data.dirichlet.sizes", "free").unwrap();
        config.set("data.quantity.spread", 1.5).unwrap();
        config.learn.batch = BatchSize::Full;
        config.learn.aggregate = "by-size".into();
        let one = run(&config, &dataset, 1);
        assert_eq!(one, run(&config, &dataset, 3), "{partition:?}");
    }
}

#[test]
fn the_digest_distinguishes_any_two_different_runs() {
    let dataset = blobs(20, 600, 90);
    let mut configs = Vec::new();
    for policy in POLICIES {
        let mut config = small_config();
        config.schedule.policy = policy.into();
        configs.push(config);
    }
    let changes: [fn(&mut Config); 10] = [
        |c| c.run.seed = 1,
        |c| c.learn.rate = Some(0.011),
        |c| c.radio.noise = 1.001,
        |c| c.learn.optimizer = "adagrad".into(),
        |c| c.learn.state = StateMode::Reset,
        |c| c.data.partition = "classes".into(),
        |c| c.data.partition = "dirichlet".into(),
        |c| c.data.partition = "shards".into(),
        |c| c.data.partition = "quantity".into(),
        |c| (c.data.partition, c.learn.aggregate) = ("quantity".into(), "by-size".into()),
    ];
    for change in changes {
        let mut config = small_config();
        change(&mut config);
        configs.push(config);
    }
    let mut digests: Vec<String> = configs.iter().map(|config| run(config, &dataset, 2).digest).collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), configs.len());
}

#[test]
fn policies_with_one_seed_have_the_same_channels() {
    let dataset = blobs(20, 600, 90);
    let gains = |policy: &str| {
        let mut config = small_config();
        config.schedule.policy = policy.into();
        config.schedule.k = 12;
        let mut simulation = Simulation::of(&config, Arc::clone(&dataset)).unwrap();
        let record = simulation.step().unwrap();
        record.transmissions.iter().map(|sent| sent.gain).collect::<Vec<f64>>()
    };
    assert_eq!(gains("bc"), gains("bn2-c"));
}

#[test]
fn the_digest_of_a_cnn_does_not_depend_on_the_number_of_threads() {
    for mut dataset in [blobs(256, 360, 60), mostly_zero(256, 360, 60)] {
        Arc::make_mut(&mut dataset).shape = [16, 16, 1];
        let mut config = small_config();
        config.learn.model = "cnn".into();
        config.run.rounds = 3;
        let one = run(&config, &dataset, 1);
        assert_eq!(one, run(&config, &dataset, 2));
        config.learn.model = "mlp".into();
        assert_ne!(one.digest, run(&config, &dataset, 1).digest);
    }
}
