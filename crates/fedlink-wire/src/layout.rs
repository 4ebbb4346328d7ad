//! The kinds of values.

/// The code of the values of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One value for all entries, of which there are at most d/2.
    Shared,
    /// One value for each entry.
    Each,
    /// One magnitude above zero for all entries, and a sign for each. There are at most ⌈2d/3⌉ entries.
    Signs,
}

impl Layout {
    /// The largest q that a format of dimension `dim` can have.
    pub fn max_entries(self, dim: usize) -> usize {
        match self {
            Self::Shared => dim / 2,
            Self::Each => dim,
            Self::Signs => dim - dim / 3,
        }
    }
}
