//! Uniform in distance.

use super::{Area, Layout, LayoutFacts, Position, angle, draws};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this layout.
pub const ENTRY: Entry<dyn Layout> = Entry::of::<RadiusConfig>();

/// `[cell.radius]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct RadiusConfig {}

impl PartConfig for RadiusConfig {
    type Part = dyn Layout;
    const NAME: &'static str = "radius";
    const MEANING: &'static str =
        "uniform in distance from the server, so denser near it, as in several public codes";

    fn facts(&self) -> LayoutFacts {
        LayoutFacts::AREA
    }

    fn build(self, scope: &Scope, area: &Area) -> Result<Box<dyn Layout>, ConfigError> {
        area.check()?;
        Ok(Box::new(Radius { area: *area, seed: scope.seed }))
    }
}

/// r ~ U(min, R), φ ~ U(0, 2π).
///
/// Not uniform in area: E r = (R + min)/2, a quarter nearer than in a disc. Several public codes of wireless
/// federated learning place devices so; this is for comparison with them.
#[derive(Clone, Copy, Debug)]
pub struct Radius {
    /// The cell.
    pub area: Area,
    /// The run's seed.
    pub seed: u64,
}

impl Layout for Radius {
    fn position(&self, device: DeviceId) -> Position {
        let mut stream = draws(self.seed, device);
        let radius = stream.between(self.area.min_m, self.area.radius_m);
        Position::polar(radius, angle(&mut stream))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{AREA, mean_distance};
    use super::*;

    #[test]
    fn distances_have_the_mean_of_a_uniform_number() {
        let (mean, slack) = mean_distance(&Radius { area: AREA, seed: 1 }, |r| r);
        let truth = 0.5 * (AREA.radius_m + AREA.min_m);
        assert!((mean - truth).abs() < slack, "{mean} is not within {slack} of {truth}");
    }
}
