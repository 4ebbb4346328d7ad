//! Uploads that are sent more than once.

use super::Rate;

/// A rate whose symbols hold up to A transmissions of one upload, each of n/A symbols: b(γ, n) is the inner
/// rate's b(γ, n/A).
///
/// Type I: a transmission that is lost is sent again and decoded alone. Loss ε of each, independently:
/// delivered with probability 1 − ε^A, after (1 − ε^A)/(1 − ε) transmissions on average.
pub struct Repeated {
    /// The rate of one transmission.
    pub rate: Box<dyn Rate>,
    /// A ≥ 1.
    pub attempts: f64,
}

impl Rate for Repeated {
    fn loses(&self) -> bool {
        self.rate.loses()
    }

    fn has_steps(&self) -> bool {
        self.rate.has_steps()
    }

    fn bits(&self, snr: f64, symbols: f64) -> f64 {
        self.rate.bits(snr, symbols / self.attempts)
    }

    fn slope(&self, snr: f64) -> Option<f64> {
        self.rate.slope(snr).map(|slope| slope / self.attempts)
    }

    /// The loss of one transmission.
    fn loss(&self, snr: f64, symbols: f64, bits: f64) -> f64 {
        self.rate.loss(snr, symbols / self.attempts, bits)
    }

    fn is_soft(&self) -> bool {
        self.rate.is_soft()
    }
}
