//! A rate that was measured.

use super::Rate;

/// So many bits a symbol, whatever the SNR: what is known of a link whose rate was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSymbol(
    /// Bits a symbol.
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
