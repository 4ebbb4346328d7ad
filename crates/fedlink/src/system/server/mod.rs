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
//! | [median](crate::aggregate::Median), [trimmed mean](crate::aggregate::TrimmedMean) | a minority with any values | what is added up |
//! | [noise](crate::privacy) | what models reveal of a device | what is added up |
//! | [`Cap`] | whoever would send all the time, and the power that takes | who may send |
//!
//! A device that may not send is shown to the policy as one with a zero-gain link, and struck from its
//! candidates. So no policy needs to know of any of this. If fewer than K may send, fewer are scheduled.

mod cap;
mod deliver;
mod recorded;
mod saved;
mod states;
mod upload;

pub use cap::Cap;
pub use upload::{Body, Upload};

use crate::aggregate::optimizer::ServerOptimizer;
use crate::aggregate::{Aggregator, Clip};
use crate::base::buffers::Pool;
use crate::base::state::Persist;
use crate::base::units::{Bits, DeviceId, Shape};
use crate::compress::{Compressor, Encoded};
use crate::error::Error;
use crate::learn::correction::{Correction, NoCorrection};
use crate::learn::rate::Rate;
use crate::learn::steps::LocalSteps;
use crate::parts::ConfigError;
use crate::privacy::{Exposure, Mechanism};
use crate::radio::access::{Band, Grant};
use crate::radio::{Carried, Known, Radio};
use crate::record::{Guarantee, Training};
use crate::schedule::{
    Ask, DeviceTable, Facts, Genie, Pick, Policy, ReportCode, Reports, Sampling, Schedule, Selection, Share,
    View, check_candidates,
};
use crate::system::device::{Request, Sender};
use deliver::Decoder;
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

/// What a [`Server`] is made of.
#[non_exhaustive]
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
#[non_exhaustive]
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

    /// What the policy declares of its choice.
    pub(crate) fn selection(&self) -> Selection {
        self.policy.selection()
    }

    /// c, what the step of round `t` is multiplied by.
    pub(crate) fn server_rate(&self, t: u64) -> f32 {
        self.server_rate.at(t) as f32
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

    /// The links of the round that is open, as the server knows them. A policy that schedules fewer than K
    /// devices leaves each of them more power.
    pub fn known(&self) -> Result<&Known, Error> {
        self.open.as_ref().map(|open| &open.known).ok_or(Error::Session("known: no round has begun"))
    }

    /// The fate of the upload of a scheduled device in the round that is open, over a channel of which `gain`
    /// is the true power gain.
    pub fn carry(&self, one: &Scheduled, gain: f64) -> Result<Carried, Error> {
        let open = self.open.as_ref().ok_or(Error::Session("carry: no round has begun"))?;
        Ok(self.radio.carry_of(&one.band, open.call.t, one.device, &one.grant, gain, &open.known))
    }

    /// Whether the records to come hold the devices that were not scheduled too.
    pub(crate) fn set_log_all(&mut self, log_all: bool) {
        self.log_all = log_all;
    }

    /// The training of devices with these losses, weighted as the server weighs updates.
    pub fn training(&self, losses: &[(DeviceId, f64)]) -> Training {
        let by_size = self.aggregator.by_size();
        let samples = |device| by_size.then(|| (self.samples)(device));
        Training::of(losses.iter().map(|&(device, loss)| (loss, samples(device))))
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
                "compressor {name} claims fewer bits than its entries take in {uploads} uploads (the first: \
                 round {round}, device {device}, {entries} entries, which take about {needed:.0} bits, for \
                 {claimed:.0}); its results are too good unless both ends draw the indices from a shared seed"
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
        // Of equal reports the first in the policy's order counts, the larger gain before it where reports
        // have a price.
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

    /// The layers of the model, for schemes that use them; the devices must know the same.
    pub(crate) fn set_shapes(&mut self, shapes: Vec<Shape>) {
        self.decoder.shapes = shapes;
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
