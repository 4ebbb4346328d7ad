//! The bandwidth and the power at which the SNRs of an experiment hold.

use super::{Experiment, nested};
use fedlink::spec::{ConfigError, put_in};
use toml::{Table, Value};

/// The bandwidth and the power of a file, as written.
#[derive(Clone, Debug, Default)]
pub(super) struct Anchor {
    bandwidth_hz: Option<Value>,
    power_dbm: Option<Value>,
}

/// The transmit power of a file that states none, dBm.
fn default_power_dbm() -> Value {
    fedlink::spec::RadioConfig::default().power_dbm().into()
}

impl Anchor {
    /// That of the values of a file.
    pub(super) fn of(table: &Table) -> Self {
        let bandwidth_hz = nested(table, "radio.bandwidth_hz").cloned();
        let power_dbm = nested(table, "radio.power_dbm").cloned();
        let power_dbm = power_dbm.or_else(|| bandwidth_hz.as_ref().map(|_| default_power_dbm()));
        Self { bandwidth_hz, power_dbm }
    }
}

impl Experiment {
    /// Writes the bandwidth and the power at which `radio.snr_db` holds, where they are swept or differ from
    /// those of the file: more bandwidth is more noise.
    pub(super) fn anchor_snrs(&mut self) -> Result<(), ConfigError> {
        let is_swept = |key: &str| {
            let overridden = |rule: &super::Override| rule.set.iter().any(|(own, _)| own == key);
            self.sweep.iter().any(|(swept, _)| swept == key) || self.overrides.iter().any(overridden)
        };
        let is_there = |key: &str| nested(&self.table, key).is_some() || is_swept(key);
        if !is_there("radio.snr_db") {
            return Ok(());
        }
        let Anchor { bandwidth_hz, power_dbm } = &self.anchor;
        let mut wanted = Vec::new();
        for (key, reference, of_file, unit) in [
            ("radio.bandwidth_hz", "radio.snr_bandwidth_hz", bandwidth_hz, "1e6"),
            ("radio.power_dbm", "radio.snr_power_dbm", power_dbm, "20"),
        ] {
            if is_there(reference) {
                continue;
            }
            match of_file {
                Some(value) if is_swept(key) || nested(&self.table, key).is_some_and(|now| now != value) => {
                    wanted.push((reference, value.clone()));
                }
                None if is_swept(key) => {
                    let problem = format!(
                        "is missing: {key} is swept, and the SNRs of radio.snr_db hold at one value of it; \
                         write that value, such as {reference} = {unit}"
                    );
                    return Err(ConfigError::new(reference, problem));
                }
                _ => {}
            }
        }
        for (reference, value) in wanted {
            put_in(&mut self.table, reference, value);
        }
        Ok(())
    }
}
