//! A run in progress as a file.
//!
//! ```text
//! magic "fedlink" and the version of this layout    8 bytes
//! digest of the run's trajectory                   32 bytes
//! run.rounds of the run                             8 bytes, little-endian
//! state (postcard)
//! extension (postcard): state of the radio, costs     only in version 5, for a radio with units or state
//! CRC-32 of all before it                           4 bytes, little-endian
//! ```
//!
//! The checksum is verified before anything is parsed, so a damaged file costs no memory. The state holds the
//! model, the records so far and the state of server and devices; everything else follows from the
//! configuration, because every random number is keyed by (seed, purpose, round, device).
//!
//! A checkpoint also serves a run with the same [trajectory](crate::spec::identity::trajectory_digest) and
//! another number of rounds, unless custom parts may know that number or the last evaluation was made only
//! because the run had ended.

pub use crate::base::state::CheckpointError;
use crate::base::state::State;
use crate::record::{BatteryLedger, CostLedger, Ledger};
use crate::spec::Spec;
use crate::system::device::PersistentState;
use serde::{Deserialize, Serialize};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Mutex;

/// The last byte is the version of the layout.
const MAGIC: [u8; 8] = *b"fedlink\x05";
/// The layout without an extension, which every run without units or a radio's state has.
const PLAIN: u8 = 4;
/// The layout with one.
const EXTENDED: u8 = 5;
const DIGEST: usize = 32;
const ROUNDS: usize = 8;
const HEADER: u64 = (MAGIC.len() + DIGEST + ROUNDS) as u64;
const CHECK: u64 = 4;
/// The longest name of a metric that is read back, in bytes.
const MAX_NAME: usize = 1 << 20;

/// The content of a checkpoint, by reference.
#[derive(Serialize)]
pub(crate) struct Saved<'a> {
    pub next_round: u64,
    pub theta: &'a [f32],
    pub ledger: &'a Ledger,
    pub states: &'a [Mutex<PersistentState>],
    pub server: State,
    pub adversary: State,
    /// The state of a radio with units or state; empty: none.
    #[serde(skip)]
    pub extension: State,
}

/// The same, read back.
#[derive(Deserialize)]
pub(crate) struct Restored {
    pub next_round: u64,
    pub theta: Vec<f32>,
    pub ledger: Ledger,
    pub states: Vec<Mutex<PersistentState>>,
    pub server: State,
    pub adversary: State,
    #[serde(skip)]
    pub extension: State,
}

impl Restored {
    /// The extension: the state of the radio and the costs of the rounds so far.
    fn extended(&self) -> Result<(State, CostLedger, BatteryLedger), CheckpointError> {
        if self.extension.is_empty() {
            return Ok(Default::default());
        }
        // A run without batteries has two parts.
        self.extension
            .read()
            .or_else(|_| self.extension.read().map(|(radio, costs)| (radio, costs, BatteryLedger::default())))
            .map_err(|error| CheckpointError::Damaged(error.to_string()))
    }

    /// The state of the radio.
    pub(crate) fn radio(&self) -> Result<State, CheckpointError> {
        Ok(self.extended()?.0)
    }

    /// The costs of the rounds so far, and the batteries.
    pub(crate) fn costs(&self) -> Result<(CostLedger, BatteryLedger), CheckpointError> {
        let (_, costs, batteries) = self.extended()?;
        Ok((costs, batteries))
    }
}

/// The run that a checkpoint belongs to: a configuration and the [digest of its
/// trajectory](crate::spec::identity::trajectory_digest).
pub(crate) type Owner<'a> = (&'a Spec, &'a [u8; DIGEST]);

