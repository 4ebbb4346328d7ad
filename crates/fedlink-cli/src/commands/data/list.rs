//! `fedlink data list`: the data sets and their folders.

use crate::args::DataListOptions;
use crate::failure::Exit;
use crate::inspect;
use fedlink::data::catalog::{CATALOG, Entry, Files};
use fedlink_study::data_folders;
use serde::Serialize;
use std::path::PathBuf;

/// A data set as `--json` prints it.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    meaning: &'static str,
    /// Height, width, channels.
    shape: [usize; 3],
    classes: usize,
    train: usize,
    test: usize,
    /// Part of the program: no file is needed.
    embedded: bool,
    /// The folder that holds all of its files.
    found: Option<PathBuf>,
    files: Vec<&'static str>,
}

pub fn run(options: &DataListOptions) -> anyhow::Result<Exit> {
    let folders = data_folders(options.data_dir.as_deref());
    let row = |entry: &'static Entry| Row {
        name: entry.name,
        meaning: entry.meaning,
        shape: entry.shape,
        classes: entry.classes,
        train: entry.train,
        test: entry.test,
        embedded: matches!(entry.files, Files::Embedded),
        found: inspect::location(entry, &folders),
        files: entry.files.list().iter().map(|file| file.name).collect(),
    };
    let rows: Vec<Row> = CATALOG.iter().map(row).collect();
    if options.json {
        outln!("{}", serde_json::to_string_pretty(&rows)?)?;
        return Ok(Exit::Done);
    }
    for row in &rows {
        let [height, width, channels] = row.shape;
        outln!("{}: {}", row.name, row.meaning)?;
        outln!(
            "    {height} × {width} × {channels}, {} classes, {} training and {} test samples",
            row.classes,
            row.train,
            row.test
        )?;
        match &row.found {
            Some(folder) => outln!("    {}", folder.display())?,
            None if row.embedded => outln!("    embedded")?,
            None => outln!("    not here: fedlink data get {}", row.name)?,
        }
    }
    outln!("\nLooked in, in this order:")?;
    for folder in &folders {
        outln!("    {}", folder.display())?;
    }
    Ok(Exit::Done)
}
