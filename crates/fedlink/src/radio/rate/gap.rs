//! Capacity with an SNR gap.

use super::{Rate, spectral_efficiency};
use crate::base::units::from_db;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this rate model.
pub const ENTRY: Entry<dyn Rate> = Entry::of::<GapConfig>();

/// `[radio.gap]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct GapConfig {
    /// SNR gap to capacity in dB: about 3 with coding, 7.43 for uncoded QAM at a bit error rate of 5e-5
    #[key(default = 3.0, range = "0 ..= 100")]
    pub db: f64,
}

impl PartConfig for GapConfig {
    type Part = dyn Rate;
    const NAME: &'static str = "gap";
    const MEANING: &'static str = "capacity at an SNR lower by radio.gap.db: log2(1 + SNR/gap) bits a symbol";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Rate>, ConfigError> {
        Ok(Box::new(Gap::from_db(self.db)))
    }
}

/// b(γ, n) = n·log2(1 + γ/Γ).
///
/// Γ ≥ 1 is a ratio. Uncoded QAM at bit error rate BER has Γ = −ln(5·BER)/1.5, as ns-3's `lte-amc.cc`
/// computes it: 5.53, or 7.43 dB, at 5e-5. Coded systems are about 3 dB away from capacity. Γ = 1 is
/// [`Shannon`](super::Shannon). Nothing is lost.
///
/// ```
/// use fedlink::radio::rate::{Gap, Rate};
/// assert_eq!(Gap { ratio: 5.0 }.bits(15.0, 100.0), 200.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// Γ, a ratio ≥ 1.
    pub ratio: f64,
}

impl Gap {
    /// A gap of `db` decibels.
    pub fn from_db(db: f64) -> Self {
        Self { ratio: from_db(db) }
    }
}

impl Rate for Gap {
    fn bits(&self, snr: f64, symbols: f64) -> f64 {
        symbols * spectral_efficiency(snr / self.ratio)
    }

    fn slope(&self, snr: f64) -> Option<f64> {
        Some(spectral_efficiency(snr / self.ratio))
    }

    fn gap(&self) -> Option<f64> {
        Some(self.ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::rate::Shannon;

    #[test]
    fn no_gap_is_capacity_and_the_gap_of_uncoded_qam_is_seven_decibels() {
        assert_eq!(Gap::from_db(0.0).bits(7.5, 33.0), Shannon {}.bits(7.5, 33.0));
        let uncoded = -(5.0 * 5e-5f64).ln() / 1.5;
        assert!((uncoded - 5.53).abs() < 0.005);
        assert!((Gap::from_db(7.43).ratio / uncoded - 1.0).abs() < 0.002);
        assert!((Gap::from_db(7.43).bits(100.0, 1.0) - (1.0 + 100.0 / uncoded).log2()).abs() < 0.003);
    }
}
