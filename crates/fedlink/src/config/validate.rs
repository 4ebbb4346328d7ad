//! The rules a configuration must meet before anything runs.

use super::{BatchSize, Config, ConfigError};
use crate::adversary::Attack;
use crate::clock::compute::Compute;
use crate::clock::downlink::Downlink;
use crate::clock::jitter::Jitter;
use crate::clock::spread::Spread;
use crate::compress::Compressor;
use crate::data::partition::Partition;
use crate::learn::model::Model;
use crate::learn::optimizer::Optimizer;
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
        if ![0, 8, 16, 32].contains(&schedule.report_bits) {
            let problem = format!("is {}, but must be 0, 8, 16 or 32", schedule.report_bits);
            return Err(ConfigError::new("schedule.report_bits", problem));
        }
        if defense.audit && [8, 16].contains(&schedule.report_bits) {
            let problem = format!(
                "compares reports with uploads to the last digit, which {} bits have not; write schedule.report_bits = 32, \
                 or set it to false",
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
        self.validate_radio()?;
        self.resolve_own()?;
        if !self.custom.contains_key(&learn.optimizer) {
            number("learn.rate", self.rate()?, positive, "a finite number above 0")?;
        }
        self.validate_bytes()
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
            Ok(entry) => {
                let resolved = entry.resolve(given, &self.scope())?;
                entry.fits(given, &self.scope())?;
                resolved
            }
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
