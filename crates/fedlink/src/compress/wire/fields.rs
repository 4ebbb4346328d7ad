//! Fields of fixed width, one after another: the bytes of schemes whose symbols all cost the same.
//!
//! A payload is one whole number, written big-endian: a one, then the fields from the top down. It has one
//! bit more than its fields.

use super::{WireError, bit_length};

/// Writes fields to a payload.
pub(crate) struct FieldWriter<'a> {
    payload: &'a mut Vec<u8>,
    waiting: u64,
    filled: u32,
}

impl<'a> FieldWriter<'a> {
    /// Begins a payload whose fields take `bits` bits together.
    pub fn new(payload: &'a mut Vec<u8>, bits: u64) -> Self {
        payload.clear();
        // Leading zeros fill the first byte up.
        let filled = (8 - (bits % 8) as u32 - 1) % 8 + 1;
        let mut writer = Self { payload, waiting: 1, filled };
        writer.flush();
        writer
    }

    /// The next field: the lowest `width` bits of `value`, at most 32.
    pub fn put(&mut self, value: u32, width: u32) {
        self.waiting = self.waiting << width | u64::from(value);
        self.filled += width;
        self.flush();
    }

    fn flush(&mut self) {
        while self.filled >= 8 {
            self.filled -= 8;
            self.payload.push((self.waiting >> self.filled) as u8);
        }
        self.waiting &= (1 << self.filled) - 1;
    }
}

/// Reads the fields of a payload.
pub(crate) struct FieldReader<'a> {
    rest: &'a [u8],
    waiting: u64,
    filled: u32,
}

impl<'a> FieldReader<'a> {
    /// The fields of `payload`, and how many bits they have.
    pub fn new(payload: &'a [u8]) -> Result<(Self, u64), WireError> {
        match payload.split_first() {
            None => Err(WireError::Length { short: true }),
            Some((0, _)) => Err(WireError::Padded),
            Some((first, rest)) => {
                let filled = 7 - first.leading_zeros();
                Ok((Self { rest, waiting: u64::from(*first), filled }, bit_length(payload) - 1))
            }
        }
    }

    /// The next field of `width` bits, at most 32; zeros beyond the end.
    pub fn take(&mut self, width: u32) -> u32 {
        while self.filled < width {
            let (byte, rest) = self.rest.split_first().map_or((0, self.rest), |(byte, rest)| (*byte, rest));
            (self.rest, self.filled) = (rest, self.filled + 8);
            self.waiting = self.waiting << 8 | u64::from(byte);
        }
        self.filled -= width;
        let field = self.waiting >> self.filled & ((1 << width) - 1);
        self.waiting &= (1 << self.filled) - 1;
        field as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_are_read_as_they_were_written_and_cost_their_widths_and_one(
            fields in prop::collection::vec((any::<u32>(), 1u32..=32), 0..40),
        ) {
            let fields: Vec<(u32, u32)> =
                fields.into_iter().map(|(value, width)| (value >> (32 - width), width)).collect();
            let bits: u64 = fields.iter().map(|(_, width)| u64::from(*width)).sum();
            let mut payload = vec![9; 3];
            let mut writer = FieldWriter::new(&mut payload, bits);
            fields.iter().for_each(|&(value, width)| writer.put(value, width));
            prop_assert_eq!(bit_length(&payload), bits + 1);
            // As a whole number: a one, then all digits.
            let digits: String =
                fields.iter().map(|&(value, width)| format!("{value:0width$b}", width = width as usize)).collect();
            let written: String = payload.iter().map(|byte| format!("{byte:08b}")).collect();
            prop_assert_eq!(written.trim_start_matches('0'), format!("1{digits}"));
            let (mut reader, there) = FieldReader::new(&payload).unwrap();
            prop_assert_eq!(there, bits);
            for (value, width) in fields {
                prop_assert_eq!(reader.take(width), value);
            }
        }
    }

    #[test]
    fn padding_and_nothing_are_refused() {
        assert_eq!(FieldReader::new(&[]).err(), Some(WireError::Length { short: true }));
        assert_eq!(FieldReader::new(&[0, 1]).err(), Some(WireError::Padded));
    }
}
