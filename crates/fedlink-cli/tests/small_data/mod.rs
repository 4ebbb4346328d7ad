//! A small data set for tests of the command: to draw the 70 000 embedded digits takes longer than the runs
//! themselves.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The name of the data set in the folder that it was written to.
pub const NAME: &str = "small.npz";

/// Classes, as many as digits have.
const CLASSES: usize = 10;
/// Pixels of an image, as many as a digit has, so that models are of the same size.
const PIXELS: usize = 28 * 28;

/// Writes [`NAME`] to `folder`: 800 images for training and 200 for tests, ten classes in turn. The image of
/// a class has bright lines at a distance of its own, behind dots that differ from image to image.
pub fn write(folder: &Path) {
    let mut file = ZipWriter::new(File::create(folder.join(NAME)).unwrap());
    let plain = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut put = |name: &str, shape: &str, bytes: &[u8]| {
        let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({shape}), }}\n");
        file.start_file(format!("{name}.npy"), plain).unwrap();
        file.write_all(b"\x93NUMPY\x01\x00").unwrap();
        file.write_all(&u16::try_from(header.len()).unwrap().to_le_bytes()).unwrap();
        file.write_all(header.as_bytes()).unwrap();
        file.write_all(bytes).unwrap();
    };
    let mut dots = 1_u32;
    for (split, count) in [("train", 800), ("test", 200)] {
        let (mut images, mut labels) = (Vec::with_capacity(count * PIXELS), Vec::with_capacity(count));
        for label in (0..CLASSES).cycle().take(count) {
            labels.push(label as u8);
            images.extend((0..PIXELS).map(|pixel| {
                dots = dots.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let line = if (pixel + label).is_multiple_of(label + 4) { 128 } else { 0 };
                if dots >> 30 == 0 { line + (dots >> 24) as u8 } else { line }
            }));
        }
        put(&format!("x_{split}"), &format!("{count}, 28, 28"), &images);
        put(&format!("y_{split}"), &format!("{count},"), &labels);
    }
    file.finish().unwrap();
}
