//! The link budget of a configuration: the rate of every device's link, and the cost of a round for each
//! policy. Nothing is trained.
//!
//! The links are those of the first rounds of a run of the seed. The policies schedule them as in a run, by
//! reports that are drawn instead of trained: every norm is exp(0.25·N(0, 1)), the same per round and device
//! for all policies, and a compressed norm is that of a Gaussian update with as many weights as the model.

mod links;
mod policies;
mod probe;
#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::statistics::{Estimate, estimate};
use fedlink::base::units::DeviceId;
use fedlink::data::catalog::entry;
use fedlink::data::{Dataset, Features, Samples, load};
use fedlink::learn::model::Model;
use fedlink::parts::Parts;
use fedlink::radio::{PayloadMode, Radio};
use fedlink::record::{Energy, Phases};
use fedlink::spec::Spec;
use fedlink::system::build;
use policies::PolicyStudy;
use probe::CompressorProbe;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// The policies that are always compared.
const POLICIES: [&str; 4] = ["bc", "bn2", "bc-bn2", "bn2-c"];

/// The links of a configuration and the costs of policies.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LinkBudgetStudy {
    /// M.
    pub devices: usize,
    /// K.
    pub k: usize,
    /// d, the weights of the model.
    pub dim: usize,
    /// n, symbols in a round; those of a second where payloads are fixed.
    pub symbols: u64,
    /// W in hertz; none if the radio has no units.
    pub bandwidth_hz: Option<f64>,
    /// Seconds of a round's uplink; none without units, or where payloads are fixed.
    pub uplink_s: Option<f64>,
    /// The bits of an upload, where they are fixed.
    pub payload_bits: Option<f64>,
    /// P̄, in watts if the radio has units.
    pub average_power: f64,
    /// σ² with the interference, in the unit of the power.
    pub noise: f64,
    /// Bits of the smallest update that can be sent; none if no budget holds one.
    pub smallest_bits: Option<f64>,
    /// Whether every device trains in every round under every policy, because of the state that it keeps.
    pub everyone_trains: bool,
    /// Rounds of the means of links.
    pub rounds: usize,
    /// Rounds that every policy has scheduled.
    pub policy_rounds: u64,
    /// The link of every device.
    pub links: Vec<DeviceLink>,
    /// The rows of the table: some of the devices, or groups of them.
    pub rows: Vec<LinkRow>,
    /// The cost of a round for each policy.
    pub policies: Vec<PolicyCost>,
    /// Settings that are allowed and seldom intended.
    pub cautions: Vec<String>,
}

/// The link of one device, as means over rounds.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct DeviceLink {
    /// Its number.
    pub device: u32,
    /// Its group, from 0, where `radio.snr_db` makes groups.
    pub group: Option<usize>,
    /// Its position in the first round, if it is in a cell: meters east of the server.
    pub x_m: Option<f64>,
    /// Meters north of it.
    pub y_m: Option<f64>,
    /// Distance over ground.
    pub distance_m: Option<f64>,
    /// Path loss, dB.
    pub loss_db: Option<f64>,
    /// Shadowing, dB: a loss, negative where it is a gain.
    pub shadowing_db: Option<f64>,
    /// Its transmit power, in watts if the radio has units.
    pub power: f64,
    /// Its mean SNR over the whole band at that power in dB, from the true channel.
    pub snr_db: f64,
    /// Bits per symbol over the whole band, from the channel known to the server.
    pub bits_per_symbol: f64,
    /// The same in bits per second.
    pub rate_bps: Option<f64>,
    /// Bits of a round in which no other device transmits; the payload if it is fixed.
    pub bits_alone: f64,
    /// Bits of a K-th of the symbols.
    pub bits_shared: f64,
    /// Share of rounds in which those bits are too few for an update.
    pub silent: f64,
    /// Share of rounds in which an upload over a K-th of the symbols is lost: CSI error, rate model,
    /// threshold.
    pub lost: f64,
    /// Median and 90 % quantile of the seconds of an upload if payloads are fixed; the mean may not exist.
    pub upload_s: Option<[f64; 2]>,
}

/// A row of the table of links.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LinkRow {
    /// The device or group: "nearest", "group 1", …
    pub label: String,
    /// The number of devices in the mean.
    pub devices: usize,
    /// The means; `device` and the position are those of the first device.
    pub link: DeviceLink,
    /// q of the configured compressor at `bits_alone`.
    pub level_alone: usize,
    /// q at `bits_shared`.
    pub level_shared: usize,
    /// The largest q, if the compressor states it; a larger budget would not be used.
    pub highest_level: Option<usize>,
}

