//! The `fedlink` command.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    fedlink_cli::quit_on_interrupt(|| std::process::exit(130));
    fedlink_cli::run(std::env::args_os(), &fedlink_cli::NoLoader)
}
