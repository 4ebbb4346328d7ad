//! A finished run as a file: JSON with named columns that any program can read.
//!
//! ```text
//! {
//! "format": "fedlink cell",
//! "version": 1,
//! …                                   label, seed, digests, makers, the whole configuration, the outcome
//! "columns": ["round", "test_accuracy", …],
//! "rows": [
//! [10, 0.51, …],
//! [20, 0.63, …]
//! ],
//! "sha256": "…"                       of everything before the comma before this line
//! }
//! ```
//!
//! Numbers read back as the same bits; NaN is null, infinities are the texts "Infinity" and "-Infinity". A
//! later version may add fields and columns: the reader ignores unknown ones and takes the defaults of
//! missing ones. The metrics of a task, which the field `metrics` names, are the last columns. [`VERSION`] is
//! raised only if existing fields change their meaning.

use super::log::LogSeal;
use super::process::Process;
use crate::error::Error;
use crate::tables::results::{RunResult, Status};
use fedlink::record::{Cell, Outcome, ROW_COLUMNS, Row, hexadecimal};
use fedlink::spec::Spec;
use fedlink::spec::identity::{config_digest, trajectory_digest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

const FORMAT: &str = "fedlink cell";
/// The version of the layout that this version writes.
const VERSION: u64 = 1;
/// The text between the content and its digest.
const SEAL: &str = ",\n\"sha256\": \"";

/// A finished run with its origin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredRun {
    /// Its label in the sweep when it was made.
    pub label: String,
    /// Digest of its configuration, in hexadecimal.
    pub config_digest: String,
    /// `run.rounds` of its configuration.
    pub rounds: u64,
    /// Digests of the data that it used, by name.
    pub data: BTreeMap<String, String>,
    /// The processes that did its rounds, in their order.
    pub processes: Vec<Process>,
    /// The seals of its logs of rounds, by their endings; a log of an earlier version has none.
    pub logs: BTreeMap<String, LogSeal>,
    /// The fields of the outcome that its version did not store.
    pub unstored: Vec<String>,
    /// Its numbers.
    pub result: RunResult,
}

