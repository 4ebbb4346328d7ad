//! The common parts of all fading laws.

use super::{Blocks, Fading, Profile};
use crate::parts::{ConfigError, parts_with};

/// The largest number of antennas.
pub const MAX_ANTENNAS: usize = 1024;
/// The largest number of resource blocks.
pub const MAX_BLOCKS: usize = 4096;

/// The common parts of all laws: antennas, correlation over rounds, delay profile.
///
/// The default is one antenna, independent rounds and no profile: the laws of the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Propagation {
    /// Antennas of the server, in 1..=1024. Their gains add up; the mean gain is that of one times their
    /// number (the array gain is real and is not normalized away).
    pub antennas: usize,
    /// The dependence between the rounds of a device.
    pub memory: Memory,
    /// Delays and powers of the paths; none: the channel is flat over the band.
    pub profile: Option<Profile>,
    /// The resource blocks of the band.
    pub blocks: Blocks,
    /// The nominal time between rounds in seconds, by which a trace with times is read.
    pub period_s: Option<f64>,
}

/// The dependence of a device's fading in one round on that in others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Memory {
    /// Not at all.
    #[default]
    Independent,
    /// h(t) = ρ·h(t−1) + √(1−ρ²)·w(t): correlation ρ^k over k rounds.
    GaussMarkov {
        /// ρ, in (−1, 1).
        correlation: f64,
    },
    /// Clarke's model of a device that moves among scatterers: correlation J₀(2π·f_D·τ) over τ seconds.
    Doppler {
        /// f_D = v·f_c/c, the greatest Doppler shift in hertz.
        hertz: f64,
        /// The nominal time between rounds in seconds. Nominal, because a channel that followed the simulated
        /// clock would differ between two policies under one seed.
        period_s: f64,
    },
}

impl Default for Propagation {
    fn default() -> Self {
        Self {
            antennas: 1,
            memory: Memory::Independent,
            profile: None,
            blocks: Blocks::default(),
            period_s: None,
        }
    }
}

impl Propagation {
    /// Whether it is one antenna, independent rounds and no profile.
    pub fn is_plain(&self) -> bool {
        self.antennas == 1 && self.memory == Memory::Independent && self.profile.is_none()
    }

    /// Checks all numbers; errors name the keys of `[radio]`.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, problem: String| Err(ConfigError::new(key, problem));
        if !(1..=MAX_ANTENNAS).contains(&self.antennas) {
            let problem = format!("is {}, but must be in 1..={MAX_ANTENNAS}", self.antennas);
            return refuse("radio.antennas", problem);
        }
        match self.memory {
            Memory::GaussMarkov { correlation } if correlation.is_nan() || correlation.abs() >= 1.0 => {
                refuse("radio.correlation", format!("is {correlation}, but must lie between −1 and 1"))?;
            }
            Memory::Doppler { hertz, .. } if !(hertz.is_finite() && hertz >= 0.0) => {
                let problem = format!("gives a Doppler frequency of {hertz} Hz, but it must be at least 0");
                refuse("radio.speed_kmh", problem)?;
            }
            Memory::Doppler { period_s, .. } if !(period_s.is_finite() && period_s > 0.0) => {
                refuse("radio.period_s", format!("is {period_s}, but must be a number above 0"))?;
            }
            _ => {}
        }
        if !(1..=MAX_BLOCKS).contains(&self.blocks.count) {
            let problem = format!("is {}, but must be in 1..={MAX_BLOCKS}", self.blocks.count);
            return refuse("radio.ofdma.resource_blocks", problem);
        }
        if !(self.blocks.spacing_hz.is_finite() && self.blocks.spacing_hz >= 0.0) {
            let problem = format!("makes resource blocks {} Hz wide", self.blocks.spacing_hz);
            return refuse("radio.bandwidth_hz", problem);
        }
        match self.period_s {
            Some(period) if !(period.is_finite() && period > 0.0) => {
                refuse("radio.period_s", format!("is {period}, but must be a number above 0"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses correlation over rounds and a profile for a law without a complex amplitude; `law` is its name
    /// in a configuration, `why` says what it has instead.
    pub fn refuse_amplitudes(&self, law: &str, why: &str) -> Result<(), ConfigError> {
        let refuse = |key: &str, unset: &str| {
            let problem = format!(
                "has no effect on radio.fading = \"{law}\", {why}; unset it ({unset}), or choose {}",
                parts_with::<dyn Fading>(|facts| facts.amplitudes)
            );
            Err(ConfigError::new(key, problem))
        };
        match self.memory {
            Memory::GaussMarkov { .. } => refuse("radio.correlation", "0"),
            Memory::Doppler { .. } => refuse("radio.speed_kmh", "0"),
            Memory::Independent if self.profile.is_some() => refuse("radio.profile", "\"flat\""),
            Memory::Independent => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_plain_and_passes() {
        let plain = Propagation::default();
        assert!(plain.is_plain());
        assert_eq!(plain.check(), Ok(()));
        assert!(!Propagation { antennas: 2, ..plain.clone() }.is_plain());
        assert!(!Propagation { memory: Memory::GaussMarkov { correlation: 0.0 }, ..plain }.is_plain());
    }

    #[test]
    fn numbers_that_cannot_be_are_refused_by_the_name_of_their_key() {
        let doppler = |hertz, period_s| Memory::Doppler { hertz, period_s };
        let with = |memory| Propagation { memory, ..Propagation::default() };
        let blocks = |count, spacing_hz| Propagation {
            blocks: Blocks { count, spacing_hz },
            ..Propagation::default()
        };
        let cases = [
            (Propagation { antennas: 0, ..Propagation::default() }, "radio.antennas: is 0, but must be in 1"),
            (Propagation { antennas: 1025, ..Propagation::default() }, "radio.antennas: is 1025"),
            (with(Memory::GaussMarkov { correlation: 1.0 }), "radio.correlation: is 1, but must lie between"),
            (with(Memory::GaussMarkov { correlation: f64::NAN }), "radio.correlation: is NaN"),
            (with(doppler(-1.0, 1.0)), "radio.speed_kmh: gives a Doppler frequency of -1 Hz"),
            (with(doppler(f64::INFINITY, 1.0)), "radio.speed_kmh: gives a Doppler frequency of inf Hz"),
            (with(doppler(1.0, 0.0)), "radio.period_s: is 0, but must be a number above 0"),
            (blocks(0, 1.0), "radio.ofdma.resource_blocks: is 0"),
            (blocks(1, f64::NAN), "radio.bandwidth_hz: makes resource blocks NaN Hz wide"),
            (Propagation { period_s: Some(-1.0), ..Propagation::default() }, "radio.period_s: is -1"),
        ];
        for (propagation, problem) in cases {
            let error = propagation.check().unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}\nshould start with\n{problem}");
        }
    }
}
