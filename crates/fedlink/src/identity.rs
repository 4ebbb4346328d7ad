//! What makes a run the run that it is: digests of configurations that new keys do not change.
//!
//! A digest covers the keys that are not at their defaults, and [`SEMANTICS`]. A key that is added later,
//! with a default that leaves results as they were, is in no digest of an earlier run, so that every stored
//! result can still be found by its configuration.

use crate::config::{Config, kinds};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;
use toml::{Table, Value};

/// What configurations mean, as a version that is part of every [digest](config_digest).
///
/// Raise it when a configuration that was written before would give other numbers now: when the default of a
/// key changes, when a value of a key comes to mean something else, or when the golden digests change on
/// purpose. Results of before then count as those of other configurations. Do not raise it for a new key, a
/// new part or a new column whose default leaves results as they were.
pub const SEMANTICS: u32 = 1;

/// The digest of a run's configuration: what its numbers depend on, but for the data. `run.seeds` is no part
/// of it, since a run has one seed, and neither is `run.target`, by which runs are only judged.
pub fn config_digest(config: &Config) -> [u8; 32] {
    digest_of(&distinctive_keys(config))
}

/// The digest of all that the first rounds of a run depend on: the [configuration](config_digest) without
/// `run.rounds`, unless rounds depend on how many there will be (`defense.participation_cap`, rates that fall
/// by a cosine). A run with more rounds and the same trajectory begins with the rounds of the shorter one.
pub fn trajectory_digest(config: &Config) -> [u8; 32] {
    let mut keys = distinctive_keys(config);
    let learn = &config.learn;
    let rates_know = learn.rate_schedule.knows_the_end() || learn.server_rate_schedule.knows_the_end();
    if !config.defense.participation_cap && !rates_know {
        keys.remove("run.rounds");
    }
    digest_of(&keys)
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

/// The keys that tell a run from one with all defaults, `run.seeds` and `run.target` left out: those of the
/// sections and of the chosen parts whose values are not the defaults. `learn.rate` has no default of its own
/// and is always there.
pub fn distinctive_keys(config: &Config) -> BTreeMap<String, Value> {
    let mut keys = flat(&config.resolved().to_table());
    let mut defaults = SECTIONS.clone();
    for kind in kinds() {
        for part in &kind.parts {
            let path = format!("{}.{}.", kind.table, part.name);
            // Of the other parts no key is there to be compared.
            if keys.range(path.clone()..).next().is_some_and(|(key, _)| key.starts_with(&path)) {
                let own = kind.defaults(part.name, &config.scope()).unwrap_or_default();
                defaults.extend(flat(&own).into_iter().map(|(key, value)| (format!("{path}{key}"), value)));
            }
        }
    }
    let tells = |key: &str| !["run.seeds", "run.target"].contains(&key);
    keys.retain(|key, value| tells(key) && defaults.get(key) != Some(value));
    keys
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_keys_that_differ_from_their_defaults() {
        let mut config = Config::default();
        config.set("schedule.k", 5).unwrap();
        config.set("schedule.policy", "bc-bn2").unwrap();
        let keys = distinctive_keys(&config);
        let names: Vec<&str> = keys.keys().map(String::as_str).collect();
        assert_eq!(names, ["learn.rate", "schedule.k", "schedule.policy"]);
        let rate = config.rate().unwrap();
        // By hand: a key that this text does not name, and has its default, can be added without a change.
        let text = format!(
            "semantics 1\nlearn.rate = {}\nschedule.k = 5\nschedule.policy = \"bc-bn2\"\n",
            Value::Float(rate)
        );
        assert_eq!(config_digest(&config), <[u8; 32]>::from(Sha256::digest(text)));
        // A default that is written out, the table of a part that is not chosen, and further seeds are no
        // difference.
        let digest = config_digest(&config);
        config.set("radio.noise", 1.0).unwrap();
        config.set("learn.rate", rate).unwrap();
        config.set("learn.trimmed-mean.trim", 0.3).unwrap();
        (config.run.seeds, config.run.target) = (7, 0.5);
        assert_eq!(config_digest(&config), digest);
        config.set("schedule.bc-bn2.kc", 9).unwrap();
        assert_ne!(config_digest(&config), digest);
    }

    #[test]
    fn rounds_are_no_part_of_a_trajectory_unless_it_depends_on_them() {
        let (mut short, mut long) = (Config::default(), Config::default());
        (short.run.rounds, long.run.rounds) = (10, 20);
        assert_ne!(config_digest(&short), config_digest(&long));
        assert_eq!(trajectory_digest(&short), trajectory_digest(&long));
        (short.defense.participation_cap, long.defense.participation_cap) = (true, true);
        assert_ne!(trajectory_digest(&short), trajectory_digest(&long));
        (short.defense.participation_cap, long.defense.participation_cap) = (false, false);
        long.run.seed = 3;
        assert_ne!(trajectory_digest(&short), trajectory_digest(&long));
    }

    /// The defaults of every key as they were when [`SEMANTICS`] was last raised: `tests/defaults.txt` in
    /// this crate.
    const PINNED: &str = include_str!("../tests/defaults.txt");

    #[test]
    fn no_default_has_changed_since_the_semantics_were_last_raised() {
        let mut defaults = flat(&Config::default().to_table());
        for kind in kinds() {
            for part in &kind.parts {
                let own = kind.defaults(part.name, &Config::default().scope()).expect("a part has defaults");
                let path = format!("{}.{}", kind.table, part.name);
                defaults.extend(flat(&own).into_iter().map(|(key, value)| (format!("{path}.{key}"), value)));
            }
        }
        let now: Vec<String> = defaults.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let mut lines = PINNED.lines();
        let semantics = format!("semantics {SEMANTICS}");
        assert_eq!(lines.next(), Some(semantics.as_str()), "write the defaults of the new semantics");
        for line in lines {
            let key = line.split(" = ").next().unwrap();
            assert!(
                now.iter().any(|known| known == line),
                "{key} had the default `{line}`: raise SEMANTICS if results change by it; all defaults \
                 now:\n{}",
                now.join("\n")
            );
        }
        let pinned: Vec<&str> = PINNED.lines().collect();
        let new: Vec<&str> = now.iter().map(String::as_str).filter(|line| !pinned.contains(line)).collect();
        assert!(new.is_empty(), "new keys: add to tests/defaults.txt\n{}", new.join("\n"));
    }
}
