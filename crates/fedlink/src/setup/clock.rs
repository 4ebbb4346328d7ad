//! The clock and the energy meter of a run, built from its configuration.

use super::radio::propagation;
use crate::clock::compute::{Compute, ComputeMaterial, Load};
use crate::clock::downlink::{Downlink, DownlinkMaterial};
use crate::clock::jitter::Jitter;
use crate::clock::spread::Spread;
use crate::clock::{Clock, ClockParts, PowerDraw};
use crate::config::{Config, ConfigError};
use crate::parts::Parts;
use crate::radio::Radio;
use crate::radio::budget::PhysicalBudget;
use crate::radio::fading::Fading;
use crate::rng::{Purpose, stream};
use crate::units::{DeviceId, dbm_to_watt};
use std::sync::Arc;

/// `energy.compute_w`, `energy.kappa` and `clock.report_efficiency` if they are left out.
const COMPUTE_W: f64 = 0.8;
const KAPPA: f64 = 1e-28;
/// Bits a symbol of the lowest CQI.
const REPORT_EFFICIENCY: f64 = 0.1523;

/// The clock of a run over `radio`, in which a device's training processes what `work` tells; it counts
/// nothing where the radio has no units.
pub fn clock(
    config: &Config,
    parts: &Parts,
    radio: &Radio,
    dim: usize,
    work: Arc<dyn Fn(DeviceId) -> Load + Send + Sync>,
) -> Result<Clock, ConfigError> {
    let Some(symbol_s) = radio.budget().symbol_s() else { return Ok(Clock::default()) };
    let (clock, energy) = (&config.clock, &config.energy);
    let kappa = energy.kappa.unwrap_or(KAPPA);
    let noise_dbm_hz = config.radio.noise_dbm_hz.unwrap_or(PhysicalBudget::default().noise_dbm_hz);
    let downlink = DownlinkMaterial {
        fading: if clock.downlink == "ideal" { None } else { Some(downlink_fading(config, parts)?) },
        noise_w_hz: dbm_to_watt(noise_dbm_hz),
    };
    let parts = ClockParts {
        devices: radio.devices(),
        symbol_s,
        report_symbol_s: radio.budget().bandwidth_hz.map_or(symbol_s, |hertz| 1.0 / hertz),
        uplink_s: radio.budget().uplink_s,
        compute: config.build::<dyn Compute>(&clock.compute, &ComputeMaterial { kappa })?,
        spread: config.build::<dyn Spread>(&clock.spread, &())?,
        jitter: config.build::<dyn Jitter>(&clock.jitter, &())?,
        downlink: config.build::<dyn Downlink>(&clock.downlink, &downlink)?,
        report_bits: clock.report_bits,
        report_efficiency: clock.report_efficiency.unwrap_or(REPORT_EFFICIENCY),
        deadline_s: clock.deadline_s,
        together: radio.sends_together(),
        pipeline: clock.pipeline,
        power: PowerDraw {
            compute_w: energy.compute_w.unwrap_or(COMPUTE_W),
            circuit_w: energy.circuit_w,
            pa_efficiency: energy.pa_efficiency,
            receive_w: energy.receive_w,
            idle_w: energy.idle_w,
        },
        battery_j: (energy.battery_j > 0.0).then_some(energy.battery_j),
        work,
        dim,
    };
    check_deadline(config, &parts, radio)?;
    Ok(Clock::new(parts))
}

/// Links that a deadline is tried on: rounds times devices, and the most rounds.
const TRIED: (usize, usize) = (4000, 100);

/// A deadline that leaves no time to train, not even on the best link of the first rounds: what a single draw
/// of the fading makes of it must not decide.
fn check_deadline(config: &Config, parts: &ClockParts, radio: &Radio) -> Result<(), ConfigError> {
    let Some(deadline) = config.clock.deadline_s else { return Ok(()) };
    let rounds = (TRIED.0 / parts.devices.max(1)).clamp(1, TRIED.1) as u64;
    let down = (0..rounds)
        .flat_map(|t| DeviceId::all(parts.devices).map(move |device| (t, device)))
        .map(|(t, device)| parts.downlink.seconds(t, parts.dim as f64, &[device], radio))
        .fold(f64::INFINITY, f64::min);
    let up = parts.uplink_s.unwrap_or(0.0);
    if deadline > down + up {
        return Ok(());
    }
    let problem = format!(
        "is {deadline}, but the downlink and the uplink take at least {:.4} s ({down:.4} + {up:.4})",
        down + up
    );
    Err(ConfigError::new("clock.deadline_s", problem))
}

/// The downlink fades by the same law as the uplink, with other random numbers.
fn downlink_fading(config: &Config, parts: &Parts) -> Result<Arc<dyn Fading>, ConfigError> {
    let mut other = config.clone();
    other.run.seed = stream(config.run.seed, Purpose::Downlink, 0, 0).bits() >> 2;
    Ok(Arc::from(parts.build_fading(&other, &propagation(config, 0)?)?))
}
