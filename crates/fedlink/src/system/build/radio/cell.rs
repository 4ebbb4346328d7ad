//! The mean gains of a run: its cell, a file, SNRs, or 1.

use crate::base::units::dbm_to_watt;
use crate::radio::budget::{LinkBudget, gains_of_snrs};
use crate::radio::cell::layout::Area;
use crate::radio::cell::mobility::Drift;
use crate::radio::cell::pathloss::Site;
use crate::radio::cell::{Cell, CellParts};
use crate::radio::{MeanGains, mean_gains as file};
use crate::spec::{ConfigError, Spec};
use std::path::Path;

/// Mean gains: from a file, from SNRs, from a cell, or 1.
pub(super) fn mean_gains(spec: &Spec, budget: &LinkBudget) -> Result<MeanGains, ConfigError> {
    let radio = &spec.radio;
    let devices = spec.data.devices as usize;
    if let Some(snrs) = &radio.snr_db {
        let sizes = radio.group_sizes.as_deref();
        // The SNRs hold at a power and a bandwidth, to which the noise is in proportion.
        let power = radio.snr_power_dbm.map_or(budget.average, dbm_to_watt);
        let noise = match (radio.snr_bandwidth_hz, radio.bandwidth_hz) {
            (Some(reference), Some(hertz)) if reference != hertz => budget.noise * (reference / hertz),
            _ => budget.noise,
        };
        return Ok(MeanGains::Each(gains_of_snrs(snrs, sizes, devices, power, noise)));
    }
    if spec.facts().pathloss.has_loss {
        if !radio.mean_gains.is_empty() {
            let problem = "and cell.pathloss both set mean gains; leave one of them out";
            return Err(ConfigError::new("radio.mean_gains", problem));
        }
        return Ok(MeanGains::Cell(Box::new(cell(spec)?)));
    }
    match radio.mean_gains.as_str() {
        "" => Ok(MeanGains::One),
        path => Ok(MeanGains::Each(file::read(Path::new(path), devices)?)),
    }
}

fn cell(spec: &Spec) -> Result<Cell, ConfigError> {
    let (radio, cell) = (&spec.radio, &spec.cell);
    let devices = spec.data.devices as usize;
    let carrier_hz = radio.carrier_hz();
    let radius_m = cell.radius_m();
    let site = Site {
        carrier_hz,
        height_bs_m: cell.height_bs_m,
        height_ut_m: cell.height_ut_m,
        extrapolate: cell.extrapolate,
    };
    let pathloss = spec.parts().pathloss.build(&spec.scope(), &site)?;
    let min_m = cell.min_m.unwrap_or_else(|| pathloss.min_distance_m().min(0.5 * radius_m));
    let drift = cell.drift.then(|| Drift {
        speed_m_s: radio.speed_kmh / 3.6,
        period_s: radio.period_s.unwrap_or(1.0),
        half_side_m: radius_m,
        seed: spec.run.seed,
    });
    let layout = spec.parts().layout.build(&spec.scope(), &Area { devices, radius_m, min_m })?;
    if layout.moves() && radio.period_s.is_none() {
        let problem = "is needed by devices on tracks: write the seconds from one round to the next";
        return Err(ConfigError::new("radio.period_s", problem));
    }
    Cell::new(CellParts {
        devices,
        layout,
        period_s: radio.period_s.unwrap_or(1.0),
        pathloss,
        carrier_hz,
        gain_tx_dbi: radio.gain_tx_dbi(),
        gain_rx_dbi: radio.gain_rx_dbi(),
        line_of_sight: cell.los.unwrap_or_default(),
        extrapolate: cell.extrapolate,
        shadowing_db: cell.shadowing_db,
        correlation_m: cell.correlation_m,
        drift,
        seed: spec.run.seed,
    })
}
