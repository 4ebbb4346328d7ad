//! The numbers of runs, and their tables: `results.csv`, and one for people. `summary.json` is in
//! `summary.rs`.

use crate::claims::CurveKeys;
use crate::error::Error;
use crate::experiment::{Curve, Shortened};
use crate::statistics::{Estimate, estimate, evenness, instability, mean_height, median};
use crate::table::{number, table as plain_table};
use fedlink::config::{Config, ScheduleConfig};
use fedlink::record::{Column, Guarantee, Outcome, ROW_COLUMNS, Row};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// All rounds done.
    Finished,
    /// Ended early by Ctrl-C.
    Interrupted,
    /// Ended early because its numbers were no longer finite; the message names the round and the device.
    Diverged(String),
}

/// One seed of a curve.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunResult {
    /// `run.seed` of this run.
    pub seed: u64,
    /// A row for each evaluated round.
    pub rows: Vec<Row>,
    /// The run in numbers.
    pub outcome: Outcome,
    /// How it ended.
    pub status: Status,
    /// Wall-clock time in seconds, other runs beside it included.
    pub seconds: f64,
}

impl RunResult {
    /// The mean height of the accuracy curve.
    pub fn area(&self) -> Option<f64> {
        let points: Vec<(f64, f64)> =
            self.rows.iter().map(|row| (row.round as f64, row.test_accuracy)).collect();
        mean_height(&points)
    }

    /// How restless the accuracy ends.
    pub fn instability(&self) -> Option<f64> {
        let accuracies: Vec<f64> = self.rows.iter().map(|row| row.test_accuracy).collect();
        instability(&accuracies)
    }

    /// The first evaluated round that meets the target, a share.
    pub fn at_target(&self, target: f64) -> Option<&Row> {
        self.rows.iter().find(|row| row.test_accuracy >= target)
    }

    /// The share of rounds in which each device was scheduled.
    pub fn scheduled_shares(&self) -> Vec<f64> {
        let rounds = self.outcome.rounds.max(1) as f64;
        self.outcome.scheduled.iter().map(|&times| f64::from(times) / rounds).collect()
    }

    /// Whether its numbers are those of all its rounds.
    pub fn is_finished(&self) -> bool {
        self.status == Status::Finished
    }
}

/// A run of a curve that has no end yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// The curve's label.
    pub curve: String,
    /// Its seed.
    pub seed: u64,
    /// Rounds done here; 0 if only others may have done some.
    pub rounds: u64,
    /// Rounds to do.
    pub of: u64,
}

/// `bc k=1 seed 3 (round 20 of 500)`.
impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { curve, seed, rounds, of } = self;
        match rounds {
            0 => write!(f, "{curve} seed {seed} (not finished)"),
            _ => write!(f, "{curve} seed {seed} (round {rounds} of {of})"),
        }
    }
}

/// A curve with its runs, one for each seed.
#[derive(Clone, Debug)]
pub struct CurveResult {
    /// What distinguishes it from the other curves.
    pub label: String,
    /// Its value of every swept key.
    pub keys: CurveKeys,
    /// Its configuration, at the first seed.
    pub config: Config,
    /// Mean distance of the devices' class mixes from the overall one, at the first seed.
    pub heterogeneity: f64,
    /// The runs that have ended, one for each seed; of a curve none of whose runs has, those that were begun.
    /// Means are over these: a run that was stopped is never averaged with one that was not.
    pub runs: Vec<RunResult>,
    /// The seeds that are not among `runs`, or have not ended.
    pub unfinished: Vec<Unfinished>,
    /// How the curve was shortened, if it was.
    pub shortened: Option<Shortened>,
}

