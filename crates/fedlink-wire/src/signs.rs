//! The signs of entries that share one magnitude, 32 per symbol.
//!
//! The sign of the first entry is that of the value at the bottom of the message. The signs of the others
//! follow in groups of 32; the last group has n ≤ 32. A group owns the 2³²⁻ⁿ slots whose n highest bits
//! are its signs, that of its first entry on top, a one for a negative entry. So every sign costs one
//! bit, and a message has few symbols.

use crate::rans::{Reader, SLOTS, Slots, Writer};

/// Signs per symbol.
const GROUP: usize = 32;

/// The slots whose `count` highest bits are those of `signs`, 1 ≤ `count` ≤ 32.
pub(crate) fn slots(signs: u32, count: usize) -> Slots {
    let width = (SLOTS >> count) as u32;
    Slots { start: signs & !(width - 1), width }
}

/// Encodes the signs of `values`, the last group first.
pub(crate) fn write<'a>(values: &[f32], mut writer: Writer<'a>) -> Writer<'a> {
    for group in values.chunks(GROUP).rev() {
        let sign = |(i, value): (usize, &f32)| u32::from(value.is_sign_negative()) << (31 - i);
        let signs = group.iter().enumerate().map(sign).fold(0, |signs, sign| signs | sign);
        writer.put(slots(signs, group.len()));
    }
    writer
}

/// Decodes as many signs as there are `values`: each becomes 1 or −1.
pub(crate) fn read<'a>(mut reader: Reader<'a>, values: &mut [f32]) -> Reader<'a> {
    for group in values.chunks_mut(GROUP) {
        let signs = reader.slot();
        reader.take(slots(signs, group.len()));
        for (i, value) in group.iter_mut().enumerate() {
            *value = if signs << i >> 31 == 1 { -1.0 } else { 1.0 };
        }
    }
    reader
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoded_signs_are_the_encoded_signs_and_cost_a_bit_each(
            negative in prop::collection::vec(any::<bool>(), 0..200), start in SLOTS..2 * SLOTS,
        ) {
            let sign = |&negative: &bool| if negative { -1.0f32 } else { 1.0 };
            let values: Vec<f32> = negative.iter().map(sign).collect();
            let (mut memory, mut message) = (Vec::new(), Vec::new());
            write(&values, Writer::new(start, &mut memory)).finish(&mut message);
            // Powers of two need no rounding: 33 bits of the start and one per sign.
            prop_assert_eq!(crate::bit_length(&message), 33 + values.len() as u64);
            let mut read_back = vec![0.0; values.len()];
            let reader = read(Reader::new(&message).unwrap(), &mut read_back);
            prop_assert_eq!(reader.rest(), (start, 0));
            prop_assert_eq!(read_back, values);
        }
    }

    #[test]
    fn the_first_entry_of_a_group_is_its_highest_bit() {
        assert_eq!(slots(0b101 << 29, 3), Slots { start: 0b101 << 29, width: 1 << 29 });
        assert_eq!(slots(u32::MAX, 1), Slots { start: 1 << 31, width: 1 << 31 });
        assert_eq!(slots(0x1234_5678, 32), Slots { start: 0x1234_5678, width: 1 });
    }
}
