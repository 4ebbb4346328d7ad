//! Binary CIFAR-10 from PNG images that hold the same pixels.
//!
//! An image of 1024 × 10 000 pixels holds 10 000 samples, one in each row: the 32 × 32 pixels row by row,
//! red, green and blue of each side by side. PNG is lossless, so the record of a sample, its label and then
//! its three planes, can be written again byte for byte; the digest of the whole file proves it.

use anyhow::{Context, bail};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::path::Path;

const PIXELS: usize = 32 * 32;

/// Writes the records of the images of the file `sheet` with these labels.
pub fn write_records(sheet: &Path, labels: &[u8], to: &Path) -> anyhow::Result<()> {
    let name = sheet.display();
    let file = File::open(sheet).with_context(|| format!("cannot read {name}"))?;
    let cannot = || format!("cannot write {}", to.display());
    let mut records = BufWriter::new(File::create(to).with_context(cannot)?);
    convert(&name.to_string(), BufReader::new(file), labels, &mut records)?;
    records.flush().with_context(cannot)
}

/// Writes the records of the images of `sheet`, called `name` in messages, with these labels.
pub fn convert(
    name: &str,
    sheet: impl BufRead + Seek,
    labels: &[u8],
    records: &mut impl Write,
) -> anyhow::Result<()> {
    let mut reader =
        png::Decoder::new(sheet).read_info().with_context(|| format!("{name} is not a PNG image"))?;
    let info = reader.info();
    let form = (info.color_type, info.bit_depth, info.interlaced, info.width as usize, info.height as usize);
    if form != (png::ColorType::Rgb, png::BitDepth::Eight, false, PIXELS, labels.len()) {
        bail!("{name} is not a sheet of {} images of 32 × 32 pixels, red, green and blue", labels.len());
    }
    for &label in labels {
        let row = reader.next_row().with_context(|| format!("{name} is broken"))?;
        let row = row.with_context(|| format!("{name} ends early"))?;
        let mut record = vec![label];
        for channel in 0..3 {
            record.extend(row.data().iter().skip(channel).step_by(3));
        }
        records.write_all(&record).with_context(|| format!("cannot write the records of {name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink::data::{Features, cifar};

    #[test]
    fn records_read_back_as_the_pixels_of_the_sheet() {
        let folder = tempfile::tempdir().unwrap();
        let [sheet, to] = ["sheet.png", "records.bin"].map(|name| folder.path().join(name));
        let pixels: Vec<u8> = (0..2 * 3 * PIXELS).map(|i| (i * i / 7) as u8).collect();
        let mut encoder = png::Encoder::new(File::create(&sheet).unwrap(), PIXELS as u32, 2);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        write_records(&sheet, &[3, 9], &to).unwrap();
        // The library's samples are height × width × channels, as a PNG image is.
        let samples = cifar::read_cifar(&to).unwrap();
        assert_eq!((samples.features, samples.labels), (Features::Bytes(pixels), vec![3, 9]));
        let refused = write_records(&sheet, &[3], &to).unwrap_err().to_string();
        assert!(refused.contains("not a sheet of 1 images"), "{refused}");
    }
}
