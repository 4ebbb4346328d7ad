//! The coder of updates: checks, encodes and decodes.

use crate::count::CountLaw;
use crate::indices::Tables;
use crate::message::{begin, bottom, check_finite, check_indices, check_length, finish, start};
use crate::rans::Slots;
use crate::{Format, Layout, WireError, bit_length, indices, signs};

/// Encodes and decodes updates. It keeps its memory from one update to the next.
#[derive(Debug, Default)]
pub struct Coder {
    pub(crate) tables: Tables,
    pub(crate) memory: Vec<u8>,
}

impl Coder {
    /// Encodes the entries at the ascending `indices` as `payload` and returns its length in bits.
    ///
    /// `values` has one value with [`Layout::Shared`], and one for each index otherwise. The payload is
    /// padded with leading zero bits to whole bytes; the length does not include them. If q = 0 there is
    /// nothing to send and the payload is empty.
    pub fn encode(
        &mut self,
        format: &Format,
        indices: &[u32],
        values: &[f32],
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        check(format, indices, values)?;
        payload.clear();
        if format.q > 0 {
            self.write(format, indices, values, payload);
        }
        Ok(bit_length(payload))
    }

    fn write(&mut self, format: &Format, indices: &[u32], values: &[f32], payload: &mut Vec<u8>) {
        let (first, others) = values.split_first().map_or((0, &[][..]), |(a, b)| (a.to_bits(), b));
        let mut writer = start(first, &mut self.memory);
        if format.layout == Layout::Signs {
            writer = signs::write(others, writer);
        } else {
            for value in others.iter().rev() {
                writer.put(Slots { start: value.to_bits(), width: 1 });
            }
        }
        let writer = indices::write(format.dim, indices, &mut self.tables, writer);
        let law = CountLaw::new(format.layout, format.dim, format.q);
        finish(law.write(format.q - indices.len() as u32, writer), payload);
    }

    /// Decodes `payload`: writes the ascending indices and the values, in the form of [`Coder::encode`]. On
    /// an error both are empty.
    pub fn decode(
        &mut self,
        format: &Format,
        payload: &[u8],
        indices: &mut Vec<u32>,
        values: &mut Vec<f32>,
    ) -> Result<(), WireError> {
        indices.clear();
        values.clear();
        let result = self.read(format, payload, indices, values);
        if result.is_err() {
            indices.clear();
            values.clear();
        }
        result
    }

    fn read(
        &mut self,
        format: &Format,
        payload: &[u8],
        indices: &mut Vec<u32>,
        values: &mut Vec<f32>,
    ) -> Result<(), WireError> {
        let Format { layout, dim, q } = *format;
        check_length(payload, format.longest())?;
        if q == 0 {
            values.resize(usize::from(layout == Layout::Shared), 0.0);
            return Ok(());
        }
        let (count, reader) = CountLaw::new(layout, dim, q).read(begin(payload)?)?;
        let mut reader = indices::read(dim, count, &mut self.tables, reader, indices)?;
        values.resize(if layout == Layout::Shared { 1 } else { count as usize }, 0.0);
        match (layout, values.split_first_mut()) {
            (Layout::Shared, _) | (_, None) => {}
            (Layout::Each, Some((_, others))) => {
                for value in others {
                    let start = reader.slot();
                    reader.take(Slots { start, width: 1 });
                    *value = f32::from_bits(start);
                }
            }
            (Layout::Signs, Some((_, others))) => reader = signs::read(reader, others),
        }
        let first = f32::from_bits(bottom(&reader)?);
        match values.split_first_mut() {
            Some((value, others)) => {
                *value = first;
                if layout == Layout::Signs {
                    others.iter_mut().for_each(|sign| *sign = first.copysign(*sign));
                }
            }
            None if first.to_bits() != 0 => return Err(WireError::Length { short: false }),
            None => {}
        }
        check_values(layout, values)
    }
}

/// Checks that `indices` and `values` follow `format`.
fn check(format: &Format, indices: &[u32], values: &[f32]) -> Result<(), WireError> {
    let entries = indices.len();
    let refuse = |problem: String| Err(WireError::Update { problem });
    if format.layout == Layout::Shared {
        if values.len() != 1 {
            return refuse(format!("it has {} values, but all its entries share one", values.len()));
        }
    } else if values.len() != entries {
        return refuse(format!("it has {} values for {entries} entries", values.len()));
    }
    if entries > format.q as usize {
        return refuse(format!("it has {entries} entries, the format holds {}", format.q));
    }
    check_indices(indices, format.dim)?;
    check_values(format.layout, values)
}

