//! Losses of uploads, and repetition.

use serde::{Deserialize, Serialize};

/// The causes of lost uploads, and the number of repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Loss {
    /// m, the threshold of a loss with probability 1 − exp(−m·σ²/(P·β)); none: no such loss.
    pub threshold: Option<f64>,
    /// A, the largest number of transmissions of an upload.
    pub attempts: u64,
    /// The use of transmissions that were not decoded.
    pub combining: Combining,
}

/// The use of transmissions of an upload that were not decoded (`radio.combining`).
///
/// With R the granted bits per symbol, transmission j is decoded if and only if log2(1+γ) ≥ R,
/// log2(1+j·γ) ≥ R, or j·log2(1+γ) ≥ R; short packets are decoded at the SNR j·γ, or in j times the symbols.
/// Source: Caire and Tuninetti (2001), as we read it. Losses that do not depend on the channel
/// (`radio.mcs.loss`, `radio.loss_threshold_db`) are drawn independently for each transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Combining {
    /// They are discarded (type I).
    #[default]
    None,
    /// The same symbols are sent again, and their SNRs add up.
    Chase,
    /// Further symbols of one long code are sent, and their bits add up.
    IncrementalRedundancy,
}

impl Combining {
    /// The SNR and the length of a code after `sent` transmissions, relative to one transmission.
    pub(super) fn of(self, sent: u64) -> (f64, f64) {
        match self {
            Self::None => (1.0, 1.0),
            Self::Chase => (sent as f64, 1.0),
            Self::IncrementalRedundancy => (1.0, sent as f64),
        }
    }
}

impl Default for Loss {
    fn default() -> Self {
        Self { threshold: None, attempts: 1, combining: Combining::None }
    }
}
