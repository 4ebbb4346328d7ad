//! The convergence bound of the paper's section V: its value for a link and a rate, and the K and τ that
//! it favors.
//!
//! - [`bound`]: the recursion x(t+1) = A(t)·x(t) + B(t) for given ρ(t) and η(t), term by term.
//! - [`rho`]: ρ(t), the share of entries that the link carries, from the channel.
//! - [`average`]: the mean of the bound over the channel.
//! - [`rate`]: η(t), as a family, a table or an expression.
//! - [`study`]: curves for several K and τ side by side.
//! - [`plan`]: the best K and τ over a grid.
//! - [`measure`]: μ, L, Γ and G of softmax regression on real data.
//! - [`check`]: the theorem compared with runs of the system that it describes.
//! - [`statistics`]: means of independent draws with their intervals.
//!
//! The flow: a [`rho::Link`] draws ρ(t), [`bound::Bound`] turns ρ(t) and η(t) into a curve, [`study::Study`]
//! averages curves over draws, [`plan::Planner`] ranks them over K and τ. Figures of the bound as files, and
//! the claims about them, are experiments of `fedlink-study`.
//!
//! `docs/theory.md` describes the uses and the limits of the bound.
//!
//! ```
//! use fedlink_theory::{bound::*, rate::Rate, rho::*};
//! # fn main() -> Result<(), fedlink_theory::TheoryError> {
//! let parameters = LinkParameters { devices: 100, dim: 203_530, symbols: 100_000, ..Default::default() };
//! let link = Link::new(parameters)?;
//! let parameters = BoundParameters {
//!     devices: 100, k: 5, tau: 3, mu: 1.0, l: 5.0, g: 1.0, gamma: 1.0, distance0: 500.0,
//! };
//! let bound = Bound::new(parameters)?;
//! let rates = bound.rates(&"1000/(mu*tau*(t+1000))".parse::<Rate>()?, 1000)?;
//! let curve = bound.curve(&rates, &link.rhos(5, 1000, 0)?)?;
//! println!("E[F] − F* ≤ {:.2} after 1000 rounds; never below {:.2}", curve.loss(1000), bound.floor());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod average;
pub mod bound;
pub mod check;
mod expression;
pub mod measure;
pub mod plan;
pub mod rate;
pub mod rho;
pub mod statistics;
pub mod study;

pub use statistics::Estimate;

use fedlink::spec::ConfigError;

/// The most rounds of a curve, which is kept in memory.
pub const MAX_ROUNDS: usize = 10_000_000;

/// An invalid parameter of the bound.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TheoryError {
    /// The configuration of the system to be measured is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A parameter is outside its range.
    #[error("{name}: is {value}, but must be {allowed}")]
    Parameter {
        /// The parameter as in text.
        name: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: String,
    },
    /// The learning rate leaves the range for which the theorem holds.
    #[error(
        "rate: η({t}) is {eta}, but the bound needs 0 < η ≤ min(1, 1/(mu·tau)) = {limit} (tau = {tau}); \
         write a rate that stays below, such as {limit}*1000/(t+1000)"
    )]
    Rate {
        /// The first invalid round.
        t: usize,
        /// The rate there.
        eta: f64,
        /// min{1, 1/(μτ)}.
        limit: f64,
        /// τ.
        tau: u64,
    },
    /// The expression of a learning rate cannot be read.
    #[error("rate: {problem} at character {position} of {text:?}")]
    Expression {
        /// The expression.
        text: String,
        /// The position, in characters from 1.
        position: usize,
        /// The problem and the expected form.
        problem: String,
    },
    /// A table of values has fewer entries than rounds, or two tables differ in length.
    #[error("{name}: has {got} values, but {needed} rounds are required")]
    Length {
        /// The table.
        name: &'static str,
        /// The number of its values.
        got: usize,
        /// The number of values needed.
        needed: usize,
    },
    /// No round of any draw carries a single entry, so there is nothing to bound.
    #[error(
        "symbols: n = {symbols} carries at most {max:.1} bits for each of K = {k} devices in any round \
         drawn, but a single entry costs {needed:.1}; raise symbols or power, or lower k"
    )]
    SilentLink {
        /// n.
        symbols: u64,
        /// K, the smallest on the grid.
        k: u64,
        /// The largest budget of a device in any round, in bits.
        max: f64,
        /// r(1).
        needed: f64,
    },
    /// A minimum was not found to the required precision.
    #[error(
        "{what}: the minimum is known to {gap:.1e} only, {allowed:.1e} is required; raise lambda, or scale \
         the data"
    )]
    NotConverged {
        /// The function.
        what: String,
        /// The upper bound on the distance to the minimum.
        gap: f64,
        /// The largest allowed distance.
        allowed: f64,
    },
    /// No K and τ of a grid reach the target.
    #[error(
        "target: no K and tau reach a loss bound of {target} within {rounds} rounds; the lowest is {lowest} \
         at K = {k}, tau = {tau}"
    )]
    OutOfReach {
        /// The target.
        target: f64,
        /// T.
        rounds: usize,
        /// The lowest final bound on the grid.
        lowest: f64,
        /// Its K.
        k: u64,
        /// Its τ.
        tau: u64,
    },
}

pub(crate) fn whole(
    name: &'static str,
    value: u64,
    range: std::ops::RangeInclusive<u64>,
    note: &str,
) -> Result<(), TheoryError> {
    if range.contains(&value) {
        return Ok(());
    }
    let allowed = format!("in {}..={}{note}", range.start(), range.end());
    Err(TheoryError::Parameter { name, value: value.to_string(), allowed })
}

pub(crate) fn real(
    name: &'static str,
    value: f64,
    ok: impl Fn(f64) -> bool,
    allowed: &str,
) -> Result<(), TheoryError> {
    if value.is_finite() && ok(value) {
        return Ok(());
    }
    Err(TheoryError::Parameter { name, value: value.to_string(), allowed: allowed.into() })
}
