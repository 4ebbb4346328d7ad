//! The parameter server: one stateful session that a simulation and real nodes drive alike.
//!
//! A round is three calls: [`Server::begin`] names the candidates and what they are asked, [`Server::report`]
//! takes their answers and grants the scheduled ones their share of the band, [`Server::deliver`] takes what
//! arrived and makes θ(t+1) of it. A server that trusts nobody may also audit reports, clip updates and limit
//! who sends:
//!
//! | defense | against | acts on |
//! |---|---|---|
//! | audit | reports and uploads that contradict each other | what arrived; after `defense.strikes` on who may send |
//! | [`Clip`] | updates that are too large | what is added up |
//! | [median](aggregate::Median), [trimmed mean](aggregate::TrimmedMean) | a minority with any values | what is added up |
//! | [noise](crate::privacy) | what models reveal of a device | what is added up |
//! | [`Cap`] | whoever would send all the time, and the power that takes | who may send |
//!
//! A device that may not send is shown to the policy as one with a zero-gain link, and struck from its
//! candidates. So no policy needs to know of any of this. If fewer than K may send, fewer are scheduled.

pub mod aggregate;
mod cap;
mod clip;
pub mod optimizer;
mod states;
mod upload;

pub use cap::Cap;
pub use clip::{Clip, WINDOW};
pub use upload::{Body, Upload};

use crate::compress::wire::Coder;
use crate::compress::{Compressor, Context, Encoded, Evidence};
use crate::error::Error;
use crate::learn::correction::{AddUpdate, Correction, NoCorrection};
use crate::learn::rate::Rate;
use crate::learn::steps::LocalSteps;
use crate::parallel::prelude::*;
use crate::pool::Pool;
use crate::privacy::{Exposure, Mechanism};
use crate::radio::access::{Band, Grant};
use crate::radio::{Known, Radio};
use crate::record::{Arrival, Cost, Guarantee, RoundRecord, Training, Transmission};
use crate::registry::ConfigError;
use crate::schedule::{
    Ask, DeviceTable, Facts, Genie, Pick, Policy, ReportCode, Reports, Sampling, Schedule, Share, View,
    check_candidates,
};
use crate::state::{MAX_COUNT, Persist, State, StateError};
use crate::units::{Airtime, Bits, DeviceId, Power, Shape, Symbols};
use aggregate::{Aggregator, Contribution, Delta};
use optimizer::ServerOptimizer;
use serde::{Deserialize, Serialize};
use states::DeviceStates;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many training samples a device has.
pub type SampleCounts = Arc<dyn Fn(DeviceId) -> usize + Send + Sync>;

/// The local steps of a device in a round.
pub type StepsOf = Arc<dyn Fn(u64, DeviceId) -> Option<LocalSteps> + Send + Sync>;

/// The server of a run.
pub struct Server {
    /// The uplink.
    pub radio: Radio,
    policy: Box<dyn Policy>,
    policy_name: String,
    report_code: ReportCode,
    decoder: Decoder,
    /// h_m of every device, if error feedback keeps it (`compress.feedback = "ef21"`).
    states: Option<DeviceStates>,
    /// The name of a compressor that is not this library's: the bits it claims are compared with what it
    /// sends.
    custom_compressor: Option<String>,
    aggregator: Box<dyn Aggregator>,
    optimizer: Box<dyn ServerOptimizer>,
    server_rate: Rate,
    /// What corrects local steps, and what the server keeps for it: d numbers, or none before the first
    /// round.
    correction: Arc<dyn Correction>,
    control: Vec<f32>,
    steps: StepsOf,
    defense: Defense,
    /// Whether devices send the level of the formula.
    exact: bool,
    samples: SampleCounts,
    seed: u64,
    theta: Vec<f32>,
    facts: Facts,
    ledger: Ledger,
    open: Option<Open>,
    /// Whether records hold the devices that were not scheduled too.
    log_all: bool,
    /// Memory for the noise of a round, if there is any.
    noise: Encoded,
}

/// Reads what arrives, on several threads.
struct Decoder {
    compressor: Arc<dyn Compressor>,
    seed: u64,
    /// The layers of the model; empty if they are not known.
    shapes: Vec<Shape>,
    coders: Pool<Coder>,
    decoded: Pool<Encoded>,
}

/// What a [`Server`] is made of.
pub struct ServerParts {
    /// The uplink.
    pub radio: Radio,
    /// Who sends.
    pub policy: Box<dyn Policy>,
    /// What the policy is called in messages.
    pub policy_name: String,
    /// What reports cost, and what is left of them.
    pub report_code: ReportCode,
    /// How updates are compressed.
    pub compressor: Arc<dyn Compressor>,
    /// κ, if the server keeps h_m of every device and steps by their aggregate (`compress.feedback =
    /// "ef21"`).
    pub state_decay: Option<f64>,
    /// The name of a compressor that is not this library's.
    pub custom_compressor: Option<String>,
    /// How updates become one step.
    pub aggregator: Box<dyn Aggregator>,
    /// What the server does with the step.
    pub optimizer: Box<dyn ServerOptimizer>,
    /// c, what the step is multiplied by (`learn.server_rate`).
    pub server_rate: f64,
    /// What the server does about devices that do not play by the rules.
    pub defense: Defense,
    /// Whether devices send the level that the formula allows (`compress.budget = "formula"`).
    pub exact: bool,
    /// Training samples of each device.
    pub samples: SampleCounts,
    /// The run's seed.
    pub seed: u64,
    /// θ(0).
    pub theta: Vec<f32>,
}

