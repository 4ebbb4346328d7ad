//! A power cut between any two file operations: every content that it may leave is put into a new folder, and
//! the sweep is resumed. The result is always that of the sweep that was never disturbed, and no more rounds
//! are lost than there are between two checkpoints.

use super::freeze::freeze_on;
use super::run_files::run_name;
use super::{Assembled, Event, LogRounds, Observer, Plan, Runner, freeze};
use crate::experiment::Experiment;
use crate::folder::disk::{Disk, DiskFile, RealDisk};
use fedlink::parts::Parts;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const EVERY: u64 = 1;
const FILE: &str = "[data]\ndevices = 6\nsamples_per_device = 20\n\
                    [learn]\nmodel = \"softmax\"\n[run]\nrounds = 3\n\
                    evaluate_every = 2\n[sweep]\n\"schedule.policy\" = [\"bc\", \"bn2-c\"]\n";

/// A file operation; files are numbered in the order in which they were opened.
#[derive(Clone, Debug)]
enum Op {
    Create(usize, PathBuf),
    Append(usize, PathBuf, u64),
    Write(usize, Vec<u8>),
    Sync(usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    CreateDir,
    SyncDir(PathBuf),
    /// No operation: the number of rounds that the run of this name has done.
    Round(String, u64),
}

/// A disk that records its operations.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<(usize, Vec<Op>)>>);

struct Recorded {
    number: usize,
    file: Box<dyn DiskFile>,
    recorder: Recorder,
}

impl Recorder {
    fn note(&self, op: Op) {
        self.0.lock().unwrap().1.push(op);
    }

    fn opened(&self, file: Box<dyn DiskFile>, op: impl FnOnce(usize) -> Op) -> Box<dyn DiskFile> {
        let number = {
            let mut noted = self.0.lock().unwrap();
            noted.0 += 1;
            let op = op(noted.0);
            noted.1.push(op);
            noted.0
        };
        Box::new(Recorded { number, file, recorder: self.clone() })
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.recorder.note(Op::Write(self.number, bytes[..count].to_vec()));
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl DiskFile for Recorded {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.recorder.note(Op::Sync(self.number));
        Ok(())
    }
}

impl Disk for Recorder {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.opened(RealDisk.create(path)?, |number| Op::Create(number, path.into())))
    }

    fn append(&self, path: &Path, length: u64) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.opened(RealDisk.append(path, length)?, |number| Op::Append(number, path.into(), length)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)?;
        self.note(Op::Rename(from.into(), to.into()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)?;
        self.note(Op::Remove(path.into()));
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir(path)?;
        self.note(Op::CreateDir);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_dir(path)?;
        self.note(Op::SyncDir(path.into()));
        Ok(())
    }
}

/// Notes the rounds of a sweep among its file operations.
struct Rounds<'a>(&'a Recorder, &'a Plan);

impl Observer for Rounds<'_> {
    fn observe(&self, event: Event<'_>) {
        if let Event::Round { run, record } = event {
            self.0.note(Op::Round(run_name(&self.1.sweep.runs[run].spec), record.round));
        }
    }
}

/// From which round each run goes on.
#[derive(Default)]
struct Begun(Mutex<BTreeMap<usize, u64>>);

impl Observer for Begun {
    fn observe(&self, event: Event<'_>) {
        if let Event::Begun { run, rounds_done } = event {
            self.0.lock().unwrap().insert(run, rounds_done);
        }
    }
}

/// The files that a power cut leaves.
type Image = BTreeMap<PathBuf, Vec<u8>>;

/// A change of the names in a folder.
#[derive(Clone, Debug)]
enum Change {
    Add(PathBuf, usize),
    Move(PathBuf, PathBuf),
    Drop(PathBuf),
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Add(path, content) => drop(names.insert(path.clone(), *content)),
            Self::Move(from, to) => {
                if let Some(content) = names.remove(from) {
                    names.insert(to.clone(), content);
                }
            }
            Self::Drop(path) => drop(names.remove(path)),
        }
    }

    fn folder(&self) -> &Path {
        let (Self::Add(path, _) | Self::Move(_, path) | Self::Drop(path)) = self;
        path.parent().unwrap()
    }
}

/// A file system that distinguishes synced content from other content.
#[derive(Clone, Default)]
struct Model {
    /// The synced and the written content of each file.
    contents: Vec<(Vec<u8>, Vec<u8>)>,
    /// The index of the content of each open file.
    open: BTreeMap<usize, usize>,
    /// Names on the disk, and with all changes.
    durable: BTreeMap<PathBuf, usize>,
    current: BTreeMap<PathBuf, usize>,
    /// Changes that are not on the disk for sure.
    pending: Vec<Change>,
    /// Rounds that each run has done.
    rounds: BTreeMap<String, u64>,
}