pub(crate) fn write((spec, digest): Owner, state: &Saved, to: impl Write) -> Result<(), CheckpointError> {
    let mut to = Checked::new(BufWriter::with_capacity(1 << 16, to));
    to.write_all(&MAGIC[..7])?;
    to.write_all(&[if state.extension.is_empty() { PLAIN } else { EXTENDED }])?;
    to.write_all(digest)?;
    to.write_all(&spec.run.rounds.to_le_bytes())?;
    if let Err(error) = postcard::to_io(state, &mut to) {
        // postcard drops the I/O error; `Checked` keeps it.
        return Err(to.failure.unwrap_or_else(|| io::Error::other(error.to_string())).into());
    }
    to.write_all(&state.extension.0)?;
    let sum = to.sum.finalize();
    to.inner.write_all(&sum.to_le_bytes())?;
    Ok(to.inner.flush()?)
}

pub(crate) fn read(
    (spec, wanted_digest): Owner,
    from: impl Read + Seek,
) -> Result<Restored, CheckpointError> {
    let damaged = |problem: &str| CheckpointError::Damaged(problem.to_owned());
    let mut from = BufReader::with_capacity(1 << 16, from);
    let length = from.seek(SeekFrom::End(0))?;
    let Some(content) = length.checked_sub(CHECK).filter(|&n| n >= HEADER) else {
        return Err(damaged("it is too short"));
    };
    from.rewind()?;
    let mut sum = Checked::new(io::sink());
    io::copy(&mut (&mut from).take(content), &mut sum)?;
    let mut wanted = [0; CHECK as usize];
    from.read_exact(&mut wanted)?;
    if sum.sum.finalize() != u32::from_le_bytes(wanted) {
        return Err(damaged("its checksum is wrong"));
    }
    from.rewind()?;
    let (mut magic, mut digest, mut rounds) = ([0; MAGIC.len()], [0; DIGEST], [0; ROUNDS]);
    from.read_exact(&mut magic)?;
    from.read_exact(&mut digest)?;
    from.read_exact(&mut rounds)?;
    if magic[..7] != MAGIC[..7] {
        return Err(damaged("it does not begin as one"));
    }
    if ![PLAIN, EXTENDED].contains(&magic[7]) {
        return Err(CheckpointError::Version { found: magic[7], reads: MAGIC[7] });
    }
    if digest != *wanted_digest {
        return Err(CheckpointError::OtherConfig);
    }
    // The second buffer holds one number or one name of a metric at a time.
    let content = content - HEADER;
    let mut buffer = vec![0; usize::try_from(content).unwrap_or(usize::MAX).clamp(16, MAX_NAME)];
    let state = postcard::from_io((from.take(content), &mut buffer));
    let (mut state, (mut rest, _)): (Restored, _) = state.map_err(|error| damaged(&error.to_string()))?;
    if magic[7] == EXTENDED {
        rest.read_to_end(&mut state.extension.0)?;
    }
    if !serves(spec, u64::from_le_bytes(rounds), state.next_round) {
        return Err(CheckpointError::OtherConfig);
    }
    Ok(state)
}

/// Whether the state after `next_round` rounds of a run of `rounds` is also that of a run by `config`.
fn serves(spec: &Spec, rounds: u64, next_round: u64) -> bool {
    let run = &spec.run;
    // The last round of a run is evaluated whether or not it is due, which leaves a trace in the records.
    let due = next_round < rounds || next_round.is_multiple_of(run.evaluate_every);
    rounds == run.rounds || (next_round <= run.rounds && due && spec.custom.is_empty())
}

/// Computes the checksum of all bytes that pass through, and keeps the first error.
struct Checked<W> {
    inner: W,
    sum: crc32fast::Hasher,
    failure: Option<io::Error>,
}

impl<W> Checked<W> {
    fn new(inner: W) -> Self {
        Self { inner, sum: crc32fast::Hasher::new(), failure: None }
    }
}

impl<W: Write> Write for Checked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = match self.inner.write(bytes) {
            Ok(count) => count,
            Err(error) => {
                let again = io::Error::from(error.kind());
                self.failure = Some(error);
                return Err(again);
            }
        };
        self.sum.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