/// The defenses of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Defense {
    /// Strikes that exclude a device, if reports are audited.
    pub strikes: Option<u32>,
    /// The norm to which updates are clipped.
    pub clip: Clip,
    /// How often a device may send.
    pub cap: Option<Cap>,
    /// The noise on the sum of the updates.
    pub privacy: Option<Mechanism>,
}

/// What the server keeps of the devices from round to round.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ledger {
    devices: DeviceTable,
    /// How often each device was caught; empty: never any.
    strikes: Vec<u32>,
    /// The latest norms that arrived, if updates are clipped.
    norms: VecDeque<f32>,
    /// Rounds in which all bit weights were zero.
    zero_weights: u64,
    /// Uploads of a custom compressor that hold more than the bits it claims, and the first of them.
    underpriced: (u64, Option<Underpriced>),
}

/// An upload whose entries take more bits than its compressor claims.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Underpriced {
    round: u64,
    device: u32,
    entries: usize,
    claimed: f64,
    needed: f64,
}

/// What a server saves.
#[derive(Serialize, Deserialize)]
struct Saved {
    policy: State,
    aggregator: State,
    optimizer: State,
    ledger: Ledger,
}

/// The candidates of a round, and what they are asked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The round, counted from 0.
    pub t: u64,
    /// K.
    pub k: usize,
    /// Who must train and report.
    pub candidates: Vec<DeviceId>,
    /// What each of them reports.
    pub asks: Vec<Ask>,
    /// The bits that each candidate could send if it had the whole band.
    pub alone: Vec<Bits>,
    /// The symbols that each candidate's report takes of the round; empty: reports are free.
    pub report_symbols: Vec<f64>,
    /// The round, from 1, of the last upload of each candidate that is in the server's h_m, 0 if there is
    /// none; empty unless the server keeps h_m (`compress.feedback = "ef21"`).
    pub acknowledged: Vec<u64>,
}

/// A scheduled device and what it may use.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scheduled {
    /// Who sends.
    pub device: DeviceId,
    /// With what.
    pub grant: Grant,
    /// C_m of its link as the server knows it, bits a symbol.
    pub capacity: f64,
    /// w_m, what its share of the bits is proportional to.
    pub bit_weight: f64,
    /// What its update counts.
    pub share: Share,
    /// What all scheduled devices share: the symbols that the reports left.
    pub band: Band,
}

impl Scheduled {
    fn of(pick: &Pick, grant: &Grant, known: &Known, band: Band) -> Self {
        let Pick { device, bit_weight, share } = *pick;
        Self { device, grant: *grant, capacity: known.capacity(device), bit_weight, share, band }
    }
}

/// The candidates of an open round, and the schedule with its grants once the policy has decided.
pub(crate) type OpenRound<'a> = (&'a [DeviceId], Option<(&'a Schedule, &'a [Grant])>);

/// A round that is under way.
struct Open {
    call: Call,
    known: Known,
    /// Set by the reports.
    decided: Option<Decided>,
}

struct Decided {
    reports: Reports,
    schedule: Schedule,
    grants: Vec<Grant>,
    /// Symbols of the reports, and what they left of the round.
    report_symbols: u64,
    band: Band,
    /// Devices that were scheduled and failed before they sent.
    failed: Vec<DeviceId>,
}

impl Server {
    /// The server made of `parts`.
    pub fn new(parts: ServerParts) -> Self {
        let ServerParts { radio, policy, policy_name, compressor, aggregator, optimizer, .. } = parts;
        let states = parts.state_decay.map(|kappa| DeviceStates::new(kappa, radio.devices()));
        let ServerParts { custom_compressor, server_rate, defense, exact, samples, seed, theta, .. } = parts;
        let ServerParts { report_code, .. } = parts;
        let ledger = Ledger {
            devices: DeviceTable::new(radio.devices()),
            strikes: Vec::new(),
            norms: VecDeque::new(),
            zero_weights: 0,
            underpriced: (0, None),
        };
        let (coders, decoded) = (Pool::new(), Pool::new());
        let decoder = Decoder { compressor, seed, shapes: Vec::new(), coders, decoded };
        Self {
            radio,
            policy,
            policy_name,
            report_code,
            decoder,
            states,
            custom_compressor,
            aggregator,
            optimizer,
            server_rate: Rate::constant(server_rate),
            correction: Arc::new(NoCorrection {}),
            control: Vec::new(),
            steps: Arc::new(|_, _| None),
            defense,
            exact,
            samples,
            seed,
            theta,
            facts: Facts::default(),
            ledger,
            open: None,
            log_all: false,
            noise: Encoded::Silent,
        }
    }

    /// Tells the server what is known of the devices before the first round.
    pub(crate) fn inform(&mut self, facts: Facts) {
        self.facts = facts;
    }

    /// The same server with a rate that changes from round to round.
    #[must_use]
    pub fn with_rate(mut self, rate: Rate) -> Self {
        self.server_rate = rate;
        self
    }

