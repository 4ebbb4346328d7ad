//! The command line of `fedlink bound` and `fedlink bound plan`.

use clap::{Args, Subcommand};
use fedlink_theory::rho::Choice;
use std::ops::RangeInclusive;
use std::path::PathBuf;

pub const BOUND_EXAMPLES: &str = "\
The learning rate --eta is one of
  0.1                      the same in every round
  inverse-time             1000/(mu*tau*(t+1000)), the paper's figure 3
  inverse-time:20          1000/(20*mu*(t+1000)), the paper's figure 4
  \"0.3*sqrt(100/(t+100))\"  an expression in t, mu and tau: + - * / ^ ( ) sqrt exp log min max
  @rates.txt               a table with one number per round, separated by blanks, commas or newlines
and must stay within 0 < eta <= min(1, 1/(mu*tau)).

Examples:
  fedlink bound                                          the paper's figure 3, uneven data
  fedlink bound --k 1,3,5 --gamma 1 --g 1 --draws 20     even data, 95 % intervals over 20 channels
  fedlink bound --k 5 --tau 1,5,20 --mu 0.25 --eta inverse-time:20 --out results/tau
  fedlink bound --json | jq '.curves[] | {label, final}'";

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BoundCommand {
    #[command(subcommand)]
    pub command: Option<BoundSubcommand>,
    #[command(flatten)]
    pub options: BoundOptions,
}

#[derive(Debug, Subcommand)]
pub enum BoundSubcommand {
    /// Find the best K and τ for a deployment by the convergence bound.
    #[command(after_help = BOUND_PLAN_EXAMPLES)]
    Plan(Box<BoundPlanOptions>),
}

#[derive(Args, Debug)]
pub struct BoundOptions {
    /// K, devices scheduled in a round; a list makes a curve of each.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = count,
        default_value = "1,3,5,10,15,20"
    )]
    pub k: Vec<u64>,
    /// τ, local steps in a round; a list makes a curve of each.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = count, default_value = "3")]
    pub tau: Vec<u64>,
    /// Γ, how differently the devices' data are distributed: F* minus the mean of the devices' own minima.
    #[arg(long, value_name = "X", default_value_t = 10.0, allow_negative_numbers = true)]
    pub gamma: f64,
    /// G, root of the bound on the mean square norm of a stochastic gradient.
    #[arg(long, value_name = "X", default_value_t = 10.0, allow_negative_numbers = true)]
    pub g: f64,
    /// μ, strong convexity.
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    pub mu: f64,
    /// L, smoothness.
    #[arg(long, value_name = "X", default_value_t = 5.0, allow_negative_numbers = true)]
    pub l: f64,
    /// ‖θ(0) − θ*‖², squared distance at the start.
    #[arg(long, value_name = "X", default_value_t = 500.0, allow_negative_numbers = true)]
    pub d0: f64,
    /// M, devices.
    #[arg(long, value_name = "N", value_parser = count, default_value = "100")]
    pub devices: u64,
    /// n, channel symbols in a round.
    #[arg(long, value_name = "N", value_parser = count, default_value = "1e5")]
    pub symbols: u64,
    /// d, parameters of the model.
    #[arg(long, value_name = "N", value_parser = count, default_value = "203530")]
    pub dim: u64,
    /// P̄, average power of a device.
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    pub power: f64,
    /// σ², noise variance.
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    pub noise: f64,
    /// T, rounds.
    #[arg(long, value_name = "N", value_parser = count, default_value = "1000")]
    pub rounds: u64,
    /// η(t), the learning rate (see below).
    #[arg(long, value_name = "RATE", default_value = "inverse-time", allow_hyphen_values = true)]
    pub eta: String,
    /// The scheduled devices: the K best channels, or K uniformly at random.
    #[arg(long, value_name = "best|uniform", value_parser = choice, default_value = "best")]
    pub channels: Choice,
    /// ρ, the share of entries that a round carries, instead of a channel: a number or @FILE with one for
    /// each round.
    #[arg(
        long,
        value_name = "X|@FILE",
        allow_negative_numbers = true,
        conflicts_with_all = ["symbols", "dim", "power", "noise", "channels", "draws", "expectation", "seed"]
    )]
    pub rho: Option<String>,
    /// Channels to average over; the mean comes with its 95 % interval.
    #[arg(long, value_name = "N", value_parser = count, default_value = "1")]
    pub draws: u64,
    /// The mean over all channels instead of draws.
    #[arg(long, conflicts_with = "draws")]
    pub expectation: bool,
    /// Seed of the channel.
    #[arg(long, value_name = "N", value_parser = count, default_value = "0")]
    pub seed: u64,
    /// Folder for bound.svg, bound.png, bound.csv and bound.json.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the folder if it exists and holds only files that fedlink wrote.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Print JSON with the whole series instead of the table.
    #[arg(long)]
    pub json: bool,
}

pub const BOUND_PLAN_EXAMPLES: &str = "\
Examples:
  fedlink bound plan                                        the paper's figure 4, even data
  fedlink bound plan --devices 50 --symbols 2e4 --gamma 2 --g 3 --rounds 300
  fedlink bound plan --target 100                           fewest rounds to a loss bound of 100
  fedlink bound plan --measure demo --set data.partition=classes --set data.samples_per_device=200";

