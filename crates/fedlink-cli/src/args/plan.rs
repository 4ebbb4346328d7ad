//! The command line of `fedlink plan`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

pub const PLAN_EXAMPLES: &str = "\
Examples:
  fedlink plan hall.toml --goal \"seconds until accuracy >= 0.85 and worst-class >= 0.70\" --budget 15min
  fedlink plan hall.toml --goal \"seconds until accuracy >= 0.85\" --goal joules --budget 200runs
  fedlink plan hall.toml --goal \"joules until accuracy >= 0.85\" --subject-to \"worst-device-joules <= 5\" \\
      --subject-to \"late <= 10 %\" --over schedule.policy=bc,bn2-c --over schedule.k=1..40 \\
      --over radio.uplink_s=0.01..0.1:log --budget 1h --out plan
  fedlink plan hall.toml … --out plan --resume              continue, with the same decisions
  fedlink plan hall.toml … --out plan --resume --budget 5min    five minutes more
  fedlink run plan/best.toml                                the recommended settings

Stages: screen by the link budget, without training; race on paired seeds from few rounds to all, with step
lengths tuned on seeds of their own; confirm the finalists on fresh seeds; run the best under other
assumptions. A budget in runs gives the same decisions on every machine. A run of fewer rounds counts as
that share of a run. The same command with --resume on other machines that share the folder divides the runs
of a budget in runs among them.

Exit codes: 0 answered (also if nothing reaches the goal), 1 system or I/O error, 2 bad request,
130 stopped by Ctrl-C (finished work is saved).";

#[derive(Args, Debug, Default)]
pub struct PlanOptions {
    /// The scenario: a preset (`fedlink list presets`) or a TOML file with one configuration.
    #[arg(value_name = "PRESET|FILE.toml")]
    pub scenario: String,
    /// A cost until conditions hold; may be repeated for a Pareto front. The first one chooses. The name of a
    /// cost alone has the conditions of the first.
    #[arg(long = "goal", value_name = "GOAL", required = true)]
    pub goals: Vec<String>,
    /// A limit that an answer must keep: of a cost until the goal, of the share of late devices, or of a key;
    /// may be repeated.
    #[arg(long, value_name = "LIMIT")]
    pub subject_to: Vec<String>,
    /// A key with the values to search, KEY=a,b,c, KEY=1..40 or KEY=0.01..0.1:log; may be repeated [default:
    /// policy, K, local steps, compressor and uplink time].
    #[arg(long, value_name = "KEY=VALUES")]
    pub over: Vec<String>,
    /// The time, 90s, 15min or 2h, or the full runs, 200runs.
    #[arg(long, value_name = "BUDGET", default_value = "200runs")]
    pub budget: String,
    /// The probability with which a test may drop the best candidate.
    #[arg(long, value_name = "P", default_value_t = 0.05)]
    pub error_rate: f64,
    /// Set a key of the scenario; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Folder for the answer and its runs [default: a new folder under results/].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the folder if it exists and holds only files that fedlink wrote.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Continue in the folder of --out with the same decisions, or with more budget.
    #[arg(long, requires = "out", conflicts_with = "force")]
    pub resume: bool,
    /// Print the settings that would be searched, and run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Show the race as a live page in the browser, until it ends (see `fedlink watch`).
    #[arg(long, conflicts_with = "dry_run")]
    pub watch: bool,
    /// Threads to use; they do not change the results [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Python file with custom parts that the scenario names; may be repeated.
    #[arg(long = "parts", value_name = "FILE.py")]
    pub parts: Vec<PathBuf>,
    /// Folder of data sets, searched before the others.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print decision.json to standard output instead of the answer.
    #[arg(long)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// The flags of the planner by the bound, which was `fedlink plan` until version 0.2.
const OF_THE_BOUND: [&str; 17] = [
    "--k",
    "--tau",
    "--target",
    "--devices",
    "--symbols",
    "--power",
    "--noise",
    "--dim",
    "--gamma",
    "--g",
    "--mu",
    "--l",
    "--d0",
    "--eta",
    "--channels",
    "--samples",
    "--measure",
];

/// The refusal of `fedlink plan` with flags of the planner by the bound.
pub fn by_the_bound(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let (first, rest) = words.split_first()?;
    let is_old = |word: &&&str| OF_THE_BOUND.contains(&word.split('=').next().unwrap_or(word));
    let old = (*first == "plan").then(|| rest.iter().find(is_old)).flatten()?;
    Some(format!(
        "fedlink plan answers by simulation and has no {old}; the planner by the convergence bound is \
         now called fedlink bound plan"
    ))
}
