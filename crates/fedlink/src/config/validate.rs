//! The rules a configuration must meet before anything runs.

use super::{AdversaryConfig, BatchSize, Config, ConfigError, DataConfig, DefenceConfig};
use crate::defence::{Clip, Combine};
use crate::learn::aggregate::Aggregate;
use crate::learn::model::ModelKind;
use serde::Serialize;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Entries of an update are numbered by 32 bits, and one update must fit in memory.
const MAX_DIM: u64 = 1 << 31;

/// Whole numbers up to 2⁵³ are exact as floats.
const MAX_EXACT: u64 = 1 << 53;

impl Config {
    /// Checks every rule that can be checked without the data; the error names the key and the allowed range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (data, learn, radio, schedule, run) =
            (&self.data, &self.learn, &self.radio, &self.schedule, &self.run);
        data.validate()?;
        within("learn.local_steps", learn.local_steps, 1..=1_000_000, "")?;
        if let BatchSize::Count(batch) = learn.batch {
            within("learn.batch", batch, 1..=u64::from(u32::MAX), " or \"full\"")?;
        }
        if learn.model == ModelKind::Mlp {
            self.validate_hidden()?;
        }
        number("learn.rate", self.rate(), |x| x > 0.0, "a finite number above 0")?;
        let fraction = |x: f64| (0.0..1.0).contains(&x);
        number("learn.momentum", learn.momentum, fraction, "in 0..1 (1 excluded)")?;
        number("learn.beta1", learn.beta1, fraction, "in 0..1 (1 excluded)")?;
        number("learn.beta2", learn.beta2, fraction, "in 0..1 (1 excluded)")?;
        number("learn.epsilon", learn.epsilon, |x| x >= 1e-30, "a finite number of at least 1e-30")?;
        let accumulator = learn.initial_accumulator;
        number("learn.initial_accumulator", accumulator, |x| x >= 0.0, "a finite number of at least 0")?;
        within("radio.symbols", radio.symbols, 1..=MAX_EXACT, "")?;
        number("radio.power", radio.power, |x| x > 0.0, "a finite number above 0")?;
        number("radio.noise", radio.noise, |x| x > 0.0, "a finite number above 0")?;
        let devices = format!(" (data.devices is {})", data.devices);
        within("schedule.k", schedule.k, 1..=data.devices, &devices)?;
        let between = " (from schedule.k to data.devices; schedule.policy = \"bc-bn2\" uses it)";
        within("schedule.kc", self.kc(), schedule.k..=data.devices, between)?;
        self.adversary.validate(radio.wire)?;
        self.defence.validate(learn.aggregate)?;
        within("run.rounds", run.rounds, 1..=u64::from(u32::MAX), "")?;
        within("run.evaluate_every", run.evaluate_every, 1..=u64::from(u32::MAX), "")?;
        within("run.seeds", run.seeds, 1..=1_000_000, "")?;
        within("run.seed", run.seed, 0..=(i64::MAX as u64 - run.seeds), "")
    }

    fn validate_hidden(&self) -> Result<(), ConfigError> {
        let hidden = &self.learn.hidden;
        let key = "learn.hidden";
        if hidden.is_empty() {
            let problem =
                "is empty, but an MLP needs a hidden layer; for none write learn.model = \"softmax\"";
            return Err(ConfigError::new(key, problem));
        }
        within("the number of layers in learn.hidden", hidden.len() as u64, 1..=64, "")?;
        hidden.iter().try_for_each(|&width| within(key, width as u64, 1..=1_000_000, " in every place"))
    }
}

impl DataConfig {
    /// The rules of `[data]` that can be checked without the data.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        within("data.devices", self.devices, 1..=u64::from(u32::MAX), "")?;
        within("data.samples_per_device", self.samples_per_device, 1..=u64::from(u32::MAX), "")?;
        within("data.classes_per_device", self.classes_per_device, 1..=256, "")?;
        number("data.alpha", self.alpha, |x| (1e-9..=1e9).contains(&x), "a number in 1e-9..=1e9")?;
        within("data.shards_per_device", self.shards_per_device, 1..=u64::from(u32::MAX), "")?;
        number("data.size_spread", self.size_spread, |x| (0.0..=5.0).contains(&x), "a number in 0..=5")?;
        let allowed = self.partition.sharings();
        if allowed.contains(&self.sharing()) {
            return Ok(());
        }
        let [asked, has, partition] = [name(&self.sharing()), name(&allowed[0]), name(&self.partition)];
        let problem =
            format!("is {asked}, but with data.partition = {partition} must be {has}, or be left out");
        Err(ConfigError::new("data.sharing", problem))
    }
}

impl AdversaryConfig {
    fn validate(&self, wire: bool) -> Result<(), ConfigError> {
        number("adversary.share", self.share, |x| (0.0..=1.0).contains(&x), "a number in 0..=1")?;
        let positive = |x: f64| x > 0.0 && x <= f64::from(f32::MAX);
        number("adversary.amount", self.amount, positive, "a number above 0 and at most 3.4e38")?;
        if self.share > 0.0 && self.kind.acts_on_bytes() && !wire {
            let kind = name(&self.kind);
            let problem =
                format!("is {kind}, which acts on bytes, but none are sent; write radio.wire = true");
            return Err(ConfigError::new("adversary.kind", problem));
        }
        Ok(())
    }
}

