//! Path loss: the attenuation of a signal by distance, one file for each law.

crate::register! {
    /// All path loss laws.
    PATH_LOSSES: dyn PathLoss;
    off,
    free_space,
    log_distance,
    macro_cell,
    pico_cell,
    umi,
    uma,
    cost231_hata,
}

pub use cost231_hata::Cost231Hata;
pub use free_space::FreeSpace;
pub use log_distance::LogDistance;
pub use macro_cell::MacroCell;
pub use off::Off;
pub use pico_cell::PicoCell;
pub use uma::Uma;
pub use umi::Umi;

use crate::parts::{ConfigError, Entry, Kind};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// c, the speed of light in m/s.
pub const LIGHT_M_S: f64 = 299_792_458.0;

/// Whether devices are in line of sight of the server (`cell.los`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LineOfSight {
    /// Drawn for each device, with the probability that the law has for its distance.
    #[default]
    Drawn,
    /// All.
    Always,
    /// None.
    Never,
}

/// The facts of the cell that a law may use besides its own keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// f_c (`radio.carrier_hz`), above 0.
    pub carrier_hz: f64,
    /// h_BS, height of the server's antenna (`cell.height_bs_m`); none: that of the law.
    pub height_bs_m: Option<f64>,
    /// h_UT, height of the devices (`cell.height_ut_m`); none: that of the law.
    pub height_ut_m: Option<f64>,
    /// Whether a law may be used outside its domain (`cell.extrapolate`).
    pub extrapolate: bool,
}

impl Site {
    /// Both heights, where those left out are `default`; each must lie in its range.
    fn heights(
        &self,
        default: Heights,
        bs: RangeInclusive<f64>,
        ut: RangeInclusive<f64>,
    ) -> Result<Heights, ConfigError> {
        let heights = Heights {
            bs_m: self.height_bs_m.unwrap_or(default.bs_m),
            ut_m: self.height_ut_m.unwrap_or(default.ut_m),
        };
        self.inside("cell.height_bs_m", heights.bs_m, bs, " m")?;
        self.inside("cell.height_ut_m", heights.ut_m, ut, " m")?;
        Ok(heights)
    }

    /// Checks the carrier's frequency.
    fn carrier(&self, domain: RangeInclusive<f64>) -> Result<f64, ConfigError> {
        self.inside("radio.carrier_hz", self.carrier_hz, domain, " Hz")?;
        Ok(self.carrier_hz)
    }

    /// Checks that a value is one the law holds for, unless it may be extrapolated.
    fn inside(
        &self,
        key: &str,
        value: f64,
        domain: RangeInclusive<f64>,
        unit: &str,
    ) -> Result<(), ConfigError> {
        // A law that begins above zero has a logarithm there.
        let physical = value.is_finite() && value >= 0.0 && (value > 0.0 || *domain.start() == 0.0);
        if physical && (domain.contains(&value) || self.extrapolate) {
            return Ok(());
        }
        let (low, high) = domain.into_inner();
        let problem = format!(
            "is {value}, but this path loss law holds for {low}..={high}{unit}; choose another \
             cell.pathloss, or set cell.extrapolate = true"
        );
        Err(ConfigError::new(key, problem))
    }
}

/// Heights above ground in meters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heights {
    /// h_BS, of the server's antenna.
    pub bs_m: f64,
    /// h_UT, of a device.
    pub ut_m: f64,
}

impl Heights {
    /// Without heights distances in space are those over ground.
    pub const NONE: Self = Self { bs_m: 0.0, ut_m: 0.0 };
}

/// The path between a device and the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Distance over ground.
    pub distance_2d_m: f64,
    /// Distance in space.
    pub distance_3d_m: f64,
    /// Whether there is a line of sight.
    pub line_of_sight: bool,
    /// Of both ends.
    pub heights: Heights,
}

impl Path {
    /// A path over `distance_2d_m` of ground between two heights.
    pub fn new(distance_2d_m: f64, heights: Heights, line_of_sight: bool) -> Self {
        let distance_3d_m = libm::hypot(distance_2d_m, heights.bs_m - heights.ut_m);
        Self { distance_2d_m, distance_3d_m, line_of_sight, heights }
    }
}

/// A path loss law.
///
/// A cell bounds the loss of a law from below by the loss in free space and by 0 dB, since some laws fall
/// under it at short distance (`3gpp-macro` below 20.7 m at 2 GHz).
///
/// Invariants: pure; finite and non-decreasing in distance within [`Self::domain_m`].
pub trait PathLoss: Send + Sync {
    /// PL in dB.
    fn loss_db(&self, path: &Path) -> f64;

    /// The distances over ground that the law holds for.
    fn domain_m(&self) -> RangeInclusive<f64> {
        0.0..=f64::MAX
    }

    /// The default of the smallest distance of a device (`cell.min_m`).
    fn min_distance_m(&self) -> f64 {
        1.0
    }

