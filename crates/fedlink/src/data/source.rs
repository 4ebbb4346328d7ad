//! The bytes of a data file, plain or gzip by its content, read within bounds.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

#[cfg(feature = "files")]
use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::error::{DataError, Flaw, Position};
use crate::base::{files, memory};

/// The greatest expansion of deflate per byte: 258 bytes from 2 bits, a match of greatest length with
/// one-bit codes for length and distance.
pub const MAX_DEFLATE_RATIO: u64 = 1032;

/// The first two bytes of every gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The remedy for a damaged file.
pub(super) const FETCH_AGAIN: &str = "the file is damaged or its name is misleading: fetch it again";

/// The placeholder of the decoder in a build without the feature `files`.
#[cfg(not(feature = "files"))]
struct MultiGzDecoder<R>(std::marker::PhantomData<R>);

#[cfg(not(feature = "files"))]
impl<R> MultiGzDecoder<R> {
    fn new(_: R) -> Self {
        Self(std::marker::PhantomData)
    }
}

#[cfg(not(feature = "files"))]
impl<R> Read for MultiGzDecoder<R> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The flaw of gzip data that cannot be read from `offset` on.
fn broken_gzip(offset: u64, error: &io::Error) -> Flaw {
    if error.kind() == io::ErrorKind::Unsupported {
        let fix = "unpack it, or build fedlink with the feature `files`";
        return Flaw::new(Position::Whole, "this build does not read gzip files", fix);
    }
    Flaw::new(Position::Byte(offset), format!("the gzip data is broken ({error})"), FETCH_AGAIN)
}

/// Reads a whole regular file.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, DataError> {
    let unreadable = |source| DataError::Unreadable { path: path.to_owned(), source };
    let file = open(path)?;
    let length = file.metadata().map_err(unreadable)?.len();
    check_size(length, memory::total()).map_err(|flaw| flaw.in_file(path))?;
    let mut bytes = reserve(length, Position::Whole).map_err(|flaw| flaw.in_file(path))?;
    // No more than its size when it was checked, even if it grows.
    file.take(length).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Rejects a file of `length` bytes that exceeds the machine's whole memory.
fn check_size(length: u64, memory: Option<u64>) -> Result<(), Flaw> {
    match memory {
        Some(memory) if length > memory => Err(Flaw::new(
            Position::Whole,
            format!("is {length} bytes long, and this machine has {memory} bytes of memory"),
            "use a part of the data, or a machine with more memory",
        )),
        _ => Ok(()),
    }
}

/// Opens a regular file; a device or a pipe could be endless.
fn open(path: &Path) -> Result<File, DataError> {
    files::open(path).map_err(|source| DataError::Unreadable { path: path.to_owned(), source })
}

/// An empty vector with room for `length` values, or a flaw if memory does not suffice.
pub(super) fn reserve<T>(length: u64, position: Position) -> Result<Vec<T>, Flaw> {
    let mut values = Vec::new();
    match usize::try_from(length).map(|length| values.try_reserve_exact(length)) {
        Ok(Ok(())) => Ok(values),
        _ => Err(Flaw::new(
            position,
            format!("{length} values do not fit into memory"),
            "use a machine with more memory, or a part of the data",
        )),
    }
}

/// The uncompressed content of a plain or gzip file that lies in memory, read from front to back.
pub(super) struct Content<'a> {
    bytes: Bytes<'a>,
    /// The offset of the next byte in the uncompressed content.
    offset: u64,
    /// An upper bound on the length of the content.
    limit: u64,
}

