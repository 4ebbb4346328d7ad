//! The first stage: candidates that the link budget rules out, without training.

use super::request::{Constraint, Request};
use crate::error::Error;
use crate::link_budget::{LinkBudgetOptions, link_budget};
use fedlink::parts::Parts;
use fedlink::spec::Spec;
use serde::Serialize;
use std::path::PathBuf;

/// The rounds of a link budget.
const ROUNDS: u64 = 60;
/// The largest share of late devices without a limit of the request.
const LATE: f64 = 0.2;
/// The largest shares of uploads that are silent or lost.
const SILENT: f64 = 0.5;

/// The link budget of a candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Screened {
    /// Why it is out, with the number; none if it may race.
    pub out: Option<String>,
    /// The kind of reason: `refused`, `late`, `silent`, `lost`, `battery`, `limit` or `saturated`.
    pub kind: Option<&'static str>,
    /// Share of late devices.
    pub late: f64,
    /// Share of uploads that are too short for an update.
    pub silent: f64,
    /// Share of uploads that the channel does not carry.
    pub lost: f64,
    /// Devices that are scheduled at least once in the rounds of the link budget.
    pub heard: usize,
    /// Mean seconds of a round.
    pub round_s: Option<f64>,
    /// Mean joules of all devices in a round.
    pub round_j: Option<f64>,
    /// Rounds until the first battery is empty.
    pub battery_rounds: Option<f64>,
    /// Whether no device could use a larger budget.
    pub saturated: bool,
    /// Of each group of devices: its share of the uploads and of the airtime.
    pub groups: Vec<GroupShare>,
}

/// The part of a group in the uplink.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupShare {
    /// Its name.
    pub name: String,
    /// Its devices.
    pub devices: usize,
    /// Share of the uploads.
    pub uploads: f64,
    /// Share of the airtime.
    pub airtime: f64,
}

impl Screened {
    /// A candidate that the configuration refuses.
    pub(super) fn refused(reason: String) -> Self {
        Self { out: Some(reason), kind: Some("refused"), ..Self::default() }
    }

    fn ruled_out(mut self, kind: &'static str, reason: String) -> Self {
        (self.out, self.kind) = (Some(reason), Some(kind));
        self
    }
}

/// Judges a candidate; `least` rounds are the fewest in which it can reach the goal.
pub(super) fn screen(
    spec: &Spec,
    parts: &Parts,
    folders: &[PathBuf],
    request: &Request,
    least: u64,
) -> Result<Screened, Error> {
    let policies = vec![spec.schedule.policy.clone()];
    let options = LinkBudgetOptions { rounds: Some(ROUNDS.min(spec.run.rounds)), policies, seeds: 1 };
    let study = match link_budget(spec, parts, folders, &options) {
        Ok(study) => study,
        Err(Error::Config(error) | Error::System(fedlink::Error::Config(error))) => {
            return Ok(Screened::refused(error.to_string()));
        }
        Err(error) => return Err(error),
    };
    let Some(cost) = study.policies.first() else {
        return Ok(Screened::refused("its policy has no cost".into()));
    };
    if let Some(reason) = &cost.refused {
        return Ok(Screened::refused(reason.clone()));
    }
    let uploads: f64 = cost.scheduled.iter().map(|&times| f64::from(times)).sum();
    let airtime: f64 = cost.airtime.iter().sum();
    let groups = study.links.iter().filter_map(|link| link.group).max().map_or(0, |last| last + 1);
    let group = |group: usize| {
        let devices: Vec<usize> =
            (0..study.links.len()).filter(|&device| study.links[device].group == Some(group)).collect();
        let sum = |of: &dyn Fn(usize) -> f64| devices.iter().map(|&device| of(device)).sum::<f64>();
        GroupShare {
            name: spec.group_name(group),
            devices: devices.len(),
            uploads: sum(&|device| f64::from(cost.scheduled[device])) / uploads.max(1.0),
            airtime: sum(&|device| cost.airtime[device]) / airtime.max(f64::MIN_POSITIVE),
        }
    };
    let screened = Screened {
        out: None,
        kind: None,
        late: cost.late,
        silent: cost.silent,
        lost: cost.lost,
        heard: cost.heard,
        round_s: cost.phases.map(|phases| phases.total()),
        round_j: cost.energy.map(|energy| energy.total()),
        battery_rounds: cost.battery_rounds.map(|rounds| rounds[0]),
        saturated: study
            .rows
            .iter()
            .all(|row| row.highest_level.is_some_and(|most| row.level_shared >= most)),
        groups: (0..groups).map(group).collect(),
    };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let limit =
        request.constraints.iter().find(|limit| limit.name == "late").map_or(LATE, |limit| limit.limit);
    if screened.late > limit {
        let reason =
            format!("{} of the devices are late, the limit is {}", percent(screened.late), percent(limit));
        return Ok(screened.ruled_out("late", reason));
    }
    if screened.silent > SILENT {
        let reason = format!("{} of the uploads are too short for an update", percent(screened.silent));
        return Ok(screened.ruled_out("silent", reason));
    }
    if screened.lost > SILENT {
        let reason = format!("{} of the uploads are lost", percent(screened.lost));
        return Ok(screened.ruled_out("lost", reason));
    }
    if let Some(rounds) = screened.battery_rounds.filter(|rounds| *rounds < least as f64) {
        let reason =
            format!("the first battery is empty after {rounds:.0} rounds, and the goal needs {least}");
        return Ok(screened.ruled_out("battery", reason));
    }
    Ok(screened)
}

/// The limit of a key that the settings break, if there is one.
pub(super) fn broken(
    constraints: &[Constraint],
    value: impl Fn(&str) -> Option<f64>,
) -> Option<(&Constraint, f64)> {
    constraints.iter().find_map(|limit| {
        let value = value(&limit.name)?;
        (!limit.holds(value)).then_some((limit, value))
    })
}
