//! `fedlink verify`: judge the claims of an experiment by the runs in a folder.

use crate::args::VerifyOptions;
use crate::failure::Exit;
use crate::sweep::{finished_cells, frozen};
use crate::verdicts::Verdicts;
use anyhow::bail;

pub fn run(options: &VerifyOptions) -> anyhow::Result<Exit> {
    let path = &options.folder;
    let Some(mut experiment) = frozen(path)? else {
        bail!("{} has no config.toml; name the folder that `fedlink run` has written", path.display());
    };
    let (curves, cells) = (experiment.curves()?, experiment.cells()?);
    if let Some(other) = &options.claims {
        let other = super::experiment(Some(other), &[])?;
        experiment.claim_as(&other)?;
    }
    let (runs, missing) = finished_cells(&cells, path)?;
    let runs = runs.iter().map(|done| (cells[done.place].curve, &done.result));
    let verdicts = Verdicts::new(&experiment, &curves, runs)?;
    if verdicts.is_empty() {
        bail!(
            "{} claims nothing; add [claims] to its config.toml or name a file by --claims",
            path.display()
        );
    }
    if options.json {
        print!("{}", verdicts.json()?);
    } else {
        print!("{}", verdicts.text());
    }
    if !missing.is_empty() {
        eprintln!("{} of {} runs are not finished", missing.len(), cells.len());
    }
    Ok(Exit::Done)
}
