//! The step lengths that are tuned.

/// A step length: η times a power of √3, and the server's rate times a power of 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub rate: i32,
    pub server: i32,
}

/// The largest powers.
const MOST: (i32, i32) = (6, 2);

impl Step {
    /// Step 0 is the configured one.
    pub fn of(index: usize) -> Self {
        let width = 2 * MOST.0 + 1;
        let index = i32::try_from(index).unwrap_or(0);
        // From the middle on, around the end to the beginning.
        let wrapped = |value: i32, most: i32| if value > most { value - (2 * most + 1) } else { value };
        Self { rate: wrapped(index % width, MOST.0), server: wrapped(index / width, MOST.1) }
    }

    pub fn index(self) -> Option<usize> {
        let width = 2 * MOST.0 + 1;
        let is_known = self.rate.abs() <= MOST.0 && self.server.abs() <= MOST.1;
        let index = self.server.rem_euclid(2 * MOST.1 + 1) * width + self.rate.rem_euclid(width);
        is_known.then_some(()).and(usize::try_from(index).ok())
    }
}

/// Three significant digits.
pub(super) fn short(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_number_and_zero_is_the_configured_one() {
        assert_eq!(Step::of(0), Step { rate: 0, server: 0 });
        for rate in -MOST.0..=MOST.0 {
            for server in -MOST.1..=MOST.1 {
                let step = Step { rate, server };
                assert_eq!(Step::of(step.index().unwrap()), step);
            }
        }
        assert_eq!(Step { rate: MOST.0 + 1, server: 0 }.index(), None);
    }
}
