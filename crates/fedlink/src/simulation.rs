//! Rounds in sequence.

use crate::adversary::Adversary;
use crate::checkpoint::{self, CheckpointError};
use crate::config::Config;
use crate::data::Dataset;
use crate::defence::Guard;
use crate::error::Error;
use crate::fleet::Fleet;
use crate::learn::inputs::{BatchBuffer, Split};
use crate::learn::local_training::LocalTraining;
use crate::learn::model::{Score, Workspace};
use crate::pool::Pool;
use crate::radio::channel::channel;
use crate::record::{Evaluation, Ledger, Outcome, RoundRecord, Row};
use crate::rng::{Purpose, stream};
use crate::round::{System, round};
use crate::schedule::Policy;
use crate::schedule::policy::policy;
use crate::units::Power;
use crate::uplink::Uplink;
use rayon::prelude::*;
use std::io::{Read, Seek, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Test samples scored at a time. Fixed, because the order of summation follows it.
const EVALUATION_ROWS: usize = 250;

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
    evaluators: Pool<Evaluator>,
}

struct Evaluator {
    batch: BatchBuffer,
    work: Workspace,
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
        let policy = policy(config.schedule.policy, config.kc() as usize);
        Self::with_policy(config, dataset, policy)
    }

    /// As [`Simulation::new`], with a policy of your own instead of `schedule.policy`.
    pub fn with_policy(
        config: &Config,
        dataset: Arc<Dataset>,
        policy: Box<dyn Policy>,
    ) -> Result<Self, Error> {
        config.validate()?;
        let seed = config.run.seed;
        let fleet = Fleet::new(config, dataset)?;
        let theta = fleet.training.model.init(config.learn.init, &mut stream(seed, Purpose::Init, 0, 0));
        let devices = config.data.devices as usize;
        let system = System {
            devices,
            k: config.schedule.k as usize,
            symbols: config.radio.symbols,
            average_power: Power(config.radio.power),
            noise: config.radio.noise,
            slots: config.radio.slots,
            channel: channel(config.radio.channel, seed),
            fleet,
            uplink: Uplink::new(config),
        };
        let guard = Guard::new(config);
        let (config, ledger, evaluators) = (config.clone(), Ledger::new(devices), Pool::new());
        Ok(Self { config, system, policy, guard, theta, next_round: 0, ledger, evaluators })
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
        let dataset = &self.system.fleet.dataset;
        let LocalTraining { model, inputs, .. } = &self.system.fleet.training;
        let (theta, evaluators) = (&self.theta, &self.evaluators);
        let test = &dataset.test;
        let make = || Evaluator { batch: BatchBuffer::default(), work: model.workspace(EVALUATION_ROWS) };
        let score = |(chunk, labels): (usize, &[u8])| {
            evaluators.with(make, |evaluator| {
                let first = chunk * EVALUATION_ROWS;
                let batch = inputs.gather(Split::Test, first..first + labels.len(), &mut evaluator.batch);
                model.score(theta, batch, &mut evaluator.work)
            })
        };
        let scores: Vec<Score> = test.labels.par_chunks(EVALUATION_ROWS).enumerate().map(score).collect();
        let count = test.len() as f64;
        Evaluation {
            accuracy: scores.iter().map(|score| score.correct).sum::<usize>() as f64 / count,
            loss: scores.iter().map(|score| score.loss).sum::<f64>() / count,
        }
    }
}
