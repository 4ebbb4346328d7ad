//! `fedlink run` for experiments with the bound: files with a section `[bound]` or `[theorem]`.

use super::{check_free, create};
use crate::args::RunOptions;
use crate::failure::Exit;
use anyhow::{anyhow, bail};
use fedlink_report::{bound_output, theorem_output};
use fedlink_study::data_folders;
use fedlink_study::experiment::AnyExperiment;
use fedlink_study::output::OutputFolder;
use std::path::Path;
use std::time::Instant;

/// Runs the experiment, which `name` stands for, if it is one with the bound; else there is nothing.
pub fn run(name: &str, experiment: &mut AnyExperiment, options: &RunOptions) -> anyhow::Result<Option<Exit>> {
    let started = Instant::now();
    if matches!(experiment, AnyExperiment::Simulation(_)) {
        return Ok(None);
    }
    if let Some(flag) = pointless(options) {
        bail!("{flag} is for simulations; {name} is computed in one go, so leave it out");
    }
    if let Some(seeds) = options.seeds {
        experiment.set_seeds(seeds)?;
    }
    let free = || OutputFolder::free_name(Path::new("results"), experiment.name());
    let target = options.out.clone().unwrap_or_else(free);
    check_free(&target, options.force)?;
    let threads = options.threads.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let output = match experiment {
        AnyExperiment::Simulation(_) => return Ok(None),
        AnyExperiment::Bound(experiment) => {
            let ran = pool.install(|| experiment.run());
            let (panels, verdicts) = ran.map_err(|error| anyhow!("{}: {error}", experiment.name))?;
            bound_output(experiment, &panels, &verdicts)?
        }
        AnyExperiment::Theorem(experiment) => {
            let data = data_folders(options.data_dir.as_deref());
            theorem_output(experiment, &pool.install(|| experiment.run(&data))?)?
        }
    };
    // All is computed: what goes wrong before this leaves nothing behind.
    let folder = create(&target, options.force)?;
    output.write(&folder)?;
    let written = folder.finish()?;
    if options.json {
        out!("{}", output.summary)?;
    } else if !options.quiet {
        out!("{}", output.text)?;
        outln!("\n{} in {:.1} s", written.display(), started.elapsed().as_secs_f64())?;
    }
    Ok(Some(Exit::Done))
}

/// The first flag given that means nothing here.
fn pointless(options: &RunOptions) -> Option<&'static str> {
    let flags = [
        ("--resume", options.resume),
        ("--cell", options.cell.is_some()),
        ("--dry-run", options.dry_run),
        ("--quick", options.quick),
        ("--checkpoint-every", options.checkpoint_every.is_some()),
        ("--log-rounds", options.log_rounds.is_some()),
        ("--latex", options.latex),
    ];
    flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
}
