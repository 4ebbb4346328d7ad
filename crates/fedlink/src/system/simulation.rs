//! Rounds in sequence.

use crate::base::state::StateError;
use crate::error::Error;
use crate::learn::fairness::{ClassTable, class_accuracies};
use crate::learn::task::Evaluation;
use crate::record::{Outcome, RoundRecord, Row};
use crate::spec::Spec;
use crate::system::checkpoint::{self, CheckpointError};
use crate::system::clock::Clock;
use crate::system::fleet::Fleet;
use crate::system::round::round;
use crate::system::server::Server;
use std::io::{Read, Seek, Write};
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// A run in progress.
///
/// Work is spread over the threads of the current `rayon` pool; the result is the same for
/// any number of them.
///
/// Its parties are public: a program with a round of its own calls them as [`round`] does.
pub struct Simulation {
    /// The parameter server, with its policy, its uplink and the record of its rounds.
    pub server: Server,
    /// The devices.
    pub fleet: Fleet,
    /// Seconds and joules; it counts nothing where the radio has no units.
    pub clock: Clock,
    /// Whether a round failed: state is then half of one round and half of the next.
    failed: bool,
    /// The classes of each device, once `run.fairness` needs them.
    classes: OnceLock<ClassTable>,
}

/// The resources that a round takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// d, the number of parameters.
    pub dim: usize,
    /// Devices that train in a round, as in the first one.
    pub trained: usize,
    /// Memory for the state that devices keep and for the updates that are kept until selection; the data set
    /// and a few vectors of d for every thread come on top.
    pub bytes: u64,
}

/// Called after every round.
pub trait RoundObserver {
    /// `Break` ends the run after this round.
    fn after_round(&mut self, record: &RoundRecord) -> ControlFlow<()>;
}

/// The answer of a closure after a round: `()` to continue, or a [`ControlFlow`].
pub trait Flow {
    /// `Break` ends the run.
    fn flow(self) -> ControlFlow<()>;
}

