//! The embedded data set `digits`: generated images that need no file and no network.
//!
//! An image is generated in five steps, from one random stream of its own:
//! 1. The label is drawn uniformly from 0..10, then one of the digit's forms (a 4 may be open or closed,
//!    a 7 barred or not, …). A form is a list of pen strokes through a few knots.
//! 2. Every knot moves a little. A cubic curve joins the knots of a stroke, with random rounding of
//!    corners and ends that may fall short.
//! 3. A smooth random displacement field (a cubic B-spline over a 5 × 5 lattice) bends the curve; slant,
//!    stretch and rotation follow.
//! 4. The result is scaled so that its ink fits a box of about 20 pixels. Its center of mass is moved
//!    near the middle of the image, and its ink is at least one pixel from the edge.
//! 5. A round pen with random pressure along the stroke draws it in white on black with soft edges; then
//!    pixels lose a little ink at random.
//!
//! Every machine generates the same bytes: the arithmetic is IEEE addition, multiplication, division and
//! square root in a written order, sine, cosine and exponential come from `libm`, and no image depends on
//! another.
//!
//! # How hard it is
//! Measured with an independent implementation on exactly these bytes (the tests pin their digest):
//! pixels in 0..=1, Glorot initialization, Adam with learning rate 10⁻³, batch 64, all 60 000 images.
//!
//! | model | epochs | test accuracy | training accuracy |
//! |---|---|---|---|
//! | softmax regression | 10 | 88.6 % | 90.2 % |
//! | softmax regression | 50 | 88.9 % | 90.8 % |
//! | 784→256→10, `ReLU` | 10 | 97.8 % | 99.5 % |
//! | 784→256→10, `ReLU` | 30 | 97.8 % | 99.7 % |
//!
//! The same code on MNIST, with batch 256, gives 92.5 % (softmax regression, 15 epochs) and 97.9 % (the
//! other, 10 epochs).

mod hand;
mod render;
mod skeletons;

use crate::base::parallel::prelude::*;

use self::skeletons::FORMS;
use super::{Dataset, Features, Samples};
use crate::base::rng::{Purpose, stream};

/// Pixels along a side of an image.
const SIDE: usize = 28;
/// Bytes of an image.
const FEATURES: usize = SIDE * SIDE;
/// The seed of every image; another seed would make another data set.
const SEED: u64 = 0xD161_7500;

/// 60 000 training and 10 000 test images of digits that look handwritten, 28 × 28 gray bytes each.
///
/// ```
/// let digits = fedlink::data::digits::digits();
/// assert_eq!(digits.train.labels.len(), 60_000);
/// assert_eq!(digits.test.features.len(), 10_000 * 28 * 28);
/// ```
pub fn digits() -> Dataset {
    Dataset {
        name: "digits".into(),
        features: FEATURES,
        shape: [SIDE, SIDE, 1],
        classes: FORMS.len(),
        train: split(0, 60_000),
        test: split(1, 10_000),
    }
}

/// The first `count` images of a split.
fn split(number: u64, count: usize) -> Samples {
    let mut pixels = vec![0; count * FEATURES];
    let mut labels = vec![0; count];
    pixels.par_chunks_mut(FEATURES).zip(&mut labels).enumerate().for_each(|(i, (image, label))| {
        let mut random = stream(SEED, Purpose::Digits, number, i as u64);
        let digit = random.below(FORMS.len() as u64) as usize;
        *label = digit as u8;
        hand::draw(digit, &mut random, image);
    });
    Samples { features: Features::Bytes(pixels), labels }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fmt::Write;
    use std::sync::OnceLock;

    use sha2::{Digest, Sha256};

    use super::*;

    fn all() -> &'static Dataset {
        static ALL: OnceLock<Dataset> = OnceLock::new();
        ALL.get_or_init(digits)
    }

    fn pixels(samples: &Samples) -> &[u8] {
        samples.image(0, samples.features.len()).expect("digits are bytes")
    }

    fn images() -> impl Iterator<Item = &'static [u8]> {
        pixels(&all().train).chunks_exact(FEATURES).chain(pixels(&all().test).chunks_exact(FEATURES))
    }

    /// SHA-256 over all pixels and then all labels.
    fn digest(samples: &Samples) -> String {
        let bytes = Sha256::new().chain_update(pixels(samples)).chain_update(&samples.labels).finalize();
        bytes.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a string takes all that is written to it");
            hex
        })
    }

    #[test]
    fn the_bytes_are_those_of_the_measured_accuracies() {
        assert_eq!(digest(&all().train), "5a6c61dcbda06c119da22c16c06e7346136424e62b1a80baed75af2f5cdca71f");
        assert_eq!(digest(&all().test), "f2cb618b95090d7717b1ed30fc55e49f24d77cb36be72ff8b5b1f875ec1fca6b");
    }

    #[test]
    fn one_thread_and_two_threads_draw_the_same_bytes() {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
            pool.install(|| split(1, 10_000))
        };
        assert_eq!(with(1), with(2));
    }

    #[test]
    fn an_image_does_not_depend_on_the_number_of_images() {
        let few = split(0, 25);
        assert_eq!(pixels(&few), &pixels(&all().train)[..25 * FEATURES]);
        assert_eq!(few.labels, all().train.labels[..25]);
    }

    #[test]
    fn sizes_are_as_stated_and_classes_are_equally_frequent() {
        assert_eq!((all().features, all().shape, all().classes), (784, [28, 28, 1], 10));
        for (samples, count) in [(&all().train, 60_000), (&all().test, 10_000)] {
            assert_eq!((samples.labels.len(), pixels(samples).len()), (count, count * FEATURES));
            let mut counts = [0_u32; 10];
            samples.labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
            let expected = count as f64 / 10.0;
            let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
            assert!(chi2 < 33.7, "χ² = {chi2} on 9 degrees of freedom (p < 1e-4): {counts:?}");
        }
    }

    #[test]
    fn between_15_and_25_percent_of_the_pixels_have_ink() {
        for samples in [&all().train, &all().test] {
            let inked = pixels(samples).iter().filter(|&&byte| byte > 0).count();
            let density = inked as f64 / pixels(samples).len() as f64;
            assert!((0.15..0.25).contains(&density), "density {density}");
        }
    }

    #[test]
    fn no_image_is_blank_or_faint_or_touches_the_edge() {
        for (i, image) in images().enumerate() {
            let inked = image.iter().filter(|&&byte| byte > 0).count();
            assert!(inked >= 30, "image {i} has {inked} inked pixels");
            assert!(image.iter().any(|&byte| byte >= 128), "image {i} is faint");
            for at in 0..SIDE {
                let edge = [at, FEATURES - SIDE + at, at * SIDE, at * SIDE + SIDE - 1];
                assert!(edge.iter().all(|&pixel| image[pixel] == 0), "image {i} touches the edge");
            }
        }
    }

    #[test]
    fn no_two_of_the_seventy_thousand_images_are_equal() {
        assert_eq!(images().collect::<HashSet<_>>().len(), 70_000);
    }
}
