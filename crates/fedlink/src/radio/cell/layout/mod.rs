//! The positions of the devices, one file for each layout.

crate::register! {
    /// All layouts.
    LAYOUTS: dyn Layout;
    none,
    disc,
    ring,
    radius,
    square,
    clusters,
    file,
    track,
}

mod position_rows;

pub use clusters::Clusters;
pub use disc::Disc;
pub use file::Positions;
pub use none::Origin;
pub use radius::Radius;
pub use ring::Ring;
pub use square::Square;
pub use track::Tracks;

use crate::base::rng::{Purpose, Stream, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, Kind};

/// The position of a device, in meters from the server, which is at the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Position {
    /// East of the server.
    pub x_m: f64,
    /// North of the server.
    pub y_m: f64,
    /// Height above ground; none: that of the path loss law.
    pub z_m: Option<f64>,
}

impl Position {
    /// At the height of the path loss law.
    pub fn new(x_m: f64, y_m: f64) -> Self {
        Self { x_m, y_m, z_m: None }
    }

    /// r·(cos φ, sin φ).
    pub fn polar(radius_m: f64, angle: f64) -> Self {
        Self::new(radius_m * libm::cos(angle), radius_m * libm::sin(angle))
    }

    /// The distance to the server over ground.
    pub fn distance_m(&self) -> f64 {
        libm::hypot(self.x_m, self.y_m)
    }
}

/// The area that devices are put into (`cell.radius_m`, `cell.min_m`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// M.
    pub devices: usize,
    /// R, the radius of the cell; half the side of a square one.
    pub radius_m: f64,
    /// The smallest distance to the server.
    pub min_m: f64,
}

impl Area {
    /// Checks 0 ≤ min < R, both finite.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(self.radius_m.is_finite() && self.radius_m > 0.0) {
            let problem = format!("is {}, but must be a number above 0", self.radius_m);
            return Err(ConfigError::new("cell.radius_m", problem));
        }
        if !(self.min_m >= 0.0 && self.min_m < self.radius_m) {
            let problem = format!(
                "is {}, but must be at least 0 and below cell.radius_m = {}",
                self.min_m, self.radius_m
            );
            return Err(ConfigError::new("cell.min_m", problem));
        }
        Ok(())
    }

    /// A point of the ring between the two radii, uniform in area: r = √(min² + (R² − min²)·U), φ = 2πU′.
    fn uniform(&self, stream: &mut Stream) -> Position {
        let (min, max) = (self.min_m * self.min_m, self.radius_m * self.radius_m);
        let radius = libm::sqrt(stream.between(min, max));
        Position::polar(radius, angle(stream))
    }
}

/// An angle, uniform in [0, 2π).
fn angle(stream: &mut Stream) -> f64 {
    std::f64::consts::TAU * stream.uniform()
}

/// The random numbers of a device's position.
fn draws(seed: u64, device: DeviceId) -> Stream {
    stream(seed, Purpose::Placement, 0, u64::from(device.0))
}

/// A layout: where each device is when the run begins.
///
/// Invariants: pure in (seed, device), so that any position can be had alone and in any order; finite; within
/// the area, except for positions that are given.
pub trait Layout: Send + Sync {
    /// The position of a device when the run begins.
    fn position(&self, device: DeviceId) -> Position;

    /// The position of a device after this number of seconds, if the layout has tracks.
    fn at(&self, _seconds: f64, device: DeviceId) -> Position {
        self.position(device)
    }

    /// Whether the layout has ways.
    fn moves(&self) -> bool {
        false
    }

    /// The positions that are given of a device.
    fn places(&self, device: DeviceId) -> Vec<Position> {
        vec![self.position(device)]
    }
}

/// Facts of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact")]
#[non_exhaustive]
pub struct LayoutFacts {
    /// Whether it places the devices.
    pub places: bool,
    /// Whether it fills an area of radius `cell.radius_m`.
    pub has_area: bool,
    /// Whether it keeps devices at least `cell.min_m` away.
    pub has_nearest: bool,
    /// Whether positions change over time by themselves.
    pub moves: bool,
}

impl Default for LayoutFacts {
    fn default() -> Self {
        Self { places: true, has_area: false, has_nearest: false, moves: false }
    }
}

impl LayoutFacts {
    /// The facts of a layout that fills an area.
    pub const AREA: Self = Self { places: true, has_area: true, has_nearest: true, moves: false };
}

impl Kind for dyn Layout {
    type Material = Area;
    type Facts = LayoutFacts;
    const PLURAL: &'static str = "layouts";
    const KEY: &'static str = "cell.layout";
    const TABLE: &'static str = "cell";

    fn entries() -> &'static [Entry<Self>] {
        LAYOUTS
    }
}

#[cfg(test)]
mod tests;
