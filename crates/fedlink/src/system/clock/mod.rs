//! The clock and the energy meter: the seconds of a round, and the joules of each device.
//!
//! A round has four phases: θ(t) goes out, devices train, they report, the scheduled ones send. The set of
//! devices that must train before the policy can select decides how long the server waits and how much energy
//! is spent; both usually exceed the costs of the radio.
//!
//! All values drawn here are functions of (seed, round, device) and of no clock, so that two policies at one
//! seed have the same channels and the same slow devices.

use crate::base::units::{Airtime, DeviceId};
use crate::clock::compute::{Compute, Load};
use crate::clock::downlink::Downlink;
use crate::clock::jitter::Jitter;
use crate::clock::spread::Spread;
use crate::radio::{Carried, Known, Radio};
use crate::record::{Cost, Energy, Phases};
use crate::schedule::Reports;
use crate::system::server::{Call, Scheduled};
use std::sync::Arc;

/// The clock of a run. Without parts it counts nothing, and every device is available and in time.
#[derive(Default)]
pub struct Clock {
    parts: Option<ClockParts>,
}

/// The devices that take part in a round.
#[derive(Default)]
pub struct Present {
    /// By device; none: all of them.
    present: Option<Vec<bool>>,
    /// The number of devices whose batteries do not last for a training and an upload.
    empty: u64,
}

impl Present {
    /// Whether a device takes part.
    pub fn contains(&self, device: DeviceId) -> bool {
        self.present.as_ref().is_none_or(|present| present[device.index()])
    }
}

/// The components of a [`Clock`].
pub(crate) struct ClockParts {
    /// M.
    pub devices: usize,
    /// Seconds of a symbol of an upload.
    pub symbol_s: f64,
    /// Seconds of a symbol of a report, 1/W.
    pub report_symbol_s: f64,
    /// Seconds that the uplink of a round takes; none: as long as its payloads take.
    pub uplink_s: Option<f64>,
    /// The model of the duration of local training.
    pub compute: Box<dyn Compute>,
    /// The differences between devices.
    pub spread: Box<dyn Spread>,
    /// The differences between rounds.
    pub jitter: Box<dyn Jitter>,
    /// The broadcast of θ(t) to the devices.
    pub downlink: Box<dyn Downlink>,
    /// Bits of every reported number; 0: reports cost nothing.
    pub report_bits: f64,
    /// Bits per symbol of the channel that carries reports.
    pub report_efficiency: f64,
    /// Seconds after which a round ends; none: it ends when all have sent.
    pub deadline_s: Option<f64>,
    /// Whether the scheduled devices send at the same time, each in its part of the band; otherwise one after
    /// another.
    pub together: bool,
    /// Whether devices send as soon as they have trained, one after another.
    pub pipeline: bool,
    /// Power by state.
    pub power: PowerDraw,
    /// The speed at which each device trains, relative to `compute`; empty: 1 for all.
    pub speeds: Vec<f64>,
    /// Joules in the battery of each device, infinite on mains; empty: all are on mains.
    pub batteries_j: Vec<f64>,
    /// The load of a training.
    pub work: Arc<dyn Fn(DeviceId) -> Load + Send + Sync>,
    /// d.
    pub dim: usize,
}

/// The power that a device draws from its battery, by state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PowerDraw {
    /// Watts while it trains, where training is not counted in cycles.
    pub compute_w: f64,
    /// Watts of its circuits while it sends, besides the radiated power.
    pub circuit_w: f64,
    /// Share of the power amplifier's input that is radiated, in (0, 1].
    pub pa_efficiency: f64,
    /// Watts while it receives θ(t).
    pub receive_w: f64,
    /// Watts while it waits.
    pub idle_w: f64,
}

impl PowerDraw {
    /// (P/η + P_c)·t: joules of sending for `seconds` with `power` watts.
    pub(crate) fn transmit_j(&self, power: f64, seconds: f64) -> f64 {
        (power / self.pa_efficiency + self.circuit_w) * seconds
    }
}

/// A round that the clock follows: the times that are known once θ(t) has gone out.
#[derive(Default)]
pub struct Timing {
    down_s: f64,
    /// Seconds and joules of the training of each device; empty if nothing is counted.
    compute: Vec<(f64, f64)>,
    /// Candidates whose reports came too late, ascending.
    unreported: Vec<DeviceId>,
}

/// A round up to its uploads, as the clock needs it to state the cost.
#[non_exhaustive]
pub struct Uploads<'a> {
    /// The devices that must train before selection.
    pub call: &'a Call,
    /// All devices that trained.
    pub trained: &'a [DeviceId],
    /// The devices that were selected.
    pub scheduled: &'a [Scheduled],
    /// The transmit power of each of the M devices.
    pub powers: &'a [f64],
    /// The joules that each of the M devices has spent before.
    pub spent_j: &'a dyn Fn(usize) -> f64,
}

