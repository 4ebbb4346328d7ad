//! Garbage: random bytes.

use super::{Air, Attack};
use crate::rng::{Purpose, stream};

/// Sends uniformly random bits, as many as its budget holds.
///
/// Most are no payload of the round's format. Those that happen to be one say anything, values of 10³⁸ among it.
#[derive(Clone, Copy, Debug)]
pub struct Garbage;

impl Attack for Garbage {
    fn payload(&self, air: &Air, place: usize) -> Option<Vec<u8>> {
        let mut chance = stream(air.seed, Purpose::Adversary, air.round, u64::from(air.devices[place].0));
        Some((0..air.room[place] / 8).map(|_| chance.bits() as u8).collect())
    }
}
