//! TDMA: one device at a time.

use super::slots::SlotKind;
use super::split::{Curve, split};
use super::{Access, AccessFacts, Band, Grant, Uplink};
use crate::base::units::{Airtime, Bits, Power, Symbols};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::radio::rate::Energy;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Access> = Entry::of::<TdmaConfig>();

/// `[radio.tdma]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct TdmaConfig {}

impl PartConfig for TdmaConfig {
    type Part = dyn Access;
    const NAME: &'static str = "tdma";
    const MEANING: &'static str = "one device at a time over the whole band, symbols split by bit weights";

    fn facts(&self) -> AccessFacts {
        AccessFacts { one_by_one: true, ..AccessFacts::default() }
    }

    fn build(self, _: &Scope, slots: &SlotKind) -> Result<Box<dyn Access>, ConfigError> {
        Ok(Box::new(Tdma { slots: *slots }))
    }
}

/// The n symbols of a round are shared so that bits are proportional to the weights of the picks. With bits
/// in proportion to symbols, n_m = n·(w_m/C_m)/Σ_j(w_j/C_j), R_m = n_m·C_m; otherwise by [`split`].
///
/// Source: section IV of the paper, with the corrections that [`split_slots`](super::slots::split_slots)
/// names. A device sends alone in its symbols, so its airtime is their duration. Where its energy is kept it
/// sends with P·n/n_m, at most its largest power, and b_m(n_m) = n_m·log2(1 + γ·n/n_m) for Shannon's rate. A
/// fixed payload takes b_m⁻¹(bits) symbols, whenever the device is ready; the order of the devices is decided
/// elsewhere.
///
/// ```
/// use fedlink::radio::access::{Access, Band, Tdma, Uplink};
/// use fedlink::radio::rate::Shannon;
/// use fedlink::base::units::Power;
/// let link = |snr| Uplink::new(snr, Power(1.0), &Shannon {});
/// // Equal bits over links of 1 and 3 bit/symbol: the slow link gets three times the symbols.
/// let grants = Tdma::default().grant(&[1.0, 1.0], &[link(1.0), link(7.0)], &Band { symbols: 100 });
/// assert!((grants[0].symbols.0 - 75.0).abs() < 1e-9 && (grants[1].symbols.0 - 25.0).abs() < 1e-9);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Tdma {
    /// Whether shares are real or whole numbers of symbols.
    pub slots: SlotKind,
}

/// b_m of a link in slots of a round of `n` symbols.
fn curve<'a>(link: &Uplink<'a>, n: f64) -> Curve<'a> {
    let snr = link.snr.min(f64::MAX);
    if !link.energy_kept {
        return Curve::Fixed { rate: link.rate, snr };
    }
    let max_snr = link.max_power.map_or(f64::MAX, |max| (snr * (max.0 / link.power.0)).min(f64::MAX));
    // A power of zero has no ratio, but no SNR either.
    let max_snr = if max_snr.is_nan() { f64::MAX } else { max_snr };
    Curve::Spread { rate: link.rate, energy: Energy { snr, over: n, max_snr } }
}

/// The power of a device in its symbols.
fn power(link: &Uplink, symbols: f64, band: Band) -> Power {
    if !(link.energy_kept && symbols > 0.0) {
        return link.power;
    }
    let kept = link.power.0 * (band.symbols as f64 / symbols);
    Power(kept.min(link.max_power.map_or(f64::MAX, |max| max.0)))
}

fn granted(link: &Uplink, symbols: Symbols, budget: f64, band: Band) -> Grant {
    let power = power(link, symbols.0, band);
    Grant { symbols, power, airtime: Airtime(symbols.0), budget: Bits(budget), block_snr: 0.0 }
}

impl Access for Tdma {
    fn bits(&self, link: &Uplink, symbols: f64, band: &Band) -> f64 {
        curve(link, band.symbols as f64).bits(symbols)
    }

    fn carried(&self, grant: &Grant, link: &Uplink, _ratio: f64, copies: f64, band: &Band) -> f64 {
        curve(link, copies * band.symbols as f64).bits(copies * grant.symbols.0)
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
        granted(link, grant.symbols, self.bits(link, grant.symbols.0, band), *band)
    }