impl<'a> Uploads<'a> {
    /// The round of this call.
    pub fn new(
        call: &'a Call,
        trained: &'a [DeviceId],
        scheduled: &'a [Scheduled],
        powers: &'a [f64],
        spent_j: &'a dyn Fn(usize) -> f64,
    ) -> Self {
        Self { call, trained, scheduled, powers, spent_j }
    }
}

impl Timing {
    /// Seconds that θ(t) takes to reach the devices.
    pub fn down_s(&self) -> f64 {
        self.down_s
    }

    /// Seconds that a device trains.
    pub fn compute_s(&self, device: DeviceId) -> f64 {
        self.compute[device.index()].0
    }
}

impl Clock {
    /// The clock made of `parts`.
    pub(crate) fn new(parts: ClockParts) -> Self {
        Self { parts: Some(parts) }
    }

    /// The devices that take part in round `t` (from 0): θ(t) reaches them, and their batteries, of which
    /// they have used `spent` joules, last for a training and for an upload over the `known` links: in all
    /// symbols, or for as long as a payload of fixed size takes.
    pub fn present(&self, t: u64, radio: &Radio, spent: impl Fn(usize) -> f64, known: &Known) -> Present {
        self.parts.as_ref().map_or_else(Present::default, |parts| parts.present(t, radio, spent, known))
    }

    /// Seconds that each device is expected to train, without the jitter of a round; empty if nothing is
    /// counted.
    pub(crate) fn expected_s(&self) -> Vec<f64> {
        let Some(parts) = &self.parts else { return Vec::new() };
        let seconds = |device| {
            let seconds = parts.compute.seconds(device, &(parts.work)(device));
            seconds * parts.spread.factor(device) / parts.speed(device)
        };
        DeviceId::all(parts.devices).map(seconds).collect()
    }

    /// Round `t`: θ(t) has gone out to the `listeners`, which train.
    pub fn begin(&self, t: u64, listeners: &[DeviceId], radio: &Radio) -> Timing {
        let Some(parts) = &self.parts else { return Timing::default() };
        let down_s = parts.downlink.seconds(t, parts.dim as f64, listeners, radio);
        let compute = vec![(0.0, 0.0); parts.devices];
        let mut timing = Timing { down_s, compute, unreported: Vec::new() };
        for &device in listeners {
            timing.compute[device.index()] = parts.training(t, device);
        }
        timing
    }

    /// The reports that came in before the deadline. If the policy needs no reports, the server does not
    /// wait, and a late device is found only when it should send.
    pub fn in_time(&self, timing: &mut Timing, call: &Call, reports: Reports) -> Reports {
        let Some(parts) = self.parts.as_ref().filter(|parts| parts.deadline_s.is_some()) else {
            return reports;
        };
        if call.asks.is_empty() {
            return reports;
        }
        let report_s = parts.report_s(call.candidates.len(), call.asks.len());
        let in_time = |&row: &usize| parts.is_in_time(timing, reports.devices[row], report_s);
        let (rows, late): (Vec<usize>, Vec<usize>) = (0..reports.len()).partition(in_time);
        timing.unreported = late.iter().map(|&row| reports.devices[row]).collect();
        timing.unreported.sort_unstable();
        let values = rows.iter().flat_map(|&row| reports.row(row).iter().copied()).collect();
        Reports::new(rows.iter().map(|&row| reports.devices[row]).collect(), reports.asks(), values)
    }

