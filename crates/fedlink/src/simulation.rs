//! Rounds in sequence.

use crate::adversary::Adversary;
use crate::checkpoint::{self, CheckpointError};
use crate::compress::Compressor;
use crate::config::Config;
use crate::data::Dataset;
use crate::defence::Guard;
use crate::error::Error;
use crate::learn::task::Work;
use crate::record::{Evaluation, Ledger, Outcome, RoundRecord, Row};
use crate::round::{System, round};
use crate::schedule::Policy;
use crate::schedule::policy::policy;
use std::io::{Read, Seek, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A run in progress.
///
/// Work is spread over the threads of the current `rayon` pool; the result is the same for any number of them.
pub struct Simulation {
    config: Config,
    system: System,
    policy: Box<dyn Policy>,
    guard: Guard,
    theta: Vec<f32>,
    next_round: u64,
    ledger: Ledger,
}

/// Parts of one's own in place of those that the configuration names.
#[derive(Default)]
pub struct OwnParts {
    /// Instead of `schedule.policy`.
    pub policy: Option<Box<dyn Policy>>,
    /// Instead of `compress.scheme`.
    pub compressor: Option<Box<dyn Compressor>>,
}

/// What a round takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// d, the number of parameters.
    pub dim: usize,
    /// Devices that train in a round.
    pub trained: usize,
    /// Memory for what devices remember and for the updates that are kept until selection; the data set and a few
    /// vectors of d for every thread come on top.
    pub bytes: u64,
}

/// Is told of every round.
pub trait Observer {
    /// Called after each round; `Break` ends the run after it.
    fn after_round(&mut self, record: &RoundRecord) -> ControlFlow<()>;
}

/// Nobody watches.
impl Observer for () {
    fn after_round(&mut self, _: &RoundRecord) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&RoundRecord) -> ControlFlow<()>> Observer for F {
    fn after_round(&mut self, record: &RoundRecord) -> ControlFlow<()> {
        self(record)
    }
}

impl Simulation {
    /// Sets a run up: split, initial model, policy.
    pub fn new(config: &Config, dataset: Arc<Dataset>) -> Result<Self, Error> {
        Self::with_parts(config, dataset, OwnParts::default())
    }

    /// As [`Simulation::new`], with a policy of your own instead of `schedule.policy`.
    pub fn with_policy(
        config: &Config,
        dataset: Arc<Dataset>,
        policy: Box<dyn Policy>,
    ) -> Result<Self, Error> {
        Self::with_parts(config, dataset, OwnParts { policy: Some(policy), ..OwnParts::default() })
    }

    /// As [`Simulation::new`], with parts of your own, and possibly a [task](crate::learn::task::Task) of your own
    /// instead of a data set.
    pub fn with_parts(config: &Config, work: impl Into<Work>, parts: OwnParts) -> Result<Self, Error> {
        let OwnParts { policy: own, compressor } = parts;
        let policy = own.unwrap_or_else(|| policy(config.schedule.policy, config.kc() as usize));
        let system = System::with_compressor(config, work, compressor)?;
        let (theta, ledger) = (system.theta0(), Ledger::new(system.devices));
        let guard = Guard::new(config);
        Ok(Self { config: config.clone(), system, policy, guard, theta, next_round: 0, ledger })
    }

    /// Runs the next round; evaluates if it is one of those to be looked at.
    pub fn step(&mut self) -> Result<RoundRecord, Error> {
        let Self { system, policy, guard, theta, .. } = self;
        let mut record = round(system, &mut **policy, guard, theta, self.next_round)?;
        self.next_round += 1;
        let due = self.next_round.is_multiple_of(self.config.run.evaluate_every);
        if due || self.next_round == self.config.run.rounds {
            record.evaluation = Some(self.evaluate());
        }
        self.ledger.add(&record);
        Ok(record)
    }

    /// Runs until `run.rounds` or until the observer breaks off.
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<Outcome, Error> {
        while self.next_round < self.config.run.rounds {
            let record = self.step()?;
            if observer.after_round(&record).is_break() {
                break;
            }
        }
        Ok(self.outcome())
    }

    /// The run so far in numbers.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = self.ledger.outcome(&self.theta, self.system.power());
        outcome.excluded = self.guard.excluded();
        outcome
    }

    /// Writes all that the rounds to come depend on. A run that [takes it up](Simulation::restore) ends with the
    /// same bits as one that was never interrupted.
    pub fn checkpoint(&self, to: impl Write) -> Result<(), CheckpointError> {
        let state = checkpoint::State {
            next_round: self.next_round,
            theta: &self.theta,
            ledger: &self.ledger,
            policy: self.policy.state(),
            memories: self.system.fleet.memories(),
            guard: self.guard.memory(),
            adversary: self.system.fleet.adversary.as_ref().map_or_else(Vec::new, Adversary::state),
        };
        checkpoint::write(&self.config, &state, to)
    }

    /// Goes on from a [checkpoint](Simulation::checkpoint) of a run with the same configuration. If it is damaged
    /// or another run's, nothing is changed.
    pub fn restore(&mut self, from: impl Read + Seek) -> Result<(), CheckpointError> {
        let state = checkpoint::read(&self.config, from)?;
        let fits = state.theta.len() == self.theta.len()
            && state.ledger.devices() == self.system.devices
            && self.system.fleet.fits(&state.memories)
            && self.guard.fits(&state.guard);
        if !fits {
            return Err(CheckpointError::Damaged("its sizes are not those of this run".into()));
        }
        // Anew, so that a failure changes nothing.
        let mut adversary = Adversary::new(&self.config);
        if let Some(adversary) = &mut adversary {
            adversary.restore(&state.adversary).map_err(CheckpointError::Damaged)?;
        }
        self.policy.restore(&state.policy).map_err(CheckpointError::Policy)?;
        self.system.fleet.remember(state.memories);
        self.system.fleet.adversary = adversary;
        self.guard.remember(state.guard);
        (self.next_round, self.theta, self.ledger) = (state.next_round, state.theta, state.ledger);
        Ok(())
    }

    /// What a round of this run takes, for estimates.
    pub fn needs(&self) -> Needs {
        let fleet = &self.system.fleet;
        // A policy of its own, so that asking changes nothing.
        let mut asked = policy(self.config.schedule.policy, self.config.kc() as usize);
        let candidates = asked.candidates(&self.system.channels(0), self.system.k).len();
        let trained = if fleet.everyone_must_train() { self.system.devices } else { candidates };
        let dim = self.theta.len();
        let vectors = fleet.remembered_vectors() + fleet.kept_updates(candidates, self.system.k);
        Needs { dim, trained, bytes: (vectors as u64) * (dim as u64) * 4 }
    }

    /// Rounds done so far.
    pub fn rounds_done(&self) -> u64 {
        self.next_round
    }

    /// The evaluated rounds so far.
    pub fn rows(&self) -> &[Row] {
        self.ledger.rows()
    }

    /// θ(t), the model now.
    pub fn theta(&self) -> &[f32] {
        &self.theta
    }

    /// Accuracy and loss of the model on the test set.
    pub fn evaluate(&self) -> Evaluation {
        self.system.evaluate(&self.theta)
    }
}
