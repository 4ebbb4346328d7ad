//! OFDMA: all devices at once, each in its resource blocks.

use super::assignment::assign;
use super::slots::SlotKind;
use super::split::Curve;
use super::{Access, AccessFacts, Band, Grant, Uplink};
use crate::base::units::{Airtime, Bits, Symbols};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys, within};
use crate::radio::fading::propagation::MAX_BLOCKS;
use serde::{Deserialize, Serialize};

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Access> = Entry::of::<OfdmaConfig>();

/// `[radio.ofdma]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct OfdmaConfig {
    /// resource blocks of the band (LTE: 100 in 20 MHz)
    #[key(default = 100, allowed = "schedule.k ..= 4096")]
    pub resource_blocks: u64,
    /// who gets which block
    #[key(default = Assign::Greedy, allowed = "\"greedy\" (the device with the fewest bits for its weight \
        chooses next) | \"hungarian\" (one each, the most bits in all) | \"contiguous\" (as many each, side \
        by side)")]
    pub assign: Assign,
    /// what a device sends with in each of its blocks, where they fade apart
    #[key(default = BlockPower::Equal, allowed = "\"equal\" | \"waterfilling\" (more in the better ones)")]
    pub power: BlockPower,
    /// the SNR of one code over blocks that fade apart
    #[key(default = EffectiveSnr::Capacity, allowed = "\"capacity\" (the mean of their capacities) | \
        \"eesm\" (exponential, for tables of modulation and coding)")]
    pub effective_snr: EffectiveSnr,
    /// β of the exponential effective SNR, a ratio
    #[key(default = 1.5, range = "> 0")]
    pub eesm_beta: f64,
}

impl PartConfig for OfdmaConfig {
    type Part = dyn Access;
    const NAME: &'static str = "ofdma";
    const MEANING: &'static str =
        "all devices at once, each in resource blocks of its own, assigned by radio.ofdma.assign";

    fn facts(&self) -> AccessFacts {
        let exponential = self.effective_snr == EffectiveSnr::Eesm;
        let waterfills = self.power == BlockPower::Waterfilling;
        AccessFacts {
            blocks: Some(self.resource_blocks),
            needs_blocks_apart: match (waterfills, exponential) {
                (true, _) => Some("power"),
                (false, true) => Some("effective_snr"),
                (false, false) => None,
            },
            needs_steps: exponential.then_some("effective_snr"),
            ..AccessFacts::default()
        }
    }

    fn resolve(&mut self, scope: &Scope) -> Result<(), ConfigError> {
        let note = ", at least one for each scheduled device (schedule.k)";
        within("resource_blocks", self.resource_blocks, scope.k..=MAX_BLOCKS as u64, note)?;
        if self.effective_snr != EffectiveSnr::Eesm && self.eesm_beta != Self::default().eesm_beta {
            let problem = "has no effect here: it is for radio.ofdma.effective_snr = \"eesm\"";
            return Err(ConfigError::new("eesm_beta", problem));
        }
        Ok(())
    }

    fn build(self, _: &Scope, slots: &SlotKind) -> Result<Box<dyn Access>, ConfigError> {
        Ok(Box::new(Ofdma {
            blocks: self.resource_blocks as usize,
            assign: self.assign,
            power: self.power,
            eesm_beta: (self.effective_snr == EffectiveSnr::Eesm).then_some(self.eesm_beta),
            slots: *slots,
        }))
    }
}

/// The assignment of resource blocks to devices (`radio.ofdma.assign`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Assign {
    /// Repeatedly, the device with the fewest bits for its weight takes its best free block (ties go to the
    /// lower index), until no block is free.
    #[default]
    Greedy,
    /// One block per device, such that the sum of all bits is largest; weights do not matter.
    Hungarian,
    /// Equally many adjacent blocks per device, one more for the first ones; neither weights nor gains
    /// matter.
    Contiguous,
}

/// The power of a device in each of its blocks (`radio.ofdma.power`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BlockPower {
    /// The same.
    #[default]
    Equal,
    /// The split that maximizes the sum of their capacities: (μ − 1/γ_k)⁺ of its power, γ_k the SNR of block
    /// k with all of it and μ such that the parts add up to 1.
    Waterfilling,
}

