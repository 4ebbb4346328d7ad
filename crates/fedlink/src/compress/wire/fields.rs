//! Bits that stand one after the other below the indices of a message: the first 32 at its bottom, the others
//! 32 to a symbol, the last of which has what is left. Every bit costs a bit.

use super::count::CountLaw;
use super::rans::{self, Reader, Slots, Writer};
use super::{BOTTOM, Coder, THIS_VERSION, WireError, bit_length, bits, indices, signs};

/// A string of bits.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fields {
    words: Vec<u32>,
    len: u64,
}

impl Fields {
    /// Appends the lowest `width` ≤ 32 bits of `number`, the highest first.
    pub(crate) fn put(&mut self, number: u32, width: u32) {
        for bit in (0..width).rev() {
            let (word, offset) = ((self.len / 32) as usize, self.len % 32);
            if word == self.words.len() {
                self.words.push(0);
            }
            self.words[word] |= (number >> bit & 1) << (31 - offset);
            self.len += 1;
        }
    }

    /// The `width` ≤ 32 bits from bit `at` on.
    pub(crate) fn get(&self, at: u64, width: u32) -> u32 {
        let bit = |i: u64| self.words.get((i / 32) as usize).map_or(0, |word| word >> (31 - i % 32) & 1);
        (at..at + u64::from(width)).fold(0, |number, i| number << 1 | bit(i))
    }
}

/// What both ends know of a message: at most q entries among d, each with a code of so many bits, and `fixed`
/// bits beside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) dim: u32,
    pub(crate) q: u32,
    /// Bits of an entry's code.
    pub(crate) code: u32,
    /// Bits that are sent whatever the number of entries.
    pub(crate) fixed: u32,
}

impl Form {
    /// Bits of the fields with `count` entries.
    fn bits(self, count: u32) -> u64 {
        u64::from(self.fixed) + u64::from(self.code) * u64::from(count)
    }

    /// A number of bits that no payload exceeds: all parts at their most, and the 32 bits at the bottom where
    /// fewer are needed.
    pub(crate) fn longest(self) -> u64 {
        let Self { dim, q, .. } = self;
        if q == 0 {
            return 0;
        }
        let support = bits::log2_choose(u64::from(dim), u64::from(q.min(dim / 2))) + indices::surplus(dim, q);
        let missing = CountLaw::with_bits(self.code, dim, q).surplus_with_bits(dim);
        let unused = 32u64.saturating_sub(self.bits(0)) as f64;
        let version = 32.0 - libm::log2(f64::from(THIS_VERSION));
        let fields = self.bits(q).saturating_sub(32) as f64;
        rans::longest(version + missing + support + fields + unused)
    }
}

impl Coder {
    /// Writes entries at `indices` with their fields, as many as `form` has for them.
    pub(crate) fn encode_fields(
        &mut self,
        form: Form,
        indices: &[u32],
        fields: &Fields,
        payload: &mut Vec<u8>,
    ) -> u64 {
        debug_assert_eq!(fields.len, form.bits(indices.len() as u32));
        let first = fields.words.first().copied().unwrap_or(0);
        let mut writer = Writer::new(BOTTOM | u64::from(first), &mut self.memory);
        for (i, &word) in fields.words.iter().enumerate().skip(1).rev() {
            writer.put(signs::slots(word, (fields.len - 32 * i as u64).min(32) as usize));
        }
        let writer = indices::write(form.dim, indices, &mut self.tables, writer);
        let law = CountLaw::with_bits(form.code, form.dim, form.q);
        let mut writer = law.write(form.q - indices.len() as u32, writer);
        writer.put(Slots::answer(THIS_VERSION, true));
        writer.finish(payload);
        bit_length(payload)
    }

    /// Reads what [`Coder::encode_fields`] writes.
    pub(crate) fn decode_fields(
        &mut self,
        form: Form,
        payload: &[u8],
        indices: &mut Vec<u32>,
    ) -> Result<Fields, WireError> {
        let (bits, longest) = (bit_length(payload), form.longest());
        if bits > longest {
            return Err(WireError::TooLong { bits, longest });
        }
        if payload.first() == Some(&0) {
            return Err(WireError::Padded);
        }
        let mut reader = Reader::new(payload).ok_or(WireError::Length { short: true })?;
        if !reader.take_answer(THIS_VERSION) {
            return Err(WireError::Version);
        }
        let (missing, reader) = CountLaw::with_bits(form.code, form.dim, form.q).read(reader);
        let too_many = || WireError::Missing { missing, q: form.q };
        let count = u64::from(form.q).checked_sub(missing).ok_or_else(too_many)? as u32;
        let mut reader = indices::read(form.dim, count, &mut self.tables, reader, indices)?;
        let len = form.bits(count);
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

/// The 32 bits at the bottom, where nothing else is left.
pub(super) fn bottom(reader: &Reader) -> Result<u32, WireError> {
    let (first, below) = reader.rest();
    if below > 0 || first >= 2 * BOTTOM {
        return Err(WireError::Length { short: false });
    }
    if first < BOTTOM {
        return Err(WireError::Length { short: true });
    }
    Ok(first as u32)
}
