//! The beginning of a round: the devices that must train, and the reports of the candidates.

use super::{Server, Upload};
use crate::base::state::Persist;
use crate::base::units::{Bits, DeviceId};
use crate::error::Error;
use crate::radio::Known;
use crate::radio::access::{Band, Grant};
use crate::schedule::{Ask, Notes, Pick, Policy, Reports, Schedule, View, Weight, check_candidates};
use crate::system::device::{Request, Sender};

/// The candidates of a round, and the reports that they must send.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The round, counted from 0.
    pub t: u64,
    /// K.
    pub k: usize,
    /// The devices that must train and report.
    pub candidates: Vec<DeviceId>,
    /// The numbers that each of them reports.
    pub asks: Vec<Ask>,
    /// The bits that each candidate could send if it had the whole band.
    pub alone: Vec<Bits>,
    /// The symbols that each candidate's report takes; empty: reports are free.
    pub report_symbols: Vec<f64>,
    /// The round, from 1, of the last upload of each candidate that is in the server's h_m, 0 if there is
    /// none; empty unless the server keeps h_m (`compress.feedback = "ef21"`).
    pub acknowledged: Vec<u64>,
}

impl Call {
    /// The request to the candidate at `index`.
    pub fn request(&self, index: usize) -> Request<'_> {
        Request {
            sender: Sender { t: self.t, device: self.candidates[index] },
            asks: &self.asks,
            alone: self.alone[index],
            acknowledged: self.acknowledged.get(index).copied(),
        }
    }
}

/// A scheduled device and its grant.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scheduled {
    /// The device.
    pub device: DeviceId,
    /// Its symbols, power, airtime and bits.
    pub grant: Grant,
    /// C_m of its link by the server's knowledge, bits per symbol.
    pub capacity: f64,
    /// w_m: its granted bits are proportional to it.
    pub bit_weight: f64,
    /// The weight of its update in the sum.
    pub weight: Weight,
    /// The band of all scheduled devices: the symbols that the reports left.
    pub band: Band,
}

impl Scheduled {
    pub(super) fn of(pick: &Pick, grant: &Grant, known: &Known, band: Band) -> Self {
        let Pick { device, bit_weight, weight } = *pick;
        Self { device, grant: *grant, capacity: known.capacity(device), bit_weight, weight, band }
    }
}

/// A round in progress.
pub(super) struct Open {
    pub call: Call,
    pub known: Known,
    /// Set by the reports.
    pub decided: Option<Decided>,
}

/// The schedule of an open round.
pub(super) struct Decided {
    pub reports: Reports,
    pub schedule: Schedule,
    pub grants: Vec<Grant>,
    /// Symbols of the reports, and symbols that they left of the round.
    pub report_symbols: u64,
    pub band: Band,
    /// Devices that were scheduled and failed before they sent.
    pub failed: Vec<DeviceId>,
}

impl Decided {
    /// Whether these are the uploads of the scheduled devices, in their order.
    pub fn waits_for(&self, uploads: &[Upload]) -> bool {
        uploads.iter().map(|upload| upload.device).eq(self.schedule.devices())
    }
}

