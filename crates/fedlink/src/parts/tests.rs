//! The contract of every part of every kind, as an entry of its list.

use super::*;
use crate::schedule::Policy;
use crate::schedule::policy::Random;
use crate::spec::{Config, KEYS, Spec, example, kinds};
use std::collections::BTreeSet;

#[test]
fn names_are_unique_within_a_kind_and_within_the_tables_of_a_section() {
    let mut paths = BTreeSet::new();
    // Parts without keys have no table, so they may share a path.
    let has_table = |part: &&Listed| !part.keys.is_empty();
    for kind in kinds() {
        let names: BTreeSet<&str> = kind.parts.iter().map(|part| part.name).collect();
        assert_eq!(names.len(), kind.parts.len(), "{}", kind.plural);
        for part in &kind.parts {
            let path = format!("{}.{}", kind.table, part.name);
            assert!(KEYS.iter().all(|key| key.name != path), "{path} is a key too");
            assert!(kinds().iter().all(|other| other.table != path), "{path} holds tables of parts");
        }
        for part in kind.parts.iter().filter(has_table) {
            let path = format!("{}.{}", kind.table, part.name);
            assert!(paths.insert(path.clone()), "{path} is the table of two parts");
        }
    }
}

#[test]
fn every_kind_is_chosen_by_a_key_that_takes_every_part_and_nothing_else() {
    for kind in kinds() {
        assert!(KEYS.iter().any(|key| key.name == kind.key), "{}", kind.key);
        for part in &kind.parts {
            let config = example::with_part(kind.key, part.name);
            assert_eq!(config.validate(), Ok(()), "{} = {}", kind.key, part.name);
        }
        // For an unknown name without a near one, the message names all parts.
        let mut config = Config::default();
        config.set(kind.key, "no such part").unwrap();
        if kind.key.starts_with("cell.") || kind.key.starts_with("clock.") {
            config.radio.bandwidth_hz = Some(1e6);
            config.cell.layout = if kind.key == "cell.layout" { config.cell.layout } else { "disc".into() };
            config.cell.pathloss =
                if kind.key == "cell.pathloss" { config.cell.pathloss } else { "free-space".into() };
            config.clock.compute =
                if kind.key == "clock.compute" { config.clock.compute } else { "flops".into() };
        }
        let message = config.validate().unwrap_err().to_string();
        let names: Vec<&str> = kind.parts.iter().map(|part| part.name).collect();
        let expected = format!(
            "{}: is \"no such part\", which is not one of the {}; there are {}",
            kind.key,
            kind.plural,
            names.join(", ")
        );
        assert_eq!(message, expected);
        assert_eq!(kind.check_name("no such part").unwrap_err().to_string(), expected);
        assert_eq!(names.iter().try_for_each(|name| kind.check_name(name)), Ok(()));
    }
}

#[test]
fn the_keys_of_a_part_are_the_fields_of_its_table_and_its_defaults_resolve() {
    for kind in kinds() {
        for part in &kind.parts {
            let own = kind.defaults(part.name, &Scope::default());
            let own = own.unwrap_or_else(|| panic!("{} has no valid defaults", part.name));
            let fields: BTreeSet<&str> = own.keys().map(String::as_str).collect();
            let keys: BTreeSet<&str> = part.keys.iter().map(|key| key.name).collect();
            assert_eq!(fields, keys, "{}.{}", kind.table, part.name);
            assert_eq!(keys.len(), part.keys.len(), "{}.{}: a key is listed twice", kind.table, part.name);
            assert_eq!(kind.check_table(part.name, &own), Some(Ok(())));
        }
    }
    assert!(kinds().iter().all(|kind| kind.check_table("no such part", &Table::new()).is_none()));
}

