//! The `fedlink` command: arguments, progress and messages around [`fedlink_study`] and [`fedlink_report`].
//!
//! Exit codes: 0 done; 1 a system or I/O error, such as a full disk; 2 a request that cannot be met (the
//! message states the remedy); 3 a curve diverged; 130 stopped by Ctrl-C, with finished work saved. A reader
//! that closes the pipe (`fedlink list | head`) does not change them.
//!
//! [`run`] is the whole command as a function, for use inside any process. It never ends the process, and it
//! touches the handling of Ctrl-C only if the process has allowed it by [`quit_on_interrupt`]; otherwise
//! [`stop`] ends a run cleanly.

#![forbid(unsafe_code)]
// They panic if the stream is closed: see `streams`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod streams;

mod args;
mod commands;
mod custom;
mod failure;
mod fetch;
mod inspect;
mod interrupt;
mod progress;
mod remedy;

pub use custom::{NoLoader, PartLoader};
/// The readers of downloaded files, for the fuzz targets.
#[doc(hidden)]
pub use fetch::{archive, cifar_png};
pub use interrupt::{quit_on_interrupt, stop};

use args::bound::BoundSubcommand;
use args::{Arguments, Command};
use clap::Parser;
use failure::Exit;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command with these arguments, of which the first is the name of the program. Output goes to
/// standard output, progress and errors to standard error. `parts` loads the files of `--parts`.
pub fn run(arguments: impl IntoIterator<Item = OsString>, parts: &dyn PartLoader) -> ExitCode {
    ExitCode::from(run_to_code(arguments, parts))
}

/// As [`run`], with the exit code as a number.
pub fn run_to_code(arguments: impl IntoIterator<Item = OsString>, parts: &dyn PartLoader) -> u8 {
    if let Err(problem) = fedlink_study::choose_instructions() {
        errln!("error: {problem}");
        return Exit::BadRequest.code();
    }
    interrupt::survive_file_limits();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(problem) = args::renamed(&arguments).or_else(|| args::plan::by_the_bound(&arguments)) {
        errln!("error: {problem}");
        return Exit::BadRequest.code();
    }
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let arguments = match Arguments::try_parse_from(args::joined(arguments)) {
        Ok(arguments) => arguments,
        // Help and version come this way too.
        Err(message) => {
            if let Some(problem) = args::mistaken(&message, &words) {
                errln!("error: {problem}");
            } else if message.use_stderr() {
                // Arguments may contain control sequences of a terminal.
                err!("{}", message.render());
            } else {
                let _ = message.print();
            }
            return u8::try_from(message.exit_code()).unwrap_or(2);
        }
    };
    let result = match arguments.command.unwrap_or_default() {
        Command::Run(options) => commands::run::run(&options, parts),
        Command::Bound(bound) => match bound.command {
            None => commands::bound::run(&bound.options),
            Some(BoundSubcommand::Plan(options)) => commands::bound_plan::run(&options),
        },
        Command::Plan(options) => commands::plan::run(&options, parts),
        Command::LinkBudget(options) => commands::link_budget::run(&options, parts),
        Command::Config(options) => commands::config::run(&options),
        Command::Check(options) => commands::check::run(&options, parts),
        Command::Data(command) => commands::data::run(&command),
        Command::Verify(options) => commands::verify::run(&options, parts),
        Command::Status(options) => commands::status::run(&options),
        Command::Watch(options) => commands::watch::run(&options),
        Command::Merge(options) => commands::merge::run(&options, parts),
        Command::List(options) => commands::list::run(&options, parts),
        Command::Completions(options) => commands::completions::run(&options),
        Command::Man(options) => commands::man::run(&options),
    };
    match result {
        Ok(exit) => exit.code(),
        Err(error) => {
            errln!("error: {}", remedy::worded(&error));
            Exit::of(&error).code()
        }
    }
}
