//! Small-scale fading: laws, one file each, and their common parts (antennas, correlation over rounds,
//! delays).

crate::register! {
    /// All fading laws.
    FADINGS: dyn Fading;
    rayleigh,
    rician,
    nakagami,
    constant,
    trace,
}

pub mod contract;
pub mod estimate;
pub mod multipath;
pub mod profile;
pub mod propagation;
pub mod scatter;

pub use constant::Constant;
pub use multipath::Multipath;
pub use nakagami::Nakagami;
pub use profile::{Blocks, Profile};
pub use propagation::{Memory, Propagation};
pub use rayleigh::Rayleigh;
pub use rician::Rician;
pub use trace::TraceFading;

use crate::base::rng::Stream;
use crate::base::units::DeviceId;
use crate::parts::{Entry, Kind};

/// Small-scale fading: g = ‖h‖² over the server's antennas, of mean 1 per antenna (mean gains by device are
/// the radio's business).
///
/// Invariants: pure in (seed, t, device), so that any gain can be had alone and in any order; finite and ≥ 0.
pub trait Fading: Send + Sync {
    /// g of a device in round `t`.
    fn gain(&self, t: u64, device: DeviceId) -> f64;

    /// g at `delay_s` seconds before round `t`, where the law has continuous time: of correlated laws those
    /// with a Doppler frequency, and traces with times. None: the law is defined for rounds only.
    fn earlier(&self, _t: u64, _device: DeviceId, _delay_s: f64) -> Option<f64> {
        None
    }

    /// ĝ, the gain as the server estimates it with MMSE error `error` = ε in [0, 1): h = ĥ + e with
    /// ĥ ~ CN(0, 1−ε) and e ~ CN(0, ε) independent, and ĝ = ‖ĥ‖². The truth does not depend on ε: ĥ is drawn
    /// given h. ε = 0 gives g. The random numbers come from `rng`, which should be of
    /// [`Purpose::CsiError`](crate::base::rng::Purpose::CsiError).
    ///
    /// The default takes h for complex Gaussian ([`estimate::gaussian`]).
    fn estimate(&self, t: u64, device: DeviceId, error: f64, rng: &mut Stream) -> f64 {
        estimate::gaussian(self.gain(t, device), self.antennas(), error, rng)
    }

    /// The gain of each resource block of the band, all equal to [`gain`](Self::gain) unless the law has a
    /// delay profile. `out` has an entry for each block that the law was built for.
    fn blocks(&self, t: u64, device: DeviceId, out: &mut [f64]) {
        out.fill(self.gain(t, device));
    }

    /// h of each antenna and resource block (one where the band is flat), real and imaginary part: the sum of
    /// their squares over antennas is the gain of a block. Empty for a law of powers alone.
    fn amplitudes(&self, _t: u64, _device: DeviceId) -> Vec<[f64; 2]> {
        Vec::new()
    }

    /// Whether [`blocks`](Self::blocks) differ from one another, for as many blocks as the law was built for.
    fn fades_apart(&self) -> bool {
        false
    }

    /// Antennas of the server; their gains are summed (maximum-ratio combining).
    fn antennas(&self) -> usize {
        1
    }

    /// The quantity that [`gain`](Self::gain) is.
    fn meaning(&self) -> GainMeaning {
        GainMeaning::Gain
    }

    /// The reason why a call failed, for parts written in another language, whose calls may fail; the round
    /// then ends with it as its error.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// The quantity that the numbers of a fading law are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GainMeaning {
    /// A power gain |h|², which multiplies the mean gain of the device.
    #[default]
    Gain,
    /// A signal-to-noise ratio (linear, not dB) at the power and in the band of the measurement.
    SnrAtReference,
    /// A rate in bits per second, which replaces power, noise and rate model.
    RateBps,
}

/// Facts of a fading law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact")]
#[non_exhaustive]
pub struct FadingFacts {
    /// Whether gains change from round to round.
    pub fades: bool,
    /// Whether the law has complex amplitudes, on which speed, correlation and the delay profile act.
    pub amplitudes: bool,
    /// Whether gains come with their antennas and their correlation, so that no key of `[radio]` sets them.
    pub own_links: bool,
    /// Whether the law may give the channel between rounds ([`Fading::earlier`]).
    pub own_times: bool,
    /// Whether `radio.period_s` sets the time between its rounds.
    pub by_period: bool,
    /// Whether the density of the gain of one antenna is above 0 at 0, so that 1/g has no mean.
    pub deep_fades: bool,
    /// Whether gains have the exponential law of Rayleigh fading.
    pub exponential: bool,
}

impl Default for FadingFacts {
    fn default() -> Self {
        Self {
            fades: true,
            amplitudes: false,
            own_links: true,
            own_times: true,
            by_period: false,
            deep_fades: false,
            exponential: false,
        }
    }
}

impl FadingFacts {
    /// The facts of a law of the gain alone, with the antennas of `[radio]`.
    pub const GAINS: Self = Self {
        fades: true,
        amplitudes: false,
        own_links: false,
        own_times: false,
        by_period: false,
        deep_fades: false,
        exponential: false,
    };
    /// The facts of a law of complex amplitudes.
    pub const AMPLITUDES: Self = Self { amplitudes: true, deep_fades: true, ..Self::GAINS };
}

impl Kind for dyn Fading {
    type Material = Propagation;
    type Facts = FadingFacts;
    const PLURAL: &'static str = "fading laws";
    const KEY: &'static str = "radio.fading";
    const TABLE: &'static str = "radio";

    fn entries() -> &'static [Entry<Self>] {
        FADINGS
    }
}

#[cfg(test)]
mod tests;
