//! Tapped delay lines: the distribution of a channel's power over delays, and the resulting gains over the
//! band.

use crate::parts::ConfigError;
use std::f64::consts::TAU;

/// The largest number of taps.
pub const MAX_TAPS: usize = 24;
/// The rms delay times the width of a block from which on a block is not flat.
pub const NOT_FLAT: f64 = 0.1;
/// Names of all profiles.
pub const PROFILES: [&str; 5] = ["flat", "exponential", "tdl-a30", "tdl-b100", "tdl-c300"];

type Table = ([f64; 12], [f64; 12]);

/// Delays in ns and powers in dB of TR 38.901's short TDL models with fixed delays, as Sionna has them.
const TDL_A30: Table = (
    [0.0, 10.0, 15.0, 20.0, 25.0, 50.0, 65.0, 75.0, 105.0, 135.0, 150.0, 290.0],
    [-15.5, 0.0, -5.1, -5.1, -9.6, -8.2, -13.1, -11.5, -11.0, -16.2, -16.6, -26.2],
);
const TDL_B100: Table = (
    [0.0, 10.0, 20.0, 30.0, 35.0, 45.0, 55.0, 120.0, 170.0, 245.0, 330.0, 480.0],
    [0.0, -2.2, -0.6, -0.6, -0.3, -1.2, -5.9, -2.2, -0.8, -6.3, -7.5, -7.1],
);
const TDL_C300: Table = (
    [0.0, 65.0, 70.0, 190.0, 195.0, 200.0, 240.0, 325.0, 520.0, 1045.0, 1510.0, 2595.0],
    [-6.9, 0.0, -7.7, -2.5, -2.4, -9.9, -8.0, -6.6, -7.1, -13.0, -14.2, -16.0],
);

/// The resource blocks of a band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocks {
    /// Their number.
    pub count: usize,
    /// Δ, the width of each in hertz.
    pub spacing_hz: f64,
}

impl Default for Blocks {
    /// The whole band as one block.
    fn default() -> Self {
        Self { count: 1, spacing_hz: 0.0 }
    }
}

impl Blocks {
    /// f_k = (k − (N−1)/2)·Δ, the center of block `k` in hertz from that of the band.
    pub fn center(&self, k: usize) -> f64 {
        (k as f64 - (self.count as f64 - 1.0) / 2.0) * self.spacing_hz
    }
}

/// A tapped delay line: tap l has delay τ_l and mean power p_l.
///
/// H(f) = Σ_l h_l·e^(−j2πfτ_l) with independent h_l ~ CN(0, p_l). Invariants: 1 to 24 taps, delays finite,
/// ≥ 0 and rising (or equal), powers ≥ 0 with sum 1.
///
/// ```
/// use fedlink::radio::fading::Profile;
/// let profile = Profile::named("tdl-a30", None).unwrap().unwrap();
/// assert!((profile.rms_delay_s() - 30e-9).abs() < 0.01e-9);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    delays_s: Vec<f64>,
    powers: Vec<f64>,
}

impl Profile {
    /// Taps of these delays in seconds and powers as ratios, which are normalized to sum 1.
    pub fn new(delays_s: Vec<f64>, mut powers: Vec<f64>) -> Result<Self, ConfigError> {
        let refuse = |problem: String| Err(ConfigError::new("radio.profile", problem));
        if delays_s.len() != powers.len() || !(1..=MAX_TAPS).contains(&delays_s.len()) {
            let (delays, powers) = (delays_s.len(), powers.len());
            return refuse(format!(
                "has {delays} delays and {powers} powers, but needs 1 to {MAX_TAPS} of both"
            ));
        }
        if let Some(l) = delays_s.iter().position(|delay| !(delay.is_finite() && *delay >= 0.0)) {
            return refuse(format!("delay {l} is {} s, but must be at least 0", delays_s[l]));
        }
        if let Some(l) = delays_s.windows(2).position(|pair| pair[1] < pair[0]) {
            return refuse(format!("delay {} is less than the one before; sort the taps by delay", l + 1));
        }
        if let Some(l) = powers.iter().position(|power| !(power.is_finite() && *power >= 0.0)) {
            return refuse(format!("power {l} is {}, but must be at least 0", powers[l]));
        }
        let total: f64 = powers.iter().sum();
        if !(total.is_finite() && total > 0.0) {
            return refuse(format!("the powers sum to {total}, but need a sum above 0"));
        }
        powers.iter_mut().for_each(|power| *power /= total);
        Ok(Self { delays_s, powers })
    }

