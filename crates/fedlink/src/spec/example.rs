//! Configurations for tests.

use super::Config;

/// The defaults with the part `name` chosen by `key`, and the other settings that the part needs.
pub(crate) fn with_part(key: &str, name: &str) -> Config {
    let mut config = Config::default();
    config.set(key, name).unwrap();
    let physical = key.starts_with("clock.") || key.starts_with("cell.") || name == "ofdma";
    config.radio.bandwidth_hz = physical.then_some(1e6);
    match key {
        // Policies that schedule all devices.
        "schedule.policy" if config.validate().is_err_and(|error| error.key == "schedule.k") => {
            config.schedule.k = config.data.devices;
        }
        "cell.layout" if name != "none" => config.cell.pathloss = "3gpp-macro".into(),
        "cell.pathloss" if name != "none" => config.cell.layout = "disc".into(),
        "learn.correction" if name == "scaffold" => config.learn.optimizer = "sgd".into(),
        "clock.spread" | "clock.jitter" => config.clock.compute = "flops".into(),
        _ => {}
    }
    config
}
