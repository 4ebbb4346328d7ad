//! The events of a folder and their fields.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A line of `events.jsonl`.
///
/// ```
/// use fedlink_study::events::{Event, Line};
/// let text = r#"{"time":12.5,"process":"hall-7","event":"checkpointed","run":"bc-k1","round":40}"#;
/// let line: Line = serde_json::from_str(text).unwrap();
/// assert_eq!(line.event, Event::Checkpointed { run: "bc-k1".into(), round: 40 });
/// assert_eq!(serde_json::to_string(&line).unwrap(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Seconds since 1970, UTC.
    pub time: f64,
    /// The process that wrote the line: host and process number.
    pub process: String,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// An event. A run is named as its files in `runs/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// A process begins to work in the folder.
    Opened {
        /// The name of the experiment.
        study: String,
        /// `sweep` or `plan`.
        kind: String,
        /// The runs that are known now.
        runs: usize,
        /// The goal by which runs are ranked, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
    },
    /// The subject of a study.
    Described(Head),
    /// A run is known, and maybe waits.
    Planned(RunFacts),
    /// A run begins, or resumes.
    Begun {
        /// The run.
        run: String,
        /// Its label for people.
        label: String,
        /// Its seed.
        seed: u64,
        /// Its rounds.
        rounds: u64,
        /// The rounds that were done before.
        rounds_done: u64,
    },
    /// A round is done; few rounds of a run are logged.
    Round {
        /// The run.
        run: String,
        /// The round, from 1.
        round: u64,
    },
    /// A model was evaluated.
    Evaluated {
        /// The run.
        run: String,
        /// The round, from 1.
        round: u64,
        /// Test accuracy, as a share.
        accuracy: f64,
        /// The other quantities that are known.
        #[serde(flatten)]
        quantities: Quantities,
    },
    /// The state of a run is on the disk.
    Checkpointed {
        /// The run.
        run: String,
        /// The round, from 1.
        round: u64,
    },
    /// A run does no more rounds in this process.
    Finished {
        /// The run.
        run: String,
        /// `finished`, `interrupted` or `diverged`.
        status: String,
        /// The rounds that are done.
        rounds: u64,
        /// Wall-clock seconds in this process.
        seconds: f64,
        /// The use of the groups of devices, where the devices have groups.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        groups: Vec<GroupUse>,
    },
    /// A run cannot continue.
    Failed {
        /// The run.
        run: String,
        /// The error.
        error: String,
    },
    /// A stage of a race begins.
    Stage {
        /// `screen`, `tune`, `race`, `confirm` or `vary`.
        stage: String,
        /// The stage's task, with its numbers.
        text: String,
        /// The candidates that enter it.
        candidates: usize,
    },
    /// A candidate leaves a race.
    Dropped {
        /// The stage that drops it.
        stage: String,
        /// The settings of the candidate.
        candidate: String,
        /// The reason, with its number.
        reason: String,
        /// Whether a test at the stated error rate or the link budget rules it out. If not, the budget ended
        /// before a test could separate it from better ones.
        proven: bool,
    },
    /// A choice is made.
    Decided {
        /// The stage.
        stage: String,
        /// The settings of the candidate.
        candidate: String,
        /// The choice with its reason: the step length, kept, confirmed, recommended, …
        reason: String,
    },
    /// A process ends its work in the folder.
    Closed {
        /// `finished` or `stopped`.
        state: String,
    },
    /// An event of a later version.
    #[serde(other)]
    Unknown,
}

/// The subject of a study: the distinct values of its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Head {
    /// Data sets.
    pub data: Vec<String>,
    /// Models.
    pub models: Vec<String>,
    /// Partitions of the data.
    pub splits: Vec<String>,
    /// Numbers of devices.
    pub devices: Vec<u64>,
    /// Numbers of rounds.
    pub rounds: Vec<u64>,
    /// Numbers of seeds.
    pub seeds: Vec<u64>,
    /// `run.target` of the first curve, as a share.
    pub target: f64,
    /// The goals, by name.
    pub goals: Vec<(String, String)>,
}

/// A run and the values that distinguish it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunFacts {
    /// The run.
    pub run: String,
    /// Its label for people.
    pub label: String,
    /// The label of its curve.
    pub curve: String,
    /// Its value of every swept key.
    pub keys: Vec<(String, String)>,
    /// Its scheduling policy.
    pub policy: String,
    /// Its compressor.
    pub compressor: String,
    /// Its seed.
    pub seed: u64,
    /// Its rounds.
    pub rounds: u64,
    /// The work of a round, in a unit that all runs of the folder share.
    pub cost: f64,
}

/// The use of a group of devices in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GroupUse {
    /// The group.
    pub group: String,
    /// Its devices.
    pub devices: u64,
    /// Its devices that were scheduled at least once.
    pub heard: u64,
    /// The uploads that were scheduled for it.
    pub uploads: u64,
    /// The joules of its devices, where the radio has units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
}

/// The quantities of an evaluation, each if it is known. Costs are counted from the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Quantities {
    /// Mean loss on the test set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Bits sent by all devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<f64>,
    /// Seconds of the simulated system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Joules of all devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// Channel symbols of the uplink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<f64>,
    /// Local trainings since the evaluation before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained: Option<u64>,
    /// Joules of the device that has spent the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_device_joules: Option<f64>,
    /// Devices whose battery is empty, where devices have batteries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<u64>,
    /// The metrics of `run.fairness` and of a task, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
}
