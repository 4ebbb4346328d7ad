//! The report of a run.

use super::scatter::{group_rows, point};
use super::{
    ClaimVerdict, CurveCosts, CurveFairness, DeviceTotals, GoalValue, Interval, PairedDifference, Report,
    ReportCurve, SplitTable,
};
use crate::chart::Entry;
use crate::looks::legend;
use crate::plots::{Across, Up, cell_chart, small_multiples, snr_chart};
use fedlink::data::partition::SplitReport;
use fedlink::learn::fairness::class_accuracies;
use fedlink::record::Outcome;
use fedlink_study::claims::{Comparison, Verdict, Verdicts};
use fedlink_study::goals::{Cost, Goal, Metric, Standing};
use fedlink_study::groups::group_use;
use fedlink_study::head::head_of;
use fedlink_study::results::{CurveResult, RunResult, goal_cell};
use fedlink_study::statistics::{Estimate, estimate};

impl Report {
    /// The report of an experiment: its name, its file, the results, and the split of the first curve's data.
    pub fn new(
        title: &str,
        config_toml: String,
        results: &[CurveResult],
        split: Option<&SplitReport>,
    ) -> Self {
        let first = results.first().map(|curve| curve.spec.config().clone()).unwrap_or_default();
        let mut notes = Vec::new();
        if results.iter().all(|curve| curve.runs.len() < 2) {
            notes.push(
                "One seed only: differences between curves may be random. Run with --seeds 5 or more.".into(),
            );
        }
        for shortened in results.iter().filter_map(|curve| curve.shortened) {
            let note = format!("Shortened: {shortened}. These are not the numbers of the whole experiment.");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes.extend(
            results.iter().filter_map(|curve| Some(format!("{}: {}.", curve.label, curve.saturated()?))),
        );
        for caution in results.iter().flat_map(|curve| curve.spec.cautions()) {
            let note = format!("{caution}.");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        for curve in results {
            let lines = curve.privacy();
            notes.extend((!lines.is_empty()).then(|| format!("{}: {}.", curve.label, lines.join("; "))));
        }
        notes.extend(results.iter().filter_map(|curve| {
            Some(format!(
                "{}: heard {} devices; the others were never scheduled.",
                curve.label,
                curve.heard_text()?
            ))
        }));
        for curve in results {
            let line = |(seed, warning): (u64, &str)| format!("{} (seed {seed}): {warning}.", curve.label);
            notes.extend(curve.warnings().into_iter().map(line));
        }
        notes.extend(results.iter().filter(|curve| !curve.has_costs()).filter_map(lost_uploads));
        Self {
            title: title.to_owned(),
            generated_by: format!("fedlink {}", env!("CARGO_PKG_VERSION")),
            reproduce: vec![
                "# the configuration above as config.toml".into(),
                "fedlink run config.toml".into(),
            ],
            config_toml,
            head: head_of(results.iter().map(|curve| &curve.spec), &[]).text(),
            scatter_goal: until(results).to_string(),
            devices: first.data.devices as usize,
            average_power: results.first().map_or(first.radio.power, CurveResult::allowed_power),
            power_unit: if first.radio.bandwidth_hz.is_some() { "W".into() } else { String::new() },
            target: first.run.target,
            goals: results
                .first()
                .map_or(&[][..], |curve| &curve.goals)
                .iter()
                .map(|(name, goal)| (name.clone(), goal.to_string()))
                .collect(),
            curves: curves(results),
            differences: differences(results),
            panels: small_multiples("", results).into_iter().map(|(_, chart)| chart).collect(),
            cells: results.iter().filter_map(cell_chart).collect(),
            snr: snr_chart("", results),
            split: split.map(split_table),
            claims: Vec::new(),
            notes,
        }
    }

    /// Adds the claims, and every published value as the claim that it is ours.
    pub fn add_verdicts(&mut self, verdicts: &Verdicts) {
        let short = verdicts.shortened.map_or_else(String::new, |shortened| format!(" ({shortened})"));
        let claim = |verdict: &Verdict| ClaimVerdict {
            claim: match &verdict.goal {
                Some(goal) => format!("{}: {}; goal: {goal}", verdict.name, verdict.claim),
                None => format!("{}: {}", verdict.name, verdict.claim),
            },
            verdict: match verdict.registered.map(|registered| registered.remark()) {
                Some(late) if !late.is_empty() => format!("{}{short}{late}", verdict.verdict),
                _ => format!("{}{short}", verdict.verdict),
            },
            difference: None,
            detail: verdict.pairs.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        };
        let published = |line: &Comparison| {
            let ours = match (line.ours, &line.note) {
                (Some(Estimate { mean, half_width }), _) if half_width.is_finite() => {
                    format!("ours: {:.2} % ± {:.2}, {} seeds", 100.0 * mean, 100.0 * half_width, line.seeds)
                }
                (Some(Estimate { mean, .. }), _) => format!("ours: {:.2} %, one seed", 100.0 * mean),
                (None, note) => note.clone().unwrap_or_default(),
            };
            ClaimVerdict {
                claim: format!("{} ends at the published {:.1} %", line.curve, 100.0 * line.published),
                verdict: line.verdict(),
                difference: None,
                detail: ours,
            }
        };
        let published = verdicts.expected.iter().map(published);
        self.claims.extend(verdicts.claims.iter().map(claim).chain(published));
        let removed = verdicts.removed.iter();
        self.notes.extend(removed.map(|name| format!("The claim {name:?} was removed after the results.")));
        if verdicts.correction_changed {
            self.notes.push("The correction for many comparisons was changed after the results.".into());
        }
    }
}

/// The goal of the chart of seconds and joules: the first that is a cost, or the target.
fn until(results: &[CurveResult]) -> Goal {
    let goals = results.first().map_or(&[][..], |curve| &curve.goals);
    let own = goals.iter().find(|(_, goal)| goal.metric().is_none());
    own.map_or_else(|| Goal::target(Cost::Seconds), |(_, goal)| goal.clone())
}

/// All curves, with their looks in all charts of the folder.
fn curves(results: &[CurveResult]) -> Vec<ReportCurve> {
    let goal = until(results);
    let curve = |(curve, entry): (&CurveResult, Entry)| {
        let scatter = match &goal {
            Goal::Until(until) if curve.has_costs() => point(until, |goal| curve.standing(goal)),
            _ => None,
        };
        let mut curve = report_curve(curve);
        curve.scatter = scatter;
        (curve.look, curve.family) = (Some(entry.look), entry.group);
        curve.thin();
        curve
    };
    results.iter().zip(legend(results)).map(curve).collect()
}

fn report_curve(curve: &CurveResult) -> ReportCurve {
    let (config, runs) = (&curve.spec, &curve.runs);
    let (devices, k) = (config.data.devices as usize, config.schedule.k);
    let accuracy = curve.by_row(|row| row.test_accuracy);
    let ends = |estimate: &Estimate| {
        if estimate.half_width.is_finite() {
            estimate.ends_within(0.0, 1.0)
        } else {
            (estimate.mean, estimate.mean)
        }
    };
    let (low, high) = accuracy.iter().map(ends).unzip();
    let means = |y: Up| -> Vec<f64> {
        curve.by_row(|row| y.value(row)).iter().map(|estimate| estimate.mean).collect()
    };
    let spent = |x: Across| Some(x.values(curve)).filter(|values| values.iter().any(|v| v.is_finite()));
    let rounds: Vec<u64> = runs[0].rows[..accuracy.len()].iter().map(|row| row.round).collect();
    let to_target = |cost| curve.median(&Goal::target(cost));
    let share = |value: fn(&RunResult) -> Option<f64>| curve.at_the_end(value).map(Interval::of_share);
    let at_the_end = |value: fn(&RunResult) -> Option<f64>| curve.at_the_end(value).map(interval);
    let groups: Vec<_> = runs.iter().map(|run| group_use(config, &run.outcome)).collect();
    let used = curve.device_use();
    let missing = Interval { mean: f64::NAN, low: f64::NAN, high: f64::NAN };
    ReportCurve {
        label: curve.label.clone(),
        keys: curve.keys.clone(),
        policy: config.schedule.policy.clone(),
        family: String::new(),
        look: None,
        k,
        seeds: runs.len(),
        status: curve.status().name().to_owned(),
        fair_share: k as f64 / devices as f64,
        symbols: curve.symbols_by_row(),
        seconds: spent(Across::Seconds).unwrap_or_default(),
        joules: spent(Across::Joules).unwrap_or_default(),
        rounds,
        bits: Across::Bits.values(curve),
        low,
        high,
        accuracy: accuracy.iter().map(|estimate| estimate.mean).collect(),
        loss: means(Up::Loss),
        mean_q: means(Up::MeanQ),
        bits_per_round: means(Up::BitsPerRound),
        final_accuracy: share(|run| run.outcome.final_accuracy).unwrap_or(missing),
        best_accuracy: share(|run| run.outcome.best_accuracy).unwrap_or(missing),
        trainings_per_round: curve.trainings_per_round(),
        rounds_to_target: to_target(Cost::Rounds),
        bits_to_target: to_target(Cost::Bits),
        goals: curve.goals.iter().map(|(_, goal)| goal_value(curve, goal)).collect(),
        area_under_curve: share(RunResult::area).unwrap_or(missing),
        instability: at_the_end(RunResult::instability).unwrap_or(missing),
        ranked: runs.len() > 1,
        scheduled: curve.by_device(RunResult::scheduled_shares),
        power: curve.by_device(|run| run.outcome.average_power.clone()),
        devices: DeviceTotals {
            least: Interval::of_share(used.least),
            median: Interval::of_share(used.median),
            most: Interval::of_share(used.most),
            evenness: Interval::of_share(used.evenness),
            highest_power: interval(used.highest_power),
            above: interval(used.above),
        },
        costs: curve_costs(curve),
        scatter: None,
        groups: group_rows(&groups.iter().map(Vec::as_slice).collect::<Vec<_>>()),
        fairness: curve_fairness(curve),
        digest: runs.iter().map(|run| run.outcome.digest.clone()).collect(),
    }
}

/// A curve's value of a goal.
fn goal_value(curve: &CurveResult, goal: &Goal) -> GoalValue {
    let (standing, unit) = (curve.standing(goal), goal.unit());
    let interval = match (&standing, standing.ends()) {
        (Standing::Cost(median), _) => median.interval(|value| unit.value(value)),
        (_, (Some(low), Some(high))) => format!("[{}, {}]", unit.value(low), unit.value(high)),
        _ => String::new(),
    };
    GoalValue {
        value: standing.value(),
        text: goal_cell(curve, goal),
        interval,
        ends: standing.ends(),
        is_cost: goal.metric().is_none(),
        rises: goal.metric().is_some_and(Metric::rises),
    }
}

/// The number of uploads that did not arrive, or not in time; none if all did.
fn lost_uploads(curve: &CurveResult) -> Option<String> {
    let outages = curve.over_all(|run| run.outcome.outages as f64).mean;
    let late = curve.over_all(|run| run.outcome.late as f64).mean;
    (outages > 0.0 || late > 0.0).then(|| {
        let label = &curve.label;
        format!(
            "{label}: of a run {outages:.1} uploads were not carried by the channel and {late:.1} were late."
        )
    })
}

/// The evenness of a curve over classes and devices; none without `run.fairness`.
fn curve_fairness(curve: &CurveResult) -> Option<CurveFairness> {
    let last = |run: &RunResult, name: &str| {
        let metrics = &run.rows.last()?.metrics;
        metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    };
    let at_the_end = |name: &str| curve.at_the_end(|run| last(run, name)).map(interval);
    let share = |name: &str| curve.at_the_end(|run| last(run, name)).map(Interval::of_share);
    let rows = curve.runs.iter().filter_map(|run| run.rows.last());
    let classes = rows.map(|row| class_accuracies(&row.metrics).len()).max().unwrap_or(0);
    curve.spec.run.fairness.then(|| CurveFairness {
        classes: (0..classes).map(|class| share(&format!("class_{class}"))).collect(),
        worst_class: share("worst_class"),
        worst_tenth: share("worst_tenth"),
        device_deviation: share("device_deviation"),
        jain: share("jain"),
        max_age: at_the_end("max_age"),
        mean_age: at_the_end("mean_age"),
    })
}

/// Seconds and joules of a curve; none without units.
fn curve_costs(curve: &CurveResult) -> Option<CurveCosts> {
    let to_target = |cost| curve.median(&Goal::target(cost));
    let in_all = |value: fn(&Outcome) -> Option<f64>| over_seeds(curve, |run| value(&run.outcome));
    let mean = |value: fn(&Outcome) -> u64| curve.over_all(|run| value(&run.outcome) as f64).mean;
    Some(CurveCosts {
        phases_s: curve.phases_per_round()?,
        energy_j: curve.energy_per_round()?,
        device_energy_j: curve.device_energy(),
        seconds_to_target: to_target(Cost::Seconds),
        joules_to_target: to_target(Cost::Joules),
        total_seconds: in_all(Outcome::seconds),
        total_joules: in_all(Outcome::joules),
        worst_device_joules: in_all(Outcome::worst_device_joules),
        outages: mean(|outcome| outcome.outages),
        late: mean(|outcome| outcome.late),
    })
}

/// Mean and interval over the seeds; none if a seed has no value.
fn over_seeds(curve: &CurveResult, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Interval> {
    curve.over_seeds(value).map(interval)
}

fn interval(estimate: Estimate) -> Interval {
    let half = if estimate.half_width.is_finite() { estimate.half_width } else { 0.0 };
    Interval { mean: estimate.mean, low: estimate.mean - half, high: estimate.mean + half }
}

/// Final accuracy of every curve less that of every later one, on the seeds that both have.
fn differences(results: &[CurveResult]) -> Vec<PairedDifference> {
    let final_of = |curve: &CurveResult, seed: u64| {
        let run = curve.runs.iter().find(|run| run.seed == seed && run.is_finished());
        run.and_then(|run| run.outcome.final_accuracy)
    };
    let mut differences = Vec::new();
    for (i, a) in results.iter().enumerate() {
        for b in &results[i + 1..] {
            let ended = a.runs.iter().filter(|run| run.is_finished());
            let pairs = ended.filter_map(|run| Some(final_of(a, run.seed)? - final_of(b, run.seed)?));
            let pairs: Vec<f64> = pairs.collect();
            if !pairs.is_empty() {
                let difference = interval(estimate(pairs));
                differences.push(PairedDifference { a: a.label.clone(), b: b.label.clone(), difference });
            }
        }
    }
    differences
}

fn split_table(split: &SplitReport) -> SplitTable {
    let whose = match (split.described, split.devices) {
        (described, devices) if described < devices => format!("the first {described} of {devices} devices"),
        (_, devices) => format!("all {devices} devices"),
    };
    SplitTable {
        title: format!("Samples of each class on {whose}"),
        classes: split.train_counts.len(),
        counts: split.class_counts.iter().map(|counts| counts.iter().map(|&n| n as u64).collect()).collect(),
        heterogeneity: split.heterogeneity,
    }
}
