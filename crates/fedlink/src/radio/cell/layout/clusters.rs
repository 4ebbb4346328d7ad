//! Devices around a few centers.

use super::{Area, Layout, Position, draws};
use crate::registry::count::count;
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key, number, within};
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The entry of this layout.
pub const ENTRY: Entry<dyn Layout> = Entry::of::<ClustersConfig>();

/// `[cell.clusters]`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ClustersConfig {
    /// C, the number of centers.
    #[serde(deserialize_with = "count")]
    pub count: u64,
    /// s, the standard deviation around a center in each direction.
    pub spread_m: f64,
}

impl Default for ClustersConfig {
    fn default() -> Self {
        Self { count: 2, spread_m: 20.0 }
    }
}

impl PartConfig for ClustersConfig {
    type Part = dyn Layout;
    const NAME: &'static str = "clusters";
    const MEANING: &'static str = "around cell.clusters.count centers that are uniform in the disc";
    const KEYS: &'static [Key] = &[
        key("count", "number of centers; device m belongs to center m mod count", "1 ..= 1000000"),
        key("spread_m", "standard deviation around a center in each direction, in meters", "≥ 0"),
    ];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        within("count", self.count, 1..=1_000_000, "")?;
        number("spread_m", self.spread_m, |spread| spread >= 0.0, "a number of at least 0")
    }

    fn build(self, scope: &Scope, area: &Area) -> Result<Box<dyn Layout>, ConfigError> {
        area.check()?;
        Ok(Box::new(Clusters { area: *area, seed: scope.seed, count: self.count, spread_m: self.spread_m }))
    }
}

/// C centers uniform in the disc; device m at center m mod C plus N(0, s²) in each direction, drawn again
/// while outside the cell.
///
/// After 100 draws outside (a spread much wider than the cell), the device is moved along its direction to
/// the nearest distance that is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Clusters {
    /// The cell.
    pub area: Area,
    /// The run's seed.
    pub seed: u64,
    /// C.
    pub count: u64,
    /// s.
    pub spread_m: f64,
}

impl Clusters {
    /// Where a center is: keyed by round 1, since the devices have round 0.
    fn center(&self, index: u64) -> Position {
        self.area.uniform(&mut stream(self.seed, Purpose::Placement, 1, index))
    }
}

impl Layout for Clusters {
    fn position(&self, device: DeviceId) -> Position {
        let center = self.center(u64::from(device.0) % self.count);
        let mut stream = draws(self.seed, device);
        let allowed = self.area.min_m..=self.area.radius_m;
        let mut position = center;
        for _ in 0..100 {
            let x_m = center.x_m + self.spread_m * stream.normal();
            let y_m = center.y_m + self.spread_m * stream.normal();
            position = Position { x_m, y_m, z_m: None };
            if allowed.contains(&position.distance_m()) {
                return position;
            }
        }
        let distance = position.distance_m().clamp(self.area.min_m, self.area.radius_m);
        Position::polar(distance, libm::atan2(position.y_m, position.x_m))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::AREA;
    use super::*;

    #[test]
    fn devices_of_one_cluster_are_near_each_other() {
        let clusters = Clusters { area: AREA, seed: 3, count: 3, spread_m: 2.0 };
        for device in DeviceId::all(300) {
            let (at, center) = (clusters.position(device), clusters.center(u64::from(device.0) % 3));
            assert!(libm::hypot(at.x_m - center.x_m, at.y_m - center.y_m) < 12.0, "{device}");
        }
        assert!(clusters.center(0) != clusters.center(1) && clusters.center(1) != clusters.center(2));
    }

    #[test]
    fn a_spread_wider_than_the_cell_stays_in_the_cell() {
        let clusters = Clusters { area: AREA, seed: 3, count: 2, spread_m: 1e7 };
        for device in DeviceId::all(50) {
            let distance = clusters.position(device).distance_m();
            assert!((AREA.min_m - 1e-9..=AREA.radius_m + 1e-9).contains(&distance), "{distance}");
        }
    }
}