    /// The heights that distances in space are measured with.
    fn heights(&self) -> Heights {
        Heights::NONE
    }

    /// The heights of devices that the law holds for.
    fn heights_of_devices(&self) -> RangeInclusive<f64> {
        f64::MIN..=f64::MAX
    }

    /// The probability of a line of sight at a distance over ground; none: the law has no such states.
    fn line_of_sight_probability(&self, _distance_2d_m: f64) -> Option<f64> {
        None
    }

    /// The standard deviation of shadowing in dB that goes with the law; 0: none is named.
    fn shadowing_db(&self, _line_of_sight: bool) -> f64 {
        0.0
    }

    /// Whether free space bounds the loss from below.
    fn bounded_by_free_space(&self) -> bool {
        true
    }
}

/// Facts of a law of path loss.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact")]
#[non_exhaustive]
pub struct PathLossFacts {
    /// Whether there is any path loss.
    pub has_loss: bool,
    /// Whether it uses the heights of the antennas.
    pub heights: bool,
    /// Whether it distinguishes line of sight.
    pub line_of_sight: bool,
    /// Whether it holds in a domain, outside of which `cell.extrapolate` allows it.
    pub has_domain: bool,
    /// The carrier that the law was stated for, if it has no term of the frequency.
    pub carrier_hz: Option<f64>,
    /// The height of the server's antenna that the law was stated for, if it is one.
    pub height_bs_m: Option<f64>,
    /// The smallest distance of a device that goes with the law, in meters.
    pub min_m: f64,
}

impl Default for PathLossFacts {
    fn default() -> Self {
        Self {
            has_loss: true,
            heights: true,
            line_of_sight: false,
            has_domain: false,
            carrier_hz: None,
            height_bs_m: None,
            min_m: 1.0,
        }
    }
}

impl Kind for dyn PathLoss {
    type Material = Site;
    type Facts = PathLossFacts;
    const PLURAL: &'static str = "path loss laws";
    const KEY: &'static str = "cell.pathloss";
    const TABLE: &'static str = "cell";

    fn entries() -> &'static [Entry<Self>] {
        PATH_LOSSES
    }
}

/// 20·log10(4π·d·f/c), the loss between isotropic antennas in free space; −∞ at distance 0.
pub fn free_space_db(distance_m: f64, carrier_hz: f64) -> f64 {
    20.0 * libm::log10(4.0 * std::f64::consts::PI * distance_m * carrier_hz / LIGHT_M_S)
}

/// 18/d + e^(−d/decay)·(1 − 18/d), and 1 up to 18 m: the probability of a line of sight in a street.
fn street_line_of_sight(distance_m: f64, decay_m: f64) -> f64 {
    if distance_m <= 18.0 {
        return 1.0;
    }
    let near = 18.0 / distance_m;
    near + libm::exp(-distance_m / decay_m) * (1.0 - near)
}

/// The form that the urban laws of TR 38.901 share, with d the distance in space in meters and f the carrier
/// in GHz.
struct Urban {
    /// Line of sight: this + `slope`·log10 d + 20·log10 f up to the break point.
    at_1m: f64,
    slope: f64,
    /// Beyond it: `at_1m` + 40·log10 d + 20·log10 f less this times log10(d'_BP² + (h_BS − h_UT)²).
    corner: f64,
    /// Without line of sight: a + b·log10 d + c·log10 f − e·(h_UT − 1.5), or the former if larger.
    blocked: [f64; 4],
}

impl Urban {
    fn loss_db(&self, path: &Path, carrier_hz: f64) -> f64 {
        let heights = path.heights;
        let (distance, frequency) = (libm::log10(path.distance_3d_m), libm::log10(carrier_hz / 1e9));
        let break_point = break_point_m(heights, carrier_hz);
        let line_of_sight = if path.distance_2d_m < break_point {
            self.at_1m + self.slope * distance + 20.0 * frequency
        } else {
            let rise = heights.bs_m - heights.ut_m;
            let corner = libm::log10(break_point * break_point + rise * rise);
            self.at_1m + 40.0 * distance + 20.0 * frequency - self.corner * corner
        };
        if path.line_of_sight {
            return line_of_sight;
        }
        let [a, b, c, e] = self.blocked;
        (a + b * distance + c * frequency - e * (heights.ut_m - 1.5)).max(line_of_sight)
    }
}

/// d'_BP = 4·(h_BS − 1)·(h_UT − 1)·f_c/c, the break point of the laws of TR 38.901 with an effective height
/// of the environment of 1 m.
fn break_point_m(heights: Heights, carrier_hz: f64) -> f64 {
    4.0 * (heights.bs_m - 1.0) * (heights.ut_m - 1.0) * carrier_hz / LIGHT_M_S
}

#[cfg(test)]
mod tests;
