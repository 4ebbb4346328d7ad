//! `race.json`: the question of a folder, and what its budget in time was divided into.

use super::request::{Budget, Request};
use crate::error::Error;
use crate::folder::disk::RealDisk;
use crate::folder::output::{FolderFiles, write_file_with};
use crate::race::Purse;
use fedlink::base::files;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The name of the file.
const NAME: &str = "race.json";
/// The most bytes of the file.
const MAX_BYTES: u64 = 16 << 20;
/// Full runs after which the measured time of a run replaces the estimate.
const MEASURED: f64 = 5.0;

/// The journal of a folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The question without the budget: a folder answers one question.
    question: Vec<String>,
    /// The configuration of the scenario.
    scenario: String,
    /// Seconds of earlier processes.
    #[serde(default)]
    seconds: f64,
    /// The budget of the plan in seconds, where it is one.
    #[serde(default)]
    budget_s: Option<f64>,
    /// The runs that were left whenever the budget was divided, where it is a time: a plan that continues
    /// divides it as before.
    #[serde(default)]
    allotments: Vec<f64>,
    /// Whether the plan has ended.
    #[serde(default)]
    is_finished: bool,
}

impl Journal {
    /// The journal of a folder, or a new one. The error names what differs if the folder answers another
    /// question.
    pub fn open(folder: &Path, request: &Request, scenario: &str) -> Result<Self, Error> {
        let mut question: Vec<String> =
            request.goals.iter().map(|goal| crate::goals::Goal::Until(goal.clone()).to_string()).collect();
        question.extend(request.constraints.iter().map(ToString::to_string));
        question.extend(request.over.iter().map(|axis| format!("{} = {:?}", axis.key, axis.values)));
        question.push(format!("error rate {}", request.error));
        let path = folder.join(NAME);
        let mut journal = match files::read(&path, MAX_BYTES) {
            Ok(bytes) => serde_json::from_slice::<Self>(&bytes).map_err(|_| Error::Damaged(path))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Self { question: question.clone(), scenario: scenario.into(), ..Self::default() }
            }
            Err(error) => return Err(Error::file("read", &path)(error)),
        };
        let other = |differences: &str| Error::OtherExperiment {
            path: folder.into(),
            differences: differences.into(),
        };
        if journal.question != question {
            return Err(other("its goals, constraints or searched keys"));
        }
        if journal.scenario != scenario {
            return Err(other("its scenario"));
        }
        if let Budget::Time(time) = request.budget
            && (journal.is_finished || journal.budget_s.is_none())
        {
            // More time for a plan that has ended: it is divided anew, and all runs are there.
            journal.budget_s = Some(journal.seconds + time.as_secs_f64());
            journal.allotments.clear();
        }
        journal.is_finished = false;
        Ok(journal)
    }

    fn save(&self, folder: &Path) -> Result<(), Error> {
        FolderFiles::new(folder).note(NAME)?;
        write_file_with(&RealDisk, &folder.join(NAME), serde_json::to_string_pretty(self)? + "\n")
    }
}

/// The budget of a plan and its journal.
pub(super) struct Wallet {
    folder: PathBuf,
    journal: Journal,
    started: Instant,
    runs: Option<f64>,
    /// Seconds of a full run, before any was measured.
    estimate: f64,
    calls: usize,
    failure: Option<Error>,
}

impl Wallet {
    pub fn new(folder: &Path, journal: Journal, budget: Budget, estimate: f64) -> Self {
        let runs = match budget {
            Budget::Runs(runs) => Some(runs),
            Budget::Time(_) => None,
        };
        let folder = folder.into();
        Self { folder, journal, started: Instant::now(), runs, estimate, calls: 0, failure: None }
    }

    /// Seconds of all processes.
    pub fn seconds(&self) -> f64 {
        self.journal.seconds + self.started.elapsed().as_secs_f64()
    }

    /// Writes the journal at the end of a process.
    pub fn close(mut self, is_finished: bool) -> Result<(), Error> {
        self.journal.seconds = self.seconds();
        self.journal.is_finished = is_finished;
        self.failure.map_or(Ok(()), Err)?;
        self.journal.save(&self.folder)
    }
}

impl Purse for Wallet {
    fn left(&mut self, spent: f64) -> f64 {
        let call = self.calls;
        self.calls += 1;
        if let Some(runs) = self.runs {
            return runs - spent;
        }
        if let Some(&known) = self.journal.allotments.get(call) {
            return known;
        }
        let seconds = self.seconds();
        let each = if spent >= MEASURED { seconds / spent } else { self.estimate };
        let left = (self.journal.budget_s.unwrap_or(0.0) - seconds) / each.max(1e-6);
        self.journal.allotments.push(left);
        let mut saved = self.journal.clone();
        saved.seconds = seconds;
        if let Err(error) = saved.save(&self.folder) {
            self.failure.get_or_insert(error);
        }
        left
    }
}
