//! `fedlink run`: run an experiment, show its progress, write its results.

use super::data::folders;
use super::{experiment, theory_run};
use crate::args::RunOptions;
use crate::failure::Exit;
use crate::output::OutputFolder;
use crate::sweep::{Extras, Plan, Runner, assemble, check_same, dry_run, freeze, unfinished};
use crate::{interrupt, results};
use anyhow::{anyhow, bail};
use fedlink_study::experiment::Experiment;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Rounds between checkpoints, if the user does not say.
const CHECKPOINT_EVERY: u64 = 100;

/// Where results go without `--out`.
const RESULTS: &str = "results";

pub fn run(options: &RunOptions) -> anyhow::Result<Exit> {
    if let Some(exit) = theory_run::run(options)? {
        return Ok(exit);
    }
    let started = Instant::now();
    interrupt::listen()?;
    let experiment = read(options)?;
    let target = target(options, &experiment);
    let begun = options.goes_on() && target.exists() && check_same(&target, &experiment)?;
    let plan = Plan::new(experiment, &folders(options.data_dir.as_deref()))?;
    let threads = options.threads.map_or_else(default_threads, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let places = options.cell.map_or_else(|| plan.longest_first(), |share| plan.share(share));
    if options.dry_run {
        print!("{}", dry_run(&plan, &places, &pool)?);
        return Ok(Exit::Done);
    }

    let folder = if options.goes_on() {
        OutputFolder::open(&target)?
    } else {
        OutputFolder::create(&target, options.force)?
    };
    if !begun {
        freeze(folder.path(), &plan.experiment)?;
    }
    let runner = Runner {
        plan: &plan,
        folder: folder.path(),
        pool: &pool,
        checkpoint_every: options.checkpoint_every.unwrap_or(CHECKPOINT_EVERY),
        log_rounds: options.log_rounds,
        quiet: options.quiet,
    };
    let go_on = || {
        let quick = if options.quick { " --quick" } else { "" };
        let mut settings =
            options.settings.iter().map(|setting| format!(" --set {setting}")).collect::<Vec<_>>();
        settings.extend(options.seeds.map(|seeds| format!(" --seeds {seeds}")));
        let name = options.experiment.as_deref().unwrap_or("demo");
        format!("fedlink run {name}{quick}{} --out {} --resume", settings.concat(), target.display())
    };
    let runs = runner
        .run(&places)
        .map_err(|error| anyhow!("{error:#}; what is done is kept, and `{}` goes on", go_on()))?;
    if let Some(share) = options.cell {
        let ended = runs.iter().filter(|done| done.result.status.has_ended()).count();
        if !options.quiet {
            println!(
                "share {share}: {ended} of {} runs done; `fedlink merge {}` puts all shares together",
                places.len(),
                target.display()
            );
        }
        return Ok(if interrupt::asked() { Exit::Interrupted } else { Exit::Done });
    }
    if runs.is_empty() {
        eprintln!("stopped before the first round; nothing was written");
        return Ok(Exit::Interrupted);
    }
    let extras =
        Extras { log_rounds: options.log_rounds, latex: options.latex, threads, wall: started.elapsed() };
    let assembled = assemble(&plan, &runs, &folder, &extras)?;
    let exit = results::exit(&assembled.curves);
    // What an unfinished run replaces is not thrown away.
    let place = if exit == Exit::Interrupted { target.clone() } else { folder.finish()? };
    if exit == Exit::Interrupted {
        eprintln!("stopped; `{}` goes on", go_on());
    }
    if options.json {
        print!("{}", assembled.summary);
    } else if !options.quiet {
        print!("\n{}", assembled.text());
        println!("\n{} in {:.1} s", place.display(), started.elapsed().as_secs_f64());
        println!("  report.html, plots/, results.csv, summary.json, split.json, config.toml");
    }
    Ok(exit)
}

/// The experiment with what the command line changes in it.
fn read(options: &RunOptions) -> anyhow::Result<Experiment> {
    let name = options.experiment.as_deref().unwrap_or("demo");
    let mut experiment = experiment(Some(name), &[])?;
    if options.quick {
        if !experiment.has_quick() {
            bail!("--quick: {name} has no [quick] section; use --set run.rounds=… instead");
        }
        experiment.quicken()?;
    }
    super::apply(&mut experiment, &options.settings)?;
    if let Some(seeds) = options.seeds {
        experiment.set("run.seeds", &seeds.to_string())?;
    }
    Ok(experiment)
}

/// The folder of the results.
fn target(options: &RunOptions, experiment: &Experiment) -> PathBuf {
    let base = Path::new(RESULTS);
    let go_on = || options.resume.then(|| unfinished(base, &experiment.name)).flatten();
    let free = || OutputFolder::free_name(base, &experiment.name);
    options.out.clone().or_else(go_on).unwrap_or_else(free)
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
