//! The identity of a run: digests of configurations that new keys do not change.
//!
//! A digest covers the keys that are not at their defaults, and [`SEMANTICS`]. A key that is added later,
//! with a default that leaves results as they were, is in no digest of an earlier run, so that every stored
//! result can still be found by its configuration.

use crate::compress::LevelRule;
use crate::spec::{Config, RadioConfig, Spec, kinds};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::LazyLock;
use toml::{Table, Value};

/// The version of the meaning of configurations, which is part of every [digest](config_digest).
///
/// Raise it when every earlier configuration would give other numbers now: when the default of a key changes,
/// when a value of a key changes its meaning, or when the golden digests change on purpose. A correction that
/// concerns some configurations is a revision of those. Earlier results are then those of other
/// configurations. Do not raise it for a new key, a new part or a new column whose default leaves results as
/// they were.
pub const SEMANTICS: u32 = 1;

/// The digest of a run's configuration: all settings on which its numbers depend, without the data.
/// `run.seeds` is not part of it, since a run has one seed, and neither is `run.target`, by which runs are
/// only judged.
pub fn config_digest(spec: &Spec) -> [u8; 32] {
    digest_of(&distinctive_keys(spec))
}

/// The digest of everything that the first rounds of a run depend on: the [configuration](config_digest)
/// without `run.rounds`, unless rounds depend on their total number (`defense.participation_cap`, rates that
/// fall by a cosine). A run with more rounds and the same trajectory begins with the rounds of the shorter
/// one.
pub fn trajectory_digest(spec: &Spec) -> [u8; 32] {
    digests(spec).1
}

/// The digest of the [configuration](config_digest) and that of the [trajectory](trajectory_digest).
pub fn digests(spec: &Spec) -> ([u8; 32], [u8; 32]) {
    let mut keys = distinctive_keys(spec);
    let config = digest_of(&keys);
    let learn = &spec.learn;
    let rates_know = learn.rate_schedule.knows_the_end() || learn.server_rate_schedule.knows_the_end();
    if !spec.defense.participation_cap && !rates_know {
        keys.remove("run.rounds");
    }
    (config, digest_of(&keys))
}

fn digest_of(keys: &BTreeMap<String, Value>) -> [u8; 32] {
    let mut text = format!("semantics {SEMANTICS}\n");
    for (key, value) in keys {
        let _ = writeln!(text, "{key} = {value}");
    }
    Sha256::digest(text.as_bytes()).into()
}

/// The defaults of the keys of all sections.
static SECTIONS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| flat(&Config::default().to_table()));

/// The keys that distinguish a run from one with all defaults, `run.seeds` and `run.target` left out: those
/// of the sections and of the chosen parts whose values are not the defaults. `learn.rate` has no default of
/// its own and is always there.
pub fn distinctive_keys(spec: &Spec) -> BTreeMap<String, Value> {
    let mut keys = flat(&spec.resolved().to_table());
    let mut defaults = SECTIONS.clone();
    for kind in kinds() {
        for part in &kind.parts {
            let path = format!("{}.{}.", kind.table, part.name);
            // Of the other parts no key is there to be compared.
            if keys.range(path.clone()..).next().is_some_and(|(key, _)| key.starts_with(&path)) {
                let own = kind.defaults(part.name, &spec.scope()).unwrap_or_default();
                defaults.extend(flat(&own).into_iter().map(|(key, value)| (format!("{path}{key}"), value)));
            }
        }
    }
    let tells = |key: &str| !["run.seeds", "run.target"].contains(&key);
    let revisions = revisions(spec, &keys);
    keys.retain(|key, value| tells(key) && defaults.get(key) != Some(value));
    keys.extend(revisions);
    keys
}

/// Marks of a run whose configuration gave other numbers in an earlier version, since a computation was
/// corrected: revisions of the chosen parts, and corrections that concern some configurations only.
fn revisions(spec: &Spec, keys: &BTreeMap<String, Value>) -> Vec<(String, Value)> {
    let mut revisions = Vec::new();
    for kind in kinds() {
        let chosen = keys.get(kind.key).and_then(Value::as_str);
        let part = kind.parts.iter().find(|part| Some(part.name) == chosen && part.revision > 1);
        revisions.extend(part.map(|part| (format!("{} (revision)", kind.key), part.revision.into())));
    }
    let default = RadioConfig::default();
    // A device that is late sends nothing; no device spends more than its battery has; gains over a delay
    // profile are those of the band in use; the best level is sent where one entry more takes the same bits.
    let corrected = [
        ("clock.deadline_s", spec.clock.deadline_s.is_some()),
        ("energy.battery_j", spec.energy.battery_j > 0.0),
        ("radio.profile", spec.radio.profile != default.profile),
        ("compress.level", spec.compress.level == LevelRule::Best),
    ];
    let concerned = corrected.into_iter().filter(|(_, concerned)| *concerned);
    revisions.extend(concerned.map(|(key, _)| (format!("{key} (revision)"), 2.into())));
    revisions
}

