//! The state of the devices in a checkpoint.

use super::{Fleet, lock};
use crate::base::state::{MAX_COUNT, Persist, State, StateError};
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

    /// The state of the adversarial devices and that of the correction, if it keeps any.
    pub(crate) fn saved(&self) -> State {
        let adversary = self.adversary.as_ref().map(Persist::save).unwrap_or_default();
        if self.corrections.keeps_state() {
            return State::of(&(adversary, self.corrections.save()));
        }
        adversary
    }

    /// Restores the state that [`Fleet::saved`] returned; a failure changes nothing.
    pub(crate) fn load(&mut self, state: State) -> Result<(), StateError> {
        let (adversary, corrections) =
            if self.corrections.keeps_state() { state.read()? } else { (state, State::default()) };
        let before = self.corrections.save();
        let named = |error: StateError| StateError(format!("learn.correction: {error}"));
        self.corrections.load(corrections).map_err(named)?;
        let result = self.adversary.as_mut().map_or(Ok(()), |one| one.load(adversary));
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
