//! How long an experiment is, and whether it was run for less than that.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The length that an experiment's own file gives it: `[original]` of a file that was shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Original {
    /// T; of curves that differ, the longest.
    pub rounds: u64,
    /// Seeds of a curve; of curves that differ, the most.
    pub seeds: u64,
    /// Whether `--quick` was applied, which may change other keys too.
    #[serde(default)]
    pub quick: bool,
}

/// An experiment that was run for fewer rounds or seeds than its own file says, or in its quick variant. What
/// was published of the whole experiment says nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shortened {
    /// T as it was run.
    pub rounds: u64,
    /// T of the experiment itself.
    pub of_rounds: u64,
    /// Seeds as they were run; of the bound, draws of the channel.
    pub seeds: u64,
    /// Seeds of the experiment itself.
    pub of_seeds: u64,
    /// Whether it is the quick variant.
    pub quick: bool,
    /// Whether `seeds` are draws.
    #[serde(skip)]
    pub draws: bool,
}

/// `60 of 500 rounds, 3 of 10 seeds`.
impl fmt::Display for Shortened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, of_rounds, seeds, of_seeds, quick, draws } = self;
        let variant = if *quick { "quick variant, " } else { "" };
        write!(
            f,
            "{variant}{rounds} of {of_rounds} rounds, {seeds} of {of_seeds} {}",
            if *draws { "draws" } else { "seeds" }
        )
    }
}

impl Original {
    /// How an experiment of this length was shortened if `rounds` and `seeds` were run.
    pub fn shortened(self, rounds: u64, seeds: u64) -> Option<Shortened> {
        let Self { rounds: of_rounds, seeds: of_seeds, quick } = self;
        let shorter = quick || rounds < of_rounds || seeds < of_seeds;
        shorter.then_some(Shortened { rounds, of_rounds, seeds, of_seeds, quick, draws: false })
    }
}
