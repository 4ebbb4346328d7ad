//! The defenses of a run, built from its configuration.

use super::Cap;
use crate::aggregate::Clip;
use crate::privacy::Mechanism;
use crate::schedule::Sampling;
use crate::spec::Spec;

/// The defenses of a run.
pub(super) struct Defense {
    /// Strikes that exclude a device, if reports are audited.
    pub strikes: Option<u32>,
    /// The norm to which updates are clipped.
    pub clip: Clip,
    /// The limit on the number of transmissions per device.
    pub cap: Option<Cap>,
    /// The noise on the sum of the updates.
    pub privacy: Option<Mechanism>,
}

impl Defense {
    /// The defenses of a run whose policy draws devices by `sampling`.
    pub fn of(spec: &Spec, sampling: Sampling) -> Self {
        let defense = &spec.defense;
        let cap = Cap {
            devices: spec.data.devices,
            k: spec.schedule.k,
            rounds: spec.run.rounds,
            slack: defense.cap_slack,
        };
        Self {
            strikes: defense.audit.then_some(defense.strikes as u32),
            clip: defense.clip,
            cap: defense.participation_cap.then_some(cap),
            privacy: mechanism(spec, sampling),
        }
    }
}

/// The noise of a run; none if there is none.
fn mechanism(spec: &Spec, sampling: Sampling) -> Option<Mechanism> {
    let Clip::Norm(clip) = spec.defense.clip else { return None };
    let weight = match sampling {
        Sampling::Other => 1.0 / spec.schedule.k as f64,
        Sampling::Poisson { rate } => 1.0 / (rate * spec.data.devices as f64),
    };
    let (noise, delta) = (spec.privacy.noise, spec.privacy.delta);
    (noise > 0.0).then_some(Mechanism { noise, clip, weight, delta })
}
