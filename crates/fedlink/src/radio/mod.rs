//! The uplink: fading, what the server knows of it, what each scheduled device is granted, and what arrives.

pub mod access;
pub mod budget;
pub mod cell;
pub mod fading;
pub mod link;
pub mod math;
pub mod mean_gains;
pub mod power;
pub mod rate;
pub mod trace;

use crate::rng::{Purpose, stream};
use crate::state::{Persist, State, StateError};
use crate::units::{Airtime, Bits, DeviceId, Power, Symbols, from_db};
use access::{Access, Band, Grant, Uplink};
use budget::LinkBudget;
use cell::Cell;
use fading::{Fading, GainMeaning};
use power::{LinkGain, PowerPolicy};
use rate::{PerSymbol, Rate};
use serde::{Deserialize, Serialize};

/// What of an upload is fixed (`radio.mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PayloadMode {
    /// The symbols of a round; bits vary with the channel.
    #[default]
    Airtime,
    /// The bits of an upload; time varies with the channel.
    Payload,
}

/// Mean SNRs in decibels (`radio.snr_db`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a number of decibels, or a list of such: [20, 0]")]
#[non_exhaustive]
pub enum Snrs {
    /// The same for all devices.
    All(f64),
    /// One for each group of devices.
    Groups(Vec<f64>),
}

impl Snrs {
    /// One level for each group.
    pub fn levels(&self) -> &[f64] {
        match self {
            Self::All(level) => std::slice::from_ref(level),
            Self::Groups(levels) => levels,
        }
    }
}

/// The mean power gains of the devices.
#[non_exhaustive]
pub enum MeanGains {
    /// 1 for all.
    One,
    /// Given for each device.
    Each(Vec<f64>),
    /// By where the devices are.
    Cell(Box<Cell>),
}

/// What the server knows of a channel, and how careful it is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Csi {
    /// ε of the MMSE estimates.
    pub error: f64,
    /// Their age, seconds.
    pub delay_s: f64,
    /// b ≤ 1: rates are chosen for b times the estimated SNR.
    pub backoff: f64,
}

impl Default for Csi {
    fn default() -> Self {
        Self { error: 0.0, delay_s: 0.0, backoff: 1.0 }
    }
}

impl Csi {
    /// Whether estimates are the truth.
    pub fn is_perfect(&self) -> bool {
        self.error == 0.0 && self.delay_s == 0.0
    }
}

/// How uploads get lost, and how often they are repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Loss {
    /// m, the threshold of a loss with probability 1 − exp(−m·σ²/(P·β)); none: no such loss.
    pub threshold: Option<f64>,
    /// A, how often an upload is sent at most.
    pub attempts: u64,
    /// What becomes of transmissions that were not decoded.
    pub combining: Combining,
}

/// What becomes of transmissions of an upload that were not decoded (`radio.combining`).
///
/// With R the bits a symbol that were granted, transmission j is decoded iff log2(1+γ) ≥ R, log2(1+j·γ) ≥ R,
/// or j·log2(1+γ) ≥ R; with short packets at the SNR j·γ, or in j times the symbols. Source: Caire and
/// Tuninetti (2001), as we read it. Losses that do not know the channel (`radio.mcs.loss`,
/// `radio.loss_threshold_db`) are drawn for each transmission anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Combining {
    /// They are dropped (type I).
    #[default]
    None,
    /// The same symbols again: their SNRs add up.
    Chase,
    /// Further symbols of one long code: their bits add up.
    IncrementalRedundancy,
}

impl Combining {
    /// How much stronger and longer a code is after `sent` transmissions than after one.
    fn of(self, sent: u64) -> (f64, f64) {
        match self {
            Self::None => (1.0, 1.0),
            Self::Chase => (sent as f64, 1.0),
            Self::IncrementalRedundancy => (1.0, sent as f64),
        }
    }
}

