//! The runs that a race schedules, as the race needs them.

use crate::error::Error;
use crate::goals::Reading;

/// The goals of increasing difficulty, as shares of the way from chance level to the goal; the last is the
/// goal itself.
pub const LEVELS: [f64; 8] = [0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95, 1.0];

/// A candidate with one of its step lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arm {
    /// The candidate.
    pub candidate: usize,
    /// The step length, as the bench numbers them.
    pub step: usize,
}

/// A run: an arm in a scenario at a seed, observed for so many rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trial {
    /// The arm.
    pub arm: Arm,
    /// The scenario.
    pub scenario: usize,
    /// The seed; the same for all arms that are compared.
    pub seed: u64,
    /// The rounds.
    pub rounds: u64,
}

/// The costs of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Of each goal, the cost until each of [`LEVELS`]; smaller is better.
    pub goals: Vec<Vec<Reading>>,
}

impl Observed {
    /// Whether the run has reached every goal, so that more rounds change nothing.
    pub fn is_complete(&self) -> bool {
        self.goals.iter().all(|levels| matches!(levels.last(), Some(Reading::Known(_))))
    }
}

/// Why a candidate left the race or stayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A paired test at the stated error rate rules it out.
    ProvenWorse,
    /// Others rank higher, and the budget continues only some.
    SetAside,
    /// Its step length was chosen.
    Tuned,
    /// It enters the next rung.
    Kept,
    /// It enters late, as a neighbor of a leader.
    Entered,
    /// It is a finalist with its fresh seeds.
    Confirmed,
}

/// A decision of a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// `tune`, `race` or `confirm`.
    pub stage: &'static str,
    /// The arm.
    pub arm: Arm,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason, with its number.
    pub reason: String,
}

/// The runs of a race.
pub trait Bench {
    /// The costs of trials, in their order; none if the user stops the race.
    fn observe(&mut self, trials: &[Trial]) -> Result<Option<Vec<Observed>>, Error>;

    /// A candidate in words.
    fn name(&self, arm: Arm) -> String {
        format!("candidate {}", arm.candidate)
    }

    /// Step lengths to try for a candidate whose best so far is `current`, that one included; one means that
    /// nothing is tuned.
    fn steps(&self, _candidate: usize, current: usize, _rung: usize) -> Vec<usize> {
        vec![current]
    }

    /// At most so many further candidates that differ little from the leaders.
    fn neighbors(&mut self, _leaders: &[Arm], _most: usize) -> Result<Vec<usize>, Error> {
        Ok(Vec::new())
    }

    /// A stage begins with so many candidates.
    fn begin(&mut self, _stage: &'static str, _text: &str, _candidates: usize) -> Result<(), Error> {
        Ok(())
    }

    /// A decision was made.
    fn decide(&mut self, _decision: &Decision) -> Result<(), Error> {
        Ok(())
    }
}
