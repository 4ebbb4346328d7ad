//! Schemes whose entries are a function of a few symbols, in whole runs.

use crate::common::{blobs, small_config};
use fedlink::compress::BudgetRule;
use fedlink::prelude::*;

fn outcome(config: &Config, threads: usize) -> fedlink::record::Outcome {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| Simulation::of(config, blobs(20, 600, 90)).unwrap().run(|_| ()).unwrap())
}

#[test]
fn a_run_on_bytes_equals_the_run_without_and_flags_no_honest_device() {
    for (scheme, feedback) in [("eden", "off"), ("eden", "ef21"), ("low-rank", "off"), ("low-rank", "ef21")] {
        for budget in [BudgetRule::Formula, BudgetRule::Wire] {
            let mut config = small_config();
            (config.schedule.policy, config.compress.scheme) = ("bn2-c".into(), scheme.into());
            (config.radio.symbols, config.run.rounds) = (1500, 6);
            (config.compress.feedback, config.compress.budget, config.defense.audit) =
                (feedback.into(), budget, true);
            if (scheme, feedback) == ("eden", "ef21") {
                config.set("compress.eden.scale", "projection").unwrap();
            }
            let plain = outcome(&config, 1);
            assert!(plain.excluded.is_empty() && plain.mean_q > 0.0, "{scheme} {feedback:?} {budget:?}");
            config.radio.wire = true;
            for threads in [1, 3] {
                assert_eq!(
                    outcome(&config, threads).digest,
                    plain.digest,
                    "{scheme} {feedback:?} {budget:?}"
                );
            }
        }
    }
}