/// The runs under the curves they belong to, and every run that has no end. A curve none of whose runs was
/// begun is in the second list only. `whole` says how the experiment was shortened.
pub fn gather(
    curves: &[Curve],
    heterogeneity: &[f64],
    whole: Option<Shortened>,
    runs: Vec<(usize, RunResult)>,
) -> (Vec<CurveResult>, Vec<Unfinished>) {
    let mut by_curve: Vec<Vec<RunResult>> = curves.iter().map(|_| Vec::new()).collect();
    for (curve, mut run) in runs {
        let target = curves[curve].config.run.target;
        run.outcome.target = target;
        run.outcome.rounds_to_target = run.at_target(target).map(|row| row.round);
        by_curve[curve].push(run);
    }
    let (mut results, mut all_unfinished) = (Vec::new(), Vec::new());
    for ((curve, &heterogeneity), mut runs) in curves.iter().zip(heterogeneity).zip(by_curve) {
        let Curve { label, keys, config } = curve;
        let unfinished: Vec<Unfinished> = (0..config.run.seeds)
            .map(|i| config.run.seed + i)
            .filter(|seed| !runs.iter().any(|run| run.seed == *seed && run.status.has_ended()))
            .map(|seed| {
                let begun = runs.iter().find(|run| run.seed == seed);
                let rounds = begun.map_or(0, |run| run.outcome.rounds);
                Unfinished { curve: label.clone(), seed, rounds, of: config.run.rounds }
            })
            .collect();
        all_unfinished.extend(unfinished.iter().cloned());
        if runs.iter().any(|run| run.status.has_ended()) {
            runs.retain(|run| run.status.has_ended());
        }
        if runs.is_empty() {
            continue;
        }
        let ended = runs.iter().filter(|run| run.status.has_ended()).count() as u64;
        results.push(CurveResult {
            label: label.clone(),
            keys: keys.clone(),
            config: config.clone(),
            heterogeneity,
            shortened: curve.shortened(whole, ended),
            runs,
            unfinished,
        });
    }
    (results, all_unfinished)
}

impl Status {
    /// Whether the run will do no more rounds.
    pub fn has_ended(&self) -> bool {
        *self != Self::Interrupted
    }

    /// As it stands in `summary.json`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Diverged(_) => "diverged",
        }
    }
}

