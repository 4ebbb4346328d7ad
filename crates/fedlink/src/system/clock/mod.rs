//! The clock and the energy meter: what a round takes in seconds, and each device in joules.
//!
//! A round has four phases: θ(t) goes out, devices train, they report, the scheduled ones send. Who must
//! train before the policy can select decides how long the server waits and what is spent, which is mostly
//! more than the radio takes.
//!
//! Everything drawn here is a function of (seed, round, device) and of no clock, so that two policies at one
//! seed meet the same channels and the same slow devices.

use crate::base::units::DeviceId;
use crate::clock::compute::{Compute, Load};
use crate::clock::downlink::Downlink;
use crate::clock::jitter::Jitter;
use crate::clock::spread::Spread;
use crate::radio::{Carried, Known, Radio};
use crate::record::{Cost, Energy, Phases};
use crate::schedule::Reports;
use crate::system::server::{Call, Scheduled};
use std::sync::Arc;

/// The clock of a run; without parts it counts nothing, and everybody is there and in time.
#[derive(Default)]
pub struct Clock {
    parts: Option<ClockParts>,
}

/// Which devices take part in a round.
pub struct Present(Option<Vec<bool>>);

impl Present {
    /// Whether a device does.
    pub fn contains(&self, device: DeviceId) -> bool {
        self.0.as_ref().is_none_or(|present| present[device.index()])
    }
}

/// What a [`Clock`] is made of.
pub(crate) struct ClockParts {
    /// M.
    pub devices: usize,
    /// Seconds of a symbol of an upload.
    pub symbol_s: f64,
    /// Seconds of a symbol of a report, 1/W.
    pub report_symbol_s: f64,
    /// Seconds that the uplink of a round takes; none: as long as its payloads take.
    pub uplink_s: Option<f64>,
    /// How long local training takes.
    pub compute: Box<dyn Compute>,
    /// How devices differ.
    pub spread: Box<dyn Spread>,
    /// How rounds differ.
    pub jitter: Box<dyn Jitter>,
    /// How θ(t) reaches the devices.
    pub downlink: Box<dyn Downlink>,
    /// Bits of every reported number; 0: reports cost nothing.
    pub report_bits: f64,
    /// Bits a symbol of the channel that carries reports.
    pub report_efficiency: f64,
    /// Seconds after which a round ends; none: it ends when all have sent.
    pub deadline_s: Option<f64>,
    /// Whether the scheduled devices send at the same time, each in its part of the band; else one after
    /// another.
    pub together: bool,
    /// Whether devices send as soon as they have trained, one after another.
    pub pipeline: bool,
    /// Power by state.
    pub power: PowerDraw,
    /// Joules in the battery of each device; none: no end.
    pub battery_j: Option<f64>,
    /// What a training processes.
    pub work: Arc<dyn Fn(DeviceId) -> Load + Send + Sync>,
    /// d.
    pub dim: usize,
}

/// What a device draws from its battery, by state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PowerDraw {
    /// Watts while it trains, where training is not counted in cycles.
    pub compute_w: f64,
    /// Watts of its circuits while it sends, besides what it radiates.
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

/// A round that the clock follows: what is known once θ(t) has gone out.
#[derive(Default)]
pub struct Timing {
    down_s: f64,
    /// Seconds and joules of the training of each device; empty if nothing is counted.
    compute: Vec<(f64, f64)>,
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

    /// Which of the M devices take part in round `t` (from 0): θ(t) reaches them, and their batteries, of
    /// which they have used `spent` joules, last for a training and for an upload over the links as they are
    /// `known`: in all symbols, or for as long as a payload of fixed size takes.
    pub fn present(&self, t: u64, radio: &Radio, spent: impl Fn(usize) -> f64, known: &Known) -> Present {
        Present(self.parts.as_ref().and_then(|parts| parts.present(t, radio, spent, known)))
    }

