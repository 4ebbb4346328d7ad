//! Changes of the scenario under which the recommended settings are run again.

use fedlink::spec::Spec;
use toml::Value;

/// A change of the scenario.
pub(super) struct Change {
    /// In words.
    pub text: String,
    /// The keys that it sets.
    pub settings: Vec<(String, Value)>,
}

/// The changes that a scenario allows: half the bandwidth, 3 dB less power, the weakest group 3 dB further
/// away, trainings that take 1.5 times as long, half the batteries, twice the devices.
pub(super) fn changes(spec: &Spec) -> Vec<Change> {
    let radio = &spec.radio;
    let mut changes = Vec::new();
    let mut add = |text: String, settings: Vec<(&str, Value)>| {
        let settings = settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        changes.push(Change { text, settings });
    };
    if let Some(bandwidth) = radio.bandwidth_hz {
        add("half the bandwidth".into(), vec![("radio.bandwidth_hz", Value::Float(0.5 * bandwidth))]);
        let power = radio.power_dbm();
        add("3 dB less transmit power".into(), vec![("radio.power_dbm", Value::Float(power - 3.0))]);
    }
    let groups = spec.groups();
    let table = spec.resolved().to_table();
    let snrs = table.get("radio").and_then(|radio| radio.get("snr_db")).and_then(Value::as_array).cloned();
    if let Some(mut snrs) = snrs.filter(|snrs| snrs.len() == groups && groups > 1) {
        let db = |value: &Value| {
            value.as_float().or_else(|| value.as_integer().map(|db| db as f64)).unwrap_or(0.0)
        };
        let weakest = (0..snrs.len()).min_by(|&a, &b| db(&snrs[a]).total_cmp(&db(&snrs[b]))).unwrap_or(0);
        snrs[weakest] = Value::Float(db(&snrs[weakest]) - 3.0);
        add(format!("{} at −3 dB", spec.group_name(weakest)), vec![("radio.snr_db", Value::Array(snrs))]);
    }
    // Every law of training times has one key for the pace.
    let compute = spec.clock.compute.clone();
    let pace = table.get("clock").and_then(|clock| clock.get(&compute)).and_then(Value::as_table);
    for key in ["per_s", "samples_per_s", "hz"] {
        let own = pace.and_then(|pace| pace.get(key));
        if let Some(own) =
            own.and_then(|own| own.as_float().or_else(|| own.as_integer().map(|own| own as f64)))
        {
            let path = format!("clock.{compute}.{key}");
            add("trainings 1.5 times as long".into(), vec![(path.as_str(), Value::Float(own / 1.5))]);
        }
    }
    if spec.energy.battery_j > 0.0 {
        add(
            "half the batteries".into(),
            vec![("energy.battery_j", Value::Float(0.5 * spec.energy.battery_j))],
        );
    }
    let devices = spec.data.devices;
    let mut doubled = vec![("data.devices", Value::Integer(2 * devices as i64))];
    if let Some(sizes) = &radio.group_sizes {
        let sizes = sizes.iter().map(|&size| Value::Integer(2 * size as i64)).collect();
        doubled.push(("radio.group_sizes", Value::Array(sizes)));
    }
    add("twice the devices".into(), doubled);
    changes
}
