//! The server in a checkpoint.

use super::Server;
use super::book::DeviceBook;
use super::states::DeviceStates;
use crate::aggregate::WINDOW;
use crate::base::state::{MAX_COUNT, Persist, State, StateError};
use crate::record::Ledger;
use crate::spec::identity::trajectory_digest;
use crate::system::checkpoint::{self, CheckpointError};
use serde::{Deserialize, Serialize};
use std::io::{Read, Seek, Write};

/// The state of the server's parts.
#[derive(Serialize, Deserialize)]
struct Saved {
    policy: State,
    aggregator: State,
    optimizer: State,
    book: DeviceBook,
}

impl Server {
    /// Writes everything that later rounds depend on: the model, the records, the state of every part of the
    /// server. A round that is open is not part of it.
    pub fn checkpoint(&self, to: impl Write) -> Result<(), CheckpointError> {
        let record = self.counted();
        let state = checkpoint::Saved {
            next_round: self.rounds_done,
            theta: &self.theta,
            ledger: &record,
            states: &[],
            server: self.saved()?,
            adversary: State::default(),
            extension: self.extension(&record),
        };
        checkpoint::write(self.owner(), &state, to)
    }

    /// Resumes from a [checkpoint](Server::checkpoint) of a server with the same configuration. If it is
    /// damaged or of another run, nothing changes.
    pub fn restore(&mut self, from: impl Read + Seek) -> Result<(), CheckpointError> {
        let mut state = checkpoint::read(self.owner(), from)?;
        self.fits(&mut state)?;
        self.load(&mut state)?;
        self.resume(state);
        Ok(())
    }

    /// The run that the checkpoints of the server belong to.
    pub(crate) fn owner(&self) -> checkpoint::Owner<'_> {
        (&self.spec, self.trajectory.get_or_init(|| trajectory_digest(&self.spec)))
    }

    /// The record of the closed rounds.
    pub(crate) fn record(&self) -> &Ledger {
        &self.record
    }

    /// The state of the parts; an error if the policy cannot be saved.
    pub(crate) fn saved(&self) -> Result<State, CheckpointError> {
        let state = self.parts_state();
        match self.policy.failure() {
            Some(problem) => Err(CheckpointError::State(StateError(problem))),
            None => Ok(state),
        }
    }

    /// The state of a radio with units or state, with the costs of the rounds in `record`; nothing for
    /// another radio.
    pub(crate) fn extension(&self, record: &Ledger) -> State {
        let radio = self.radio.save();
        if radio.is_empty() && record.costs().is_empty() {
            return State::default();
        }
        if record.batteries().now().is_some() {
            return State::of(&(radio, record.costs(), record.batteries()));
        }
        State::of(&(radio, record.costs()))
    }

    /// Whether a checkpoint can be of this run.
    pub(crate) fn fits(&self, state: &mut checkpoint::Restored) -> Result<(), CheckpointError> {
        let (devices, done) = (self.radio.devices(), state.next_round);
        if state.theta.len() != self.theta.len() || state.ledger.devices() != devices {
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

    /// Restores the parts and the radio; a failure changes nothing.
    pub(crate) fn load(&mut self, state: &mut checkpoint::Restored) -> Result<(), CheckpointError> {
        let parts = std::mem::take(&mut state.server);
        self.load_states(&parts, state.radio()?).map_err(CheckpointError::State)
    }

    /// The states of the parts and of the radio, for [`Server::load_states`].
    pub(crate) fn states_now(&self) -> (State, State) {
        (self.parts_state(), self.radio.save())
    }

    /// Restores the states of the parts and of the radio; a failure changes nothing.
    pub(crate) fn load_states(&mut self, parts: &State, radio: State) -> Result<(), StateError> {
        let before = self.radio.save();
        self.radio.load(radio)?;
        self.load_parts(parts).inspect_err(|_| {
            // A state that was saved a moment ago loads again.
            let _ = self.radio.load(before);
        })
    }

    /// Restores the model and the record of a checkpoint that [fits](Server::fits) and whose parts are
    /// [loaded](Server::load).
    pub(crate) fn resume(&mut self, state: checkpoint::Restored) {
        (self.theta, self.rounds_done) = (state.theta, state.next_round);
        (self.record, self.last) = (state.ledger, None);
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

    /// The state of all parts but the radio.
    pub(crate) fn parts_state(&self) -> State {
        let saved = Saved {
            policy: self.policy.save(),
            aggregator: self.aggregator.save(),
            optimizer: self.saved_optimizer(),
            book: self.book.clone(),
        };
        match &self.states {
            None => State::of(&saved),
            Some(states) => State::of(&(saved, states)),
        }
    }

    /// Restores a [state of the parts](Server::parts_state); a failure changes nothing.
    pub(crate) fn load_parts(&mut self, state: &State) -> Result<(), StateError> {
        let devices = self.radio.devices();
        let (saved, states): (Saved, _) = match &self.states {
            None => (state.read()?, None),
            Some(states) => {
                let (saved, read): (Saved, DeviceStates) = state.read()?;
                (saved, Some(states.accept(read, self.theta.len())?))
            }
        };
        let DeviceBook { devices: table, strikes, norms, zero_weights, underpriced } = &saved.book;
        if !table.is_of(devices) || ![0, devices].contains(&strikes.len()) || norms.len() > WINDOW {
            return Err(StateError("the server's tables are not of this run's size".into()));
        }
        if (*zero_weights).max(underpriced.0) > MAX_COUNT {
            return Err(StateError("the server's counts are beyond those of any run".into()));
        }
        let before = [self.policy.save(), self.aggregator.save(), self.saved_optimizer()];
        let named = |part: &str, error: StateError| StateError(format!("{part}: {error}"));
        let policy = format!("policy {}", self.spec.schedule.policy);
        let result = self
            .policy
            .load(saved.policy)
            .map_err(|error| named(&policy, error))
            .and_then(|()| {
                self.aggregator.load(saved.aggregator).map_err(|error| named("learn.aggregate", error))
            })
            .and_then(|()| {
                self.load_optimizer(saved.optimizer).map_err(|error| named("learn.server_optimizer", error))
            });
        if result.is_err() {
            // A failure changes nothing: each part has its earlier state again.
            let [policy, aggregator, optimizer] = before;
            let _ =
                (self.policy.load(policy), self.aggregator.load(aggregator), self.load_optimizer(optimizer));
            return result;
        }
        (self.book, self.states) = (saved.book, states);
        self.open = None;
        Ok(())
    }
}
