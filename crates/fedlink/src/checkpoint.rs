//! A run in progress as a file.
//!
//! ```text
//! magic "fedlink" and the version of this layout    8 bytes
//! SHA-256 of the complete configuration            32 bytes
//! state (postcard)
//! CRC-32 of all before it                           4 bytes, little-endian
//! ```
//!
//! The checksum is verified before anything is parsed, so a damaged file costs no memory. The state holds the
//! model, the records so far and the state of server and devices; everything else follows from the
//! configuration, because every random number is keyed by (seed, purpose, round, device).

use crate::config::Config;
use crate::fleet::PersistentState;
use crate::record::Ledger;
pub use crate::state::CheckpointError;
use crate::state::State;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Mutex;

/// The last byte is the version of the layout.
const MAGIC: [u8; 8] = *b"fedlink\x04";
const DIGEST: usize = 32;
const CHECK: u64 = 4;
/// The longest name of a metric that is read back, in bytes.
const MAX_NAME: usize = 1 << 20;

/// What is saved, by reference.
#[derive(Serialize)]
pub(crate) struct Saved<'a> {
    pub next_round: u64,
    pub theta: &'a [f32],
    pub ledger: &'a Ledger,
    pub states: &'a [Mutex<PersistentState>],
    pub server: State,
    pub adversary: State,
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
}

/// The digest of a configuration with all its defaults: what a run's numbers depend on, but for the data.
pub fn config_digest(config: &Config) -> [u8; DIGEST] {
    let text = config.resolved().to_table().to_string();
    Sha256::digest(text.as_bytes()).into()
}

pub(crate) fn write(config: &Config, state: &Saved, to: impl Write) -> Result<(), CheckpointError> {
    let mut to = Checked::new(BufWriter::with_capacity(1 << 16, to));
    to.write_all(&MAGIC)?;
    to.write_all(&config_digest(config))?;
    if let Err(error) = postcard::to_io(state, &mut to) {
        // postcard drops the I/O error; `Checked` keeps it.
        return Err(to.failure.unwrap_or_else(|| io::Error::other(error.to_string())).into());
    }
    let sum = to.sum.finalize();
    to.inner.write_all(&sum.to_le_bytes())?;
    Ok(to.inner.flush()?)
}

pub(crate) fn read(config: &Config, from: impl Read + Seek) -> Result<Restored, CheckpointError> {
    let damaged = |problem: &str| CheckpointError::Damaged(problem.to_owned());
    let mut from = BufReader::with_capacity(1 << 16, from);
    let length = from.seek(SeekFrom::End(0))?;
    let Some(content) = length.checked_sub(CHECK).filter(|&n| n >= (MAGIC.len() + DIGEST) as u64) else {
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
    let (mut magic, mut digest) = ([0; MAGIC.len()], [0; DIGEST]);
    from.read_exact(&mut magic)?;
    from.read_exact(&mut digest)?;
    if magic[..7] != MAGIC[..7] {
        return Err(damaged("it does not begin as one"));
    }
    if magic[7] != MAGIC[7] {
        return Err(CheckpointError::Version { found: magic[7], reads: MAGIC[7] });
    }
    if digest != config_digest(config) {
        return Err(CheckpointError::OtherConfig);
    }
    // The second buffer holds one number or one name of a metric at a time.
    let content = content - (MAGIC.len() + DIGEST) as u64;
    let mut buffer = vec![0; usize::try_from(content).unwrap_or(usize::MAX).clamp(16, MAX_NAME)];
    let state = postcard::from_io((from.take(content), &mut buffer));
    state.map(|(state, _)| state).map_err(|error| damaged(&error.to_string()))
}

/// Sums up what passes through, and keeps the error of what did not.
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
