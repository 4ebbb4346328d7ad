//! Entries that are multiples of a unit: a sign and a level from 1 to s each.
//!
//! A level ξ is sent as ξ − 1 in as many binary digits as s − 1 has, the lowest first, by the geometric
//! law of the count of missing entries: with w, digit j is 1 with probability u/(1 + u), u = w^(2^j). w =
//! 1 − 2^(−a/16) is fitted to the mean of ξ − 1, which is 2^(a/16) − 1 for that law, rounded up; a is a
//! byte.

use crate::message::{begin, bottom, check_indices, finish, start};
use crate::rans::{Reader, SLOTS, Slots};
use crate::{Coder, WireError, bit_length, indices, signs};

/// Values that are whole multiples of a unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// The unit, as a value.
    pub unit: f32,
    /// s, the largest multiple.
    pub steps: u32,
    /// The multiple for each entry, in the order of the indices.
    pub levels: Vec<i32>,
}

impl Grid {
    /// The values. A product beyond the largest number of its type becomes that number.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f32> {
        let (unit, max) = (f64::from(self.unit), f64::from(f32::MAX));
        self.levels.iter().map(move |&level| (unit * f64::from(level)).clamp(-max, max) as f32)
    }
}

/// ⌊2³²·2^(−i/16)⌋ for i in 1..=15; 2³² for 0.
const SIXTEENTHS: [u64; 16] = [
    4_294_967_296,
    4_112_874_773,
    3_938_502_375,
    3_771_522_796,
    3_611_622_602,
    3_458_501_653,
    3_311_872_529,
    3_171_459_999,
    3_037_000_499,
    2_908_241_642,
    2_784_941_737,
    2_666_869_344,
    2_553_802_833,
    2_445_529_971,
    2_341_847_523,
    2_242_560_871,
];

/// The largest number of steps that a message can have.
pub const MAX_STEPS: u32 = 1 << 15;

/// The numbers of steps that a message can have: ⌊2^(j/4)⌋ from 1 on without repetition, four to an octave.
pub fn steps() -> impl Iterator<Item = u32> {
    // Without floating point: 2^(j/4) is one of four numbers times a power of two.
    let all =
        (0..=60u32).map(|j| ((SIXTEENTHS[((60 - j) % 4 * 4) as usize] << (15 - (60 - j) / 4)) >> 32) as u32);
    let mut last = 0;
    all.filter(move |&s| std::mem::replace(&mut last, s) != s)
}

/// Bits of the number of steps.
const STEPS_BITS: usize = 6;

/// Bits of a.
const LAW_BITS: usize = 8;

/// Slots of "one" for each digit of a level less one.
fn digits(law: u32, steps: u32) -> impl Iterator<Item = u32> + Clone {
    let ratio = SLOTS - (SIXTEENTHS[(law % 16) as usize] >> (law / 16)).max(1);
    let count = u32::BITS - (steps - 1).leading_zeros();
    let powers = std::iter::successors(Some(ratio), |power| Some(((power * power) >> 32) + 1));
    powers.take(count as usize).map(|power| ((power << 32) / (SLOTS + power)) as u32 + 1)
}

/// The smallest a whose law has a mean no less than that of the levels; 0 only if all levels are 1.
fn law_of(levels: &[i32]) -> u32 {
    let sum: u64 = levels.iter().map(|level| u64::from(level.unsigned_abs())).sum();
    let mean = sum as f64 / levels.len().max(1) as f64;
    libm::ceil(16.0 * libm::log2(mean.max(1.0))) as u32
}

/// The slots of nnz among 0..=d.
fn entries_slots(entries: u64, dim: u32) -> Slots {
    let start = |count: u64| (count << 32) / (u64::from(dim) + 1);
    Slots::between(start(entries), start(entries + 1))
}

impl Coder {
    /// Encodes an update of dimension `dim` ≥ 1 whose values are multiples of a unit, and returns the length
    /// of `payload` in bits.
    pub fn encode_grid(
        &mut self,
        dim: u32,
        indices: &[u32],
        grid: &Grid,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        let refuse = |problem: String| Err(WireError::Update { problem });
        let Some(steps_index) = steps().position(|s| s == grid.steps) else {
            return refuse(format!("no message has {} steps", grid.steps));
        };
        if dim == 0 {
            return refuse("its dimension is 0; write at least 1".into());
        }
        if grid.levels.len() != indices.len() {
            return refuse(format!("it has {} levels for {} entries", grid.levels.len(), indices.len()));
        }
        if let Some(level) = grid.levels.iter().find(|l| !(1..=grid.steps).contains(&l.unsigned_abs())) {
            return refuse(format!("a level is {level}, but must be 1 ..= {} or negative", grid.steps));
        }
        check_indices(indices, dim)?;
        if !grid.unit.is_finite() {
            return Err(WireError::NotFinite { entry: 0, value: grid.unit });
        }
        let mut writer = start(grid.unit.to_bits(), &mut self.memory);
        let law = law_of(&grid.levels);
        let mut ones = [0u32; 16];
        let count = digits(law, grid.steps).zip(&mut ones).map(|(one, place)| *place = one).count();
        for level in grid.levels.iter().rev() {
            let digits = level.unsigned_abs() - 1;
            for j in (0..count).rev() {
                writer.put(Slots::answer(ones[j], digits >> j & 1 == 1));
            }
        }
        for group in grid.levels.chunks(32).rev() {
            let sign = |(i, level): (usize, &i32)| u32::from(*level < 0) << (31 - i);
            let word = group.iter().enumerate().map(sign).fold(0, |word, sign| word | sign);
            writer.put(signs::slots(word, group.len()));
        }
        writer.put(signs::slots(law << (32 - LAW_BITS), LAW_BITS));
        writer.put(signs::slots((steps_index as u32) << (32 - STEPS_BITS), STEPS_BITS));
        let mut writer = indices::write(dim, indices, &mut self.tables, writer);
        writer.put(entries_slots(indices.len() as u64, dim));
        Ok(finish(writer, payload))
    }

