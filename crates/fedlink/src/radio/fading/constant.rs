//! No fading at all.

use super::{Fading, FadingFacts, Propagation};
use crate::base::rng::Stream;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn Fading> = Entry::of::<ConstantConfig>();

/// `[radio.static]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ConstantConfig {}

impl PartConfig for ConstantConfig {
    type Part = dyn Fading;
    const NAME: &'static str = "static";
    const MEANING: &'static str = "no fading: gain 1 for every device in every round";

    fn facts(&self) -> FadingFacts {
        FadingFacts { fades: false, ..FadingFacts::GAINS }
    }

    fn build(self, _: &Scope, propagation: &Propagation) -> Result<Box<dyn Fading>, ConfigError> {
        propagation.check()?;
        propagation.refuse_amplitudes(Self::NAME, "which does not fade")?;
        Ok(match propagation.antennas {
            1 => Box::new(Constant),
            antennas => Box::new(ConstantArray { antennas }),
        })
    }
}

/// g = 1: links differ by their mean gains alone.
///
/// Invariants: mean 1, variance 0; the limit of [`Rician`](super::Rician) fading as its K-factor grows; there
/// is nothing to estimate.
#[derive(Clone, Copy, Debug)]
pub struct Constant;

impl Fading for Constant {
    fn gain(&self, _: u64, _: DeviceId) -> f64 {
        1.0
    }

    fn estimate(&self, _: u64, _: DeviceId, _: f64, _: &mut Stream) -> f64 {
        1.0
    }
}

/// g = N, the same over N antennas.
#[derive(Clone, Copy, Debug)]
struct ConstantArray {
    antennas: usize,
}

impl Fading for ConstantArray {
    fn gain(&self, _: u64, _: DeviceId) -> f64 {
        self.antennas as f64
    }

    fn estimate(&self, t: u64, device: DeviceId, _: f64, _: &mut Stream) -> f64 {
        self.gain(t, device)
    }

    fn antennas(&self) -> usize {
        self.antennas
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};
    use crate::radio::fading::Memory;
    use toml::Table;

    #[test]
    fn the_gain_is_the_number_of_antennas_and_is_estimated_exactly() {
        for antennas in [1, 8] {
            let propagation = Propagation { antennas, ..Propagation::default() };
            let fading = ENTRY.build(&Table::new(), &Scope::default(), &propagation).unwrap();
            assert_eq!((fading.gain(3, DeviceId(2)), fading.antennas()), (antennas as f64, antennas));
            let mut rng = stream(0, Purpose::CsiError, 0, 0);
            assert_eq!(fading.estimate(3, DeviceId(2), 0.5, &mut rng), antennas as f64);
        }
        let memory = Memory::GaussMarkov { correlation: 0.5 };
        let propagation = Propagation { memory, ..Propagation::default() };
        let error = ENTRY.build(&Table::new(), &Scope::default(), &propagation).err().unwrap();
        assert_eq!(error.key, "radio.correlation");
    }
}