impl CurveResult {
    /// Mean and interval over the seeds; none if a seed has no value.
    pub fn over_seeds(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Estimate> {
        let values: Option<Vec<f64>> = self.runs.iter().map(value).collect();
        values.filter(|values| !values.is_empty()).map(estimate)
    }

    /// The same of a number that every run has.
    pub fn over_all(&self, value: impl Fn(&RunResult) -> f64) -> Estimate {
        estimate(self.runs.iter().map(value))
    }

    /// The same of a number that a run that diverged does not have; none if one did: the mean of the others
    /// would look better than the curve is.
    pub fn at_the_end(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Estimate> {
        self.over_seeds(|run| value(run).filter(|_| !matches!(run.status, Status::Diverged(_))))
    }

    /// The mean over the seeds; none if a seed has no value.
    pub(crate) fn mean(&self, value: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
        self.over_seeds(|run| value(&run.outcome)).map(|estimate| estimate.mean)
    }

    pub(crate) fn mean_of(&self, value: impl Fn(&Outcome) -> f64) -> f64 {
        self.mean(|outcome| Some(value(outcome))).unwrap_or(f64::NAN)
    }

    /// An estimate over the seeds for every evaluated round that all of them have reached.
    pub fn by_row(&self, value: impl Fn(&Row) -> f64) -> Vec<Estimate> {
        let reached = self.runs.iter().map(|run| run.rows.len()).min().unwrap_or(0);
        (0..reached).map(|i| estimate(self.runs.iter().map(|run| value(&run.rows[i])))).collect()
    }

    /// A number of every device. Device m holds other data at every seed, so that its mean over the seeds
    /// means nothing. Of several seeds the devices of each are therefore sorted, the largest number first,
    /// and the means are those of equal ranks; of one seed they stand by their index.
    pub fn by_device(&self, values: impl Fn(&RunResult) -> Vec<f64>) -> Vec<f64> {
        let mut runs: Vec<Vec<f64>> = self.runs.iter().map(values).collect();
        if let [run] = &mut runs[..] {
            return std::mem::take(run);
        }
        runs.iter_mut().for_each(|run| run.sort_by(|a, b| b.total_cmp(a)));
        let devices = runs.iter().map(Vec::len).min().unwrap_or(0);
        (0..devices).map(|rank| estimate(runs.iter().map(|run| run[rank])).mean).collect()
    }

    /// How evenly the devices were used: of each seed by itself, then the mean over the seeds with its
    /// interval.
    pub fn device_use(&self) -> DeviceUse {
        let sorted = |run: &RunResult| {
            let mut shares = run.scheduled_shares();
            shares.sort_by(f64::total_cmp);
            shares
        };
        let allowed = self.allowed_power() * (1.0 + 1e-9);
        DeviceUse {
            least: self.over_all(|run| sorted(run).first().copied().unwrap_or(f64::NAN)),
            median: self.over_all(|run| median(&sorted(run))),
            most: self.over_all(|run| sorted(run).last().copied().unwrap_or(f64::NAN)),
            evenness: self.over_all(|run| evenness(&run.scheduled_shares())),
            highest_power: self.over_all(|run| run.outcome.worst_average_power.0),
            above: self.over_all(|run| {
                run.outcome.average_power.iter().filter(|power| **power > allowed).count() as f64
            }),
        }
    }

    /// Average power of the device that spent most: of each seed by itself, then the mean over the seeds.
    pub fn highest_power(&self) -> Estimate {
        self.over_all(|run| run.outcome.worst_average_power.0)
    }

    /// The status of the run that ended worst.
    pub fn status(&self) -> &Status {
        let badness = |status: &Status| match status {
            Status::Finished => 0,
            Status::Interrupted => 1,
            Status::Diverged(_) => 2,
        };
        let left_out = (!self.unfinished.is_empty()).then_some(&Status::Interrupted);
        let statuses = self.runs.iter().map(|run| &run.status).chain(left_out);
        statuses.max_by_key(|status| badness(status)).unwrap_or(&Status::Interrupted)
    }

    /// The run's digest, or the digests of all seeds one after the other.
    pub(crate) fn digest(&self) -> String {
        let digests: Vec<&str> = self.runs.iter().map(|run| run.outcome.digest.as_str()).collect();
        digests.join("+")
    }
}

/// The swept keys that have a column of their own in `results.csv`: all but policy and K,
/// which are always there.
pub fn swept_columns(results: &[CurveResult]) -> Vec<&str> {
    let keys = results.first().into_iter().flat_map(|curve| &curve.keys).map(|(key, _)| key.as_str());
    keys.filter(|key| !["schedule.policy", "schedule.k"].contains(key)).collect()
}

/// How evenly the devices of a curve were used: means over the seeds, each with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceUse {
    /// The smallest share of rounds in which a device was scheduled.
    pub least: Estimate,
    /// The median share.
    pub median: Estimate,
    /// The largest share.
    pub most: Estimate,
    /// Jain's index of the shares.
    pub evenness: Estimate,
    /// Average power of the device that spent most.
    pub highest_power: Estimate,
    /// Devices whose average power is above P̄ (`radio.power`, or `radio.power_dbm` where the radio has
    /// units).
    pub above: Estimate,
}

impl CurveResult {
    /// The curve's value of a swept key, as it is written.
    pub fn swept(&self, key: &str) -> &str {
        self.keys.iter().find(|(own, _)| own == key).map_or("", |(_, value)| value)
    }
}

/// The columns of a row in `results.csv`: those of seconds and joules only where some run has them, those of
/// losses only where some run has units or losses, that of reports only where they cost symbols.
pub fn row_columns(results: &[CurveResult]) -> Vec<&'static Column<Row>> {
    let rows = || results.iter().flat_map(|curve| &curve.runs).flat_map(|run| &run.rows);
    let units = rows().any(|row| row.total_seconds.is_some());
    let losses = rows().any(|row| row.outages + row.late > 0);
    let is_there = |column: &&Column<Row>| match (column.unit, column.name) {
        ("s" | "J", _) => units,
        (_, "outages" | "late") => units || losses,
        (_, "report_symbols") => rows().any(|row| row.report_symbols > 0.0),
        _ => true,
    };
    ROW_COLUMNS.iter().filter(is_there).collect()
}

