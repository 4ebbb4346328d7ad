//! `report.html`: an experiment as one page that refers to no other files.
//!
//! [`Report`] is plain data; [`Report::html`] writes the page. Every table is in the page as it is written,
//! so that it can be read without JavaScript; the charts are drawn by a small script from the data embedded
//! in the page. A policy inside the page forbids it any access to the network. For any strings and numbers in
//! the report, the page is well formed: text is escaped and numbers that are not finite are shown as missing.
//! The same report always gives the same bytes.

mod answer;
mod charts;
mod cost_sections;
#[cfg(test)]
mod example;
mod fairness_section;
mod fill;
mod html;
mod live;
mod scatter;
mod tables;
#[cfg(test)]
mod tests;
mod verdicts;

use crate::chart::{CellMap, Curve, Lines, Look, kept_rows, seven_digits};
use crate::figure::Figure;
use crate::plots::{Across, Up};
use charts::{PageCharts, color_style, still_chart};
use fedlink_study::goals::Median;
use fedlink_study::statistics::Estimate;
use html::{embedded_json, escape, fill};
pub use live::{live_page, live_parts, live_script, live_style};
pub use scatter::{GroupRow, Point};
use serde::{Serialize, Serializer};

const TEMPLATE: &str = include_str!("template.html");
/// The controls of the chart of curves.
const CONTROLS: &str = include_str!("controls.html");
const STYLE: &str = include_str!("style.css");

/// The parts that other pages have in common with this one.
pub(crate) mod page_parts {
    pub use super::html::escape;

    /// The style of a page, its colors included.
    pub const STYLE: &str = super::STYLE;
}
/// The parts of the script, in the order in which they build on one another.
const SCRIPT: &str = concat!(
    include_str!("script/base.js"),
    include_str!("script/frame.js"),
    include_str!("script/lines.js"),
    include_str!("script/curves.js"),
    include_str!("script/devices.js"),
    include_str!("script/scatter.js"),
    include_str!("script/download.js"),
    include_str!("script/page.js"),
);

/// All that the page shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The experiment's name.
    pub title: String,
    /// The program and its version.
    pub generated_by: String,
    /// Shell commands that give the same numbers again.
    pub reproduce: Vec<String>,
    /// The whole configuration.
    pub config_toml: String,
    /// The data set, the model, the split, the devices, the rounds and the seeds in a line.
    pub head: String,
    /// The goal of the chart of seconds and joules.
    #[serde(skip)]
    pub scatter_goal: String,
    /// M.
    pub devices: usize,
    /// P̄, the average power that every device is allowed.
    pub average_power: f64,
    /// The unit of powers: `W`, or empty where the radio has no units.
    pub power_unit: String,
    /// The accuracy to which "rounds to" and "bits to" count, as a share.
    pub target: f64,
    /// The goals of the experiment: name and text of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<(String, String)>,
    /// The curves, in the order of the legend.
    pub curves: Vec<ReportCurve>,
    /// Differences in final accuracy between curves that share their seeds; each pair once.
    pub differences: Vec<PairedDifference>,
    /// Accuracy by round, a chart for each swept key with a panel for each of its values, where there are
    /// many curves; drawn, not embedded as data.
    #[serde(skip)]
    pub panels: Vec<Lines>,
    /// Maps of the curves that have a cell; drawn, not embedded as data.
    #[serde(skip)]
    pub cells: Vec<CellMap>,
    /// The distribution of the SNRs; drawn, not embedded as data.
    #[serde(skip)]
    pub snr: Option<Lines>,
    /// The samples of each class on each device; embedded as a chart.
    #[serde(skip)]
    pub split: Option<SplitTable>,
    /// The claims, and whether they hold here.
    pub claims: Vec<ClaimVerdict>,
    /// Remarks, one paragraph each.
    pub notes: Vec<String>,
}