#[test]
fn every_part_and_every_key_is_described_in_one_line() {
    for kind in kinds() {
        assert!(!kind.parts.is_empty(), "{}", kind.plural);
        for part in &kind.parts {
            let texts = part.keys.iter().flat_map(|key| [key.name, key.meaning, key.allowed]);
            for text in texts.chain([part.name, part.meaning]) {
                let line = text.trim() == text && !text.is_empty() && !text.contains('\n');
                assert!(line, "{}.{}: {text:?}", kind.table, part.name);
            }
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(part.name.chars().all(plain), "{}", part.name);
        }
    }
}

/// Checks every entry of one kind: a resolved table resolves to itself.
fn resolve_again<T: ?Sized + Kind>() {
    let scope = Scope::default();
    for entry in T::entries() {
        assert_eq!(entry.table(), format!("{}.{}", T::TABLE, entry.name));
        assert_eq!(find::<T>(entry.name).map(|found| found.meaning), Ok(entry.meaning));
        let own = entry.resolve(&Table::new(), &scope).unwrap();
        assert_eq!(entry.resolve(&own, &scope), Ok(own), "{}", entry.name);
        let unknown = Table::from_iter([("no_such_key".to_owned(), Value::Integer(1))]);
        let message = entry.resolve(&unknown, &scope).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{}.no_such_key: is not a key; ", entry.table())), "{message}");
        for key in entry.keys {
            // No key takes a table.
            let table = Value::Table(unknown.clone());
            let wrong = Table::from_iter([(key.name.to_owned(), table)]);
            let error = entry.resolve(&wrong, &scope).unwrap_err();
            assert_eq!(error.key, format!("{}.{}", entry.table(), key.name), "{}", error.problem);
        }
    }
}

#[test]
fn a_resolved_table_resolves_to_itself_and_errors_name_wrong_keys_and_types() {
    resolve_again::<dyn crate::data::partition::Partition>();
    resolve_again::<dyn crate::learn::model::Model>();
    resolve_again::<dyn crate::learn::optimizer::Optimizer>();
    resolve_again::<dyn crate::aggregate::Aggregator>();
    resolve_again::<dyn crate::aggregate::optimizer::ServerOptimizer>();
    resolve_again::<dyn crate::radio::fading::Fading>();
    resolve_again::<dyn crate::radio::power::PowerPolicy>();
    resolve_again::<dyn crate::radio::rate::Rate>();
    resolve_again::<dyn crate::radio::access::Access>();
    resolve_again::<dyn crate::radio::cell::layout::Layout>();
    resolve_again::<dyn crate::radio::cell::pathloss::PathLoss>();
    resolve_again::<dyn crate::clock::compute::Compute>();
    resolve_again::<dyn crate::clock::spread::Spread>();
    resolve_again::<dyn crate::clock::jitter::Jitter>();
    resolve_again::<dyn crate::clock::downlink::Downlink>();
    resolve_again::<dyn crate::schedule::Policy>();
    resolve_again::<dyn crate::compress::Compressor>();
    resolve_again::<dyn crate::adversary::Attack>();
}

#[test]
fn a_bad_value_of_any_key_of_any_part_is_one_line_that_names_its_table_and_key() {
    let values = "bad = [-1, -1.5, nan, -inf, 1e300, \"no such thing\", [[]], { x = 1 }, 1979-05-27]";
    let values: Table = toml::from_str(values).unwrap();
    let values = values["bad"].as_array().unwrap();
    let mut keys = 0;
    for kind in kinds() {
        for (part, resolve) in kind.parts.iter().zip(&kind.tables) {
            let table = format!("{}.{}", kind.table, part.name);
            for key in part.keys {
                keys += 1;
                for value in values {
                    let own = Table::from_iter([(key.name.to_owned(), value.clone())]);
                    let checked = kind.check_table(part.name, &own).unwrap();
                    let resolved = checked.and_then(|()| {
                        let resolved = resolve(&own, &Scope::default()).map(|_| ());
                        resolved.map_err(|error| error.within_table(&table))
                    });
                    // A value that is not a number is never allowed; some of the others are (a date is
                    // text, too).
                    let never = value.as_float().is_some_and(f64::is_nan);
                    assert!(resolved.is_err() || !never, "{table}.{} = {value}", key.name);
                    let Err(error) = resolved else { continue };
                    // If two keys do not go together, the message names one and its problem the other.
                    let full = format!("{table}.{}", key.name);
                    let named = error.key == full
                        || error.key.starts_with(&format!("{table}.")) && error.problem.contains(&full);
                    assert!(named, "{full} = {value}: {error}");
                    assert!(!error.problem.is_empty() && !error.to_string().contains('\n'), "{error}");
                }
            }
        }
    }
    assert!(keys > 60, "{keys} keys");
}

