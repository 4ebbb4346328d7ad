//! FDMA: all devices at once, each in its part of the band.

use super::slots::SlotKind;
use super::split::{Curve, root, split};
use super::{Access, Band, Grant, Uplink};
use crate::base::units::{Airtime, Bits, Symbols};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::radio::rate::Energy;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Access> = Entry::of::<FdmaConfig>();

/// `[radio.fdma]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct FdmaConfig {}

impl PartConfig for FdmaConfig {
    type Part = dyn Access;
    const NAME: &'static str = "fdma";
    const MEANING: &'static str =
        "all devices at once, each with its full power in a part of the band that is set by bit weights";

    fn build(self, _: &Scope, slots: &SlotKind) -> Result<Box<dyn Access>, ConfigError> {
        Ok(Box::new(Fdma { slots: *slots }))
    }
}

/// Device m sends for the whole round, with power P, in the share x_m of the band, that is in n_m = x_m·n
/// symbols with the noise of that share alone: b_m(n_m) = n_m·log2(1 + γ·n/n_m) for Shannon's rate, γ the SNR
/// over the whole band.
///
/// Bits are proportional to the weights, by [`split`]. Concave, at most n·γ·log2 e however wide the band. The
/// same bits as TDMA that keeps the energy; at the same power it carries more (for n_m = n/10: 7.3, 3.5, 2.3,
/// 1.9, 1.5 times at γ = 0.1, 1, 4, 10, 100) and takes n/n_m times the energy.
///
/// A fixed payload is sent in shares that make all devices finish at once, which is the least time for all:
/// Σ x_m(T) = 1 with x_m(T) the share that carries the bits between the time at which the device is ready and
/// T (after Shi, Zhou, Niu, Jiang and Geng, arXiv 2007.07174, as we read it).
///
/// ```
/// use fedlink::radio::access::{Access, Band, Fdma, Uplink};
/// use fedlink::radio::rate::Shannon;
/// use fedlink::base::units::{Airtime, Power};
/// let link = Uplink::new(1.0, Power(1.0), &Shannon {});
/// let grants = Fdma::default().grant(&[1.0, 1.0], &[link, link], &Band { symbols: 100 });
/// assert!((grants[0].budget.0 - 50.0 * 3f64.log2()).abs() < 1e-9);
/// assert_eq!(grants[0].airtime, Airtime(100.0));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Fdma {
    /// Whether shares are real or whole numbers of symbols.
    pub slots: SlotKind,
}

/// b_m of a link in shares of a band that has `n` symbols in all.
fn curve<'a>(link: &Uplink<'a>, n: f64) -> Curve<'a> {
    let energy = Energy { snr: link.snr.min(f64::MAX), over: n, max_snr: f64::MAX };
    Curve::Spread { rate: link.rate, energy }
}

fn granted(link: &Uplink, symbols: Symbols, budget: f64, band: Band) -> Grant {
    let airtime = if symbols.0 > 0.0 { band.symbols as f64 } else { 0.0 };
    Grant { symbols, power: link.power, airtime: Airtime(airtime), budget: Bits(budget), block_snr: 0.0 }
}

/// The duration of `bits` in the share `x` of the band; none if they never get through.
fn duration(link: &Uplink, bits: f64, x: f64, band: Band) -> Option<f64> {
    let snr = (link.snr / x).min(f64::MAX);
    let symbols = Curve::Fixed { rate: link.rate, snr }.reach(bits, band.symbols as f64)?;
    Some(symbols / x).filter(|duration| duration.is_finite())
}

/// The share of the band that carries `bits` in `duration`; above 1 if all of it does not.
fn share(link: &Uplink, bits: f64, duration: f64) -> f64 {
    let curve = curve(link, duration);
    if duration <= 0.0 || curve.bits(duration) < bits {
        return 2.0;
    }
    curve.inverse(bits, duration) / duration
}

impl Access for Fdma {
    fn together(&self) -> bool {
        true
    }

    fn bits(&self, link: &Uplink, symbols: f64, band: &Band) -> f64 {
        curve(link, band.symbols as f64).bits(symbols)
    }

    /// Its share of the band is that of its symbols in all that its airtime has.
    fn carried(&self, grant: &Grant, link: &Uplink, _ratio: f64, copies: f64, _band: &Band) -> f64 {
        curve(link, copies * grant.airtime.0).bits(copies * grant.symbols.0)
    }

    fn grant(&self, weights: &[f64], links: &[Uplink], band: &Band) -> Vec<Grant> {
        let curves: Vec<Curve> = links.iter().map(|link| curve(link, band.symbols as f64)).collect();
        let shares = split(weights, &curves, band.symbols, self.slots);
        let grant = |((link, curve), symbols): ((&Uplink, &Curve), Symbols)| {
            granted(link, symbols, curve.bits(symbols.0), *band)
        };
        links.iter().zip(&curves).zip(shares).map(grant).collect()
    }

    fn transfer(&self, grant: &Grant, link: &Uplink, band: &Band) -> Grant {
        let budget = self.bits(link, grant.symbols.0, band);
        Grant { power: link.power, budget: Bits(budget), ..*grant }
    }