/// One curve: a mean over its seeds.
///
/// The series belong to the evaluated rounds and are as long as `rounds`; values beyond are not drawn. They
/// are embedded with seven significant digits, finer than any screen; intervals are embedded as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportCurve {
    /// Its name in the legend.
    pub label: String,
    /// Its value of every swept key.
    pub keys: Vec<(String, String)>,
    /// The policy's name.
    pub policy: String,
    /// The family of the policy or scheme, where curves are colored by it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub family: String,
    /// Its look; none: by its place.
    #[serde(skip)]
    pub look: Option<Look>,
    /// K.
    pub k: u64,
    /// The number of seeds.
    pub seeds: usize,
    /// The ends of the runs: `finished`, `interrupted` or `diverged`.
    pub status: String,
    /// K/M: the share of rounds in which each device would be scheduled if all were alike.
    pub fair_share: f64,
    /// The evaluated rounds.
    pub rounds: Vec<u64>,
    /// Bits sent by all devices until then.
    #[serde(serialize_with = "rounded")]
    pub bits: Vec<f64>,
    /// Channel symbols used until then.
    #[serde(serialize_with = "rounded")]
    pub symbols: Vec<f64>,
    /// Seconds of all rounds until then; empty without units.
    #[serde(serialize_with = "rounded")]
    pub seconds: Vec<f64>,
    /// Joules of all devices until then; empty without units.
    #[serde(serialize_with = "rounded")]
    pub joules: Vec<f64>,
    /// Mean test accuracy, as a share.
    #[serde(serialize_with = "rounded")]
    pub accuracy: Vec<f64>,
    /// Lower end of its 95 % band; the accuracy itself for one seed.
    #[serde(serialize_with = "rounded")]
    pub low: Vec<f64>,
    /// Upper end of the band.
    #[serde(serialize_with = "rounded")]
    pub high: Vec<f64>,
    /// Mean test loss.
    #[serde(serialize_with = "rounded")]
    pub loss: Vec<f64>,
    /// Mean q of the transmissions since the evaluation before.
    #[serde(serialize_with = "rounded")]
    pub mean_q: Vec<f64>,
    /// Mean bits sent in a round since the evaluation before.
    #[serde(serialize_with = "rounded")]
    pub bits_per_round: Vec<f64>,
    /// Accuracy at the last evaluation.
    pub final_accuracy: Interval,
    /// Accuracy at the best evaluation.
    pub best_accuracy: Interval,
    /// Local trainings per round.
    pub trainings_per_round: f64,
    /// Rounds until the target was first met; none if a seed has no number.
    pub rounds_to_target: Option<Median>,
    /// Bits sent until then.
    pub bits_to_target: Option<Median>,
    /// The values of the goals of the experiment, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalValue>,
    /// Area under the accuracy curve by rounds, divided by the number of rounds.
    pub area_under_curve: Interval,
    /// The size of the jumps of the accuracy between evaluations.
    pub instability: Interval,
    /// Whether `scheduled` and `power` are by rank among the devices of a seed, the largest first, and means
    /// over the seeds; if not, they are those of the devices of the only seed.
    pub ranked: bool,
    /// The share of rounds in which a device was scheduled.
    #[serde(serialize_with = "rounded")]
    pub scheduled: Vec<f64>,
    /// The average power of a device.
    #[serde(serialize_with = "rounded")]
    pub power: Vec<f64>,
    /// The evenness of the use of devices.
    pub devices: DeviceTotals,
    /// Seconds and joules; none without units.
    pub costs: Option<CurveCosts>,
    /// Seconds and joules until the goal; none without units, or if the goal was not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scatter: Option<Point>,
    /// The use of the groups of devices; empty without groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRow>,
    /// The evenness of the model over classes and devices; none without `run.fairness`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<CurveFairness>,
    /// The digest of every run, in the order of the seeds.
    pub digest: Vec<String>,
}

/// The evenness of a model over classes and devices at the last evaluation: means over the seeds, none where
/// a seed has no such number.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CurveFairness {
    /// The accuracy of each class.
    pub classes: Vec<Option<Interval>>,
    /// That of the worst class of each seed.
    pub worst_class: Option<Interval>,
    /// The mean accuracy of the worst tenth of the devices.
    pub worst_tenth: Option<Interval>,
    /// The standard deviation of the devices' accuracies.
    pub device_deviation: Option<Interval>,
    /// Jain's index of the numbers of rounds in which devices were scheduled.
    pub jain: Option<Interval>,
    /// Rounds since the device that waits longest was scheduled.
    pub max_age: Option<Interval>,
    /// The mean over the devices.
    pub mean_age: Option<Interval>,
}

/// The value of a goal of the experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GoalValue {
    /// The median of a cost or the mean of a metric; none if too many runs did not reach the goal.
    pub value: Option<f64>,
    /// As a table shows it.
    pub text: String,
    /// The ends of its interval as text; empty without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interval: String,
    /// The ends of its interval; without a number where an end is not known.
    #[serde(skip)]
    pub ends: (Option<f64>, Option<f64>),
    /// Whether it is a cost, of which less is better.
    pub is_cost: bool,
    /// Whether larger values are better.
    #[serde(skip)]
    pub rises: bool,
}