    fn payload(&self, bits: &[f64], links: &[Uplink], _ready: &[f64], band: &Band) -> Vec<Grant> {
        let grant = |(link, &bits): (&Uplink, &f64)| {
            let n = band.symbols as f64;
            let Some(symbols) = curve(link, n).reach(bits, n) else {
                return Grant::nothing(link.power);
            };
            let symbols = if self.slots == SlotKind::Whole { libm::ceil(symbols) } else { symbols };
            granted(link, Symbols(symbols), bits, *band)
        };
        links.iter().zip(bits).map(grant).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::slots::split_slots;
    use super::super::tests::{BAND, SHANNON, link};
    use super::*;
    use crate::radio::access::Fdma;
    use crate::radio::rate::{FiniteBlocklength, Mcs, Rate, mcs::Table};

    #[test]
    fn a_linear_rate_gives_the_slots_of_the_closed_form_to_the_last_bit() {
        let snrs = [0.3, 11.0, 160.0, 0.0, 4.2];
        let weights = [1.0, 0.25, 3.0, 1.0, 0.0];
        let links: Vec<Uplink> = snrs.iter().map(|&snr| link(snr)).collect();
        let capacities: Vec<f64> = snrs.iter().map(|&snr| SHANNON.slope(snr).unwrap()).collect();
        for slots in [SlotKind::Real, SlotKind::Whole] {
            let grants = Tdma { slots }.grant(&weights, &links, &BAND);
            let expected = split_slots(&weights, &capacities, BAND.symbols, slots);
            for ((grant, expected), capacity) in grants.iter().zip(expected).zip(&capacities) {
                assert_eq!(grant.symbols, expected);
                assert_eq!(grant.budget, Bits(expected.0 * capacity));
                assert_eq!((grant.airtime, grant.power), (Airtime(expected.0), Power(2.0)));
            }
        }
    }

    #[test]
    fn kept_energy_in_the_whole_round_is_the_plain_power_bit_for_bit() {
        let kept = Uplink { energy_kept: true, ..link(37.5) };
        let [plain, kept] = [link(37.5), kept].map(|link| Tdma::default().grant(&[1.0], &[link], &BAND)[0]);
        assert_eq!(plain, kept);
    }

    #[test]
    fn kept_energy_carries_as_much_as_frequency_division_at_the_plain_power() {
        let links = [0.2, 3.0, 50.0].map(link);
        let kept = links.map(|link| Uplink { energy_kept: true, ..link });
        let weights = [1.0, 2.0, 0.5];
        let in_time = Tdma::default().grant(&weights, &kept, &BAND);
        let in_frequency = Fdma::default().grant(&weights, &links, &BAND);
        for (a, b) in in_time.iter().zip(&in_frequency) {
            assert_eq!((a.symbols, a.budget), (b.symbols, b.budget));
            // The same energy: power times airtime.
            assert!((a.power.0 * a.airtime.0 / (b.power.0 * b.airtime.0) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn kept_energy_stops_at_the_largest_power() {
        let bounded = Uplink { energy_kept: true, max_power: Some(Power(6.0)), ..link(2.0) };
        let grants = Tdma::default().grant(&[1.0, 1.0, 1.0, 1.0], &[bounded; 4], &BAND);
        for grant in &grants {
            assert_eq!(grant.power, Power(6.0));
            let expected = grant.symbols.0 * SHANNON.slope(6.0).unwrap();
            assert!((grant.budget.0 / expected - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_fixed_payload_takes_the_symbols_that_carry_it() {
        let finite = FiniteBlocklength::new(1e-3);
        let table = Mcs::of(Table::Lte64Qam);
        let rates: [&dyn Rate; 3] = [&SHANNON, &finite, &table];
        for rate in rates {
            for energy_kept in [false, true] {
                let links = [0.0, 4.0, 4.0].map(|snr| Uplink { energy_kept, rate, ..link(snr) });
                let grants = Tdma::default().payload(&[900.0, 900.0, 0.0], &links, &[0.0; 3], &BAND);
                assert_eq!(grants[0], Grant::nothing(Power(2.0)), "a dead link carries nothing in any time");
                assert_eq!(grants[1].budget, Bits(900.0));
                let carried = Tdma::default().bits(&links[1], grants[1].symbols.0, &BAND);
                assert!((carried / 900.0 - 1.0).abs() < 1e-9, "{carried}");
                assert_eq!(grants[2].symbols, Symbols(0.0));
            }
        }
        let whole = Tdma { slots: SlotKind::Whole }.payload(&[900.0], &[link(4.0)], &[0.0], &BAND)[0];
        assert_eq!(whole.symbols, Symbols((900.0 / 5f64.log2()).ceil()));
    }
}
