//! The meaning of every key: the source of `fedlink config`, of the reference page and of hints.

use super::sections::{
    AdversaryConfig, CellConfig, ClockConfig, CompressConfig, DataConfig, DefenseConfig, EnergyConfig,
    LearnConfig, PrivacyConfig, RadioConfig, RunConfig, ScheduleConfig,
};
use super::{Config, kinds};
use crate::parts::{ConfigError, Key, Keys as _, Listing, Scope, nearest, other_unit};
use std::fmt::Write;
use std::sync::LazyLock;
use toml::{Table, Value};

/// The number of keys of all sections.
const COUNT: usize = {
    let (mut count, mut i) = (0, 0);
    while i < OF_SECTIONS.len() {
        count += OF_SECTIONS[i].len();
        i += 1;
    }
    count
};

/// The keys of each section, in the order of the file.
const OF_SECTIONS: [&[Key]; 12] = [
    DataConfig::KEYS,
    LearnConfig::KEYS,
    RadioConfig::KEYS,
    CellConfig::KEYS,
    ClockConfig::KEYS,
    EnergyConfig::KEYS,
    ScheduleConfig::KEYS,
    CompressConfig::KEYS,
    AdversaryConfig::KEYS,
    DefenseConfig::KEYS,
    PrivacyConfig::KEYS,
    RunConfig::KEYS,
];

/// Every key of the sections, in the order of the file; each part has its own keys besides.
pub const KEYS: &[Key] = &{
    let mut keys = [OF_SECTIONS[0][0]; COUNT];
    let (mut count, mut section) = (0, 0);
    while section < OF_SECTIONS.len() {
        let mut i = 0;
        while i < OF_SECTIONS[section].len() {
            keys[count] = OF_SECTIONS[section][i];
            (count, i) = (count + 1, i + 1);
        }
        section += 1;
    }
    keys
};

/// Keys of version 0.1 and their present names.
pub(super) const RENAMED: &[(&str, &str)] = &[
    ("data.classes_per_device", "data.classes.per_device"),
    ("data.alpha", "data.dirichlet.alpha"),
    ("data.sizes", "data.dirichlet.sizes"),
    ("data.shards_per_device", "data.shards.per_device"),
    ("data.size_spread", "data.quantity.spread"),
    ("data.sharing", "data.iid.sharing or data.quantity.sharing"),
    ("learn.hidden", "learn.mlp.hidden"),
    ("learn.momentum", "learn.sgd.momentum"),
    ("learn.beta1", "learn.adam.beta1"),
    ("learn.beta2", "learn.adam.beta2"),
    ("learn.epsilon", "learn.adam.epsilon or learn.adagrad.epsilon"),
    ("learn.initial_accumulator", "learn.adagrad.initial_accumulator"),
    ("radio.channel", "radio.fading"),
    ("schedule.kc", "schedule.bc-bn2.kc"),
    ("adversary.report", "adversary.inflated-norm.report"),
    ("adversary.amount", "adversary.inflated-norm.amount or adversary.huge.amount"),
    ("adversary.upload", "adversary.inflated-norm.upload"),
    ("defence.aggregate", "learn.aggregate"),
    ("defence.trim", "learn.trimmed-mean.trim"),
    ("defence.audit", "defense.audit"),
    ("defence.strikes", "defense.strikes"),
    ("defence.clip", "defense.clip"),
    ("defence.participation_cap", "defense.participation_cap"),
    ("defence.cap_slack", "defense.cap_slack"),
    ("defence", "defense"),
];

/// The sections that make a [`Config`], in the order of the file. `custom` names parts that
/// are not this library's.
pub const SECTIONS: [&str; 13] = [
    "data",
    "learn",
    "radio",
    "cell",
    "clock",
    "energy",
    "schedule",
    "compress",
    "adversary",
    "defense",
    "privacy",
    "run",
    "custom",
];

/// Every key that there is, `section.name` and `section.part.name`.
pub fn all_keys() -> &'static [String] {
    static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
        let own = kinds().iter().flat_map(|kind| {
            kind.parts.iter().flat_map(|part| {
                part.keys.iter().map(|key| format!("{}.{}.{}", kind.table, part.name, key.name))
            })
        });
        KEYS.iter().map(|key| key.name.to_owned()).chain(own).collect()
    });
    &ALL
}

/// The values that a key of the sections takes; for one that chooses among parts, their names.
pub fn allowed(key: &Key) -> String {
    if !key.is_part {
        return key.allowed.to_owned();
    }
    let kind = kinds().iter().find(|kind| kind.key == key.name);
    let names: Vec<String> =
        kind.into_iter().flat_map(|kind| &kind.parts).map(|part| format!("\"{}\"", part.name)).collect();
    names.join(" | ")
}

/// The error of an unknown key: its present name, or the name that was most likely meant.
pub fn unknown_key(key: &str) -> ConfigError {
    unknown(key, None)
}

/// As [`unknown_key`] for a key with a value, which is converted if the key is known in another unit.
pub(super) fn unknown_value(key: &str, value: &Value) -> ConfigError {
    unknown(key, Some(value))
}