impl Model {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.pending.push(change);
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Create(number, path) => {
                self.contents.push(Default::default());
                self.open.insert(*number, self.contents.len() - 1);
                self.change(Change::Add(path.clone(), self.contents.len() - 1));
            }
            Op::Append(number, path, length) => {
                if !self.current.contains_key(path) {
                    self.contents.push(Default::default());
                    self.change(Change::Add(path.clone(), self.contents.len() - 1));
                }
                let content = self.current[path];
                self.contents[content].1.truncate(*length as usize);
                self.open.insert(*number, content);
            }
            Op::Write(number, bytes) => self.contents[self.open[number]].1.extend(bytes),
            Op::Sync(number) => {
                let (durable, all) = &mut self.contents[self.open[number]];
                durable.clone_from(all);
            }
            Op::Rename(from, to) => self.change(Change::Move(from.clone(), to.clone())),
            Op::Remove(path) => self.change(Change::Drop(path.clone())),
            Op::CreateDir => {}
            Op::SyncDir(folder) => {
                let (now, later) = std::mem::take(&mut self.pending)
                    .into_iter()
                    .partition(|change| change.folder() == folder);
                self.pending = later;
                let now: Vec<Change> = now;
                now.iter().for_each(|change| change.apply(&mut self.durable));
            }
            Op::Round(run, round) => drop(self.rounds.insert(run.clone(), *round)),
        }
    }

    /// Everything that a power cut may leave now: files by path. Any of the changes of names may be lost, and
    /// content that is not synced is there, is not there, or is torn.
    fn images(&self) -> BTreeSet<Image> {
        let mut images = BTreeSet::new();
        // All subsets of the latest changes; those before them are there or not together.
        let free = self.pending.len().min(2);
        let (older, newer) = self.pending.split_at(self.pending.len() - free);
        for subset in 0..1_u32 << (free + 1) {
            let mut names = self.durable.clone();
            if subset & 1 == 1 {
                older.iter().for_each(|change| change.apply(&mut names));
            }
            for (bit, change) in newer.iter().enumerate() {
                if subset >> (bit + 1) & 1 == 1 {
                    change.apply(&mut names);
                }
            }
            for kept in [0.0, 0.5, 1.0] {
                let left = |content: &usize| {
                    let (durable, all) = &self.contents[*content];
                    let cut = durable.len() as f64 + kept * (all.len() as f64 - durable.len() as f64);
                    // Torn content is neither the old nor the new one.
                    let source =
                        if all.len() >= durable.len() && all.starts_with(durable) { all } else { durable };
                    source[..(cut as usize).min(source.len())].to_vec()
                };
                images.insert(names.iter().map(|(path, content)| (path.clone(), left(content))).collect());
            }
        }
        images
    }
}

fn plan() -> Plan {
    Plan::new(Experiment::parse("x", FILE).unwrap().expand(&Parts::default()).unwrap(), &[]).unwrap()
}

fn runner<'a>(
    plan: &'a Plan,
    folder: &'a Path,
    pool: &'a rayon::ThreadPool,
    observer: &'a dyn Observer,
) -> Runner<'a> {
    let runner = Runner::new(plan, folder, pool);
    Runner { checkpoint_every: EVERY, log_rounds: LogRounds::Sent, keep_state: true, observer, ..runner }
}

/// The outputs that must be the same: results and the log of every transmission.
fn results(plan: &Plan, folder: &Path, runs: &[super::Done]) -> (String, Vec<u8>) {
    let assembled = Assembled::new(plan, runs).unwrap();
    assert!(assembled.unfinished.is_empty());
    (assembled.summary, plan.round_log(runs, folder, LogRounds::Sent).unwrap().csv)
}

#[test]
fn after_a_power_cut_between_any_two_operations_the_sweep_resumes_to_the_same_results() {
    let plan = plan();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let order = plan.longest_first();
    let folder = temporary();
    let recorder = Recorder::default();
    freeze_on(&recorder, folder.path(), &plan).unwrap();
    let rounds = Rounds(&recorder, &plan);
    let runs = runner(&plan, folder.path(), &pool, &rounds).run_on(&recorder, &order).unwrap();
    let undisturbed = results(&plan, folder.path(), &runs);
    let ops = recorder.0.lock().unwrap().1.clone();
    assert!(ops.iter().filter(|op| matches!(op, Op::Sync(_))).count() > 10, "{}", ops.len());

    // Everything that a power cut may leave, with the rounds that were done by then and the operation before
    // it.
    let mut model = Model::default();
    let mut left: BTreeMap<Image, (BTreeMap<String, u64>, String)> = BTreeMap::new();
    for op in &ops {
        model.apply(op);
        for image in model.images() {
            left.insert(image, (model.rounds.clone(), format!("{op:.80?}")));
        }
    }
    assert!(left.len() > 200, "{} images only", left.len());
    left.par_iter().for_each(|(image, (rounds, op))| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let fresh = temporary();
        std::fs::create_dir(fresh.path().join("runs")).unwrap();
        for (path, content) in image {
            std::fs::write(fresh.path().join(path.strip_prefix(folder.path()).unwrap()), content).unwrap();
        }
        freeze(fresh.path(), &plan).unwrap_or_else(|error| panic!("after {op}: {error}"));
        let begun = Begun::default();
        let resumed = runner(&plan, fresh.path(), &pool, &begun).run(&order);
        let resumed = resumed.unwrap_or_else(|error| panic!("after {op}: {error}"));
        assert!(results(&plan, fresh.path(), &resumed) == undisturbed, "after {op}: {:?}", image.keys());
        let begun = begun.0.into_inner().unwrap();
        for (index, run) in plan.sweep.runs.iter().enumerate() {
            let done = rounds.get(&run_name(&run.spec)).copied().unwrap_or(0);
            assert!(begun[&index] + EVERY >= done, "{} of {done} rounds are left after {op}", begun[&index]);
        }
    });
}

/// A folder in memory if there is one: the replayed files need no disk.
fn temporary() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}
