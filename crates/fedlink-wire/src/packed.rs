//! Numbers of fixed width, one after the other, without indices and without an entropy code.
//!
//! A payload is a number: a one on top, and below it the bits of all numbers in order, the highest bit of
//! each first. It has one bit more than the numbers together, and its length determines their number of
//! bits.

use crate::{WireError, bit_length};

/// Writes numbers of fixed width to a payload.
///
/// ```
/// use fedlink_wire::{Packer, Unpacker};
/// # fn main() -> Result<(), fedlink_wire::WireError> {
/// let mut payload = Vec::new();
/// let mut packer = Packer::new(13, &mut payload);
/// packer.put(10, 4);
/// packer.put(195, 9);
/// // One more bit marks the beginning.
/// assert_eq!(packer.finish(), 14);
/// let (mut unpacker, bits) = Unpacker::new(&payload)?;
/// assert_eq!((bits, unpacker.take(4), unpacker.take(9)), (13, 10, 195));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Packer<'a> {
    payload: &'a mut Vec<u8>,
    /// Bits that do not fill a byte yet, fewer than 8.
    window: u64,
    filled: u32,
}

impl<'a> Packer<'a> {
    /// A payload for exactly `bits` bits. The previous content of `payload` is cleared.
    #[inline]
    pub fn new(bits: u64, payload: &'a mut Vec<u8>) -> Self {
        payload.clear();
        // The one on top, after as many zeros as fill the first byte.
        let padding = (8 - (bits + 1) % 8) % 8;
        Self { payload, window: 1, filled: padding as u32 + 1 }.flushed()
    }

    /// Puts the lowest `width` ≤ 32 bits of `number`.
    #[inline]
    pub fn put(&mut self, number: u32, width: u32) {
        debug_assert!(width <= 32);
        let mask = (1u64 << width) - 1;
        self.window = self.window << width | (u64::from(number) & mask);
        self.filled += width;
        self.flush();
    }

    fn flushed(mut self) -> Self {
        self.flush();
        self
    }

    fn flush(&mut self) {
        while self.filled >= 8 {
            self.filled -= 8;
            self.payload.push((self.window >> self.filled) as u8);
            self.window &= (1 << self.filled) - 1;
        }
    }

    /// The length of the payload in bits.
    #[inline]
    pub fn finish(self) -> u64 {
        debug_assert_eq!(self.filled, 0, "the number of bits equals that given to new");
        bit_length(self.payload)
    }
}

/// Reads numbers of fixed width from a payload.
#[derive(Debug)]
pub struct Unpacker<'a> {
    payload: &'a [u8],
    /// The next bit, counted from the top of the first byte.
    next: u64,
}

impl<'a> Unpacker<'a> {
    /// The numbers in `payload`, and their bits in all.
    #[inline]
    pub fn new(payload: &'a [u8]) -> Result<(Self, u64), WireError> {
        match payload.first() {
            None => Err(WireError::Length { short: true }),
            Some(0) => Err(WireError::Padded),
            Some(byte) => {
                let next = u64::from(byte.leading_zeros()) + 1;
                Ok((Self { payload, next }, 8 * payload.len() as u64 - next))
            }
        }
    }

    /// As [`Unpacker::new`], for a payload of at most `longest` bits.
    #[inline]
    pub fn within(payload: &'a [u8], longest: u64) -> Result<(Self, u64), WireError> {
        let bits = bit_length(payload);
        let found = Self::new(payload)?;
        if bits > longest { Err(WireError::TooLong { bits, longest }) } else { Ok(found) }
    }

    /// Takes `width` ≤ 32 bits; missing bits are zeros.
    #[inline]
    pub fn take(&mut self, width: u32) -> u32 {
        let (first, shift) = ((self.next / 8) as usize, self.next % 8);
        let byte = |i: usize| u64::from(self.payload.get(first + i).copied().unwrap_or(0));
        let bytes = (0..5).fold(0u64, |bytes, i| bytes << 8 | byte(i));
        self.next += u64::from(width);
        let mask = (1u64 << width) - 1;
        (bytes >> (40 - shift - u64::from(width)) & mask) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unpacked_numbers_are_the_packed_numbers_and_cost_their_widths(
            numbers in prop::collection::vec((any::<u32>(), 1..=32u32), 0..60),
        ) {
            let bits = numbers.iter().map(|(_, width)| u64::from(*width)).sum();
            let mut payload = vec![7; 5];
            let mut packer = Packer::new(bits, &mut payload);
            numbers.iter().for_each(|(number, width)| packer.put(*number, *width));
            prop_assert_eq!(packer.finish(), bits + 1);
            let (mut unpacker, found) = Unpacker::new(&payload).unwrap();
            prop_assert_eq!(found, bits);
            for (number, width) in numbers {
                let mask = ((1u64 << width) - 1) as u32;
                prop_assert_eq!(unpacker.take(width), number & mask);
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_number() {
        // 1 | 1010 | 0 1100 0011: 14 bits, two zeros in front.
        let mut payload = Vec::new();
        let mut packer = Packer::new(13, &mut payload);
        packer.put(0b1010, 4);
        packer.put(0xC3, 9);
        assert_eq!(packer.finish(), 14);
        assert_eq!(payload, [0b0011_0100, 0b1100_0011]);
        assert!(Unpacker::new(&[]).is_err() && Unpacker::new(&[0, 1]).is_err());
    }
}