enum Bytes<'a> {
    Plain(&'a [u8]),
    Gzip(Box<MultiGzDecoder<&'a [u8]>>),
}

impl<'a> Content<'a> {
    pub(super) fn new(file: &'a [u8]) -> Self {
        let length = file.len() as u64;
        if file.starts_with(&GZIP_MAGIC) {
            let limit = length.saturating_mul(MAX_DEFLATE_RATIO);
            return Content { bytes: Bytes::Gzip(Box::new(MultiGzDecoder::new(file))), offset: 0, limit };
        }
        Content { bytes: Bytes::Plain(file), offset: 0, limit: length }
    }

    /// The next `length` bytes. Nothing is allocated if the file cannot hold that many.
    pub(super) fn take(&mut self, length: u64, what: &str) -> Result<Vec<u8>, Flaw> {
        let start = self.offset;
        let short = |found: String| {
            Flaw::new(
                Position::Byte(start),
                format!("{what} should take {length} bytes, but {found}"),
                FETCH_AGAIN,
            )
        };
        let left = self.limit - start;
        if length > left {
            return Err(short(match self.bytes {
                Bytes::Plain(_) => format!("the file ends after {left}"),
                Bytes::Gzip(_) => format!("a gzip file of this size can hold no more than {left}"),
            }));
        }
        let mut bytes = reserve(length, Position::Byte(start))?;
        let read = self.read_limited(length, &mut bytes);
        self.offset += bytes.len() as u64;
        read.map_err(|error| self.broken(&error))?;
        if bytes.len() as u64 != length {
            return Err(short(format!("the file ends after {}", bytes.len())));
        }
        Ok(bytes)
    }

    /// Checks that the content ends; reads one byte at most.
    pub(super) fn end(mut self) -> Result<(), Flaw> {
        let mut extra = Vec::new();
        self.read_limited(1, &mut extra).map_err(|error| self.broken(&error))?;
        if extra.is_empty() {
            return Ok(());
        }
        Err(Flaw::new(
            Position::Byte(self.offset),
            "the content should end here by its own header, but more bytes follow",
            FETCH_AGAIN,
        ))
    }

    fn read_limited(&mut self, length: u64, into: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.bytes {
            Bytes::Plain(rest) => rest.take(length).read_to_end(into),
            Bytes::Gzip(decoder) => decoder.take(length).read_to_end(into),
        }
    }

    fn broken(&self, error: &io::Error) -> Flaw {
        broken_gzip(self.offset, error)
    }
}

/// The SHA-256 digest, in hexadecimal, of a file's content of at most `max` bytes, uncompressed first if it
/// is gzip. So the digest does not depend on the packing. Memory does not grow with the file, and a small
/// file that unpacks to a large one is not unpacked to its end.
pub fn sha256_uncompressed(path: &Path, max: u64) -> Result<String, DataError> {
    let unreadable = |source| DataError::Unreadable { path: path.to_owned(), source };
    let mut file = BufReader::with_capacity(1 << 16, open(path)?);
    let is_gzip = file.fill_buf().map_err(unreadable)?.starts_with(&GZIP_MAGIC);
    if is_gzip {
        let mut decoder = MultiGzDecoder::new(file);
        let digest = sha256(&mut decoder, max);
        let digest = digest.map_err(|(offset, error)| broken_gzip(offset, &error).in_file(path))?;
        return digest.ok_or_else(|| too_long(max).in_file(path));
    }
    let digest = sha256(&mut file, max).map_err(|(_, error)| unreadable(error))?;
    digest.ok_or_else(|| too_long(max).in_file(path))
}

fn too_long(max: u64) -> Flaw {
    Flaw::new(Position::Byte(max), "the content should end here, but more bytes follow", FETCH_AGAIN)
}

/// The digest of the whole of `reader`; none if it has more than `max` bytes. An error comes with its offset.
fn sha256(reader: &mut impl Read, max: u64) -> Result<Option<String>, (u64, io::Error)> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut offset = 0;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                digest.update(&buffer[..length]);
                offset += length as u64;
                if offset > max {
                    return Ok(None);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((offset, error)),
        }
    }
    let hex = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
    Ok(Some(digest.finalize().iter().flat_map(|byte| [hex(byte >> 4), hex(byte & 15)]).collect()))
}

