//! The reports of the candidates, the schedule, and the grants.

use super::call::{Call, Decided, Open};
use super::{Scheduled, Server};
use crate::base::units::DeviceId;
use crate::error::Error;
use crate::parts::{ConfigError, parts_with};
use crate::radio::access::{Band, Grant};
use crate::schedule::{Ask, Bias, Pick, Policy, ReportCode, Reports, Sampling, Selection, Trains, Weight};

impl Server {
    /// Receives the reports of the candidates that answered, in any order. The policy selects, and the
    /// scheduled devices are granted their symbols.
    pub fn report(&mut self, reports: Reports) -> Result<Vec<Scheduled>, Error> {
        let mut open = self.open.take().ok_or(Error::order("report: no round has begun"))?;
        let reports = match in_order(reports, &open.call) {
            Ok(reports) => reports,
            Err(refused) => {
                self.open = Some(open);
                return Err(refused);
            }
        };
        let t = open.call.t;
        let Band { symbols } = self.radio.band();
        let report_symbols = ReportCode::total(&open.call.report_symbols, symbols);
        let band = Band { symbols: symbols - report_symbols };
        let reports = self.report_code.received(reports, &open.known);
        // A candidate without a report cannot be scheduled; to the policy it is like one that is gone.
        if reports.len() < open.call.candidates.len() {
            let mut there = reports.devices.clone();
            there.sort_unstable();
            let is_gone = |device: &&DeviceId| there.binary_search(device).is_err();
            for device in open.call.candidates.iter().filter(is_gone) {
                self.book.devices.set_may_send(device.index(), false);
                open.known.silence(device.index());
            }
        }
        if let Some(column) = open.call.asks.iter().position(|ask| *ask == Ask::Loss) {
            for (device, loss) in reports.devices.iter().zip(reports.column(column)) {
                self.book.devices.note_loss(*device, loss);
            }
        }
        let schedule = self
            .with_policy(|policy, server| policy.select(&server.view(t, open.call.k, &open.known), &reports));
        self.check_policy(t)?;
        schedule.check(&reports.devices, open.call.k).map_err(|problem| self.broken(t, problem))?;
        let devices: Vec<DeviceId> = schedule.devices().collect();
        let weights: Vec<f64> = schedule.picks.iter().map(|pick| pick.bit_weight).collect();
        if !weights.is_empty() && weights.iter().all(|&weight| weight == 0.0) {
            self.book.zero_weights += 1;
        }
        let coins = self.policy.sampling() != Sampling::Other;
        let grants = if coins {
            self.radio.grant_slots(&devices, &open.known)
        } else {
            self.radio.grant_of(&band, &devices, &weights, &open.known)
        };
        if self.defense.privacy.is_some()
            && !coins
            && schedule.picks.iter().any(|pick| pick.weight != Weight::Rule)
        {
            let without_weights = parts_with::<dyn Policy>(|facts| {
                let Selection { bias, trains, own_weights, .. } = facts.selection;
                let fair = bias == Bias::Unbiased && trains == Trains::Scheduled && !own_weights;
                fair || facts.sampling != Sampling::Other
            });
            let problem = format!(
                "needs updates that count the same, but schedule.policy = \"{}\" gives them weights of its \
                 own; set privacy.noise to 0, or write {without_weights}, or another policy without weights \
                 of its own",
                self.spec.schedule.policy
            );
            return Err(ConfigError::new("privacy.noise", problem).into());
        }
        let scheduled = |(pick, grant): (&Pick, &Grant)| Scheduled::of(pick, grant, &open.known, band);
        let scheduled = schedule.picks.iter().zip(&grants).map(scheduled).collect();
        open.decided = Some(Decided { reports, schedule, grants, report_symbols, band, failed: Vec::new() });
        self.open = Some(open);
        Ok(scheduled)
    }

    /// Offers the symbols of a scheduled device that failed before it sent to a candidate that has trained:
    /// the one with the largest first report that is not scheduled (without reports, the first in the
    /// policy's order). It takes the device's index in the schedule. None: there is no such candidate, or the
    /// policy gave the failed device a weight of its own, which no other device can take over without bias.
    pub fn substitute(&mut self, failed: DeviceId) -> Result<Option<Scheduled>, Error> {
        let Some(Open { known, decided: Some(decided), .. }) = &mut self.open else {
            return Err(Error::order("substitute: no device has reported yet"));
        };
        let Decided { reports, schedule, grants, band, failed: before, .. } = decided;
        let Some(index) = schedule.devices().position(|device| device == failed) else {
            return Err(Error::order("substitute: the device is not scheduled"));
        };
        before.push(failed);
        let unavailable: Vec<DeviceId> = schedule.devices().chain(before.iter().copied()).collect();
        let waiting = (0..reports.len()).filter(|&row| !unavailable.contains(&reports.devices[row]));
        // Of equal reports the first in the policy's order counts; where reports have a price, the larger
        // gain takes precedence.
        let better = |&a: &usize, &b: &usize| {
            let by_tie = reports.tie(a).total_cmp(&reports.tie(b));
            reports.first(a).total_cmp(&reports.first(b)).then(by_tie).then(b.cmp(&a))
        };
        let Some(row) = waiting.max_by(better).filter(|_| schedule.picks[index].weight == Weight::Rule)
        else {
            return Ok(None);
        };
        let device = reports.devices[row];
        schedule.picks[index].device = device;
        grants[index] = self.radio.transfer_of(band, &grants[index], device, known);
        Ok(Some(Scheduled::of(&schedule.picks[index], &grants[index], known, *band)))
    }
}

/// The reports in the order of the candidates; an error if they do not answer `call`.
fn in_order(reports: Reports, call: &Call) -> Result<Reports, Error> {
    if let Some((device, value)) = reports.not_finite() {
        return Err(Error::Report { round: call.t + 1, device: device.0, value });
    }
    if !reports.is_empty() && reports.asks() != call.asks.len() {
        return Err(Error::order("report: every candidate must report each requested number"));
    }
    if reports.devices == call.candidates {
        return Ok(reports);
    }
    let mut places: Vec<(DeviceId, usize)> =
        call.candidates.iter().enumerate().map(|(index, device)| (*device, index)).collect();
    places.sort_unstable();
    let mut rows: Vec<(usize, usize)> = Vec::with_capacity(reports.len());
    for (row, device) in reports.devices.iter().enumerate() {
        let place = places.binary_search_by_key(device, |place| place.0);
        let place = place.map_err(|_| Error::order("report: a device that was no candidate reports"))?;
        rows.push((places[place].1, row));
    }
    rows.sort_unstable();
    if rows.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Error::order("report: a device reports twice"));
    }
    let values = rows.iter().flat_map(|&(_, row)| reports.row(row).iter().copied()).collect();
    let devices = rows.iter().map(|&(_, row)| reports.devices[row]).collect();
    Ok(Reports::new(devices, reports.asks(), values))
}