impl Flow for () {
    fn flow(self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Flow for ControlFlow<()> {
    fn flow(self) -> ControlFlow<()> {
        self
    }
}

impl Simulation {
    /// A simulation of these parties, before its first round.
    pub(super) fn with_parties(server: Server, fleet: Fleet, clock: Clock) -> Self {
        Self { server, fleet, clock, failed: false, classes: OnceLock::new() }
    }

    /// The run.
    pub fn spec(&self) -> &Spec {
        self.server.spec()
    }

    /// Runs the next round; evaluates if it is due. After an error the run can only be
    /// restored from a checkpoint.
    pub fn step(&mut self) -> Result<RoundRecord, Error> {
        if self.failed {
            return Err(Error::Failed { round: self.rounds_done() + 1 });
        }
        let result = self.try_step().map_err(|error| match error {
            Error::Diverged { round, device, .. } => {
                Error::Diverged { round, device, remedy: self.spec().divergence_remedy() }
            }
            other => other,
        });
        self.failed = result.is_err();
        result
    }

    fn try_step(&mut self) -> Result<RoundRecord, Error> {
        let t = self.rounds_done();
        round(&mut self.server, &mut self.fleet, &self.clock, t)?;
        let run = &self.spec().run;
        if self.rounds_done().is_multiple_of(run.evaluate_every) || self.rounds_done() == run.rounds {
            let evaluation = self.evaluate()?;
            self.server.evaluated(evaluation)?;
        }
        self.server.close().ok_or(Error::order("the round was not delivered"))
    }

    /// Runs until `run.rounds`, or until `after_round` answers with `Break`.
    pub fn run<R: Flow>(&mut self, mut after_round: impl FnMut(&RoundRecord) -> R) -> Result<Outcome, Error> {
        while self.rounds_done() < self.spec().run.rounds {
            if after_round(&self.step()?).flow().is_break() {
                break;
            }
        }
        Ok(self.outcome())
    }

    /// As [`Simulation::run`], with an observer that keeps state.
    pub fn run_with(&mut self, observer: &mut dyn RoundObserver) -> Result<Outcome, Error> {
        self.run(|record| observer.after_round(record))
    }

    /// Sets whether later records also hold the devices that are not scheduled ([`RoundRecord::others`]). It
    /// changes nothing else.
    pub fn log_all_devices(&mut self, log_all: bool) {
        self.server.log_all_devices(log_all);
    }

    /// The run so far in numbers.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = self.server.outcome();
        if let Some(last) = self.rows().last().filter(|_| self.spec().run.fairness) {
            let devices = self.classes().accuracies(&class_accuracies(&last.metrics));
            outcome.device_accuracy =
                devices.into_iter().map(|accuracy| Some(accuracy).filter(|a| !a.is_nan())).collect();
        }
        outcome
    }

    /// The classes of each device.
    fn classes(&self) -> &ClassTable {
        let devices = self.server.radio().devices();
        self.classes.get_or_init(|| ClassTable::of(self.fleet.task(), devices))
    }

    /// The record of the last round as a row by itself.
    pub fn round_row(&self, record: &RoundRecord) -> Row {
        self.server.round_row(record)
    }

    /// Writes everything that later rounds depend on. A run [resumed](Simulation::restore) from it ends with
    /// the same bits as one that was never interrupted.
    pub fn checkpoint(&self, to: impl Write) -> Result<(), CheckpointError> {
        if self.failed {
            let problem = format!("the run failed in round {}", self.rounds_done() + 1);
            return Err(CheckpointError::State(StateError(problem)));
        }
        let Self { server, fleet, .. } = self;
        let state = checkpoint::Saved {
            next_round: server.rounds_done(),
            theta: server.theta(),
            ledger: server.record(),
            states: fleet.states(),
            server: server.saved()?,
            adversary: fleet.saved().map_err(CheckpointError::State)?,
            extension: server.extension(server.record()),
        };
        checkpoint::write(server.owner(), &state, to)
    }

    /// Resumes from a [checkpoint](Simulation::checkpoint) of a run with the same configuration. If it is
    /// damaged or of another run, nothing changes.
    pub fn restore(&mut self, from: impl Read + Seek) -> Result<(), CheckpointError> {
        let Self { server, fleet, .. } = self;
        let mut state = checkpoint::read(server.owner(), from)?;
        server.fits(&mut state)?;
        if !fleet.fits(&state.states, server.theta().len()) {
            return Err(CheckpointError::Damaged("its sizes are not those of this run".into()));
        }
        let (parts, radio) = server.states_now();
        server.load(&mut state)?;
        if let Err(error) = fleet.load(std::mem::take(&mut state.adversary)) {
            // A state that was saved a moment ago loads again.
            let _ = server.load_states(&parts, radio);
            return Err(CheckpointError::State(error));
        }
        fleet.restore(std::mem::take(&mut state.states));
        server.resume(state);
        self.failed = false;
        Ok(())
    }

    /// The resources that a round of this run takes, for estimates.
    pub fn needs(&mut self) -> Result<Needs, Error> {
        let Self { server, fleet, .. } = self;
        let t = server.rounds_done();
        let links = server.links(t);
        let (devices, dim) = (server.radio().devices(), server.theta().len());
        // An estimate must change nothing, so the policy's state is restored.
        let before = server.parts_state();
        let candidates = server.begin(t, links.known, |_| true)?.candidates.len();
        server.load_parts(&before).map_err(CheckpointError::State)?;
        let trained = if fleet.everyone_must_train() { devices } else { candidates };
        let kept = fleet.kept_updates(candidates, server.radio().k(), dim);
        let vectors = fleet.state_vectors() + server.state_vectors() + kept;
        Ok(Needs { dim, trained, bytes: (vectors as u64) * (dim as u64) * 4 })
    }

    /// Rounds done so far.
    pub fn rounds_done(&self) -> u64 {
        self.server.rounds_done()
    }

    /// The evaluated rounds so far.
    pub fn rows(&self) -> &[Row] {
        self.server.rows()
    }

    /// θ(t), the current model.
    pub fn theta(&self) -> &[f32] {
        self.server.theta()
    }

    /// The evaluation of the current model; with `run.fairness` also on each class and on the worst devices.
    pub fn evaluate(&self) -> Result<Evaluation, Error> {
        let mut evaluation = self.fleet.task().evaluate(self.theta()).map_err(Error::Evaluation)?;
        if self.spec().run.fairness {
            self.classes().add_to(&mut evaluation);
        }
        Ok(evaluation)
    }
}
