//! The parameter server: one stateful object that a simulation and real nodes drive alike.
//!
//! A round is three calls: [`Server::begin`] names the candidates and the reports that they must send,
//! [`Server::report`] takes their reports and grants the scheduled ones their part of the band,
//! [`Server::deliver`] decodes the uploads and computes θ(t+1). A server that trusts no device may also audit
//! reports, clip updates and limit the transmissions per device:
//!
//! | defense | against | acts on |
//! |---|---|---|
//! | audit | reports and uploads that contradict each other | uploads; after `defense.strikes` the eligible devices |
//! | [`Clip`](crate::aggregate::Clip) | updates that are too large | the updates in the sum |
//! | [median](crate::aggregate::Median), [trimmed mean](crate::aggregate::TrimmedMean) | a minority with any values | the sum |
//! | [noise](crate::privacy) | disclosure of a device by models | the sum |
//! | [`Cap`] | devices that would send all the time, and their power | the eligible devices |
//!
//! To the policy, a device that may not send has a zero-gain link, and it is removed from the candidates. So
//! no policy depends on these defenses. If fewer than K may send, fewer are scheduled.

mod book;
mod call;
mod cap;
mod defense;
mod deliver;
mod nodes;
mod outcome;
mod recorded;
mod report;
mod saved;
mod states;
mod upload;

pub use call::{Call, Scheduled};
pub use cap::Cap;
pub use nodes::Message;
pub use upload::{Body, Upload};

use crate::aggregate::Aggregator;
use crate::aggregate::optimizer::ServerOptimizer;
use crate::base::units::{Bits, DeviceId, Shape};
use crate::compress::{BudgetRule, Compressor, Encoded, LevelRule};
use crate::error::Error;
use crate::learn::correction::Correction;
use crate::learn::rate::Rate;
use crate::learn::steps::LocalSteps;
use crate::radio::{Carried, Known, Links, Radio, Transfer};
use crate::record::{Ledger, RoundRecord, Training};
use crate::schedule::{Ask, DeviceTable, Facts, Genie, Notes, Policy, ReportCode, Selection};
use crate::spec::Spec;
use book::DeviceBook;
use call::Open;
use defense::Defense;
use deliver::Decoder;
use states::DeviceStates;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

/// The number of training samples of a device.
pub(crate) type SampleCounts = Arc<dyn Fn(DeviceId) -> usize + Send + Sync>;

/// The local steps of a device in a round.
pub(crate) type StepsOf = Arc<dyn Fn(u64, DeviceId) -> Option<LocalSteps> + Send + Sync>;