/// The costs of a curve: medians over the seeds until the target, otherwise means.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CurveCosts {
    /// Seconds until the target was first met; none if a seed has no number.
    pub seconds_to_target: Option<Median>,
    /// Joules of all devices until then.
    pub joules_to_target: Option<Median>,
    /// Seconds of all rounds.
    pub total_seconds: Option<Interval>,
    /// Joules of all devices in all rounds.
    pub total_joules: Option<Interval>,
    /// Joules of the device that spent the most.
    pub worst_device_joules: Option<Interval>,
    /// Uploads of a run that the channel did not carry.
    pub outages: f64,
    /// Uploads of a run that came after the deadline.
    pub late: f64,
    /// Seconds of a round by phase, as [`fedlink_study::costs::PHASES`] names them.
    pub phases_s: [f64; 4],
    /// Joules of all devices in a round by kind, as [`fedlink_study::costs::KINDS`] names them.
    pub energy_j: [f64; 5],
    /// Joules of each device, or of each rank where the curve is ranked; drawn, not embedded as data.
    #[serde(skip)]
    pub device_energy_j: Vec<[f64; 5]>,
}

/// The evenness of the use of devices: measured in each seed, then the mean over the seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceTotals {
    /// The smallest share of rounds in which a device was scheduled.
    pub least: Interval,
    /// The median share.
    pub median: Interval,
    /// The largest share.
    pub most: Interval,
    /// Jain's index.
    pub evenness: Interval,
    /// Average power of the device that spent most.
    pub highest_power: Interval,
    /// Devices above P̄.
    pub above: Interval,
}

/// A mean with its 95 % confidence interval. `low == high` means that there is no interval, as for one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Interval {
    /// The mean over the seeds.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of a mean of shares, inside [0, 1].
    fn of_share(estimate: Estimate) -> Self {
        let known = estimate.half_width.is_finite();
        let (low, high) = if known { estimate.ends_within(0.0, 1.0) } else { (estimate.mean, estimate.mean) };
        Self { mean: estimate.mean, low, high }
    }

    /// Whether there is an interval around the mean.
    fn is_known(self) -> bool {
        self.low.is_finite() && self.high.is_finite() && self.low < self.high
    }

    /// Whether the interval lies on one side of zero.
    fn excludes_zero(self) -> bool {
        self.is_known() && (self.low > 0.0 || self.high < 0.0)
    }
}

/// Final accuracy of `a` less that of `b`, on the same seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PairedDifference {
    /// A curve's label.
    pub a: String,
    /// Another's.
    pub b: String,
    /// As a share of right answers.
    pub difference: Interval,
}

/// The number of samples of each class that the devices hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SplitTable {
    /// The name of the split.
    pub title: String,
    /// The number of classes.
    pub classes: usize,
    /// Samples by device and class.
    pub counts: Vec<Vec<u64>>,
    /// One number for how unlike the devices are.
    pub heterogeneity: f64,
}

/// A claim set against the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClaimVerdict {
    /// The claim in words.
    pub claim: String,
    /// `holds`, `does not hold`, `undecided` or `refused`, and a note if runs were shortened or the claim was
    /// made after the results.
    pub verdict: String,
    /// The difference in accuracy (a share) that decides it.
    pub difference: Option<Interval>,
    /// The reason for the verdict.
    pub detail: String,
}

impl Report {
    /// The page.
    pub fn html(&self) -> String {
        fill(TEMPLATE, |slot| {
            Some(match slot {
                "title" => escape(&self.title),
                "generated_by" => escape(&self.generated_by),
                "style" => color_style() + STYLE,
                "script" => SCRIPT.to_owned(),
                "data" => embedded_json(&Data { report: self, charts: PageCharts::new(self) }),
                "facts" => tables::facts(self),
                "navigation" => self.navigation(),
                "highlights" => verdicts::highlights(self),
                "answer" => answer::answer(self),
                "scatter" => scatter::scatter(self),
                "groups" => scatter::groups(self),
                "controls" => CONTROLS.replace("{{cost_axes}}", &cost_sections::axes(self)),
                "claims" => verdicts::claims(self),
                "still" => inside_page(&still_chart(self).svg()).to_owned(),
                "panels" => self.panels(),
                "results" => tables::results(self),
                "digests" => tables::digests(self),
                "differences" => verdicts::differences(self),
                "scheduling" => tables::scheduling(self),
                "fairness" => fairness_section::fairness(self),
                "costs" => cost_sections::costs(self),
                "cell" => cost_sections::cell(self),
                "split" => tables::split(self),
                "config" => escape(&self.config_toml),
                "reproduce" => escape(&self.reproduce.join("\n")),
                "notes" => tables::notes(self),
                _ => return None,
            })
        })
    }