/// Checks that [`Coder::decode`] can return `values`: they are finite, and with [`Layout::Signs`] they
/// have one magnitude above zero.
pub fn check_values(layout: Layout, values: &[f32]) -> Result<(), WireError> {
    check_finite(values)?;
    if layout != Layout::Signs {
        return Ok(());
    }
    let Some(first) = values.first() else { return Ok(()) };
    if *first == 0.0 {
        return Err(WireError::ZeroMagnitude { entries: values.len() });
    }
    match values.iter().position(|value| value.abs() != first.abs()) {
        Some(entry) => Err(WireError::Update {
            problem: format!("entry {entry} is {}, entry 0 is {first}; send one magnitude", values[entry]),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decoder_rejects_values_that_are_not_finite() {
        // `write` is an encoder that does not check.
        let (mut coder, mut payload) = (Coder::default(), Vec::new());
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for (layout, values, at) in [
                (Layout::Shared, &[bad][..], 0),
                (Layout::Each, &[1.0, 2.0, bad], 2),
                (Layout::Each, &[bad, 2.0, 1.0], 0),
            ] {
                let format = Format::new(layout, 2000, 4).unwrap();
                let (mut indices, mut decoded) = (vec![5, 900, 1999], Vec::new());
                coder.write(&format, &indices, values, &mut payload);
                match coder.decode(&format, &payload, &mut indices, &mut decoded) {
                    Err(WireError::NotFinite { entry, value }) => {
                        assert_eq!((entry, value.to_bits()), (at, bad.to_bits()));
                    }
                    other => panic!("{layout:?}: {other:?}"),
                }
                assert!(indices.is_empty() && decoded.is_empty());
            }
        }
    }

    #[test]
    fn the_decoder_rejects_a_value_without_an_entry_if_each_entry_has_its_own() {
        let format = Format::new(Layout::Each, 50, 4).unwrap();
        let (mut coder, mut payload) = (Coder::default(), Vec::new());
        for (value, result) in [(0.0, Ok(())), (1.0, Err(WireError::Length { short: false }))] {
            coder.write(&format, &[], &[value], &mut payload);
            assert_eq!(coder.decode(&format, &payload, &mut Vec::new(), &mut Vec::new()), result);
        }
    }

    #[test]
    fn the_decoder_rejects_a_count_above_q() {
        // q = 5 takes three digits, which can encode up to 8 missing entries.
        let format = Format::new(Layout::Shared, 20, 5).unwrap();
        let law = CountLaw::new(format.layout, format.dim, format.q);
        let (mut memory, mut payload) = (Vec::new(), Vec::new());
        finish(law.write(7, start(0, &mut memory)), &mut payload);
        let result = Coder::default().decode(&format, &payload, &mut Vec::new(), &mut Vec::new());
        assert_eq!(result, Err(WireError::Missing { missing: 7, q: 5 }));
    }

    #[test]
    fn the_encoder_rejects_updates_of_another_format() {
        let cases: [(Layout, &[u32], &[f32], &str); 7] = [
            (Layout::Shared, &[1], &[], "it has 0 values, but all its entries share one"),
            (Layout::Each, &[1, 2], &[1.0], "it has 1 values for 2 entries"),
            (Layout::Each, &[1, 2, 3], &[1.0; 3], "it has 3 entries, the format holds 2"),
            (Layout::Shared, &[2, 1], &[1.0], "entry 1 follows entry 2; sort them"),
            (Layout::Shared, &[2, 2], &[1.0], "entry 2 follows entry 2; sort them"),
            (Layout::Shared, &[2, 9], &[1.0], "it has an entry 9 of 9"),
            (Layout::Signs, &[2, 3], &[1.0, 2.0], "entry 1 is 2, entry 0 is 1; send one magnitude"),
        ];
        for (layout, indices, values, problem) in cases {
            let format = Format::new(layout, 9, 2).unwrap();
            let result = Coder::default().encode(&format, indices, values, &mut Vec::new());
            assert_eq!(result, Err(WireError::Update { problem: problem.into() }));
        }
    }
}
