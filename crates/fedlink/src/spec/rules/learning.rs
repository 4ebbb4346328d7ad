//! Rules of learning: local steps, corrections, privacy, attacks on bytes, reports of few bits.

use super::Draft;
use crate::aggregate::optimizer::ServerOptimizer;
use crate::aggregate::{Aggregator, Clip};
use crate::compress::ErrorFeedback;
use crate::learn::optimizer::Optimizer;
use crate::learn::rate::RateSchedule;
use crate::parts::{ConfigError, number, parts_with};
use crate::privacy::NoiseAt;
use crate::spec::choices::Choices;
use crate::spec::sections::PrivacyConfig;
use crate::spec::{Config, kinds};
use toml::Table;

impl Draft<'_> {
    /// Options of local steps need local steps of this library.
    pub(super) fn check_steps(&self) -> Result<(), ConfigError> {
        let (learn, optimizer) = (&self.config.learn, &self.parts.optimizer);
        if !optimizer.is_custom() {
            number("learn.rate", self.rate, |rate| rate > 0.0, "a finite number above 0")?;
            let allowed = format!("below 1/η = {} (learn.rate is {})", 1.0 / self.rate, self.rate);
            return number("learn.weight_decay", learn.weight_decay, |x| x * self.rate < 1.0, &allowed);
        }
        let set = [
            ("learn.local_steps_min", learn.local_steps_min.is_some()),
            ("learn.rate_schedule", learn.rate_schedule != RateSchedule::default()),
            ("learn.weight_decay", learn.weight_decay > 0.0),
            ("learn.gradient_clip", learn.gradient_clip > 0.0),
        ];
        match set.into_iter().find(|(_, is_set)| *is_set) {
            None => Ok(()),
            Some((key, _)) => {
                let problem = format!(
                    "has no effect here: \"{}\" trains by its own steps; leave it out",
                    optimizer.name()
                );
                Err(ConfigError::new(key, problem))
            }
        }
    }

    /// The needs of a correction of local steps.
    pub(super) fn check_correction(&self) -> Result<(), ConfigError> {
        let (learn, facts, rule) = (&self.config.learn, self.facts, &self.facts.correction);
        let refuse = |needs: String| {
            let name = self.parts.correction.name();
            Err(ConfigError::new("learn.correction", format!("is \"{name}\", which needs {needs}")))
        };
        let is_custom = self.parts.optimizer.is_custom();
        if rule.needs_plain_descent && !is_custom && !facts.optimizer.is_plain_descent {
            let plain = parts_with::<dyn Optimizer>(|facts| facts.is_plain_descent);
            return refuse(format!("{plain} without momentum, so that Δ/(τη) is a gradient"));
        }
        if rule.moves_model
            && (!facts.server_optimizer.is_plain
                || learn.server_rate != 1.0
                || learn.server_rate_schedule != RateSchedule::default())
        {
            let plain = parts_with::<dyn ServerOptimizer>(|facts| facts.is_plain);
            return refuse(format!("{plain} with learn.server_rate = 1 and a constant schedule"));
        }
        if !rule.keeps_state {
            return Ok(());
        }
        if facts.feedback.vectors > 0 {
            let off = parts_with::<dyn ErrorFeedback>(|facts| facts.vectors == 0);
            return refuse(format!("{off}: the update that arrives must be that of the round"));
        }
        if self.config.defense.audit || self.config.defense.clip != Clip::Off {
            let needs = "defense.audit = false and defense.clip = \"off\": the device must know the update \
                         that the server uses";
            return refuse(needs.into());
        }
        Ok(())
    }

    /// Noise needs a bound on the part of the sum that one device can add, and nothing else that depends on
    /// the updates.
    pub(super) fn check_privacy(&self) -> Result<(), ConfigError> {
        let Config { privacy, learn, defense, schedule, .. } = self.config;
        if defense.audit && [8, 16].contains(&schedule.report_bits) {
            let problem = format!(
                "compares reports with uploads to the last digit, and reports of {} bits are rounded; write \
                 schedule.report_bits = 32, or set it to false",
                schedule.report_bits
            );
            return Err(ConfigError::new("defense.audit", problem));
        }
        if privacy.at == NoiseAt::Device {
            let problem = "is \"device\": a device that sends a part of the entries would add noise to that \
                           part only, and which part it is reveals its data; write \"server\"";
            return Err(ConfigError::new("privacy.at", problem));
        }
        if privacy.noise == 0.0 {
            if privacy.delta != PrivacyConfig::default().delta {
                let problem = "has no effect here: it is for noise; set privacy.noise, or leave it out";
                return Err(ConfigError::new("privacy.delta", problem));
            }
            return Ok(());
        }
        let refuse = |problem: String| {
            Err(ConfigError::new("privacy.noise", format!("is {}, which {problem}", privacy.noise)))
        };
        if !matches!(defense.clip, Clip::Norm(_)) {
            let needs = "needs a norm S to which all updates are clipped; set defense.clip to a number";
            return refuse(needs.into());
        }
        if self.facts.feedback.state_decay.is_some() {
            return refuse(format!(
                "bounds what one device adds to a round, but with compress.feedback = \"{}\" every round \
                 contains the earlier uploads of all devices; choose another compress.feedback",
                self.parts.feedback.name()
            ));
        }
        if !self.facts.aggregate.is_equal_mean {
            return refuse(format!(
                "is added to a sum in which all devices have the same weight, and learn.aggregate is \"{}\"; \
                 write {}",
                learn.aggregate,
                parts_with::<dyn Aggregator>(|facts| facts.is_equal_mean)
            ));
        }
        Ok(())
    }

    /// An attack on bytes needs a run that has them.
    pub(super) fn check_bytes(&self) -> Result<(), ConfigError> {
        let Config { adversary, radio, .. } = self.config;
        if adversary.share == 0.0 || radio.wire || !self.facts.attack.acts_on_bytes {
            return Ok(());
        }
        let problem = format!(
            "is \"{}\", which acts on bytes, but none are sent; write radio.wire = true",
            adversary.kind
        );
        Err(ConfigError::new("adversary.kind", problem))
    }
}

impl Config {
    /// Checks names and types in the tables of parts that are not chosen: such a table has no effect, but a
    /// wrong key in it is still an error.
    pub(super) fn check_unused_tables(&self, parts: &Choices) -> Result<(), ConfigError> {
        let chosen = parts.tables();
        let mut unused = self.own.iter().filter(|(path, _)| !chosen.contains_key(*path));
        unused.try_for_each(|(path, table)| check_unused(path, table))
    }
}

fn check_unused(path: &str, table: &Table) -> Result<(), ConfigError> {
    for kind in kinds() {
        let name = path.strip_prefix(kind.table).and_then(|rest| rest.strip_prefix('.'));
        if let Some(result) = name.and_then(|name| kind.check_table(name, table)) {
            return result;
        }
    }
    Ok(())
}
