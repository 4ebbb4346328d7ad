//! The uplink of a run, built from its configuration.

mod cell;
mod checks;
#[cfg(test)]
mod tests;

use crate::base::units::{Bits, from_db};
use crate::parts::Chosen;
use crate::radio::budget::{LinkBudget, PhysicalBudget};
use crate::radio::cell::pathloss::LIGHT_M_S;
use crate::radio::fading::{Blocks, Fading, Memory, Profile, Propagation};
use crate::radio::power::fixed::FixedConfig;
use crate::radio::power::{PowerMaterial, PowerPolicy};
use crate::radio::rate::{Rate, Repeated};
use crate::radio::{Csi, Decay, Loss, PayloadMode, Radio, RadioParts};
use crate::spec::{ConfigError, Spec};
use cell::mean_gains;
use checks::{check_blocks, check_measured};

/// The uplink of a run whose model has `dim` weights.
pub fn radio(spec: &Spec, dim: usize) -> Result<Radio, ConfigError> {
    let radio = &spec.radio;
    let devices = spec.data.devices as usize;
    let budget = link_budget(spec);
    let access = spec.parts().access.build(&spec.scope(), &radio.slots)?;
    let resource_blocks = access.resource_blocks();
    let fading = fading(spec, resource_blocks)?;
    check_measured(spec, &*fading)?;
    let fades_apart = fading.fades_apart();
    check_blocks(spec, fades_apart)?;
    let mean_gains = mean_gains(spec, &budget)?;
    let power = power(spec, &budget)?;
    let rate = spec.parts().rate.build(&spec.scope(), &())?;
    let rate: Box<dyn Rate> =
        if radio.attempts > 1 { Box::new(Repeated { rate, attempts: radio.attempts as f64 }) } else { rate };
    let payload =
        (radio.mode == PayloadMode::Payload).then(|| Bits(radio.payload_bits.unwrap_or(32.0 * dim as f64)));
    Ok(Radio::new(RadioParts {
        devices,
        k: spec.schedule.k as usize,
        decay: (spec.schedule.decay > 0.0)
            .then_some(Decay { rate: spec.schedule.decay, min: spec.schedule.k_min as usize }),
        budget,
        fading,
        mean_gains,
        csi: Csi { error: radio.csi_error, delay_s: radio.csi_delay_s, backoff: from_db(-radio.backoff_db) },
        power,
        rate,
        access,
        blocks: if fades_apart { resource_blocks } else { 0 },
        loss: Loss {
            threshold: radio.loss_threshold_db.map(from_db),
            attempts: radio.attempts,
            combining: radio.combining,
        },
        payload,
        seed: spec.run.seed,
    }))
}

/// The fading law, with antennas, correlation and delays.
fn fading(spec: &Spec, resource_blocks: usize) -> Result<Box<dyn Fading>, ConfigError> {
    spec.parts().fading.build(&spec.scope(), &propagation(spec, resource_blocks)?)
}

/// The propagation that all fading laws share.
pub(super) fn propagation(spec: &Spec, resource_blocks: usize) -> Result<Propagation, ConfigError> {
    let radio = &spec.radio;
    // A law without amplitudes does not use speed, but drifting devices do.
    let drifts_only = spec.cell.drift && !spec.facts().fading.amplitudes;
    let memory = match (radio.correlation, radio.speed_kmh, radio.period_s) {
        (_, speed, Some(period_s)) if speed > 0.0 && !drifts_only => {
            let hertz = speed / 3.6 * radio.carrier_hz() / LIGHT_M_S;
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
pub fn link_budget(spec: &Spec) -> LinkBudget {
    let radio = &spec.radio;
    let Some(bandwidth_hz) = radio.bandwidth_hz else {
        return LinkBudget {
            average: radio.power,
            max: radio.power_max,
            noise: radio.noise,
            symbols: radio.symbols,
            bandwidth_hz: None,
            uplink_s: None,
            overhead: 0.0,
        };
    };
    let mut budget = LinkBudget::from(PhysicalBudget {
        bandwidth_hz,
        uplink_s: radio.uplink_s(),
        overhead: radio.overhead(),
        power_dbm: radio.power_dbm(),
        power_max_dbm: radio.power_max_dbm(),
        noise_dbm_hz: radio.noise_dbm_hz(),
        noise_figure_db: radio.noise_figure_db(),
        interference_w: radio.interference_w(),
    });
    if radio.mode == PayloadMode::Payload {
        // The symbols per second define the band; the payloads define the duration of a round.
        budget.symbols = libm::round(bandwidth_hz * (1.0 - radio.overhead())).max(1.0) as u64;
        budget.uplink_s = None;
    }
    budget
}

/// The power policy. Where the SNR is given, all devices send with one power.
fn power(spec: &Spec, budget: &LinkBudget) -> Result<Box<dyn PowerPolicy>, ConfigError> {
    let radio = &spec.radio;
    let material = PowerMaterial {
        devices: spec.data.devices as usize,
        k: spec.schedule.k as usize,
        average: budget.average,
        max: budget.max,
        noise: budget.noise,
        symbols: budget.symbols as f64,
        symbol_s: budget.symbol_s(),
        bandwidth_hz: budget.bandwidth_hz,
        rayleigh: spec.facts().fading.exponential && radio.antennas == 1 && radio.csi_error == 0.0,
    };
    let chosen = if radio.snr_db.is_some() { &Chosen::from(FixedConfig {}) } else { &spec.parts().power };
    chosen.build(&spec.scope(), &material)
}
