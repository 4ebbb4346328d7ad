//! OFDMA: all devices at once, each in its resource blocks.

use super::assignment::assign;
use super::slots::SlotKind;
use super::split::Curve;
use super::{Access, Band, Grant, Uplink};
use crate::radio::fading::propagation::MAX_BLOCKS;
use crate::registry::count::count;
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key, number, within};
use crate::units::{Airtime, Bits, Symbols};
use serde::{Deserialize, Serialize};

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Access> = Entry::of::<OfdmaConfig>();

/// `[radio.ofdma]`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct OfdmaConfig {
    /// N, the blocks of the band.
    #[serde(deserialize_with = "count")]
    pub resource_blocks: u64,
    /// Who gets which.
    pub assign: Assign,
    /// What a device sends with in each of its blocks.
    pub power: BlockPower,
    /// What one code over several blocks gets of them.
    pub effective_snr: EffectiveSnr,
    /// β of EESM.
    pub eesm_beta: f64,
}

impl Default for OfdmaConfig {
    fn default() -> Self {
        Self {
            resource_blocks: 100,
            assign: Assign::Greedy,
            power: BlockPower::Equal,
            effective_snr: EffectiveSnr::Capacity,
            eesm_beta: 1.5,
        }
    }
}

impl PartConfig for OfdmaConfig {
    type Part = dyn Access;
    const NAME: &'static str = "ofdma";
    const MEANING: &'static str =
        "all devices at once, each in resource blocks of its own, assigned by radio.ofdma.assign";
    const KEYS: &'static [Key] = &[
        key("resource_blocks", "resource blocks of the band (LTE: 100 in 20 MHz)", "schedule.k ..= 4096"),
        key(
            "assign",
            "who gets which block",
            "\"greedy\" (the device with the fewest bits for its weight chooses next) | \"hungarian\" (one \
             each, the most bits in all) | \"contiguous\" (as many each, side by side)",
        ),
        key(
            "power",
            "what a device sends with in each of its blocks, where they fade apart",
            "\"equal\" | \"waterfilling\" (more in the better ones)",
        ),
        key(
            "effective_snr",
            "the SNR of one code over blocks that fade apart",
            "\"capacity\" (the mean of their capacities) | \"eesm\" (exponential, for radio.rate = \"mcs\")",
        ),
        key("eesm_beta", "β of the exponential effective SNR, a ratio", "> 0"),
    ];

    fn resolve(&mut self, scope: &Scope) -> Result<(), ConfigError> {
        let note = ", at least one for each scheduled device (schedule.k)";
        within("resource_blocks", self.resource_blocks, scope.k..=MAX_BLOCKS as u64, note)?;
        if self.effective_snr != EffectiveSnr::Eesm && self.eesm_beta != Self::default().eesm_beta {
            let problem = "has no effect here: it is for radio.ofdma.effective_snr = \"eesm\"";
            return Err(ConfigError::new("eesm_beta", problem));
        }
        number("eesm_beta", self.eesm_beta, |beta| beta > 0.0, "a finite number above 0")
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

/// Who gets which resource block (`radio.ofdma.assign`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Assign {
    /// Again and again the device with the fewest bits for its weight takes its best free block (ties to the
    /// lower index), until none is free.
    #[default]
    Greedy,
    /// One block each, so that the bits of all together are the most; weights do not matter.
    Hungarian,
    /// As many blocks each, side by side, one more for the first ones; neither weights nor gains matter.
    Contiguous,
}

/// What a device sends with in each of its blocks (`radio.ofdma.power`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BlockPower {
    /// The same.
    #[default]
    Equal,
    /// What makes the sum of their capacities largest: (μ − 1/γ_k)⁺ of its power, γ_k the SNR of block k with
    /// all of it and μ such that the parts add up to 1.
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