/// The server of a run: the model, the policy, the uplink as it is known, the aggregation, and the record of
/// the rounds.
///
/// A round is [`begin`](Server::begin) → [`report`](Server::report) → [`deliver`](Server::deliver), then,
/// if the model is evaluated, [`evaluated`](Server::evaluated). A call that comes in the wrong order or does
/// not fit the calls before it is rejected and changes nothing. If it receives the values that the devices of
/// a simulation compute, a server has the simulation's digest.
///
/// ```
/// use fedlink::prelude::*;
/// use fedlink::record::Training;
/// use fedlink::schedule::policy::BestNorm;
/// use fedlink::system::{device::Device, server::Message};
/// # fn main() -> Result<(), fedlink::Error> {
/// let spec = Spec::builder().devices(3).policy(BestNorm {}).build()?;
/// let mut server = Server::of(&spec, vec![0.0; 1000], None)?;
/// let mut devices = vec![Device::new(&spec, Vec::new())?; 3];
///
/// let links = server.links(0);
/// let call = server.begin(0, links.known, |_| true)?;
/// let update = vec![1.0; 1000]; // every device has learned this
/// let mut answers = Vec::new();
/// for (index, device) in call.candidates.iter().enumerate() {
///     let report = devices[device.index()].report(&call.request(index), update.clone(), 0.7)?;
///     answers.extend(report.answers);
/// }
/// let granted = server.report(Reports::new(call.candidates, call.asks.len(), answers))?;
/// let sent = devices[granted[0].device.index()].send(granted[0].grant.budget)?;
/// server.deliver_messages(&[Message::of(granted[0].device, &sent)], Training::new(3, 0.7))?;
/// assert!(server.theta().contains(&1.0));
/// # Ok(())
/// # }
/// ```
pub struct Server {
    spec: Spec,
    /// The digest of the run's trajectory, computed when it is first needed, since that takes longer than a
    /// small checkpoint.
    trajectory: OnceLock<[u8; 32]>,
    radio: Radio,
    policy: Box<dyn Policy>,
    report_code: ReportCode,
    decoder: Decoder,
    /// h_m of every device, if error feedback keeps it.
    states: Option<DeviceStates>,
    aggregator: Box<dyn Aggregator>,
    optimizer: Box<dyn ServerOptimizer>,
    rate: Rate,
    correction: Arc<dyn Correction>,
    /// The server's vector of the correction: d numbers, or none before the first round.
    control: Vec<f32>,
    steps: StepsOf,
    defense: Defense,
    /// Whether devices send the level of the formula.
    exact: bool,
    samples: SampleCounts,
    /// The training samples of each device of a run on nodes; empty if a task knows them.
    given_samples: Arc<[AtomicUsize]>,
    theta: Vec<f32>,
    facts: Facts,
    book: DeviceBook,
    open: Option<Open>,
    record: Ledger,
    rounds_done: u64,
    /// The round that was delivered last. It enters the record when the next one begins, since it may yet be
    /// evaluated.
    last: Option<RoundRecord>,
    /// Whether records also hold the devices that were not scheduled.
    log_all: bool,
    /// The numbers that the policy has noted in this round, where they are logged.
    notes: Option<Notes>,
    /// Memory for the noise of a round, if there is any.
    noise: Encoded,
}

/// The parts of a [`Server`] besides those that its configuration states.
pub(crate) struct ServerParts {
    /// The run.
    pub spec: Spec,
    /// The uplink.
    pub radio: Radio,
    /// The policy.
    pub policy: Box<dyn Policy>,
    /// The compressor of the devices.
    pub compressor: Arc<dyn Compressor>,
    /// The rule that combines the updates into one step.
    pub aggregator: Box<dyn Aggregator>,
    /// The rule that turns that step into a step of the model.
    pub optimizer: Box<dyn ServerOptimizer>,
    /// The correction of local steps.
    pub correction: Arc<dyn Correction>,
    /// The local steps of the devices.
    pub steps: StepsOf,
    /// Training samples of each device.
    pub samples: SampleCounts,
    /// The same as numbers that nodes may change; empty if a task knows them.
    pub given_samples: Arc<[AtomicUsize]>,
    /// θ(0).
    pub theta: Vec<f32>,
}

impl Server {
    /// The server made of `parts`.
    pub(crate) fn new(parts: ServerParts) -> Self {
        let ServerParts { spec, radio, policy, compressor, aggregator, optimizer, .. } = parts;
        let ServerParts { correction, steps, samples, given_samples, theta, .. } = parts;
        let devices = radio.devices();
        let (schedule, learn, compress) = (&spec.schedule, &spec.learn, &spec.compress);
        let highest_level = compressor.highest_level(theta.len());
        Self {
            trajectory: OnceLock::new(),
            report_code: ReportCode { bits: schedule.report_bits as u32, floor: spec.radio.report_floor() },
            decoder: Decoder::new(compressor, spec.run.seed),
            states: spec.facts().feedback.state_decay.map(|kappa| DeviceStates::new(kappa, devices)),
            rate: Rate {
                base: learn.server_rate,
                schedule: learn.server_rate_schedule,
                rounds: spec.run.rounds,
            },
            defense: Defense::of(&spec, policy.sampling()),
            exact: compress.budget == BudgetRule::Formula && compress.level == LevelRule::Largest,
            book: DeviceBook::new(devices),
            record: Ledger::new(devices, highest_level.map(|level| level as u64)),
            spec,
            radio,
            policy,
            aggregator,
            optimizer,
            correction,
            control: Vec::new(),
            steps,
            samples,
            given_samples,
            theta,
            facts: Facts::default(),
            open: None,
            rounds_done: 0,
            last: None,
            log_all: false,
            notes: None,
            noise: Encoded::Silent,
        }
    }

