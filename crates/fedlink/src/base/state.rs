//! The state of a part from round to round, and its form in a checkpoint.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest count that is accepted from a checkpoint: adding the rounds of any run to it does not
/// overflow.
pub(crate) const MAX_COUNT: u64 = 1 << 62;

/// The state of one part, as bytes that only that part reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct State(pub Vec<u8>);

/// The reason why a part cannot restore a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StateError(pub String);

/// The reason why a run could not be saved or resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// Its bytes were changed.
    #[error("the checkpoint is damaged: {0}")]
    Damaged(String),
    /// It was written by another version of this library.
    #[error("the checkpoint has layout {found}, but this version reads {reads}")]
    Version {
        /// The layout of the checkpoint.
        found: u8,
        /// The layout that this version reads and writes.
        reads: u8,
    },
    /// It belongs to a run with other settings.
    #[error("the checkpoint belongs to a run with another configuration")]
    OtherConfig,
    /// A part cannot restore its state.
    #[error("the checkpoint cannot be restored: {0}")]
    State(StateError),
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl State {
    /// `value`, serialized.
    pub fn of(value: &impl Serialize) -> Self {
        Self(postcard::to_stdvec(value).expect("plain data serializes into memory"))
    }

    /// The value that was given to [`State::of`].
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, StateError> {
        postcard::from_bytes(&self.0).map_err(|error| StateError(error.to_string()))
    }

    /// Checks that the state is empty, as of a part that keeps none; the error states its size.
    pub fn expect_none(&self) -> Result<(), StateError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(StateError(format!("it keeps no state, but the checkpoint has {} bytes for it", self.0.len())))
    }

    /// Whether the state is empty, as of a part that keeps none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The contract of every part that keeps state between rounds: `load(save())` on a freshly built part of
/// the same configuration gives a part that continues exactly as the saved one would have.
///
/// The defaults suit a part without state. A `load` that fails leaves the part unchanged.
///
/// ```
/// use fedlink::base::state::{Persist, State, StateError};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// impl Persist for Counter {
///     fn save(&self) -> State {
///         State::of(&self.0)
///     }
///     fn load(&mut self, state: State) -> Result<(), StateError> {
///         self.0 = state.read()?;
///         Ok(())
///     }
/// }
///
/// let mut restored = Counter::default();
/// restored.load(Counter(7).save()).unwrap();
/// assert_eq!(restored.0, 7);
/// ```
pub trait Persist {
    /// The current state.
    fn save(&self) -> State {
        State::default()
    }

    /// Restores `state`.
    fn load(&mut self, state: State) -> Result<(), StateError> {
        state.expect_none()
    }
}
