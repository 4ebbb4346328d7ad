//! The clock and the energy meter of a run, built from its configuration.

use super::radio::propagation;
use crate::base::rng::{Purpose, stream};
use crate::base::units::{DeviceId, dbm_to_watt};
use crate::clock::compute::{ComputeMaterial, Load};
use crate::clock::downlink::DownlinkMaterial;
use crate::radio::Radio;
use crate::radio::fading::Fading;
use crate::spec::{ConfigError, Spec};
use crate::system::clock::{Clock, ClockParts, PowerDraw};
use std::sync::Arc;

/// The clock of a run over `radio`; `work` gives the load of a device's training. Without units in the radio
/// it counts nothing.
pub fn clock(
    spec: &Spec,
    radio: &Radio,
    dim: usize,
    work: Arc<dyn Fn(DeviceId) -> Load + Send + Sync>,
) -> Result<Clock, ConfigError> {
    let Some(symbol_s) = radio.budget().symbol_s() else { return Ok(Clock::default()) };
    let (clock, energy) = (&spec.clock, &spec.energy);
    let kappa = energy.kappa();
    let fades = spec.facts().downlink.takes_time;
    let downlink = DownlinkMaterial {
        fading: if fades { Some(downlink_fading(spec)?) } else { None },
        noise_w_hz: dbm_to_watt(spec.radio.noise_dbm_hz()),
    };
    let parts = ClockParts {
        devices: radio.devices(),
        symbol_s,
        report_symbol_s: radio.budget().bandwidth_hz.map_or(symbol_s, |hertz| 1.0 / hertz),
        uplink_s: radio.budget().uplink_s,
        compute: spec.parts().compute.build(&spec.scope(), &ComputeMaterial { kappa })?,
        spread: spec.parts().spread.build(&spec.scope(), &())?,
        jitter: spec.parts().jitter.build(&spec.scope(), &())?,
        downlink: spec.parts().downlink.build(&spec.scope(), &downlink)?,
        report_bits: clock.report_bits,
        report_efficiency: clock.report_efficiency(),
        deadline_s: clock.deadline_s,
        together: radio.sends_together(),
        pipeline: clock.pipeline,
        power: PowerDraw {
            compute_w: energy.compute_w(),
            circuit_w: energy.circuit_w,
            pa_efficiency: energy.pa_efficiency,
            receive_w: energy.receive_w,
            idle_w: energy.idle_w,
        },
        batteries_j: batteries_j(spec),
        speeds: match &clock.group_speeds {
            Some(speeds) => {
                let of = |device| spec.of_group(Some(speeds), device).unwrap_or(1.0);
                DeviceId::all(radio.devices()).map(of).collect()
            }
            None => Vec::new(),
        },
        work,
        dim,
    };
    check_deadline(spec, &parts, radio)?;
    Ok(Clock::new(parts))
}

/// The joules in the battery of each device, infinite on mains; empty if all are on mains.
fn batteries_j(spec: &Spec) -> Vec<f64> {
    let batteries = DeviceId::all(spec.data.devices as usize).map(|device| spec.battery_j(device));
    if batteries.clone().all(|joules| joules.is_none()) {
        return Vec::new();
    }
    batteries.map(|joules| joules.unwrap_or(f64::INFINITY)).collect()
}

/// The number of links for which a deadline is checked: rounds times devices, and the largest number of
/// rounds.
const TRIED: (usize, usize) = (4000, 100);

/// Rejects a deadline that leaves no time to train even on the best link of the first rounds: a single draw
/// of the fading must not decide.
fn check_deadline(spec: &Spec, parts: &ClockParts, radio: &Radio) -> Result<(), ConfigError> {
    let Some(deadline) = spec.clock.deadline_s else { return Ok(()) };
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
fn downlink_fading(spec: &Spec) -> Result<Arc<dyn Fading>, ConfigError> {
    let seed = stream(spec.run.seed, Purpose::Downlink, 0, 0).bits() >> 2;
    let scope = crate::parts::Scope { seed, ..spec.scope() };
    Ok(Arc::from(spec.parts().fading.build(&scope, &propagation(spec, 0)?)?))
}
