//! `fedlink merge`: put the runs in a folder together that were made share by share.

use super::data::folders;
use crate::args::MergeOptions;
use crate::failure::Exit;
use crate::output::OutputFolder;
use crate::results;
use crate::sweep::{Extras, Plan, assemble, finished_cells, frozen};
use anyhow::bail;
use std::time::Instant;

/// How many missing runs are named.
const NAMED: usize = 5;

pub fn run(options: &MergeOptions) -> anyhow::Result<Exit> {
    let started = Instant::now();
    let path = &options.folder;
    let Some(experiment) = frozen(path)? else {
        bail!(
            "{} has no config.toml; name the folder that was given to `fedlink run … --out`",
            path.display()
        );
    };
    let plan = Plan::new(experiment, &folders(options.data_dir.as_deref()))?;
    let (runs, missing) = finished_cells(&plan.cells, path)?;
    if runs.is_empty() || (!missing.is_empty() && !options.partial) {
        let named = missing
            .iter()
            .take(NAMED)
            .map(|&place| plan.label(&plan.cells[place]))
            .collect::<Vec<_>>()
            .join(", ");
        let more = if missing.len() > NAMED { ", …" } else { "" };
        bail!(
            "{} of {} runs are missing in {}: {named}{more}; run their shares again, or add --partial to go without them",
            missing.len(),
            plan.cells.len(),
            path.display()
        );
    }
    let folder = OutputFolder::open(path)?;
    let extras =
        Extras { log_rounds: options.log_rounds, latex: options.latex, threads: 1, wall: started.elapsed() };
    let assembled = assemble(&plan, &runs, &folder, &extras)?;
    if options.json {
        print!("{}", assembled.summary);
    } else if !options.quiet {
        print!("{}", assembled.text());
        println!("\n{}: {} runs", path.display(), runs.len());
    }
    Ok(results::exit(&assembled.curves))
}
