//! The server of a run with the record of its rounds: what a [simulation](crate::system::simulation) and
//! rounds on other people's nodes have in common.

use crate::base::memory;
use crate::base::state::{MAX_COUNT, Persist, State, StateError};
use crate::base::units::{Bits, DeviceId, Shape};
use crate::compress::wire::bit_length;
use crate::compress::{Encoded, Spent, plain};
use crate::error::Error;
use crate::learn::fairness::jain;
use crate::learn::task::Evaluation;
use crate::radio::{Known, Links};
use crate::record::{Arrival, Cost, Energy, Ledger, Outcome, RoundRecord, Row, Training};
use crate::schedule::{Ask, DeviceTable, Reports};
use crate::spec::identity::trajectory_digest;
use crate::spec::{ConfigError, Spec};
use crate::system::build::{check_nodes, server_of, server_vectors};
use crate::system::checkpoint::{self, CheckpointError};
use crate::system::server::{Body, Call, Scheduled, Server, Upload};
use std::borrow::Cow;
use std::io::{Read, Seek, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A server that keeps the record of its rounds.
///
/// A round is [`begin`](Session::begin) → [`report`](Session::report) → [`deliver`](Session::deliver), then,
/// if the model is evaluated, [`evaluated`](Session::evaluated). Fed with what the devices of a simulation
/// compute, it has the simulation's digest.
///
/// ```
/// use fedlink::prelude::*;
/// use fedlink::record::Training;
/// use fedlink::schedule::policy::BestNorm;
/// use fedlink::system::{device::Device, session::Message};
/// # fn main() -> Result<(), fedlink::Error> {
/// let spec = Spec::builder().devices(3).policy(BestNorm {}).build()?;
/// let mut session = Session::of(&spec, vec![0.0; 1000], None)?;
/// let mut devices = vec![Device::new(&spec, Vec::new())?; 3];
///
/// let links = session.links(0);
/// let call = session.begin(0, links.known, |_| true)?;
/// let update = vec![1.0; 1000]; // every device has learned this
/// let mut answers = Vec::new();
/// for (index, device) in call.candidates.iter().enumerate() {
///     let report = devices[device.index()].report(&call.request(index), update.clone(), 0.7)?;
///     answers.extend(report.answers);
/// }
/// let granted = session.report(Reports::new(call.candidates, call.asks.len(), answers))?;
/// let sent = devices[granted[0].device.index()].send(granted[0].grant.budget)?;
/// session.deliver_messages(&[Message::of(granted[0].device, &sent)], Training::new(3, 0.7))?;
/// assert!(session.theta().contains(&1.0));
/// # Ok(())
/// # }
/// ```
pub struct Session {
    spec: Spec,
    /// The digest of the run's trajectory, when it was first asked for: it takes longer than a small
    /// checkpoint.
    trajectory: OnceLock<[u8; 32]>,
    server: Server,
    ledger: Ledger,
    rounds_done: u64,
    /// The round that was delivered last; it enters the ledger when the next one begins, since it
    /// may yet be evaluated.
    last: Option<RoundRecord>,
    /// The training samples of each device of a run on nodes; empty if a task knows them.
    samples: Arc<[AtomicUsize]>,
}

/// What arrived of a node.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Who sent it.
    pub device: DeviceId,
    /// The bytes; none if its budget held nothing.
    pub payload: Option<&'a [u8]>,
    /// What the node spent of its budget, by its own account.
    pub spent: Spent,
    /// Entries of Δ̂, by its own account.
    pub entries: usize,
}

impl<'a> Message<'a> {
    /// What a node sent, as it arrives.
    pub fn of(device: DeviceId, sent: &'a crate::system::device::Message) -> Self {
        let payload = sent.payload.as_deref();
        Self { device, payload, spent: sent.spent, entries: sent.own.entries() }
    }