/// The band has N resource blocks of n/N symbols in a round; device m has the blocks S_m, sends in all of
/// them all the round long, with P/|S_m| in each, or by [`BlockPower::Waterfilling`].
///
/// One code runs over all blocks of a device. Its SNR is the one whose capacity is the mean of theirs:
/// log2(1+γ) = mean over k in S_m of log2(1 + γ_m·g_mk·N/|S_m|), with γ_m the SNR over the whole band and
/// g_mk the gain of block k relative to the mean; R_m = b(γ, |S_m|·n/N). For Shannon's rate this is the sum
/// of the capacities of the blocks. [`EffectiveSnr::Eesm`] has another SNR, after Sionna's
/// `effective_sinr.py`; its β is fitted to each modulation (about 1.5 for QPSK, several times that for
/// 64-QAM, as we read it).
///
/// Invariants: a block has at most one device; greedy and contiguous leave none free; with flat gains and
/// many blocks shares are those of [`Fdma`](super::Fdma) up to a block for each device. A block more can
/// lower the bits of a device at very low SNR, since its power is then spread over one more; no block is
/// returned. With whole slots a block has ⌊n/N⌋ symbols.
///
/// A grant has the SNR of its blocks, and does not name them: a device that sends in the place of another one
/// is counted with the mean over all blocks, and a link that is r times better has r times that SNR. A fixed
/// payload takes the bits for weights; each device then sends until it is done.
///
/// ```
/// use fedlink::radio::access::{Access, Band, Ofdma, Uplink};
/// use fedlink::radio::rate::Shannon;
/// use fedlink::units::{Bits, Power};
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
    /// Who gets which.
    pub assign: Assign,
    /// What a device sends with in each of its blocks.
    pub power: BlockPower,
    /// β of the exponential effective SNR; none: by capacity.
    pub eesm_beta: Option<f64>,
    /// Whether a block has a real or a whole number of symbols.
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

