//! A rate that was measured.

use super::Rate;

/// A constant number of bits per symbol, whatever the SNR: a link whose rate was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSymbol(
    /// Bits per symbol.
    pub f64,
);

impl Rate for PerSymbol {
    fn bits(&self, _snr: f64, symbols: f64) -> f64 {
        symbols * self.0
    }

    fn slope(&self, _snr: f64) -> Option<f64> {
        Some(self.0)
    }
}
