//! Mutations of seeds, the same in every run.

/// A stream of numbers that is a function of its seed alone (SplitMix64).
#[derive(Clone, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.draw()) * limit as u128) >> 64) as usize
    }
}

/// Bytes that parsers treat specially: zeros, signs, delimiters, the ends of ranges.
const SPECIAL: &[u8] = b"\0\x01\x7f\x80\xff\n\"'[]{}()=.,#|@<>*-+eE09 ";

/// One of `seeds` with one to eight changes, no longer than `max_len`: flipped bits, overwritten, inserted,
/// removed and repeated bytes, and the tail of another seed.
pub fn mutated(seeds: &[Vec<u8>], max_len: usize, numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seeds.get(numbers.below(seeds.len())).cloned().unwrap_or_default();
    for _ in 0..=numbers.below(8) {
        change(&mut bytes, seeds, numbers);
    }
    bytes.truncate(max_len);
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], numbers: &mut Numbers) {
    let at = numbers.below(bytes.len());
    // A run from `at` to a near or a far end.
    let longest = (bytes.len() - at).min(1 << numbers.below(12));
    let end = at + numbers.below(longest + 1);
    match numbers.below(8) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << numbers.below(8),
        1 if !bytes.is_empty() => bytes[at] = numbers.draw() as u8,
        2 if !bytes.is_empty() => bytes[at] = SPECIAL[numbers.below(SPECIAL.len())],
        3 => bytes.insert(at, SPECIAL[numbers.below(SPECIAL.len())]),
        4 => drop(bytes.drain(at..end)),
        5 => {
            let run = bytes[at..end].to_vec();
            bytes.splice(at..at, run.repeat(1 + numbers.below(3)));
        }
        6 => {
            let other = &seeds[numbers.below(seeds.len())];
            let from = numbers.below(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => {
            // A number of four bytes at an end of its range.
            let word = [0, 1, u32::MAX, i32::MAX as u32, 1 << 31, 1 << 16][numbers.below(6)];
            let word = if numbers.below(2) == 0 { word.to_le_bytes() } else { word.to_be_bytes() };
            bytes.iter_mut().skip(at).zip(word).for_each(|(byte, new)| *byte = new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_differ_from_each_other_and_are_the_same_in_every_run() {
        let seeds = [b"the first seed of the two".to_vec(), b"another, longer one [1, 2, 3]".to_vec()];
        let all = |seed| {
            let mut numbers = Numbers(seed);
            (0..1000).map(|_| mutated(&seeds, 40, &mut numbers)).collect::<Vec<_>>()
        };
        let first = all(1);
        assert_eq!(first, all(1));
        assert_ne!(first, all(2));
        assert!(first.iter().all(|bytes| bytes.len() <= 40));
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        assert!(distinct.len() > 900, "{} distinct mutations of 1000", distinct.len());
    }
}