    fn payload(&self, bits: &[f64], links: &[Uplink], ready: &[f64], band: &Band) -> Vec<Grant> {
        let mut grants: Vec<Grant> = links.iter().map(|link| Grant::nothing(link.power)).collect();
        let end_with = |m: usize, x: f64| Some(ready[m] + duration(&links[m], bits[m], x, *band)?);
        let is_able = |m: &usize| bits[*m] > 0.0 && end_with(*m, 1.0).is_some();
        let able: Vec<usize> = (0..links.len()).filter(is_able).collect();
        // In equal shares every device finishes by the latest of these times: an upper bound.
        let equal = 1.0 / able.len() as f64;
        let latest = able.iter().filter_map(|&m| end_with(m, equal)).fold(0.0, f64::max);
        let earliest = able.iter().map(|&m| ready[m]).fold(0.0, f64::max);
        let needed = |end: f64| able.iter().map(|&m| share(&links[m], bits[m], end - ready[m])).sum::<f64>();
        // The needed share falls with time; its negative rises.
        let end = if able.len() < 2 { latest } else { root(earliest, latest, -1.0, |end| -needed(end)) };
        for m in able {
            let duration = end - ready[m];
            let x = share(&links[m], bits[m], duration).min(1.0);
            grants[m] = Grant {
                symbols: Symbols(x * duration),
                power: links[m].power,
                airtime: Airtime(duration),
                budget: Bits(bits[m]),
                block_snr: 0.0,
            };
        }
        grants
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BAND, link};
    use super::*;
    use crate::radio::access::Tdma;
    use crate::radio::rate::{FiniteBlocklength, Mcs, mcs::Table};

    #[test]
    fn a_tenth_of_the_band_carries_more_than_a_tenth_of_the_time_at_one_power() {
        for (snr, times) in [(0.1, 7.3), (1.0, 3.5), (4.0, 2.3), (10.0, 1.9), (100.0, 1.5)] {
            let [frequency, time] = [&Fdma::default() as &dyn Access, &Tdma::default()]
                .map(|access| access.bits(&link(snr), 500.0, &BAND));
            assert!((frequency / time - times).abs() < 0.05, "γ = {snr}: {}", frequency / time);
        }
    }

    #[test]
    fn bits_stay_below_the_ceiling_of_the_power_and_reach_it_in_wide_bands() {
        let link = link(0.5);
        let ceiling = 5000.0 * 0.5 * std::f64::consts::LOG2_E;
        assert!(Fdma::default().bits(&link, 5000.0, &BAND) < ceiling);
        let wide = Fdma::default().bits(&link, 5000.0 * 1e7, &BAND);
        assert!((wide / ceiling - 1.0).abs() < 1e-6);
    }

    fn finish(bits: &[f64], links: &[Uplink], ready: &[f64]) -> Vec<f64> {
        let grants = Fdma::default().payload(bits, links, ready, &BAND);
        grants.iter().zip(ready).map(|(grant, ready)| ready + grant.airtime.0).collect()
    }

    #[test]
    fn devices_with_a_fixed_payload_finish_together_in_the_whole_band() {
        let finite = FiniteBlocklength::new(1e-3);
        let table = Mcs::of(Table::Lte64Qam);
        let links = [
            link(0.4),
            link(9.0),
            Uplink { rate: &finite, ..link(3.0) },
            Uplink { rate: &table, ..link(120.0) },
        ];
        let (bits, ready) = ([2000.0, 28_100.0, 500.0, 28_100.0], [0.0, 700.0, 12.0, 90.0]);
        let grants = Fdma::default().payload(&bits, &links, &ready, &BAND);
        let ends = finish(&bits, &links, &ready);
        assert!(ends.iter().all(|end| (end / ends[0] - 1.0).abs() < 1e-12 && *end >= 700.0), "{ends:?}");
        let band: f64 = grants.iter().map(|grant| grant.symbols.0 / grant.airtime.0).sum();
        assert!((band - 1.0).abs() < 1e-9, "{band}");
        for ((grant, link), bits) in grants.iter().zip(&links).zip(bits) {
            let carried = curve(link, grant.airtime.0).bits(grant.symbols.0);
            assert!((carried / bits - 1.0).abs() < 1e-9, "{carried} of {bits}");
        }
        // Less power cannot be faster.
        let weaker = links.map(|link| Uplink { snr: 0.5 * link.snr, ..link });
        assert!(finish(&bits, &weaker, &ready)[0] > ends[0]);
    }

    #[test]
    fn the_finish_time_is_that_of_an_independent_bisection() {
        let links = [0.4, 9.0, 30.0].map(link);
        let (bits, ready) = ([2000.0, 9000.0, 4000.0], [0.0, 300.0, 100.0]);
        // Time in which x·D·log2(1 + γ/x) = r, all by plain bisection.
        let needed = |end: f64| -> f64 {
            (0..3)
                .map(|m| {
                    let (mut low, mut high) = (0.0, 4.0);
                    for _ in 0..100 {
                        let x = 0.5 * (low + high);
                        let carried = x * (end - ready[m]) * (1.0 + links[m].snr / x).log2();
                        if carried < bits[m] { low = x } else { high = x }
                    }
                    high
                })
                .sum()
        };
        let (mut low, mut high) = (300.0, 1e6);
        for _ in 0..100 {
            let end = 0.5 * (low + high);
            if needed(end) > 1.0 { low = end } else { high = end }
        }
        let ends = finish(&bits, &links, &ready);
        assert!((ends[1] / high - 1.0).abs() < 1e-10, "{ends:?}, not {high}");
    }

    #[test]
    fn one_device_has_the_whole_band_and_a_dead_one_nothing() {
        let grants = Fdma::default().payload(&[100.0, 100.0], &[link(0.0), link(1.0)], &[5.0, 7.0], &BAND);
        assert_eq!(grants[0], Grant::nothing(grants[0].power));
        assert_eq!(grants[1].budget, Bits(100.0));
        assert!((grants[1].airtime.0 - 100.0).abs() < 1e-9, "{:?}", grants[1]);
        let nothing = Fdma::default().payload(&[0.0], &[link(1.0)], &[5.0], &BAND);
        assert_eq!(nothing[0].budget, Bits(0.0));
    }
}
