//! The link budget of a configuration without training anything: what each device's link carries, and what a
//! round costs by each policy.
//!
//! Links are those of the first rounds of a run of the seed. Policies schedule them as they would in a run,
//! by reports that are drawn instead of trained: every norm is exp(0.25·N(0, 1)), the same at one round and
//! device for every policy, and a compressed norm is that of a Gaussian update of as many weights as the
//! model has.

mod gauge;
mod links;
mod policies;
#[cfg(test)]
mod tests;

use crate::error::Error;
use fedlink::config::Config;
use fedlink::data::catalog::entry;
use fedlink::data::{Dataset, Features, Samples, load};
use fedlink::learn::model::Model;
use fedlink::parts::Parts;
use fedlink::radio::{PayloadMode, Radio};
use fedlink::record::{Energy, Phases};
use fedlink::registry::find;
use fedlink::setup;
use fedlink::units::DeviceId;
use gauge::Gauge;
use policies::Driven;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Policies that every survey compares.
const POLICIES: [&str; 4] = ["bc", "bn2", "bc-bn2", "bn2-c"];

/// What [`survey`] found.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Survey {
    /// M.
    pub devices: usize,
    /// K.
    pub k: usize,
    /// d, the weights of the model.
    pub dim: usize,
    /// n, symbols in a round; those of a second where payloads are fixed.
    pub symbols: u64,
    /// W in hertz; none: the radio has no units.
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
    /// Whether every device trains in every round, whatever the policy is, for the state that it keeps.
    pub everyone_trains: bool,
    /// Rounds that the means of links are taken over.
    pub rounds: usize,
    /// Rounds that every policy has scheduled.
    pub policy_rounds: u64,
    /// Every device.
    pub links: Vec<DeviceLink>,
    /// Some of the devices, or groups of them: what a table shows.
    pub rows: Vec<Row>,
    /// What a round costs by each policy.
    pub policies: Vec<PolicyCost>,
    /// Settings that are allowed and seldom meant.
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
    /// Where it is in the first round, if it is in a cell: meters east of the server.
    pub x_m: Option<f64>,
    /// Meters north of it.
    pub y_m: Option<f64>,
    /// Distance over ground.
    pub distance_m: Option<f64>,
    /// Path loss, dB.
    pub loss_db: Option<f64>,
    /// Shadowing, dB.
    pub shadowing_db: Option<f64>,
    /// Power that it sends with, in watts if the radio has units.
    pub power: f64,
    /// Its mean SNR over the whole band at that power, dB, by the channel as it is.
    pub snr_db: f64,
    /// Bits a symbol if it has the whole band, by the channel as the server knows it.
    pub bits_per_symbol: f64,
    /// The same in bits a second.
    pub rate_bps: Option<f64>,
    /// Bits of a round that it has to itself; the payload where that is fixed.
    pub bits_alone: f64,
    /// Bits of a K-th of the symbols.
    pub bits_shared: f64,
    /// Share of rounds in which those bits hold no update.
    pub silent: f64,
    /// Share of rounds in which an upload over a K-th of the symbols is lost: CSI error, rate model,
    /// threshold.
    pub lost: f64,
    /// Median and 90 % quantile of the seconds of an upload where payloads are fixed; the mean need not
    /// exist.
    pub upload_s: Option<[f64; 2]>,
}

/// A line of the table of links.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Who: "nearest", "group 1", …
    pub label: String,
    /// How many devices the numbers are the mean of.
    pub devices: usize,
    /// The numbers; `device` and the position are those of the first of them.
    pub link: DeviceLink,
    /// q of the configured compressor at the bits of a round that the device has to itself.
    pub level_alone: usize,
    /// q at those of a K-th of the symbols.
    pub level_shared: usize,
    /// The largest q that there is, where the compressor knows it: at it a larger budget would not be used.
    pub highest_level: Option<usize>,
}

