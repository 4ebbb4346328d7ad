//! The command line.

pub mod bound;

use bound::{BOUND_EXAMPLES, BoundOptions, PLAN_EXAMPLES, PlanOptions};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Federated learning over wireless links: who should send, and what does it cost?
///
/// Without a command, `fedlink run demo`: four scheduling policies race on embedded data.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  fedlink                                       race the four policies on embedded data
  fedlink run --set schedule.policy=bc          one of them only
  fedlink config > my.toml; fedlink run my.toml an experiment of your own
  fedlink run fig3                              the paper's convergence bound, and what it claims of it
  fedlink plan --gamma 2 --g 3 --rounds 300     which K and which τ for your deployment
  fedlink list policies                         what there is to choose from";

const RUN_EXAMPLES: &str = "\
Examples:
  fedlink run                                            the preset `demo`
  fedlink run demo --set schedule.k=10 --out results/k10 with ten devices a round
  fedlink run my.toml --seeds 5 --threads 2              your file, five seeds
  fedlink run --set run.rounds=20 --json | jq '.[].final_accuracy'

Exit codes: 0 done, 2 bad request, 3 a curve diverged, 130 stopped by Ctrl-C (finished work is saved).";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an experiment and write its results to a folder.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunOptions),
    /// Compute the convergence bound.
    #[command(after_help = BOUND_EXAMPLES)]
    Bound(BoundOptions),
    /// Find the best K and τ for a deployment by the convergence bound.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanOptions),
    /// Print a complete, commented configuration.
    #[command(after_help = "Examples:\n  fedlink config > my.toml\n  fedlink config demo")]
    Config(ConfigOptions),
    /// Look at data sets.
    #[command(subcommand, after_help = "Examples:\n  fedlink data preview digits --out digits.png")]
    Data(DataCommand),
    /// List what a configuration can choose from.
    #[command(after_help = "Examples:\n  fedlink list\n  fedlink list policies --json")]
    List(ListOptions),
}

impl Default for Command {
    fn default() -> Self {
        Self::Run(RunOptions::default())
    }
}

#[derive(Args, Debug, Default)]
pub struct RunOptions {
    /// A preset (`fedlink list presets`) or a TOML file.
    #[arg(value_name = "PRESET|FILE.toml", default_value = "demo")]
    pub experiment: Option<String>,
    /// Set a key of the configuration; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Run that many seeds, counted up from run.seed.
    #[arg(long, value_name = "N")]
    pub seeds: Option<u64>,
    /// Threads to use; the results do not depend on it [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Folder for the results [default: a new folder under results/].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Folder that holds data sets, looked in before the others (`fedlink data list` tells which).
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Replace the folder if it is there already.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Print summary.json to standard output instead of the table.
    #[arg(long)]
    pub json: bool,
    /// No progress and no table.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args, Debug)]
pub struct ConfigOptions {
    /// A preset (`fedlink list presets`) or a TOML file; without it, the defaults.
    #[arg(value_name = "PRESET|FILE.toml")]
    pub experiment: Option<String>,
    /// Set a key of the configuration; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Write a contact sheet of training pictures, a row for each class.
    #[command(after_help = "Examples:\n  fedlink data preview digits --out digits.png")]
    Preview(PreviewOptions),
}

#[derive(Args, Debug)]
pub struct PreviewOptions {
    /// The data set (`fedlink list datasets`).
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The PNG file to write.
    #[arg(long, value_name = "FILE.png")]
    pub out: PathBuf,
    /// Folder that holds data sets, looked in before the others.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ListOptions {
    /// What to list; without it, everything.
    #[arg(value_name = "KIND", value_parser = kinds())]
    pub kind: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn kinds() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(fedlink::parts::kinds().into_iter().map(|kind| kind.name))
}