#[derive(Args, Debug)]
pub struct BoundPlanOptions {
    /// The values of K to try [default: 1..M].
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub k: Option<RangeInclusive<u64>>,
    /// The values of τ to try.
    #[arg(long, value_name = "A..B", value_parser = range, default_value = "1..20")]
    pub tau: RangeInclusive<u64>,
    /// T, the budget of rounds.
    #[arg(long, value_name = "N", value_parser = count, default_value = "1000")]
    pub rounds: u64,
    /// Find the fewest rounds to this loss bound instead of the lowest bound after the last round.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub target: Option<f64>,
    /// M, devices [default: 100].
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "measure")]
    pub devices: Option<u64>,
    /// n, channel symbols in a round [default: 1e5, or that of the measured configuration].
    #[arg(long, value_name = "N", value_parser = count)]
    pub symbols: Option<u64>,
    /// P̄, average power of a device [default: 1].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub power: Option<f64>,
    /// σ², noise variance [default: 1].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub noise: Option<f64>,
    /// d, parameters of the model [default: 203530].
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "measure")]
    pub dim: Option<u64>,
    /// Γ, how differently the devices' data are distributed [default: 1].
    #[arg(long, value_name = "X", allow_negative_numbers = true, conflicts_with = "measure")]
    pub gamma: Option<f64>,
    /// G, root of the bound on the mean square norm of a stochastic gradient [default: 1].
    #[arg(long, value_name = "X", allow_negative_numbers = true, conflicts_with = "measure")]
    pub g: Option<f64>,
    /// μ, strong convexity [default: 0.25].
    #[arg(long, value_name = "X", allow_negative_numbers = true, conflicts_with = "measure")]
    pub mu: Option<f64>,
    /// L, smoothness [default: 5].
    #[arg(long, value_name = "X", allow_negative_numbers = true, conflicts_with = "measure")]
    pub l: Option<f64>,
    /// ‖θ(0) − θ*‖² [default: 500].
    #[arg(long, value_name = "X", allow_negative_numbers = true, conflicts_with = "measure")]
    pub d0: Option<f64>,
    /// η(t), as for `fedlink bound` [default: the best of the largest rate allowed for every τ tried,
    /// decaying as 1000/(t+1000), and its halves].
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub eta: Option<String>,
    /// The scheduled devices: the K best channels, or K uniformly at random.
    #[arg(long, value_name = "best|uniform", value_parser = choice, default_value = "best")]
    pub channels: Choice,
    /// Rounds from which the mean of ρ is estimated for each K.
    #[arg(long, value_name = "N", value_parser = samples, default_value = "1000")]
    pub samples: u64,
    /// Seed of the channel.
    #[arg(long, value_name = "N", value_parser = count, default_value = "0")]
    pub seed: u64,
    /// Measure Γ, G, μ, L and the distance at the start by softmax regression on the data and split of a
    /// configuration (a preset or a file); M and d are then those of that problem.
    #[arg(long, value_name = "PRESET|FILE.toml")]
    pub measure: Option<String>,
    /// Set a key of the configuration to measure; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "measure")]
    pub settings: Vec<String>,
    /// Weight of the regularizer (λ/2)‖θ‖² where Γ, G, μ and L are measured [default: 0.1].
    #[arg(long, value_name = "X", requires = "measure", allow_negative_numbers = true)]
    pub lambda: Option<f64>,
    /// Folder that holds data sets, looked in before the others.
    #[arg(long, value_name = "DIR", requires = "measure")]
    pub data_dir: Option<PathBuf>,
    /// Folder for the loss surface, the best K by horizon, plan.csv and plan.json.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the folder if it exists and holds only files that fedlink wrote.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Print JSON instead of the summary.
    #[arg(long)]
    pub json: bool,
}

/// A whole number, also as `1e5`.
pub fn count(text: &str) -> Result<u64, String> {
    if let Ok(value) = text.trim().parse::<u64>() {
        return Ok(value);
    }
    match text.trim().parse::<f64>() {
        // 2⁵³: beyond it a float no longer names one whole number.
        Ok(value) if value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value) => {
            Ok(value as u64)
        }
        _ => Err("not a whole number of at least 0, such as 100 or 1e5".into()),
    }
}

/// A number of samples that is enough for an interval.
fn samples(text: &str) -> Result<u64, String> {
    count(text).and_then(|value| if value >= 2 { Ok(value) } else { Err("at least 2 are needed".into()) })
}

/// `A..B` with both ends, or one number.
fn range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (first, last) = (count(first)?, count(last.trim_start_matches('='))?);
    if first > last {
        return Err(format!("{first} is above {last}: the range is empty"));
    }
    Ok(first..=last)
}

fn choice(text: &str) -> Result<Choice, String> {
    match text {
        "best" => Ok(Choice::Best),
        "uniform" => Ok(Choice::Uniform),
        _ => Err("write best or uniform".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_be_written_with_an_exponent() {
        assert_eq!((count("1e5"), count("7"), count("2.5e1")), (Ok(100_000), Ok(7), Ok(25)));
        for text in ["1.5", "-1", "x", "", "1e300", "nan"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_have_both_ends() {
        assert_eq!((range("1..20"), range("5"), range("2..=3")), (Ok(1..=20), Ok(5..=5), Ok(2..=3)));
        assert!(range("4..3").unwrap_err().contains("empty"));
        assert!(range("a..3").is_err());
    }
}
