//! The length of an experiment, and its reductions.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The length that an experiment's own file gives it: `[original]` of a file that was shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Original {
    /// T; the largest of all curves.
    pub rounds: u64,
    /// Seeds of a curve; the most of all curves.
    pub seeds: u64,
    /// Whether `--quick` was applied, which may also change other keys.
    #[serde(default)]
    pub quick: bool,
}

/// The length of an experiment that was run for fewer rounds or seeds than its own file gives, or in its
/// quick variant. Values published for the whole experiment do not apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shortened {
    /// T of the runs.
    pub rounds: u64,
    /// T of the experiment itself.
    pub of_rounds: u64,
    /// Seeds that were run; of the bound, draws of the channel.
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
    /// The shortening of an experiment of this length of which `rounds` and `seeds` were run; none if it is
    /// whole.
    pub fn shortened(self, rounds: u64, seeds: u64) -> Option<Shortened> {
        let Self { rounds: of_rounds, seeds: of_seeds, quick } = self;
        let shorter = quick || rounds < of_rounds || seeds < of_seeds;
        shorter.then_some(Shortened { rounds, of_rounds, seeds, of_seeds, quick, draws: false })
    }
}