/// `results.csv`: a row for each evaluated round of each run.
pub fn csv(results: &[CurveResult]) -> Result<Vec<u8>, Error> {
    let swept = swept_columns(results);
    let metrics = metric_columns(results);
    let columns = row_columns(results);
    let names = columns.iter().map(|column| column.name);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let before = ["curve", "policy", "k"].into_iter().chain(swept.iter().copied()).chain(["seed"]);
    writer.write_record(before.chain(names).chain(metrics.iter().map(String::as_str)))?;
    for curve in results {
        let ScheduleConfig { policy, k, .. } = &curve.config.schedule;
        let k = k.to_string();
        for run in &curve.runs {
            let seed = run.seed.to_string();
            for row in &run.rows {
                let swept = swept.iter().map(|key| curve.swept(key));
                let before =
                    [curve.label.as_str(), policy, &k].into_iter().chain(swept).chain([seed.as_str()]);
                let values = columns.iter().map(|column| (column.value)(row).text());
                let metric = |name: &String| {
                    let found = row.metrics.iter().find(|(known, _)| known == name);
                    found.map_or_else(String::new, |(_, value)| value.to_string())
                };
                let values = before.map(str::to_owned).chain(values).chain(metrics.iter().map(metric));
                writer.write_record(values)?;
            }
        }
    }
    writer.into_inner().map_err(|error| Error::Table(error.to_string()))
}