    /// Seconds that each device is expected to train, without the jitter of a round; empty if nothing is
    /// counted.
    pub(crate) fn expected_s(&self) -> Vec<f64> {
        let Some(parts) = &self.parts else { return Vec::new() };
        let seconds =
            |device| parts.compute.seconds(device, &(parts.work)(device)) * parts.spread.factor(device);
        DeviceId::all(parts.devices).map(seconds).collect()
    }

    /// Round `t`: θ(t) has gone out to the `listeners`, who train.
    pub fn begin(&self, t: u64, listeners: &[DeviceId], radio: &Radio) -> Timing {
        let Some(parts) = &self.parts else { return Timing::default() };
        let down_s = parts.downlink.seconds(t, parts.dim as f64, listeners, radio);
        let mut timing = Timing { down_s, compute: vec![(0.0, 0.0); parts.devices] };
        for &device in listeners {
            timing.compute[device.index()] = parts.training(t, device);
        }
        timing
    }

    /// The reports that came in before the deadline. Where nothing is asked the server waits for none, and a
    /// device that is late is found to be so when it should send.
    pub fn in_time(&self, timing: &Timing, call: &Call, reports: Reports) -> Reports {
        let Some(parts) = self.parts.as_ref().filter(|parts| parts.deadline_s.is_some()) else {
            return reports;
        };
        if call.asks.is_empty() {
            return reports;
        }
        let report_s = parts.report_s(call.candidates.len(), call.asks.len());
        let in_time = |&row: &usize| parts.is_in_time(timing, reports.devices[row], report_s);
        let rows: Vec<usize> = (0..reports.len()).filter(in_time).collect();
        let values = rows.iter().flat_map(|&row| reports.row(row).iter().copied()).collect();
        Reports::new(rows.iter().map(|&row| reports.devices[row]).collect(), reports.asks(), values)
    }

    /// What the round costs, and which of the scheduled devices were late: `call` names who was asked to
    /// train before selection, `trained` everybody that trained, `scheduled` who sent, `carried` for how
    /// long, `powers` what each of the M devices sends with.
    pub fn finish(
        &self,
        timing: &Timing,
        call: &Call,
        trained: &[DeviceId],
        scheduled: &[Scheduled],
        carried: &[Carried],
        powers: &[f64],
    ) -> (Option<Cost>, Vec<bool>) {
        let Some(parts) = &self.parts else { return (None, vec![false; scheduled.len()]) };
        let airtimes: Vec<f64> = carried.iter().map(|one| one.airtime.0 * parts.symbol_s).collect();
        let devices: Vec<DeviceId> = scheduled.iter().map(|one| one.device).collect();
        let (phases, late) = parts.phases(timing, call, &devices, &airtimes);
        let mut spent = vec![Spent::default(); parts.devices];
        for &device in trained {
            let (seconds, joules) = timing.compute[device.index()];
            let one = &mut spent[device.index()];
            one.energy.compute_j = joules;
            one.energy.receive_j = parts.power.receive_w * timing.down_s;
            one.busy_s += seconds + timing.down_s;
        }
        if phases.report_s > 0.0 {
            let each = parts.report_s(1, call.asks.len());
            for &device in &call.candidates {
                let one = &mut spent[device.index()];
                one.energy.report_j = parts.power.transmit_j(powers[device.index()], each);
                one.busy_s += each;
            }
        }
        // Reports that take symbols of the round take no time besides it.
        for (&device, symbols) in call.candidates.iter().zip(&call.report_symbols) {
            let (one, air_s) = (&mut spent[device.index()], symbols * parts.symbol_s);
            one.energy.report_j = parts.power.transmit_j(powers[device.index()], air_s);
            one.busy_s += air_s;
        }
        for ((one, &air_s), device) in scheduled.iter().zip(&airtimes).zip(&devices) {
            let sender = &mut spent[device.index()];
            sender.energy.transmit_j = parts.power.transmit_j(one.grant.power.0, air_s);
            sender.busy_s += air_s;
        }
        let round_s = phases.total();
        let mut by_device = Vec::with_capacity(trained.len());
        for (device, mut one) in DeviceId::all(parts.devices).zip(spent) {
            one.energy.idle_j = parts.power.idle_w * (round_s - one.busy_s).max(0.0);
            if one.energy != Energy::default() {
                by_device.push((device, one.energy));
            }
        }
        (Some(Cost::new(phases, by_device)), late)
    }
}

