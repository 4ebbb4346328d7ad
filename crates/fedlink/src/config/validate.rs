//! The rules a configuration must meet before anything runs.

use super::{BatchSize, Config, ConfigError, PrivacyConfig};
use crate::adversary::Attack;
use crate::clock::compute::Compute;
use crate::clock::downlink::Downlink;
use crate::clock::jitter::Jitter;
use crate::clock::spread::Spread;
use crate::compress::{Compressor, ErrorFeedback};
use crate::data::partition::Partition;
use crate::learn::correction::Correction;
use crate::learn::model::Model;
use crate::learn::optimizer::Optimizer;
use crate::learn::rate::RateSchedule;
use crate::privacy::NoiseAt;
use crate::radio::access::Access;
use crate::radio::cell::layout::Layout;
use crate::radio::cell::pathloss::PathLoss;
use crate::radio::fading::Fading;
use crate::radio::power::PowerPolicy;
use crate::radio::rate::Rate;
use crate::registry::{Kind, find, number, within};
use crate::schedule::Policy;
use crate::server::Clip;
use crate::server::aggregate::Aggregator;
use crate::server::optimizer::ServerOptimizer;
use std::collections::BTreeMap;
use toml::Table;

/// Whole numbers up to 2⁵³ are exact as floats.
const MAX_EXACT: u64 = 1 << 53;

