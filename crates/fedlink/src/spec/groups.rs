//! `[[group]]`: devices that differ in more than their channel, as a file writes them.
//!
//! ```toml
//! [[group]]
//! name = "near"
//! devices = 30
//! snr_db = 20
//!
//! [[group]]
//! name = "far"
//! devices = 30
//! snr_db = 0
//! speed = 0.25            # trains at a quarter of the speed of clock.compute
//! battery_j = 5.0         # 0, or left out: on mains
//! classes = [0, 1, 2]     # labels of its data; left out: by data.partition
//! ```
//!
//! The tables become keys that are lists with a value for each group: `data.group_names`,
//! `data.group_classes`, `radio.group_sizes`, `radio.snr_db`, `clock.group_speeds` and
//! `energy.group_battery_j`; and `data.devices` is their sum. So a configuration has one form, and `--set`
//! and `[sweep]` reach every value.

use crate::base::units::DeviceId;
use crate::parts::ConfigError;
use crate::spec::{Config, nearest, put_in};
use toml::{Table, Value};

/// The keys of a table `[[group]]`.
const KEYS: [&str; 6] = ["name", "devices", "snr_db", "speed", "battery_j", "classes"];

/// Replaces the tables `[[group]]` of a configuration by the keys that they abbreviate.
pub fn lower_groups(table: &mut Table) -> Result<(), ConfigError> {
    let groups = match table.remove("group") {
        None => return Ok(()),
        Some(Value::Array(groups)) if !groups.is_empty() => groups,
        Some(_) => {
            return Err(ConfigError::new("group", "is a list of tables: write [[group]] for each group"));
        }
    };
    let groups: Vec<Table> = groups
        .into_iter()
        .map(|group| match group {
            Value::Table(group) => Ok(group),
            other => {
                Err(ConfigError::new("group", format!("has {other}, but each group is a table [[group]]")))
            }
        })
        .collect::<Result<_, ConfigError>>()?;
    for (index, group) in groups.iter().enumerate() {
        if let Some(key) = group.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let hint = nearest(key, KEYS).map_or_else(
                || format!("there are {}", KEYS.join(", ")),
                |near| format!("did you mean {near}?"),
            );
            return Err(in_group(index, key, format!("is not a key of a group; {hint}")));
        }
    }
    let devices = each(&groups, "devices", |value| value.as_integer().filter(|count| *count >= 1))?
        .ok_or_else(|| in_group(0, "devices", "is missing: the number of devices of the group"))?;
    let sum = devices.iter().try_fold(0i64, |sum, count| sum.checked_add(*count)).unwrap_or(i64::MAX);
    let in_section = |table: &Table, section: &str, key: &str| {
        table.get(section).and_then(|section| section.get(key)).cloned()
    };
    if let Some(written) = in_section(table, "data", "devices").filter(|written| *written != Value::from(sum))
    {
        let problem = format!("is {written}, but the groups have {sum} devices; leave it out");
        return Err(ConfigError::new("data.devices", problem));
    }
    let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    let snrs = each(&groups, "snr_db", number)?;
    let speeds = or_default(&groups, "speed", 1.0, number)?;
    let batteries = or_default(&groups, "battery_j", 0.0, number)?;
    let classes = or_default(&groups, "classes", Value::Array(Vec::new()), |value| {
        value.as_array().filter(|labels| labels.iter().all(Value::is_integer)).map(|_| value.clone())
    })?;
    let name = |index: usize| Value::from(format!("group {}", index + 1));
    let names: Vec<Value> = groups
        .iter()
        .enumerate()
        .map(|(index, group)| match group.get("name") {
            None => Ok(name(index)),
            Some(Value::String(text)) => Ok(text.as_str().into()),
            Some(other) => Err(in_group(index, "name", format!("is {other}, but must be a text"))),
        })
        .collect::<Result<_, ConfigError>>()?;
    let mut put = |key: &str, value: Option<Value>| {
        let Some(value) = value else { return Ok(()) };
        let (section, own) = key.split_once('.').unwrap_or((key, ""));
        if key != "data.devices" && in_section(table, section, own).is_some() {
            let problem = "and [[group]] both set it; leave one of them out";
            return Err(ConfigError::new(key, problem));
        }
        put_in(table, key, value);
        Ok(())
    };
    put("data.devices", Some(sum.into()))?;
    put("data.group_names", Some(Value::Array(names)))?;
    put("radio.group_sizes", Some(devices.into()))?;
    put("radio.snr_db", snrs.map(Value::from))?;
    put("clock.group_speeds", speeds.map(Value::from))?;
    put("energy.group_battery_j", batteries.map(Value::from))?;
    put("data.group_classes", classes.map(Value::from))
}

