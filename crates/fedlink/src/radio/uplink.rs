//! The uplink of a run: its gains, and the links of a round.

use super::access::{Access, Band, Uplink};
use super::budget::LinkBudget;
use super::cell::Cell;
use super::fading::{Fading, GainMeaning};
use super::power::{LinkGain, PowerPolicy};
use super::rate::Rate;
use super::{CapacityAt, Csi, Decay, Known, Links, Loss, MeanGains};
use crate::base::rng::{Purpose, stream};
use crate::base::state::{Persist, State, StateError};
use crate::base::units::{Airtime, Bits, DeviceId, Power, from_db};

/// The uplink of a run.
pub struct Radio {
    pub(super) parts: RadioParts,
}

/// The components of a [`Radio`].
#[non_exhaustive]
pub struct RadioParts {
    /// M.
    pub devices: usize,
    /// K.
    pub k: usize,
    /// The schedule by which K falls, if it does.
    pub decay: Option<Decay>,
    /// Power, noise, symbols and seconds.
    pub budget: LinkBudget,
    /// The law of the gains.
    pub fading: Box<dyn Fading>,
    /// Mean gains.
    pub mean_gains: MeanGains,
    /// The server's channel state information.
    pub csi: Csi,
    /// The transmit power of a device.
    pub power: Box<dyn PowerPolicy>,
    /// The bits that symbols carry.
    pub rate: Box<dyn Rate>,
    /// The rule by which devices share the band.
    pub access: Box<dyn Access>,
    /// Resource blocks that fade apart; 0: the channel is flat.
    pub blocks: usize,
    /// The rule for lost uploads.
    pub loss: Loss,
    /// The bits of an upload, if these are fixed.
    pub payload: Option<Bits>,
    /// The run's seed.
    pub seed: u64,
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

    /// The resources that the scheduled devices share.
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

    /// The transmit power of a device over a link of its mean gain. Under a policy that does not depend on
    /// the channel, every scheduled device sends with it.
    pub fn power(&self) -> Power {
        let mean_gain = self.mean_gain(0, DeviceId(0));
        self.parts.power.power(DeviceId(0), LinkGain { gain: mean_gain, mean_gain })
    }

    /// The positions of the devices, if they are in a cell.
    pub fn cell(&self) -> Option<&Cell> {
        match &self.parts.mean_gains {
            MeanGains::Cell(cell) => Some(cell),
            MeanGains::One | MeanGains::Each(_) => None,
        }
    }

    /// The bits that symbols carry.
    pub fn rate(&self) -> &dyn Rate {
        &*self.parts.rate
    }

    /// The server's channel state information.
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

    /// β_m·g of each resource block in round `t`, as it is; empty where the band is not made of blocks.
    pub fn block_gains(&self, t: u64, device: DeviceId) -> Vec<f64> {
        let mut gains = vec![0.0; self.parts.blocks];
        if !gains.is_empty() {
            self.parts.fading.blocks(t, device, &mut gains);
            let mean = self.mean_gain(t, device);
            gains.iter_mut().for_each(|gain| *gain *= mean);
        }
        gains
    }

    /// √β_m·h in round `t`, as it is, real and imaginary part, by antenna and resource block (one where the
    /// band is flat); empty where the fading law draws powers alone.
    pub fn amplitudes(&self, t: u64, device: DeviceId) -> Vec<[f64; 2]> {
        let scale = libm::sqrt(self.mean_gain(t, device));
        let scaled = |h: [f64; 2]| h.map(|part| scale * part);
        self.parts.fading.amplitudes(t, device).into_iter().map(scaled).collect()
    }

    /// The server's estimate of the gain.
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

    /// The reason why the fading law failed, if it has.
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
            // The gain that one unit of the measurement means.
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

    /// The server's knowledge of round `t`, with the powers of a round of `k` devices.
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

    /// Whether capacities follow from gains and powers: a measured one is the same for every K.
    fn depends_on_k(&self, known: &Known) -> bool {
        self.parts.fading.meaning() == GainMeaning::Gain && known.snrs.len() == known.gains.len()
    }

    /// The transmit power of a device over a link of gain `known` in a round of `k` devices, the SNR that its
    /// rate is chosen for, and its capacity.
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

    pub(super) fn uplink<'a>(
        &self,
        snr: f64,
        power: Power,
        rate: &'a dyn Rate,
        blocks: &'a [f64],
    ) -> Uplink<'a> {
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

    /// Records the energy that the scheduled devices radiated, once per round.
    pub(crate) fn settle(&mut self, sent: &[(DeviceId, Power, Airtime)]) {
        let symbol_s = self.parts.budget.symbol_s().unwrap_or(1.0);
        let radiated: Vec<(DeviceId, f64)> =
            sent.iter().map(|(device, power, airtime)| (*device, power.0 * airtime.0 * symbol_s)).collect();
        self.parts.power.settle(&radiated);
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
