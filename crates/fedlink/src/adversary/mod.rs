//! Adversarial devices: their choice, their reports and their uploads.
//!
//! `adversary.share` of the devices are adversarial: the same ones in every round, drawn from the seed
//! alone. They train as all others do; their [`Attack`] changes the result.

crate::register! {
    /// All attacks.
    ATTACKS: dyn Attack;
    inflated_norm,
    garbage,
    stolen,
    replay,
    not_a_number,
    huge,
    sign_flip,
}

pub use garbage::Garbage;
pub use huge::Huge;
pub use inflated_norm::{FalseReport, FalseUpload, InflatedNorm};
pub use not_a_number::NotANumber;
pub use replay::Replay;
pub use sign_flip::SignFlip;
pub use stolen::Stolen;

use crate::base::rng::{Purpose, stream};
use crate::base::state::{Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::compress::Encoded;
use crate::parts::{Entry, Kind};

/// The behavior of an adversarial device. By default, every method behaves as an honest device.
///
/// An attack acts in up to three steps: on the numbers that the device reports, on Δ̂ before it is
/// encoded, and on the bytes.
pub trait Attack: Persist + Send + Sync {
    /// The device's report if the true number is `honest`. Policies expect finite numbers ≥ 0.
    fn report(&self, honest: f32) -> f32 {
        honest
    }

    /// Changes the update that the device will encode and send.
    fn tamper(&self, _update: &mut Encoded) {}

    /// The bytes that the device at `index` of the schedule sends instead of its own; none: its own.
    fn payload(&mut self, _traffic: &Traffic, _index: usize) -> Option<Vec<u8>> {
        None
    }

    /// Called with the uploads of all scheduled devices, after they are sent.
    fn listen(&mut self, _traffic: &Traffic) {}

    /// Whether the attack acts on bytes, and so needs a run with bytes (`radio.wire`).
    fn acts_on_bytes(&self) -> bool {
        false
    }
}

/// Facts of an attack.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AttackFacts {
    /// Whether the attack acts on bytes.
    pub acts_on_bytes: bool,
}

impl Kind for dyn Attack {
    type Material = ();
    type Facts = AttackFacts;
    const PROBE: Option<&'static ()> = Some(&());
    const PLURAL: &'static str = "attacks";
    const KEY: &'static str = "adversary.kind";
    const TABLE: &'static str = "adversary";

    fn entries() -> &'static [Entry<Self>] {
        ATTACKS
    }

    fn facts_of(part: &Self) -> AttackFacts {
        AttackFacts { acts_on_bytes: part.acts_on_bytes() }
    }
}

/// The transmissions of one round.
#[non_exhaustive]
pub struct Traffic<'a> {
    /// The seed of the run.
    pub seed: u64,
    /// The round, from 0.
    pub t: u64,
    /// The scheduled devices.
    pub devices: &'a [DeviceId],
    /// The payload of each; empty if it is silent.
    pub payloads: &'a [Vec<u8>],
    /// The bits that each can send; the server does not read more.
    pub room: &'a [u64],
}

/// The adversarial devices of a run.
pub struct Adversary {
    members: Vec<bool>,
    attack: Box<dyn Attack>,
    seed: u64,
}

impl Adversary {
    /// The `share` of `devices` devices (rounded to whole devices) that is adversarial under `seed`; none
    /// if the rounded number is 0.
    pub fn new(devices: usize, share: f64, seed: u64, attack: Box<dyn Attack>) -> Option<Self> {
        let count = (share * devices as f64).round() as usize;
        if count == 0 {
            return None;
        }
        let mut order: Vec<usize> = (0..devices).collect();
        stream(seed, Purpose::Adversary, 0, u64::MAX).shuffle_prefix(&mut order, count);
        let mut members = vec![false; devices];
        order.iter().take(count).for_each(|&m| members[m] = true);
        Some(Self { members, attack, seed })
    }

    /// Whether a device is adversarial.
    pub fn has(&self, device: DeviceId) -> bool {
        self.members[device.index()]
    }

    /// The report of `device` if the true number is `honest`.
    pub fn report(&self, device: DeviceId, honest: f32) -> f32 {
        if self.has(device) { self.attack.report(honest) } else { honest }
    }

    /// The update that `device` encodes and sends instead of `honest`; none if it is honest.
    pub fn tampered(&self, device: DeviceId, honest: &Encoded) -> Option<Encoded> {
        self.has(device).then(|| {
            let mut update = honest.clone();
            self.attack.tamper(&mut update);
            update
        })
    }

    /// Replaces the payloads of adversarial devices. A silent device stays silent, because it has no
    /// bits.
    pub fn transmit(&mut self, t: u64, devices: &[DeviceId], room: &[u64], payloads: &mut [Vec<u8>]) {
        let Self { members, attack, seed } = self;
        let traffic = Traffic { seed: *seed, t, devices, payloads, room };
        let senders =
            (0..devices.len()).filter(|&i| members[devices[i].index()] && !traffic.payloads[i].is_empty());
        let instead: Vec<(usize, Vec<u8>)> =
            senders.filter_map(|i| Some((i, attack.payload(&traffic, i)?))).collect();
        instead.into_iter().for_each(|(i, payload)| payloads[i] = payload);
        attack.listen(&Traffic { seed: *seed, t, devices, payloads, room });
    }
}

impl Persist for Adversary {
    fn save(&self) -> State {
        self.attack.save()
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        self.attack.load(state)
    }
}

/// `value` times `amount`, kept finite.
fn times(value: f32, amount: f32) -> f32 {
    (value * amount).clamp(f32::MIN, f32::MAX)
}

#[cfg(test)]
mod tests;
