//! Once warm, a round allocates almost no memory: no vector of the size of the model for any device.
//!
//! One test, because the allocator counts for the whole process.

#[path = "system/common.rs"]
mod common;
mod counting;

use common::{blobs, mostly_zero, small_config};
use counting::asked;
use fedlink::data::Dataset;
use fedlink::learn::optimizer::StateMode;
use fedlink::system::simulation::Simulation;
use std::sync::Arc;

/// The allocations of the third round: in all, and the largest.
fn warm_round(policy: &str, dataset: &Arc<Dataset>) -> [usize; 2] {
    let mut config = small_config();
    config.data.devices = 15;
    config.set("learn.mlp.hidden", vec![256]).expect("a key");
    config.learn.state = StateMode::Reset;
    config.schedule.policy = policy.into();
    config.run.evaluate_every = 1;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    pool.install(|| {
        let mut simulation = Simulation::of(&config, Arc::clone(dataset)).expect("valid");
        simulation.step().expect("the first round");
        simulation.step().expect("the second round");
        asked(|| simulation.step().expect("the third round")).0
    })
}

#[test]
fn a_warm_round_allocates_no_vector_of_the_model_s_size() {
    for policy in ["bn2", "bn2-c", "bc-bn2", "bc"] {
        // 400·256 weights in the first layer alone: 410 kB. The dense product packs its operands in
        // pieces of 16 kB.
        for dataset in [blobs(400, 600, 90), mostly_zero(400, 600, 90)] {
            let [_, largest] = warm_round(policy, &dataset);
            assert!(largest <= 20_000, "{policy:?}: {largest} bytes at once");
        }
        // With sparse inputs the dense product has the last layer only: a model five times as large
        // allocates nothing more.
        let [small, large] = [80, 400].map(|features| warm_round(policy, &mostly_zero(features, 600, 90))[0]);
        assert!(large < small + small / 10, "{policy:?}: {small} bytes at 80 inputs, {large} at 400");
    }
}
