//! A run in progress as bytes: the library's checkpoint, every record, a task's own state, and a checksum
//! over all.

use fedlink::base::state::State;
use fedlink::record::History;
use fedlink::system::checkpoint::CheckpointError;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// The packed values.
pub struct Saved {
    pub checkpoint: Vec<u8>,
    pub history: History,
    /// The state of a task itself; none if it keeps none.
    pub task: Option<Vec<u8>>,
}

/// A checkpoint, the records so far and, of a task that keeps its own state, that state as bytes.
pub fn pack(checkpoint: Vec<u8>, history: &History, task: Option<Vec<u8>>) -> Vec<u8> {
    let mut bytes = State::of(&(checkpoint, history.save())).0;
    if let Some(task) = task {
        bytes.extend(State::of(&task).0);
    }
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

/// The arguments of [`pack`].
pub fn unpack(bytes: &[u8]) -> PyResult<Saved> {
    let damaged = || PyValueError::new_err("the checkpoint is damaged, or is none");
    let (content, sum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
    if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
        return Err(damaged());
    }
    let content = State(content.to_vec());
    let (checkpoint, history, task): (Vec<u8>, State, Option<Vec<u8>>) =
        if let Ok((checkpoint, history, task)) = content.read() {
            (checkpoint, history, Some(task))
        } else {
            let (checkpoint, history) = content.read().map_err(|_| damaged())?;
            (checkpoint, history, None)
        };
    Ok(Saved { checkpoint, history: History::read(&history).map_err(|_| damaged())?, task })
}

/// The exception for a checkpoint that cannot be made or used.
pub fn exception(error: &CheckpointError) -> PyErr {
    match error {
        CheckpointError::Io(error) => PyOSError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}
