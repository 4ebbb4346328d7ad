//! The uplink of a run, built from its configuration.

use crate::config::{Config, ConfigError};
use crate::parts::Parts;
use crate::radio::access::Access;
use crate::radio::budget::{LinkBudget, PhysicalBudget, gains_of_snrs};
use crate::radio::cell::layout::{Area, Layout};
use crate::radio::cell::mobility::Drift;
use crate::radio::cell::pathloss::{LIGHT_M_S, PathLoss, Site};
use crate::radio::cell::{Cell, CellParts};
use crate::radio::fading::{Blocks, Fading, GainMeaning, Memory, Profile, Propagation};
use crate::radio::power::{PowerMaterial, PowerPolicy};
use crate::radio::rate::{Rate, Repeated};
use crate::radio::{Csi, Decay, Loss, MeanGains, PayloadMode, Radio, RadioParts, mean_gains};
use crate::units::{Bits, from_db};
use std::path::Path;

/// `radio.carrier_hz` if it is left out.
const CARRIER_HZ: f64 = 2e9;
/// `cell.radius_m` and `cell.min_m` if they are left out.
const RADIUS_M: f64 = 500.0;
const MIN_M: f64 = 35.0;

/// The uplink of a run whose model has `dim` weights.
pub fn radio(config: &Config, parts: &Parts, dim: usize) -> Result<Radio, ConfigError> {
    let radio = &config.radio;
    let devices = config.data.devices as usize;
    let budget = link_budget(config);
    let access = config.build::<dyn Access>(&radio.access, &radio.slots)?;
    let resource_blocks = access.resource_blocks();
    let fading = fading(config, parts, resource_blocks)?;
    if fading.meaning() == GainMeaning::RateBps && budget.bandwidth_hz.is_none() {
        let problem = "has rates in bit/s, which need radio.bandwidth_hz";
        return Err(ConfigError::new("radio.trace.file", problem));
    }
    let mean_gains = mean_gains(config, &budget)?;
    let power = power(config, &budget)?;
    let rate = config.build::<dyn Rate>(&radio.rate, &())?;
    let rate: Box<dyn Rate> =
        if radio.attempts > 1 { Box::new(Repeated { rate, attempts: radio.attempts as f64 }) } else { rate };
    let payload =
        (radio.mode == PayloadMode::Payload).then(|| Bits(radio.payload_bits.unwrap_or(32.0 * dim as f64)));
    Ok(Radio::new(RadioParts {
        devices,
        k: config.schedule.k as usize,
        decay: (config.schedule.decay > 0.0)
            .then_some(Decay { rate: config.schedule.decay, min: config.schedule.k_min as usize }),
        budget,
        fading,
        mean_gains,
        csi: Csi { error: radio.csi_error, delay_s: radio.csi_delay_s, backoff: from_db(-radio.backoff_db) },
        power,
        rate,
        access,
        blocks: if radio.profile == "flat" { 0 } else { resource_blocks },
        loss: Loss { threshold: radio.loss_threshold_db.map(from_db), attempts: radio.attempts },
        payload,
        seed: config.run.seed,
    }))
}

/// The fading law, with antennas, correlation and delays.
fn fading(config: &Config, parts: &Parts, resource_blocks: usize) -> Result<Box<dyn Fading>, ConfigError> {
    parts.build_fading(config, &propagation(config, resource_blocks)?)
}

/// What all fading laws share.
pub(super) fn propagation(config: &Config, resource_blocks: usize) -> Result<Propagation, ConfigError> {
    let radio = &config.radio;
    let memory = match (radio.correlation, radio.speed_kmh, radio.period_s) {
        (_, speed, Some(period_s)) if speed > 0.0 => {
            let hertz = speed / 3.6 * radio.carrier_hz.unwrap_or(CARRIER_HZ) / LIGHT_M_S;
            Memory::Doppler { hertz, period_s }
        }
        (correlation, ..) if correlation != 0.0 => Memory::GaussMarkov { correlation },
        _ => Memory::Independent,
    };
    let count = resource_blocks.max(1);
    let spacing_hz = radio.bandwidth_hz.map_or(0.0, |hertz| hertz / count as f64);
    let propagation = Propagation {
        antennas: radio.antennas as usize,
        memory,
        profile: Profile::named(&radio.profile, radio.delay_spread_s)?,
        blocks: Blocks { count, spacing_hz },
        period_s: radio.period_s,
    };
    propagation.check()?;
    Ok(propagation)
}

