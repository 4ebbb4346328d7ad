//! Channel state information.

/// The quality of channel estimates at the server, and the back-off of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Csi {
    /// ε, the error of the MMSE estimates.
    pub error: f64,
    /// The age of the estimates, seconds.
    pub delay_s: f64,
    /// b ≤ 1: rates are chosen for b times the estimated SNR.
    pub backoff: f64,
}

impl Default for Csi {
    fn default() -> Self {
        Self { error: 0.0, delay_s: 0.0, backoff: 1.0 }
    }
}

impl Csi {
    /// Whether estimates equal the true gains.
    pub fn is_perfect(&self) -> bool {
        self.error == 0.0 && self.delay_s == 0.0
    }
}