    /// The upload that the server takes, of a node that was granted `budget`; `decoded` is what is in its
    /// bytes if the scheme has no codec.
    fn upload(&self, budget: Bits, dim: usize, has_codec: bool, decoded: Option<&'a Encoded>) -> Upload<'a> {
        let Spent { bits, level } = self.spent;
        let within = bits.0 >= 0.0 && bits.0 <= budget.0;
        let body = match (self.payload, decoded) {
            (None, _) if level == 0 => Body::Silent,
            (Some(payload), _) if within && level > 0 && has_codec => Body::Payload(payload),
            (Some(_), Some(update)) if within && level > 0 => Body::Update(update),
            _ => Body::Unreadable,
        };
        let spent = match body {
            Body::Silent => Spent::default(),
            _ if within => self.spent,
            _ => Spent { bits: Bits(0.0), level },
        };
        let wire_bits = self.payload.map(bit_length);
        Upload { device: self.device, spent, entries: self.entries.min(dim), wire_bits, airtime: None, body }
    }
}

impl Session {
    /// The session of a run on other people's nodes: `theta` is θ(0), `samples` are the training samples of
    /// each device (none: one each).
    pub fn of(spec: &Spec, theta: Vec<f32>, samples: Option<Vec<usize>>) -> Result<Self, Error> {
        memory::check(spec.data.devices, theta.len(), server_vectors(spec).saturating_add(2))?;
        let devices = spec.data.devices as usize;
        let samples = samples.unwrap_or_else(|| vec![1; devices]);
        if samples.len() != devices {
            let problem = format!("are those of {} devices, but data.devices is {devices}", samples.len());
            return Err(ConfigError::new("samples", problem).into());
        }
        if let Some(device) = samples.iter().position(|&count| count == 0) {
            let problem = format!("device {device} has none, but must have at least one");
            return Err(ConfigError::new("samples", problem).into());
        }
        let samples: Arc<[AtomicUsize]> = samples.into_iter().map(AtomicUsize::new).collect();
        let shared = Arc::clone(&samples);
        let count = move |device: DeviceId| {
            shared.get(device.index()).map_or(1, |count| count.load(Ordering::Relaxed))
        };
        check_nodes(spec)?;
        let server = server_of(spec, theta, Arc::new(count))?;
        Ok(Self { samples, ..Self::new(spec.clone(), server) })
    }

    /// With the layers of the model, for schemes that use them; nodes must know the same
    /// ([`Device::new`](crate::system::device::Device::new)).
    #[must_use]
    pub fn with_shapes(mut self, shapes: Vec<Shape>) -> Self {
        self.server.set_shapes(shapes);
        self
    }

    pub(crate) fn new(spec: Spec, server: Server) -> Self {
        let highest_level = server.compressor().highest_level(server.theta().len());
        let ledger = Ledger::new(server.radio.devices(), highest_level.map(|level| level as u64));
        let (trajectory, samples) = (OnceLock::new(), Arc::default());
        Self { spec, trajectory, server, ledger, rounds_done: 0, last: None, samples }
    }

    /// The run.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Whose checkpoints are its own.
    pub(crate) fn owner(&self) -> checkpoint::Owner<'_> {
        (&self.spec, self.trajectory.get_or_init(|| trajectory_digest(&self.spec)))
    }

    /// The server that the session drives: model, policy, aggregation, records.
    pub fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn server_mut(&mut self) -> &mut Server {
        &mut self.server
    }

    /// Whether the records of the rounds to come hold the devices that are not scheduled too
    /// ([`RoundRecord::others`]). It changes nothing else.
    pub fn log_all_devices(&mut self, log_all: bool) {
        self.server.set_log_all(log_all);
    }

    /// θ(t), the model now.
    pub fn theta(&self) -> &[f32] {
        self.server.theta()
    }

    /// Rounds done so far.
    pub fn rounds_done(&self) -> u64 {
        self.rounds_done
    }

    /// The uplink in round `t` (from 0), as it is configured.
    pub fn links(&self, t: u64) -> Links {
        self.server.radio.links(t)
    }

    /// Opens round `t`, see [`Server::begin`]. Rounds follow one another.
    pub fn begin(&mut self, t: u64, known: Known, present: impl Fn(DeviceId) -> bool) -> Result<Call, Error> {
        if t != self.rounds_done {
            return Err(Error::Session(
                "begin: rounds follow one another; t must be the number of rounds done",
            ));
        }
        if known.devices() != self.server.radio.devices() {
            return Err(Error::Session("begin: there must be one link for each device"));
        }
        self.close();
        self.server.begin(t, known, present)
    }

