//! All devices send everything: an upper bound, not a link.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::sampling::Target;
use crate::schedule::{
    Bias, Pick, Policy, Reports, Schedule, Selection, Trains, View, Weight, all_devices_fit,
};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Ideal>();

/// Federated averaging without a link: all M devices send all d entries with 32 bits each, and each counts
/// π_m.
///
/// No uplink carries this; it shows the joint cost of link, compression and selection. It brings its own
/// "compression", which ignores the budget, so `compress.scheme` has no effect and must be left out.
/// `schedule.k` must be M. For simulations only. Source: McMahan et al., *Communication-Efficient Learning of
/// Deep Networks from Decentralized Data* (2017), at C = 1.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Ideal {
    /// π, weight of each device
    #[key(allowed = "\"equal\" | \"by-size\"")]
    pub target: Target,
}

impl PartConfig for Ideal {
    type Part = dyn Policy;
    const NAME: &'static str = "ideal";
    const MEANING: &'static str = "not a link: all devices send all entries, whatever the link carries; \
        schedule.k must be data.devices";
    const FAMILY: &'static str = "reference";

    fn fits(&self, scope: &Scope) -> Result<(), ConfigError> {
        all_devices_fit(Self::NAME, scope)
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for Ideal {}

impl Policy for Ideal {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let mut devices = view.eligible();
        devices.truncate(view.k);
        devices
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Unbiased, Trains::Everyone).with_weights()
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        let devices = &reports.devices;
        let targets = self.target.weights(devices, view.links.devices(), |device| view.samples(device));
        let pick = |(&device, weight): (&DeviceId, f64)| Pick {
            device,
            bit_weight: 1.0,
            weight: Weight::Own(weight),
        };
        Schedule { picks: devices.iter().zip(targets).map(pick).collect() }
    }

    fn is_a_link(&self) -> bool {
        false
    }
}