impl Config {
    /// Checks every rule that can be checked without the data; the error names the key and the allowed range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let Self { data, learn, radio, schedule, adversary, defense, run, .. } = self;
        within("data.devices", data.devices, 1..=u64::from(u32::MAX), "")?;
        within("data.samples_per_device", data.samples_per_device, 1..=u64::from(u32::MAX), "")?;
        within("learn.local_steps", learn.local_steps, 1..=1_000_000, "")?;
        if let BatchSize::Count(batch) = learn.batch {
            within("learn.batch", batch, 1..=u64::from(u32::MAX), " or \"full\"")?;
        }
        let positive = |x: f64| x > 0.0;
        number("learn.server_rate", learn.server_rate, positive, "a finite number above 0")?;
        within("radio.symbols", radio.symbols, 1..=MAX_EXACT, "")?;
        number("radio.power", radio.power, positive, "a finite number above 0")?;
        number("radio.noise", radio.noise, positive, "a finite number above 0")?;
        let devices = format!(" (data.devices is {})", data.devices);
        within("schedule.k", schedule.k, 1..=data.devices, &devices)?;
        number("schedule.decay", schedule.decay, |x| x >= 0.0, "a finite number of at least 0")?;
        within("schedule.k_min", schedule.k_min, 1..=schedule.k, " (from 1 to schedule.k)")?;
        if ![0, 8, 16, 32].contains(&schedule.report_bits) {
            let problem = format!("is {}, but must be 0, 8, 16 or 32", schedule.report_bits);
            return Err(ConfigError::new("schedule.report_bits", problem));
        }
        if defense.audit && [8, 16].contains(&schedule.report_bits) {
            let problem = format!(
                "compares reports with uploads to the last digit, which {} bits have not; write \
                 schedule.report_bits = 32, or set it to false",
                schedule.report_bits
            );
            return Err(ConfigError::new("defense.audit", problem));
        }
        number("adversary.share", adversary.share, |x| (0.0..=1.0).contains(&x), "a number in 0..=1")?;
        within("defense.strikes", defense.strikes, 1..=u64::from(u32::MAX), "")?;
        if let Clip::Norm(norm) = defense.clip {
            number("defense.clip", norm, positive, "a finite number above 0, \"median\" or \"off\"")?;
        }
        within("defense.cap_slack", defense.cap_slack, 1..=u64::from(u32::MAX), "")?;
        within("run.rounds", run.rounds, 1..=u64::from(u32::MAX), "")?;
        within("run.evaluate_every", run.evaluate_every, 1..=u64::from(u32::MAX), "")?;
        within("run.seeds", run.seeds, 1..=1_000_000, "")?;
        within("run.seed", run.seed, 0..=(i64::MAX as u64 - run.seeds), "")?;
        number("run.target", run.target, |x| x > 0.0 && x < 1.0, "a share above 0 and below 1, such as 0.9")?;
        self.validate_privacy()?;
        self.validate_radio()?;
        self.resolve_own()?;
        if !self.custom.contains_key(&learn.optimizer) {
            number("learn.rate", self.rate()?, positive, "a finite number above 0")?;
        }
        self.validate_steps()?;
        self.validate_correction()?;
        self.validate_bytes()
    }

    /// Options of local steps: their ranges, and that there are steps of this library to which they apply.
    fn validate_steps(&self) -> Result<(), ConfigError> {
        let learn = &self.learn;
        if let Some(min) = learn.local_steps_min {
            let note = format!(" (learn.local_steps is {})", learn.local_steps);
            within("learn.local_steps_min", min, 1..=learn.local_steps, &note)?;
        }
        number("learn.weight_decay", learn.weight_decay, |x| x >= 0.0, "a finite number of at least 0")?;
        number("learn.gradient_clip", learn.gradient_clip, |x| x >= 0.0, "a finite number of at least 0")?;
        if !self.custom.contains_key(&learn.optimizer) {
            let rate = self.rate()?;
            let allowed = format!("below 1/η = {} (learn.rate is {rate})", 1.0 / rate);
            return number("learn.weight_decay", learn.weight_decay, |x| x * rate < 1.0, &allowed);
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
                    learn.optimizer
                );
                Err(ConfigError::new(key, problem))
            }
        }
    }

    /// What a correction of local steps needs of the rest.
    fn validate_correction(&self) -> Result<(), ConfigError> {
        let (learn, name) = (&self.learn, &self.learn.correction);
        let rule = self.build::<dyn Correction>(name, &())?;
        let refuse = |needs: &str| {
            Err(ConfigError::new("learn.correction", format!("is \"{name}\", which needs {needs}")))
        };
        if rule.needs_plain_descent() && !self.custom.contains_key(&learn.optimizer) {
            let momentum = self.own_table("learn", "sgd").get("momentum");
            let plain = momentum.is_none_or(|x| x.as_float() == Some(0.0) || x.as_integer() == Some(0));
            if learn.optimizer != "sgd" || !plain {
                return refuse("learn.optimizer = \"sgd\" without momentum, so that Δ/(τη) is a gradient");
            }
        }
        if rule.moves_model()
            && (learn.server_optimizer != "add"
                || learn.server_rate != 1.0
                || learn.server_rate_schedule != RateSchedule::default())
        {
            return refuse(
                "learn.server_optimizer = \"add\" with learn.server_rate = 1 and a constant schedule",
            );
        }
        if !rule.keeps_state() {
            return Ok(());
        }
        if self.compress.feedback != "off" {
            return refuse("compress.feedback = \"off\": what arrives must be the update of the round");
        }
        if self.defense.audit || self.defense.clip != Clip::Off {
            return refuse(
                "defense.audit = false and defense.clip = \"off\": the device must know what the server uses",
            );
        }
        Ok(())
    }

    /// Noise needs a bound on what one device can add to the sum, and nothing else that depends on the
    /// updates.
    fn validate_privacy(&self) -> Result<(), ConfigError> {
        let Self { privacy, learn, defense, .. } = self;
        number("privacy.noise", privacy.noise, |z| z >= 0.0, "a finite number of at least 0")?;
        number("privacy.delta", privacy.delta, |x| x > 0.0 && x < 1.0, "a number above 0 and below 1")?;
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
        if !matches!(defense.clip, Clip::Norm(_)) {
            let problem = format!(
                "is {}, which needs a norm S to which updates are clipped, whatever they are; set \
                 defense.clip to a number",
                privacy.noise
            );
            return Err(ConfigError::new("privacy.noise", problem));
        }
        if self.compress.feedback == "ef21" {
            let problem = format!(
                "is {}, which bounds what one device adds to a round, but with compress.feedback = \"ef21\" \
                 every round has what all devices ever sent; choose another compress.feedback",
                privacy.noise
            );
            return Err(ConfigError::new("privacy.noise", problem));
        }
        if learn.aggregate != "mean" {
            let problem = format!(
                "is {}, which is added to a sum in which devices count the same; set learn.aggregate, which \
                 is \"{}\", to \"mean\"",
                privacy.noise, learn.aggregate
            );
            return Err(ConfigError::new("privacy.noise", problem));
        }
        Ok(())
    }

    /// What acts on bytes needs a run that has them.
    fn validate_bytes(&self) -> Result<(), ConfigError> {
        let kind = &self.adversary.kind;
        if self.adversary.share == 0.0 || self.radio.wire || self.custom.contains_key(kind) {
            return Ok(());
        }
        if !self.build::<dyn Attack>(kind, &())?.acts_on_bytes() {
            return Ok(());
        }
        let problem =
            format!("is \"{kind}\", which acts on bytes, but none are sent; write radio.wire = true");
        Err(ConfigError::new("adversary.kind", problem))
    }

    /// The own tables of all chosen parts with every default written out.
    pub(super) fn resolve_own(&self) -> Result<BTreeMap<String, Table>, ConfigError> {
        let mut own = BTreeMap::new();
        self.resolve_part::<dyn Partition>(&self.data.partition, &mut own)?;
        self.resolve_part::<dyn Model>(&self.learn.model, &mut own)?;
        self.resolve_part::<dyn Optimizer>(&self.learn.optimizer, &mut own)?;
        self.resolve_part::<dyn Correction>(&self.learn.correction, &mut own)?;
        self.resolve_part::<dyn Aggregator>(&self.learn.aggregate, &mut own)?;
        self.resolve_part::<dyn ServerOptimizer>(&self.learn.server_optimizer, &mut own)?;
        self.resolve_part::<dyn Fading>(&self.radio.fading, &mut own)?;
        self.resolve_part::<dyn PowerPolicy>(&self.radio.power_policy, &mut own)?;
        self.resolve_part::<dyn Rate>(&self.radio.rate, &mut own)?;
        self.resolve_part::<dyn Access>(&self.radio.access, &mut own)?;
        self.resolve_part::<dyn Layout>(&self.cell.layout, &mut own)?;
        self.resolve_part::<dyn PathLoss>(&self.cell.pathloss, &mut own)?;
        self.resolve_part::<dyn Compute>(&self.clock.compute, &mut own)?;
        self.resolve_part::<dyn Spread>(&self.clock.spread, &mut own)?;
        self.resolve_part::<dyn Jitter>(&self.clock.jitter, &mut own)?;
        self.resolve_part::<dyn Downlink>(&self.clock.downlink, &mut own)?;
        self.resolve_part::<dyn Policy>(&self.schedule.policy, &mut own)?;
        self.resolve_part::<dyn Compressor>(&self.compress.scheme, &mut own)?;
        self.resolve_part::<dyn ErrorFeedback>(&self.compress.feedback, &mut own)?;
        self.resolve_part::<dyn Attack>(&self.adversary.kind, &mut own)?;
        // Tables of parts that are not chosen have no effect, but a wrong key in one is a
        // mistake all the same.
        for (path, table) in &self.own {
            if !own.contains_key(path) {
                Self::check_unused(path, table)?;
            }
        }
        own.retain(|_, table| !table.is_empty());
        Ok(own)
    }

    fn resolve_part<T: ?Sized + Kind>(
        &self,
        name: &str,
        own: &mut BTreeMap<String, Table>,
    ) -> Result<(), ConfigError> {
        let given = self.own_table(T::TABLE, name);
        let resolved = match find::<T>(name) {
            Ok(entry) => entry.fits(given, &self.scope())?,
            Err(_) if self.custom.contains_key(name) => given.clone(),
            Err(unknown) => return Err(unknown),
        };
        own.insert(format!("{}.{name}", T::TABLE), resolved);
        Ok(())
    }

    /// Checks names and types of a table whose part is not chosen.
    fn check_unused(path: &str, table: &Table) -> Result<(), ConfigError> {
        for kind in super::kinds() {
            let name = path.strip_prefix(kind.table).and_then(|rest| rest.strip_prefix('.'));
            if let Some(result) = name.and_then(|name| kind.check_table(name, table)) {
                return result;
            }
        }
        Ok(())
    }
}