/// Power, noise, symbols and seconds.
pub fn link_budget(config: &Config) -> LinkBudget {
    let radio = &config.radio;
    let Some(bandwidth_hz) = radio.bandwidth_hz else {
        return LinkBudget {
            average: radio.power,
            max: radio.power_max,
            noise: radio.noise,
            symbols: radio.symbols,
            bandwidth_hz: None,
            uplink_s: None,
        };
    };
    let default = PhysicalBudget::default();
    let mut budget = LinkBudget::from(PhysicalBudget {
        bandwidth_hz,
        uplink_s: radio.uplink_s.unwrap_or(default.uplink_s),
        overhead: radio.overhead.unwrap_or(default.overhead),
        power_dbm: radio.power_dbm.unwrap_or(default.power_dbm),
        power_max_dbm: radio.power_max_dbm.unwrap_or(default.power_max_dbm),
        noise_dbm_hz: radio.noise_dbm_hz.unwrap_or(default.noise_dbm_hz),
        noise_figure_db: radio.noise_figure_db.unwrap_or(default.noise_figure_db),
        interference_w: radio.interference_w.unwrap_or(default.interference_w),
    });
    if radio.mode == PayloadMode::Payload {
        // The symbols of a second stand for the band; a round takes as long as its payloads take.
        let overhead = radio.overhead.unwrap_or(0.0);
        budget.symbols = libm::round(bandwidth_hz * (1.0 - overhead)).max(1.0) as u64;
        budget.uplink_s = None;
    }
    budget
}

/// What a device sends with. Where the SNR is given it is one power for all.
fn power(config: &Config, budget: &LinkBudget) -> Result<Box<dyn PowerPolicy>, ConfigError> {
    let radio = &config.radio;
    let material = PowerMaterial {
        devices: config.data.devices as usize,
        k: config.schedule.k as usize,
        average: budget.average,
        max: budget.max,
        noise: budget.noise,
        symbols: budget.symbols as f64,
        symbol_s: budget.symbol_s(),
        bandwidth_hz: budget.bandwidth_hz,
        rayleigh: radio.fading == "rayleigh" && radio.antennas == 1 && radio.csi_error == 0.0,
    };
    let name = if radio.snr_db.is_some() { "fixed" } else { radio.power_policy.as_str() };
    config.build::<dyn PowerPolicy>(name, &material)
}

/// Mean gains: from a file, from SNRs, from a cell, or 1.
fn mean_gains(config: &Config, budget: &LinkBudget) -> Result<MeanGains, ConfigError> {
    let radio = &config.radio;
    let devices = config.data.devices as usize;
    if let Some(snrs) = &radio.snr_db {
        let sizes = radio.group_sizes.as_deref();
        return Ok(MeanGains::Each(gains_of_snrs(snrs, sizes, devices, budget.average, budget.noise)));
    }
    if config.cell.pathloss != "none" {
        if !radio.mean_gains.is_empty() {
            let problem = "and cell.pathloss both set mean gains; leave one of them out";
            return Err(ConfigError::new("radio.mean_gains", problem));
        }
        return Ok(MeanGains::Cell(Box::new(cell(config)?)));
    }
    match radio.mean_gains.as_str() {
        "" => Ok(MeanGains::One),
        path => Ok(MeanGains::Each(mean_gains::read(Path::new(path), devices)?)),
    }
}

fn cell(config: &Config) -> Result<Cell, ConfigError> {
    let (radio, cell) = (&config.radio, &config.cell);
    let devices = config.data.devices as usize;
    let carrier_hz = radio.carrier_hz.unwrap_or(CARRIER_HZ);
    let radius_m = cell.radius_m.unwrap_or(RADIUS_M);
    let min_m = cell.min_m.unwrap_or_else(|| MIN_M.min(0.5 * radius_m));
    let site = Site {
        carrier_hz,
        height_bs_m: cell.height_bs_m,
        height_ut_m: cell.height_ut_m,
        extrapolate: cell.extrapolate,
    };
    let drift = cell.drift.then(|| Drift {
        speed_m_s: radio.speed_kmh / 3.6,
        period_s: radio.period_s.unwrap_or(1.0),
        half_side_m: radius_m,
        seed: config.run.seed,
    });
    Cell::new(CellParts {
        devices,
        layout: config.build::<dyn Layout>(&cell.layout, &Area { devices, radius_m, min_m })?,
        pathloss: config.build::<dyn PathLoss>(&cell.pathloss, &site)?,
        carrier_hz,
        gain_tx_dbi: radio.gain_tx_dbi.unwrap_or(0.0),
        gain_rx_dbi: radio.gain_rx_dbi.unwrap_or(0.0),
        line_of_sight: cell.los.unwrap_or_default(),
        extrapolate: cell.extrapolate,
        shadowing_db: cell.shadowing_db,
        correlation_m: cell.correlation_m,
        drift,
        seed: config.run.seed,
    })
}
