//! The conversion of stored numbers to the inputs of a model.
//!
//! Under [`Scaling::Standard`] a number x becomes (x − mean) / deviation. Mean and standard deviation
//! (divided by the count, not the count − 1) are over all training samples and all pixels of the channel.
//! A gray image or a plain vector has one channel, so all pixels have one mean and one deviation, as is
//! common practice for MNIST (0.1307 and 0.3081 there, in units of 255); a color image has three. A
//! constant channel is only shifted. Test samples are scaled with the numbers of the training set.

use serde::{Deserialize, Serialize};

use super::{Dataset, Features, Samples};

/// The scaling of stored numbers for a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scaling {
    /// Bytes are divided by 255; floats stay as they are.
    #[default]
    Unit,
    /// Minus the mean, divided by the standard deviation, per channel, over the training samples.
    Standard,
    /// Numbers stay as they are; a byte becomes 0.0 to 255.0.
    None,
}

/// A [`Scaling`] made ready for one data set.
#[derive(Clone, Debug)]
pub struct Scaler {
    features: usize,
    /// The value of byte b of channel c, at 256·c + b; one table of 256 if all channels are scaled alike.
    /// A look-up is as exact as the division, and faster.
    bytes: Vec<f32>,
    /// Mean and standard deviation of each channel of floats; empty if floats stay as they are.
    moments: Vec<(f64, f64)>,
}

impl Scaler {
    /// Measures `dataset.train` as far as `scaling` needs it.
    ///
    /// ```
    /// use fedlink::data::{Dataset, Features, Samples, Scaler, Scaling};
    /// let samples = Samples { features: Features::Bytes(vec![0, 51, 102, 255]), labels: vec![0, 1] };
    /// let (train, test) = (samples.clone(), samples);
    /// let dataset = Dataset { name: "tiny".into(), features: 2, shape: [1, 2, 1], classes: 2, train, test };
    /// let mut row = [0.0; 2];
    /// Scaler::new(&dataset, Scaling::Unit).write(&dataset.train, 1, &mut row);
    /// assert_eq!(row, [0.4, 1.0]);
    /// ```
    pub fn new(dataset: &Dataset, scaling: Scaling) -> Self {
        let every_byte = || (0..=255u8).map(f32::from);
        let (bytes, moments) = match scaling {
            Scaling::Unit => (every_byte().map(|byte| byte / 255.0).collect(), Vec::new()),
            Scaling::None => (every_byte().collect(), Vec::new()),
            Scaling::Standard => {
                let moments = moments(&dataset.train.features, dataset.shape[2].max(1));
                let scale = |&channel| every_byte().map(move |byte| standard(byte, channel));
                (moments.iter().flat_map(scale).collect(), moments)
            }
        };
        Scaler { features: dataset.features, bytes, moments }
    }

    /// The value of each byte, if it is the same in all channels.
    pub(crate) fn byte_table(&self) -> Option<&[f32; 256]> {
        self.bytes[..].try_into().ok()
    }

    /// Writes sample `i` of `samples` into `row`, one float per feature.
    ///
    /// # Panics
    /// If there is no sample `i`, or `row` is not one sample long.
    pub fn write(&self, samples: &Samples, i: usize, row: &mut [f32]) {
        assert_eq!(row.len(), self.features, "a row holds one sample");
        let range = i * self.features..(i + 1) * self.features;
        match &samples.features {
            Features::Bytes(values) => {
                let values = &values[range];
                if let Some(table) = self.byte_table() {
                    for (out, &byte) in row.iter_mut().zip(values) {
                        *out = table[usize::from(byte)];
                    }
                } else {
                    for (j, (out, &byte)) in row.iter_mut().zip(values).enumerate() {
                        *out = self.bytes[256 * (j % self.moments.len()) + usize::from(byte)];
                    }
                }
            }
            Features::Floats(values) if self.moments.is_empty() => row.copy_from_slice(&values[range]),
            Features::Floats(values) => {
                for (j, (out, &value)) in row.iter_mut().zip(&values[range]).enumerate() {
                    *out = standard(value, self.moments[j % self.moments.len()]);
                }
            }
        }
    }
}

fn standard(value: f32, (mean, deviation): (f64, f64)) -> f32 {
    ((f64::from(value) - mean) / deviation) as f32
}

/// Mean and standard deviation of each channel; a deviation of zero is given as 1.
fn moments(features: &Features, channels: usize) -> Vec<(f64, f64)> {
    let of = |channel| match features {
        Features::Bytes(values) => byte_moments(values, channel, channels),
        Features::Floats(values) => float_moments(values, channel, channels),
    };
    (0..channels)
        .map(of)
        .map(|(mean, deviation)| (mean, if deviation > 0.0 { deviation } else { 1.0 }))
        .collect()
}