    /// The cost of the round, and which of the scheduled devices were late. `carried` has the fate of each
    /// upload on the air: an airtime is shortened to the time for which the device sent, and an upload during
    /// which a battery ran empty is not delivered.
    pub fn finish(
        &self,
        timing: &Timing,
        present: &Present,
        round: &Uploads,
        carried: &mut [Carried],
    ) -> (Option<Cost>, Vec<bool>) {
        let Uploads { call, trained, scheduled, powers, spent_j } = *round;
        let Some(parts) = &self.parts else { return (None, vec![false; scheduled.len()]) };
        let devices: Vec<DeviceId> = scheduled.iter().map(|one| one.device).collect();
        let planned: Vec<f64> = carried.iter().map(|one| one.airtime.0 * parts.symbol_s).collect();
        let (phases, sent) = parts.phases(timing, call, &devices, &planned);
        let mut spent = vec![Spent::default(); parts.devices];
        for &device in trained {
            let (seconds, joules) = timing.compute[device.index()];
            let one = &mut spent[device.index()];
            one.energy.compute_j = joules;
            one.energy.receive_j = parts.power.receive_w * timing.down_s;
            one.busy_s += seconds + timing.down_s;
        }
        // Reports that take symbols of the round take no time besides it.
        let each = parts.report_s(1, call.asks.len());
        for (index, device) in call.candidates.iter().enumerate() {
            if timing.unreported.binary_search(device).is_ok() {
                continue;
            }
            let symbols = call.report_symbols.get(index).copied().unwrap_or(0.0);
            let (one, air_s) = (&mut spent[device.index()], each + symbols * parts.symbol_s);
            one.energy.report_j = parts.power.transmit_j(powers[device.index()], air_s);
            one.busy_s += air_s;
        }
        for ((one, carried), sent) in scheduled.iter().zip(&mut *carried).zip(&sent) {
            let sender = &mut spent[one.device.index()];
            if sent.air_s < carried.airtime.0 * parts.symbol_s {
                carried.airtime = Airtime(sent.air_s / parts.symbol_s);
            }
            sender.energy.transmit_j = parts.power.transmit_j(one.grant.power.0, sent.air_s);
            sender.busy_s += sent.air_s;
        }
        let round_s = phases.total();
        let mut by_device = Vec::with_capacity(trained.len());
        for (device, mut one) in DeviceId::all(parts.devices).zip(spent) {
            one.energy.idle_j = parts.power.idle_w * (round_s - one.busy_s).max(0.0);
            if let Some(battery) = parts.batteries_j.get(device.index()) {
                let left = (battery - spent_j(device.index())).max(0.0);
                let wanted = one.energy.transmit_j;
                limit(&mut one.energy, left);
                if one.energy.transmit_j < wanted
                    && let Some(index) = devices.iter().position(|sender| *sender == device)
                {
                    carried[index].delivered = false;
                    carried[index].airtime.0 *= one.energy.transmit_j / wanted;
                }
            }
            if one.energy != Energy::default() {
                by_device.push((device, one.energy));
            }
        }
        let mut cost = Cost::new(phases, by_device);
        cost.unreported = timing.unreported.len() as u64;
        cost.empty = (!parts.batteries_j.is_empty()).then_some(present.empty);
        (Some(cost), sent.iter().map(|sent| sent.late).collect())
    }
}

/// Limits the energy of a device in a round to the joules that are `left` in its battery, in the order of its
/// expenses: it receives, trains, reports, sends and waits.
fn limit(energy: &mut Energy, mut left: f64) {
    let Energy { receive_j, compute_j, report_j, transmit_j, idle_j } = energy;
    for kind in [receive_j, compute_j, report_j, transmit_j, idle_j] {
        *kind = kind.min(left);
        left -= *kind;
    }
}

/// The energy that a device spends in a round, and the seconds in which it is busy.
#[derive(Clone, Copy, Default)]
struct Spent {
    energy: Energy,
    busy_s: f64,
}

/// The upload of a scheduled device in time.
#[derive(Clone, Copy, Debug)]
struct Airing {
    /// Whether it ends after the deadline.
    late: bool,
    /// Seconds for which the device sends.
    air_s: f64,
}

impl ClockParts {
    fn present(&self, t: u64, radio: &Radio, spent: impl Fn(usize) -> f64, known: &Known) -> Present {
        let reached = self.downlink.reached(t, radio);
        if self.batteries_j.is_empty() {
            return Present { present: reached, empty: 0 };
        }
        let mut present = reached.unwrap_or_else(|| vec![true; self.devices]);
        let mut empty = 0;
        for device in DeviceId::all(self.devices) {
            let m = device.index();
            let airtime =
                self.uplink_s.unwrap_or_else(|| radio.payload_airtime(device, known).0 * self.symbol_s);
            let needed = self.training(t, device).1 + self.power.transmit_j(known.powers[m], airtime);
            let lasts = self.batteries_j[m] - spent(m) >= needed;
            present[m] &= lasts;
            empty += u64::from(!lasts);
        }
        Present { present: Some(present), empty }
    }

    /// Seconds and joules of the training of a device in round `t`.
    fn training(&self, t: u64, device: DeviceId) -> (f64, f64) {
        let load = (self.work)(device);
        let factor = self.spread.factor(device) * self.jitter.factor(t, device) / self.speed(device);
        let seconds = self.compute.seconds(device, &load) * factor;
        (seconds, self.compute.joules(device, &load).unwrap_or(self.power.compute_w * seconds))
    }

    /// The speed of a device relative to the others.
    fn speed(&self, device: DeviceId) -> f64 {
        self.speeds.get(device.index()).copied().unwrap_or(1.0)
    }