    /// Refuses a name that no profile has.
    pub fn check_name(name: &str) -> Result<(), ConfigError> {
        if PROFILES.contains(&name) {
            return Ok(());
        }
        let names = PROFILES.map(|name| format!("\"{name}\"")).join(", ");
        Err(ConfigError::new("radio.profile", format!("is \"{name}\", but must be one of {names}")))
    }

    /// Whether `radio.delay_spread_s` sets the delays of the profile of this name.
    pub fn has_free_spread(name: &str) -> bool {
        name == "exponential"
    }

    /// The profile of this name (one of [`PROFILES`]); none is `flat`. `delay_spread_s` is needed by
    /// `exponential`, and rejected by the others, whose delays are fixed.
    pub fn named(name: &str, delay_spread_s: Option<f64>) -> Result<Option<Self>, ConfigError> {
        let table = match name {
            "flat" => None,
            "tdl-a30" => Some(&TDL_A30),
            "tdl-b100" => Some(&TDL_B100),
            "tdl-c300" => Some(&TDL_C300),
            "exponential" => {
                let Some(spread) = delay_spread_s else {
                    let problem = "is needed by radio.profile = \"exponential\"; 1e-7 is a nominal value";
                    return Err(ConfigError::new("radio.delay_spread_s", problem));
                };
                return Self::exponential(spread).map(Some);
            }
            other => return Self::check_name(other).map(|()| None),
        };
        if delay_spread_s.is_some() {
            let problem =
                format!("has no effect on radio.profile = \"{name}\", whose delays are fixed; unset it");
            return Err(ConfigError::new("radio.delay_spread_s", problem));
        }
        let Some((delays_ns, powers_db)) = table else { return Ok(None) };
        let delays = delays_ns.iter().map(|delay| delay * 1e-9).collect();
        Self::new(delays, powers_db.iter().map(|db| libm::pow(10.0, db / 10.0)).collect()).map(Some)
    }

    /// p_l ∝ e^(−l/2) on 24 equally spaced taps, so spaced that the rms delay is `delay_spread_s` (about half
    /// of it; the taps left out have 6·10⁻⁶ of the power).
    pub fn exponential(delay_spread_s: f64) -> Result<Self, ConfigError> {
        if !(delay_spread_s.is_finite() && delay_spread_s >= 0.0) {
            let problem = format!("is {delay_spread_s}, but must be a number of at least 0");
            return Err(ConfigError::new("radio.delay_spread_s", problem));
        }
        let tap = |l: usize| (l as f64, libm::exp(-0.5 * l as f64));
        let (delays, powers): (Vec<f64>, Vec<f64>) = (0..MAX_TAPS).map(tap).unzip();
        let mut profile = Self::new(delays, powers)?;
        let scale = delay_spread_s / profile.rms_delay_s();
        profile.delays_s.iter_mut().for_each(|delay| *delay *= scale);
        Ok(profile)
    }

    /// The number of taps.
    pub fn taps(&self) -> usize {
        self.powers.len()
    }

    /// τ_l, in seconds.
    pub fn delays_s(&self) -> &[f64] {
        &self.delays_s
    }

    /// p_l, of sum 1.
    pub fn powers(&self) -> &[f64] {
        &self.powers
    }

    /// √(Σp_l·τ_l² − (Σp_l·τ_l)²), in seconds.
    pub fn rms_delay_s(&self) -> f64 {
        let taps = || self.powers.iter().zip(&self.delays_s);
        let mean: f64 = taps().map(|(power, delay)| power * delay).sum();
        libm::sqrt(taps().map(|(power, delay)| power * (delay - mean) * (delay - mean)).sum())
    }