impl Default for Loss {
    fn default() -> Self {
        Self { threshold: None, attempts: 1, combining: Combining::None }
    }
}

/// A K that falls from round to round: K_t = max(K_min, ⌈K·e^(−β·t)⌉), t from 0.
///
/// Source: after Ji, Jiang, Walid and Li, *Dynamic Sampling and Selective Masking for Communication-Efficient
/// Federated Learning* (2020), as we read it. Invariant: the links of a round are those of a run with its
/// K_t, to the last bit.
///
/// ```
/// use fedlink::radio::Decay;
/// let decay = Decay::new(0.5, 2);
/// assert_eq!([0, 1, 2, 3, 9].map(|t| decay.k(10, t)), [10, 7, 4, 3, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decay {
    /// β ≥ 0.
    pub rate: f64,
    /// K_min, at least 1 and at most K.
    pub min: usize,
}

impl Decay {
    /// Falls at this rate to no less than `min`.
    pub fn new(rate: f64, min: usize) -> Self {
        Self { rate, min }
    }

    /// K_t of a run that starts with `k`.
    pub fn k(&self, k: usize, t: u64) -> usize {
        // A hair below, so that a product that is whole but for rounding is not rounded up.
        let falling = libm::ceil(k as f64 * libm::exp(-self.rate * t as f64) - 1e-9) as usize;
        falling.clamp(self.min.min(k), k)
    }

    /// Σ K_s over the rounds s before `t`.
    fn turns_before(&self, k: usize, t: u64) -> u128 {
        let mut turns = 0;
        for s in 0..t {
            let now = self.k(k, s);
            if now == self.min {
                return turns + u128::from(t - s) * now as u128;
            }
            turns += now as u128;
        }
        turns
    }
}

/// The uplink of a run.
pub struct Radio {
    parts: RadioParts,
}

/// What a [`Radio`] is made of.
#[non_exhaustive]
pub struct RadioParts {
    /// M.
    pub devices: usize,
    /// K.
    pub k: usize,
    /// How K falls from round to round, if it does.
    pub decay: Option<Decay>,
    /// Power, noise, symbols and seconds.
    pub budget: LinkBudget,
    /// The law of the gains.
    pub fading: Box<dyn Fading>,
    /// Mean gains.
    pub mean_gains: MeanGains,
    /// What the server knows.
    pub csi: Csi,
    /// What a device sends with.
    pub power: Box<dyn PowerPolicy>,
    /// What symbols carry.
    pub rate: Box<dyn Rate>,
    /// How the band is shared.
    pub access: Box<dyn Access>,
    /// Resource blocks that fade apart; 0: the channel is flat.
    pub blocks: usize,
    /// What gets lost.
    pub loss: Loss,
    /// The bits of an upload, if they are what is fixed.
    pub payload: Option<Bits>,
    /// The run's seed.
    pub seed: u64,
}

/// The uplink in one round: the channel as it is, and as the server knows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Links {
    /// β_m·g_m(t) as it is.
    pub gains: Vec<f64>,
    /// The channel as the server knows it.
    pub known: Known,
}

/// What the server knows of the uplink in one round, by device. A device that may not send
/// has a zero-gain link.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Known {
    /// The power gain β·ĝ, as estimated.
    pub gains: Vec<f64>,
    /// C_m, bits a symbol at the device's transmit power if it has the whole band.
    pub capacities: Vec<f64>,
    /// P_m, what each device sends with if it is scheduled.
    pub powers: Vec<f64>,
    /// The SNR that rates are chosen for, at that power over the whole band; empty if only capacities are
    /// known.
    snrs: Vec<f64>,
    /// The gain of each resource block over the device's gain, device after device; empty: flat.
    blocks: Vec<f64>,
}

