//! Goals: one language for conditions on runs and for the costs until they hold. Claims, tables, the report,
//! `fedlink status` and Python use the same goals and the same statistics.
//!
//! ```text
//! goal      = cost "until" condition {"and" condition} ["for" N "evaluations"]  |  metric
//! cost      = "rounds" | "symbols" | "bits" | "trainings" | "seconds" | "joules" | "worst-device-joules"
//! condition = quantity (">=" | "<=") (number | "target")
//! quantity  = "accuracy" | "loss" | "worst-class" | "worst-tenth" | "class-3" | …
//! metric    = "final accuracy" | "area" | "total-joules" | …
//! ```
//!
//! `seconds until accuracy >= 0.85 and worst-class >= 0.70 for 3 evaluations`: the seconds of all rounds
//! until the first of three consecutive evaluations at which both conditions hold.
//!
//! # Runs that do not reach a goal
//! A run that ended before it reached the goal is *censored*: its cost is larger than its cost at the end. It
//! is never dropped. The [median](Median) over the seeds counts it as larger than that, and pairs of runs are
//! compared by seed ([`paired`]): a run that reached the goal beats one that did not, if that one was
//! observed for at least the same cost; two runs that did not reach it are tied.

mod compare;
mod ease;
mod goal;
mod median;
mod metric;
mod metrics;
mod parse;
mod reach;
mod standing;
mod trust;

pub use compare::{Paired, Ratio, paired, smallest_p};
pub use goal::{COST_NAMES, Condition, Cost, Goal, Level, Quantity, Until};
pub use median::Median;
pub use metric::{Metric, Unit};
pub use metrics::{EmptyBatteries, Metrics, Reading};
pub use standing::Standing;
pub use trust::chance_level;
pub(crate) use trust::{Party, distrusted, empty_batteries};

#[cfg(test)]
pub(crate) use metrics::rows;

#[cfg(test)]
mod coverage;
