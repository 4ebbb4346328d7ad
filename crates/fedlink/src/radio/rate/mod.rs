//! Rate models: the bits that a number of symbols carries at an SNR, one file each.

crate::register! {
    /// All rate models.
    RATES: dyn Rate;
    shannon,
    gap,
    truncated_shannon,
    finite_blocklength,
    mcs,
}

mod per_symbol;
mod repeated;

pub use finite_blocklength::FiniteBlocklength;
pub use gap::Gap;
pub use mcs::Mcs;
pub use per_symbol::PerSymbol;
pub use repeated::Repeated;
pub use shannon::Shannon;
pub use truncated_shannon::TruncatedShannon;

use crate::parts::{Entry, Kind};

/// A rate model: b(γ, n), the bits that n complex symbols carry at SNR γ (a ratio, not dB).
///
/// Invariants, for finite γ ≥ 0 and n ≥ 0: b is finite, ≥ 0, non-decreasing in γ and in n, and at most
/// n·log2(1+γ), the capacity.
pub trait Rate: Send + Sync {
    /// b(γ, n).
    fn bits(&self, snr: f64, symbols: f64) -> f64;

    /// Bits per symbol at this SNR, if bits are proportional to the symbols: then b(γ, n) is n times this, to
    /// the last bit.
    fn slope(&self, snr: f64) -> Option<f64>;

    /// Γ, if b(γ, n) = n·log2(1 + γ/Γ): access schemes then have closed forms.
    fn gap(&self) -> Option<f64> {
        None
    }

    /// The bits of a fixed energy spread over `symbols`: max over 0 < x ≤ n of b(γ(x), x), with γ(x) the SNR
    /// that [`Energy::snr_in`] gives.
    ///
    /// Non-decreasing in the energy, the largest SNR and the symbols. A rate for which more symbols at less
    /// power each may carry less (a table of rates below its first threshold) leaves the surplus empty, hence
    /// the maximum; where b(γ(x), x) never falls in x, as for a logarithm, it is the value at x = n.
    fn spread(&self, energy: &Energy, symbols: f64) -> f64 {
        if symbols > 0.0 { self.bits(energy.snr_in(symbols), symbols) } else { 0.0 }
    }

    /// The probability that an upload of `bits` in `symbols` at this SNR is lost, with the SNR known exactly.
    fn loss(&self, _snr: f64, _symbols: f64, _bits: f64) -> f64 {
        0.0
    }

    /// Whether [`loss`](Self::loss) is above 0 for some upload.
    fn loses(&self) -> bool {
        false
    }

    /// Whether rates are the steps of a table.
    fn has_steps(&self) -> bool {
        false
    }

    /// Whether [`loss`](Self::loss) is also the probability for bits that the SNR is too low for; otherwise
    /// all of these are lost.
    fn is_soft(&self) -> bool {
        false
    }
}

/// An energy to be spread over a number of symbols yet to be chosen, in terms of the SNRs that it gives.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Energy {
    /// The SNR if it is spread over [`Self::over`] symbols; finite, ≥ 0.
    pub snr: f64,
    /// The number of those symbols; above 0.
    pub over: f64,
    /// The SNR at the device's largest power; `f64::MAX` if nothing bounds it.
    pub max_snr: f64,
}

impl Energy {
    /// The SNR if it is spread over `symbols`: γ·over/symbols, at most `max_snr`. Exactly γ where `symbols`
    /// is [`Self::over`].
    pub fn snr_in(&self, symbols: f64) -> f64 {
        if self.snr > 0.0 { (self.snr * (self.over / symbols)).min(self.max_snr) } else { 0.0 }
    }

    /// The number of symbols for which it lasts at this SNR.
    pub fn symbols_at(&self, snr: f64) -> f64 {
        self.over * (self.snr / snr)
    }

    /// SNR times symbols.
    pub fn total(&self) -> f64 {
        self.snr * self.over
    }
}

/// Facts of a rate model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateFacts {
    /// Whether uploads within the capacity can be lost.
    pub loses: bool,
    /// Whether bits above the capacity can arrive.
    pub is_soft: bool,
    /// Whether it is a table of rates.
    pub has_steps: bool,
}

impl Kind for dyn Rate {
    type Material = ();
    type Facts = RateFacts;
    const PROBE: Option<&'static ()> = Some(&());
    const PLURAL: &'static str = "rate models";
    const KEY: &'static str = "radio.rate";
    const TABLE: &'static str = "radio";

    fn entries() -> &'static [Entry<Self>] {
        RATES
    }

    fn facts_of(rate: &Self) -> RateFacts {
        RateFacts { loses: rate.loses(), is_soft: rate.is_soft(), has_steps: rate.has_steps() }
    }
}

/// log2(1+γ), bits per symbol: the same operations as those of [`capacity`](super::link::capacity).
pub fn spectral_efficiency(snr: f64) -> f64 {
    libm::log1p(snr) * std::f64::consts::LOG2_E
}

#[cfg(test)]
mod tests;
