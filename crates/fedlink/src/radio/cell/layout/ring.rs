//! All at one distance.

use super::{Area, Layout, LayoutFacts, Position};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this layout.
pub const ENTRY: Entry<dyn Layout> = Entry::of::<RingConfig>();

/// `[cell.ring]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct RingConfig {}

impl PartConfig for RingConfig {
    type Part = dyn Layout;
    const NAME: &'static str = "ring";
    const MEANING: &'static str = "all at cell.radius_m from the server, evenly spread around it";

    fn facts(&self) -> LayoutFacts {
        LayoutFacts { has_nearest: false, ..LayoutFacts::AREA }
    }

    fn build(self, _: &Scope, area: &Area) -> Result<Box<dyn Layout>, ConfigError> {
        area.check()?;
        Ok(Box::new(Ring { area: *area }))
    }
}

/// r = R, φ = 2πm/M: the symmetry between devices that the paper has, in physical units.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    /// The cell.
    pub area: Area,
}

impl Layout for Ring {
    fn position(&self, device: DeviceId) -> Position {
        let angle = std::f64::consts::TAU * f64::from(device.0) / self.area.devices.max(1) as f64;
        Position::polar(self.area.radius_m, angle)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::AREA;
    use super::*;

    #[test]
    fn devices_are_evenly_spread_at_one_distance() {
        let ring = Ring { area: Area { devices: 4, ..AREA } };
        let expected = [(500.0, 0.0), (0.0, 500.0), (-500.0, 0.0), (0.0, -500.0)];
        for (device, (x, y)) in DeviceId::all(4).zip(expected) {
            let position = ring.position(device);
            assert!((position.x_m - x).abs() < 1e-9 && (position.y_m - y).abs() < 1e-9, "{position:?}");
        }
    }
}
