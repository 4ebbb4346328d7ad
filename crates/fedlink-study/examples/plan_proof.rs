//! Whether `fedlink plan` finds the best settings of scenarios that are small enough to run all of them.
//!
//! ```text
//! cargo run --release -p fedlink-study --example plan_proof -- experiments/plan-iid.toml 20
//! ```
//!
//! **Truth.** Every setting is run at 20 seeds that no plan uses. A setting's true cost is the geometric mean
//! of its costs until the goal of the file; a run that does not reach it counts as twice the largest (PAR2).
//! The best setting has the lowest; the true tie set holds the best and every setting that the exact paired
//! test does not tell from it at 5 %, two-sided.
//!
//! **Repeats.** Each repeat plans with other seeds and a budget in runs of a fifth of the exhaustive cost.
//!
//! **Criterion**, fixed before the first run: in at least 19 of 20 repeats the recommended setting costs at
//! most 5 % more than the best, or is in the true tie set; and no repeat spends more than a fifth of the
//! exhaustive cost. The program ends with an error if it does not hold.

use fedlink::parts::Parts;
use fedlink_study::experiment::Experiment;
use fedlink_study::goals::{Goal, Reading, paired};
use fedlink_study::plan::{Axis, Planned, Planner, Request};
use fedlink_study::race::par2;
use fedlink_study::sweep::{Plan, Runner, freeze};
use std::collections::BTreeMap;
use std::error::Error;
use toml::Value;

/// The seeds of the truth, and the first of them.
const SEEDS: i64 = 20;
const FIRST: i64 = 5_000_000;
/// The first seeds of two repeats differ by this.
const APART: i64 = 10_000;
/// The settings that all plans search; the step length is among it, so that nothing is tuned beside.
const OVER: [&str; 4] = [
    "schedule.policy=bc,bn2,bc-bn2",
    "schedule.k=1,2,4,8",
    "learn.rate=0.01,0.03,0.1",
    "learn.server_rate=1.0",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let file = words.next().ok_or("name a scenario, such as experiments/plan-iid.toml")?;
    let repeats: i64 = words.next().map_or(Ok(20), |repeats| repeats.parse())?;
    let scenario = Experiment::open(&file)?;
    let goal = scenario.goals().first().ok_or("the scenario states no goal in [goals]")?.1.clone();
    let axes: Vec<Axis> = OVER.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let pool = rayon::ThreadPoolBuilder::new().build()?;
    let truth = exhaustive(&scenario, &axes, &goal, &pool)?;
    let all = (truth.len() as i64 * SEEDS) as f64;
    let known = truth.values().flatten();
    let end = known
        .map(|r| if let Reading::Known(x) | Reading::Beyond(x) = r { *x } else { 0.0 })
        .fold(0.0, f64::max);
    let scores: BTreeMap<&String, f64> =
        truth.iter().map(|(key, own)| (key, par2(own.iter(), end))).collect();
    let (best, least) = scores.iter().min_by(|a, b| a.1.total_cmp(b.1)).ok_or("there is no setting")?;
    let ties: Vec<&String> = truth
        .iter()
        .filter(|(_, own)| {
            let pairs: Vec<_> = own.iter().cloned().zip(truth[*best].iter().cloned()).collect();
            paired(&pairs).ok().and_then(|all| all.p).is_some_and(|p| p > 0.05)
        })
        .map(|(key, _)| key)
        .collect();
    let reached = truth[*best].iter().filter(|reading| matches!(reading, Reading::Known(_))).count();
    println!("{file}: {goal}");
    println!("{} settings at {SEEDS} seeds: {all:.0} full runs", truth.len());
    println!(
        "best: {best}, {least:.4} (reached {reached}/{SEEDS}); true tie set of {}: {ties:?}",
        ties.len()
    );
    let budget = (all / 5.0).floor();
    let (mut good, mut most) = (0, 0.0f64);
    for repeat in 0..repeats {
        let folder = tempfile::tempdir()?;
        let mut own = scenario.clone();
        own.set_value("run.seed", Value::Integer(APART * repeat))?;
        let mut request = Request::new(std::slice::from_ref(&goal), format!("{budget}runs").parse()?)?;
        request.over.clone_from(&axes);
        let planner = Planner {
            request: &request,
            folder: folder.path(),
            folders: &[],
            parts: &Parts::default(),
            pool: &pool,
            observer: &(),
            stop: &|| false,
        };
        let Planned::Answered(answer, _) = planner.plan(own, false)? else {
            return Err("it was stopped".into());
        };
        most = most.max(answer.spent_runs);
        let Some(recommended) = &answer.recommended else {
            println!("repeat {repeat}: nothing reaches the goal, {:.0} runs", answer.spent_runs);
            continue;
        };
        let keys: Vec<(String, String)> =
            axes.iter().map(|axis| (axis.key.clone(), text(&recommended.settings[&axis.key]))).collect();
        let key = name(&keys);
        let ratio = scores[&key] / least;
        let is_good = ratio <= 1.05 || ties.contains(&&key);
        good += i64::from(is_good);
        println!(
            "repeat {repeat}: {key}, {:.1} % above the best{}, {:.1} runs{}",
            100.0 * (ratio - 1.0),
            if ties.contains(&&key) { ", in the tie set" } else { "" },
            answer.spent_runs,
            if is_good { "" } else { " – MISSED" }
        );
    }
    println!(
        "{good} of {repeats} repeats; at most {most:.1} full runs of {all:.0} ({:.1} %)",
        100.0 * most / all
    );
    if 20 * good < 19 * repeats || 5.0 * most > all {
        return Err("the criterion does not hold".into());
    }
    println!("the criterion holds");
    Ok(())
}

/// The costs of every setting at every seed.
fn exhaustive(
    scenario: &Experiment,
    axes: &[Axis],
    goal: &Goal,
    pool: &rayon::ThreadPool,
) -> Result<BTreeMap<String, Vec<Reading>>, Box<dyn Error>> {
    let mut all = scenario.clone();
    for axis in axes {
        match &axis.values[..] {
            [one] => all.set_value(&axis.key, one.clone())?,
            values => all.set_value(&axis.key, Value::Array(values.to_vec()))?,
        }
    }
    all.set_value("run.seed", Value::Integer(FIRST))?;
    all.set_value("run.seeds", Value::Integer(SEEDS))?;
    let plan = Plan::new(all.expand(&Parts::default())?, &[])?;
    let folder = tempfile::tempdir()?;
    freeze(folder.path(), &plan)?;
    let runs = Runner::new(&plan, folder.path(), pool).run(&plan.longest_first())?;
    let mut costs: BTreeMap<String, Vec<(u64, Reading)>> = BTreeMap::new();
    for done in &runs {
        let run = &plan.sweep.runs[done.index];
        let curve = &plan.sweep.curves[run.curve];
        let value = |axis: &Axis| {
            let swept = curve.keys.iter().find(|(key, _)| *key == axis.key).map(|(_, value)| value.clone());
            (axis.key.clone(), swept.unwrap_or_else(|| plain(&axis.values[0])))
        };
        let keys: Vec<(String, String)> = axes.iter().map(value).collect();
        let reading = done.result.metrics(&run.spec).read(goal);
        costs.entry(name(&keys)).or_default().push((run.spec.run.seed, reading));
    }
    let sorted = |mut own: Vec<(u64, Reading)>| {
        own.sort_by_key(|(seed, _)| *seed);
        own.into_iter().map(|(_, reading)| reading).collect()
    };
    Ok(costs.into_iter().map(|(key, own)| (key, sorted(own))).collect())
}

fn name(keys: &[(String, String)]) -> String {
    keys.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