impl DefenceConfig {
    fn validate(&self, aggregate: Aggregate) -> Result<(), ConfigError> {
        within("defence.strikes", self.strikes, 1..=u64::from(u32::MAX), "")?;
        if let Clip::Norm(norm) = self.clip {
            number("defence.clip", norm, |x| x > 0.0, "a finite number above 0, \"median\" or \"off\"")?;
        }
        number("defence.trim", self.trim, |x| (0.0..0.5).contains(&x), "in 0..0.5 (0.5 excluded)")?;
        within("defence.cap_slack", self.cap_slack, 1..=u64::from(u32::MAX), "")?;
        if self.aggregate != Combine::Mean && aggregate == Aggregate::BySize {
            let rule = name(&self.aggregate);
            let problem = format!("is {rule}, which knows no sizes; write learn.aggregate = \"mean\"");
            return Err(ConfigError::new("defence.aggregate", problem));
        }
        Ok(())
    }
}

/// How a value is written in a configuration.
fn name(value: &impl Serialize) -> String {
    toml::Value::try_from(value).map_or_else(|error| error.to_string(), |value| value.to_string())
}

/// Checks that an update of `dim` entries can be handled; `key` is what made the model so large.
pub(crate) fn validate_dim(key: &str, dim: usize) -> Result<(), ConfigError> {
    if (dim as u64) < MAX_DIM {
        return Ok(());
    }
    let problem = format!("makes a model of {dim} parameters, but at most {} can be handled", MAX_DIM - 1);
    Err(ConfigError::new(key, problem))
}

fn within(key: &str, value: u64, range: RangeInclusive<u64>, note: &str) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(must_be(key, value, &format!("in {}..={}{note}", range.start(), range.end())))
}

fn number(key: &str, value: f64, ok: impl Fn(f64) -> bool, allowed: &str) -> Result<(), ConfigError> {
    if value.is_finite() && ok(value) {
        return Ok(());
    }
    Err(must_be(key, value, allowed))
}

