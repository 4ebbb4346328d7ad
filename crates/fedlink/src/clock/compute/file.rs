//! Training times of each device from a file.

use super::{Compute, ComputeMaterial, Load};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::radio::mean_gains;
use std::path::Path;

/// The entry of this model.
pub const ENTRY: Entry<dyn Compute> = Entry::of::<FileConfig>();

/// `[clock.file]`.
#[keys]
#[derive(Clone, Debug)]
pub struct FileConfig {
    /// file of the seconds that each device trains on one sample, M numbers ≥ 0 separated by white space or
    /// commas
    #[key(allowed = "a path", file)]
    pub path: String,
}

impl PartConfig for FileConfig {
    type Part = dyn Compute;
    const NAME: &'static str = "file";
    const MEANING: &'static str = "seconds of a sample on each device, from a file";

    fn build(self, scope: &Scope, _: &ComputeMaterial) -> Result<Box<dyn Compute>, ConfigError> {
        let seconds = mean_gains::read_numbers(Path::new(&self.path), scope.devices as usize)
            .map_err(|problem| ConfigError::new("path", problem))?;
        Ok(Box::new(SecondsPerSample(seconds)))
    }
}

/// t = s_m·S, with the seconds of a sample measured on each device. Inference times of public traces
/// (milliseconds per sample) are to be multiplied by 3/1000 for forward and backward.
#[derive(Clone, Debug)]
pub struct SecondsPerSample(
    /// s_m.
    pub Vec<f64>,
);

impl Compute for SecondsPerSample {
    fn seconds(&self, device: DeviceId, load: &Load) -> f64 {
        self.0[device.index()] * load.samples
    }
}