/// The names of further metrics that tasks measured, in the order in which they first appear.
pub fn metric_columns(results: &[CurveResult]) -> Vec<String> {
    let rows = results.iter().flat_map(|curve| &curve.runs).flat_map(|run| &run.rows);
    let mut names: Vec<String> = Vec::new();
    for (name, _) in rows.flat_map(|row| &row.metrics) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// `bits to 80 %`: a target as tables call it.
pub fn percent_of(share: f64) -> String {
    let percent = format!("{:.2}", 100.0 * share);
    format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// The targets of the curves as a table's head has them: `80 %`, or `target` where they differ.
pub fn target_name(results: &[CurveResult]) -> String {
    let mut targets = results.iter().map(|curve| curve.config.run.target);
    let first = targets.next().unwrap_or_else(|| Config::default().run.target);
    if targets.all(|target| target == first) { percent_of(first) } else { "target".into() }
}

/// The table at the end of a run. Seconds and joules are there where some run has them, uploads that did not
/// arrive in time or at all where there are any.
pub fn table(results: &[CurveResult]) -> String {
    let target = target_name(results);
    let costs = results.iter().any(CurveResult::has_costs);
    let lost: Vec<Lost> =
        LOST.into_iter().filter(|(_, lost)| results.iter().any(|c| c.mean_of(*lost) > 0.0)).collect();
    let mut header = vec!["curve".to_owned(), "final".into(), "best".into(), format!("rounds to {target}")];
    if costs {
        header.extend([format!("seconds to {target}"), format!("joules to {target}")]);
    }
    header.extend(["bits/round", "mean q", "highest power"].map(str::to_owned));
    if costs {
        header.extend(["seconds", "joules", "worst device"].map(str::to_owned));
    }
    header.extend(lost.iter().map(|(name, _)| (*name).to_owned()));
    let heard = results.iter().any(|curve| curve.heard_text().is_some());
    if heard {
        header.push("heard".into());
    }
    header.extend(["digest", "status"].map(str::to_owned));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = results.iter().map(|curve| table_row(curve, costs, &lost, heard)).collect();
    let mut text = plain_table(&header, &rows);
    let _ = writeln!(
        text,
        "highest power: average power of the device that {}, of each seed by itself, against {};\n  \
         P counts for the whole of every round in which the device is scheduled",
        // Without units every device sends with the same power.
        if results.iter().any(CurveResult::has_units) { "spent the most" } else { "was scheduled most" },
        power_key(results)
    );
    if heard {
        text += "heard: devices that were ever scheduled, of all; mean over the seeds\n";
    }
    if costs {
        text += "seconds, joules: of all rounds, the joules of all devices together; worst device: joules of \
                 the device that spent the most\n";
    }
    results.iter().for_each(|curve| text += &remarks(curve));
    text
}

/// Columns that are there where some run has one above 0: uploads that did not arrive, by why, and what
/// reports cost.
type Lost = (&'static str, fn(&Outcome) -> f64);

const LOST: [Lost; 3] = [
    ("outages", |outcome| outcome.outages as f64),
    ("late", |outcome| outcome.late as f64),
    ("report symbols/round", |outcome| outcome.report_symbols_per_round),
];

fn table_row(curve: &CurveResult, costs: bool, lost: &[Lost], heard: bool) -> Vec<String> {
    let dash = || "–".to_owned();
    let percent =
        |value: Option<Estimate>| value.map_or_else(dash, |share| format!("{:.2} %", 100.0 * share.mean));
    let spent = |value: Option<Estimate>| value.map_or_else(dash, |spent| number(spent.mean));
    let target = curve.config.run.target;
    let rounds = curve.over_seeds(|run| run.at_target(target).map(|row| row.round as f64));
    let digest = match &curve.runs[..] {
        [run] => run.outcome.digest[..12].to_owned(),
        runs => format!("{} seeds", runs.len()),
    };
    let mut row = vec![
        curve.label.clone(),
        percent(curve.at_the_end(|run| run.outcome.final_accuracy)),
        percent(curve.at_the_end(|run| run.outcome.best_accuracy)),
        rounds.map_or_else(dash, |rounds| format!("{:.0}", rounds.mean)),
    ];
    if costs {
        row.push(spent(curve.over_seeds(|run| run.at_target(target)?.total_seconds)));
        row.push(spent(curve.over_seeds(|run| run.at_target(target)?.total_joules)));
    }
    row.extend([
        format!("{:.0}", curve.mean_of(|outcome| outcome.bits_per_round)),
        format!("{:.0}", curve.mean_of(|outcome| outcome.mean_q)),
        curve.power_text(curve.highest_power().mean),
    ]);
    if costs {
        row.push(spent(curve.over_seeds(|run| run.outcome.seconds())));
        row.push(spent(curve.over_seeds(|run| run.outcome.joules())));
        row.push(spent(curve.over_seeds(|run| run.outcome.worst_device_joules())));
    }
    row.extend(lost.iter().map(|(_, lost)| format!("{:.1}", curve.mean_of(lost))));
    if heard {
        row.push(curve.heard_text().unwrap_or_else(|| "all".into()));
    }
    row.extend([digest, curve.status().name().to_owned()]);
    row
}

/// The key of P̄: `radio.power_dbm` where the radio has units.
fn power_key(results: &[CurveResult]) -> &'static str {
    let units = results.iter().filter(|curve| curve.has_units()).count();
    match units {
        0 => "radio.power",
        all if all == results.len() => "radio.power_dbm",
        _ => "radio.power or radio.power_dbm",
    }
}

/// What the numbers of a curve do not show, a line each.
fn remarks(curve: &CurveResult) -> String {
    let mut text = String::new();
    let lost = [
        ("could not be decoded", curve.mean_of(|outcome| outcome.undecodable_transmissions as f64)),
        (
            "contradicted reports and were dropped",
            curve.mean_of(|outcome| outcome.flagged_transmissions as f64),
        ),
    ];
    for (what, uploads) in lost.into_iter().filter(|(_, uploads)| *uploads > 0.0) {
        let _ = writeln!(text, "{}: {uploads:.1} uploads a run {what}", curve.label);
    }
    let excluded = curve.mean_of(|outcome| outcome.excluded.len() as f64);
    if excluded > 0.0 {
        let _ = writeln!(text, "{}: {excluded:.1} devices a run were excluded", curve.label);
    }
    if let Some(saturated) = curve.saturated() {
        let _ = writeln!(text, "{}: {saturated}", curve.label);
    }
    for line in curve.privacy() {
        let _ = writeln!(text, "{}: {line}", curve.label);
    }
    for (seed, warning) in curve.warnings() {
        let _ = writeln!(text, "{} (seed {seed}): {warning}", curve.label);
    }
    for run in &curve.runs {
        if let Status::Diverged(message) = &run.status {
            let _ = writeln!(text, "{} (seed {}): {message}", curve.label, run.seed);
        }
    }
    text
}

impl CurveResult {
    /// The largest ε of the seeds; none without privacy, or if a seed has no guarantee.
    pub fn epsilon(&self) -> Option<f64> {
        let values: Option<Vec<f64>> =
            self.runs.iter().map(|run| run.outcome.privacy.as_ref()?.epsilon).collect();
        values?.into_iter().reduce(f64::max)
    }

    /// What the curve's runs have released of a device, and what the number does not cover; nothing without
    /// `privacy.noise`. Of several seeds it is the one that released most.
    pub fn privacy(&self) -> Vec<String> {
        let known = self.runs.iter().filter_map(|run| run.outcome.privacy.as_ref());
        let of = |guarantee: &Guarantee| guarantee.epsilon.unwrap_or(f64::INFINITY);
        let Some(worst) = known.max_by(|a, b| of(a).total_cmp(&of(b))) else { return Vec::new() };
        let number = match (worst.epsilon, worst.tight_epsilon, worst.order) {
            (Some(epsilon), Some(tight), Some(order)) => format!(
                "ε = {epsilon:.3} at δ = {:e} (Rényi order {order}; {tight:.3} by a tighter conversion)",
                worst.delta
            ),
            _ => "no privacy guarantee".to_owned(),
        };
        std::iter::once(number).chain(worst.caveats.iter().cloned()).collect()
    }

    /// What the runs warned of beside the cautions of their configuration, with the first seed of each
    /// warning; those that differ in nothing but numbers are one.
    pub fn warnings(&self) -> Vec<(u64, &str)> {
        let cautions = self.config.cautions();
        let kind = |warning: &str| warning.replace(|c: char| c.is_ascii_digit(), "");
        let mut found: Vec<(u64, &str)> = Vec::new();
        for run in &self.runs {
            for warning in run.outcome.warnings.iter().filter(|warning| !cautions.contains(warning)) {
                if found.iter().all(|(_, other)| kind(other) != kind(warning)) {
                    found.push((run.seed, warning));
                }
            }
        }
        found
    }

    /// Devices that were ever scheduled, of all, mean over the seeds: `13/60`; none if all were in every
    /// seed.
    pub fn heard_text(&self) -> Option<String> {
        let devices = self.config.data.devices as usize;
        let known = self.runs.iter().filter(|run| run.outcome.scheduled.len() == devices);
        known.clone().any(|run| run.outcome.heard() < devices).then(|| {
            let sum: usize = known.clone().map(|run| run.outcome.heard()).sum();
            let mean = sum as f64 / known.count() as f64;
            let decimals = usize::from(mean.fract() != 0.0);
            format!("{mean:.decimals$}/{devices}")
        })
    }

    /// That the scheme was at its highest level in most uploads, so that the links could have carried more
    /// than it can send; none if it was not.
    pub fn saturated(&self) -> Option<String> {
        let highest = self.mean(|outcome| outcome.at_highest_level).filter(|share| *share > 0.5)?;
        // What is not a link uses more than all of it.
        let used = self.mean(|outcome| outcome.budget_used).filter(|used| *used <= 1.0)?;
        Some(format!(
            "{} was at its highest level in {:.0} % of the uploads, and used {:.0} % of the bits that the \
             links would have carried",
            self.config.compress.scheme,
            100.0 * highest,
            100.0 * used
        ))
    }
}

#[cfg(test)]
mod tests;