fn unknown(key: &str, value: Option<&Value>) -> ConfigError {
    if let Some((_, now)) = RENAMED.iter().find(|(old, _)| *old == key) {
        return ConfigError::new(key, format!("is now called {now}"));
    }
    let known = all_keys();
    if let Some(hint) = other_unit(key, value, &known.iter().map(String::as_str)) {
        return ConfigError::new(key, format!("is not a key; {hint}"));
    }
    let near = nearest(key, known.iter().map(String::as_str)).map(|near| format!("did you mean {near}?"));
    let hint = near.unwrap_or_else(|| {
        let section = key.split('.').next().unwrap_or(key);
        let inside = known.iter().filter_map(|known| known.strip_prefix(section)?.strip_prefix('.'));
        let names: Vec<&str> = inside.collect();
        if names.is_empty() {
            format!("write section.name, the sections being {}", SECTIONS.join(", "))
        } else {
            format!("the keys of {section} are {}", names.join(", "))
        }
    });
    ConfigError::new(key, format!("is not a key; {hint}"))
}

/// The error of an unknown section; `more` are sections that the caller also knows.
pub fn unknown_section(section: &str, more: &[&str]) -> ConfigError {
    let known = SECTIONS.iter().chain(more).copied();
    let hint = match RENAMED.iter().find(|(old, _)| *old == section) {
        Some((_, now)) => format!("it is now called [{now}]"),
        None => match nearest(section, known.clone()) {
            Some(near) => format!("did you mean [{near}]?"),
            None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
        },
    };
    ConfigError::new(section, format!("is not a section; {hint}"))
}

/// Checks that `name` is one of the parts that `key` chooses among, or a custom one of `config`; other keys
/// take any.
pub fn check_name(key: &str, name: &str, config: &Config) -> Result<(), ConfigError> {
    match kinds().iter().find(|kind| kind.key == key) {
        Some(kind) if !config.custom.contains_key(name) => kind.check_name(name),
        _ => Ok(()),
    }
}

/// The configuration as TOML with a comment on every key: of the parts, those that are chosen.
pub fn commented_toml(config: &Config) -> String {
    let table = config.to_table();
    let kinds = kinds();
    let mut text = String::new();
    for section in SECTIONS {
        let Some(Value::Table(values)) = table.get(section) else { continue };
        if section == "custom" {
            if !values.is_empty() {
                let _ = writeln!(
                    text,
                    "\n# Parts that are not this library's, and where they come from.\n[custom]\n{values}"
                );
            }
            continue;
        }
        let _ = writeln!(text, "{}[{section}]", if text.is_empty() { "" } else { "\n" });
        for key in KEYS {
            let Some((in_section, name)) = key.name.split_once('.') else { continue };
            if in_section == section {
                // A key without a default is shown as it would be set.
                let line = match values.get(name) {
                    Some(value) => format!("{name} = {value}"),
                    None => format!("# {name} = …"),
                };
                let _ = writeln!(text, "# {}: {}\n{line}", key.meaning, allowed(key));
            }
        }
        for kind in kinds.iter().filter(|kind| kind.key.starts_with(&format!("{section}."))) {
            for part in &kind.parts {
                let own = config.own_table(kind.table, part.name);
                write_own(&mut text, &format!("{}.{}", kind.table, part.name), part.keys, own);
            }
        }
        for (path, own) in config.custom_tables(section) {
            write_own(&mut text, path, &[], own);
        }
    }
    text
}

/// A key as TOML writes it: bare if it can be, otherwise in quotes on one line.
///
/// ```
/// use fedlink::spec::toml_key;
/// let keys = ["beta", "schedule.k", "a \"b\"\n"];
/// assert_eq!(keys.map(toml_key), ["beta", r#""schedule.k""#, r#""a \"b\"\u000a""#]);
/// ```
pub fn toml_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !key.is_empty() && key.chars().all(bare) {
        return key.to_owned();
    }
    let mut text = "\"".to_owned();
    for c in key.chars() {
        let _ = match c {
            '"' | '\\' => write!(text, "\\{c}"),
            c if c.is_control() => write!(text, "\\u{:04x}", u32::from(c)),
            c => write!(text, "{c}"),
        };
    }
    text + "\""
}

/// A part's own table, if there is anything in it.
fn write_own(text: &mut String, path: &str, keys: &[Key], own: &Table) {
    if own.is_empty() {
        return;
    }
    let path: Vec<String> = path.split('.').map(toml_key).collect();
    let _ = writeln!(text, "\n[{}]", path.join("."));
    for (name, value) in own {
        if let Some(key) = keys.iter().find(|key| key.name == name) {
            let _ = writeln!(text, "# {}: {}", key.meaning, key.allowed);
        }
        let _ = writeln!(text, "{} = {value}", toml_key(name));
    }
}

/// The defaults of a part's own keys if nothing else is set; none if there is no such part.
pub fn own_defaults(kind: &Listing, name: &str) -> Option<Table> {
    kind.defaults(name, &Scope::default())
}
