//! A run on real bytes equals the run without them, and never exceeds a budget.

use crate::common::{blobs, small_config};
use fedlink::compress::BudgetRule;
use fedlink::record::{Arrival, RoundRecord};
use fedlink::spec::Config;
use fedlink::system::simulation::Simulation;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::Arc;

const POLICIES: [&str; 4] = ["bc", "bn2", "bc-bn2", "bn2-c"];
const SCHEMES: [&str; 8] = ["d-sgd", "random-sparse", "top-k", "stc", "rand-k", "ternary", "sign", "qsgd"];

/// Every policy with every scheme, at few and at many symbols.
fn configs() -> impl Iterator<Item = Config> {
    let cases = POLICIES.into_iter().flat_map(|policy| SCHEMES.map(|scheme| (policy, scheme)));
    cases.flat_map(|(policy, scheme)| {
        [(20, "off"), (60, "scheduled"), (3000, "always")].map(|(symbols, feedback)| {
            let mut config = small_config();
            (config.schedule.policy, config.compress.scheme) = (policy.into(), scheme.into());
            (config.radio.symbols, config.compress.feedback) = (symbols, feedback.into());
            config
        })
    })
}

/// Whether the budget may be too small for an update: QSGD's coarsest update already has about √d
/// entries.
fn holds_little(config: &Config) -> bool {
    config.radio.symbols <= if config.compress.scheme == "qsgd" { 60 } else { 20 }
}

fn run(config: &Config, threads: usize, mut see: impl FnMut(&RoundRecord) + Send) -> String {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut simulation = Simulation::of(config, blobs(20, 600, 90)).unwrap();
        let mut observer = |record: &RoundRecord| {
            see(record);
            ControlFlow::Continue(())
        };
        simulation.run(&mut observer).unwrap().digest
    })
}

#[test]
fn bytes_do_not_change_the_digest_for_any_scheme_policy_and_threads() {
    for config in configs() {
        let plain = run(&config, 1, |record| {
            assert!(record.transmissions.iter().all(|sent| sent.wire_bits.is_none()));
        });
        let mut wire = config.clone();
        wire.radio.wire = true;
        for threads in [1, 3] {
            let mut total = 0;
            let digest = run(&wire, threads, |record| {
                for sent in &record.transmissions {
                    let bits = sent.wire_bits.expect("the length of the payload");
                    assert_eq!(bits == 0, sent.q == 0);
                    assert_eq!(sent.arrival, if sent.q == 0 { Arrival::Silent } else { Arrival::Used });
                    // The formula counts neither the sign inside an f32 nor overhead.
                    assert!(bits as f64 <= sent.bits.0 + 20.0, "{bits} bits, {} counted", sent.bits.0);
                    total += bits;
                }
            });
            assert_eq!(digest, plain, "{:?} {:?}", config.schedule.policy, config.compress.scheme);
            assert!(total > 0 || holds_little(&config));
        }
    }
}

#[test]
fn a_run_on_bytes_can_be_interrupted() {
    let dataset = blobs(20, 600, 90);
    for (policy, budget) in [("bn2-c", BudgetRule::Formula), ("bn2", BudgetRule::Wire)] {
        let mut config = small_config();
        (config.schedule.policy, config.compress.budget, config.radio.wire) = (policy.into(), budget, true);
        let mut whole = Simulation::of(&config, Arc::clone(&dataset)).unwrap();
        let mut bytes = Vec::new();
        (0..5).for_each(|_| drop(whole.step().unwrap()));
        whole.checkpoint(&mut bytes).unwrap();
        let outcome = whole.run(|_| ()).unwrap();
        let mut resumed = Simulation::of(&config, Arc::clone(&dataset)).unwrap();
        resumed.restore(Cursor::new(bytes)).unwrap();
        assert_eq!(resumed.run(|_| ()).unwrap(), outcome);
        assert_eq!(resumed.rows(), whole.rows());
    }
}

#[test]
fn with_the_count_of_the_wire_no_payload_exceeds_its_budget() {
    for config in configs() {
        let mut config = config;
        config.compress.budget = BudgetRule::Wire;
        let mut sent_any = false;
        let without = run(&config, 2, |record| {
            for sent in &record.transmissions {
                let bits = sent.wire_bits.expect("the length of the payload");
                assert!(bits as f64 <= sent.budget.0, "{bits} bits in a budget of {}", sent.budget.0);
                assert_eq!(bits == 0, sent.q == 0);
                sent_any |= sent.q > 0;
            }
        });
        assert!(sent_any || holds_little(&config));
        config.radio.wire = true;
        assert_eq!(run(&config, 1, |_| {}), without, "the wire does not change the results");
    }
}

#[test]
fn the_count_of_the_wire_costs_an_entry_or_two() {
    let mean_q = |budget| {
        let mut config = small_config();
        (config.radio.symbols, config.compress.budget) = (200, budget);
        Simulation::of(&config, blobs(20, 600, 90)).unwrap().run(|_| ()).unwrap().mean_q
    };
    let (formula, wire) = (mean_q(BudgetRule::Formula), mean_q(BudgetRule::Wire));
    assert!(wire < formula && formula - wire < 3.0, "{formula} by the formula, {wire} on the wire");
}