    /// Takes the candidates' reports, in any order; see [`Server::report`].
    pub fn report(&mut self, reports: Reports) -> Result<Vec<Scheduled>, Error> {
        let Some((candidates, _)) = self.server.open_round() else {
            return Err(Error::Session("report: no round has begun"));
        };
        let reports = if reports.devices == candidates { reports } else { in_order(&reports, candidates)? };
        self.server.report(reports)
    }

    /// Replaces what is known of the links before the reports are taken; see [`Server::relink`].
    pub fn relink(&mut self, known: Known) -> Result<(), Error> {
        self.server.relink(known)
    }

    /// Offers the share of a scheduled device that failed before it sent to another; see
    /// [`Server::substitute`].
    pub fn substitute(&mut self, failed: DeviceId) -> Result<Option<Scheduled>, Error> {
        self.server.substitute(failed)
    }

    /// Resets h_m of a device that has lost its own (`compress.feedback = "ef21"`); see [`Server::forget`].
    pub fn forget(&mut self, device: DeviceId) -> Result<(), Error> {
        self.server.forget(device)
    }

    /// Sets the training samples of a device, at least 1, which nodes may report as late as with their norm.
    /// They are no part of a checkpoint.
    pub fn set_samples(&self, device: DeviceId, samples: usize) {
        if let Some(count) = self.samples.get(device.index()) {
            count.store(samples.max(1), Ordering::Relaxed);
        }
    }

    /// The training of devices with these losses, weighted as the server weighs updates.
    pub fn training(&self, losses: &[(DeviceId, f64)]) -> Training {
        self.server.training(losses)
    }

    /// Takes what arrived, one upload of each scheduled device in their order; see [`Server::deliver`].
    /// `cost` is what the round took in seconds and joules, where that is known.
    pub fn deliver(
        &mut self,
        uploads: &[Upload],
        training: Training,
        cost: Option<Cost>,
    ) -> Result<&RoundRecord, Error> {
        let record = self.server.deliver(uploads, training, cost)?;
        self.rounds_done = record.round;
        Ok(self.last.insert(record))
    }

    /// Takes what arrived of nodes, in any order. A scheduled device of which there is nothing is lost. Bytes
    /// are decoded by the configured scheme; a node that claims more bits than it was granted counts as one
    /// whose bytes cannot be decoded.
    pub fn deliver_messages(
        &mut self,
        messages: &[Message],
        training: Training,
    ) -> Result<Vec<Arrival>, Error> {
        let Some((_, Some((schedule, grants)))) = self.server.open_round() else {
            return Err(Error::Session("deliver: nobody has reported yet"));
        };
        if messages.iter().any(|message| !schedule.devices().any(|device| device == message.device)) {
            return Err(Error::Session("deliver: there is an upload of a device that was not scheduled"));
        }
        let granted: Vec<(DeviceId, Bits)> =
            schedule.devices().zip(grants).map(|(device, grant)| (device, grant.budget)).collect();
        let (dim, has_codec) = (self.theta().len(), self.server.compressor().codec().is_some());
        let of = |device: DeviceId| messages.iter().find(|message| message.device == device);
        // What has no codec is decoded here.
        let decoded: Vec<Option<Encoded>> = granted
            .iter()
            .map(|(device, _)| {
                of(*device)?.payload.filter(|_| !has_codec).and_then(|bytes| plain::read(bytes, dim))
            })
            .collect();
        let mut uploads = Vec::with_capacity(granted.len());
        for ((device, budget), decoded) in granted.iter().zip(&decoded) {
            let upload = of(*device).map(|message| message.upload(*budget, dim, has_codec, decoded.as_ref()));
            uploads.push(upload.unwrap_or_else(|| Upload::lost(*device)));
        }
        let record = self.deliver(&uploads, training, None)?;
        Ok(record.transmissions.iter().map(|sent| sent.arrival).collect())
    }

    /// Attaches an evaluation to the round that was delivered last. With `run.fairness` how evenly devices
    /// were scheduled so far is among its metrics, and with `privacy.noise` the ε so far, if there is one.
    pub fn evaluated(&mut self, mut evaluation: Evaluation) -> Result<(), Error> {
        let last = self.last.as_mut().ok_or(Error::Session(
            "evaluated: no round was delivered since the last one began; evaluate after deliver, before \
             begin",
        ))?;
        if self.spec.run.fairness {
            evaluation.metrics.extend(participation(self.server.devices(), self.rounds_done));
        }
        let guarantee = self.server.guarantee(self.rounds_done);
        if let Some(epsilon) = guarantee.and_then(|guarantee| guarantee.epsilon) {
            evaluation.metrics.push(("epsilon".into(), epsilon));
        }
        last.evaluation = Some(evaluation);
        Ok(())
    }