    /// The rms delay times the width of a block, if it is so large (0.1 and more) that the channel is not
    /// flat within a block: the gain at its center then does not represent it, which deserves a warning.
    pub fn not_flat_within(&self, blocks: &Blocks) -> Option<f64> {
        let product = self.rms_delay_s() * blocks.spacing_hz;
        (product >= NOT_FLAT).then_some(product)
    }

    /// e^(−j2πf_kτ_l), block by block, the taps of a block side by side.
    pub(super) fn phasors(&self, blocks: &Blocks) -> Vec<[f64; 2]> {
        let phasor = |k: usize, delay: f64| {
            let (sin, cos) = libm::sincos(TAU * blocks.center(k) * delay);
            [cos, -sin]
        };
        (0..blocks.count).flat_map(|k| self.delays_s.iter().map(move |&delay| phasor(k, delay))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_sum_to_one_and_rms_delays_are_those_of_the_tables() {
        for (name, spread, rms_ns) in [
            ("tdl-a30", None, 30.00),
            ("tdl-b100", None, 100.37),
            ("tdl-c300", None, 300.29),
            ("exponential", Some(129e-9), 129.0),
        ] {
            let profile = Profile::named(name, spread).unwrap().unwrap();
            assert!((profile.powers().iter().sum::<f64>() - 1.0).abs() < 1e-15, "{name}");
            assert!(
                (profile.rms_delay_s() * 1e9 - rms_ns).abs() < 0.005,
                "{name}: {}",
                profile.rms_delay_s()
            );
        }
        assert_eq!(Profile::named("flat", None), Ok(None));
    }

    #[test]
    fn the_exponential_profile_falls_by_e_over_about_its_delay_spread() {
        let profile = Profile::exponential(1.0).unwrap();
        let [p0, .., last] = *profile.powers() else { panic!("more than one tap") };
        let decay = profile.delays_s()[23] / (p0 / last).ln();
        assert!((decay - 1.0).abs() < 0.02, "{decay}");
        assert!(Profile::exponential(0.0).unwrap().delays_s().iter().all(|delay| *delay == 0.0));
    }

    #[test]
    fn blocks_lie_symmetrically_around_the_center_of_the_band() {
        let blocks = Blocks { count: 4, spacing_hz: 180e3 };
        assert_eq!([0, 1, 2, 3].map(|k| blocks.center(k)), [-270e3, -90e3, 90e3, 270e3]);
        assert_eq!(Blocks { count: 3, spacing_hz: 1.0 }.center(1), 0.0);
    }

    #[test]
    fn a_block_wider_than_a_tenth_of_the_inverse_delay_is_not_flat() {
        let profile = Profile::named("tdl-c300", None).unwrap().unwrap();
        assert_eq!(profile.not_flat_within(&Blocks { count: 50, spacing_hz: 180e3 }), None);
        let product = profile.not_flat_within(&Blocks { count: 5, spacing_hz: 1e6 }).unwrap();
        assert!((product - 0.300_29).abs() < 1e-5);
    }

    #[test]
    fn impossible_profiles_are_refused_with_the_remedy() {
        let error = |name, spread| Profile::named(name, spread).unwrap_err().to_string();
        assert!(
            error("tdl-d", None)
                .contains("is \"tdl-d\", but must be one of \"flat\", \"exponential\", \"tdl-a30\"")
        );
        assert!(error("exponential", None).starts_with("radio.delay_spread_s: is needed"));
        assert!(error("exponential", Some(-1.0)).contains("must be a number of at least 0"));
        assert!(error("tdl-a30", Some(1e-7)).contains("whose delays are fixed; unset it"));
        let error = |delays: &[f64], powers: &[f64]| {
            Profile::new(delays.to_vec(), powers.to_vec()).unwrap_err().problem
        };
        assert!(error(&[], &[]).contains("has 0 delays and 0 powers"));
        assert!(error(&[0.0; 25], &[1.0; 25]).contains("has 25 delays"));
        assert!(error(&[0.0, 2.0, 1.0], &[1.0; 3]).contains("delay 2 is less than the one before"));
        assert!(error(&[-1.0], &[1.0]).contains("delay 0 is -1 s"));
        assert!(error(&[0.0], &[f64::NAN]).contains("power 0 is NaN"));
        assert!(error(&[0.0], &[0.0]).contains("the powers sum to 0"));
    }
}
