//! Devices around a few centers.

use super::{Area, Layout, LayoutFacts, Position, draws};
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this layout.
pub const ENTRY: Entry<dyn Layout> = Entry::of::<ClustersConfig>();

/// `[cell.clusters]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ClustersConfig {
    /// number of centers; device m belongs to center m mod count
    #[key(default = 2, range = "1 ..= 1e6")]
    pub count: u64,
    /// standard deviation around a center in each direction, in meters
    #[key(default = 20.0, range = "≥ 0")]
    pub spread_m: f64,
}

impl PartConfig for ClustersConfig {
    type Part = dyn Layout;
    const NAME: &'static str = "clusters";
    const MEANING: &'static str = "around cell.clusters.count centers that are uniform in the disc";

    fn facts(&self) -> LayoutFacts {
        LayoutFacts::AREA
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
    /// The position of a center: keyed by round 1, since the devices have round 0.
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
