//! The state of the devices in a checkpoint.

use super::{Fleet, lock};
use crate::base::state::{MAX_COUNT, Persist, State, StateError};
use crate::learn::task::TaskError;
use crate::system::device::PersistentState;
use std::sync::Mutex;

impl Fleet {
    pub(crate) fn states(&self) -> &[Mutex<PersistentState>] {
        &self.states
    }

    /// Whether these states could be those of this fleet, with models of `dim` entries.
    pub(crate) fn fits(&self, states: &[Mutex<PersistentState>], dim: usize) -> bool {
        let (vectors, kept) = (self.task.state_vectors(), self.feedback.vectors());
        let fits = |state: &Mutex<PersistentState>| {
            let PersistentState { task, residual, .. } = &*lock(state);
            let whole = |vector: &Vec<f32>| vector.len() == dim;
            task.steps <= MAX_COUNT
                && (task.vectors.is_empty() || vectors == Some(task.vectors.len()))
                && task.vectors.iter().all(whole)
                && (residual.vectors.is_empty() || (kept > 0 && residual.vectors.len() == kept * dim))
        };
        states.len() == self.states.len() && states.iter().all(fits)
    }

    /// The state of the adversarial devices, that of the correction and that of the task, as far as they keep
    /// any.
    pub(crate) fn saved(&self) -> Result<State, StateError> {
        let mut saved = self.adversary.as_ref().map(Persist::save).unwrap_or_default();
        if self.corrections.keeps_state() {
            saved = State::of(&(saved, self.corrections.save()));
        }
        if self.task.keeps_states_itself() {
            saved = State::of(&(saved, self.task.save().map_err(|error| of_task(&error))?));
        }
        Ok(saved)
    }

    /// Restores the state that [`Fleet::saved`] returned; a failure changes nothing.
    pub(crate) fn load(&mut self, state: State) -> Result<(), StateError> {
        let (state, of_devices) = if self.task.keeps_states_itself() {
            let (state, states): (State, Vec<u8>) = state.read()?;
            (state, Some(states))
        } else {
            (state, None)
        };
        let (adversary, corrections) =
            if self.corrections.keeps_state() { state.read()? } else { (state, State::default()) };
        let before = self.corrections.save();
        let named = |error: StateError| StateError(format!("learn.correction: {error}"));
        self.corrections.load(corrections).map_err(named)?;
        let result =
            of_devices.map_or(Ok(()), |states| self.task.load(&states).map_err(|error| of_task(&error)));
        let result = result.and_then(|()| self.adversary.as_mut().map_or(Ok(()), |one| one.load(adversary)));
        if result.is_err() {
            let _ = self.corrections.load(before);
        }
        result
    }

    /// Restores states that [fit](Fleet::fits).
    pub(crate) fn restore(&mut self, states: Vec<Mutex<PersistentState>>) {
        self.states = states;
    }
}

fn of_task(error: &TaskError) -> StateError {
    StateError(format!("task: {error}"))
}
