//! `fedlink run` for files of the bound and of the theorem.

use super::{apply, check_free, filled};
use crate::args::RunOptions;
use crate::failure::Exit;
use anyhow::{anyhow, bail};
use fedlink_report::{TheoryOutput, bound_output, theorem_output};
use fedlink_study::data_folders;
use fedlink_study::experiment::Source;
use fedlink_study::output::OutputFolder;
use fedlink_study::theory::{BoundExperiment, TheoremExperiment};
use std::path::Path;
use std::time::Instant;

/// Computes a figure of the bound.
pub fn bound(source: &Source, options: &RunOptions) -> anyhow::Result<Exit> {
    let mut experiment = BoundExperiment::read(source)?;
    apply(&options.settings, |key, value| experiment.set(key, value))?;
    options.seeds.map_or(Ok(()), |draws| experiment.set_seeds(draws))?;
    compute(source, options, || {
        let (panels, verdicts) = experiment.run().map_err(|error| anyhow!("{}: {error}", experiment.name))?;
        Ok(bound_output(&experiment, &panels, &verdicts)?)
    })
}

/// Checks the theorem.
pub fn theorem(source: &Source, options: &RunOptions) -> anyhow::Result<Exit> {
    let mut experiment = TheoremExperiment::read(source)?;
    apply(&options.settings, |key, value| experiment.set(key, value))?;
    options.seeds.map_or(Ok(()), |seeds| experiment.set_seeds(seeds))?;
    let data = data_folders(options.data_dir.as_deref());
    compute(source, options, || Ok(theorem_output(&experiment, &experiment.run(&data)?)?))
}

/// Writes and prints the output that `work` computes.
fn compute(
    source: &Source,
    options: &RunOptions,
    work: impl FnOnce() -> anyhow::Result<TheoryOutput> + Send,
) -> anyhow::Result<Exit> {
    let started = Instant::now();
    if let Some(flag) = pointless(options) {
        bail!("{flag} is for simulations; {} is computed in one step, so leave it out", source.given);
    }
    let free = || OutputFolder::free_name(Path::new("results"), &source.name);
    let target = options.out.clone().unwrap_or_else(free);
    check_free(&target, options.force)?;
    let threads = options.threads.map_or(0, usize::from);
    let output = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(work)?;
    // The folder is made after the computation, so that an error before leaves nothing behind.
    let written = filled(&target, options.force, |folder| Ok(output.write(folder)?))?;
    if options.tables.json {
        out!("{}", output.summary)?;
    } else if !options.tables.quiet {
        out!("{}", output.text)?;
        outln!("\n{} in {:.1} s", written.display(), started.elapsed().as_secs_f64())?;
    }
    Ok(Exit::Done)
}

/// The first given flag that has no meaning here.
fn pointless(options: &RunOptions) -> Option<&'static str> {
    let flags = [
        ("--resume", options.resume),
        ("--share", options.share.is_some()),
        ("--dry-run", options.dry_run),
        ("--quick", options.quick),
        ("--checkpoint-every", options.checkpoint_every.is_some()),
        ("--log-rounds", options.tables.log_rounds.is_some()),
        ("--latex", options.tables.latex),
    ];
    flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
}
