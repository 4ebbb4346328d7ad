//! Runs with custom parts made twice, for a few rounds: a part that is not a function of its arguments and of
//! the random numbers that it is given is found before a sweep is made of it.

use super::plan::Plan;
use crate::error::Error;
use crate::experiment::Run;
use crate::folder::output::{FolderFiles, write_file};
use fedlink::base::files;
use fedlink::record::{Column, ROW_COLUMNS, RoundRecord, Row, TRANSMISSION_COLUMNS};
use fedlink::system::simulation::Simulation;
use std::collections::BTreeSet;
use std::path::Path;
use std::{fmt, fs, io};

/// Rounds that are made twice: state that a policy keeps acts from the second.
const ROUNDS: u64 = 3;

/// A run that was not the same when it was made twice.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Irreproducible {
    /// The custom parts of the run.
    pub parts: Vec<String>,
    /// The label of the run.
    pub run: String,
    /// The first round that differs, from 1.
    pub round: u64,
    /// The first column that differs.
    pub column: String,
    /// Its values.
    pub values: [String; 2],
}

impl fmt::Display for Irreproducible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parts, run, round, column, values: [first, second] } = self;
        let (noun, verb) = if parts.len() == 1 { ("part", "is") } else { ("parts", "are") };
        write!(
            f,
            "custom {noun} {} {verb} not the same in every run: {run} was made twice, and differs in round \
             {round}, column {column}: {first} and {second}",
            parts.join(", ")
        )
    }
}

impl Irreproducible {
    /// An error if there are any.
    pub fn refuse(found: &[Self]) -> Result<(), Error> {
        found.first().map_or(Ok(()), |first| Err(Error::NotDeterministic(first.to_string())))
    }
}

/// The file with the runs that were not the same, in a folder whose sweep was made nevertheless.
const FILE: &str = "parts/nondeterministic.txt";

/// The most bytes of that file.
const MAX_FILE: u64 = 1 << 20;

/// Notes in `folder` that the sweep is made although these runs are not the same when they are made twice.
pub fn note_irreproducible(folder: &Path, found: &[Irreproducible]) -> Result<(), Error> {
    let mut lines = irreproducible(folder)?;
    let before = lines.len();
    for line in found.iter().map(ToString::to_string) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.len() == before {
        return Ok(());
    }
    let files = FolderFiles::new(folder);
    files.check_writable(FILE)?;
    let path = folder.join(FILE);
    let inside = folder.join("parts");
    fs::create_dir_all(&inside).map_err(Error::file("make", &inside))?;
    files.note(FILE)?;
    write_file(&path, lines.join("\n") + "\n")
}

/// The sentences that [`note_irreproducible`] has left in `folder`.
pub(super) fn irreproducible(folder: &Path) -> Result<Vec<String>, Error> {
    let path = folder.join(FILE);
    match files::read(&path, MAX_FILE) {
        Ok(text) => Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::file("read", &path)(error)),
    }
}

/// Makes the first rounds of runs with custom parts twice: of the runs of these indices the first with each
/// set of parts. Returns those that differ.
pub fn make_twice(
    plan: &Plan,
    indices: &[usize],
    pool: &rayon::ThreadPool,
) -> Result<Vec<Irreproducible>, Error> {
    let mut tried: BTreeSet<Vec<&str>> = BTreeSet::new();
    let mut found = Vec::new();
    let mut indices = indices.to_vec();
    indices.sort_unstable();
    for index in indices {
        let run = &plan.sweep.runs[index];
        let is_given = |name: &&str| plan.sweep.parts.origins().any(|(part, _)| part == *name);
        let parts: Vec<&str> = run.spec.custom.keys().map(String::as_str).filter(is_given).collect();
        if parts.is_empty() || !tried.insert(parts.clone()) {
            continue;
        }
        if let Some(Difference { round, column, values }) = pool.install(|| difference(plan, run))? {
            let parts = parts.into_iter().map(str::to_owned).collect();
            found.push(Irreproducible { parts, run: plan.sweep.label(run), round, column, values });
        }
    }
    Ok(found)
}

/// The first difference between two simulations of a run.
struct Difference {
    round: u64,
    column: String,
    values: [String; 2],
}

/// A round of a run.
struct Made {
    record: RoundRecord,
    row: Row,
    /// The digest of the run so far, its model included.
    digest: String,
}

fn difference(plan: &Plan, run: &Run) -> Result<Option<Difference>, Error> {
    // One after the other, as runs are made: a part that keeps something outside itself shows it.
    let [first, second] = [rounds(plan, run)?, rounds(plan, run)?];
    for (a, b) in first.iter().zip(&second) {
        let of_model = || {
            let digests = [&a.digest, &b.digest].map(|digest| digest.chars().take(12).collect::<String>());
            (a.digest != b.digest).then(|| ("digest of the model".to_owned(), digests))
        };
        let found = sent_difference(&a.record, &b.record);
        let found = found.or_else(|| column(ROW_COLUMNS, &a.row, &b.row)).or_else(of_model);
        if let Some((column, values)) = found {
            return Ok(Some(Difference { round: a.record.round, column, values }));
        }
    }
    let [a, b] = [first.len(), second.len()];
    let values = [a, b].map(|rounds| rounds.to_string());
    let column = "number of rounds".to_owned();
    Ok((a != b).then(|| Difference { round: a.min(b) as u64 + 1, column, values }))
}

/// The first rounds of a run.
fn rounds(plan: &Plan, run: &Run) -> Result<Vec<Made>, Error> {
    let mut simulation: Simulation = plan.simulation(run)?;
    let mut made = Vec::new();
    while simulation.rounds_done() < run.spec.run.rounds.min(ROUNDS) {
        match simulation.step() {
            Ok(record) => {
                let row = simulation.round_row(&record);
                made.push(Made { record, row, digest: simulation.outcome().digest });
            }
            // The sweep reports it.
            Err(fedlink::Error::Diverged { .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(made)
}

/// The first column of the transmissions that differs.
fn sent_difference(a: &RoundRecord, b: &RoundRecord) -> Option<(String, [String; 2])> {
    let (ours, theirs) = (&a.transmissions, &b.transmissions);
    let found = ours.iter().zip(theirs).find_map(|(a, b)| column(TRANSMISSION_COLUMNS, a, b));
    let count = [ours.len(), theirs.len()].map(|count| count.to_string());
    found.or_else(|| (count[0] != count[1]).then(|| ("number of devices".to_owned(), count)))
}

/// The first column in which two rows differ, with both values.
fn column<R>(columns: &[Column<R>], a: &R, b: &R) -> Option<(String, [String; 2])> {
    columns.iter().find_map(|column| {
        let values = [a, b].map(|row| (column.value)(row).text());
        (values[0] != values[1]).then(|| (column.name.to_owned(), values))
    })
}
