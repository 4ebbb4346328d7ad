//! Entries with codes of fixed width.
//!
//! Below the indices of a message the bits of all codes follow one another: the first 32 at the bottom of the
//! message, the others in symbols of 32 bits, except for the last symbol, which has the rest. Every bit costs
//! one bit.

use crate::count::CountLaw;
use crate::message::{THIS_VERSION, begin, bottom, check_indices, check_length, finish, start};
use crate::{Coder, WireError, indices, log2_choose, rans, signs};

/// A string of bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    words: Vec<u32>,
    len: u64,
}

impl Fields {
    /// Appends the lowest `width` ≤ 32 bits of `number`, the highest first.
    #[inline]
    pub fn put(&mut self, number: u32, width: u32) {
        for bit in (0..width).rev() {
            let (word, offset) = ((self.len / 32) as usize, self.len % 32);
            if word == self.words.len() {
                self.words.push(0);
            }
            self.words[word] |= (number >> bit & 1) << (31 - offset);
            self.len += 1;
        }
    }

    /// The `width` ≤ 32 bits from bit `at` on; zeros after the end.
    #[inline]
    pub fn get(&self, at: u64, width: u32) -> u32 {
        let bit = |i: u64| self.words.get((i / 32) as usize).map_or(0, |word| word >> (31 - i % 32) & 1);
        (at..at + u64::from(width)).fold(0, |number, i| number << 1 | bit(i))
    }
}

/// The format of an update whose entries have codes of fixed width. Both ends have it before the update is
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldFormat {
    dim: u32,
    q: u32,
    code: u32,
    fixed: u32,
}

impl FieldFormat {
    /// At most `q` entries of an update of dimension `dim`, each with a code of `code` bits, and `fixed` bits
    /// that do not depend on the number of entries.
    ///
    /// # Panics
    /// If q > d or `code` > 31.
    pub fn new(dim: u32, q: u32, code: u32, fixed: u32) -> Self {
        assert!(q <= dim && code <= 31, "no format has {q} of {dim} entries with {code} bits each");
        Self { dim, q, code, fixed }
    }

    /// The largest number of entries.
    pub fn max_entries(self) -> u32 {
        self.q
    }

    /// Bits of the fields with `count` entries.
    fn bits(self, count: u32) -> u64 {
        u64::from(self.fixed) + u64::from(self.code) * u64::from(count)
    }

    /// An upper bound on the bits of every payload of this format: the sum of the largest costs of all
    /// parts, and 32 bits at the bottom even if fewer are used.
    pub fn longest(self) -> u64 {
        let Self { dim, q, .. } = self;
        if q == 0 {
            return 0;
        }
        let support = log2_choose(u64::from(dim), u64::from(q.min(dim / 2))) + indices::surplus(dim, q);
        let missing = CountLaw::with_bits(self.code, dim, q).surplus_with_bits(dim);
        let unused = 32u64.saturating_sub(self.bits(0)) as f64;
        let version = 32.0 - libm::log2(f64::from(THIS_VERSION));
        let fields = self.bits(q).saturating_sub(32) as f64;
        rans::longest(version + missing + support + fields + unused)
    }
}

impl Coder {
    /// Encodes the entries at the ascending `indices` with their fields and returns the length of `payload`
    /// in bits. The fields have the fixed bits and a code for each entry, in any order that both ends know.
    pub fn encode_fields(
        &mut self,
        format: FieldFormat,
        indices: &[u32],
        fields: &Fields,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        let refuse = |problem: String| Err(WireError::Update { problem });
        let entries = indices.len();
        if entries > format.q as usize {
            return refuse(format!("it has {entries} entries, the format holds {}", format.q));
        }
        check_indices(indices, format.dim)?;
        let due = format.bits(entries as u32);
        if format.q > 0 && fields.len != due {
            return refuse(format!("its fields have {} bits, {entries} entries take {due}", fields.len));
        }
        payload.clear();
        if format.q == 0 {
            return Ok(0);
        }
        let first = fields.words.first().copied().unwrap_or(0);
        let mut writer = start(first, &mut self.memory);
        for (i, &word) in fields.words.iter().enumerate().skip(1).rev() {
            writer.put(signs::slots(word, (fields.len - 32 * i as u64).min(32) as usize));
        }
        let writer = indices::write(format.dim, indices, &mut self.tables, writer);
        let law = CountLaw::with_bits(format.code, format.dim, format.q);
        Ok(finish(law.write(format.q - entries as u32, writer), payload))
    }