impl Server {
    /// Opens round `t` (from 0) over the `known` links, with the devices that are `present`. The policy names
    /// the candidates, which must train and report. Rounds follow one another; a round that was open before
    /// is abandoned, and the round before it is [closed](Server::close).
    pub fn begin(
        &mut self,
        t: u64,
        mut known: Known,
        present: impl Fn(DeviceId) -> bool,
    ) -> Result<Call, Error> {
        if t != self.rounds_done {
            return Err(Error::order(
                "begin: rounds follow one another; t must be the number of rounds done",
            ));
        }
        if known.devices() != self.radio.devices() {
            return Err(Error::order("begin: there must be one link for each device"));
        }
        self.close();
        self.open = None;
        if let Some(problem) = self.radio.failure() {
            return Err(Error::Fading { round: t + 1, problem });
        }
        known.check().map_err(|(device, problem)| Error::Link { round: t + 1, device: device.0, problem })?;
        let asked = !self.policy.asks().is_empty();
        for device in DeviceId::all(known.devices()) {
            let m = device.index();
            let reports = !asked || self.report_code.carries(known.capacity(device));
            let may = self.may_send(m, t) && present(device) && reports;
            self.book.devices.set_may_send(m, may);
            if !may {
                known.silence(m);
            }
        }
        self.notes = self.log_all.then(|| Notes::new(known.devices()));
        // The policy is moved out while the view borrows the rest of the server.
        let most = self.radio.k_at(t);
        let k = self.with_policy(|policy, server| policy.round_k(&server.view(t, most, &known)));
        self.check_policy(t)?;
        let k = k.clamp(1, most);
        if k < most {
            self.radio.relink(t, &mut known, k);
        }
        let mut candidates = self.with_policy(|policy, server| policy.candidates(&server.view(t, k, &known)));
        self.check_policy(t)?;
        check_candidates(&candidates, known.devices()).map_err(|problem| self.broken(t, problem))?;
        candidates.retain(|device| self.book.devices.may_send(*device));
        let alone = candidates.iter().map(|&device| self.radio.alone(device, &known)).collect();
        let asks = self.policy.asks().to_vec();
        let report_symbols = self.report_code.symbols(&candidates, asks.len(), &known);
        let states = self.states.as_ref();
        let acknowledged = candidates.iter().filter_map(|&m| Some(states?.round(m))).collect();
        let call = Call { t, k, candidates, asks, alone, report_symbols, acknowledged };
        self.open = Some(Open { call: call.clone(), known, decided: None });
        Ok(call)
    }

    /// Replaces the server's knowledge of the links since the round began, before the reports are taken:
    /// nodes that train may give a new rate with their report. Devices that may not send stay silent, and the
    /// `alone` bits of the candidates do not change.
    pub fn relink(&mut self, mut known: Known) -> Result<(), Error> {
        let open = self.open.as_mut().filter(|open| open.decided.is_none());
        let open = open.ok_or(Error::order("relink: no round waits for reports"))?;
        if known.devices() != open.known.devices() {
            return Err(Error::order("relink: there must be one link for each device"));
        }
        let round = open.call.t + 1;
        known.check().map_err(|(device, problem)| Error::Link { round, device: device.0, problem })?;
        for device in DeviceId::all(known.devices()).filter(|device| !self.book.devices.may_send(*device)) {
            known.silence(device.index());
        }
        open.known = known;
        Ok(())
    }

    /// The policy's view of round `t`, in which up to `k` devices are scheduled.
    pub(super) fn view<'a>(&'a self, t: u64, k: usize, known: &'a Known) -> View<'a> {
        View {
            t,
            k,
            dim: self.theta.len(),
            symbols: self.radio.band().symbols,
            symbol_s: self.radio.budget().symbol_s(),
            average_power: self.radio.average_power(),
            noise: self.radio.noise(),
            links: known,
            devices: &self.book.devices,
            turns: self.radio.turns_before(t),
            uplink: &self.radio,
            known_of: &self.facts,
            samples: &*self.samples,
            seed: self.spec.run.seed,
            notes: self.notes.as_ref(),
        }
    }

    /// Runs `call` with the policy and a reference to the rest of the server.
    pub(super) fn with_policy<R>(&mut self, call: impl FnOnce(&mut dyn Policy, &Self) -> R) -> R {
        let mut policy = std::mem::replace(&mut self.policy, Box::new(Nobody));
        let result = call(&mut *policy, self);
        self.policy = policy;
        result
    }
}

/// The placeholder of the policy while it is called.
struct Nobody;

impl Persist for Nobody {}

impl Policy for Nobody {
    fn candidates(&mut self, _: &View) -> Vec<DeviceId> {
        Vec::new()
    }

    fn select(&mut self, _: &View, _: &Reports) -> Schedule {
        Schedule::default()
    }
}