fn in_group(index: usize, key: &str, problem: impl Into<String>) -> ConfigError {
    ConfigError::new(format!("group {}, {key}", index + 1), problem)
}

/// The values of a key that all groups have, or none of them.
fn each<T>(
    groups: &[Table],
    key: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<Vec<T>>, ConfigError> {
    if groups.iter().all(|group| !group.contains_key(key)) {
        return Ok(None);
    }
    let value = |(index, group): (usize, &Table)| match group.get(key) {
        Some(value) => {
            read(value).ok_or_else(|| in_group(index, key, format!("is {value}, which is not a value of it")))
        }
        None => Err(in_group(index, key, "is missing, and another group has it")),
    };
    groups.iter().enumerate().map(value).collect::<Result<_, _>>().map(Some)
}

/// The values of a key that any group has, with a default for the others; none if no group has it.
fn or_default<T: Clone>(
    groups: &[Table],
    key: &str,
    default: T,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<Vec<T>>, ConfigError> {
    if groups.iter().all(|group| !group.contains_key(key)) {
        return Ok(None);
    }
    let value = |(index, group): (usize, &Table)| match group.get(key) {
        Some(value) => {
            read(value).ok_or_else(|| in_group(index, key, format!("is {value}, which is not a value of it")))
        }
        None => Ok(default.clone()),
    };
    groups.iter().enumerate().map(value).collect::<Result<_, _>>().map(Some)
}

impl Config {
    /// The number of groups that the devices form; 0: none are named.
    pub fn groups(&self) -> usize {
        match (&self.radio.group_sizes, &self.radio.snr_db) {
            (Some(sizes), _) => sizes.len(),
            (None, Some(snrs)) if snrs.levels().len() > 1 => snrs.levels().len(),
            _ => 0,
        }
    }

    /// The group of a device, from 0; none if there are no groups.
    pub fn group_of(&self, device: DeviceId) -> Option<usize> {
        let groups = self.groups();
        let sizes = self.radio.group_sizes.as_deref();
        let devices = self.data.devices as usize;
        (groups > 0).then(|| crate::radio::budget::group_of(device, groups, sizes, devices))
    }

    /// The name of a group.
    pub fn group_name(&self, group: usize) -> String {
        let names = self.data.group_names.as_ref();
        names.and_then(|names| names.get(group).cloned()).unwrap_or_else(|| format!("group {}", group + 1))
    }

    /// The value of a list with one entry for each group, for a device.
    pub(crate) fn of_group<T: Copy>(&self, values: Option<&Vec<T>>, device: DeviceId) -> Option<T> {
        values?.get(self.group_of(device)?).copied()
    }

    /// Joules in the battery of a device; none on mains.
    pub fn battery_j(&self, device: DeviceId) -> Option<f64> {
        let of_group = self.of_group(self.energy.group_battery_j.as_ref(), device);
        Some(of_group.unwrap_or(self.energy.battery_j)).filter(|joules| *joules > 0.0)
    }

    /// Checks the lists with one entry for each group.
    pub(crate) fn check_groups(&self) -> Result<(), ConfigError> {
        let Self { data, radio, clock, energy, .. } = self;
        let lengths = [
            ("data.group_names", data.group_names.as_ref().map(Vec::len)),
            ("data.group_classes", data.group_classes.as_ref().map(Vec::len)),
            ("clock.group_speeds", clock.group_speeds.as_ref().map(Vec::len)),
            ("energy.group_battery_j", energy.group_battery_j.as_ref().map(Vec::len)),
        ];
        let groups = self.groups();
        for (key, length) in lengths {
            let Some(length) = length else { continue };
            if radio.group_sizes.is_none() {
                let problem = "has a value for each group; set radio.group_sizes, or write [[group]] tables";
                return Err(ConfigError::new(key, problem));
            }
            if length != groups {
                let problem = format!("has {length} values, but radio.group_sizes has {groups} groups");
                return Err(ConfigError::new(key, problem));
            }
        }
        let fits = |speed: &f64| speed.is_finite() && *speed > 0.0;
        if let Some(speed) = clock.group_speeds.iter().flatten().find(|speed| !fits(speed)) {
            return Err(ConfigError::new(
                "clock.group_speeds",
                format!("has {speed}, but speeds are above 0"),
            ));
        }
        let fits = |joules: &f64| joules.is_finite() && *joules >= 0.0;
        if let Some(joules) = energy.group_battery_j.iter().flatten().find(|joules| !fits(joules)) {
            let problem = format!("has {joules}, but batteries are at least 0 (0: on mains)");
            return Err(ConfigError::new("energy.group_battery_j", problem));
        }
        if energy.group_battery_j.is_some() && energy.battery_j > 0.0 {
            let problem = "and energy.battery_j both set the batteries; leave one of them out";
            return Err(ConfigError::new("energy.group_battery_j", problem));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALL: &str = r#"
        [[group]]
        name = "near"
        devices = 30
        snr_db = 20
        [[group]]
        name = "far"
        devices = 30
        snr_db = 0
        speed = 0.25
        battery_j = 5.0
        classes = [0, 1, 2]
        [radio]
        bandwidth_hz = 1e6
        [clock]
        compute = "flops"
    "#;

    #[test]
    fn groups_become_keys_with_a_value_for_each() {
        let config = Config::from_toml(HALL).unwrap();
        assert_eq!((config.data.devices, config.groups()), (60, 2));
        assert_eq!(config.radio.group_sizes, Some(vec![30, 30]));
        assert_eq!(config.radio.snr_db.as_ref().unwrap().levels(), [20.0, 0.0]);
        assert_eq!(config.clock.group_speeds, Some(vec![1.0, 0.25]));
        assert_eq!(config.energy.group_battery_j, Some(vec![0.0, 5.0]));
        assert_eq!(config.data.group_classes, Some(vec![vec![], vec![0, 1, 2]]));
        let group = |device| (config.group_of(DeviceId(device)), config.group_name((device / 30) as usize));
        assert_eq!(group(29), (Some(0), "near".into()));
        assert_eq!(group(30), (Some(1), "far".into()));
        // The text reads back as the same configuration.
        let text = toml::to_string(&config.to_table()).unwrap();
        assert_eq!(Config::from_toml(&text).unwrap(), config);
    }

    #[test]
    fn errors_in_a_group_name_the_group() {
        let error = |text: &str| Config::from_toml(text).unwrap_err().to_string();
        for (text, wanted) in [
            ("[[group]]\ndevice = 3", "group 1, device: is not a key of a group; did you mean devices?"),
            ("[[group]]\nsnr_db = 3", "group 1, devices: is missing"),
            ("[[group]]\ndevices = 0", "group 1, devices: is 0"),
            ("[[group]]\ndevices = 3\n[data]\ndevices = 4", "data.devices: is 4, but the groups have 3"),
            ("[[group]]\ndevices = 3\nsnr_db = 1\n[[group]]\ndevices = 3", "group 2, snr_db: is missing"),
            ("[group]\ndevices = 3", "group: is a list of tables"),
            ("[[group]]\ndevices = 3\n[radio]\ngroup_sizes = [3]", "radio.group_sizes: and [[group]] both"),
            ("[[group]]\ndevices = 3\nspeed = \"fast\"", "group 1, speed: is \"fast\""),
            (
                "[[group]]\ndevices = 3\nspeed = 0.0\n[radio]\nbandwidth_hz = 1e6\nsnr_db = 3\n\
                 [clock]\ncompute = \"flops\"",
                "clock.group_speeds: has 0, but speeds are above 0",
            ),
        ] {
            let message = error(text);
            assert!(message.contains(wanted), "{text}: {message}");
        }
    }
}
