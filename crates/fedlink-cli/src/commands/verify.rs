//! `fedlink verify`: judge the claims of an experiment by the results in its folder, and make its runs again.

use crate::args::VerifyOptions;
use crate::custom::PartLoader;
use crate::failure::Exit;
use fedlink::shown::one_line;
use fedlink_study::data_folders;
use fedlink_study::experiment::ClaimsFile;
use fedlink_study::sweep::{Rerun, Verified, rerun, verify};
use serde_json::{Map, json};
use std::time::{SystemTime, UNIX_EPOCH};

pub fn run(options: &VerifyOptions, loader: &dyn PartLoader) -> anyhow::Result<Exit> {
    let claims = options.claims.as_deref().map(ClaimsFile::open).transpose()?;
    let mut json = Map::new();
    match verify(&options.folder, claims.as_ref()) {
        Ok(Verified { verdicts, missing, of, .. }) => {
            if options.json {
                json = serde_json::from_str(&verdicts.json()?)?;
            } else {
                out!("{}", verdicts.text())?;
            }
            if missing > 0 {
                errln!("{missing} of {of} runs are not finished");
            }
        }
        // Runs can be made again without claims.
        Err(fedlink_study::Error::ClaimsNothing(_)) if options.rerun.is_some() && claims.is_none() => {}
        Err(error) => return Err(error.into()),
    }
    let runs = options.rerun.map(|count| repeat(options, loader, count as usize)).transpose()?;
    if options.json {
        let made = |run: &Rerun| {
            let repeated = run.difference.as_ref().map_or(&run.stored, |other| &other.repeated);
            let parts = run.difference.as_ref().map_or(&[][..], |other| &other.parts);
            json!({
                "run": run.name,
                "label": run.label,
                "stored": run.stored,
                "repeated": repeated,
                "differences": parts,
                "not_compared": run.notes,
            })
        };
        json.extend(runs.iter().map(|runs| ("reruns".to_owned(), runs.iter().map(made).collect())));
        outln!("{}", serde_json::to_string_pretty(&json)?)?;
    }
    let runs = runs.unwrap_or_default();
    let different = runs.iter().filter(|run| run.difference.is_some()).count();
    if different > 0 {
        anyhow::bail!(
            "{different} of {} runs of {} are not the same when made again",
            runs.len(),
            options.folder.display()
        );
    }
    if !runs.is_empty() {
        errln!("{} of {} runs are the same when made again", runs.len(), runs.len());
    }
    Ok(Exit::Done)
}

/// Makes runs again. Messages go to standard error, so that standard output stays JSON.
fn repeat(options: &VerifyOptions, loader: &dyn PartLoader, count: usize) -> anyhow::Result<Vec<Rerun>> {
    let parts = loader.load(&options.parts)?;
    let threads = options.threads.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let time = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seed = options.rerun_seed.unwrap_or_else(time);
    errln!("making up to {count} runs again, chosen by --rerun-seed {seed}");
    let mut each = |done: &Rerun| {
        let Rerun { name, label, stored, difference, notes, .. } = done;
        match difference {
            None if notes.is_empty() => errln!("{name} ({label}): the same, digest {stored}"),
            None => errln!("{name} ({label}): the same as far as it can be compared, digest {stored}"),
            Some(difference) => {
                errln!(
                    "{name} ({label}): NOT the same\n  stored    {stored} by {}\n  made now  {} by {}",
                    difference.stored_by,
                    difference.repeated,
                    difference.repeated_by
                );
                difference.parts.iter().for_each(|part| errln!("  {}", one_line(part, 300)));
            }
        }
        notes.iter().for_each(|note| errln!("  not compared: {}", one_line(note, 300)));
        true
    };
    let data = data_folders(options.data_dir.as_deref());
    Ok(rerun(&options.folder, &data, &parts, count, seed, &pool, &mut each)?)
}
