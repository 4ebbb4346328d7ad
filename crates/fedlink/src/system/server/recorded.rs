//! The record of a round.

use super::Upload;
use super::call::{Call, Decided};
use crate::base::units::{Airtime, Bits, DeviceId, Power, Symbols};
use crate::radio::{Known, Radio};
use crate::record::{Arrival, Decision, Details, RoundRecord, Training, Transmission};
use crate::schedule::Weight;

/// The record of the round.
pub(super) fn record(
    call: &Call,
    known: &Known,
    decided: &Decided,
    uploads: &[Upload],
    arrivals: &[Arrival],
    training: Training,
) -> RoundRecord {
    let Decided { reports, schedule, grants, .. } = decided;
    let report_symbols = decided.report_symbols;
    let transmission = |(i, upload): (usize, &Upload)| {
        let (pick, grant) = (&schedule.picks[i], &grants[i]);
        Transmission {
            round: call.t + 1,
            device: upload.device,
            report: reports.index_of(upload.device).map_or(0.0, |row| reports.first(row)),
            gain: known.gain(upload.device),
            capacity: known.capacity(upload.device),
            bit_weight: pick.bit_weight,
            symbols: grant.symbols,
            power: grant.power,
            airtime: upload.airtime.unwrap_or(grant.airtime),
            budget: grant.budget,
            bits: upload.spent.bits,
            q: upload.spent.level,
            entries: upload.entries,
            weight: match pick.weight {
                Weight::Rule => None,
                Weight::Own(weight) => Some(weight),
            },
            wire_bits: upload.wire_bits,
            arrival: arrivals[i],
            report_symbols,
        }
    };
    RoundRecord {
        round: call.t + 1,
        transmissions: uploads.iter().enumerate().map(transmission).collect(),
        others: Vec::new(),
        details: Details::default(),
        training,
        report_symbols,
        cost: None,
        evaluation: None,
    }
}

/// The devices that were not scheduled, as the server knew them.
pub(super) fn not_scheduled(call: &Call, known: &Known, decided: &Decided) -> Vec<Transmission> {
    let mut reports = vec![0.0; known.devices()];
    for (row, device) in decided.reports.devices.iter().enumerate() {
        reports[device.index()] = decided.reports.first(row);
    }
    let mut waits = vec![true; known.devices()];
    decided.schedule.devices().for_each(|device| waits[device.index()] = false);
    let other = |device: DeviceId| Transmission {
        round: call.t + 1,
        device,
        report: reports[device.index()],
        gain: known.gain(device),
        capacity: known.capacity(device),
        bit_weight: 0.0,
        symbols: Symbols(0.0),
        power: Power(0.0),
        airtime: Airtime(0.0),
        budget: Bits(0.0),
        bits: Bits(0.0),
        q: 0,
        entries: 0,
        weight: None,
        wire_bits: None,
        arrival: Arrival::NotScheduled,
        report_symbols: decided.report_symbols,
    };
    DeviceId::all(known.devices()).filter(|device| waits[device.index()]).map(other).collect()
}

/// The details of round `t`, of which the policy noted `decisions`.
pub(super) fn details(radio: &Radio, known: &Known, t: u64, decisions: Vec<Decision>) -> Details {
    let mut details = Details { decisions, ..Details::default() };
    // Where nodes measured their links, the radio knows nothing of them.
    let is_simulated = |device: &DeviceId| known.snr(*device).is_some();
    for device in DeviceId::all(radio.devices()).filter(is_simulated) {
        details.block_gains.extend(radio.block_gains(t, device));
        details.amplitudes.extend(radio.amplitudes(t, device));
    }
    details
}