    /// The same server, devices taking local `steps` that `rule` corrects.
    #[must_use]
    pub fn with_correction(mut self, rule: Arc<dyn Correction>, steps: StepsOf) -> Self {
        (self.correction, self.steps) = (rule, steps);
        self
    }

    /// What the server broadcasts with θ(t) for the correction of local steps; nothing stands for zeros.
    pub fn control(&self) -> &[f32] {
        &self.control
    }

    /// θ(t), the model now.
    pub fn theta(&self) -> &[f32] {
        &self.theta
    }

    pub(crate) fn set_theta(&mut self, theta: Vec<f32>) {
        self.theta = theta;
    }

    /// What the policy asks of every candidate.
    pub fn asks(&self) -> &[Ask] {
        self.policy.asks()
    }

    /// How the policy draws devices.
    pub fn sampling(&self) -> Sampling {
        self.policy.sampling()
    }

    /// What `rounds` rounds have released of a device; none without `privacy.noise`.
    pub fn guarantee(&self, rounds: u64) -> Option<Guarantee> {
        let busiest = self.ledger.devices.all_scheduled().iter().max().copied().unwrap_or(0);
        let exposure = Exposure {
            policy: &self.policy_name,
            asks: self.policy.asks(),
            sampling: self.policy.sampling(),
            devices: self.radio.devices() as u64,
            k: self.radio.k() as u64,
            rounds,
            busiest: busiest.into(),
        };
        self.defense.privacy.map(|mechanism| mechanism.guarantee(&exposure))
    }

    /// Who chooses by what no server can know, if the policy names it.
    pub(crate) fn genie(&self) -> Option<Genie> {
        self.policy.genie()
    }

    /// c, what the step of round `t` is multiplied by.
    pub(crate) fn server_rate(&self, t: u64) -> f32 {
        self.server_rate.at(t) as f32
    }

    /// Refuses what only a simulation can do.
    pub(crate) fn check_nodes(&self) -> Result<(), ConfigError> {
        let name = &self.policy_name;
        let why = match (self.policy.genie(), self.policy.is_a_link()) {
            (Some(_), _) => "chooses by what no server can know",
            (None, false) => "sends more than any link carries",
            (None, true) => return Ok(()),
        };
        let problem = format!(
            "is \"{name}\", which {why} and is for simulations; choose another policy for real nodes"
        );
        Err(ConfigError::new("schedule.policy", problem))
    }

    /// How updates are compressed.
    pub(crate) fn compressor(&self) -> &dyn Compressor {
        &*self.decoder.compressor
    }

