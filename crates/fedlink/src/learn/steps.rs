//! The number and the length of a device's local steps.

use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;

/// τ_m and η(t) of a device in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalSteps {
    /// τ_m.
    pub count: u64,
    /// η(t).
    pub rate: f64,
}

impl LocalSteps {
    /// τ_m·η(t), the factor between the mean gradient and the movement of the model.
    pub fn length(&self) -> f64 {
        self.count as f64 * self.rate
    }
}

/// The number of local steps of each device in a round: τ (`learn.local_steps`) or, if
/// `learn.local_steps_min` is set, a number between the two, drawn uniformly for each device and the same
/// in all rounds.
///
/// ```
/// use fedlink::{base::units::DeviceId, learn::steps::StepCounts};
/// let counts = StepCounts { max: 9, min: Some(3), seed: 0 };
/// assert!((0..100).all(|m| (3..=9).contains(&counts.of(DeviceId(m)))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepCounts {
    /// τ, the largest number.
    pub max: u64,
    /// The smallest one; none: all devices take τ steps.
    pub min: Option<u64>,
    /// The run's seed.
    pub seed: u64,
}

impl StepCounts {
    /// τ_m.
    pub fn of(&self, device: DeviceId) -> u64 {
        match self.min {
            None => self.max,
            Some(min) => {
                let mut rng = stream(self.seed, Purpose::LocalSteps, u64::MAX, u64::from(device.0));
                min + rng.below(self.max.saturating_sub(min) + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_uniform_over_the_devices_and_the_same_in_every_round() {
        let counts = StepCounts { max: 5, min: Some(2), seed: 3 };
        let drawn: Vec<u64> = (0..4000).map(|m| counts.of(DeviceId(m))).collect();
        for count in 2..=5 {
            let share = drawn.iter().filter(|&&drawn| drawn == count).count() as f64 / 4000.0;
            // Four standard deviations of a share of 4000 draws.
            assert!((share - 0.25).abs() < 4.0 * (0.25f64 * 0.75 / 4000.0).sqrt(), "{count}: {share}");
        }
        assert_eq!(counts.of(DeviceId(7)), drawn[7]);
        assert_eq!(StepCounts { min: None, ..counts }.of(DeviceId(7)), 5);
        assert_eq!(StepCounts { min: Some(5), ..counts }.of(DeviceId(7)), 5);
    }
}
