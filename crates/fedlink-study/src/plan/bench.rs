//! The runs of a plan.

use super::request::Request;
use super::screen::{Screened, broken, screen};
use super::space::{Point, Space};
use super::step::{Step, short};
use crate::error::Error;
use crate::events::{self, EventLog};
use crate::experiment::{Experiment, Run, Sweep};
use crate::goals::{Condition, Goal, Level, Quantity, Reading, Until};
use crate::race::{Arm, Bench, Decision, LEVELS, Observed, Trial, Verdict};
use crate::sweep::{Event, Observer, Plan, RunEvents, Runner};
use crate::tables::results::RunResult;
use fedlink::parts::Parts;
use fedlink::spec::{ConfigError, Spec};
use rayon::prelude::*;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use toml::Value;

/// Receives the progress of a plan, from several threads at once.
pub trait PlanObserver: Sync {
    /// A stage begins.
    fn stage(&self, stage: &str, text: &str);
    /// A candidate was judged by the link budget.
    fn screened(&self, _done: usize, _passed: usize) {}
    /// Of the runs of a batch so many have ended.
    fn runs(&self, _done: usize, _of: usize) {}
    /// A decision was made.
    fn decided(&self, _stage: &str, _candidate: &str, _reason: &str) {}
}

impl PlanObserver for () {
    fn stage(&self, _: &str, _: &str) {}
}

/// The tools of a plan.
pub(super) struct Tools<'a> {
    pub parts: &'a Parts,
    pub folders: &'a [PathBuf],
    pub folder: &'a Path,
    pub pool: &'a rayon::ThreadPool,
    pub observer: &'a dyn PlanObserver,
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// A candidate: a point of the space.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub point: Point,
    pub label: String,
    pub screened: Screened,
    /// How it left the race, if it did: the stage, the reason, and whether it is proven.
    pub lost: Option<(String, String, bool)>,
}

/// The runs of a plan.
pub(super) struct RunBench<'a> {
    pub tools: Tools<'a>,
    pub experiment: Experiment,
    pub request: &'a Request,
    pub space: Space,
    pub candidates: Vec<Candidate>,
    /// The run of each arm at each seed with the most rounds.
    pub results: BTreeMap<(Arm, u64), RunResult>,
    pub log: EventLog,
    /// The stages so far with their numbers.
    pub stages: Vec<(String, String)>,
    places: BTreeMap<Point, usize>,
    /// A plan with the data set.
    base: Plan,
    base_spec: Spec,
    /// Of each goal, the easier ones.
    levels: Vec<Vec<Goal>>,
    logged: BTreeSet<String>,
}

impl<'a> RunBench<'a> {
    pub fn new(
        tools: Tools<'a>,
        experiment: Experiment,
        request: &'a Request,
        space: Space,
        log: EventLog,
    ) -> Result<Self, Error> {
        let base_spec = experiment.clone().only_spec(tools.parts)?;
        let sweep = Sweep::of_runs(
            experiment.clone(),
            vec![(experiment.name.clone(), base_spec.clone())],
            vec![Run::new(0, base_spec.clone())],
            tools.parts,
        );
        let base = Plan::new(sweep, tools.folders)?;
        let classes = base.datasets().values().next().map_or(2, |dataset| dataset.classes);
        let target = base_spec.run.target;
        let levels = request
            .goals
            .iter()
            .map(|until| {
                LEVELS.iter().map(|&share| Goal::Until(until.eased(share, classes, target))).collect()
            })
            .collect();
        let logged = events::EventReader::new(tools.folder).read()?;
        let logged = logged.iter().map(|line| decision_text(&line.event)).collect();
        Ok(Self {
            tools,
            experiment,
            request,
            space,
            candidates: Vec::new(),
            results: BTreeMap::new(),
            log,
            stages: Vec::new(),
            places: BTreeMap::new(),
            base,
            base_spec,
            levels,
            logged,
        })
    }

    /// The plan with the data set.
    pub fn base(&self) -> &Plan {
        &self.base
    }

    /// The classes of the data set.
    pub fn classes(&self) -> usize {
        self.base.datasets().values().next().map_or(2, |dataset| dataset.classes)
    }

