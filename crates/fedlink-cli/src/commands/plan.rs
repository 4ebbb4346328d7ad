//! `fedlink plan`: the settings that reach a goal at the least cost.

use super::{create, experiment, out};
use crate::args::plan::PlanOptions;
use crate::custom::PartLoader;
use crate::failure::Exit;
use crate::interrupt;
use crate::progress::duration;
use fedlink::shown::one_line;
use fedlink_report::plan_page;
use fedlink_study::data_folders;
use fedlink_study::experiment::Experiment;
use fedlink_study::output::OutputFolder;
use fedlink_study::plan::{self, Answer, PlanObserver, Planned, Planner, Request, Space};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The folder of results without `--out`.
const RESULTS: &str = "results";
/// The most characters of a line of progress.
const LINE: usize = 200;

pub fn run(options: &PlanOptions, loader: &dyn PartLoader) -> anyhow::Result<Exit> {
    let parts = loader.load(&options.parts)?;
    let PlanOptions { goals, subject_to, over, budget, error_rate, .. } = options;
    let request = Request::parse(goals, subject_to, over, budget, *error_rate)?;
    let scenario = experiment(Some(&options.scenario), &options.settings)?;
    plan::check(&request, &scenario, &parts)?;
    interrupt::listen()?;
    interrupt::quit_until_saving("stopped before the first run; nothing was written".into());
    let target = target(options, &scenario);
    let threads = options.threads.map_or_else(super::run::default_threads, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let folders = data_folders(options.data_dir.as_deref());
    let progress = PlanProgress::new(options.quiet);
    let dry = options.dry_run.then(tempfile::tempdir).transpose()?;
    let folder = match &dry {
        Some(dry) => OutputFolder::open(dry.path())?,
        None if options.resume => OutputFolder::open(&target).map_err(|error| out(error, " or add"))?,
        None => create(&target, options.force)?,
    };
    interrupt::save_first();
    let _page = options.watch.then(|| super::watch::beside(folder.path())).transpose()?;
    let planner = Planner {
        request: &request,
        folder: folder.path(),
        folders: &folders,
        parts: &parts,
        pool: &pool,
        observer: &progress,
        stop: &interrupt::stop_requested,
    };
    let planned = planner.plan(scenario, options.dry_run);
    progress.end();
    match planned? {
        Planned::Dry { space, runs, candidates, seconds } => {
            out!("{}", dry_text(&space, runs, candidates, seconds))?;
            Ok(Exit::Done)
        }
        Planned::Stopped => {
            let path = folder.path().display();
            errln!("stopped; the same command with --out {path} --resume continues");
            Ok(Exit::Interrupted)
        }
        Planned::Answered(answer, best) => {
            plan_page::write(&folder, &answer, best.as_ref())?;
            let has_best = best.is_some();
            let folder = folder.finish()?;
            if options.json {
                out!("{}", serde_json::to_string_pretty(&answer)? + "\n")?;
            } else {
                out!("\n{}", answer.text())?;
                written(&answer, &folder, has_best)?;
            }
            Ok(Exit::Done)
        }
    }
}

fn written(answer: &Answer, folder: &Path, has_best: bool) -> anyhow::Result<()> {
    let best = if has_best { "best.toml, flower.toml, " } else { "" };
    outln!(
        "{:<13} {}: plan.html, {best}decision.json, candidates.csv, candidates.parquet",
        "written",
        folder.display()
    )?;
    let spent = answer.spent_runs;
    outln!("{:<13} {spent:.1} full runs, {}", "spent", duration(answer.seconds))?;
    if has_best {
        outln!("{:<13} fedlink run {}", "next", folder.join("best.toml").display())?;
    }
    Ok(())
}

fn target(options: &PlanOptions, scenario: &Experiment) -> PathBuf {
    let name = if scenario.name.is_empty() { "plan".to_owned() } else { format!("{}-plan", scenario.name) };
    options.out.clone().unwrap_or_else(|| OutputFolder::free_name(Path::new(RESULTS), &name))
}

fn dry_text(space: &Space, runs: f64, candidates: usize, seconds: f64) -> String {
    let mut text = String::new();
    for axis in &space.axes {
        let values: Vec<String> = axis.values.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "{:<22} {}", axis.key, values.join(", "));
    }
    text + &format!(
        "{:.0} settings; a full run takes about {}; the budget is {runs:.0} full runs, so that {candidates} \
         candidates race\n",
        space.size(),
        duration(seconds)
    )
}

/// Lines on standard error, and a bar on a terminal.
struct PlanProgress {
    quiet: bool,
    bar: Option<ProgressBar>,
    shown: Mutex<Instant>,
}

/// Time between two lines of progress.
const EVERY: Duration = Duration::from_secs(10);

impl PlanProgress {
    fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("  {bar:32} {pos}/{len} runs");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─");
            ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4)).with_style(style)
        });
        Self { quiet, bar, shown: Mutex::new(Instant::now()) }
    }

    fn line(&self, text: &str) {
        let text = one_line(text, LINE);
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.suspend(|| errln!("{text}")),
            None => errln!("{text}"),
        }
    }

    fn is_due(&self) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let due = shown.elapsed() >= EVERY;
        if due {
            *shown = Instant::now();
        }
        due
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl PlanObserver for PlanProgress {
    fn stage(&self, stage: &str, text: &str) {
        self.line(&format!("{stage:<8} {text}"));
    }

    fn screened(&self, done: usize, passed: usize) {
        if self.is_due() {
            self.line(&format!("         {done} settings judged, {passed} may race"));
        }
    }

    fn runs(&self, done: usize, of: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        } else if self.is_due() {
            self.line(&format!("         {done}/{of} runs"));
        }
    }

    fn decided(&self, _stage: &str, candidate: &str, reason: &str) {
        self.line(&format!("         {candidate}: {reason}"));
    }
}
