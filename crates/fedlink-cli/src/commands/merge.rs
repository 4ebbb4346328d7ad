//! `fedlink merge`: put the runs in a folder together that were made share by share.

use crate::args::MergeOptions;
use crate::custom::PartLoader;
use crate::failure::Exit;
use fedlink_report::{WriteOptions, write_all};
use fedlink_study::data_folders;
use fedlink_study::output::OutputFolder;
use fedlink_study::sweep::merge;
use std::time::Instant;

pub fn run(options: &MergeOptions, loader: &dyn PartLoader) -> anyhow::Result<Exit> {
    let started = Instant::now();
    let path = &options.folder;
    let parts = loader.load(&options.parts)?;
    let (plan, runs) = merge(path, &data_folders(options.data_dir.as_deref()), options.partial, &parts)?;
    let folder = OutputFolder::open(path)?;
    super::note_left_aside(path)?;
    let mut write = WriteOptions::new(1, started.elapsed());
    (write.log_rounds, write.latex) = (options.tables.log_rounds.unwrap_or_default(), options.tables.latex);
    let assembled = write_all(&plan, &runs, &folder, &write)?;
    if options.tables.quiet || options.tables.json {
        // As in the text, which is not printed here.
        err!("{}", assembled.unfinished_text());
        assembled.notes.iter().for_each(|note| errln!("{note}"));
    }
    if options.tables.json {
        out!("{}", assembled.summary)?;
    } else if !options.tables.quiet {
        out!("{}", assembled.text())?;
        outln!("\n{}: {} runs", path.display(), runs.len())?;
    }
    Ok(Exit::after(&assembled.curves, false))
}