/// The fields of the file.
#[derive(Deserialize)]
struct Fields {
    format: String,
    version: u64,
    #[serde(default)]
    label: String,
    seed: u64,
    rounds: u64,
    config_digest: String,
    #[serde(default)]
    data: BTreeMap<String, String>,
    status: String,
    #[serde(default)]
    message: Option<String>,
    #[serde(default, rename = "makers")]
    processes: Vec<Process>,
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    logs: BTreeMap<String, LogSeal>,
    outcome: Map<String, Value>,
    columns: Vec<String>,
    #[serde(default)]
    metrics: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl StoredRun {
    /// The content of the file of the run, whose configuration is `config`.
    pub fn to_text(&self, spec: &Spec) -> Result<String, Error> {
        let Self { label, data, processes, logs, result, .. } = self;
        let message = match &result.status {
            Status::Diverged(message) => Some(message),
            _ => None,
        };
        let metrics: Vec<&String> = result
            .rows
            .first()
            .map_or_else(Vec::new, |row| row.metrics.iter().map(|(name, _)| name).collect());
        let columns: Vec<&str> = ROW_COLUMNS.iter().map(|column| column.name).collect();
        let columns: Vec<&str> =
            columns.into_iter().chain(metrics.iter().map(|name| name.as_str())).collect();
        let fields = [
            ("format", json!(FORMAT)),
            ("version", json!(VERSION)),
            ("label", json!(label)),
            ("seed", json!(result.seed)),
            ("rounds", json!(spec.run.rounds)),
            ("status", json!(result.status.name())),
            ("message", json!(message)),
            ("digest", json!(result.outcome.digest)),
            ("config_digest", json!(hexadecimal(&config_digest(spec)))),
            ("trajectory_digest", json!(hexadecimal(&trajectory_digest(spec)))),
            ("data", json!(data)),
            ("makers", serde_json::to_value(processes)?),
            ("config", serde_json::to_value(spec.resolved())?),
            ("logs", json!(logs)),
            ("outcome", serde_json::to_value(&result.outcome)?),
            ("columns", json!(columns)),
            ("metrics", json!(metrics)),
        ];
        let is_there = |(name, _): &(&str, Value)| *name != "logs" || !logs.is_empty();
        let fields: Vec<String> =
            fields.into_iter().filter(is_there).map(|(name, value)| format!("\"{name}\": {value}")).collect();
        let rows: Vec<String> = result.rows.iter().map(row_text).collect();
        let text = format!("{{\n{},\n\"rows\": [\n{}\n]", fields.join(",\n"), rows.join(",\n"));
        Ok(format!("{text}{SEAL}{}\"\n}}\n", hexadecimal(&Sha256::digest(&text))))
    }

    /// The run in the file at `path`, whose content is `bytes`.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let damaged = || Error::Damaged(path.into());
        let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
        let (content, seal) = text.rsplit_once(SEAL).ok_or_else(damaged)?;
        if seal.strip_suffix("\"\n}\n") != Some(&hexadecimal(&Sha256::digest(content))) {
            return Err(damaged());
        }
        // The digest is right, so that the content is undamaged and of another version.
        let other = || Error::OtherVersion(path.into());
        let fields: Fields = serde_json::from_str(text).map_err(|_| other())?;
        if fields.format != FORMAT || fields.version > VERSION {
            return Err(other());
        }
        let outcome: Outcome = filled(&fields.outcome).ok_or_else(other)?;
        if fields.digest.is_some_and(|digest| digest != outcome.digest) {
            return Err(damaged());
        }
        let unstored = outcome_fields(&Outcome::default()).into_iter().map(|(name, _)| name);
        let unstored = unstored.filter(|name| !fields.outcome.contains_key(name)).collect();
        // Metrics are the last columns. The task names them; a name may equal that of another column.
        let known = fields.columns.strip_suffix(&fields.metrics[..]).ok_or_else(other)?;
        let row = |values: &Vec<Value>| -> Option<Row> {
            let (own, further) = values.split_at_checked(known.len())?;
            let own = known.iter().zip(own).map(|(name, value)| (name.clone(), value.clone()));
            let mut row: Row = filled(&own.collect())?;
            let metric = |(name, value): (&String, &Value)| Some((name.clone(), number(value)?));
            row.metrics = fields.metrics.iter().zip(further).map(metric).collect::<Option<_>>()?;
            (further.len() == fields.metrics.len()).then_some(row)
        };
        let rows = fields.rows.iter().map(row).collect::<Option<Vec<Row>>>().ok_or_else(other)?;
        let status = match fields.status.as_str() {
            "finished" => Status::Finished,
            "diverged" => Status::Diverged(fields.message.unwrap_or_default()),
            _ => return Err(other()),
        };
        let seconds = fields.processes.last().and_then(|process| process.seconds).unwrap_or(0.0);
        Ok(Self {
            label: fields.label,
            config_digest: fields.config_digest,
            rounds: fields.rounds,
            data: fields.data,
            processes: fields.processes,
            logs: fields.logs,
            unstored,
            result: RunResult { seed: fields.seed, rows, outcome, status, seconds },
        })
    }
}

/// The stored fields of an outcome, by name.
pub(super) fn outcome_fields(outcome: &Outcome) -> Map<String, Value> {
    match serde_json::to_value(outcome) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// A row as a list.
fn row_text(row: &Row) -> String {
    let values = ROW_COLUMNS.iter().map(|column| match (column.value)(row) {
        Cell::Whole(number) => json!(number),
        Cell::Real(number) => real(number),
        Cell::Single(number) => real(number.into()),
        Cell::Text(word) => json!(word),
        Cell::Empty => Value::Null,
    });
    let metrics = row.metrics.iter().map(|(_, value)| real(*value));
    Value::from(values.chain(metrics).collect::<Vec<Value>>()).to_string()
}

fn real(number: f64) -> Value {
    match number {
        number if number.is_nan() => Value::Null,
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        number => json!(number),
    }
}

/// The number that [`real`] was given.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Null => Some(f64::NAN),
        Value::String(text) if text == "Infinity" => Some(f64::INFINITY),
        Value::String(text) if text == "-Infinity" => Some(f64::NEG_INFINITY),
        value => value.as_f64(),
    }
}

