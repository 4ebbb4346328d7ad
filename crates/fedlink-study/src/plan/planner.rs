//! The stages of a plan, from a request to an answer.

use super::answer::{Answer, Stage};
use super::bench::{PlanObserver, RunBench, Tools};
use super::files::Best;
use super::infeasible::infeasible;
use super::insight::Insight;
use super::journal::{Journal, Wallet};
use super::request::{Budget, Request};
use super::space::{Axis, Point, Space};
use crate::error::Error;
use crate::events::{Event, EventLog};
use crate::experiment::{Experiment, Run};
use crate::folder::names::{check_runs_folder, runs_folder};
use crate::goals::Goal;
use crate::race::{Bench, Ended, Finished, Purse, Race, Rungs};
use fedlink::parts::Parts;
use fedlink::spec::identity::trajectory_digest;
use fedlink::spec::{ConfigError, Spec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use toml::Value;

/// The share of the budget that is kept for the sensitivities, and the most runs of it.
const VARY: f64 = 0.1;
const MOST_VARIED: f64 = 42.0;
/// The share of the budget that may go to every value of the longest axis in the first rung.
const COVERING: f64 = 0.3;
/// Screened points per point that is wanted, before the search for more ends.
const SCREENED: usize = 20;
/// The first points whose time is estimated, and the rounds of each.
const TIMED: usize = 5;
const TIMED_ROUNDS: u64 = 2;

/// Plans in a folder.
pub struct Planner<'a> {
    /// The question.
    pub request: &'a Request,
    /// The folder of the runs.
    pub folder: &'a Path,
    /// Folders of data sets.
    pub folders: &'a [PathBuf],
    /// Custom parts that the scenario may name.
    pub parts: &'a Parts,
    /// The threads that train.
    pub pool: &'a rayon::ThreadPool,
    /// Receives the progress.
    pub observer: &'a dyn PlanObserver,
    /// Called after every round by several threads; true saves the runs and stops the plan.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// How a plan ended.
#[derive(Debug)]
pub enum Planned {
    /// With an answer and the file of the recommended settings, if there are any.
    Answered(Box<Answer>, Option<Best>),
    /// It would search so.
    Dry {
        /// The axes with their values.
        space: Space,
        /// Full runs of the budget.
        runs: f64,
        /// Candidates of the first rung.
        candidates: usize,
        /// Seconds of a full run.
        seconds: f64,
    },
    /// The user stopped it.
    Stopped,
}

/// The scenario of a plan: its experiment with `run.fairness`, which the answer needs.
fn scenario(experiment: Experiment, request: &Request, parts: &Parts) -> Result<(Experiment, Spec), Error> {
    let goals = request.goals.iter().map(|goal| (goal.cost.name().to_owned(), Goal::Until(goal.clone())));
    let mut experiment = experiment.with_goals_only(goals.collect());
    experiment.set_value("run.fairness", Value::Boolean(true))?;
    experiment.set_value("run.seeds", Value::Integer(1))?;
    let spec = experiment.clone().only_spec(parts)?;
    Ok((experiment, spec))
}

/// An error if the question does not fit the scenario, before anything is written.
pub fn check(request: &Request, experiment: &Experiment, parts: &Parts) -> Result<(), Error> {
    prepared(experiment.clone(), request, parts).map(drop)
}

/// The scenario of a plan and the space that it searches.
fn prepared(
    experiment: Experiment,
    request: &Request,
    parts: &Parts,
) -> Result<(Experiment, Spec, Space), Error> {
    let (experiment, spec) = scenario(experiment, request, parts)?;
    let needs_units = request.goals.iter().any(|goal| Goal::Until(goal.clone()).needs_units());
    if needs_units && spec.radio.bandwidth_hz.is_none() {
        let problem = "is not set, so that nothing has seconds and joules, which the goal counts; set it";
        return Err(ConfigError::new("radio.bandwidth_hz", problem).into());
    }
    let space = match &request.over[..] {
        [] => Space::of_scenario(&spec),
        axes => Space { axes: axes.to_vec() },
    };
    for axis in &space.axes {
        for value in &axis.values {
            experiment.clone().set_value(&axis.key, value.clone())?;
        }
    }
    Ok((experiment, spec, space))
}

impl Planner<'_> {
    /// Answers the question about a scenario. The folder must exist and be new, or have been begun by the
    /// same question.
    pub fn plan(&self, experiment: Experiment, dry: bool) -> Result<Planned, Error> {
        let (experiment, spec, space) = prepared(experiment, self.request, self.parts)?;
        let goal = Goal::Until(self.request.goals[0].clone()).to_string();
        let journal = Journal::open(self.folder, self.request, &scenario_text(&spec))?;
        check_runs_folder(self.folder)?;
        let runs = runs_folder(self.folder);
        std::fs::create_dir_all(&runs).map_err(Error::file("make", &runs))?;
        let tools = Tools {
            parts: self.parts,
            folders: self.folders,
            folder: self.folder,
            pool: self.pool,
            observer: self.observer,
            stop: self.stop,
        };
        let log = EventLog::open(self.folder)?;
        let opened =
            Event::Opened { study: experiment.name.clone(), kind: "plan".into(), runs: 0, goal: Some(goal) };
        log.append(opened)?;
        let mut bench = RunBench::new(tools, experiment, self.request, space, log)?;
        let points = Self::points(&bench);
        let estimate = match self.request.budget {
            Budget::Time(_) => self.estimate(&bench, &points)?,
            Budget::Runs(_) if dry => self.estimate(&bench, &points)?,
            Budget::Runs(_) => 0.0,
        };
        let mut wallet = Wallet::new(self.folder, journal, self.request.budget, estimate);
        let total = wallet.left(0.0);
        let rungs = rungs(&spec, &bench, total);
        let extra = (VARY * total).clamp(0.0, MOST_VARIED);
        let longest = bench.space.axes.iter().map(|axis| axis.values.len()).max().unwrap_or(1);
        // Every value comes up about twice, if that takes no more than its share of the budget.
        let covering = (2 * longest).min((COVERING * total / rungs.price(0, 1)) as usize);
        let wanted = rungs.width(0, total - extra, 1).max(covering).min(points.len());
        if dry {
            let space = bench.space.clone();
            return Ok(Planned::Dry { space, runs: total, candidates: wanted, seconds: estimate });
        }
        let text = format!(
            "{:.0} settings; the link budget judges them until {wanted} may race",
            bench.space.size()
        );
        bench.begin("screen", &text, wanted)?;
        let most = wanted.saturating_mul(SCREENED).min(points.len());
        let passed = bench.screen(&points[..most], wanted)?;
        let screened = (bench.candidates.len(), ruled_out(&bench));
        if (self.stop)() {
            return Self::stopped(&bench, wallet);
        }
        if passed.is_empty() {
            let mut answer = self.answer(&bench, &wallet, 0.0);
            (answer.screened, answer.ruled_out) = screened;
            answer.infeasible = infeasible(&bench, None, self.request);
            Self::close(&bench, wallet)?;
            return Ok(Planned::Answered(Box::new(answer), None));
        }
        let mut race = Race {
            bench: &mut bench,
            purse: &mut wallet,
            rungs,
            scenarios: 1,
            goals: self.request.goals.len(),
            error: self.request.error,
            first_seed: spec.run.seed,
            table: BTreeMap::new(),
            spent: 0.0,
        };
        let ended = race.run(&passed, extra)?;
        let spent = race.spent;
        let Ended::Finished(finished) = ended else { return Self::stopped(&bench, wallet) };
        let left = wallet.left(spent).max(0.0).min(extra);
        let Some((mut answer, toml)) = self.conclude(&mut bench, &wallet, &finished, (spent, left))? else {
            return Self::stopped(&bench, wallet);
        };
        (answer.screened, answer.ruled_out) = screened;
        if let Some(best) = &answer.recommended {
            let reason = best.costs.iter().map(|cost| cost.text.clone()).collect::<Vec<_>>().join("; ");
            let candidate = best.label.clone();
            bench.write(Event::Decided { stage: "recommend".into(), candidate, reason })?;
        }
        Self::close(&bench, wallet)?;
        Ok(Planned::Answered(Box::new(answer), toml))
    }

    fn conclude(
        &self,
        bench: &mut RunBench<'_>,
        wallet: &Wallet,
        finished: &Finished,
        (spent, extra): (f64, f64),
    ) -> Result<Option<(Answer, Option<Best>)>, Error> {
        let mut answer = self.answer(bench, wallet, spent);
        let mut insight = Insight { bench, finished, request: self.request };
        let best = insight.fill(&mut answer)?;
        let Some(best) = best else {
            answer.infeasible = infeasible(bench, Some(finished), self.request);
            return Ok(Some((answer, None)));
        };
        let seeds = finished.fresh.clone();
        let most = ((extra / 6.0) as u64).clamp(3, 6).min(seeds.end - seeds.start);
        if !insight.vary(&mut answer, best, seeds.start..seeds.start + most)? {
            return Ok(None);
        }
        let toml = bench.with(&bench.settings(best)?)?.expand(self.parts)?.to_editable_toml();
        answer.seconds = wallet.seconds();
        Ok(Some((answer, Some(Best::new(toml, &bench.spec(best)?)))))
    }

    fn answer(&self, bench: &RunBench, wallet: &Wallet, spent: f64) -> Answer {
        let Request { goals, constraints, budget, error, .. } = self.request;
        let seed = bench.scenario().run.seed;
        let seeds = [
            ("race", format!("from {seed}")),
            ("tune", format!("from {}", seed + crate::race::TUNE_SEEDS)),
            ("confirm", format!("from {}", seed + crate::race::CONFIRM_SEEDS)),
        ];
        let values = |axis: &Axis| {
            axis.values.iter().map(|value| serde_json::to_value(value).unwrap_or_default()).collect()
        };
        Answer {
            format: "fedlink plan".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            scenario: bench.experiment.name.clone(),
            goals: goals.iter().map(|goal| Goal::Until(goal.clone()).to_string()).collect(),
            constraints: constraints.iter().map(ToString::to_string).collect(),
            budget: budget.to_string(),
            spent_runs: spent,
            seconds: wallet.seconds(),
            error_rate: *error,
            searched: bench.space.axes.iter().map(|axis| (axis.key.clone(), values(axis))).collect(),
            points: bench.space.size(),
            seeds: seeds.map(|(name, text)| (name.to_owned(), text)).into(),
            stages: bench
                .stages
                .iter()
                .map(|(stage, text)| Stage { stage: stage.clone(), text: text.clone() })
                .collect(),
            ..Answer::default()
        }
    }

    fn stopped(bench: &RunBench, wallet: Wallet) -> Result<Planned, Error> {
        bench.log.append(Event::Closed { state: "stopped".into() })?;
        wallet.close(false)?;
        Ok(Planned::Stopped)
    }

    fn close(bench: &RunBench, wallet: Wallet) -> Result<(), Error> {
        bench.log.append(Event::Closed { state: "finished".into() })?;
        wallet.close(true)
    }

    /// The points in the order in which they are screened: the scenario's own first.
    fn points(bench: &RunBench) -> Vec<Point> {
        let config = bench.scenario().resolved().to_table();
        let value = |key: &str| {
            let mut words = key.split('.');
            let mut value = config.get(words.next()?)?;
            for word in words {
                value = value.get(word)?;
            }
            Some(value.clone())
        };
        let own = bench.space.point_of(value);
        let points = bench.space.points();
        let others = points.into_iter().filter(|point| Some(point) != own.as_ref());
        own.clone().into_iter().chain(others).collect()
    }

    /// Seconds of a full run: the mean of the first points that can run.
    fn estimate(&self, bench: &RunBench, points: &[Point]) -> Result<f64, Error> {
        let specs: Vec<Spec> = points
            .iter()
            .filter_map(|point| bench.resolve(&bench.space.settings(point)).ok())
            .filter(|spec| bench.base().simulation(&Run::new(0, spec.clone())).is_ok())
            .take(TIMED)
            .collect();
        let mut total = 0.0;
        for spec in &specs {
            let mut simulation = bench.base().simulation(&Run::new(0, spec.clone()))?;
            // The first round makes what later ones reuse.
            self.pool.install(|| simulation.step())?;
            let started = Instant::now();
            for _ in 0..TIMED_ROUNDS.min(spec.run.rounds - 1) {
                self.pool.install(|| simulation.step())?;
            }
            let round = started.elapsed().as_secs_f64() / TIMED_ROUNDS as f64;
            let started = Instant::now();
            self.pool.install(move || simulation.evaluate())?;
            let evaluation = started.elapsed().as_secs_f64() / spec.run.evaluate_every as f64;
            total += spec.run.rounds as f64 * (round + evaluation);
        }
        Ok(if specs.is_empty() { 1.0 } else { total / specs.len() as f64 })
    }
}

/// The configuration by which a folder knows its scenario.
fn scenario_text(spec: &Spec) -> String {
    fedlink::record::hexadecimal(&fedlink::spec::identity::config_digest(spec))
}

fn rungs(spec: &Spec, bench: &RunBench, total: f64) -> Rungs {
    // Where rounds depend on how many there will be, a shorter run is another one.
    let is_prefix = trajectory_digest(spec) == trajectory_digest(&spec.with_rounds(spec.run.rounds + 1));
    let evaluations = bench.least_rounds() / spec.run.evaluate_every.max(1);
    let is_tuned = bench.steps(0, 0, 0).len() > 1;
    Rungs::new(spec.run.rounds, (spec.run.evaluate_every, evaluations), is_prefix, is_tuned, total)
}

fn ruled_out(bench: &RunBench) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for kind in bench.candidates.iter().filter_map(|candidate| candidate.screened.kind) {
        *counts.entry(kind.to_owned()).or_insert(0) += 1;
    }
    counts
}