fn must_be(key: &str, value: impl Display, allowed: &str) -> ConfigError {
    ConfigError::new(key, format!("is {value}, but must be {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::default();
        change(&mut config);
        config.validate().expect_err("the change breaks a rule").to_string()
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Config::default().validate(), Ok(()));
    }

    #[test]
    fn every_broken_rule_names_its_key_and_the_allowed_range() {
        let problems = [
            (problem(|c| c.schedule.k = 41), "schedule.k: is 41, but must be in 1..=40"),
            (problem(|c| c.schedule.k = 0), "schedule.k: is 0"),
            (problem(|c| c.schedule.kc = Some(41)), "schedule.kc: is 41, but must be in 1..=40"),
            (
                problem(|c| (c.schedule.k, c.schedule.kc) = (5, Some(4))),
                "schedule.kc: is 4, but must be in 5..=40",
            ),
            (problem(|c| c.data.samples_per_device = 0), "data.samples_per_device: is 0"),
            (problem(|c| c.data.devices = 0), "data.devices: is 0"),
            (problem(|c| c.radio.noise = -1.0), "radio.noise: is -1, but must be a finite number above 0"),
            (problem(|c| c.radio.noise = f64::NAN), "radio.noise: is NaN"),
            (problem(|c| c.radio.power = f64::INFINITY), "radio.power: is inf"),
            (problem(|c| c.learn.rate = Some(f64::NAN)), "learn.rate: is NaN"),
            (problem(|c| c.learn.beta2 = 1.0), "learn.beta2: is 1, but must be in 0..1"),
            (problem(|c| c.learn.batch = BatchSize::Count(0)), "learn.batch: is 0"),
            (problem(|c| c.learn.hidden = vec![]), "learn.hidden: is empty"),
            (problem(|c| c.learn.hidden = vec![16, 0]), "learn.hidden: is 0"),
            (problem(|c| c.run.rounds = 0), "run.rounds: is 0"),
            (problem(|c| c.run.evaluate_every = 0), "run.evaluate_every: is 0"),
        ];
        for (message, start) in problems {
            assert!(message.starts_with(start), "{message:?} does not start with {start:?}");
        }
    }

    #[test]
    fn every_broken_rule_of_a_split_names_its_key_and_the_allowed_range() {
        let problems = [
            (
                problem(|c| c.data.classes_per_device = 0),
                "data.classes_per_device: is 0, but must be in 1..=256",
            ),
            (problem(|c| c.data.alpha = 0.0), "data.alpha: is 0, but must be a number in 1e-9..=1e9"),
            (problem(|c| c.data.alpha = -1.0), "data.alpha: is -1"),
            (problem(|c| c.data.alpha = f64::NAN), "data.alpha: is NaN"),
            (problem(|c| c.data.alpha = f64::INFINITY), "data.alpha: is inf"),
            (problem(|c| c.data.shards_per_device = 0), "data.shards_per_device: is 0, but must be in 1..="),
            (
                problem(|c| c.data.size_spread = -0.1),
                "data.size_spread: is -0.1, but must be a number in 0..=5",
            ),
            (problem(|c| c.data.size_spread = f64::NAN), "data.size_spread: is NaN"),
        ];
        for (message, start) in problems {
            assert!(message.starts_with(start), "{message:?} does not start with {start:?}");
        }
    }

    #[test]
    fn every_broken_rule_of_attack_and_defence_names_its_key_and_what_to_write() {
        use crate::adversary::AttackKind::{Garbage, NotANumber, Replay, Stolen};
        let problems = [
            (problem(|c| c.adversary.share = 1.1), "adversary.share: is 1.1, but must be a number in 0..=1"),
            (problem(|c| c.adversary.share = f64::NAN), "adversary.share: is NaN"),
            (problem(|c| c.adversary.amount = 0.0), "adversary.amount: is 0, but must be a number above 0"),
            (problem(|c| c.adversary.amount = 1e39), "adversary.amount: is 1"),
            (problem(|c| c.defence.strikes = 0), "defence.strikes: is 0, but must be in 1..="),
            (
                problem(|c| c.defence.clip = Clip::Norm(0.0)),
                "defence.clip: is 0, but must be a finite number",
            ),
            (problem(|c| c.defence.clip = Clip::Norm(f64::NAN)), "defence.clip: is NaN"),
            (problem(|c| c.defence.trim = 0.5), "defence.trim: is 0.5, but must be in 0..0.5"),
            (problem(|c| c.defence.cap_slack = 0), "defence.cap_slack: is 0, but must be in 1..="),
            (
                problem(|c| {
                    (c.learn.aggregate, c.defence.aggregate) = (Aggregate::BySize, Combine::Median);
                }),
                "defence.aggregate: is \"median\", which knows no sizes; write learn.aggregate = \"mean\"",
            ),
        ];
        for (message, start) in problems {
            assert!(message.starts_with(start), "{message:?} does not start with {start:?}");
        }
        for kind in [Garbage, Stolen, Replay] {
            let message = problem(|c| (c.adversary.share, c.adversary.kind) = (0.1, kind));
            assert!(message.ends_with("but none are sent; write radio.wire = true"), "{message}");
        }
        let mut config = Config::default();
        (config.adversary.share, config.adversary.kind) = (0.1, NotANumber);
        assert_eq!(config.validate(), Ok(()));
    }

    #[test]
    fn sharing_is_the_partition_s_unless_there_is_a_choice() {
        use crate::data::partition::PartitionKind::{Classes, Dirichlet, Iid, Quantity, Shards};
        use crate::data::partition::Sharing::{Disjoint, Overlapping};
        for (partition, usual, other_allowed) in [
            (Iid, Disjoint, true),
            (Quantity, Disjoint, true),
            (Shards, Disjoint, false),
            (Classes, Overlapping, false),
            (Dirichlet, Overlapping, false),
        ] {
            let mut config = Config::default();
            config.data.partition = partition;
            assert_eq!((config.data.sharing(), config.validate()), (usual, Ok(())));
            config.data.sharing = Some(usual);
            assert_eq!(config.validate(), Ok(()));
            config.data.sharing = Some(if usual == Disjoint { Overlapping } else { Disjoint });
            assert_eq!(config.validate().is_ok(), other_allowed);
        }
        let message = problem(|c| (c.data.partition, c.data.sharing) = (Classes, Some(Disjoint)));
        let expected = "data.sharing: is \"disjoint\", but with data.partition = \"classes\" must be \
                        \"overlapping\", or be left out";
        assert_eq!(message, expected);
    }

    #[test]
    fn hidden_layers_matter_to_the_mlp_only() {
        for model in [ModelKind::Softmax, ModelKind::Cnn] {
            let mut config = Config::default();
            (config.learn.model, config.learn.hidden) = (model, vec![]);
            assert_eq!(config.validate(), Ok(()));
        }
    }

    #[test]
    fn a_model_too_large_names_the_key_that_made_it_so() {
        assert_eq!(validate_dim("learn.model", MAX_DIM as usize - 1), Ok(()));
        let message = validate_dim("learn.model", MAX_DIM as usize).unwrap_err().to_string();
        assert!(message.starts_with("learn.model: makes a model of 2147483648 parameters"), "{message}");
    }

    #[test]
    fn the_usual_kc_is_the_paper_s_and_always_allowed() {
        for (devices, k, kc) in [(40, 1, 10), (40, 10, 20), (40, 20, 40), (40, 40, 40), (5, 1, 5)] {
            let mut config = Config::default();
            config.data.devices = devices;
            config.schedule.k = k;
            assert_eq!(config.kc(), kc);
            assert_eq!(config.validate(), Ok(()));
        }
    }
}
