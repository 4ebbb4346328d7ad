//! Cost tables whose truth is known.

use super::bench::{Arm, Bench, LEVELS, Observed, Trial};
use crate::error::Error;
use crate::goals::Reading;
use fedlink::base::rng::{Purpose, stream};

/// Candidates whose logarithmic costs are normal around a mean, with a part that all share at a seed. A round
/// costs 1, and a run ends with its rounds.
pub struct Table {
    /// The mean logarithm of the rounds that each candidate needs.
    pub means: Vec<f64>,
    /// The standard deviations of the own and of the shared part.
    pub own: f64,
    pub shared: f64,
    /// Another table for each number.
    pub number: u64,
    /// The rounds that were asked for.
    pub rounds: u64,
}

impl Table {
    pub fn new(means: Vec<f64>, number: u64) -> Self {
        Self { means, own: 0.1, shared: 0.3, number, rounds: 0 }
    }

    /// The cost of an arm at a seed, without an end.
    pub fn cost(&self, arm: Arm, seed: u64) -> f64 {
        let shared = stream(self.number, Purpose::Test, seed, u64::MAX).normal();
        let own = stream(self.number, Purpose::Test, seed, arm.candidate as u64).normal();
        (self.means[arm.candidate] + self.own * own + self.shared * shared).exp()
    }
}

impl Bench for Table {
    fn observe(&mut self, trials: &[Trial]) -> Result<Option<Vec<Observed>>, Error> {
        let observe = |trial: &Trial| {
            self.rounds += trial.rounds;
            let (cost, end) = (self.cost(trial.arm, trial.seed), trial.rounds as f64);
            let reading = |share: &f64| {
                let cost = share * share * cost;
                if cost <= end { Reading::Known(cost) } else { Reading::Beyond(end) }
            };
            Observed { goals: vec![LEVELS.iter().map(reading).collect()] }
        };
        Ok(Some(trials.iter().map(observe).collect()))
    }
}
