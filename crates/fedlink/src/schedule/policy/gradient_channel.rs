//! Norm against a queue of spent power.

use crate::base::state::{Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::{Quantity, RoundRecord};
use crate::schedule::queues::PowerQueues;
use crate::schedule::{
    Ask, Bias, Pick, Policy, Reports, Schedule, Selection, Trains, View, largest_indices_by,
};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<GradientChannelConfig>();

/// `[schedule.gradient-channel]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct GradientChannelConfig {
    /// V, what the squared norm over its mean counts against a queue of as many times the transmit power
    #[key(default = 1.0, range = "> 0")]
    pub v: f64,
}

impl PartConfig for GradientChannelConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "gradient-channel";
    const FAMILY: &'static str = "norm";
    const MEANING: &'static str =
        "the K largest ‖Δ‖² less a queue of what each has spent beyond P̄, bits by norm";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(GradientChannel { v: self.v, queues: PowerQueues::default() }))
    }
}

/// The K largest ‖Δ_m‖²/mean − Q_m/(V·P), bits in proportion to ‖Δ_m‖; Q_m ← max(0, Q_m + P·x_m − P̄).
///
/// Source: after Du et al., *Gradient and Channel Aware Dynamic Scheduling for Over-the-Air Computation in
/// Federated Edge Learning Systems* (2022), as we read it, without the air. The norm is that of the update
/// with the device's residual (`compress.feedback`). With `always` the residual of a device that is not
/// scheduled grows from round to round, so that the choice comes near to one by age. Invariants: V → ∞
/// selects as BN2; V → 0 takes turns.
#[derive(Clone, Debug)]
pub struct GradientChannel {
    v: f64,
    queues: PowerQueues,
}

impl Persist for GradientChannel {
    fn save(&self) -> State {
        self.queues.save()
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        self.queues.load(&state)
    }
}

impl Policy for GradientChannel {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.queues.begin(view);
        view.everyone()
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::Norm]
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Everyone).by_channel(true)
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        let norm = |row: usize| f64::from(reports.first(row));
        let squares: Vec<f64> = (0..reports.len()).map(|row| norm(row) * norm(row)).collect();
        let mean = squares.iter().sum::<f64>() / squares.len().max(1) as f64;
        let index = |row: usize| {
            let device = reports.devices[row];
            let price = self.queues.over_power(device, view) / self.v;
            let square = if mean > 0.0 { squares[row] / mean } else { 0.0 };
            (square - price, view.links.gain(device))
        };
        view.note_each(Quantity::Score, &reports.devices, |row| index(row).0);
        self.queues.note(view);
        let rows = largest_indices_by(&reports.devices, view.k, index);
        Schedule { picks: rows.into_iter().map(|row| Pick::new(reports.devices[row], norm(row))).collect() }
    }

    fn observe(&mut self, outcome: &RoundRecord) {
        self.queues.observe(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::super::best_norm::BestNorm;
    use super::super::tests::{Bench, devices};
    use super::*;

    fn policy(v: f64) -> GradientChannel {
        GradientChannel { v, queues: PowerQueues::default() }
    }

    #[test]
    fn a_large_v_is_bn2_and_a_small_one_takes_turns() {
        let norms = [3.0f32, 1.0, 2.0, 5.0, 4.0, 0.5];
        let bench = Bench::new(6, 2);
        let mut large = policy(1e12);
        for round in 1..20 {
            let schedule = bench.schedule(&mut large, &norms);
            assert_eq!(devices(&schedule), devices(&bench.schedule(&mut BestNorm {}, &norms)));
            large.observe(&RoundRecord::of_devices(round, &schedule.devices().collect::<Vec<_>>()));
        }
        let mut small = policy(1e-9);
        let mut counts = [0u32; 6];
        for round in 1..=60 {
            let schedule = bench.schedule(&mut small, &norms);
            // Three units per transmission against one per round: the average of a device that sends K/M of
            // the time.
            let mut record = RoundRecord::of_devices(round, &schedule.devices().collect::<Vec<_>>());
            record.transmissions.iter_mut().for_each(|sent| sent.power.0 = 3.0);
            small.observe(&record);
            devices(&schedule).iter().for_each(|&m| counts[m] += 1);
        }
        assert!(counts.iter().all(|&n| (18..=22).contains(&n)), "{counts:?}");
    }
}