/// The SNR of one code over blocks of different SNRs γ_k (`radio.ofdma.effective_snr`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EffectiveSnr {
    /// log2(1+γ) is the mean of log2(1+γ_k): exact for Gaussian codes.
    #[default]
    Capacity,
    /// γ = −β·ln(mean of e^(−γ_k/β)): a fit for modulation and coding by a table, at most the mean of the
    /// γ_k.
    Eesm,
}

/// The band has N resource blocks of n/N symbols per round; device m has the blocks S_m and sends in all of
/// them for the whole round, with P/|S_m| in each, or by [`BlockPower::Waterfilling`].
///
/// One code runs over all blocks of a device. Its SNR is the one whose capacity is the mean of theirs:
/// log2(1+γ) = mean over k in S_m of log2(1 + γ_m·g_mk·N/|S_m|), with γ_m the SNR over the whole band and
/// g_mk the gain of block k relative to the mean; R_m = b(γ, |S_m|·n/N). For Shannon's rate this is the sum
/// of the capacities of the blocks. [`EffectiveSnr::Eesm`] has another SNR, after Sionna's
/// `effective_sinr.py`; its β is fitted to each modulation (about 1.5 for QPSK, several times that for
/// 64-QAM, as we read it).
///
/// Invariants: a block has at most one device; greedy and contiguous leave none free; with flat gains and
/// many blocks shares are those of [`Fdma`](super::Fdma) up to a block for each device. One more block can
/// lower the bits of a device at very low SNR, since its power is then spread over one more; no block is
/// returned. With whole slots a block has ⌊n/N⌋ symbols.
///
/// A grant has the SNR of its blocks, and does not name them: a device that replaces another one has the mean
/// over all blocks, and a link that is r times better has r times that SNR. A fixed payload uses the bits as
/// weights; each device then sends until it is done.
///
/// ```
/// use fedlink::radio::access::{Access, Band, Ofdma, Uplink};
/// use fedlink::radio::rate::Shannon;
/// use fedlink::base::units::{Bits, Power};
/// let ofdma = Ofdma { blocks: 2, ..Ofdma::default() };
/// let link = |blocks| Uplink::new(1.0, Power(1.0), &Shannon {}).over(blocks);
/// // Each gets the block that is good for it: 50 symbols at an SNR of 1·1.5·2.
/// let grants = ofdma.grant(&[1.0, 1.0], &[link(&[0.5, 1.5]), link(&[1.5, 0.5])], &Band { symbols: 100 });
/// assert_eq!([grants[0].budget, grants[1].budget], [Bits(100.0), Bits(100.0)]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ofdma {
    /// N, at least 1.
    pub blocks: usize,
    /// The assignment of blocks to devices.
    pub assign: Assign,
    /// The power of a device in each of its blocks.
    pub power: BlockPower,
    /// β of the exponential effective SNR; none: by capacity.
    pub eesm_beta: Option<f64>,
    /// Whether a block has a real number of symbols or a whole one.
    pub slots: SlotKind,
}

impl Default for Ofdma {
    fn default() -> Self {
        Self {
            blocks: OfdmaConfig::default().resource_blocks as usize,
            assign: Assign::Greedy,
            power: BlockPower::Equal,
            eesm_beta: None,
            slots: SlotKind::default(),
        }
    }
}

/// μ with Σ (μ − 1/(s·g_k))⁺ = 1 over these gains: terms that are negative are left out until none is.
fn water_level(s: f64, gains: &(impl Iterator<Item = f64> + Clone)) -> f64 {
    let mut level = f64::INFINITY;
    loop {
        let (mut floor, mut count) = (1.0, 0.0);
        for depth in gains.clone().map(|gain| 1.0 / (s * gain)).filter(|depth| *depth < level) {
            floor += depth;
            count += 1.0;
        }
        // All blocks of zero gain: nothing is sent.
        if count == 0.0 {
            return 0.0;
        }
        let next = floor / count;
        if next >= level {
            return level;
        }
        level = next;
    }
}

/// The gain of a block relative to the mean.
fn gain(link: &Uplink, block: usize) -> f64 {
    link.blocks.get(block).copied().unwrap_or(1.0)
}

impl Ofdma {
    /// Symbols of one block.
    fn block_symbols(&self, band: Band) -> f64 {
        let symbols = band.symbols as f64 / self.blocks as f64;
        if self.slots == SlotKind::Whole { libm::floor(symbols) } else { symbols }
    }