/// The default of `T` with the given fields; unknown fields are of a later version. A null is none if the
/// field is optional, and NaN otherwise.
fn filled<T: Default + Serialize + DeserializeOwned>(given: &Map<String, Value>) -> Option<T> {
    // TOML has NaN and infinities, and omits a field that is none.
    let mut table = toml::Table::try_from(T::default()).ok()?;
    for (name, value) in given {
        match value {
            Value::Null if !table.contains_key(name) => {}
            value => {
                table.insert(name.clone(), toml_value(value)?);
            }
        }
    }
    table.try_into().ok()
}

fn toml_value(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) if !number.is_f64() => number.as_i64()?.into(),
        Value::String(text) if !["Infinity", "-Infinity"].contains(&text.as_str()) => text.clone().into(),
        Value::Array(values) => values.iter().map(toml_value).collect::<Option<Vec<_>>>()?.into(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| Some((name.clone(), toml_value(value)?));
            toml::Value::Table(fields.iter().map(field).collect::<Option<_>>()?)
        }
        value => number(value)?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_spec() -> Spec {
        fedlink::spec::Config::default().resolve(&fedlink::parts::Parts::default()).unwrap()
    }
    use proptest::prelude::*;

    fn stored(rows: Vec<Row>, status: Status) -> StoredRun {
        let outcome = Outcome::default();
        let result = RunResult { seed: 3, rows, outcome, status, seconds: 1.5 };
        let processes = vec![Process { seconds: Some(1.5), host: "a \"host\"".into(), ..Process::default() }];
        let data = BTreeMap::from([("digits".to_owned(), "ab".to_owned())]);
        let config_digest = hexadecimal(&config_digest(&default_spec()));
        let (logs, unstored) = (BTreeMap::new(), Vec::new());
        StoredRun {
            label: "bc ✓".into(),
            config_digest,
            rounds: 500,
            data,
            processes,
            logs,
            unstored,
            result,
        }
    }

    fn bits(row: &Row) -> Vec<u64> {
        let reals = [row.test_accuracy, row.test_loss, row.train_loss, row.bits, row.total_bits, row.mean_q];
        reals.iter().chain(row.metrics.iter().map(|(_, value)| value)).map(|value| value.to_bits()).collect()
    }

    proptest! {
        #[test]
        fn numbers_read_back_as_the_same_bits(
            values in prop::collection::vec(any::<f64>(), 7),
            wire in prop::option::of(any::<f64>()),
            round: u32,
        ) {
            // There is one NaN.
            let value = |i: usize| if f64::is_nan(values[i]) { f64::NAN } else { values[i] };
            let mut row = Row::default();
            row.round = round.into();
            (row.test_accuracy, row.test_loss, row.train_loss) = (value(0), value(1), value(2));
            (row.bits, row.total_bits, row.mean_q) = (value(3), value(4), value(5));
            row.wire_bits = wire.filter(|bits| !bits.is_nan());
            row.metrics = vec![("auc".into(), value(6)), ("test_loss".into(), 0.5)];
            let run = stored(vec![row.clone()], Status::Finished);
            let text = run.to_text(&default_spec()).unwrap();
            let read = StoredRun::from_bytes(Path::new("x"), text.as_bytes()).unwrap();
            prop_assert_eq!(bits(&read.result.rows[0]), bits(&row));
            prop_assert_eq!(read.result.rows[0].wire_bits, row.wire_bits);
            prop_assert_eq!(read.result.rows[0].round, row.round);
        }

        #[test]
        fn any_change_is_noticed(at in 0.0..1.0f64, bit in 0u8..8, cut: bool) {
            let stored = stored(vec![Row::default()], Status::Finished);
            let mut bytes = stored.to_text(&default_spec()).unwrap().into_bytes();
            let at = (at * bytes.len() as f64) as usize;
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            prop_assert!(matches!(StoredRun::from_bytes(Path::new("x"), &bytes), Err(Error::Damaged(_))));
        }
    }

    /// Of some batteries only the first has run empty: the other fields are none.
    #[test]
    fn batteries_read_back_unchanged() {
        let mut row = Row::default();
        row.empty = Some(3);
        let mut run = stored(vec![row], Status::Finished);
        (run.result.outcome.first_empty, run.result.outcome.empty) = (Some(7), Some(3));
        let text = run.to_text(&default_spec()).unwrap();
        let again = StoredRun::from_bytes(Path::new("x"), text.as_bytes()).unwrap();
        assert_eq!(again.result.outcome, run.result.outcome);
        assert_eq!(again.result.rows[0].empty, Some(3));
    }

    #[test]
    fn fields_other_than_rows_read_back_unchanged() {
        let run = stored(Vec::new(), Status::Diverged("in round 7".into()));
        let text = run.to_text(&default_spec()).unwrap();
        let read = StoredRun::from_bytes(Path::new("x"), text.as_bytes()).unwrap();
        assert_eq!((&read.label, &read.config_digest, read.rounds), (&run.label, &run.config_digest, 500));
        assert_eq!((&read.processes, &read.data), (&run.processes, &run.data));
        assert_eq!((read.result.seed, &read.result.status), (3, &run.result.status));
        assert_eq!(read.result.outcome, run.result.outcome);
        assert_eq!((read.logs, read.unstored), (BTreeMap::new(), Vec::new()));
        assert!(text.contains("\"config\": {") && !text.contains("\"logs\""));
    }

    #[test]
    fn seals_of_logs_are_stored_and_two_different_digests_are_damage() {
        let mut run = stored(Vec::new(), Status::Finished);
        let seal = LogSeal { lines: 7, sha256: "ab".into() };
        run.logs.insert("rounds.csv".into(), seal);
        let text = run.to_text(&default_spec()).unwrap();
        assert_eq!(StoredRun::from_bytes(Path::new("x"), text.as_bytes()).unwrap().logs, run.logs);
        let (content, _) = text.rsplit_once(SEAL).unwrap();
        let other = content.replacen("\"digest\": \"\"", "\"digest\": \"00\"", 1);
        let other = sealed(&format!("{other}{SEAL}\"\n}}\n"));
        let read = StoredRun::from_bytes(Path::new("x"), other.as_bytes());
        assert!(matches!(read, Err(Error::Damaged(_))));
    }

    /// The content with its digest made right.
    fn sealed(text: &str) -> String {
        let (content, _) = text.rsplit_once(SEAL).unwrap();
        format!("{content}{SEAL}{}\"\n}}\n", hexadecimal(&Sha256::digest(content)))
    }

    #[test]
    fn fields_and_columns_of_another_version_are_ignored_or_have_their_defaults() {
        let mut row = Row::default();
        (row.round, row.lost) = (10, 4);
        let text = stored(vec![row], Status::Finished).to_text(&default_spec()).unwrap();
        let newer = text
            .replace("\"label\"", "\"later\": [1, {}],\n\"label\"")
            .replace("\"columns\": [", "\"columns\": [\"later\",")
            .replace("\"rows\": [\n[", "\"rows\": [\n[5.5,")
            .replace("\"outcome\": {", "\"outcome\": {\"later\":{\"x\":null},");
        let read = StoredRun::from_bytes(Path::new("x"), sealed(&newer).as_bytes()).unwrap();
        assert_eq!((read.result.rows[0].round, read.result.rows[0].lost), (10, 4));
        // An earlier version without the columns from `lost` on and a field of the outcome.
        let names: Vec<String> = ROW_COLUMNS.iter().map(|column| format!("\"{}\"", column.name)).collect();
        let lost = ROW_COLUMNS.iter().position(|column| column.name == "lost").unwrap();
        let nothing = ",null".repeat(names.len() - lost - 4);
        let older = text
            .replace(&format!(",{}]", names[lost..].join(",")), "]")
            .replace(&format!(",4,0,0,0.0{nothing}]\n]"), "]\n]")
            .replace("\"mean_q\":0.0,", "");
        assert!(!older.contains("\"lost\"") && !older.contains("null]\n]"), "{older}");
        let read = StoredRun::from_bytes(Path::new("x"), sealed(&older).as_bytes()).unwrap();
        assert_eq!((read.result.rows[0].round, read.result.rows[0].lost), (10, 0));
        for (old, new) in [("\"version\": 1", "\"version\": 2"), ("fedlink cell", "other")] {
            let other = sealed(&text.replace(old, new));
            let read = StoredRun::from_bytes(Path::new("x"), other.as_bytes());
            assert!(matches!(read, Err(Error::OtherVersion(_))), "{new}");
        }
    }
}
