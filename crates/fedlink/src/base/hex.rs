//! Bytes as text.

use std::fmt::Write;

/// Bytes in hexadecimal, as digests are written.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
