//! What a server keeps in a checkpoint.

use super::states::DeviceStates;
use super::{Ledger, Server};
use crate::aggregate::WINDOW;
use crate::base::state::{MAX_COUNT, Persist, State, StateError};
use serde::{Deserialize, Serialize};

/// What a server saves.
#[derive(Serialize, Deserialize)]
struct Saved {
    policy: State,
    aggregator: State,
    optimizer: State,
    ledger: Ledger,
}

impl Server {
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
