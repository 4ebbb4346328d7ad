//! A map of the devices of a cell, the strength of their links, and their share of the schedule.

use super::axis::{Axis, Quantity, drawable};
use serde::{Deserialize, Serialize};

/// If there are more devices, a subset at equal distances is drawn.
const MAX_DEVICES: usize = 4000;

/// A cell from above: the server in the middle, every device at its position, lighter for a stronger
/// link, larger for more rounds in which it was scheduled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellMap {
    /// The heading; none if empty.
    pub title: String,
    /// A smaller line under the heading; none if empty.
    pub subtitle: String,
    /// The scale of the mean gains in decibels.
    pub scale: Axis,
    /// The devices that are drawn.
    pub dots: Vec<Dot>,
}

/// One device of a [`CellMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dot {
    /// East of the server in meters.
    pub east_m: f64,
    /// North of the server in meters.
    pub north_m: f64,
    /// Its mean gain in decibels; none if it is not finite.
    pub gain_db: Option<f64>,
    /// The share of rounds in which it was scheduled; none if no rounds were run.
    pub scheduled: Option<f64>,
}

impl CellMap {
    /// A map of the positions of the devices relative to the server in meters, and their mean gains in
    /// decibels. `scheduled` is the share of rounds in which each was scheduled, if rounds were run. A device
    /// with a coordinate that is not finite is left out.
    ///
    /// ```
    /// use fedlink_report::{chart::CellMap, figure::Figure};
    /// let map = CellMap::new("Cell", &[(120.0, -40.0), (-300.0, 210.0)], &[-92.4, -110.8], None);
    /// assert!(map.svg().contains("mean gain (dB)"));
    /// ```
    pub fn new(title: &str, at_m: &[(f64, f64)], gains_db: &[f64], scheduled: Option<&[f64]>) -> Self {
        let gain = |device: usize| gains_db.get(device).copied().filter(|gain| drawable(*gain));
        let share = |shares: &[f64], device: usize| {
            shares.get(device).copied().filter(|share| drawable(*share)).unwrap_or(0.0)
        };
        let dot = |device: usize| Dot {
            east_m: at_m[device].0,
            north_m: at_m[device].1,
            gain_db: gain(device),
            scheduled: scheduled.map(|shares| share(shares, device)),
        };
        // Neither the square of a coordinate nor a difference of two may overflow.
        let inside = |dot: &Dot| dot.east_m.abs() <= 1e100 && dot.north_m.abs() <= 1e100;
        let stride = at_m.len().div_ceil(MAX_DEVICES).max(1);
        let dots = (0..at_m.len()).step_by(stride).map(dot).filter(inside).collect();
        let quantity = Quantity::plain("mean gain (dB)").margin(0.0);
        Self {
            title: title.to_owned(),
            subtitle: String::new(),
            scale: quantity.axis((0..at_m.len()).filter_map(gain)),
            dots,
        }
    }
}
