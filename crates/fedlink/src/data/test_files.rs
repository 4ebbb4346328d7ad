//! Valid files, and damage to them, for tests of the readers.

use std::io::Write;

use proptest::prelude::*;

/// An IDX file of unsigned bytes.
pub(super) fn idx(dimensions: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, dimensions.len() as u8];
    for dimension in dimensions {
        file.extend(dimension.to_be_bytes());
    }
    file.extend(bytes);
    file
}

/// `content` as gzip.
pub(super) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// `valid` with up to eight changes in turn: a bit flipped, a byte overwritten, bytes inserted, removed or
/// repeated, or the end cut off.
pub(super) fn damaged(valid: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let change = (0..6u8, any::<prop::sample::Index>(), any::<u8>(), 1..40usize);
    prop::collection::vec(change, 0..8).prop_map(move |changes| {
        let mut bytes = valid.clone();
        for (kind, index, value, length) in changes {
            let at = index.index(bytes.len() + 1);
            let end = (at + length).min(bytes.len());
            match kind {
                0 if at < bytes.len() => bytes[at] ^= 1 << (value % 8),
                1 if at < bytes.len() => bytes[at] = value,
                2 => drop(bytes.splice(at..at, std::iter::repeat_n(value, length))),
                3 => drop(bytes.drain(at..end)),
                4 => bytes.extend_from_within(at..end),
                5 => bytes.truncate(at),
                _ => {}
            }
        }
        bytes
    })
}