    /// The number of blocks that these symbols are.
    fn count(&self, symbols: f64, band: Band) -> usize {
        let each = self.block_symbols(band);
        // Rounding must not cost a block: a number that is whole but for rounding counts as whole.
        if each > 0.0 { ((symbols / each + 1e-6) as usize).min(self.blocks) } else { 0 }
    }

    /// The SNR of one code over blocks of these relative gains, at the power that a device of `count` blocks
    /// has in each.
    fn snr(&self, link: &Uplink, count: usize, mut gains: impl Iterator<Item = f64>) -> f64 {
        let each = link.snr.min(f64::MAX) * (self.blocks as f64 / count as f64);
        if link.blocks.is_empty() {
            return each.min(f64::MAX);
        }
        let capacity = |gain: f64| libm::log1p((each * gain).min(f64::MAX));
        let Some(first) = gains.next() else { return 0.0 };
        let (mut sum, mut blocks) = (capacity(first), 1.0);
        for gain in gains {
            sum += capacity(gain);
            blocks += 1.0;
        }
        if blocks == 1.0 { (each * first).min(f64::MAX) } else { libm::expm1(sum / blocks).min(f64::MAX) }
    }

    /// The SNR of a device's code in these blocks; 0 in none.
    fn snr_in(&self, link: &Uplink, blocks: &[usize]) -> f64 {
        if !link.blocks.is_empty() && blocks.len() > 1 && self.is_special() {
            return self.special_snr(
                link,
                blocks.iter().map(|&block| gain(link, block)),
                blocks.len() as f64,
            );
        }
        self.snr(link, blocks.len().max(1), blocks.iter().map(|&block| gain(link, block)))
    }

    /// Whether the power is unequal or the SNR is not that of the mean capacity.
    fn is_special(&self) -> bool {
        self.power != BlockPower::Equal || self.eesm_beta.is_some()
    }

    /// The SNR of one code over `count` blocks of these relative gains.
    fn special_snr(&self, link: &Uplink, gains: impl Iterator<Item = f64> + Clone, count: f64) -> f64 {
        // The SNR of a block of gain 1 with all power.
        let whole = (link.snr * self.blocks as f64).min(f64::MAX);
        let level = (self.power == BlockPower::Waterfilling).then(|| water_level(whole, &gains));
        let snr = |gain: f64| match level {
            Some(level) => (whole * gain * level - 1.0).clamp(0.0, f64::MAX),
            None => (whole / count * gain).min(f64::MAX),
        };
        let Some(beta) = self.eesm_beta else {
            return libm::expm1(gains.map(|gain| libm::log1p(snr(gain))).sum::<f64>() / count).min(f64::MAX);
        };
        // Relative to the smallest, so that not all terms vanish.
        let least = gains.clone().map(snr).fold(f64::MAX, f64::min);
        let mean = gains.map(|gain| libm::exp((least - snr(gain)) / beta)).sum::<f64>() / count;
        (least - beta * libm::log(mean)).clamp(0.0, f64::MAX)
    }

    /// The bits of a device in these blocks.
    fn bits_in(&self, link: &Uplink, blocks: &[usize], band: Band) -> f64 {
        if blocks.is_empty() {
            return 0.0;
        }
        link.rate.bits(self.snr_in(link, blocks), blocks.len() as f64 * self.block_symbols(band))
    }

    /// The blocks of each device. As long as one link carries something, devices whose links carry nothing
    /// get none; otherwise all get equally many.
    fn assigned(&self, weights: &[f64], links: &[Uplink], band: Band) -> Vec<Vec<usize>> {
        let alive = |link: &Uplink| (0..self.blocks).any(|block| self.bits_in(link, &[block], band) > 0.0);
        let mut who: Vec<usize> = (0..links.len()).filter(|&m| alive(&links[m])).collect();
        let mut assign_by = self.assign;
        if who.is_empty() {
            (who, assign_by) = ((0..links.len()).collect(), Assign::Contiguous);
        }
        let mut blocks = vec![Vec::new(); links.len()];
        match assign_by {
            Assign::Greedy => self.greedy(&who, weights, links, band, &mut blocks),
            Assign::Hungarian => {
                let value = |row: usize, block: usize| self.bits_in(&links[who[row]], &[block], band);
                for (row, block) in assign(who.len(), self.blocks, value).into_iter().enumerate() {
                    blocks[who[row]].extend(block);
                }
            }
            Assign::Contiguous => {
                let mut from = 0;
                for (index, &m) in who.iter().enumerate() {
                    let count = self.blocks / who.len() + usize::from(index < self.blocks % who.len());
                    blocks[m].extend(from..from + count);
                    from += count;
                }
            }
        }
        blocks
    }

