//! Same configuration and seed, same bits out.

use crate::common::{blobs, small_config};
use fedlink::compress::Feedback;
use fedlink::config::Config;
use fedlink::data::Dataset;
use fedlink::data::partition::PartitionKind;
use fedlink::learn::optimizer::{OptimizerKind, StateMode};
use fedlink::record::Outcome;
use fedlink::schedule::policy::PolicyKind;
use fedlink::simulation::Simulation;
use std::sync::Arc;

const POLICIES: [PolicyKind; 4] = [PolicyKind::Bc, PolicyKind::Bn2, PolicyKind::BcBn2, PolicyKind::Bn2C];

fn run(config: &Config, dataset: &Arc<Dataset>, threads: usize) -> Outcome {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| Simulation::new(config, Arc::clone(dataset)).unwrap().run(&mut ()).unwrap())
}

#[test]
fn the_digest_does_not_depend_on_the_number_of_threads() {
    let dataset = blobs(20, 600, 90);
    for policy in POLICIES {
        for state in [StateMode::Keep, StateMode::Reset] {
            for feedback in [Feedback::Off, Feedback::Scheduled, Feedback::Always] {
                let mut config = small_config();
                config.schedule.policy = policy;
                config.learn.state = state;
                config.compress.feedback = feedback;
                let one = run(&config, &dataset, 1);
                for threads in [2, 3] {
                    assert_eq!(one, run(&config, &dataset, threads), "{policy:?} {state:?} {feedback:?}");
                }
            }
        }
    }
}

#[test]
fn the_digest_tells_any_two_different_runs_apart() {
    let dataset = blobs(20, 600, 90);
    let mut configs = Vec::new();
    for policy in POLICIES {
        let mut config = small_config();
        config.schedule.policy = policy;
        configs.push(config);
    }
    let changes: [fn(&mut Config); 6] = [
        |c| c.run.seed = 1,
        |c| c.learn.rate = Some(0.011),
        |c| c.radio.noise = 1.001,
        |c| c.learn.optimizer = OptimizerKind::Adagrad,
        |c| c.learn.state = StateMode::Reset,
        |c| c.data.partition = PartitionKind::Classes,
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
fn policies_at_one_seed_see_the_same_channels() {
    let dataset = blobs(20, 600, 90);
    let gains = |policy| {
        let mut config = small_config();
        config.schedule.policy = policy;
        config.schedule.k = 12;
        config.schedule.kc = None;
        let mut simulation = Simulation::new(&config, Arc::clone(&dataset)).unwrap();
        let record = simulation.step().unwrap();
        record.transmissions.iter().map(|sent| sent.gain).collect::<Vec<f64>>()
    };
    assert_eq!(gains(PolicyKind::Bc), gains(PolicyKind::Bn2C));
}
