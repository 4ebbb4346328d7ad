//! Attenuated capacity between a lowest SNR and a highest rate.

use super::{Energy, Rate, spectral_efficiency};
use crate::base::units::from_db;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this rate model.
pub const ENTRY: Entry<dyn Rate> = Entry::of::<TruncatedShannonConfig>();

/// `[radio.truncated-shannon]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct TruncatedShannonConfig {
    /// share of the capacity that is reached
    #[key(default = 0.6, range = "> 0 and ≤ 1")]
    pub attenuation: f64,
    /// bits a symbol at high SNR
    #[key(default = 4.4, range = "> 0 and ≤ 100")]
    pub max_bits: f64,
    /// SNR in dB below which nothing can be sent
    #[key(default = -10.0, range = "-100 ..= 100")]
    pub min_snr_db: f64,
}

impl PartConfig for TruncatedShannonConfig {
    type Part = dyn Rate;
    const NAME: &'static str = "truncated-shannon";
    const MEANING: &'static str =
        "a share of the capacity, up to radio.truncated-shannon.max_bits a symbol, nothing below an SNR";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Rate>, ConfigError> {
        Ok(Box::new(TruncatedShannon {
            attenuation: self.attenuation,
            max_bits: self.max_bits,
            min_snr: from_db(self.min_snr_db),
        }))
    }
}

/// b(γ, n) = n·min(α·log2(1+γ), S_max) for γ ≥ γ_min, otherwise 0.
///
/// Source: 3GPP TR 36.942; its downlink values α = 0.6, S_max = 4.4, γ_min = −10 dB as public simulators have
/// them are the defaults. Its uplink values, as we read it, are 0.4, 2.0 and −10 dB. Nothing is lost.
///
/// ```
/// use fedlink::radio::rate::{Rate, TruncatedShannon};
/// let rate = TruncatedShannon { attenuation: 0.5, max_bits: 3.0, min_snr: 0.1 };
/// assert_eq!([0.05, 15.0, 1e6].map(|snr| rate.bits(snr, 10.0)), [0.0, 20.0, 30.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TruncatedShannon {
    /// α, above 0, at most 1.
    pub attenuation: f64,
    /// S_max, bits per symbol.
    pub max_bits: f64,
    /// γ_min, a ratio.
    pub min_snr: f64,
}

impl TruncatedShannon {
    /// Bits per symbol at an SNR of at least γ_min.
    fn efficiency(&self, snr: f64) -> f64 {
        (self.attenuation * spectral_efficiency(snr)).min(self.max_bits)
    }
}

impl Rate for TruncatedShannon {
    fn bits(&self, snr: f64, symbols: f64) -> f64 {
        if snr < self.min_snr { 0.0 } else { symbols * self.efficiency(snr) }
    }

    fn slope(&self, snr: f64) -> Option<f64> {
        Some(self.bits(snr, 1.0))
    }

    /// Up to E/γ_min symbols, more symbols carry more bits; further ones stay empty.
    fn spread(&self, energy: &Energy, symbols: f64) -> f64 {
        if energy.max_snr < self.min_snr || symbols <= 0.0 || energy.snr <= 0.0 {
            return 0.0;
        }
        let used = symbols.min(energy.symbols_at(self.min_snr));
        // Rounding must not put the last symbol below the threshold.
        if used > 0.0 { used * self.efficiency(energy.snr_in(used).max(self.min_snr)) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWNLINK: TruncatedShannon = TruncatedShannon { attenuation: 0.6, max_bits: 4.4, min_snr: 0.1 };

    #[test]
    fn the_rate_is_a_share_of_capacity_between_the_two_bounds() {
        assert_eq!(DOWNLINK.bits(0.099, 1000.0), 0.0);
        assert!((DOWNLINK.bits(0.1, 1.0) - 0.6 * 1.1f64.log2()).abs() < 1e-15);
        assert!((DOWNLINK.bits(31.0, 1.0) - 3.0).abs() < 1e-14);
        // The bound is reached where 0.6·log2(1+γ) = 4.4, at 22.05 dB.
        let corner = (4.4f64 / 0.6).exp2() - 1.0;
        assert!((10.0 * corner.log10() - 22.05).abs() < 0.03, "{}", 10.0 * corner.log10());
        assert!(DOWNLINK.bits(corner * 0.99, 1.0) < 4.4);
        assert_eq!(DOWNLINK.bits(corner * 1.01, 1.0), 4.4);
    }

    #[test]
    fn energy_is_not_spread_below_the_lowest_snr() {
        let energy = Energy { snr: 5.0, over: 1.0, max_snr: f64::MAX };
        let threshold = 5.0 / 0.1;
        let most = DOWNLINK.spread(&energy, threshold);
        assert!((most - threshold * 0.6 * 1.1f64.log2()).abs() < 1e-12);
        assert_eq!(DOWNLINK.spread(&energy, 10.0 * threshold), most);
        let weak = Energy { max_snr: 0.05, ..energy };
        assert_eq!(DOWNLINK.spread(&weak, threshold), 0.0, "its power never reaches the lowest SNR");
    }
}