/// Exact sums of integers, rounded in the last steps only.
fn byte_moments(values: &[u8], channel: usize, channels: usize) -> (f64, f64) {
    let (mut count, mut sum, mut squares) = (0u64, 0u64, 0u64);
    for &value in values.iter().skip(channel).step_by(channels) {
        count += 1;
        sum += u64::from(value);
        squares += u64::from(value) * u64::from(value);
    }
    let n = u128::from(count.max(1));
    // n²·variance = n·Σx² − (Σx)², a non-negative integer.
    let scaled = n * u128::from(squares) - u128::from(sum) * u128::from(sum);
    (sum as f64 / n as f64, (scaled as f64).sqrt() / n as f64)
}

/// Two passes: the mean, then the squared deviations. The square of any f32 fits into an f64.
fn float_moments(values: &[f32], channel: usize, channels: usize) -> (f64, f64) {
    let own = || values.iter().skip(channel).step_by(channels).map(|&value| f64::from(value));
    let count = own().count().max(1) as f64;
    let mean = own().sum::<f64>() / count;
    let variance = own().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dataset(features: Features, shape: [usize; 3]) -> Dataset {
        let size = shape.iter().product();
        let labels = vec![0; features.len() / size];
        let train = Samples { features, labels };
        Dataset { name: "custom".into(), features: size, shape, classes: 1, test: train.clone(), train }
    }

    fn rows(dataset: &Dataset, scaling: Scaling) -> Vec<f32> {
        let scaler = Scaler::new(dataset, scaling);
        let mut all = Vec::new();
        for i in 0..dataset.train.len() {
            let mut row = vec![f32::NAN; dataset.features];
            scaler.write(&dataset.train, i, &mut row);
            all.extend(row);
        }
        all
    }

    #[test]
    fn unit_divides_bytes_by_255_and_leaves_floats() {
        let bytes = dataset(Features::Bytes((0..=255).collect()), [16, 16, 1]);
        assert_eq!(
            rows(&bytes, Scaling::Unit),
            (0..=255u8).map(|b| f32::from(b) / 255.0).collect::<Vec<_>>()
        );
        let floats = dataset(Features::Floats(vec![-3.5, 1e30]), [1, 2, 1]);
        assert_eq!(rows(&floats, Scaling::Unit), [-3.5, 1e30]);
    }

    #[test]
    fn the_scaling_none_changes_no_number() {
        let bytes = dataset(Features::Bytes(vec![0, 7, 255, 1]), [1, 2, 1]);
        assert_eq!(rows(&bytes, Scaling::None), [0.0, 7.0, 255.0, 1.0]);
    }

    #[test]
    fn standard_scaling_matches_numbers_computed_by_hand() {
        // Mean 5, squared deviations 9+1+1+1+0+0+4+16 = 32 over 8, so a standard deviation of 2.
        let worked = [2u8, 4, 4, 4, 5, 5, 7, 9];
        let expected = [-1.5, -0.5, -0.5, -0.5, 0.0, 0.0, 1.0, 2.0];
        let bytes = dataset(Features::Bytes(worked.to_vec()), [2, 2, 1]);
        assert_eq!(rows(&bytes, Scaling::Standard), expected);
        let floats = dataset(Features::Floats(worked.map(f32::from).to_vec()), [2, 2, 1]);
        assert_eq!(rows(&floats, Scaling::Standard), expected);
    }

    #[test]
    fn standard_scaling_is_per_channel_and_only_shifts_a_constant_channel() {
        // Channels: (0, 2), (10, 30), (9, 9).
        let image = Features::Bytes(vec![0, 10, 9, 2, 30, 9]);
        assert_eq!(rows(&dataset(image, [1, 2, 3]), Scaling::Standard), [-1.0, -1.0, 0.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn scalings_are_written_in_lower_case() {
        for (scaling, name) in
            [(Scaling::Unit, "\"unit\""), (Scaling::Standard, "\"standard\""), (Scaling::None, "\"none\"")]
        {
            assert_eq!(serde_json::to_string(&scaling).unwrap(), name);
            assert_eq!(serde_json::from_str::<Scaling>(name).unwrap(), scaling);
        }
    }

    proptest! {
        #[test]
        fn standard_numbers_have_mean_zero_and_deviation_one_or_zero(
            pixels in prop::collection::vec(any::<u8>(), 1..60), as_floats: bool,
        ) {
            let count = pixels.len() as f64;
            let constant = pixels.iter().all(|&p| p == pixels[0]);
            let features = Features::Bytes(pixels);
            let features = if as_floats { Features::Floats(features.into_floats()) } else { features };
            let scaled = rows(&dataset(features, [1, 1, 1]), Scaling::Standard);
            let mean = scaled.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
            let square = scaled.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / count;
            prop_assert!(mean.abs() < 1e-6);
            let expected = if constant { 0.0 } else { 1.0 };
            prop_assert!((square - expected).abs() < 1e-6);
        }
    }
}
