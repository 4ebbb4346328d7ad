//! The energy that each device has spent beyond the average power.

use super::View;
use crate::base::state::{State, StateError};
use crate::base::units::DeviceId;
use crate::record::{Quantity, RoundRecord};

/// A virtual queue of each device, Q_m ← max(0, Q_m + P_m·x_m − P̄) in every round, x_m = 1 if it was
/// scheduled.
///
/// Invariant: the average power of a device over T rounds, counted as the paper's constraint counts it, is at
/// most P̄ + Q_m(T)/T.
#[derive(Clone, Debug, Default)]
pub struct PowerQueues {
    /// Q; empty before the first round.
    queues: Vec<f64>,
    /// P̄.
    average: f64,
}

impl PowerQueues {
    /// Records the run that a round belongs to; to be called when it begins.
    pub fn begin(&mut self, view: &View) {
        self.average = view.average_power.0;
        self.queues.resize(view.links.devices(), 0.0);
    }

    /// Q_m over the device's transmit power, 0 if it sends with none.
    pub fn over_power(&self, device: DeviceId, view: &View) -> f64 {
        let power = view.links.power(device).0;
        let queue = self.queues.get(device.index()).copied().unwrap_or(0.0);
        if power > 0.0 { queue / power } else { 0.0 }
    }

    /// Notes Q of every device for logs.
    pub fn note(&self, view: &View) {
        view.note(Quantity::Queue, DeviceId::all(self.queues.len()).zip(self.queues.iter().copied()));
    }

    /// Adds the energy of a round, and subtracts the allowed energy.
    pub fn observe(&mut self, outcome: &RoundRecord) {
        for sent in &outcome.transmissions {
            if let Some(queue) = self.queues.get_mut(sent.device.index()) {
                *queue += sent.power.0;
            }
        }
        self.queues.iter_mut().for_each(|queue| *queue = (*queue - self.average).max(0.0));
    }

    /// The state between rounds.
    pub fn save(&self) -> State {
        State::of(&self.queues)
    }

    /// Restores a [saved](Self::save) state; an invalid one changes nothing.
    pub fn load(&mut self, state: &State) -> Result<(), StateError> {
        let queues: Vec<f64> = state.read()?;
        if queues.iter().any(|queue| !(queue.is_finite() && *queue >= 0.0)) {
            return Err(StateError("its queues are not finite".into()));
        }
        self.queues = queues;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_follows_the_recursion_and_never_falls_below_zero() {
        let mut queues = PowerQueues { queues: vec![0.0; 3], average: 0.25 };
        // Each transmission of these records is of power 1.
        queues.observe(&RoundRecord::of_devices(1, &[DeviceId(0), DeviceId(2)]));
        assert_eq!(queues.queues, [0.75, 0.0, 0.75]);
        queues.observe(&RoundRecord::of_devices(2, &[DeviceId(2)]));
        assert_eq!(queues.queues, [0.5, 0.0, 1.5]);
        let mut other = PowerQueues::default();
        other.load(&queues.save()).unwrap();
        assert_eq!(other.queues, queues.queues);
        assert!(other.load(&State::of(&vec![-1.0f64])).is_err());
        assert_eq!(other.queues, queues.queues);
    }
}