#[test]
fn the_page_on_adding_parts_shows_the_files_that_the_contract_tests_check() {
    let page = include_str!("../../../../docs/adding-parts.md");
    for (name, text) in [
        ("pf", include_str!("../../tests/parts/pf.rs")),
        ("uniform", include_str!("../../tests/parts/uniform.rs")),
        ("weibull", include_str!("../../tests/parts/weibull.rs")),
        ("received_mean", include_str!("../../tests/parts/received_mean.rs")),
        ("nesterov", include_str!("../../tests/parts/nesterov.rs")),
        ("own_parts", include_str!("../../../fedlink-cli/examples/own_parts.rs")),
    ] {
        assert!(page.contains(text), "docs/adding-parts.md does not have the text of {name}.rs");
    }
}

#[test]
fn a_derived_key_is_derived_if_it_is_left_out_and_refused_if_it_is_written_as_zero() {
    let policy = |name: &str| format!("[schedule]\nk = 4\npolicy = \"{name}\"\n[schedule.{name}]\n");
    let among = "is 0, but must be in 4..=40 (from schedule.k to data.devices)";
    for (text, [section, part, key], derived, zero, problem) in [
        (policy("bc-bn2"), ["schedule", "bc-bn2", "kc"], "10", "0", among),
        (policy("power-of-choice"), ["schedule", "power-of-choice", "d"], "8", "0", among),
        (policy("poisson"), ["schedule", "poisson", "rate"], "0.05", "0", "is 0, but must be > 0 and ≤ 1"),
        (
            "[radio]\nrate = \"mcs\"\n[radio.mcs]\n".into(),
            ["radio", "mcs", "thresholds_db"],
            "[-6.7, -4.7, ",
            "[]",
            "has 0 numbers, but must have 15",
        ),
    ] {
        let resolve = |text: &str| Config::from_toml(text)?.resolve(&Parts::default());
        let table = resolve(&text).unwrap().resolved().to_table();
        let value = table[section][part][key].to_string();
        assert!(value.starts_with(derived), "{key}: {value}");
        let error = resolve(&format!("{text}{key} = {zero}")).unwrap_err().to_string();
        assert!(error.contains(&format!("{section}.{part}.{key}: {problem}")), "{error}");
    }
}

/// A policy of a program, whose only key is derived.
#[keys]
#[derive(Clone, Debug)]
struct Mine {
    /// devices
    #[key(range = "1 ..= 5", derived = "K")]
    count: u64,
}

impl PartConfig for Mine {
    type Part = dyn Policy;
    const NAME: &'static str = "mine";
    const MEANING: &'static str = "the same as random";

    fn derive(&mut self, scope: &Scope) {
        if self.count == 0 {
            self.count = scope.k;
        }
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(Random {}))
    }
}

#[test]
fn the_configuration_of_a_custom_part_in_rust_is_checked_and_derived_as_that_of_a_file() {
    let count = |count: u64| {
        let spec = Spec::builder().policy(Mine { count }).k(3).build()?;
        Ok::<String, ConfigError>(spec.parts().policy.table()["count"].to_string())
    };
    assert_eq!(count(0).as_deref(), Ok("3"));
    assert_eq!(count(4).as_deref(), Ok("4"));
    assert_eq!(count(6).unwrap_err().to_string(), "schedule.mine.count: is 6, but must be in 1..=5");
}