    fn greedy(&self, who: &[usize], weights: &[f64], links: &[Uplink], band: Band, out: &mut [Vec<usize>]) {
        // Scaled to a largest of 1, so that no ratio overflows without need.
        let top = who.iter().map(|&m| weights[m]).fold(0.0, f64::max);
        let weight = |m: usize| if top > 0.0 { weights[m] / top } else { 1.0 };
        let who: Vec<usize> = who.iter().copied().filter(|&m| weight(m) > 0.0).collect();
        let mut bits = vec![0.0; links.len()];
        let mut free: Vec<usize> = (0..self.blocks).collect();
        let neediest = |bits: &[f64]| {
            let ratio = |m: &usize| bits[*m] / weight(*m);
            who.iter().copied().min_by(|a, b| ratio(a).total_cmp(&ratio(b)))
        };
        while let Some(m) = neediest(&bits).filter(|_| !free.is_empty()) {
            let mut best = 0;
            for index in 1..free.len() {
                if gain(&links[m], free[index]) > gain(&links[m], free[best]) {
                    best = index;
                }
            }
            out[m].push(free.remove(best));
            bits[m] = self.bits_in(&links[m], &out[m], band);
        }
    }
}

impl Access for Ofdma {
    fn together(&self) -> bool {
        true
    }

    fn resource_blocks(&self) -> usize {
        self.blocks
    }

    /// In its best blocks, as many as the symbols are.
    fn bits(&self, link: &Uplink, symbols: f64, band: &Band) -> f64 {
        let mut order: Vec<usize> = (0..self.blocks).collect();
        order.sort_by(|&a, &b| gain(link, b).total_cmp(&gain(link, a)));
        self.bits_in(link, &order[..self.count(symbols, *band)], *band)
    }

    /// All blocks of a device are as much better as its link is.
    fn carried(&self, grant: &Grant, link: &Uplink, ratio: f64, copies: f64, _band: &Band) -> f64 {
        link.rate.bits((ratio * grant.block_snr).min(f64::MAX), copies * grant.symbols.0)
    }

    fn grant(&self, weights: &[f64], links: &[Uplink], band: &Band) -> Vec<Grant> {
        let grant = |(link, blocks): (&Uplink, Vec<usize>)| {
            if blocks.is_empty() {
                return Grant::nothing(link.power);
            }
            Grant {
                symbols: Symbols(blocks.len() as f64 * self.block_symbols(*band)),
                power: link.power,
                airtime: Airtime(band.symbols as f64),
                budget: Bits(self.bits_in(link, &blocks, *band)),
                block_snr: self.snr_in(link, &blocks),
            }
        };
        links.iter().zip(self.assigned(weights, links, *band)).map(grant).collect()
    }

    fn transfer(&self, grant: &Grant, link: &Uplink, band: &Band) -> Grant {
        let count = self.count(grant.symbols.0, *band);
        if count == 0 {
            return Grant::nothing(link.power);
        }
        let snr = self.snr(link, count, (0..self.blocks).map(|block| gain(link, block)));
        let budget = Bits(link.rate.bits(snr, grant.symbols.0));
        Grant { power: link.power, budget, block_snr: snr, ..*grant }
    }

    fn payload(&self, bits: &[f64], links: &[Uplink], _ready: &[f64], band: &Band) -> Vec<Grant> {
        let grant = |((link, blocks), &bits): ((&Uplink, Vec<usize>), &f64)| {
            let count = blocks.len();
            let snr = self.snr_in(link, &blocks);
            let curve = Curve::Fixed { rate: link.rate, snr };
            match curve.reach(bits, band.symbols as f64).filter(|_| count > 0) {
                None => Grant::nothing(link.power),
                Some(symbols) => Grant {
                    symbols: Symbols(symbols),
                    power: link.power,
                    airtime: Airtime(symbols * (self.blocks as f64 / count as f64)),
                    budget: Bits(bits),
                    block_snr: snr,
                },
            }
        };
        links.iter().zip(self.assigned(bits, links, *band)).zip(bits).map(grant).collect()
    }
}

#[cfg(test)]
mod tests;
