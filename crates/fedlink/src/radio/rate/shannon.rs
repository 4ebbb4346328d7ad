//! Shannon capacity.

use super::{Rate, spectral_efficiency};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this rate model.
pub const ENTRY: Entry<dyn Rate> = Entry::of::<Shannon>();

/// b(γ, n) = n·log2(1+γ), the capacity of the complex Gaussian channel.
///
/// Source: the paper's C_m; the same operations as [`capacity`](crate::radio::link::capacity), so the same
/// bits. Nothing is lost. `[radio.shannon]` has no keys.
///
/// ```
/// use fedlink::radio::rate::{Rate, Shannon};
/// assert_eq!(Shannon {}.bits(15.0, 100.0), 400.0);
/// ```
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Shannon {}

impl PartConfig for Shannon {
    type Part = dyn Rate;
    const NAME: &'static str = "shannon";
    const MEANING: &'static str = "Shannon capacity: log2(1 + SNR) bits a symbol";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Rate>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Rate for Shannon {
    fn bits(&self, snr: f64, symbols: f64) -> f64 {
        symbols * spectral_efficiency(snr)
    }

    fn slope(&self, snr: f64) -> Option<f64> {
        Some(spectral_efficiency(snr))
    }

    fn gap(&self) -> Option<f64> {
        Some(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Power;
    use crate::radio::link::capacity;

    #[test]
    fn bits_are_those_of_the_capacity_to_the_last_bit() {
        for (gain, power, noise) in [(0.3, 40.0, 1.0), (1e-20, 1.0, 3.0), (4.27, 8.0, 0.7), (0.0, 1.0, 1.0)] {
            let slope = Shannon {}.slope(gain * power / noise).unwrap();
            assert_eq!(slope.to_bits(), capacity(gain, Power(power), noise).to_bits());
        }
    }
}