    /// The round that was delivered last, if it is not closed yet.
    pub fn last(&self) -> Option<&RoundRecord> {
        self.last.as_ref()
    }

    /// Closes the round that was delivered last: nothing more is attached to it.
    pub fn close(&mut self) -> Option<RoundRecord> {
        let record = self.last.take()?;
        self.ledger.add(&record);
        Some(record)
    }

    /// The ledger with the round that was delivered last.
    fn counted(&self) -> Cow<'_, Ledger> {
        match &self.last {
            None => Cow::Borrowed(&self.ledger),
            Some(record) => {
                let mut ledger = self.ledger.clone();
                ledger.add(record);
                Cow::Owned(ledger)
            }
        }
    }

    /// The run so far in numbers.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = self.counted().outcome(self.theta(), self.spec.run.target);
        outcome.excluded = self.server.excluded();
        outcome.warnings = self.spec.cautions();
        outcome.warnings.extend(self.server.warnings());
        outcome.warnings.extend(self.unheard(&outcome));
        outcome.warnings.extend(outcome.battery_warning());
        outcome.privacy = self.server.guarantee(self.rounds_done);
        outcome
    }

    /// That most devices were never scheduled, though there were two turns for each of them.
    fn unheard(&self, outcome: &Outcome) -> Option<String> {
        let (schedule, facts) = (&self.spec.schedule, self.spec.facts());
        let (heard, devices) = (outcome.heard() as u64, self.spec.data.devices);
        let turns = outcome.rounds.saturating_mul(schedule.k);
        if 2 * heard >= devices || turns < 2 * devices || facts.policy.selection.always_the_same {
            return None;
        }
        let by_norm = self.server.asks().iter().any(|ask| matches!(ask, Ask::Norm | Ask::CompressedNorm));
        // The states of EF21 come nearer to the updates of who was scheduled, and lower what it reports.
        let keeps_rest = facts.feedback.keeps_rest;
        let why = if by_norm && keeps_rest {
            "; compress.feedback adds what was not sent to the norm that a device reports, so that those \
             that were scheduled are scheduled again; set it to \"off\" or choose a policy that does not \
             look at norms"
        } else {
            ""
        };
        Some(format!(
            "heard {heard}/{devices}: most devices were never scheduled in {} rounds{why}",
            outcome.rounds
        ))
    }

    /// The record of the last round as a row by itself.
    pub fn round_row(&self, record: &RoundRecord) -> Row {
        self.counted().round_row(record)
    }

    /// The evaluated rounds that are closed.
    pub fn rows(&self) -> &[Row] {
        self.ledger.rows()
    }

    /// Writes all that the rounds to come depend on: the model, the records, the state of every part of the
    /// server. A round that is open is not part of it.
    pub fn checkpoint(&self, to: impl Write) -> Result<(), CheckpointError> {
        let ledger = self.counted();
        let state = checkpoint::Saved {
            next_round: self.rounds_done,
            theta: self.theta(),
            ledger: &ledger,
            states: &[],
            server: self.saved()?,
            adversary: State::default(),
            extension: self.extension(&ledger),
        };
        checkpoint::write(self.owner(), &state, to)
    }

    /// Resumes from a [checkpoint](Session::checkpoint) of a session with the same configuration. If it is
    /// damaged or another run's, nothing is changed.
    pub fn restore(&mut self, from: impl Read + Seek) -> Result<(), CheckpointError> {
        let mut state = checkpoint::read(self.owner(), from)?;
        self.fits(&mut state)?;
        self.load_server(&mut state)?;
        self.resume(state);
        Ok(())
    }

    /// Restores the server and its radio; a failure changes nothing.
    pub(crate) fn load_server(&mut self, state: &mut checkpoint::Restored) -> Result<(), CheckpointError> {
        let radio = state.radio()?;
        let before = self.server.radio.save();
        self.server.radio.load(radio).map_err(CheckpointError::State)?;
        self.server.load(std::mem::take(&mut state.server)).map_err(|error| {
            // What was saved a moment ago loads again.
            let _ = self.server.radio.load(before);
            CheckpointError::State(error)
        })
    }

    /// What a checkpoint holds of a radio with units or state; nothing for one without.
    pub(crate) fn extension(&self, ledger: &Ledger) -> State {
        let radio = self.server.radio.save();
        if radio.is_empty() && ledger.costs().is_empty() {
            return State::default();
        }
        if ledger.batteries().now().is_some() {
            return State::of(&(radio, ledger.costs(), ledger.batteries()));
        }
        State::of(&(radio, ledger.costs()))
    }

    /// Joules that device number `m` has spent so far.
    pub(crate) fn spent_j(&self, m: usize) -> f64 {
        let before = self.ledger.costs().devices().get(m).map_or(0.0, Energy::total);
        // The round that was delivered last is not in the ledger yet.
        let last = self.last.as_ref().and_then(|record| record.cost.as_ref());
        let of_device = |cost: &Cost| cost.devices.iter().find(|(device, _)| device.index() == m).copied();
        before + last.and_then(of_device).map_or(0.0, |(_, spent)| spent.total())
    }

    /// The state of the server; an error if its policy cannot be saved.
    pub(crate) fn saved(&self) -> Result<State, CheckpointError> {
        let state = self.server.save();
        match self.server.failure() {
            Some(problem) => Err(CheckpointError::State(StateError(problem))),
            None => Ok(state),
        }
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether a checkpoint can be of this run.
    pub(crate) fn fits(&self, state: &mut checkpoint::Restored) -> Result<(), CheckpointError> {
        let (devices, done) = (self.server.radio.devices(), state.next_round);
        if state.theta.len() != self.theta().len() || state.ledger.devices() != devices {
            return Err(CheckpointError::Damaged("its sizes are not those of this run".into()));
        }
        if done > MAX_COUNT || !state.ledger.is_consistent(done) {
            return Err(CheckpointError::Damaged("its counts contradict each other".into()));
        }
        let (costs, batteries) = state.costs()?;
        if !state.ledger.restore_costs(costs, batteries) {
            return Err(CheckpointError::Damaged("its costs are not those of its rounds".into()));
        }
        Ok(())
    }

    /// Restores a checkpoint that [fits](Session::fits) and whose server state is loaded.
    pub(crate) fn resume(&mut self, state: checkpoint::Restored) {
        self.server.set_theta(state.theta);
        (self.rounds_done, self.ledger, self.last) = (state.next_round, state.ledger, None);
    }
}