/// The cost of a round for one policy, as means over rounds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PolicyCost {
    /// Its name.
    pub policy: String,
    /// The reason why this configuration rejects it; then there are no numbers.
    pub refused: Option<String>,
    /// Devices that train.
    pub trains: f64,
    /// Devices that were scheduled at least once.
    pub heard: usize,
    /// The number of rounds in which each device was scheduled.
    pub scheduled: Vec<u32>,
    /// Bits of all scheduled devices together.
    pub bits: f64,
    /// Share of the scheduled whose bits are too few for an update.
    pub silent: f64,
    /// Share of the scheduled whose upload is lost.
    pub lost: f64,
    /// Symbol durations in which each device sent, over all rounds.
    pub airtime: Vec<f64>,
    /// Share of the devices that must train, or are scheduled, that cannot finish before the deadline.
    pub late: f64,
    /// Seconds; none without units. If the slowest of Rayleigh links sets a phase, its mean may not exist.
    pub phases: Option<Phases>,
    /// Median of the seconds of a round.
    pub median_round_s: Option<f64>,
    /// Joules of all devices in a round in which no battery is empty; none without units.
    pub energy: Option<Energy>,
    /// Rounds until the first, the half and the last battery is empty at these joules; none without
    /// batteries.
    pub battery_rounds: Option<[f64; 3]>,
    /// The share of each group in uploads and airtime; empty without groups.
    pub groups: Vec<GroupShare>,
    /// Numbers that differ from seed to seed, by name: means over the seeds with 95 % intervals. Empty for
    /// one seed; all other fields are of the first.
    pub over_seeds: Vec<(String, Estimate)>,
}

/// The share of a group of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GroupShare {
    /// In all uploads.
    pub uploads: f64,
    /// In the airtime of all uploads.
    pub airtime: f64,
}

