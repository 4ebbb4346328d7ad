//! Hostile devices: who they are, what they report and what they send.
//!
//! `adversary.share` of the devices are hostile, the same ones in every round, drawn from the seed alone. They train
//! as all others do; what they do with the result is their [`Attack`].

mod garbage;
mod huge;
mod inflated_norm;
mod not_a_number;
mod replay;
mod sign_flip;
mod stolen;

pub use garbage::Garbage;
pub use huge::Huge;
pub use inflated_norm::{HostileReport, HostileUpload, InflatedNorm};
pub use not_a_number::NotANumber;
pub use replay::Replay;
pub use sign_flip::SignFlip;
pub use stolen::Stolen;

use crate::compress::{SparseUpdate, Values};
use crate::config::Config;
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The name of an attack in a configuration (`adversary.kind`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackKind {
    /// Reports a norm that is too large, to be scheduled.
    #[default]
    InflatedNorm,
    /// Sends random bytes.
    Garbage,
    /// Sends another device's payload.
    Stolen,
    /// Sends the payload of an earlier round again.
    Replay,
    /// Sends values that are no numbers.
    NotANumber,
    /// Sends values that are far too large.
    Huge,
    /// Sends its update with the sign turned.
    SignFlip,
}

impl AttackKind {
    /// Whether it acts on bytes, and so needs a run that has them (`radio.wire`).
    pub fn acts_on_bytes(self) -> bool {
        matches!(self, Self::Garbage | Self::Stolen | Self::Replay)
    }
}

/// What a hostile device does. Every method that is left out is what an honest device does.
///
/// An attack acts in up to three places: on the number it reports, on Δ̂ before it is encoded, and on the bytes.
pub trait Attack: Send + Sync {
    /// What it reports where the truth is `honest`. Only finite numbers ≥ 0 make sense to a policy.
    fn report(&self, honest: f32) -> f32 {
        honest
    }

    /// Changes what it will encode and send.
    fn tamper(&self, _update: &mut SparseUpdate) {}

    /// The bytes that the device at `place` of the schedule sends instead of its own; none: its own.
    fn payload(&self, _air: &Air, _place: usize) -> Option<Vec<u8>> {
        None
    }

    /// Is told what all scheduled devices sent, after they have.
    fn listen(&self, _air: &Air) {}

    /// What it remembers from round to round, for a checkpoint.
    fn state(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes up what [`Attack::state`] gave; an error says why it cannot.
    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        if state.is_empty() { Ok(()) } else { Err("this attack remembers nothing".into()) }
    }
}

/// What is on the air in one round.
pub struct Air<'a> {
    /// The seed of the run.
    pub seed: u64,
    /// The round, from 0.
    pub round: u64,
    /// The scheduled devices.
    pub devices: &'a [DeviceId],
    /// What each of them sends; empty if it is silent.
    pub payloads: &'a [Vec<u8>],
    /// Bits that each can send: more the server would not read.
    pub room: &'a [u64],
}

/// The hostile devices of a run.
pub(crate) struct Adversary {
    hostile: Vec<bool>,
    attack: Box<dyn Attack>,
    seed: u64,
}

impl Adversary {
    /// The hostile devices that `config` describes; none if there are none.
    pub(crate) fn new(config: &Config) -> Option<Self> {
        let devices = config.data.devices as usize;
        let count = (config.adversary.share * devices as f64).round() as usize;
        if count == 0 {
            return None;
        }
        let seed = config.run.seed;
        let mut order: Vec<usize> = (0..devices).collect();
        stream(seed, Purpose::Adversary, 0, u64::MAX).shuffle_prefix(&mut order, count);
        let mut hostile = vec![false; devices];
        order.iter().take(count).for_each(|&m| hostile[m] = true);
        Some(Self { hostile, attack: attack(config), seed })
    }

    fn has(&self, device: DeviceId) -> bool {
        self.hostile[device.index()]
    }

    /// What `device` reports where the truth is `honest`.
    pub(crate) fn report(&self, device: DeviceId, honest: f32) -> f32 {
        if self.has(device) { self.attack.report(honest) } else { honest }
    }

    /// What `device` encodes and sends instead of `honest`; none if it is honest.
    pub(crate) fn tampered(&self, device: DeviceId, honest: &SparseUpdate) -> Option<SparseUpdate> {
        self.has(device).then(|| {
            let mut update = honest.clone();
            self.attack.tamper(&mut update);
            update
        })
    }

    /// Replaces the payloads of hostile devices by what they send instead. A silent device stays silent: it has no
    /// bits to be hostile with.
    pub(crate) fn transmit(&self, round: u64, devices: &[DeviceId], room: &[u64], payloads: &mut [Vec<u8>]) {
        let seed = self.seed;
        let air = Air { seed, round, devices, payloads, room };
        let places = (0..devices.len()).filter(|&i| self.has(devices[i]) && !air.payloads[i].is_empty());
        let instead: Vec<(usize, Vec<u8>)> =
            places.filter_map(|i| Some((i, self.attack.payload(&air, i)?))).collect();
        instead.into_iter().for_each(|(i, payload)| payloads[i] = payload);
        self.attack.listen(&Air { seed, round, devices, payloads, room });
    }

    /// What the attack remembers.
    pub(crate) fn state(&self) -> Vec<u8> {
        self.attack.state()
    }

    /// Takes up what [`Adversary::state`] gave.
    pub(crate) fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.attack.restore(state)
    }
}

/// The attack that `config` describes.
pub fn attack(config: &Config) -> Box<dyn Attack> {
    let adversary = &config.adversary;
    let amount = adversary.amount as f32;
    match adversary.kind {
        AttackKind::InflatedNorm => {
            Box::new(InflatedNorm { report: adversary.report, amount, upload: adversary.upload })
        }
        AttackKind::Garbage => Box::new(Garbage),
        AttackKind::Stolen => Box::new(Stolen::default()),
        AttackKind::Replay => Box::new(Replay::default()),
        AttackKind::NotANumber => Box::new(NotANumber),
        AttackKind::Huge => Box::new(Huge { amount }),
        AttackKind::SignFlip => Box::new(SignFlip),
    }
}

/// Every value of `update` becomes `change` of it.
fn change_values(update: &mut SparseUpdate, change: impl Fn(f32) -> f32) {
    match &mut update.values {
        Values::Shared(value) => *value = change(*value),
        Values::Each(values) => values.iter_mut().for_each(|value| *value = change(*value)),
    }
}

/// `value` times `amount`, kept finite.
fn times(value: f32, amount: f32) -> f32 {
    (value * amount).clamp(f32::MIN, f32::MAX)
}

#[cfg(test)]
mod tests;