/// How evenly devices were scheduled in the first `rounds` rounds: Jain's index, and the ages now.
fn participation(devices: &DeviceTable, rounds: u64) -> [(String, f64); 3] {
    let ages = || DeviceId::all(devices.len()).map(|device| devices.age(device, rounds));
    [
        ("jain".into(), jain(devices.all_scheduled().iter().copied().map(f64::from)).unwrap_or(1.0)),
        ("max_age".into(), ages().max().unwrap_or(0) as f64),
        ("mean_age".into(), ages().sum::<u64>() as f64 / devices.len().max(1) as f64),
    ]
}

/// The reports in the order of the candidates.
fn in_order(reports: &Reports, candidates: &[DeviceId]) -> Result<Reports, Error> {
    let mut places: Vec<(DeviceId, usize)> =
        candidates.iter().enumerate().map(|(index, device)| (*device, index)).collect();
    places.sort_unstable();
    let mut rows: Vec<(usize, usize)> = Vec::with_capacity(reports.len());
    for (row, device) in reports.devices.iter().enumerate() {
        let place = places.binary_search_by_key(device, |place| place.0);
        let place = place.map_err(|_| Error::Session("report: a device that was no candidate reports"))?;
        rows.push((places[place].1, row));
    }
    rows.sort_unstable();
    if rows.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Error::Session("report: a device reports twice"));
    }
    let asks = if reports.is_empty() { 0 } else { reports.row(0).len() };
    let values = rows.iter().flat_map(|&(_, row)| reports.row(row).iter().copied()).collect();
    Ok(Reports::new(rows.iter().map(|&(_, row)| reports.devices[row]).collect(), asks, values))
}
