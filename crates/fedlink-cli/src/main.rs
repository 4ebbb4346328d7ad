//! The `fedlink` command.
//!
//! Exit codes: 0 done; 2 the request cannot be met as given (the message names what to change); 3 a curve
//! diverged; 130 stopped by Ctrl-C with what was finished saved.

mod args;
mod bound_report;
mod commands;
mod failure;
mod fetch;
mod figure;
mod inspect;
mod interrupt;
mod latex;
mod measured;
mod output;
mod panels;
mod parquet;
mod plots;
mod progress;
mod report;
#[cfg(test)]
mod result_example;
mod results;
mod split;
mod sweep;
mod table;
mod theorem_report;
mod verdicts;

use args::{Arguments, Command};
use clap::Parser;
use failure::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command.unwrap_or_default() {
        Command::Run(options) => commands::run::run(&options),
        Command::Bound(options) => commands::bound::run(&options),
        Command::Plan(options) => commands::plan::run(&options),
        Command::Config(options) => commands::config::run(&options),
        Command::Data(command) => commands::data::run(&command),
        Command::Verify(options) => commands::verify::run(&options),
        Command::Merge(options) => commands::merge::run(&options),
        Command::List(options) => commands::list::run(&options),
    };
    match result {
        Ok(exit) => exit.code(),
        Err(error) => {
            eprintln!("error: {error:#}");
            Exit::BadRequest.code()
        }
    }
}