/// What a round costs by one policy, as means over rounds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PolicyCost {
    /// Its name.
    pub policy: String,
    /// Why it cannot be run with this configuration; then there are no numbers.
    pub refused: Option<String>,
    /// Devices that train.
    pub trains: f64,
    /// Devices that were scheduled at least once.
    pub heard: usize,
    /// How often each device was scheduled.
    pub scheduled: Vec<u32>,
    /// Bits of all scheduled devices together.
    pub bits: f64,
    /// Share of the scheduled whose bits hold no update.
    pub silent: f64,
    /// Share of the scheduled whose upload is lost.
    pub lost: f64,
    /// Share of the scheduled that are late.
    pub late: f64,
    /// Seconds; none without units. Where the slowest of Rayleigh links sets a phase, its mean need not
    /// exist.
    pub phases: Option<Phases>,
    /// Median of the seconds of a round.
    pub median_round_s: Option<f64>,
    /// Joules of all devices; none without units.
    pub energy: Option<Energy>,
}

/// Bytes that are kept for every device: its link, and the numbers of it that are sorted. Rather too few than
/// too many.
const BYTES_PER_DEVICE: u64 = 256;

/// Surveys the radio of `config`; data sets that are not in the catalog are looked for in `folders`.
pub fn survey(config: &Config, parts: &Parts, folders: &[PathBuf]) -> Result<Survey, Error> {
    survey_over(config, parts, folders, None)
}

/// As [`survey`], with all means over the first `rounds` rounds, at least 1.
pub fn survey_over(
    config: &Config,
    parts: &Parts,
    folders: &[PathBuf],
    rounds: Option<u64>,
) -> Result<Survey, Error> {
    let mut config = config.clone();
    parts.declare(&mut config);
    config.validate()?;
    let model = model(&config, folders)?;
    let dim = model.dim();
    fedlink::memory::check_devices(config.data.devices, BYTES_PER_DEVICE)?;
    let radio = setup::radio(&config, parts, dim)?;
    let compressor = setup::compressor(&config, parts)?;
    let mut gauge = Gauge::new(compressor, dim, config.run.seed);
    let smallest = gauge.smallest();
    let policy_rounds = rounds.unwrap_or_else(|| policies::POLICY_ROUNDS.min(rounds_there(&config))).max(1);
    let (links, rounds) = links::device_links(&config, &radio, smallest, rounds);
    let rows = links::rows(&links, &mut gauge);
    let most = links.iter().map(|link| link.bits_alone).fold(1.0, f64::max);
    let norms = gauge.norms(smallest, 4.0 * most);
    let study =
        Driven { config: &config, parts, model: &*model, smallest, norms: &norms, rounds: policy_rounds };
    let everyone_trains = study.everyone_trains()?;
    let mut names: Vec<&str> = POLICIES.to_vec();
    if !names.contains(&config.schedule.policy.as_str()) {
        names.push(&config.schedule.policy);
    }
    let policies = names.into_iter().map(|name| study.cost(name)).collect::<Result<_, _>>()?;
    let budget = radio.budget();
    Ok(Survey {
        devices: radio.devices(),
        k: radio.k(),
        dim,
        symbols: budget.symbols,
        bandwidth_hz: budget.bandwidth_hz,
        uplink_s: budget.uplink_s,
        payload_bits: fixed_payload(&config, &radio),
        average_power: budget.average,
        noise: budget.noise,
        smallest_bits: smallest,
        everyone_trains,
        rounds,
        policy_rounds: study.policy_rounds(),
        links,
        rows,
        policies,
        cautions: config.cautions(),
    })
}

/// The model, of which size and work matter here. A data set of the catalog need not be there for that.
fn model(config: &Config, folders: &[PathBuf]) -> Result<Box<dyn Model>, Error> {
    let name = &config.data.dataset;
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
    let name = &config.learn.model;
    Ok(find::<dyn Model>(name)?.build(config.own_table("learn", name), &config.scope(), &dataset)?)
}

/// Rounds that there are to look at: a trace or a custom law need not go on after the last round of the run.
fn rounds_there(config: &Config) -> u64 {
    let endless = ["rayleigh", "rician", "nakagami", "static"].contains(&config.radio.fading.as_str());
    if endless { u64::MAX } else { config.run.rounds }
}

/// The bits of an upload, if they are fixed.
fn fixed_payload(config: &Config, radio: &Radio) -> Option<f64> {
    let links = (config.radio.mode == PayloadMode::Payload).then(|| radio.links(0))?;
    Some(radio.alone(DeviceId(0), &links.known).0)
}
