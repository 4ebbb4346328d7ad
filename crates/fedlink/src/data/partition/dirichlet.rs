//! Dirichlet: a random mix of classes on each device.

use super::{Draw, Partition, by_class, check_one_device, draw_distinct, stream};
use crate::base::rng::Stream;
use crate::base::units::DeviceId;
use crate::data::Dataset;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use serde::{Deserialize, Serialize};

/// The entry of this partition.
pub const ENTRY: Entry<dyn Partition> = Entry::of::<DirichletConfig>();

/// `[data.dirichlet]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct DirichletConfig {
    /// α: large values make the mixes of classes alike, small values give each device one class
    #[key(default = 0.5, range = "1e-9 ..= 1e9")]
    pub alpha: f64,
    /// number of samples of each device
    #[key(default = Sizes::Equal, allowed = "\"equal\" (B each) | \"free\" (B on average, standard deviation \
        B/√(α·classes))")]
    pub sizes: Sizes,
}

impl PartConfig for DirichletConfig {
    type Part = dyn Partition;
    const NAME: &'static str = "dirichlet";
    const MEANING: &'static str = "a mix of classes on each device ~ Dirichlet(data.dirichlet.alpha), in \
                                   amounts by data.dirichlet.sizes; devices may share samples";

    fn build(self, scope: &Scope, dataset: &Dataset) -> Result<Box<dyn Partition>, ConfigError> {
        Ok(Box::new(Dirichlet::new(&self, scope, dataset)?))
    }
}

/// The number of samples of each device (`data.dirichlet.sizes`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Sizes {
    /// B.
    #[default]
    Equal,
    /// Different numbers, B on average.
    Free,
}

/// Each device's mix of classes is drawn from the symmetric Dirichlet distribution: p ~ Dir(α, …, α) over
/// the C classes that have training samples, that is p_c = G_c/ΣG with G_c ~ Gamma(α). The label of each
/// of its samples is then drawn from p (as in Hsu, Qi and Brown, "Measuring the effects of non-identical
/// data distribution for federated visual classification", 2019), and the samples of each label uniformly
/// without replacement within the device. Devices draw independently and may share samples.
///
/// α → ∞: every device has all classes equally often, which on a balanced training set is IID; α → 0:
/// every device has one class.
///
/// - `sizes = "equal"`: B samples. When the device has taken all samples of a class, further labels are drawn
///   from p over the others.
/// - `sizes = "free"`: B·ΣG/(αC) labels, rounded, at least 1 and at most the number of training samples.
///   ΣG ~ Gamma(αC) has mean αC and does not depend on p, so the mean is B and the standard deviation
///   B/√(αC). It is the limit of dividing the samples of every class among very many devices in
///   proportion to a Dirichlet draw. A device that has taken all samples of a class gets no others in
///   their place: it is smaller, and its mix is not diluted.
pub struct Dirichlet {
    seed: u64,
    alpha: f64,
    sizes: Sizes,
    per_device: usize,
    train: usize,
    /// The training samples of each class that has any.
    by_class: Vec<Vec<u32>>,
}

impl Dirichlet {
    /// The split of `dataset` in a run of `scope`.
    pub fn new(config: &DirichletConfig, scope: &Scope, dataset: &Dataset) -> Result<Self, ConfigError> {
        check_one_device(scope, dataset)?;
        let mut by_class = by_class(dataset);
        by_class.retain(|samples| !samples.is_empty());
        Ok(Self {
            seed: scope.seed,
            alpha: config.alpha,
            sizes: config.sizes,
            per_device: scope.samples_per_device as usize,
            train: dataset.train.len(),
            by_class,
        })
    }

    /// The number of samples of each class on the device.
    fn counts(&self, stream: &mut Stream) -> Vec<usize> {
        let ln_g: Vec<f64> = self.by_class.iter().map(|_| stream.ln_gamma(self.alpha)).collect();
        let labels = match self.sizes {
            Sizes::Equal => self.per_device,
            Sizes::Free => {
                let mean = self.alpha * ln_g.len() as f64;
                let times: f64 = ln_g.iter().map(|&ln_g| libm::exp(ln_g) / mean).sum();
                ((self.per_device as f64 * times).round() as usize).clamp(1, self.train)
            }
        };
        let mut counts = vec![0; ln_g.len()];
        let mut mix = Mix::of(&ln_g, |_| true);
        for _ in 0..labels {
            let class = mix.draw(stream);
            let max = self.by_class[class].len();
            if counts[class] < max {
                counts[class] += 1;
            }
            if counts[class] == max && self.sizes == Sizes::Equal {
                mix = Mix::of(&ln_g, |class| counts[class] < self.by_class[class].len());
            }
        }
        counts
    }
}

/// Some classes, each with its share of the remaining labels.
struct Mix {
    classes: Vec<usize>,
    /// The sum of the shares up to each class.
    sums: Vec<f64>,
}

impl Mix {
    /// The `open` classes with shares proportional to exp(ln g). The shares are relative to the largest,
    /// so that they do not all underflow.
    fn of(ln_g: &[f64], open: impl Fn(usize) -> bool) -> Self {
        let classes: Vec<usize> = (0..ln_g.len()).filter(|&class| open(class)).collect();
        let largest = classes.iter().map(|&class| ln_g[class]).fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        let sums = classes
            .iter()
            .map(|&class| {
                sum += libm::exp(ln_g[class] - largest);
                sum
            })
            .collect();
        Self { classes, sums }
    }

    /// A class, drawn with probability equal to its share. At least one class must be open.
    fn draw(&self, stream: &mut Stream) -> usize {
        let last = self.sums.len() - 1;
        let point = stream.uniform() * self.sums[last];
        self.classes[self.sums.partition_point(|&sum| sum <= point).min(last)]
    }
}

impl Partition for Dirichlet {
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>) {
        samples.clear();
        let mut stream = stream(self.seed, Draw::Mix, device);
        let counts = self.counts(&mut stream);
        for (pool, count) in self.by_class.iter().zip(counts) {
            draw_distinct(&mut stream, pool.len(), count, samples, |i| pool[i]);
        }
    }

    fn size_of(&self, device: DeviceId) -> usize {
        match self.sizes {
            Sizes::Equal => self.per_device,
            Sizes::Free => self.counts(&mut stream(self.seed, Draw::Mix, device)).iter().sum(),
        }
    }
}