impl Known {
    /// Links with these gains and capacities, one of each per device, that all send with `power`: what is
    /// known where capacities are measured.
    pub fn new(gains: Vec<f64>, capacities: Vec<f64>, power: Power) -> Self {
        assert_eq!(gains.len(), capacities.len(), "one gain and one capacity for each device");
        let powers = vec![power.0; gains.len()];
        Self { gains, capacities, powers, snrs: Vec::new(), blocks: Vec::new() }
    }

    /// M, the number of devices.
    pub fn devices(&self) -> usize {
        self.gains.len()
    }

    /// β·ĝ of one device.
    pub fn gain(&self, device: DeviceId) -> f64 {
        self.gains[device.index()]
    }

    /// C_m of one device.
    pub fn capacity(&self, device: DeviceId) -> f64 {
        self.capacities[device.index()]
    }

    /// P_m of one device.
    pub fn power(&self, device: DeviceId) -> Power {
        Power(self.powers[device.index()])
    }

    /// The SNR that a rate is chosen for; none where only capacities are known.
    pub fn snr(&self, device: DeviceId) -> Option<f64> {
        self.snrs.get(device.index()).copied()
    }

    /// The gain of each resource block of a device over its gain; empty: flat.
    pub fn blocks(&self, device: DeviceId) -> &[f64] {
        let each = self.blocks.len() / self.gains.len().max(1);
        &self.blocks[device.index() * each..(device.index() + 1) * each]
    }

    /// The first device whose gain or capacity is not a finite number ≥ 0, and what it is.
    pub(crate) fn check(&self) -> Result<(), (DeviceId, String)> {
        for (what, values) in [("gain", &self.gains), ("capacity", &self.capacities)] {
            if let Some(m) = values.iter().position(|value| !(value.is_finite() && *value >= 0.0)) {
                return Err((DeviceId::new(m), format!("its {what} is {}", values[m])));
            }
        }
        Ok(())
    }

    /// Makes a device's link one of zero gain.
    pub(crate) fn silence(&mut self, device: usize) {
        (self.gains[device], self.capacities[device]) = (0.0, 0.0);
        if let Some(snr) = self.snrs.get_mut(device) {
            *snr = 0.0;
        }
    }
}

/// Who knows what the links of a round would carry if another number of devices were scheduled.
pub trait CapacityAt: Send + Sync {
    /// C_m of a device in round `t` if `k` devices were scheduled, each with the power that this leaves it:
    /// that of a run with K = `k`, to the last bit. `k` is at least 1. Where capacities or SNRs were measured
    /// they stay as they are.
    fn capacity_at(&self, t: u64, known: &Known, device: DeviceId, k: usize) -> f64;
}

/// What became of an upload on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Carried {
    /// Whether it arrived.
    pub delivered: bool,
    /// How long the device sent, repetitions counted.
    pub airtime: Airtime,
}

impl Radio {
    /// The uplink made of `parts`.
    pub fn new(parts: RadioParts) -> Self {
        if let MeanGains::Each(means) = &parts.mean_gains {
            assert_eq!(means.len(), parts.devices, "one mean gain for each device");
        }
        Self { parts }
    }

    /// M.
    pub fn devices(&self) -> usize {
        self.parts.devices
    }

    /// K.
    pub fn k(&self) -> usize {
        self.parts.k
    }

    /// K_t, the largest number of devices that are scheduled in round `t` (from 0).
    pub fn k_at(&self, t: u64) -> usize {
        self.parts.decay.map_or(self.parts.k, |decay| decay.k(self.parts.k, t))
    }

    /// Σ K_s over the rounds s before `t`.
    pub fn turns_before(&self, t: u64) -> u128 {
        let RadioParts { k, decay, .. } = &self.parts;
        decay.map_or(u128::from(t) * *k as u128, |decay| decay.turns_before(*k, t))
    }

    /// What the scheduled devices share.
    pub fn band(&self) -> Band {
        Band { symbols: self.parts.budget.symbols }
    }

