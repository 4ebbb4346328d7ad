//! Uniform in a square.

use super::{Area, Layout, LayoutFacts, Position, draws};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this layout.
pub const ENTRY: Entry<dyn Layout> = Entry::of::<SquareConfig>();

/// `[cell.square]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct SquareConfig {}

impl PartConfig for SquareConfig {
    type Part = dyn Layout;
    const NAME: &'static str = "square";
    const MEANING: &'static str =
        "uniform in the square of side 2·cell.radius_m around the server, cell.min_m or more from it";

    fn facts(&self) -> LayoutFacts {
        LayoutFacts::AREA
    }

    fn build(self, scope: &Scope, area: &Area) -> Result<Box<dyn Layout>, ConfigError> {
        area.check()?;
        Ok(Box::new(Square { area: *area, seed: scope.seed }))
    }
}

/// (x, y) ~ U(−R, R)², drawn again while nearer to the server than min.
///
/// Source: the 500 m × 500 m cell of Yang, Chen, Saad, Hong and Shikh-Bahaei, as we read it, with the server
/// in its center. More than a fifth of the square is outside the disc, so few draws are needed.
#[derive(Clone, Copy, Debug)]
pub struct Square {
    /// The cell.
    pub area: Area,
    /// The run's seed.
    pub seed: u64,
}

impl Layout for Square {
    fn position(&self, device: DeviceId) -> Position {
        let mut stream = draws(self.seed, device);
        let half = self.area.radius_m;
        loop {
            let (x_m, y_m) = (stream.between(-half, half), stream.between(-half, half));
            let position = Position { x_m, y_m, z_m: None };
            if position.distance_m() >= self.area.min_m {
                return position;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{AREA, mean_distance};
    use super::*;

    #[test]
    fn distances_have_the_mean_of_a_uniform_square() {
        // E r = R·(√2 + ln(1 + √2))/3 for a square of half side R.
        let square = Square { area: Area { min_m: 0.0, ..AREA }, seed: 1 };
        let truth = AREA.radius_m * (2f64.sqrt() + (1.0 + 2f64.sqrt()).ln()) / 3.0;
        let (mean, slack) = mean_distance(&square, |r| r);
        assert!((mean - truth).abs() < slack, "{mean} is not within {slack} of {truth}");
    }
}
