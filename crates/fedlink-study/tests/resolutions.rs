//! A sweep resolves each of its curves once, from the file to the tables.
//!
//! The number of resolutions is one of the process, so this file has one test.

use fedlink::parts::Parts;
use fedlink::spec::Spec;
use fedlink_study::experiment::Experiment;
use fedlink_study::sweep::{Assembled, Plan, Runner, folder_state, freeze};

const FILE: &str = "
[data]
samples_per_device = 10
[learn]
model = \"softmax\"
[run]
rounds = 2
seeds = 2
[sweep]
\"schedule.policy\" = [\"bc\", \"bn2\", \"random\"]
[claims]
\"one\" = \"bc final > 0\"
[quick]
\"run.rounds\" = 1
";

#[test]
fn a_curve_is_resolved_once_by_a_run_and_once_by_a_resumed_run() {
    let folder = tempfile::tempdir().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for name in ["begun", "resumed"] {
        let before = Spec::resolutions();
        let sweep = Experiment::parse("three curves", FILE).unwrap().expand(&Parts::default()).unwrap();
        if name == "resumed" {
            folder_state(folder.path(), &sweep).unwrap();
        }
        let plan = Plan::new(sweep, &[]).unwrap();
        freeze(folder.path(), &plan).unwrap();
        let runs = Runner::new(&plan, folder.path(), &pool).run(&plan.longest_first()).unwrap();
        let curves = Assembled::new(&plan, &runs).unwrap().curves;
        assert_eq!((curves.len(), runs.len()), (3, 6));
        assert_eq!(Spec::resolutions() - before, 3, "{name}");
    }
}