/// μ with Σ (μ − 1/(s·g_k))⁺ = 1 over these gains: those that are under water are left out until none is.
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

    /// How many blocks these symbols are.
    fn count(&self, symbols: f64, band: Band) -> usize {
        let each = self.block_symbols(band);
        // What is a whole number of blocks but for rounding counts as one.
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

    /// Whether neither power is equal nor the SNR that of the mean capacity.
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

    /// The blocks of each device. Devices whose links carry nothing get none, as long as one carries
    /// something; else all get as many.
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
mod tests {
    use super::super::tests::{BAND, SHANNON, link};
    use super::*;
    use crate::radio::access::Fdma;
    use crate::radio::rate::{FiniteBlocklength, Rate};
    use crate::rng::{Purpose, stream};
    use toml::Table;

    fn ofdma(blocks: usize, assign: Assign) -> Ofdma {
        Ofdma { blocks, assign, ..Ofdma::default() }
    }

    /// Exponential gains of `blocks` blocks.
    fn gains(blocks: usize, device: u64) -> Vec<f64> {
        let mut stream = stream(5, Purpose::Test, 0, device);
        (0..blocks).map(|_| stream.exponential()).collect()
    }

    #[test]
    fn flat_gains_and_many_blocks_are_frequency_division_up_to_a_block_for_each_device() {
        let links = [0.3, 4.0, 40.0].map(link);
        let weights = [1.0, 2.0, 1.5];
        let truth = Fdma::default().grant(&weights, &links, &BAND);
        for blocks in [100, 1000, 5000] {
            let grants = ofdma(blocks, Assign::Greedy).grant(&weights, &links, &BAND);
            for (grant, truth) in grants.iter().zip(&truth) {
                // A device takes a block only while it is behind, so it is at most one ahead, and what the
                // others are ahead is missing to it.
                let ahead = (grant.symbols.0 - truth.symbols.0) / 5000.0 * blocks as f64;
                assert!((-2.0..=1.0).contains(&ahead), "{blocks} blocks: {grant:?}, not {truth:?}");
                let bits = (grant.budget.0 / truth.budget.0 - 1.0).abs() * truth.symbols.0 / 5000.0;
                assert!(bits <= 1.0 / blocks as f64, "{blocks} blocks: {grant:?}, not {truth:?}");
            }
            assert!((grants.iter().map(|grant| grant.symbols.0).sum::<f64>() - 5000.0).abs() < 1e-6);
        }
    }

    #[test]
    fn the_bits_of_a_device_are_the_sum_over_its_blocks() {
        let blocks = gains(12, 1);
        let link = Uplink { blocks: &blocks, ..link(3.0) };
        let chosen = [0, 3, 4, 11];
        let expected: f64 =
            chosen.iter().map(|&k| 5000.0 / 12.0 * SHANNON.bits(3.0 * blocks[k] * 12.0 / 4.0, 1.0)).sum();
        let bits = ofdma(12, Assign::Greedy).bits_in(&link, &chosen, BAND);
        assert!((bits / expected - 1.0).abs() < 1e-12, "{bits}, not {expected}");
    }

    #[test]
    fn every_block_has_one_device_and_all_are_used() {
        let tables: Vec<Vec<f64>> = (0..5).map(|m| gains(24, m)).collect();
        let links: Vec<Uplink> = tables.iter().map(|blocks| Uplink { blocks, ..link(2.0) }).collect();
        for (assign, used) in [(Assign::Greedy, 24), (Assign::Hungarian, 5), (Assign::Contiguous, 24)] {
            let assigned = ofdma(24, assign).assigned(&[1.0, 2.0, 1.0, 0.5, 1.0], &links, BAND);
            let mut all: Vec<usize> = assigned.concat();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), used, "{assign:?}");
            assert_eq!(assigned.concat().len(), used, "{assign:?}");
        }
    }

    #[test]
    fn choosing_blocks_carries_more_than_taking_them_side_by_side() {
        let tables: Vec<Vec<f64>> = (0..4).map(|m| gains(64, m)).collect();
        let links: Vec<Uplink> = tables.iter().map(|blocks| Uplink { blocks, ..link(4.0) }).collect();
        let least = |assign| {
            let grants = ofdma(64, assign).grant(&[1.0; 4], &links, &BAND);
            grants.iter().map(|grant| grant.budget.0).fold(f64::MAX, f64::min)
        };
        assert!(least(Assign::Greedy) > 1.1 * least(Assign::Contiguous));
    }

    #[test]
    fn one_block_each_carries_the_most_in_all() {
        let tables: Vec<Vec<f64>> = (0..3).map(|m| gains(5, 10 + m)).collect();
        let links: Vec<Uplink> = tables.iter().map(|blocks| Uplink { blocks, ..link(1.5) }).collect();
        let scheme = ofdma(5, Assign::Hungarian);
        let total: f64 = scheme.grant(&[1.0; 3], &links, &BAND).iter().map(|grant| grant.budget.0).sum();
        let mut best = 0.0f64;
        for code in 0..125 {
            let [a, b, c] = [code % 5, code / 5 % 5, code / 25];
            if a != b && b != c && a != c {
                let bits = |(&block, link): (&usize, &Uplink)| scheme.bits_in(link, &[block], BAND);
                let sum = [a, b, c].iter().zip(&links).map(bits).sum();
                best = best.max(sum);
            }
        }
        assert!((total - best).abs() < 1e-9, "{total}, not {best}");
    }

    #[test]
    fn a_fixed_payload_is_carried_in_the_airtime_of_the_grant() {
        let finite = FiniteBlocklength::new(1e-3);
        let tables: Vec<Vec<f64>> = (0..3).map(|m| gains(20, m)).collect();
        let rates: [&dyn Rate; 3] = [&SHANNON, &finite, &SHANNON];
        let links: Vec<Uplink> =
            tables.iter().zip(rates).map(|(blocks, rate)| Uplink { rate, blocks, ..link(4.0) }).collect();
        for assign in [Assign::Greedy, Assign::Hungarian, Assign::Contiguous] {
            let scheme = ofdma(20, assign);
            let bits = [3000.0, 500.0, 40.0];
            let grants = scheme.payload(&bits, &links, &[0.0; 3], &BAND);
            let assigned = scheme.assigned(&bits, &links, BAND);
            for ((grant, link), (blocks, bits)) in grants.iter().zip(&links).zip(assigned.iter().zip(bits)) {
                assert_eq!(grant.budget, Bits(bits));
                let share = blocks.len() as f64 / 20.0;
                assert!((grant.symbols.0 / (grant.airtime.0 * share) - 1.0).abs() < 1e-12);
                let snr = scheme.snr(link, blocks.len(), blocks.iter().map(|&k| gain(link, k)));
                assert!((link.rate.bits(snr, grant.symbols.0) / bits - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn waterfilling_over_blocks_carries_the_most_of_all_ways_to_share_the_power() {
        for (snr, blocks) in [(3.0, [0.2, 1.7, 1.1]), (0.02, [0.0, 2.0, 1.9]), (40.0, [0.01, 0.5, 3.0])] {
            let link = Uplink { blocks: &blocks, ..link(snr) };
            let scheme = Ofdma { power: BlockPower::Waterfilling, ..ofdma(3, Assign::Greedy) };
            let bits = scheme.bits_in(&link, &[0, 1, 2], BAND);
            let equal = ofdma(3, Assign::Greedy).bits_in(&link, &[0, 1, 2], BAND);
            let steps = 400;
            let mut best = 0.0f64;
            for i in 0..=steps {
                for j in 0..=steps - i {
                    let parts = [i, j, steps - i - j].map(|part| f64::from(part) / f64::from(steps));
                    let in_block = |(gain, part): (f64, f64)| (1.0 + snr * 3.0 * gain * part).log2();
                    best = best.max(blocks.into_iter().zip(parts).map(in_block).sum::<f64>() * 5000.0 / 3.0);
                }
            }
            assert!(bits >= best * (1.0 - 1e-12) && bits <= best * 1.001, "{bits}, not {best}");
            assert!(bits >= equal, "{bits}, {equal}");
        }
        // Gains of nothing carry nothing.
        let dead = [0.0; 3];
        let scheme = Ofdma { power: BlockPower::Waterfilling, ..ofdma(3, Assign::Greedy) };
        assert_eq!(scheme.bits_in(&Uplink { blocks: &dead, ..link(1.0) }, &[0, 1, 2], BAND), 0.0);
    }

    #[test]
    fn the_exponential_effective_snr_is_the_snr_of_equal_blocks_and_at_most_the_mean() {
        let scheme = |beta| Ofdma { eesm_beta: Some(beta), ..ofdma(2, Assign::Greedy) };
        let snr = |beta, blocks: &[f64]| scheme(beta).snr_in(&Uplink { blocks, ..link(4.0) }, &[0, 1]);
        assert!((snr(1.5, &[1.0, 1.0]) - 4.0).abs() < 1e-12);
        // γ = 2 and 6: −β·ln((e^(−2/β) + e^(−6/β))/2).
        for beta in [0.5, 1.5, 7.0f64] {
            let truth = -beta * f64::midpoint((-2.0 / beta).exp(), (-6.0 / beta).exp()).ln();
            assert!((snr(beta, &[0.5, 1.5]) - truth).abs() < 1e-12 && truth < 4.0);
        }
        // Far above β the exponentials vanish; the result does not.
        let strong = scheme(1.0).snr_in(&Uplink { blocks: &[0.5, 1.5], ..link(1e6) }, &[0, 1]);
        assert!((strong - (5e5 + 2f64.ln())).abs() < 1e-6, "{strong}");
        let build = |text: &str| {
            let own: Table = text.parse().unwrap();
            let scope = Scope { k: 1, ..Scope::default() };
            ENTRY.build(&own, &scope, &SlotKind::Real).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(build("effective_snr = \"eesm\"\neesm_beta = 2"), Ok(()));
        assert!(
            build("eesm_beta = 2.0").unwrap_err().starts_with("radio.ofdma.eesm_beta: has no effect here")
        );
        let error = build("effective_snr = \"eesm\"\neesm_beta = 0.0").unwrap_err();
        assert!(
            error.starts_with("radio.ofdma.eesm_beta: is 0, but must be a finite number above 0"),
            "{error}"
        );
    }

    #[test]
    fn fewer_blocks_than_scheduled_devices_are_refused() {
        let build = |text: &str, k: u64| {
            let own: Table = text.parse().unwrap();
            let scope = Scope { k, ..Scope::default() };
            ENTRY.build(&own, &scope, &SlotKind::Real).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(build("resource_blocks = 5\nassign = \"hungarian\"", 5), Ok(()));
        let error = build("resource_blocks = 5", 6).unwrap_err();
        assert!(error.starts_with("radio.ofdma.resource_blocks: is 5, but must be in 6..=4096"), "{error}");
    }
}