/// Every `section.name` and `section.part.name` of a table with its value.
fn flat(table: &Table) -> BTreeMap<String, Value> {
    let mut keys = BTreeMap::new();
    for (name, value) in table {
        match value {
            Value::Table(inner) => {
                keys.extend(flat(inner).into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
            }
            value => {
                keys.insert(name.clone(), value.clone());
            }
        }
    }
    keys
}

/// The default of every key, one `key = value` per line, below a line with [`SEMANTICS`].
pub fn defaults() -> String {
    let config = Config::default();
    let mut all = flat(&config.to_table());
    for kind in kinds() {
        for part in &kind.parts {
            let own = kind.defaults(part.name, &config.scope()).unwrap_or_default();
            let path = format!("{}.{}", kind.table, part.name);
            all.extend(flat(&own).into_iter().map(|(key, value)| (format!("{path}.{key}"), value)));
        }
    }
    let mut text = format!("semantics {SEMANTICS}\n");
    for (key, value) in all {
        let _ = writeln!(text, "{key} = {value}");
    }
    text
}

/// The lines of `pinned`, [`defaults`] that were written earlier with the same [`SEMANTICS`], that no longer
/// hold.
pub fn changed_defaults(pinned: &str) -> Vec<String> {
    let now = defaults();
    let now: HashSet<&str> = now.lines().collect();
    let mut lines = pinned.lines();
    match lines.next() {
        Some(semantics) if now.contains(semantics) => {
            lines.filter(|line| !now.contains(line)).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Parts;
    use crate::spec::Config;

    fn spec(config: &Config) -> Spec {
        config.resolve(&Parts::default()).unwrap()
    }

    #[test]
    fn a_digest_is_that_of_the_keys_that_differ_from_their_defaults() {
        let mut config = Config::default();
        config.set("schedule.k", 5).unwrap();
        config.set("schedule.policy", "bc-bn2").unwrap();
        let keys = distinctive_keys(&spec(&config));
        let names: Vec<&str> = keys.keys().map(String::as_str).collect();
        assert_eq!(names, ["learn.rate", "schedule.k", "schedule.policy"]);
        let rate = spec(&config).rate();
        // By hand: a key that this text does not name, and has its default, can be added without a change.
        let text = format!(
            "semantics 1\nlearn.rate = {}\nschedule.k = 5\nschedule.policy = \"bc-bn2\"\n",
            Value::Float(rate)
        );
        assert_eq!(config_digest(&spec(&config)), <[u8; 32]>::from(Sha256::digest(text)));
        // A default that is written out, the table of a part that is not chosen, and further seeds are no
        // difference.
        let digest = config_digest(&spec(&config));
        config.set("radio.noise", 1.0).unwrap();
        config.set("learn.rate", rate).unwrap();
        config.set("learn.trimmed-mean.trim", 0.3).unwrap();
        (config.run.seeds, config.run.target) = (7, 0.5);
        assert_eq!(config_digest(&spec(&config)), digest);
        config.set("schedule.bc-bn2.kc", 9).unwrap();
        assert_ne!(config_digest(&spec(&config)), digest);
    }

    #[test]
    fn rounds_are_no_part_of_a_trajectory_unless_it_depends_on_them() {
        let (mut short, mut long) = (Config::default(), Config::default());
        (short.run.rounds, long.run.rounds) = (10, 20);
        assert_ne!(config_digest(&spec(&short)), config_digest(&spec(&long)));
        assert_eq!(trajectory_digest(&spec(&short)), trajectory_digest(&spec(&long)));
        (short.defense.participation_cap, long.defense.participation_cap) = (true, true);
        assert_ne!(trajectory_digest(&spec(&short)), trajectory_digest(&spec(&long)));
        (short.defense.participation_cap, long.defense.participation_cap) = (false, false);
        long.run.seed = 3;
        assert_ne!(trajectory_digest(&spec(&short)), trajectory_digest(&spec(&long)));
    }

    /// `tests/defaults.txt` of this crate, which `cargo xtask docs` writes.
    const PINNED: &str = include_str!("../../tests/defaults.txt");

    #[test]
    fn no_default_has_changed_since_the_semantics_were_last_raised() {
        let semantics = format!("semantics {SEMANTICS}");
        assert_eq!(PINNED.lines().next(), Some(semantics.as_str()), "run `cargo xtask docs`");
        assert_eq!(changed_defaults(PINNED), [""; 0], "raise SEMANTICS if results change by this");
    }

    #[test]
    fn a_changed_and_a_removed_default_are_named_and_a_new_key_is_not() {
        let all = defaults();
        assert_eq!(changed_defaults(&all), [""; 0]);
        let without = all.replace("schedule.k = 1\n", "");
        assert!(without.len() < all.len());
        assert_eq!(changed_defaults(&without), [""; 0]);
        let other = all.replace("schedule.k = 1\n", "schedule.k = 2\nschedule.old = true\n");
        assert_eq!(changed_defaults(&other), ["schedule.k = 2", "schedule.old = true"]);
        // With other semantics, all defaults are new.
        assert_eq!(changed_defaults(&other.replace("semantics ", "semantics 1")), [""; 0]);
    }
}