    /// Power, noise, symbols and seconds.
    pub fn budget(&self) -> &LinkBudget {
        &self.parts.budget
    }

    /// P̄.
    pub fn average_power(&self) -> Power {
        Power(self.parts.budget.average)
    }

    /// σ², with the interference.
    pub fn noise(&self) -> f64 {
        self.parts.budget.noise
    }

    /// What a device sends with over a link of its mean gain: for the policies that do not depend on the
    /// channel, what every scheduled device sends with.
    pub fn power(&self) -> Power {
        let mean_gain = self.mean_gain(0, DeviceId(0));
        self.parts.power.power(DeviceId(0), LinkGain { gain: mean_gain, mean_gain })
    }

    /// Where the devices are, if they are in a cell.
    pub fn cell(&self) -> Option<&Cell> {
        match &self.parts.mean_gains {
            MeanGains::Cell(cell) => Some(cell),
            MeanGains::One | MeanGains::Each(_) => None,
        }
    }

    /// What symbols carry.
    pub fn rate(&self) -> &dyn Rate {
        &*self.parts.rate
    }

    /// What of the channel the server knows.
    pub fn csi(&self) -> Csi {
        self.parts.csi
    }

    /// Whether scheduled devices send at the same time.
    pub fn sends_together(&self) -> bool {
        self.parts.access.together()
    }

    /// β_m(t), the mean gain of a device.
    pub fn mean_gain(&self, t: u64, device: DeviceId) -> f64 {
        match &self.parts.mean_gains {
            MeanGains::One => 1.0,
            MeanGains::Each(means) => means[device.index()],
            MeanGains::Cell(cell) => from_db(cell.gain_db(t, device)),
        }
    }

    /// β_m·g_m(t): the mean gain of the device times its fading. Depends on nothing but (seed, t, m).
    pub fn gain(&self, t: u64, device: DeviceId) -> f64 {
        let fading = self.parts.fading.gain(t, device);
        match &self.parts.mean_gains {
            MeanGains::One => fading,
            MeanGains::Each(_) | MeanGains::Cell(_) => self.mean_gain(t, device) * fading,
        }
    }

    /// The gain as the server estimates it.
    fn estimate(&self, t: u64, device: DeviceId, truth: f64) -> f64 {
        let RadioParts { csi, fading, seed, .. } = &self.parts;
        if csi.is_perfect() {
            return truth;
        }
        let estimate = if csi.delay_s > 0.0 {
            fading.earlier(t, device, csi.delay_s).unwrap_or_else(|| fading.gain(t, device))
        } else {
            let mut rng = stream(*seed, Purpose::CsiError, t, u64::from(device.0));
            fading.estimate(t, device, csi.error, &mut rng)
        };
        self.mean_gain(t, device) * estimate
    }

