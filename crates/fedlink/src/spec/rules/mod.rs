//! The keys and parts that go together.
//!
//! A key that would have no effect in the chosen combination is refused, so that no setting is silently
//! unused. Rules follow from the facts that parts declare, and name no part.

mod cautions;
mod compression;
mod effects;
mod learning;
mod radio;
mod ranges;

pub(super) use cautions::cautions;
pub(super) use ranges::check_ranges;

use super::Config;
use super::choices::{Choices, Facts};
use crate::parts::ConfigError;

/// A configuration with its parts, as the rules read it.
#[derive(Clone, Copy)]
struct Draft<'a> {
    config: &'a Config,
    parts: &'a Choices,
    facts: &'a Facts,
    /// η.
    rate: f64,
}

/// Checks every rule that can be checked without the data.
pub(super) fn check(config: &Config, parts: &Choices, facts: &Facts, rate: f64) -> Result<(), ConfigError> {
    let draft = Draft { config, parts, facts, rate };
    draft.check_privacy()?;
    draft.check_radio()?;
    config.check_unused_tables(parts)?;
    draft.check_steps()?;
    draft.check_correction()?;
    draft.check_bytes()?;
    draft.check_scheme()?;
    draft.check_policy()
}