    /// With the layers of the model, for schemes that use them; nodes must have the same
    /// ([`Device::new`](crate::system::device::Device::new)).
    #[must_use]
    pub fn with_shapes(mut self, shapes: Vec<Shape>) -> Self {
        self.decoder.shapes = shapes;
        self
    }

    /// Receives the facts of the devices that are known before the first round.
    pub(crate) fn inform(&mut self, facts: Facts) {
        self.facts = facts;
    }

    /// The run.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The uplink.
    pub fn radio(&self) -> &Radio {
        &self.radio
    }

    /// The uplink in round `t` (from 0), as it is configured.
    pub fn links(&self, t: u64) -> Links {
        self.radio.links(t)
    }

    /// θ(t), the current model.
    pub fn theta(&self) -> &[f32] {
        &self.theta
    }

    /// The vector that the server broadcasts with θ(t) for the correction of local steps; empty: zeros.
    pub(crate) fn control(&self) -> &[f32] {
        &self.control
    }

    /// Rounds done so far.
    pub fn rounds_done(&self) -> u64 {
        self.rounds_done
    }

    /// The reports that the policy requests of every candidate.
    pub fn asks(&self) -> &[Ask] {
        self.policy.asks()
    }

    /// The choice from information that no server has, if the policy names one.
    pub(crate) fn genie(&self) -> Option<Genie> {
        self.policy.genie()
    }

    /// The policy's declaration of its choice.
    pub(crate) fn selection(&self) -> Selection {
        self.policy.selection()
    }

    /// c, the factor of the step of round `t`.
    pub(crate) fn rate(&self, t: u64) -> f32 {
        self.rate.at(t) as f32
    }

    /// The links of the round that is open, as the server knows them. A policy that schedules fewer than K
    /// devices leaves each of them more power.
    pub fn known(&self) -> Result<&Known, Error> {
        self.open.as_ref().map(|open| &open.known).ok_or(Error::order("known: no round has begun"))
    }

    /// The fate of the upload of a scheduled device in the round that is open, of which it sends `bits`, over
    /// a channel of which `gain` is the true power gain.
    pub fn carry(&self, one: &Scheduled, bits: Bits, gain: f64) -> Result<Carried, Error> {
        let open = self.open.as_ref().ok_or(Error::order("carry: no round has begun"))?;
        let transfer = Transfer { grant: &one.grant, bits };
        Ok(self.radio.carry_of(&one.band, open.call.t, one.device, &transfer, gain, &open.known))
    }

    /// The training of devices with these losses, weighted as the server weighs updates.
    pub fn training(&self, losses: &[(DeviceId, f64)]) -> Training {
        let by_size = self.aggregator.by_size();
        let samples = |device| by_size.then(|| (self.samples)(device));
        Training::of(losses.iter().map(|&(device, loss)| (loss, samples(device))))
    }

    /// The table of the devices as policies see it.
    pub fn devices(&self) -> &DeviceTable {
        &self.book.devices
    }

    /// Sets whether later records also hold the devices that are not scheduled ([`RoundRecord::others`]). It
    /// changes nothing else.
    pub fn log_all_devices(&mut self, log_all: bool) {
        self.log_all = log_all;
    }

    /// Vectors of the size of θ that the server keeps of the devices, once all have sent.
    pub(crate) fn state_vectors(&self) -> usize {
        self.states.as_ref().map_or(0, |_| self.radio.devices())
    }

    /// The error of a policy that breaks its contract.
    fn broken(&self, t: u64, problem: String) -> Error {
        Error::Policy { name: self.spec.schedule.policy.clone(), round: t + 1, problem }
    }

    /// Whether the last call of the policy succeeded.
    fn check_policy(&self, t: u64) -> Result<(), Error> {
        self.policy.failure().map_or(Ok(()), |problem| Err(self.broken(t, problem)))
    }
}