    /// The candidates of the round that is open, and what the scheduled ones were granted, if any.
    pub(crate) fn open_round(&self) -> Option<OpenRound<'_>> {
        let open = self.open.as_ref()?;
        let decided = open.decided.as_ref().map(|decided| (&decided.schedule, decided.grants.as_slice()));
        Some((&open.call.candidates, decided))
    }

    /// What the server knows of the links of the round that is open.
    pub(crate) fn known(&self) -> Option<&Known> {
        self.open.as_ref().map(|open| &open.known)
    }

    /// Whether the records to come hold the devices that were not scheduled too.
    pub(crate) fn set_log_all(&mut self, log_all: bool) {
        self.log_all = log_all;
    }

    /// What the server keeps of every device.
    pub fn devices(&self) -> &DeviceTable {
        &self.ledger.devices
    }

    /// The devices that were caught too often.
    pub fn excluded(&self) -> Vec<DeviceId> {
        DeviceId::all(self.radio.devices()).filter(|device| self.is_excluded(device.index())).collect()
    }

    /// What a person should know of the run so far.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.ledger.zero_weights > 0 {
            warnings.push(format!(
                "in {} rounds every bit weight of policy {} was 0, and the bits were shared equally",
                self.ledger.zero_weights, self.policy_name
            ));
        }
        let labels = || self.facts.labels.as_ref().and_then(|labels| labels(DeviceId(0)));
        if self.policy.uses_labels() && labels().is_none() {
            warnings.push(format!(
                "policy {} looks at the labels that devices hold, and nobody knows them here: all are alike",
                self.policy_name
            ));
        }
        if let (Some(name), (uploads, Some(first))) = (&self.custom_compressor, self.ledger.underpriced) {
            let Underpriced { round, device, entries, claimed, needed } = first;
            warnings.push(format!(
                "compressor {name} claims fewer bits than its entries take in {uploads} uploads (the first: round \
                 {round}, device {device}, {entries} entries, which take about {needed:.0} bits, for {claimed:.0}); its \
                 results are too good unless both ends draw the indices from a shared seed"
            ));
        }
        warnings
    }

    fn is_excluded(&self, m: usize) -> bool {
        let strikes = self.ledger.strikes.get(m).copied().unwrap_or(0);
        self.defense.strikes.is_some_and(|limit| strikes >= limit)
    }

    /// Whether device `m` may send in round `t` (from 0).
    fn may_send(&self, m: usize, t: u64) -> bool {
        let scheduled = u64::from(self.ledger.devices.all_scheduled()[m]);
        let within = self.defense.cap.is_none_or(|cap| scheduled < cap.max_scheduled(t + 1));
        within && !self.is_excluded(m)
    }

    fn view<'a>(&'a self, t: u64, k: usize, known: &'a Known) -> View<'a> {
        View {
            t,
            k,
            dim: self.theta.len(),
            symbols: self.radio.band().symbols,
            symbol_s: self.radio.budget().symbol_s(),
            average_power: self.radio.average_power(),
            noise: self.radio.noise(),
            links: known,
            devices: &self.ledger.devices,
            turns: self.radio.turns_before(t),
            uplink: &self.radio,
            known_of: &self.facts,
            samples: &*self.samples,
            seed: self.seed,
        }
    }

    /// Opens round `t` (from 0) over links as `known`, with those devices that are `present`: who must train,
    /// and what is asked. A round that was open before is abandoned.
    pub fn begin(
        &mut self,
        t: u64,
        mut known: Known,
        present: impl Fn(DeviceId) -> bool,
    ) -> Result<Call, Error> {
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
            self.ledger.devices.set_may_send(m, may);
            if !may {
                known.silence(m);
            }
        }
        // The policy is lent out while the view borrows the rest of the server.
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
        candidates.retain(|device| self.ledger.devices.may_send(*device));
        let alone = candidates.iter().map(|&device| self.radio.alone(device, &known)).collect();
        let asks = self.policy.asks().to_vec();
        let report_symbols = self.report_code.symbols(&candidates, asks.len(), &known);
        let states = self.states.as_ref();
        let acknowledged = candidates.iter().filter_map(|&m| Some(states?.round(m))).collect();
        let call = Call { t, k, candidates, asks, alone, report_symbols, acknowledged };
        self.open = Some(Open { call: call.clone(), known, decided: None });
        Ok(call)
    }

    /// Replaces what the server knows of the links since the round began, before the reports are taken: nodes
    /// that are asked to train may give a new rate with their report. Devices that may not send stay silent,
    /// and the bits that candidates were given for themselves alone stay as they were given.
    pub fn relink(&mut self, mut known: Known) -> Result<(), Error> {
        let open = self.open.as_mut().filter(|open| open.decided.is_none());
        let open = open.ok_or(Error::Session("relink: no round waits for reports"))?;
        if known.devices() != open.known.devices() {
            return Err(Error::Session("relink: there must be one link for each device"));
        }
        let round = open.call.t + 1;
        known.check().map_err(|(device, problem)| Error::Link { round, device: device.0, problem })?;
        for device in DeviceId::all(known.devices()).filter(|device| !self.ledger.devices.may_send(*device)) {
            known.silence(device.index());
        }
        open.known = known;
        Ok(())
    }

    /// Takes the candidates' reports, those of the ones that answered; the policy decides, and the scheduled
    /// devices are granted their share.
    pub fn report(&mut self, reports: Reports) -> Result<Vec<Scheduled>, Error> {
        let mut open = self.open.take().ok_or(Error::Session("report: no round has begun"))?;
        if let Some(problem) = misfit(&reports, &open.call) {
            return Err(Error::Session(problem));
        }
        let t = open.call.t;
        if let Some((device, value)) = reports.not_finite() {
            return Err(Error::Report { round: t + 1, device: device.0, value });
        }
        let Band { symbols } = self.radio.band();
        let report_symbols = ReportCode::total(&open.call.report_symbols, symbols);
        let band = Band { symbols: symbols - report_symbols };
        let reports = self.report_code.received(reports, &open.known);
        // A candidate without a report cannot be scheduled; the policy sees it as it sees one that is gone.
        if reports.len() < open.call.candidates.len() {
            let mut there = reports.devices.clone();
            there.sort_unstable();
            let is_gone = |device: &&DeviceId| there.binary_search(device).is_err();
            for device in open.call.candidates.iter().filter(is_gone) {
                self.ledger.devices.set_may_send(device.index(), false);
                open.known.silence(device.index());
            }
        }
        if let Some(column) = open.call.asks.iter().position(|ask| *ask == Ask::Loss) {
            for (device, loss) in reports.devices.iter().zip(reports.column(column)) {
                self.ledger.devices.note_loss(*device, loss);
            }
        }
        let schedule = self
            .with_policy(|policy, server| policy.select(&server.view(t, open.call.k, &open.known), &reports));
        self.check_policy(t)?;
        schedule.check(&reports.devices, open.call.k).map_err(|problem| self.broken(t, problem))?;
        let devices: Vec<DeviceId> = schedule.devices().collect();
        let weights: Vec<f64> = schedule.picks.iter().map(|pick| pick.bit_weight).collect();
        if !weights.is_empty() && weights.iter().all(|&weight| weight == 0.0) {
            self.ledger.zero_weights += 1;
        }
        let coins = self.policy.sampling() != Sampling::Other;
        let grants = if coins {
            self.radio.grant_slots(&devices, &open.known)
        } else {
            self.radio.grant_of(&band, &devices, &weights, &open.known)
        };
        if self.defense.privacy.is_some()
            && !coins
            && schedule.picks.iter().any(|pick| pick.share != Share::Rule)
        {
            let problem = format!(
                "needs updates that count the same, but schedule.policy = \"{}\" gives them shares of its \
                 own; set privacy.noise to 0, or choose \"poisson\", \"random\" or another policy without \
                 shares",
                self.policy_name
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
    /// the one with the largest first report that is not scheduled (where nothing is asked, the first in the
    /// policy's order). It takes the device's index in the schedule. None: there is no such candidate, or the
    /// policy gave the failed device a share of its own, which no other device can stand for without bias.
    pub fn substitute(&mut self, failed: DeviceId) -> Result<Option<Scheduled>, Error> {
        let Some(Open { known, decided: Some(decided), .. }) = &mut self.open else {
            return Err(Error::Session("substitute: nobody has reported yet"));
        };
        let Decided { reports, schedule, grants, band, failed: before, .. } = decided;
        let Some(index) = schedule.devices().position(|device| device == failed) else {
            return Err(Error::Session("substitute: the device is not scheduled"));
        };
        before.push(failed);
        let unavailable: Vec<DeviceId> = schedule.devices().chain(before.iter().copied()).collect();
        let waiting = (0..reports.len()).filter(|&row| !unavailable.contains(&reports.devices[row]));
        // Of equal reports the first in the policy's order counts, the larger gain before it where reports have a price.
        let better = |&a: &usize, &b: &usize| {
            let by_tie = reports.tie(a).total_cmp(&reports.tie(b));
            reports.first(a).total_cmp(&reports.first(b)).then(by_tie).then(b.cmp(&a))
        };
        let Some(row) = waiting.max_by(better).filter(|_| schedule.picks[index].share == Share::Rule) else {
            return Ok(None);
        };
        let device = reports.devices[row];
        schedule.picks[index].device = device;
        grants[index] = self.radio.transfer_of(band, &grants[index], device, known);
        Ok(Some(Scheduled::of(&schedule.picks[index], &grants[index], known, *band)))
    }

    /// Takes what arrived of the scheduled devices, in their order: θ(t) becomes θ(t+1), and
    /// the round is closed.
    pub fn deliver<'a>(
        &mut self,
        uploads: &[Upload<'a>],
        training: Training,
        cost: Option<Cost>,
    ) -> Result<RoundRecord, Error> {
        let open = self.open.take().ok_or(Error::Session("deliver: no round has begun"))?;
        let Open { call, known, decided } = open;
        let decided = decided.ok_or(Error::Session("deliver: nobody has reported yet"))?;
        if !uploads.iter().map(|upload| upload.device).eq(decided.schedule.devices()) {
            return Err(Error::Session(
                "deliver: there must be one upload of each scheduled device, in their order",
            ));
        }
        let (decoder, dim) = (&self.decoder, self.theta.len());
        let read = |(upload, grant): (&Upload<'a>, &Grant)| {
            decoder.read(upload, &decoder.context(dim, grant.budget, (call.t, upload.device)))
        };
        let received: Vec<Received> = uploads.par_iter().zip(&decided.grants).map(read).collect();
        self.note_underpriced(call.t, &received, uploads);
        let arrivals = self.judge(&call, &decided, &received, uploads);
        let shares = self.shares(call.t, &decided.schedule, &arrivals);
        if self.states.is_some() {
            self.update_from_states(call.t, uploads, &received, &arrivals);
        } else {
            self.update(call.t, &received, &arrivals, &shares);
        }
        for ((one, arrival), upload) in received.iter().zip(&arrivals).zip(uploads) {
            if let (Arrival::Used, Ok(update)) = (arrival, one.update()) {
                self.policy.receive(upload.device, update);
            }
        }
        self.correct(call.t, &received, &arrivals, uploads);
        let used =
            decided.schedule.devices().zip(&arrivals).filter(|(_, arrival)| **arrival == Arrival::Used);
        self.aggregator.observe(&used.map(|(device, _)| device).collect::<Vec<DeviceId>>());
        for device in decided.schedule.devices() {
            self.ledger.devices.note_scheduled(device, call.t);
        }
        for one in received {
            if let Received::Decoded(update) = one {
                self.decoder.decoded.give(update);
            }
        }
        let mut record = record(&call, &known, &decided, uploads, &arrivals, training);
        record.cost = cost;
        if self.log_all {
            record.others = not_scheduled(&call, &known, &decided);
        }
        let sent = record.transmissions.iter().map(|sent| (sent.device, sent.power, sent.airtime));
        self.radio.settle(&sent.collect::<Vec<(DeviceId, Power, Airtime)>>());
        self.policy.observe(&record);
        self.check_policy(call.t)?;
        Ok(record)
    }

    /// The layers of the model, for schemes that use them; the devices must know the same.
    pub(crate) fn set_shapes(&mut self, shapes: Vec<Shape>) {
        self.decoder.shapes = shapes;
    }

    /// Counts the uploads of a custom compressor that claims fewer bits than the information in what it sends.
    fn note_underpriced(&mut self, t: u64, received: &[Received], uploads: &[Upload]) {
        if self.custom_compressor.is_none() {
            return;
        }
        for (one, upload) in received.iter().zip(uploads) {
            let Ok(Encoded::Sparse(update)) = one.update() else { continue };
            let (needed, claimed) = (update.information(self.theta.len()), upload.spent.bits);
            if claimed < needed {
                let (count, first) = &mut self.ledger.underpriced;
                *count += 1;
                first.get_or_insert(Underpriced {
                    round: t + 1,
                    device: upload.device.0,
                    entries: update.indices.len(),
                    claimed: claimed.0,
                    needed: needed.0,
                });
            }
        }
    }

    /// How each upload is handled. One that cannot be decoded or fails the audit is a strike.
    fn judge(
        &mut self,
        call: &Call,
        decided: &Decided,
        received: &[Received],
        uploads: &[Upload],
    ) -> Vec<Arrival> {
        let judge = |(i, upload): (usize, &Upload)| {
            let arrival = match received[i].update() {
                Err(arrival) => arrival,
                Ok(update) if self.defense.strikes.is_some() => {
                    let row = decided.reports.index_of(upload.device).unwrap_or_default();
                    let index = call.candidates.iter().position(|device| *device == upload.device);
                    let (dim, budget) = (self.theta.len(), decided.grants[i].budget);
                    let context = self.decoder.context(dim, budget, (call.t, upload.device));
                    let honest = call.asks.iter().zip(decided.reports.row(row)).all(|(&ask, &report)| {
                        let evidence = Evidence {
                            ask,
                            context,
                            alone: call.alone[index.unwrap_or_default()],
                            exact: self.exact,
                            received: update,
                        };
                        evidence.allows(&*self.decoder.compressor, report)
                    });
                    if honest { Arrival::Used } else { Arrival::Flagged }
                }
                Ok(_) => Arrival::Used,
            };
            if matches!(arrival, Arrival::Undecodable | Arrival::Flagged) {
                let strikes = &mut self.ledger.strikes;
                strikes.resize(strikes.len().max(self.ledger.devices.len()), 0);
                let count = &mut strikes[upload.device.index()];
                *count = count.saturating_add(1);
            }
            arrival
        };
        uploads.iter().enumerate().map(judge).collect()
    }

    /// What each scheduled device's update counts. One that was lost counts for nobody; one that was silent,
    /// cannot be decoded or fails the audit counts and adds nothing.
    fn shares(&self, t: u64, schedule: &Schedule, arrivals: &[Arrival]) -> Vec<f32> {
        let counting: Vec<DeviceId> =
            schedule.devices().zip(arrivals).filter(|(_, a)| **a != Arrival::Lost).map(|(m, _)| m).collect();
        let mut by_rule = self.aggregator.shares_of(&counting, &|i| (self.samples)(counting[i])).into_iter();
        let share = |(pick, arrival): (&Pick, &Arrival)| {
            let rule = if *arrival == Arrival::Lost { 0.0 } else { by_rule.next().unwrap_or_default() };
            match pick.share {
                Share::Rule => rule,
                Share::Weight(weight) => weight as f32,
            }
        };
        let mut shares: Vec<f32> = schedule.picks.iter().zip(arrivals).map(share).collect();
        if self.aggregator.by_steps() {
            let steps: Vec<u64> =
                schedule.devices().map(|m| (self.steps)(t, m).map_or(1, |steps| steps.count)).collect();
            aggregate::normalize_steps(&mut shares, &steps);
        }
        shares
    }

    /// θ(t+1) out of θ(t) and what arrived and passed the audit.
    fn update(&mut self, t: u64, received: &[Received], arrivals: &[Arrival], shares: &[f32]) {
        let privacy = self.defense.privacy;
        let mut used: Vec<Contribution> = Vec::with_capacity(received.len());
        for ((one, arrival), &share) in received.iter().zip(arrivals).zip(shares) {
            if let (Arrival::Used, Ok(update)) = (arrival, one.update()) {
                // Under privacy a device counts the same whoever else sent.
                let share = privacy.map_or(share, |mechanism| mechanism.share as f32);
                used.push(Contribution { update, share, factor: 1.0 });
            }
        }
        if self.defense.clip != Clip::Off {
            let norms: Vec<f32> = used.iter().map(|one| one.update.norm()).collect();
            self.ledger.norms.extend(&norms);
            let old = self.ledger.norms.len().saturating_sub(WINDOW);
            self.ledger.norms.drain(..old);
            let limit = self.defense.clip.limit(self.ledger.norms.make_contiguous());
            used.iter_mut().zip(norms).for_each(|(one, norm)| one.factor = clip::factor(norm, limit));
        }
        let counting = arrivals.iter().filter(|arrival| **arrival != Arrival::Lost).count();
        let mut delta = self.aggregator.aggregate(&used, counting);
        if let (Some(mechanism), Delta::Sum(terms)) = (privacy, &mut delta) {
            // In every round, also in one in which nobody sent.
            let mut noise = match std::mem::take(&mut self.noise) {
                Encoded::Dense(values) => values,
                _ => vec![0.0; self.theta.len()],
            };
            mechanism.fill(&mut noise, self.seed, t);
            self.noise = Encoded::Dense(noise);
            terms.push((&self.noise, 1.0));
        }
        self.optimizer.step(&mut self.theta, &delta, self.server_rate.at(t) as f32);
    }

    /// What the correction of local steps makes of the updates that arrived.
    fn correct(&mut self, t: u64, received: &[Received], arrivals: &[Arrival], uploads: &[Upload]) {
        if !self.correction.keeps_state() {
            return;
        }
        let mut updates = Vec::with_capacity(received.len());
        for ((one, arrival), upload) in received.iter().zip(arrivals).zip(uploads) {
            if let (Arrival::Used, Ok(update), Some(steps)) =
                (arrival, one.update(), (self.steps)(t, upload.device))
            {
                let add = move |target: &mut [f32], scale: f32| update.add_to(target, scale);
                updates.push((add, steps.length()));
            }
        }
        let updates: Vec<(AddUpdate, f64)> =
            updates.iter().map(|(add, length)| (add as AddUpdate, *length)).collect();
        self.control.resize(self.theta.len(), 0.0);
        let devices = self.radio.devices();
        self.correction.settle_server(&mut self.control, &updates, devices, &mut self.theta);
    }

    /// The state of the optimizer and that of the correction, if it keeps any.
    fn saved_optimizer(&self) -> State {
        let optimizer = self.optimizer.save();
        if self.correction.keeps_state() { State::of(&(optimizer, &self.control)) } else { optimizer }
    }

    fn load_optimizer(&mut self, state: State) -> Result<(), StateError> {
        if !self.correction.keeps_state() {
            return self.optimizer.load(state);
        }
        let (optimizer, control): (State, Vec<f32>) = state.read()?;
        if ![0, self.theta.len()].contains(&control.len()) {
            return Err(StateError("learn.correction: its vector is not of this run's size".into()));
        }
        self.optimizer.load(optimizer)?;
        self.control = control;
        Ok(())
    }

    /// θ(t+1) out of θ(t) and h_m of all devices, after what arrived and passed the audit has moved some.
    fn update_from_states(
        &mut self,
        t: u64,
        uploads: &[Upload],
        received: &[Received],
        arrivals: &[Arrival],
    ) {
        let Some(states) = &mut self.states else { return };
        let dim = self.theta.len();
        for ((upload, one), arrival) in uploads.iter().zip(received).zip(arrivals) {
            if let (Arrival::Used, Ok(update)) = (arrival, one.update()) {
                states.advance(upload.device, t, update, dim);
                if self.defense.clip != Clip::Off {
                    self.ledger.norms.push_back(states.norm(upload.device));
                }
            }
        }
        let devices = self.radio.devices();
        let shares = self.aggregator.shares(devices, &|m| (self.samples)(DeviceId(m as u32)));
        let mut all = states.contributions(t, &shares);
        if self.defense.clip != Clip::Off {
            let old = self.ledger.norms.len().saturating_sub(WINDOW);
            self.ledger.norms.drain(..old);
            let limit = self.defense.clip.limit(self.ledger.norms.make_contiguous());
            for one in &mut all {
                one.factor *= clip::factor(one.factor * one.update.norm(), limit);
            }
        }
        let delta = self.aggregator.aggregate(&all, devices);
        self.optimizer.step(&mut self.theta, &delta, self.server_rate.at(t) as f32);
    }

    /// Resets h_m of a device that has lost its own: both sides start from zero again.
    pub fn forget(&mut self, device: DeviceId) -> Result<(), Error> {
        let states = self.states.as_mut().filter(|_| device.index() < self.radio.devices());
        let states = states.ok_or(Error::Session(
            "forget: the server keeps no state of such a device; it does with compress.feedback = \"ef21\"",
        ))?;
        states.forget(device);
        Ok(())
    }

    /// The round, from 1, of the last upload in h_m, 0 if there is none; none if the server keeps no h_m.
    pub fn acknowledged(&self, device: DeviceId) -> Option<u64> {
        self.states.as_ref().map(|states| states.round(device))
    }

    /// h_m of a device, as it was after its last upload; none if it has none.
    pub fn device_state(&self, device: DeviceId) -> Option<&[f32]> {
        self.states.as_ref()?.state(device)
    }

    /// Vectors of the size of θ that the server keeps of the devices, once all have sent.
    pub(crate) fn state_vectors(&self) -> usize {
        self.states.as_ref().map_or(0, |_| self.radio.devices())
    }

    /// Runs `call` with the policy and the rest of the server side by side.
    fn with_policy<R>(&mut self, call: impl FnOnce(&mut dyn Policy, &Self) -> R) -> R {
        let mut policy = std::mem::replace(&mut self.policy, Box::new(Nobody));
        let result = call(&mut *policy, self);
        self.policy = policy;
        result
    }

    /// Whether the last call of the policy went well.
    fn check_policy(&self, t: u64) -> Result<(), Error> {
        self.policy.failure().map_or(Ok(()), |problem| Err(self.broken(t, problem)))
    }

    /// Why the policy failed, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.policy.failure()
    }

    fn broken(&self, t: u64, problem: String) -> Error {
        Error::Policy { name: self.policy_name.clone(), round: t + 1, problem }
    }
}

impl Decoder {
    /// What both ends know of an upload of `dim` numbers within `budget`, by round and device.
    fn context(&self, dim: usize, budget: Bits, who: (u64, DeviceId)) -> Context<'_> {
        Context::new(dim, budget).of(self.seed, who).with_shapes(&self.shapes)
    }

    /// What the server has of an upload: it decodes a payload by what it knows of the round alone.
    fn read<'a>(&self, upload: &Upload<'a>, context: &Context) -> Received<'a> {
        match upload.body {
            Body::Silent => Received::Nothing(Arrival::Silent),
            Body::Lost => Received::Nothing(Arrival::Lost),
            Body::Outage => Received::Nothing(Arrival::Outage),
            Body::Late => Received::Nothing(Arrival::Late),
            Body::Unreadable => Received::Nothing(Arrival::Undecodable),
            Body::Update(update) => Received::Handed(update),
            Body::Payload(payload) => {
                let mut update = self.decoded.take(Encoded::default);
                let read = self.compressor.codec().map(|codec| {
                    self.coders.with(Coder::default, |coder| codec.read(coder, context, payload, &mut update))
                });
                match read {
                    Some(Ok(())) => Received::Decoded(update),
                    Some(Err(_)) | None => Received::Nothing(Arrival::Undecodable),
                }
            }
        }
    }
}