    /// Seconds of the reports of this number of candidates, one after another, each of `asks` numbers.
    fn report_s(&self, candidates: usize, asks: usize) -> f64 {
        let bits = self.report_bits * (candidates * asks) as f64;
        bits / self.report_efficiency * self.report_symbol_s
    }

    /// Whether a device that has trained can still send before the deadline.
    fn is_in_time(&self, timing: &Timing, device: DeviceId, report_s: f64) -> bool {
        let up_s = self.uplink_s.unwrap_or(0.0);
        let end = timing.down_s + timing.compute_s(device) + report_s + up_s;
        self.deadline_s.is_none_or(|limit| end <= limit)
    }

    /// The seconds of the round, and the uploads of the scheduled devices that would send for `airtimes`
    /// seconds.
    ///
    /// Without a deadline the server waits for its slowest candidate. With one it waits for a candidate that
    /// is late as long as reports and the uplink still fit in; if no candidate is in time, it waits until the
    /// deadline. A device that has not trained when its uplink begins sends nothing; a fixed payload is cut
    /// off at the deadline.
    fn phases(
        &self,
        timing: &Timing,
        call: &Call,
        scheduled: &[DeviceId],
        airtimes: &[f64],
    ) -> (Phases, Vec<Airing>) {
        let mut report_s = self.report_s(call.candidates.len(), call.asks.len());
        let slowest = call.candidates.iter().map(|device| timing.compute_s(*device)).fold(0.0, f64::max);
        let limit = self.deadline_s.map_or(f64::INFINITY, |deadline| deadline - timing.down_s);
        if let Some(uplink_s) = self.uplink_s.filter(|_| !self.pipeline) {
            let is_late = |device: &DeviceId| !self.is_in_time(timing, *device, report_s);
            let airing = |(device, &air_s): (&DeviceId, &f64)| {
                let late = is_late(device);
                Airing { late, air_s: if late { 0.0 } else { air_s } }
            };
            let sent: Vec<Airing> = scheduled.iter().zip(airtimes).map(airing).collect();
            let mut up_s = if scheduled.is_empty() { 0.0 } else { uplink_s };
            let mut train_s = slowest;
            if call.candidates.iter().any(is_late) {
                train_s = (limit - report_s - uplink_s).max(0.0);
                if sent.iter().all(|sent| sent.late) {
                    (train_s, report_s, up_s) = (limit.max(0.0), 0.0, 0.0);
                }
            }
            let mut phases = Phases { down_s: timing.down_s, train_s, report_s, up_s };
            cut(&mut phases, self.deadline_s.unwrap_or(f64::INFINITY));
            return (phases, sent);
        }
        // The end of each upload, counted from the end of the downlink.
        let ends: Vec<f64> = if self.pipeline {
            let ready: Vec<f64> = scheduled.iter().map(|device| timing.compute_s(*device)).collect();
            pipelined(&ready, airtimes)
        } else {
            let mut before = slowest + report_s;
            let end = |air_s: &f64| {
                if self.together {
                    return before + air_s;
                }
                before += air_s;
                before
            };
            airtimes.iter().map(end).collect()
        };
        let airing = |(&end, &air_s): (&f64, &f64)| {
            let late = end > limit;
            Airing { late, air_s: if late { (limit - (end - air_s)).clamp(0.0, air_s) } else { air_s } }
        };
        let sent = ends.iter().zip(airtimes).map(airing).collect();
        let last = ends.iter().copied().fold(0.0, f64::max);
        let up_s = if scheduled.is_empty() { 0.0 } else { (last - slowest - report_s).max(0.0) };
        let mut phases = Phases { down_s: timing.down_s, train_s: slowest, report_s, up_s };
        cut(&mut phases, self.deadline_s.unwrap_or(f64::INFINITY));
        (phases, sent)
    }
}

/// The end of each upload if devices send one after another in the order in which they are ready: C_j =
/// max(C_(j−1), t_j) + u_j. No other order ends sooner.
fn pipelined(ready: &[f64], airtimes: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ready.len()).collect();
    order.sort_by(|&a, &b| ready[a].total_cmp(&ready[b]).then(a.cmp(&b)));
    let mut ends = vec![0.0; ready.len()];
    let mut free = 0.0f64;
    for i in order {
        free = free.max(ready[i]) + airtimes[i];
        ends[i] = free;
    }
    ends
}

/// Shortens the phases to `limit` seconds in all: the last ones are cut off first.
fn cut(phases: &mut Phases, limit: f64) {
    let mut over = phases.total() - limit;
    for phase in [&mut phases.up_s, &mut phases.report_s, &mut phases.train_s, &mut phases.down_s] {
        let less = over.clamp(0.0, *phase);
        *phase -= less;
        over -= less;
    }
}

#[cfg(test)]
mod tests;