    /// Decodes a payload of [`Coder::encode_grid`].
    pub fn decode_grid(
        &mut self,
        dim: u32,
        payload: &[u8],
        indices: &mut Vec<u32>,
    ) -> Result<Grid, WireError> {
        indices.clear();
        let mut reader = begin(payload)?;
        if dim == 0 {
            return Err(WireError::Length { short: false });
        }
        // The largest count whose first slot is at most the slot.
        let entries = (((u64::from(reader.slot()) + 1) * (u64::from(dim) + 1) - 1) >> 32).min(u64::from(dim));
        reader.take(entries_slots(entries, dim));
        if entries > bit_length(payload) {
            // Each takes a bit for its sign.
            return Err(WireError::Length { short: true });
        }
        let mut reader = indices::read(dim, entries as u32, &mut self.tables, reader, indices)?;
        let take = |reader: &mut Reader, bits: usize| {
            let slot = reader.slot();
            reader.take(signs::slots(slot, bits));
            slot >> (32 - bits)
        };
        let steps_index = take(&mut reader, STEPS_BITS);
        let Some(steps) = steps().nth(steps_index as usize) else {
            return Err(WireError::Update {
                problem: format!("number {steps_index} of steps does not exist"),
            });
        };
        let law = take(&mut reader, LAW_BITS);
        let mut levels = vec![1i32; entries as usize];
        for group in levels.chunks_mut(32) {
            let signs = reader.slot();
            reader.take(signs::slots(signs, group.len()));
            group.iter_mut().enumerate().for_each(|(i, level)| *level = 1 - 2 * (signs << i >> 31) as i32);
        }
        let digits = digits(law, steps);
        for level in &mut levels {
            let take = |(j, one): (usize, u32)| u32::from(reader.take_answer(one)) << j;
            let size = digits.clone().enumerate().map(take).sum::<u32>() + 1;
            if size > steps {
                return Err(WireError::Update { problem: format!("a level is {size} of {steps}") });
            }
            *level *= size as i32;
        }
        let unit = f32::from_bits(bottom(&reader)?);
        if !unit.is_finite() {
            return Err(WireError::NotFinite { entry: 0, value: unit });
        }
        if law != law_of(&levels) {
            return Err(WireError::Update { problem: "its law is not that of its levels".into() });
        }
        Ok(Grid { unit, steps, levels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_constants_are_roots_of_two() {
        for (i, &constant) in SIXTEENTHS.iter().enumerate() {
            let truth = (32.0 - i as f64 / 16.0).exp2();
            assert!((constant as f64 - truth).abs() <= 1.0, "{i}: {constant}, {truth}");
        }
        let steps: Vec<u32> = steps().collect();
        let expected: Vec<u32> = {
            let mut all: Vec<u32> = (0..=60).map(|j| (f64::from(j) / 4.0).exp2().floor() as u32).collect();
            all.dedup();
            all
        };
        assert_eq!(steps, expected);
        assert!(steps.len() <= 1 << STEPS_BITS && steps.last() == Some(&MAX_STEPS));
    }

    proptest! {
        #[test]
        fn decoded_levels_are_the_encoded_levels_and_cost_the_bits_of_their_law(
            dim in 1..400u32, j in 0..50usize, share in 0.0..=1.0f64,
            draws in prop::collection::vec((0.0..1.0f64, 0.0..1.0f64, any::<bool>()), 400),
        ) {
            let steps = steps().nth(j).unwrap();
            let chosen = || (0..dim).zip(&draws).filter(|(_, draw)| draw.0 < share);
            let indices: Vec<u32> = chosen().map(|(index, _)| index).collect();
            // Sizes are roughly geometric.
            let level = |&(_, size, negative): &(f64, f64, bool)| {
                let size = 1 + (-3.0 * (1.0 - size).ln()) as u32 % steps;
                if negative { -(size as i32) } else { size as i32 }
            };
            let levels: Vec<i32> = chosen().map(|(_, draw)| level(draw)).collect();
            let grid = Grid { unit: 0.3, steps, levels };
            let (mut coder, mut payload) = (Coder::default(), Vec::new());
            let bits = coder.encode_grid(dim, &indices, &grid, &mut payload).unwrap();
            let mut decoded = vec![7];
            let decoded_grid = coder.decode_grid(dim, &payload, &mut decoded).unwrap();
            // In real numbers: norm, steps, law, count, indices, signs, and −log2 of the geometric law.
            let count = indices.len() as f64;
            let w = 1.0 - (-f64::from(law_of(&grid.levels)) / 16.0).exp2();
            let digits = 32 - (steps - 1).leading_zeros();
            let cost = |level: &i32| -> f64 {
                (0..digits).map(|j| {
                    let u = w.powi(1 << j);
                    let one = (level.unsigned_abs() - 1) >> j & 1 == 1;
                    -(if one { u / (1.0 + u) } else { 1.0 / (1.0 + u) }).log2()
                }).sum()
            };
            let ideal = 33.0 + 14.0 + f64::from(dim + 1).log2()
                + crate::log2_choose(u64::from(dim), indices.len() as u64)
                + count + grid.levels.iter().map(cost).sum::<f64>();
            prop_assert!((bits as f64) <= ideal + 3.0 && bits as f64 >= ideal - 3.0, "{bits}, {ideal}");
            prop_assert_eq!((decoded, decoded_grid), (indices, grid));
        }
    }
}
