//! Uniform in the disc.

use super::{Area, Layout, LayoutFacts, Position, draws};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this layout.
pub const ENTRY: Entry<dyn Layout> = Entry::of::<DiscConfig>();

/// `[cell.disc]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct DiscConfig {}

impl PartConfig for DiscConfig {
    type Part = dyn Layout;
    const NAME: &'static str = "disc";
    const MEANING: &'static str = "uniform in area between cell.min_m and cell.radius_m from the server";

    fn facts(&self) -> LayoutFacts {
        LayoutFacts::AREA
    }

    fn build(self, scope: &Scope, area: &Area) -> Result<Box<dyn Layout>, ConfigError> {
        area.check()?;
        Ok(Box::new(Disc { area: *area, seed: scope.seed }))
    }
}

/// r = √(min² + (R² − min²)·U), φ = 2πU′: uniform in area.
///
/// Invariants: min ≤ r ≤ R; E r = ⅔(R³ − min³)/(R² − min²).
///
/// ```
/// use fedlink::radio::cell::layout::{Area, Disc, Layout};
/// use fedlink::base::units::DeviceId;
/// let disc = Disc { area: Area { devices: 40, radius_m: 500.0, min_m: 35.0 }, seed: 0 };
/// assert!((35.0..=500.0).contains(&disc.position(DeviceId(3)).distance_m()));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Disc {
    /// The cell.
    pub area: Area,
    /// The run's seed.
    pub seed: u64,
}

impl Layout for Disc {
    fn position(&self, device: DeviceId) -> Position {
        self.area.uniform(&mut draws(self.seed, device))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{AREA, mean_distance};
    use super::*;

    #[test]
    fn distances_have_the_mean_of_a_uniform_disc() {
        let (min, max) = (AREA.min_m, AREA.radius_m);
        let truth = 2.0 / 3.0 * (max.powi(3) - min.powi(3)) / (max.powi(2) - min.powi(2));
        let (mean, slack) = mean_distance(&Disc { area: AREA, seed: 1 }, |r| r);
        assert!((mean - truth).abs() < slack, "{mean} is not within {slack} of {truth}");
        // E ln r = [R²(ln R − ½) − min²(ln min − ½)]/(R² − min²).
        let part = |r: f64| r * r * (r.ln() - 0.5);
        let truth = (part(max) - part(min)) / (max.powi(2) - min.powi(2));
        let (mean, slack) = mean_distance(&Disc { area: AREA, seed: 1 }, f64::ln);
        assert!((mean - truth).abs() < slack, "{mean} is not within {slack} of {truth}");
    }
}