impl Persist for Server {
    fn save(&self) -> State {
        let saved = Saved {
            policy: self.policy.save(),
            aggregator: self.aggregator.save(),
            optimizer: self.saved_optimizer(),
            ledger: self.ledger.clone(),
        };
        match &self.states {
            None => State::of(&saved),
            Some(states) => State::of(&(saved, states)),
        }
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        let devices = self.radio.devices();
        let (saved, states): (Saved, _) = match &self.states {
            None => (state.read()?, None),
            Some(states) => {
                let (saved, read): (Saved, DeviceStates) = state.read()?;
                (saved, Some(states.accept(read, self.theta.len())?))
            }
        };
        let Ledger { devices: table, strikes, norms, zero_weights, underpriced } = &saved.ledger;
        if !table.is_of(devices) || ![0, devices].contains(&strikes.len()) || norms.len() > WINDOW {
            return Err(StateError("the server's tables are not of this run's size".into()));
        }
        if (*zero_weights).max(underpriced.0) > MAX_COUNT {
            return Err(StateError("the server's counts are beyond those of any run".into()));
        }
        let before = [self.policy.save(), self.aggregator.save(), self.saved_optimizer()];
        let named = |part: &str, error: StateError| StateError(format!("{part}: {error}"));
        let result = self
            .policy
            .load(saved.policy)
            .map_err(|error| named(&format!("policy {}", self.policy_name), error))
            .and_then(|()| {
                self.aggregator.load(saved.aggregator).map_err(|error| named("learn.aggregate", error))
            })
            .and_then(|()| {
                self.load_optimizer(saved.optimizer).map_err(|error| named("learn.server_optimizer", error))
            });
        if result.is_err() {
            // A failure changes nothing: each part takes back what it had.
            let [policy, aggregator, optimizer] = before;
            let _ =
                (self.policy.load(policy), self.aggregator.load(aggregator), self.load_optimizer(optimizer));
            return result;
        }
        (self.ledger, self.states) = (saved.ledger, states);
        self.open = None;
        Ok(())
    }
}