    /// Links to the sections that the page has.
    fn navigation(&self) -> String {
        let sections = [
            ("trade", "Seconds against joules", self.curves.iter().any(|curve| curve.scatter.is_some())),
            ("groups", "Groups", self.curves.iter().any(|curve| !curve.groups.is_empty())),
            ("curves", "Curves", true),
            ("claims", "Claims", !self.claims.is_empty()),
            ("results", "Results", true),
            ("differences", "Differences", !self.differences.is_empty()),
            ("devices", "Devices", true),
            ("link", "Link", true),
            ("fairness", "Fairness", fairness_section::has_fairness(self)),
            ("costs", "Seconds and joules", cost_sections::has_costs(self)),
            ("cell", "Cell", cost_sections::has_cell(self)),
            ("split", "Data", self.split.is_some()),
            ("notes", "Notes", !self.notes.is_empty()),
            ("configuration", "Configuration", true),
            ("reproduce", "Reproduce", true),
        ];
        sections.iter().filter(|section| section.2).fold(String::new(), |links, (id, name, _)| {
            links + &format!("<li><a href=\"#{id}\">{name}</a></li>")
        })
    }

    /// Small charts side by side, which can be read without JavaScript; all but the first to be opened.
    fn panels(&self) -> String {
        let figure = |(i, chart): (usize, &Lines)| {
            let names: Vec<&str> = chart.panels.iter().map(|panel| panel.name.as_str()).collect();
            let drawn = drawing(&format!("Accuracy by round: {}", names.join(", ")), chart);
            let summary = escape(&names.join(", "));
            let open = if i == 0 { " open=\"\"" } else { "" };
            format!("<details class=\"panels\"{open}><summary>{summary}</summary>\n{drawn}</details>\n")
        };
        self.panels.iter().enumerate().map(figure).collect()
    }
}

/// The data that the page carries: the report, and the specification of its charts.
#[derive(Serialize)]
struct Data<'a> {
    #[serde(flatten)]
    report: &'a Report,
    charts: PageCharts,
}

impl ReportCurve {
    /// Leaves out evaluations of a long run; its peaks and gaps stay.
    fn thin(&mut self) {
        let columns = [&self.accuracy, &self.low, &self.high, &self.loss, &self.mean_q, &self.bits_per_round];
        let values: Vec<_> = columns
            .map(|column| move |row: usize| column.get(row).copied().unwrap_or(f64::NAN))
            .into_iter()
            .collect();
        let values: Vec<&dyn Fn(usize) -> f64> = values.iter().map(|value| value as _).collect();
        let rows = kept_rows(self.rounds.len(), &values);
        self.rounds = rows.iter().map(|&row| self.rounds[row]).collect();
        for column in [
            &mut self.bits,
            &mut self.symbols,
            &mut self.seconds,
            &mut self.joules,
            &mut self.accuracy,
            &mut self.low,
            &mut self.high,
            &mut self.loss,
            &mut self.mean_q,
            &mut self.bits_per_round,
        ] {
            *column = rows.iter().filter_map(|&row| column.get(row).copied()).collect();
        }
    }
}

/// A chart in the page, which can be read without JavaScript.
fn drawing(name: &str, chart: &dyn Figure) -> String {
    format!("<div class=\"still\">{}</div>\n", named_svg(name, chart))
}

/// A chart as an SVG element of a page, with a name for screen readers.
fn named_svg(name: &str, chart: &dyn Figure) -> String {
    let named = format!("<svg role=\"img\" aria-label=\"{}\" ", escape(name));
    inside_page(&chart.svg()).replacen("<svg ", &named, 1)
}

/// Accuracy by round of a single run, as an SVG element of a page.
pub fn accuracy_svg(points: Vec<(f64, f64)>) -> String {
    let curve = Curve { points, ..Curve::default() };
    let chart = Lines::new("", &Across::Rounds.quantity(), &Up::Accuracy.quantity(), vec![curve]);
    named_svg("test accuracy by round", &chart)
}

/// A figure in the form for a page, without an XML declaration.
fn inside_page(svg: &str) -> &str {
    svg.find("<svg").map_or("", |start| &svg[start..])
}

/// Writes a series with seven significant digits.
#[allow(clippy::ptr_arg)]
fn rounded<S: Serializer>(series: &Vec<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(series.iter().map(|&value| seven_digits(value)))
}