#[cfg(test)]
mod tests {
    use super::super::test_files::gzip;
    use super::*;
    use std::fs;

    #[test]
    fn the_digest_of_abc_is_the_one_of_the_standard_plain_or_gzip() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("plain", b"abc".to_vec()), ("packed", gzip(b"abc"))] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            // FIPS 180-4, example of a one-block message.
            assert_eq!(
                sha256_uncompressed(&path, 1 << 20).unwrap(),
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            );
        }
    }

    #[test]
    fn a_truncated_gzip_file_has_no_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.gz");
        let whole = gzip(&[7; 1000]);
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let error = sha256_uncompressed(&path, 1 << 20).unwrap_err().to_string();
        assert!(error.contains("cut.gz: byte 1000: the gzip data is broken"), "{error}");
    }

    #[test]
    fn content_beyond_its_limit_is_not_unpacked_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("plain", vec![7; 200_000]), ("packed", gzip(&vec![7; 50_000_000]))] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let error = sha256_uncompressed(&path, 100_000).unwrap_err().to_string();
            assert!(error.contains("byte 100000: the content should end here"), "{error}");
        }
        // It stops within a buffer of the limit.
        let mut endless = io::repeat(7).take(1 << 40);
        assert_eq!(sha256(&mut endless, 100_000).unwrap(), None);
        let read = (1 << 40) - endless.limit();
        assert!(read < 300_000, "{read}");
    }

    #[test]
    fn a_folder_and_a_missing_file_are_unreadable_not_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("none")] {
            assert!(matches!(sha256_uncompressed(&path, 1 << 20), Err(DataError::Unreadable { .. })));
            assert!(matches!(read_file(&path), Err(DataError::Unreadable { .. })));
        }
    }

    #[test]
    fn a_file_larger_than_all_memory_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge.npz");
        // A hole of 100 TB takes no disk space.
        let Ok(()) = File::create(&path).and_then(|file| file.set_len(100_000_000_000_000)) else {
            // Some file systems do not support such a large file; then only the rule is tested.
            assert!(check_size(100_000_000_000, Some(24_000_000_000)).is_err());
            return;
        };
        let error = read_file(&path).unwrap_err().to_string();
        assert!(error.contains("huge.npz: is 100000000000000 bytes long"), "{error}");
        assert!(error.ends_with("use a part of the data, or a machine with more memory"), "{error}");
        assert!(check_size(100_000_000_000, Some(24_000_000_000)).is_err());
        assert_eq!(check_size(24_000_000_000, Some(24_000_000_000)), Ok(()));
        assert_eq!(check_size(u64::MAX, None), Ok(()));
    }

    #[test]
    fn deflate_approaches_its_greatest_ratio_from_below() {
        let zeros = vec![0; 10_000_000];
        let packed = gzip(&zeros);
        let ratio = zeros.len() as f64 / packed.len() as f64;
        assert!(ratio > 1000.0 && ratio <= MAX_DEFLATE_RATIO as f64, "{ratio}");
        let mut content = Content::new(&packed);
        assert_eq!(content.take(10_000_000, "zeros").unwrap(), zeros);
        content.end().unwrap();
    }

    #[test]
    fn consecutive_gzip_members_are_one_content() {
        let packed = [gzip(b"ab"), gzip(b"cd")].concat();
        let mut content = Content::new(&packed);
        assert_eq!(content.take(4, "letters").unwrap(), b"abcd");
        content.end().unwrap();
    }

    #[test]
    fn a_gzip_checksum_that_does_not_fit_is_found_at_the_end() {
        let mut packed = gzip(b"abcd");
        let crc = packed.len() - 8;
        packed[crc] ^= 1;
        let mut content = Content::new(&packed);
        let found = content.take(4, "letters").and_then(|_| content.end());
        assert!(found.unwrap_err().what.contains("the gzip data is broken"));
    }
}