    /// Decodes a payload of [`Coder::encode_fields`]. If q = 0 there are no entries and no fields.
    pub fn decode_fields(
        &mut self,
        format: FieldFormat,
        payload: &[u8],
        indices: &mut Vec<u32>,
    ) -> Result<Fields, WireError> {
        indices.clear();
        check_length(payload, format.longest())?;
        if format.q == 0 {
            return Ok(Fields::default());
        }
        let law = CountLaw::with_bits(format.code, format.dim, format.q);
        let (count, reader) = law.read(begin(payload)?)?;
        let mut reader = indices::read(format.dim, count, &mut self.tables, reader, indices)?;
        let len = format.bits(count);
        // At most as many words as the payload can hold.
        let mut words = vec![0; len.div_ceil(32) as usize];
        for (i, word) in words.iter_mut().enumerate().skip(1) {
            let (slot, width) = (reader.slot(), (len - 32 * i as u64).min(32) as u32);
            reader.take(signs::slots(slot, width as usize));
            *word = slot >> (32 - width) << (32 - width);
        }
        let first = bottom(&reader)?;
        let used = len.min(32) as u32;
        let is_padded = used < 32 && first << used != 0 || used == 0 && first != 0;
        if is_padded {
            return Err(WireError::Length { short: false });
        }
        if let Some(word) = words.first_mut() {
            *word = first;
        }
        Ok(Fields { words, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoded_codes_are_the_encoded_codes_within_the_bound(
            dim in 1..300u32, code in 0..=31u32, fixed in 0..70u32, missing in 0..3u32,
            draws in prop::collection::vec((any::<bool>(), any::<u32>()), 300),
        ) {
            let chosen = || (0..dim).zip(&draws).filter(|(_, draw)| draw.0);
            let indices: Vec<u32> = chosen().map(|(index, _)| index).collect();
            let mut fields = Fields::default();
            (0..fixed).for_each(|bit| fields.put(bit % 2, 1));
            chosen().for_each(|(_, draw)| fields.put(draw.1, code));
            let format = FieldFormat::new(dim, (indices.len() as u32 + missing).min(dim), code, fixed);
            prop_assume!(format.max_entries() > 0);
            let (mut coder, mut payload, mut decoded) = (Coder::default(), Vec::new(), vec![7]);
            let bits = coder.encode_fields(format, &indices, &fields, &mut payload).unwrap();
            prop_assert_eq!(coder.decode_fields(format, &payload, &mut decoded).unwrap(), fields);
            prop_assert_eq!(decoded, indices);
            prop_assert!(bits <= format.longest());
        }
    }

    #[test]
    fn the_encoder_rejects_entries_and_fields_of_another_format() {
        let mut fields = Fields::default();
        fields.put(9, 4);
        for (indices, problem) in [
            (&[1, 2, 3][..], "it has 3 entries, the format holds 2"),
            (&[2, 1], "entry 1 follows entry 2; sort them"),
            (&[2, 9], "it has an entry 9 of 9"),
            (&[2], "its fields have 4 bits, 1 entries take 3"),
        ] {
            let format = FieldFormat::new(9, 2, 3, 0);
            let result = Coder::default().encode_fields(format, indices, &fields, &mut Vec::new());
            assert_eq!(result, Err(WireError::Update { problem: problem.into() }));
        }
    }
}
