//! Quantity: every device draws a different number of samples, uniformly from the training set.

use super::{
    Draw, Partition, Sharing, check_disjoint, check_one_device, draw_distinct, random_order, stream,
};
use crate::base::units::DeviceId;
use crate::data::Dataset;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this partition.
pub const ENTRY: Entry<dyn Partition> = Entry::of::<QuantityConfig>();

/// `[data.quantity]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct QuantityConfig {
    /// σ of the log-normal sizes
    #[key(default = 0.5, range = "0 ..= 5 (0: all have B)")]
    pub spread: f64,
    /// whether two devices may hold the same sample
    #[key(default = Sharing::Disjoint, allowed = "\"disjoint\" (M·B ≤ training set) | \"overlapping\"")]
    pub sharing: Sharing,
}

impl PartConfig for QuantityConfig {
    type Part = dyn Partition;
    const NAME: &'static str = "quantity";
    const MEANING: &'static str = "as iid, in log-normal amounts of spread data.quantity.spread";

    fn build(self, scope: &Scope, dataset: &Dataset) -> Result<Box<dyn Partition>, ConfigError> {
        Ok(Box::new(Quantity::new(&self, scope, dataset)?))
    }
}

/// IID samples in log-normal amounts: X_m = exp(σZ_m − σ²/2), Z_m standard normal, has mean 1, and σ is
/// `spread`.
///
/// - `sharing = "overlapping"`: device m has 1 + (B−1)·X_m samples, rounded, which is B on average, and
///   at most the size of the training set (which lowers the average if it cuts a device). They are drawn
///   from the whole training set.
/// - `"disjoint"`: device m has 1 + (B−1)·X_m/X̄ samples, where X̄ is the mean over the M devices: the
///   M·B samples of [`super::Iid`], divided in proportion. The sizes add up to exactly M·B; rounding
///   moves each by at most one.
///
/// At σ = 0 both are [`super::Iid`], sample for sample.
pub struct Quantity {
    seed: u64,
    per_device: usize,
    spread: f64,
    train: usize,
    disjoint: Option<Disjoint>,
}

/// There are at most as many disjoint devices as training samples, so the table is no larger than the
/// set.
struct Disjoint {
    /// One random order of the training set.
    order: Vec<u32>,
    /// Device m has the entries `cuts[m]..cuts[m + 1]` of it.
    cuts: Vec<u32>,
}

impl Quantity {
    /// The split of `dataset` in a run of `scope`.
    pub fn new(config: &QuantityConfig, scope: &Scope, dataset: &Dataset) -> Result<Self, ConfigError> {
        let (seed, spread, train) = (scope.seed, config.spread, dataset.train.len());
        let (devices, per_device) = (scope.devices as u32, scope.samples_per_device as usize);
        let disjoint = match config.sharing {
            Sharing::Overlapping => {
                check_one_device(scope, dataset)?;
                None
            }
            Sharing::Disjoint => {
                check_disjoint(scope, dataset, "data.quantity")?;
                let cuts = cuts(seed, spread, devices, per_device);
                Some(Disjoint { order: random_order(seed, train), cuts })
            }
        };
        Ok(Self { seed, per_device, spread, train, disjoint })
    }
}

/// X_m, the size of device m as a multiple of the mean.
fn amount(seed: u64, spread: f64, device: DeviceId) -> f64 {
    let z = stream(seed, Draw::Size, device).normal();
    libm::exp(spread * z - 0.5 * spread * spread)
}

/// The first sample of each device: m + (B−1)·M·(X_0 + … + X_{m−1})/(X_0 + … + X_{M−1}), rounded.
fn cuts(seed: u64, spread: f64, devices: u32, per_device: usize) -> Vec<u32> {
    let mut sum = 0.0;
    let before: Vec<f64> = (0..=devices)
        .map(|m| {
            let before = sum;
            sum += amount(seed, spread, DeviceId(m));
            before
        })
        .collect();
    let total = before[devices as usize];
    let to_share = (per_device - 1) as f64 * f64::from(devices);
    (0..).zip(before).map(|(m, sum): (u32, f64)| m + (to_share * (sum / total)).round() as u32).collect()
}

impl Partition for Quantity {
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>) {
        samples.clear();
        if let Some(Disjoint { order, cuts }) = &self.disjoint {
            let (start, end) = (cuts[device.index()], cuts[device.index() + 1]);
            samples.extend_from_slice(&order[start as usize..end as usize]);
        } else {
            let mut stream = stream(self.seed, Draw::Samples, device);
            draw_distinct(&mut stream, self.train, self.size_of(device), samples, |i| i as u32);
        }
    }

    fn size_of(&self, device: DeviceId) -> usize {
        if let Some(Disjoint { cuts, .. }) = &self.disjoint {
            (cuts[device.index() + 1] - cuts[device.index()]) as usize
        } else {
            let more = (self.per_device - 1) as f64 * amount(self.seed, self.spread, device);
            // A float beyond the range of integers becomes the largest of them.
            (1usize.saturating_add(more.round() as usize)).min(self.train)
        }
    }
}