    /// Why the fading law failed, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.parts.fading.failure()
    }

    /// The uplink in round `t`.
    pub fn links(&self, t: u64) -> Links {
        let RadioParts { devices, budget, power, fading, blocks, .. } = &self.parts;
        let k = self.k_at(t);
        let mut links = Links {
            gains: Vec::with_capacity(*devices),
            known: Known {
                gains: Vec::with_capacity(*devices),
                capacities: Vec::with_capacity(*devices),
                powers: Vec::with_capacity(*devices),
                snrs: Vec::with_capacity(*devices),
                blocks: vec![0.0; devices * blocks],
            },
        };
        for device in DeviceId::all(*devices) {
            let measured = self.gain(t, device);
            let reference = LinkGain { gain: 1.0, mean_gain: 1.0 };
            if fading.meaning() == GainMeaning::RateBps {
                // A measured rate is a capacity; the gain is the one that would give it.
                let capacity = measured * budget.symbol_s().unwrap_or(1.0);
                let sent = power.power_at(k, device, reference);
                let truth = libm::expm1(capacity * std::f64::consts::LN_2) * budget.noise / sent.0;
                links.push(truth, truth, capacity, sent);
                continue;
            }
            // The gain that a unit of what was measured stands for.
            let unit = if fading.meaning() == GainMeaning::SnrAtReference {
                budget.noise / power.power_at(k, device, reference).0
            } else {
                1.0
            };
            let truth = measured * unit;
            let known = self.estimate(t, device, measured) * unit;
            let relative = &mut links.known.blocks[own_of(device, *blocks)];
            if *blocks > 0 {
                fading.blocks(t, device, relative);
                let gain = fading.gain(t, device);
                relative.iter_mut().for_each(|block| *block = if gain > 0.0 { *block / gain } else { 0.0 });
            }
            let (sent, snr, capacity) = self.over(t, device, known, k, relative);
            links.push(truth, known, capacity, sent);
            links.known.snrs.push(snr);
        }
        links
    }

    /// What is known of round `t`, with the powers that a round of `k` devices leaves them.
    pub(crate) fn relink(&self, t: u64, known: &mut Known, k: usize) {
        if !self.depends_on_k(known) {
            return;
        }
        for device in DeviceId::all(known.devices()).filter(|device| known.gains[device.index()] > 0.0) {
            let m = device.index();
            let (power, snr, capacity) = self.over(t, device, known.gains[m], k, known.blocks(device));
            (known.powers[m], known.snrs[m], known.capacities[m]) = (power.0, snr, capacity);
        }
    }

    /// Whether capacities follow from gains and powers: one that was measured is what it is, whatever K.
    fn depends_on_k(&self, known: &Known) -> bool {
        self.parts.fading.meaning() == GainMeaning::Gain && known.snrs.len() == known.gains.len()
    }

    /// What a device sends with over a link of gain `known` in a round of `k` devices, the SNR that its rate
    /// is chosen for, and its capacity.
    fn over(&self, t: u64, device: DeviceId, known: f64, k: usize, blocks: &[f64]) -> (Power, f64, f64) {
        let RadioParts { budget, power, rate, csi, .. } = &self.parts;
        let sent = power.power_at(k, device, LinkGain { gain: known, mean_gain: self.mean_gain(t, device) });
        let mut snr = known * sent.0 / budget.noise;
        if csi.backoff < 1.0 {
            snr *= csi.backoff;
        }
        let capacity = match rate.slope(snr) {
            Some(slope) if blocks.is_empty() => slope,
            _ => {
                let link = self.uplink(snr, sent, rate.as_ref(), blocks);
                self.parts.access.alone(&link, &self.band()).0 / budget.symbols as f64
            }
        };
        (sent, snr, capacity)
    }

    fn uplink<'a>(&self, snr: f64, power: Power, rate: &'a dyn Rate, blocks: &'a [f64]) -> Uplink<'a> {
        let RadioParts { budget, power: policy, .. } = &self.parts;
        Uplink {
            snr,
            power,
            max_power: budget.max.map(Power),
            energy_kept: policy.keeps_energy(),
            rate,
            blocks,
        }
    }

    /// The links of some devices as the server knows them, handed to `call`.
    fn with_uplinks<R>(&self, devices: &[DeviceId], known: &Known, call: impl FnOnce(&[Uplink]) -> R) -> R {
        // Where only capacities are known they stand for the rate.
        let measured: Vec<PerSymbol> = devices.iter().map(|&m| PerSymbol(known.capacity(m))).collect();
        let links: Vec<Uplink> = devices
            .iter()
            .zip(&measured)
            .map(|(&device, measured)| match known.snr(device) {
                Some(snr) => self.uplink(snr, known.power(device), &*self.parts.rate, known.blocks(device)),
                None => Uplink { energy_kept: false, ..self.uplink(1.0, known.power(device), measured, &[]) },
            })
            .collect();
        call(&links)
    }

    /// What each of the scheduled `devices` may use of the round, by the weights of their shares of bits.
    pub fn grant(&self, devices: &[DeviceId], weights: &[f64], known: &Known) -> Vec<Grant> {
        self.grant_of(&self.band(), devices, weights, known)
    }

    /// The same where only the symbols of `band` are left.
    pub fn grant_of(&self, band: &Band, devices: &[DeviceId], weights: &[f64], known: &Known) -> Vec<Grant> {
        let RadioParts { access, payload, .. } = &self.parts;
        if band.symbols == 0 {
            return devices.iter().map(|&device| Grant::nothing(known.power(device))).collect();
        }
        self.with_uplinks(devices, known, |links| match payload {
            None => access.grant(weights, links, band),
            Some(bits) => {
                let (bits, ready) = (vec![bits.0; devices.len()], vec![0.0; devices.len()]);
                access.payload(&bits, links, &ready, &self.band())
            }
        })
    }

    /// What each of the scheduled `devices` may use if each has ⌊n/K⌋ symbols, however many there are; a
    /// payload of fixed size takes the time that it takes.
    pub fn grant_slots(&self, devices: &[DeviceId], known: &Known) -> Vec<Grant> {
        if self.parts.payload.is_some() {
            return self.grant(devices, &vec![1.0; devices.len()], known);
        }
        let slot = libm::floor(self.parts.budget.symbols as f64 / self.parts.k as f64);
        let grant = Grant { symbols: Symbols(slot), airtime: Airtime(slot), ..Grant::default() };
        devices.iter().map(|&device| self.transfer(&grant, device, known)).collect()
    }

    /// What `device` may use if it sends in the place of the one that `grant` was for.
    pub fn transfer(&self, grant: &Grant, device: DeviceId, known: &Known) -> Grant {
        self.transfer_of(&self.band(), grant, device, known)
    }

    /// The same where only the symbols of `band` were left.
    pub fn transfer_of(&self, band: &Band, grant: &Grant, device: DeviceId, known: &Known) -> Grant {
        if band.symbols == 0 {
            return Grant::nothing(known.power(device));
        }
        self.with_uplinks(&[device], known, |links| self.parts.access.transfer(grant, &links[0], band))
    }

    /// How long a device sends a payload of fixed size; where devices send at the same time, among K like it.
    pub fn payload_airtime(&self, device: DeviceId, known: &Known) -> Airtime {
        let copies = if self.sends_together() { self.parts.k } else { 1 };
        let grants = self.grant(&vec![device; copies], &vec![1.0; copies], known);
        grants.first().map_or(Airtime(0.0), |grant| grant.airtime)
    }

    /// The bits that a device could send if the whole band were its own.
    pub fn alone(&self, device: DeviceId, known: &Known) -> Bits {
        match self.parts.payload {
            Some(bits) => bits,
            None => Bits(self.parts.budget.symbols as f64 * known.capacity(device)),
        }
    }

    /// What becomes of the upload of a scheduled device in round `t`, by the channel as it is.
    ///
    /// With estimates that are not exact it is lost if the channel carries less than the bits that were
    /// granted; besides, packets get lost as the rate model has it, and by `radio.loss_threshold_db`. A
    /// packet that is lost is sent again, up to `radio.attempts` times in all, over the same channel: fading
    /// is constant in a round. What was received before helps as [`Combining`] has it.
    pub fn carry(&self, t: u64, device: DeviceId, grant: &Grant, links: &Links) -> Carried {
        self.carry_of(&self.band(), t, device, grant, links)
    }

    /// The same where only the symbols of `band` were left for updates.
    pub fn carry_of(&self, band: &Band, t: u64, device: DeviceId, grant: &Grant, links: &Links) -> Carried {
        let RadioParts { csi, rate, access, budget, loss, seed, .. } = &self.parts;
        let gain = links.gains[device.index()];
        if grant.budget.0 <= 0.0 {
            return Carried { delivered: true, airtime: grant.airtime };
        }
        // How far the channel is from what was counted on.
        let counted_on = csi.backoff * links.known.gain(device);
        let ratio = if counted_on > 0.0 { gain / counted_on } else { 0.0 };
        let power = links.known.power(device);
        let by_threshold = loss
            .threshold
            .map_or(0.0, |m| -libm::expm1(-m * budget.noise / (grant.power.0 * self.mean_gain(t, device))));
        // The SNR that the bits were chosen for, whatever the access scheme made of power and band, times
        // that.
        let snr = if rate.is_soft() { ratio * snr_of(&**rate, grant) } else { 0.0 };
        let mut rng = stream(*seed, Purpose::Packet, t, u64::from(device.0));
        // What is decoded from some transmissions is decoded from more of them: one draw for all.
        let one_draw = (loss.combining != Combining::None && rate.is_soft()).then(|| rng.uniform());
        for sent in 1..=loss.attempts {
            let (stronger, longer) = loss.combining.of(sent);
            if !csi.is_perfect() && !rate.is_soft() {
                let link = self.uplink(stronger * gain * power.0 / budget.noise, power, &**rate, &[]);
                let carried = access.carried(grant, &link, stronger * ratio, longer, band);
                // The budget is what the estimate promised; a hair for rounding.
                if carried < grant.budget.0 * (1.0 - 1e-12) {
                    continue;
                }
            }
            let by_rate = rate.loss(stronger * snr, longer * grant.symbols.0, grant.budget.0);
            let decoded = one_draw.is_none_or(|draw| draw >= by_rate);
            let lost = 1.0 - (1.0 - by_threshold) * if one_draw.is_some() { 1.0 } else { 1.0 - by_rate };
            if decoded && (lost <= 0.0 || rng.uniform() >= lost) {
                let used = sent as f64 / loss.attempts as f64;
                return Carried { delivered: true, airtime: Airtime(grant.airtime.0 * used) };
            }
        }
        Carried { delivered: false, airtime: grant.airtime }
    }

    /// Takes note of what the scheduled devices radiated, once in a round.
    pub(crate) fn settle(&mut self, sent: &[(DeviceId, Power, Airtime)]) {
        let symbol_s = self.parts.budget.symbol_s().unwrap_or(1.0);
        let radiated: Vec<(DeviceId, f64)> =
            sent.iter().map(|(device, power, airtime)| (*device, power.0 * airtime.0 * symbol_s)).collect();
        self.parts.power.settle(&radiated);
    }
}

