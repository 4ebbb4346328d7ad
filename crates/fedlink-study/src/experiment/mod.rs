//! An experiment: one configuration, or several that differ in the keys of `[sweep]`.
//!
//! ```toml
//! [sweep]                                  # every combination is a curve
//! "schedule.policy" = ["bc", "bc-bn2"]
//! "schedule.k" = [1, 10]
//!
//! [[exclude]]                              # except this one
//! "schedule.policy" = "bc"
//! "schedule.k" = 10
//!
//! [[override]]                             # this one has its own value
//! when = { "schedule.policy" = "bc-bn2", "schedule.k" = 10 }
//! set = { "schedule.kc" = 20 }
//!
//! [expected]                               # published final accuracies
//! "bc@k=1" = 0.912
//!
//! [goals]                                  # until when and at what cost, see [`crate::goals`]
//! "held" = "rounds until accuracy >= 0.8 for 3 evaluations"
//!
//! [claims]                                 # claims about the curves, see [`crate::claims`]
//! "few are enough" = "bc-bn2@k=1 final > bc-bn2@k=10 final"
//!
//! [quick]                                  # the values of `--quick`
//! "run.rounds" = 20
//! ```

mod anchor;
mod claims_file;
mod expand;
mod limits;
mod parse;
mod rule;
mod settings;
mod source;
mod write;

pub use claims_file::ClaimsFile;
pub use expand::{Curve, Run, Sweep};
pub use source::{FileKind, Source};
pub(crate) use source::{read_text, with_names_of_today};

use crate::claims::{Claim, Claims, Expected, Original};
use crate::goals::Goal;
use anchor::Anchor;
use rule::{Override, When};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// The experiment of a file: the sections of a configuration and, optionally, `[sweep]` with lists of values
/// for keys, `[[exclude]]`, `[[override]]`, `[expected]`, `[claims]` and `[quick]`. [`Experiment::expand`]
/// makes its curves and runs.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// The name of the preset or the stem of the file: it names the output folder.
    pub name: String,
    /// The values that the file and `set` have given; every other key has its default.
    table: Table,
    /// The keys that differ between curves, with their values.
    sweep: Vec<(String, Vec<Value>)>,
    /// The combinations that are left out.
    excluded: Vec<When>,
    /// Values of single curves; a later rule overrides an earlier one.
    overrides: Vec<Override>,
    /// The values that `--quick` sets.
    quick: Vec<(String, Value)>,
    /// The goals of the tables, by name.
    goals: Vec<(String, Goal)>,
    /// The claims about the curves.
    claims: Claims,
    /// The published accuracies of curves, by the text that names the curve.
    expected: Vec<(String, Expected)>,
    /// The length that the file gives the experiment.
    original: Original,
    /// The text of the file, for the line of a key in a message.
    text: Option<String>,
    /// The keys that [`Experiment::set`] has set since.
    set: BTreeSet<String>,
    /// The bandwidth and the power of the file, at which its SNRs hold.
    anchor: Anchor,
}

impl Experiment {
    /// The claims about the curves.
    pub fn claims(&self) -> &[Claim] {
        &self.claims.list
    }

    /// The claims, and the correction for many comparisons.
    pub fn all_claims(&self) -> &Claims {
        &self.claims
    }

    /// The goals of the tables, by name.
    pub fn goals(&self) -> &[(String, Goal)] {
        &self.goals
    }

    /// The published accuracies of the curves.
    pub fn expected(&self) -> impl Iterator<Item = &Expected> {
        self.expected.iter().map(|(_, expected)| expected)
    }

    /// Whether the file has a `[quick]` section.
    pub fn has_quick(&self) -> bool {
        !self.quick.is_empty()
    }
}

/// The sections of a file beside those of a configuration.
const MORE_SECTIONS: [&str; 8] =
    ["sweep", "exclude", "override", "quick", "expected", "goals", "claims", "original"];

/// Whether `key` is a key of `section`.
fn is_in(key: &str, section: &str) -> bool {
    key.split('.').next() == Some(section)
}

/// The sections of a table whose names are wanted.
fn part_of(table: &Table, wanted: impl Fn(&str) -> bool) -> Table {
    let sections = table.iter().filter(|(name, _)| wanted(name));
    sections.map(|(name, section)| (name.clone(), section.clone())).collect()
}

/// The value at `a.b.c` of nested tables.
fn nested<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        None => table.get(key),
        Some((first, rest)) => nested(table.get(first)?.as_table()?, rest),
    }
}

#[cfg(test)]
mod tests;
