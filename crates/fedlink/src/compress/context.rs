//! The common knowledge of both ends of a link about an upload before it is sent.

use crate::base::rng::{Purpose, Stream, stream};
use crate::base::units::{Bits, DeviceId, Shape};

/// The common knowledge of a device and the server about the device's upload in a round, without a bit
/// being sent. A scheme may derive its format, and shared random numbers, from all of it.
///
/// ```
/// use fedlink::compress::Context;
/// use fedlink::base::units::Bits;
/// let (device, server) = (Context::new(1000, Bits(64.0)), Context::new(1000, Bits(64.0)));
/// assert_eq!(device.shared().bits(), server.shared().bits());
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Context<'a> {
    /// d.
    pub dim: usize,
    /// R: the bits that the device may send.
    pub budget: Bits,
    /// The run's seed.
    pub seed: u64,
    /// t, counted from 0.
    pub round: u64,
    /// The sender.
    pub device: DeviceId,
    /// The layers of the model in the order of θ, as many numbers as θ has; empty if they are not known.
    pub shapes: &'a [Shape],
    /// The highest level that the device takes, of schemes whose level is a number of entries
    /// (`compress.level = "best"`); none: the highest that fits. It is the device's own choice: the server
    /// does not know it.
    pub highest: Option<usize>,
}

impl<'a> Context<'a> {
    /// An update of `dim` numbers within `budget`: seed, round and device 0, layers not known.
    pub fn new(dim: usize, budget: Bits) -> Self {
        Self { dim, budget, seed: 0, round: 0, device: DeviceId(0), shapes: &[], highest: None }
    }

    /// The upload of `device` in round `t` of the run with this seed.
    #[must_use]
    pub fn of(self, seed: u64, (t, device): (u64, DeviceId)) -> Self {
        Self { seed, round: t, device, ..self }
    }

    /// The same with these layers; without layers if they do not have d numbers.
    #[must_use]
    pub fn with_shapes(self, shapes: &'a [Shape]) -> Self {
        let numbers = shapes.iter().fold(0usize, |sum, shape| sum.saturating_add(shape.len()));
        Self { shapes: if numbers == self.dim { shapes } else { &[] }, ..self }
    }

    /// With another budget.
    #[must_use]
    pub fn within(self, budget: Bits) -> Self {
        Self { budget, ..self }
    }

    /// With a highest level.
    #[must_use]
    pub fn up_to(self, highest: Option<usize>) -> Self {
        Self { highest, ..self }
    }

    /// The level to take if `fits` is the highest that fits.
    pub(crate) fn level_within(&self, fits: usize) -> usize {
        self.highest.map_or(fits, |highest| highest.min(fits))
    }

    /// The shared random numbers of both ends; they differ between rounds and between devices.
    pub fn shared(&self) -> Stream {
        stream(self.seed, Purpose::Shared, self.round, u64::from(self.device.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_random_numbers_differ_by_seed_round_and_device_and_not_by_budget() {
        let draw = |seed, t, device, budget| {
            Context::new(9, Bits(budget)).of(seed, (t, DeviceId(device))).shared().bits()
        };
        let numbers = [draw(1, 2, 3, 4.0), draw(0, 2, 3, 4.0), draw(1, 0, 3, 4.0), draw(1, 2, 0, 4.0)];
        assert!((0..4).all(|i| (0..i).all(|j| numbers[i] != numbers[j])), "{numbers:?}");
        assert_eq!(numbers[0], draw(1, 2, 3, 5.0));
    }

    #[test]
    fn layers_of_another_size_than_theta_are_ignored() {
        let shapes = [Shape { rows: 2, cols: 3 }, Shape { rows: 3, cols: 1 }];
        assert_eq!(Context::new(9, Bits(1.0)).with_shapes(&shapes).shapes, shapes);
        assert!(Context::new(8, Bits(1.0)).with_shapes(&shapes).shapes.is_empty());
        let endless = [Shape { rows: usize::MAX, cols: 2 }, Shape { rows: 10, cols: 1 }];
        assert!(Context::new(9, Bits(1.0)).with_shapes(&endless).shapes.is_empty());
    }
}
