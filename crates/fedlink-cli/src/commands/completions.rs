//! `fedlink completions`: the command line for a shell, made from its definition.

use crate::args::{Arguments, CompletionsOptions};
use crate::failure::Exit;
use crate::streams::write_out;
use clap::CommandFactory;

pub fn run(options: &CompletionsOptions) -> anyhow::Result<Exit> {
    // Into memory first: the generator panics if it cannot write, and a pipe may close at any time.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "fedlink", &mut script);
    write_out(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
