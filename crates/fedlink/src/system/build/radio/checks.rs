//! Settings that have no effect on the radio of a run.

use crate::base::units::DeviceId;
use crate::radio::fading::{Fading, GainMeaning};
use crate::spec::{ConfigError, RadioConfig, Spec};

/// Rejects keys that have no effect on measured values: SNRs contain mean gains, power and noise, and rates
/// all but the sharing; times of rounds have none on a trace that has no times.
pub(super) fn check_measured(spec: &Spec, fading: &dyn Fading) -> Result<(), ConfigError> {
    let radio = &spec.radio;
    if radio.csi_delay_s > 0.0 && fading.earlier(1, DeviceId(0), radio.csi_delay_s).is_none() {
        let problem = format!(
            "has no effect here: radio.fading = \"{}\" has rounds and no times; set it to 0, or give the \
             trace times and set radio.period_s",
            radio.fading
        );
        return Err(ConfigError::new("radio.csi_delay_s", problem));
    }
    let follows_period = radio.speed_kmh > 0.0 || spec.facts().layout.moves;
    if spec.facts().fading.by_period
        && radio.period_s.is_some()
        && !follows_period
        && fading.earlier(1, DeviceId(0), 0.0).is_none()
    {
        let problem = "has no effect here: radio.trace.file has rounds and no times; leave it out";
        return Err(ConfigError::new("radio.period_s", problem));
    }
    let what = match fading.meaning() {
        GainMeaning::Gain => return Ok(()),
        GainMeaning::SnrAtReference => "SNRs",
        GainMeaning::RateBps => "rates",
    };
    if what == "rates" && radio.bandwidth_hz.is_none() {
        let problem = "has rates in bit/s, which need radio.bandwidth_hz";
        return Err(ConfigError::new("radio.trace.file", problem));
    }
    let rates = what == "rates";
    let default = RadioConfig::default();
    let set = [
        ("radio.power", radio.power != default.power),
        ("radio.noise", radio.noise != default.noise),
        ("radio.noise_figure_db", radio.noise_figure_db.is_some()),
        ("radio.interference_w", radio.interference_w.is_some()),
        // The downlink has noise of its own, of the same density.
        ("radio.noise_dbm_hz", radio.noise_dbm_hz.is_some() && !spec.facts().downlink.takes_time),
        ("cell.pathloss", spec.facts().pathloss.has_loss),
        ("radio.snr_db", radio.snr_db.is_some()),
        ("radio.mean_gains", !radio.mean_gains.is_empty()),
        ("radio.csi_error", rates && radio.csi_error > 0.0),
        ("radio.csi_delay_s", rates && radio.csi_delay_s > 0.0),
        ("radio.rate", rates && radio.rate != default.rate),
        ("radio.attempts", rates && radio.attempts > 1),
    ];
    match set.iter().find(|(_, set)| *set) {
        None => Ok(()),
        Some((key, _)) => {
            let problem =
                format!("has no effect on {what} that were measured (radio.trace.file); leave it out");
            Err(ConfigError::new(*key, problem))
        }
    }
}

/// Rejects keys that have an effect only where resource blocks fade apart.
pub(super) fn check_blocks(spec: &Spec, fades_apart: bool) -> Result<(), ConfigError> {
    let (access, facts) = (&spec.parts().access, spec.facts());
    let own = |key: &str| format!("{}.{key}", access.path());
    if let Some(key) = facts.access.needs_blocks_apart.filter(|_| !fades_apart) {
        let problem = "has no effect here: it needs resource blocks that fade apart; set radio.profile";
        return Err(ConfigError::new(own(key), problem));
    }
    match facts.access.needs_steps {
        Some(key) if !facts.rate.has_steps => {
            let problem = format!(
                "is \"{}\", which is fitted to tables of rates; choose a radio.rate with a table, or leave \
                 it out",
                access.table()[key].as_str().unwrap_or_default()
            );
            Err(ConfigError::new(own(key), problem))
        }
        _ => Ok(()),
    }
}