impl Links {
    fn push(&mut self, truth: f64, known: f64, capacity: f64, power: Power) {
        self.gains.push(truth);
        self.known.gains.push(known);
        self.known.capacities.push(capacity);
        self.known.powers.push(power.0);
    }
}

impl CapacityAt for Radio {
    fn capacity_at(&self, t: u64, known: &Known, device: DeviceId, k: usize) -> f64 {
        if !self.depends_on_k(known) || known.gain(device) <= 0.0 {
            return known.capacity(device);
        }
        self.over(t, device, known.gain(device), k, known.blocks(device)).2
    }
}

/// The smallest SNR at which a grant's symbols carry its bits: by bisection on its logarithm, a fixed number
/// of times.
fn snr_of(rate: &dyn Rate, grant: &Grant) -> f64 {
    let (mut low, mut high) = (-80.0f64, 80.0f64);
    for _ in 0..70 {
        let middle = 0.5 * (low + high);
        if rate.bits(libm::exp(middle), grant.symbols.0) < grant.budget.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::exp(high)
}

/// The part of a table of resource blocks that belongs to a device.
fn own_of(device: DeviceId, blocks: usize) -> std::ops::Range<usize> {
    device.index() * blocks..(device.index() + 1) * blocks
}

impl Persist for Radio {
    fn save(&self) -> State {
        self.parts.power.save()
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        self.parts.power.load(state)
    }
}
