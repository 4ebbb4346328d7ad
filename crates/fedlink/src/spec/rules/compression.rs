//! Rules of compressors: bytes, levels, audits; and rules of policies that limit how devices send.

use super::Draft;
use crate::compress::{BudgetRule, Compressor, LevelRule};
use crate::parts::{ConfigError, parts_with};
use crate::radio::PayloadMode;
use crate::radio::access::Access;
use crate::schedule::Sampling;
use crate::spec::Config;
use crate::spec::sections::CompressConfig;

impl Draft<'_> {
    /// The compressor must have the abilities that the other sections need.
    pub(super) fn check_scheme(&self) -> Result<(), ConfigError> {
        let Config { compress, radio, defense, .. } = self.config;
        let (scheme, facts) = (self.parts.scheme.name(), self.facts.scheme);
        if !self.facts.policy.is_a_link && compress.scheme != CompressConfig::default().scheme {
            let problem = format!(
                "is \"{}\", which has no effect: schedule.policy = \"{}\" sends updates as they are; leave \
                 it out",
                compress.scheme,
                self.parts.policy.name()
            );
            return Err(ConfigError::new("compress.scheme", problem));
        }
        if defense.audit && !facts.has_audit {
            let problem = format!(
                "needs to know which reports an honest device can make, and \"{scheme}\" does not state \
                 them; set it to false"
            );
            return Err(ConfigError::new("defense.audit", problem));
        }
        if self.facts.feedback.state_decay.is_some() && facts.may_expand {
            let problem = format!(
                "is \"{}\", whose states converge only if each upload shortens the rest, ‖v − v̂‖ < ‖v‖, and \
                 compress.scheme = \"{scheme}\" may lengthen it, so that training diverges; choose its \
                 projection, where [compress.{scheme}] has a key for it, or another scheme",
                compress.feedback
            );
            return Err(ConfigError::new("compress.feedback", problem));
        }
        let needs_bytes = [
            (radio.wire, "radio.wire", "false"),
            (compress.budget == BudgetRule::Wire, "compress.budget", "\"formula\""),
        ];
        if let Some((_, key, instead)) = needs_bytes.iter().find(|(set, ..)| *set && !facts.has_codec) {
            let problem =
                format!("needs a scheme with bytes, and \"{scheme}\" has none; set it to {instead}");
            return Err(ConfigError::new(*key, problem));
        }
        if compress.level == LevelRule::Best && !facts.has_best_level {
            let problem = format!(
                "is \"best\", which has no effect with \"{scheme}\": more bits never have less energy there; \
                 set it to \"largest\", or set {}",
                parts_with::<dyn Compressor>(|facts| facts.has_best_level)
            );
            return Err(ConfigError::new("compress.level", problem));
        }
        Ok(())
    }

    /// Devices that are sampled independently must send independently, and devices that send before all have
    /// trained cannot be chosen by reports.
    pub(super) fn check_policy(&self) -> Result<(), ConfigError> {
        let (Config { radio, clock, .. }, facts) = (self.config, self.facts);
        let name = self.parts.policy.name();
        let independent = facts.access.one_by_one && radio.mode == PayloadMode::Airtime && !clock.pipeline;
        if facts.policy.sampling != Sampling::Other && !independent {
            let problem = format!(
                "is \"{name}\", which gives every device n/K symbols; it needs {}, radio.mode = \"airtime\" \
                 and clock.pipeline = false",
                parts_with::<dyn Access>(|facts| facts.one_by_one)
            );
            return Err(ConfigError::new("schedule.policy", problem));
        }
        if clock.pipeline && !facts.policy.asks.is_empty() {
            let problem = format!(
                "sends before all have trained, but schedule.policy = \"{name}\" selects by the reports of \
                 all; set it to false"
            );
            return Err(ConfigError::new("clock.pipeline", problem));
        }
        Ok(())
    }
}