/// Why `reports` cannot be answers to `call`, if they cannot.
fn misfit(reports: &Reports, call: &Call) -> Option<&'static str> {
    if !reports.is_empty() && reports.asks() != call.asks.len() {
        return Some("report: every candidate answers each ask with one number");
    }
    if reports.devices == call.candidates {
        return None;
    }
    let mut waiting = call.candidates.clone();
    waiting.sort_unstable();
    let mut reported = reports.devices.clone();
    reported.sort_unstable();
    if reported.windows(2).any(|pair| pair[0] == pair[1]) {
        return Some("report: a device reports twice");
    }
    let unexpected = reported.iter().any(|device| waiting.binary_search(device).is_err());
    unexpected.then_some("report: a device that was no candidate reports")
}

/// What the server has of an upload.
enum Received<'a> {
    Handed(&'a Encoded),
    Decoded(Encoded),
    Nothing(Arrival),
}

impl Received<'_> {
    fn update(&self) -> Result<&Encoded, Arrival> {
        match self {
            Self::Handed(update) => Ok(update),
            Self::Decoded(update) => Ok(update),
            Self::Nothing(arrival) => Err(*arrival),
        }
    }
}

/// Stands in for the policy while it is called.
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

/// The round as it is recorded.
fn record(
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
            weight: pick.bit_weight,
            symbols: grant.symbols,
            power: grant.power,
            airtime: upload.airtime.unwrap_or(grant.airtime),
            budget: grant.budget,
            bits: upload.spent.bits,
            q: upload.spent.level,
            entries: upload.entries,
            share: match pick.share {
                Share::Rule => None,
                Share::Weight(weight) => Some(weight),
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
        training,
        report_symbols,
        cost: None,
        evaluation: None,
    }
}

/// The devices that were not scheduled, as the server knew them.
fn not_scheduled(call: &Call, known: &Known, decided: &Decided) -> Vec<Transmission> {
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
        weight: 0.0,
        symbols: Symbols(0.0),
        power: Power(0.0),
        airtime: Airtime(0.0),
        budget: Bits(0.0),
        bits: Bits(0.0),
        q: 0,
        entries: 0,
        share: None,
        wire_bits: None,
        arrival: Arrival::NotScheduled,
        report_symbols: decided.report_symbols,
    };
    DeviceId::all(known.devices()).filter(|device| waits[device.index()]).map(other).collect()
}
