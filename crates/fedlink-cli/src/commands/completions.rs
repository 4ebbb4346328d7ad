//! `fedlink completions`: the command line for a shell, made from its definition.

use crate::args::{Arguments, CompletionsOptions};
use crate::failure::Exit;
use clap::CommandFactory;
use std::io::Write;

pub fn run(options: &CompletionsOptions) -> anyhow::Result<Exit> {
    // Into memory first: the generator panics if it cannot write, and a pipe may close at any time.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "fedlink", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Done)
}