impl PolicyCost {
    /// The numbers that differ from seed to seed, by name.
    pub(crate) fn numbers(&self) -> Vec<(String, f64)> {
        let mut numbers: Vec<(String, f64)> = [
            ("trained", self.trains),
            ("heard", self.heard as f64),
            ("bits", self.bits),
            ("silent", self.silent),
            ("lost", self.lost),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let mut add = |name: &str, value: f64| numbers.push((name.to_owned(), value));
        if let (Some(phases), Some(energy)) = (self.phases, self.energy) {
            add("late", self.late);
            add("seconds", phases.total());
            add("joules", energy.total());
        }
        for (group, share) in self.groups.iter().enumerate() {
            add(&format!("uploads_{}", group + 1), share.uploads);
            add(&format!("airtime_{}", group + 1), share.airtime);
        }
        if let Some([first, half, _]) = self.battery_rounds {
            add("first_empty", first);
            add("half_empty", half);
        }
        numbers
    }
}

/// The choices of a link budget beside its configuration.
#[derive(Clone, Debug, Default)]
pub struct LinkBudgetOptions {
    /// The rounds of all means; none: enough of them.
    pub rounds: Option<u64>,
    /// The policies; empty: four of them and the configured one.
    pub policies: Vec<String>,
    /// The seeds that costs are computed for, from `run.seed` on; 0 counts as 1.
    pub seeds: u64,
}

/// Bytes per device: its link and the numbers that are sorted. A lower estimate.
const BYTES_PER_DEVICE: u64 = 256;

/// The link budget of a run. Data sets that are not in the catalog are searched in `folders`.
pub fn link_budget(
    spec: &Spec,
    parts: &Parts,
    folders: &[PathBuf],
    options: &LinkBudgetOptions,
) -> Result<LinkBudgetStudy, Error> {
    let LinkBudgetOptions { rounds, policies, seeds } = options;
    let rounds = *rounds;
    let model = model(spec, folders)?;
    let dim = model.dim();
    fedlink::base::memory::check_devices(spec.data.devices, BYTES_PER_DEVICE)?;
    let radio = build::radio(spec, dim)?;
    let compressor = build::compressor(spec)?;
    let mut probe = CompressorProbe::new(compressor, dim, spec.run.seed);
    let smallest = probe.smallest();
    let policy_rounds = rounds.unwrap_or_else(|| policies::POLICY_ROUNDS.min(rounds_there(spec))).max(1);
    let (links, rounds) = links::device_links(spec, &radio, smallest, rounds);
    let rows = links::rows(spec, &links, &mut probe);
    let most = links.iter().map(|link| link.bits_alone).fold(1.0, f64::max);
    let norms = probe.norms(smallest, 4.0 * most);
    let study = PolicyStudy { spec, parts, model: &*model, smallest, norms: &norms, rounds: policy_rounds };
    let everyone_trains = study.everyone_trains()?;
    let mut names: Vec<&str> = policies.iter().map(String::as_str).collect();
    if names.is_empty() {
        names.extend(POLICIES);
        if !names.contains(&spec.schedule.policy.as_str()) {
            names.push(&spec.schedule.policy);
        }
    }
    let groups: Vec<usize> = links.iter().filter_map(|link| link.group).collect();
    let cost = |name: &str| -> Result<PolicyCost, Error> {
        let of_seed = |seed: u64| -> Result<PolicyCost, Error> {
            let mut cost = PolicyStudy { spec: &spec.with_seed(seed), ..study }.cost(name)?;
            cost.groups = group_shares(&cost, &groups);
            Ok(cost)
        };
        let first = spec.run.seed;
        let mut all: Vec<PolicyCost> =
            (0..(*seeds).max(1)).map(|i| of_seed(first.saturating_add(i))).collect::<Result<_, _>>()?;
        let spread = over_seeds(&all);
        Ok(PolicyCost { over_seeds: spread, ..all.swap_remove(0) })
    };
    let policies = names.into_iter().map(cost).collect::<Result<_, _>>()?;
    let budget = radio.budget();
    Ok(LinkBudgetStudy {
        devices: radio.devices(),
        k: radio.k(),
        dim,
        symbols: budget.symbols,
        bandwidth_hz: budget.bandwidth_hz,
        uplink_s: budget.uplink_s,
        payload_bits: fixed_payload(spec, &radio),
        average_power: budget.average,
        noise: budget.noise,
        smallest_bits: smallest,
        everyone_trains,
        rounds,
        policy_rounds,
        links,
        rows,
        policies,
        cautions: spec.cautions(),
    })
}

/// The share of each group in uploads and airtime; empty with less than two groups.
fn group_shares(cost: &PolicyCost, group_of: &[usize]) -> Vec<GroupShare> {
    let groups = group_of.iter().max().map_or(0, |last| last + 1);
    if groups < 2 || cost.scheduled.len() != group_of.len() {
        return Vec::new();
    }
    let mut shares = vec![GroupShare::default(); groups];
    for ((&group, &uploads), &airtime) in group_of.iter().zip(&cost.scheduled).zip(&cost.airtime) {
        shares[group].uploads += f64::from(uploads);
        shares[group].airtime += airtime;
    }
    let over = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
    let uploads: f64 = shares.iter().map(|share| share.uploads).sum();
    let airtime: f64 = shares.iter().map(|share| share.airtime).sum();
    let share = |sum: GroupShare| GroupShare {
        uploads: over(sum.uploads, uploads),
        airtime: over(sum.airtime, airtime),
    };
    shares.into_iter().map(share).collect()
}

/// Means and intervals of the numbers of a policy over seeds; empty for one.
fn over_seeds(seeds: &[PolicyCost]) -> Vec<(String, Estimate)> {
    let numbers: Vec<Vec<(String, f64)>> = seeds.iter().map(PolicyCost::numbers).collect();
    let [first, _, ..] = &numbers[..] else { return Vec::new() };
    if seeds.iter().any(|cost| cost.refused.is_some()) {
        return Vec::new();
    }
    let of = |(name, _): &(String, f64)| {
        let value =
            |one: &Vec<(String, f64)>| one.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let values: Option<Vec<f64>> = numbers.iter().map(value).collect();
        // A device on mains lasts for ever.
        let values = values.filter(|values| values.iter().all(|value| value.is_finite()))?;
        Some((name.clone(), estimate(values)))
    };
    first.iter().filter_map(of).collect()
}

/// The model, for its size and work. A data set of the catalog need not be present for that.
fn model(spec: &Spec, folders: &[PathBuf]) -> Result<Box<dyn Model>, Error> {
    let name = &spec.data.dataset;
    let dataset = match entry(name) {
        Some(entry) => {
            let features = entry.shape.iter().product();
            let one = Samples { features: Features::Bytes(vec![0; features]), labels: vec![0] };
            Arc::new(Dataset {
                name: name.clone(),
                features,
                shape: entry.shape,
                classes: entry.classes,
                train: one.clone(),
                test: one,
            })
        }
        None => load(name, folders).map_err(Error::Dataset)?,
    };
    Ok(spec.parts().model.build(&spec.scope(), &dataset)?)
}

/// The rounds that exist: a trace or a custom law may end with the last round of the run.
fn rounds_there(spec: &Spec) -> u64 {
    if spec.facts().fading.own_links { spec.run.rounds } else { u64::MAX }
}

/// The bits of an upload, if they are fixed.
fn fixed_payload(spec: &Spec, radio: &Radio) -> Option<f64> {
    let links = (spec.radio.mode == PayloadMode::Payload).then(|| radio.links(0))?;
    Some(radio.alone(DeviceId(0), &links.known).0)
}