    /// The scenario.
    pub fn scenario(&self) -> &Spec {
        &self.base_spec
    }

    /// The settings of an arm: the values of its point, and its step length where it differs.
    pub fn settings(&self, arm: Arm) -> Result<Vec<(String, Value)>, ConfigError> {
        let mut settings = self.space.settings(&self.candidates[arm.candidate].point);
        let Step { rate, server } = Step::of(arm.step);
        if rate != 0 {
            let own = self.resolve(&settings)?.rate();
            let value = short(own * libm::pow(3.0, 0.5 * f64::from(rate)));
            settings.push(("learn.rate".into(), Value::Float(value)));
        }
        if server != 0 {
            let own = self.resolve(&settings)?.learn.server_rate;
            let value = short(own * libm::pow(2.0, f64::from(server)));
            settings.push(("learn.server_rate".into(), Value::Float(value)));
        }
        Ok(settings)
    }

    /// The run of the scenario with settings.
    pub fn resolve(&self, settings: &[(String, Value)]) -> Result<Spec, ConfigError> {
        self.with(settings)?.only_spec(self.tools.parts)
    }

    /// The experiment with settings.
    pub fn with(&self, settings: &[(String, Value)]) -> Result<Experiment, ConfigError> {
        let mut experiment = self.experiment.clone();
        settings.iter().try_for_each(|(key, value)| experiment.set_value(key, value.clone()))?;
        Ok(experiment)
    }

    pub fn spec(&self, arm: Arm) -> Result<Spec, ConfigError> {
        self.resolve(&self.settings(arm)?)
    }

    /// The label of an arm.
    pub fn label(&self, arm: Arm) -> String {
        let mut label = self.candidates[arm.candidate].label.clone();
        for (key, value) in self.settings(arm).unwrap_or_default().iter().skip(self.space.axes.len()) {
            let _ = write!(label, " {}={value}", key.rsplit('.').next().unwrap_or(key));
        }
        label
    }

    /// Screens points that are not candidates yet, until so many have passed, and returns those.
    pub fn screen(&mut self, points: &[Point], wanted: usize) -> Result<Vec<usize>, Error> {
        let least = self.least_rounds();
        let mut passed = Vec::new();
        let chunk = 4 * self.tools.pool.current_num_threads();
        let mut left: Vec<&Point> = points.iter().filter(|point| !self.places.contains_key(*point)).collect();
        left.reverse();
        while passed.len() < wanted && !left.is_empty() && !(self.tools.stop)() {
            let now: Vec<&Point> =
                (0..chunk.min(wanted - passed.len()).max(1)).filter_map(|_| left.pop()).collect();
            let judged: Vec<Result<Screened, Error>> =
                self.tools.pool.install(|| now.par_iter().map(|point| self.judge(point, least)).collect());
            for (point, screened) in now.into_iter().zip(judged) {
                let screened = screened?;
                let index = self.candidates.len();
                let label = self.space.label(point);
                match &screened.out {
                    None => passed.push(index),
                    Some(reason) => self.write(events::Event::Dropped {
                        stage: "screen".into(),
                        candidate: label.clone(),
                        reason: reason.clone(),
                        proven: true,
                    })?,
                }
                let lost = screened.out.clone().map(|reason| ("screen".to_owned(), reason, true));
                self.places.insert(point.clone(), index);
                self.candidates.push(Candidate { point: point.clone(), label, screened, lost });
            }
            self.tools.observer.screened(self.candidates.len(), passed.len());
        }
        Ok(passed)
    }

    /// The fewest rounds in which any run can reach the goal.
    pub fn least_rounds(&self) -> u64 {
        let evaluations = self.request.goals.iter().map(|goal| goal.evaluations).max().unwrap_or(1);
        self.base_spec.run.evaluate_every.saturating_mul(evaluations)
    }