/// What a device spends in a round, and for how long it is busy.
#[derive(Clone, Copy, Default)]
struct Spent {
    energy: Energy,
    busy_s: f64,
}

impl ClockParts {
    fn present(
        &self,
        t: u64,
        radio: &Radio,
        spent: impl Fn(usize) -> f64,
        known: &Known,
    ) -> Option<Vec<bool>> {
        let reached = self.downlink.reached(t, radio);
        let Some(battery) = self.battery_j else { return reached };
        let mut present = reached.unwrap_or_else(|| vec![true; self.devices]);
        for device in DeviceId::all(self.devices) {
            let m = device.index();
            let airtime =
                self.uplink_s.unwrap_or_else(|| radio.payload_airtime(device, known).0 * self.symbol_s);
            let needed = self.training(t, device).1 + self.power.transmit_j(known.powers[m], airtime);
            present[m] &= battery - spent(m) >= needed;
        }
        Some(present)
    }

    /// Seconds and joules of the training of a device in round `t`.
    fn training(&self, t: u64, device: DeviceId) -> (f64, f64) {
        let load = (self.work)(device);
        let factor = self.spread.factor(device) * self.jitter.factor(t, device);
        let seconds = self.compute.seconds(device, &load) * factor;
        (seconds, self.compute.joules(device, &load).unwrap_or(self.power.compute_w * seconds))
    }

    /// Seconds of the reports of so many candidates, one after another, each of `asks` numbers.
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

    /// The seconds of the round, and which of the scheduled devices, that send for `airtimes` seconds, are
    /// late.
    fn phases(
        &self,
        timing: &Timing,
        call: &Call,
        scheduled: &[DeviceId],
        airtimes: &[f64],
    ) -> (Phases, Vec<bool>) {
        let report_s = self.report_s(call.candidates.len(), call.asks.len());
        let train_s = call.candidates.iter().map(|device| timing.compute_s(*device)).fold(0.0, f64::max);
        let limit = self.deadline_s.unwrap_or(f64::INFINITY);
        // When each upload ends, counted from the end of the downlink.
        let ends: Vec<f64> = match self.uplink_s {
            _ if self.pipeline => {
                let ready: Vec<f64> = scheduled.iter().map(|device| timing.compute_s(*device)).collect();
                pipelined(&ready, airtimes)
            }
            Some(uplink_s) => {
                let end = |device: &DeviceId| timing.compute_s(*device) + report_s + uplink_s;
                scheduled.iter().map(end).collect()
            }
            None => {
                let mut before = train_s + report_s;
                let end = |air_s: &f64| {
                    if self.together {
                        return before + air_s;
                    }
                    before += air_s;
                    before
                };
                airtimes.iter().map(end).collect()
            }
        };
        let late = ends.iter().map(|end| timing.down_s + end > limit).collect();
        let last = ends.iter().copied().fold(0.0, f64::max);
        let up_s = match self.uplink_s {
            _ if scheduled.is_empty() => 0.0,
            Some(uplink_s) if !self.pipeline => uplink_s,
            _ => (last - train_s - report_s).max(0.0),
        };
        let mut phases = Phases { down_s: timing.down_s, train_s, report_s, up_s };
        cut(&mut phases, limit);
        (phases, late)
    }
}

/// When each upload ends if devices send one after another as they get ready, the first one first:
/// C_j = max(C_(j−1), t_j) + u_j. No other order ends sooner.
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
