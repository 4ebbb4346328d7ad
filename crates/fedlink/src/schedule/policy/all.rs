//! All devices send.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::{Bias, Policy, Selection, Trains, View, all_devices_fit};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<All>();

/// All M devices in every round, with equal bits: the reference for selection.
///
/// `schedule.k` must be M: the power M·P̄/K and every comparison depend on K, so it always has the value of
/// the configuration. No device reports. Unbiased: every device has its weight.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct All {}

impl PartConfig for All {
    type Part = dyn Policy;
    const NAME: &'static str = "all";
    const MEANING: &'static str = "all devices in every round, equal bits; schedule.k must be data.devices";
    const FAMILY: &'static str = "reference";

    fn fits(&self, scope: &Scope) -> Result<(), ConfigError> {
        all_devices_fit(Self::NAME, scope)
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for All {}

impl Policy for All {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let mut devices = view.eligible();
        devices.truncate(view.k);
        devices
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Unbiased, Trains::Everyone)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, devices};
    use super::*;
    use crate::spec::Config;

    #[test]
    fn all_devices_are_scheduled_with_equal_weights() {
        let schedule = Bench::new(7, 7).schedule(&mut All {}, &[1.0; 7]);
        assert_eq!(devices(&schedule), [0, 1, 2, 3, 4, 5, 6]);
        assert!(schedule.picks.iter().all(|pick| pick.bit_weight == 1.0));
    }

    #[test]
    fn a_k_that_is_not_m_is_refused_with_the_remedy() {
        let mut config = Config::default();
        config.schedule.policy = "all".into();
        assert_eq!(
            config.validate().unwrap_err().to_string(),
            "schedule.k: is 1, but schedule.policy = \"all\" schedules all devices; write schedule.k = 40"
        );
        config.schedule.k = 40;
        assert_eq!(config.validate(), Ok(()));
    }
}