    fn judge(&self, point: &Point, least: u64) -> Result<Screened, Error> {
        let settings = self.space.settings(point);
        let spec = match self.resolve(&settings) {
            Ok(spec) => spec,
            Err(error) => return Ok(Screened::refused(error.to_string())),
        };
        let config = spec.resolved().to_table();
        let value = |key: &str| {
            let parts = key.split('.').collect::<Vec<_>>();
            let mut table = &config;
            for part in &parts[..parts.len() - 1] {
                table = table.get(*part)?.as_table()?;
            }
            let value = table.get(*parts.last()?)?;
            value.as_float().or_else(|| value.as_integer().map(|integer| integer as f64))
        };
        if let Some((limit, value)) = broken(&self.request.constraints, value) {
            let reason = format!("{} is {value}, the limit is {limit}", limit.name);
            return Ok(Screened { out: Some(reason), kind: Some("limit"), ..Screened::default() });
        }
        // A split or a model may refuse a data set.
        let run = Run::new(0, spec.clone());
        match self.base.simulation(&run) {
            Ok(_) => screen(&spec, self.tools.parts, self.tools.folders, self.request, least),
            Err(fedlink::Error::Config(error)) => Ok(Screened::refused(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that a spec can run with its data.
    pub fn check(&self, spec: &Spec) -> Result<(), Error> {
        let run = Run::new(0, spec.clone());
        let curve = (String::new(), spec.clone());
        let sweep = Sweep::of_runs(self.experiment.clone(), vec![curve], vec![run], self.tools.parts);
        self.base.of_sweep(sweep, self.tools.folders).map(drop)
    }

    /// Does runs of specs with labels, and returns their results in order; none if the user stops.
    pub fn run_all(
        &self,
        wanted: &[(String, Spec)],
        keep_state: bool,
    ) -> Result<Option<Vec<RunResult>>, Error> {
        let curves = wanted.to_vec();
        let runs =
            wanted.iter().enumerate().map(|(curve, (_, spec))| Run::new(curve, spec.clone())).collect();
        let sweep = Sweep::of_runs(self.experiment.clone(), curves, runs, self.tools.parts);
        let plan = self.base.of_sweep(sweep, self.tools.folders)?;
        let batch = Batch { observer: self.tools.observer, done: AtomicUsize::new(0), of: wanted.len() };
        let lines = RunEvents::new(&plan, &self.log, &batch);
        let mut runner = Runner::new(&plan, self.tools.folder, self.tools.pool);
        (runner.keep_shorter, runner.keep_state) = (true, keep_state);
        (runner.observer, runner.stop) = (&lines, self.tools.stop);
        let order: Vec<usize> = (0..wanted.len()).collect();
        let done = runner.run(&order);
        lines.finish()?;
        let done = done?;
        let is_whole = done.len() == wanted.len() && done.iter().all(|done| done.result.status.has_ended());
        Ok(is_whole.then(|| done.into_iter().map(|done| done.result).collect()))
    }

    /// The value of a goal in a run that must keep the constraints: a run that breaks one never reaches it.
    pub fn read(&self, result: &RunResult, spec: &Spec, until: &Until) -> Reading {
        let metrics = result.metrics(spec);
        let reading = metrics.read(&Goal::Until(until.clone()));
        if !matches!(reading, Reading::Known(_)) {
            return reading;
        }
        let is_broken = self.request.constraints.iter().any(|limit| {
            let Some(cost) = limit.cost() else { return false };
            let spent = metrics.read(&Goal::Until(until.counted_in(cost)));
            matches!(spent, Reading::Known(value) if !limit.holds(value))
        });
        if !is_broken {
            return reading;
        }
        // No accuracy is 2: the cost at the end.
        let never = Condition { quantity: Quantity::Accuracy, level: Level::Number(2.0) };
        metrics.read(&Goal::Until(Until { conditions: vec![never], ..until.clone() }))
    }

    fn observed(&self, result: &RunResult, spec: &Spec) -> Observed {
        let read = |goal: &Goal| match goal {
            Goal::Until(until) => self.read(result, spec, until),
            Goal::Plain(_) => Reading::Missing("a goal of a plan is a cost".into()),
        };
        Observed { goals: self.levels.iter().map(|levels| levels.iter().map(read).collect()).collect() }
    }

    /// Writes an event once, however often the plan continues.
    pub fn write(&mut self, event: events::Event) -> Result<(), Error> {
        if self.logged.insert(decision_text(&event)) { self.log.append(event) } else { Ok(()) }
    }
}

fn decision_text(event: &events::Event) -> String {
    serde_json::to_string(event).unwrap_or_default()
}

/// Counts the runs of a batch.
struct Batch<'a> {
    observer: &'a dyn PlanObserver,
    done: AtomicUsize,
    of: usize,
}

impl Observer for Batch<'_> {
    fn observe(&self, event: Event<'_>) {
        if let Event::Finished { .. } = event {
            self.observer.runs(1 + self.done.fetch_add(1, Ordering::SeqCst), self.of);
        }
    }
}

impl Bench for RunBench<'_> {
    fn name(&self, arm: Arm) -> String {
        self.label(arm)
    }

    fn observe(&mut self, trials: &[Trial]) -> Result<Option<Vec<Observed>>, Error> {
        let mut specs: BTreeMap<Arm, (String, Spec)> = BTreeMap::new();
        for trial in trials {
            if let Entry::Vacant(vacant) = specs.entry(trial.arm) {
                vacant.insert((self.label(trial.arm), self.spec(trial.arm)?));
            }
        }
        let wanted: Vec<(String, Spec)> = trials
            .iter()
            .map(|trial| {
                let (label, spec) = &specs[&trial.arm];
                (format!("{label} seed {}", trial.seed), spec.with_rounds(trial.rounds).with_seed(trial.seed))
            })
            .collect();
        let is_short = trials.iter().any(|trial| trial.rounds < self.base_spec.run.rounds);
        let Some(results) = self.run_all(&wanted, is_short)? else { return Ok(None) };
        let mut observed = Vec::with_capacity(trials.len());
        for ((trial, (_, spec)), result) in trials.iter().zip(&wanted).zip(results) {
            observed.push(self.observed(&result, spec));
            self.results.insert((trial.arm, trial.seed), result);
        }
        Ok(Some(observed))
    }

    fn steps(&self, _candidate: usize, current: usize, rung: usize) -> Vec<usize> {
        let is_searched = |key: &str| self.space.axes.iter().any(|axis| axis.key == key);
        let Step { rate, server } = Step::of(current);
        let outwards = if rate == 0 { 1 } else { rate + 2 * rate.signum() };
        let near: &[Step] = match rung {
            0 => &[Step { rate: rate - 2, server }, Step { rate: rate + 2, server }],
            1 => &[
                Step { rate: outwards, server },
                Step { rate, server: server + 1 },
                Step { rate, server: server - 1 },
            ],
            _ => &[Step { rate: rate - 1, server }, Step { rate: rate + 1, server }],
        };
        let may = |step: &&Step| {
            (step.rate == rate || !is_searched("learn.rate"))
                && (step.server == server || !is_searched("learn.server_rate"))
        };
        [current].into_iter().chain(near.iter().filter(may).filter_map(|step| step.index())).collect()
    }

    fn neighbors(&mut self, leaders: &[Arm], most: usize) -> Result<Vec<usize>, Error> {
        let mut near: Vec<Point> = Vec::new();
        for leader in leaders {
            near.extend(self.space.neighbors(&self.candidates[leader.candidate].point));
        }
        self.screen(&near, most)
    }

    fn begin(&mut self, stage: &'static str, text: &str, candidates: usize) -> Result<(), Error> {
        self.tools.observer.stage(stage, text);
        let (stage, text) = (stage.to_owned(), text.to_owned());
        self.stages.push((stage.clone(), text.clone()));
        self.write(events::Event::Stage { stage, text, candidates })
    }

    fn decide(&mut self, decision: &Decision) -> Result<(), Error> {
        let Decision { stage, arm, verdict, reason } = decision;
        let (stage, candidate) = ((*stage).to_owned(), self.label(*arm));
        let is_drop = matches!(verdict, Verdict::ProvenWorse | Verdict::SetAside);
        let proven = *verdict == Verdict::ProvenWorse;
        if is_drop {
            self.candidates[arm.candidate].lost = Some((stage.clone(), reason.clone(), proven));
        }
        if proven || *verdict == Verdict::Kept {
            self.tools.observer.decided(&stage, &candidate, reason);
        }
        let reason = reason.clone();
        self.write(if is_drop {
            events::Event::Dropped { stage, candidate, reason, proven }
        } else {
            events::Event::Decided { stage, candidate, reason }
        })
    }
}
