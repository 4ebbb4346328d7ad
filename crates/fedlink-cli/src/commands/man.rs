//! `fedlink man`: the manual pages, made from the definition of the command line.

use crate::args::{Arguments, ManOptions};
use crate::failure::Exit;
use crate::streams::write_out;
use clap::CommandFactory;
use clap_mangen::Man;
use fedlink_study::output::{make_folder, write_file};
use std::path::Path;

pub fn run(options: &ManOptions) -> anyhow::Result<Exit> {
    let mut command = Arguments::command();
    // Subcommands take over version and help of the whole.
    command.build();
    match &options.out {
        Some(folder) => write_pages(&command, "fedlink", folder)?,
        None => write_out(&page(&command, "fedlink")?)?,
    }
    Ok(Exit::Done)
}

/// The page of `command` and those of its subcommands: `fedlink-data-get.1` for `fedlink data get`.
fn write_pages(command: &clap::Command, name: &str, folder: &Path) -> anyhow::Result<()> {
    make_folder(folder)?;
    write_file(&folder.join(format!("{name}.1")), page(command, name)?)?;
    for subcommand in command.get_subcommands().filter(|one| one.get_name() != "help") {
        write_pages(subcommand, &format!("{name}-{}", subcommand.get_name()), folder)?;
    }
    Ok(())
}

fn page(command: &clap::Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(name).render(&mut page)?;
    Ok(page)
}
