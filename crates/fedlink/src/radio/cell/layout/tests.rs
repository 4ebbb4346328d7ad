//! The invariants of every layout in the registry.

use super::*;
use crate::parts::Scope;
use toml::Table;

pub const AREA: Area = Area { devices: 20_000, radius_m: 500.0, min_m: 35.0 };

/// The mean of `value` of the distances of all devices, and five standard errors.
pub fn mean_distance(layout: &dyn Layout, value: impl Fn(f64) -> f64) -> (f64, f64) {
    let values: Vec<f64> =
        DeviceId::all(AREA.devices).map(|device| value(layout.position(device).distance_m())).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, 5.0 * (variance / count).sqrt())
}

#[test]
fn every_layout_is_random_access_and_stays_in_the_area() {
    for entry in LAYOUTS.iter().filter(|entry| !["file", "track"].contains(&entry.name)) {
        let make = |seed| entry.build(&Table::new(), &Scope { seed, ..Scope::default() }, &AREA).unwrap();
        let layout = make(1);
        let all: Vec<Position> = DeviceId::all(2000).map(|device| layout.position(device)).collect();
        for device in [0, 1999, 7] {
            assert_eq!(make(1).position(DeviceId(device)), all[device as usize], "{}", entry.name);
        }
        if entry.name == "none" {
            continue;
        }
        let (near, far) = (AREA.min_m - 1e-9, AREA.radius_m * if entry.name == "square" { 1.5 } else { 1.0 });
        assert!(all.iter().all(|at| (near..=far + 1e-9).contains(&at.distance_m())), "{}", entry.name);
        let other = make(2).position(DeviceId(5));
        assert_eq!(other != all[5], entry.name != "ring", "{}", entry.name);
    }
}

#[test]
fn an_area_that_is_empty_is_refused_by_its_key() {
    let error = |radius_m, min_m| Area { devices: 1, radius_m, min_m }.check().unwrap_err().to_string();
    assert_eq!(
        error(500.0, 500.0),
        "cell.min_m: is 500, but must be at least 0 and below cell.radius_m = 500"
    );
    assert!(error(500.0, f64::NAN).starts_with("cell.min_m: is NaN"));
    assert!(error(-1.0, 0.0).starts_with("cell.radius_m: is -1"));
}
