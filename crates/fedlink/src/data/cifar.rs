//! The binary form of CIFAR-10.
//!
//! A file is a sequence of records of 3073 bytes: one label below 10, then the image as three planes of
//! 32 × 32 bytes, red, green, blue. Samples here are height × width × channels, as everywhere in this
//! library, so the reader interleaves the planes: the three colors of a pixel are adjacent.

use std::path::Path;

use super::error::{DataError, Flaw, Position};
use super::source::{FETCH_AGAIN, read_file, reserve};
use super::{Dataset, Features, Samples};

/// The files that hold the training samples.
pub const TRAIN_FILES: [&str; 5] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
/// The file that holds the test samples.
pub const TEST_FILE: &str = "test_batch.bin";

/// Height, width and channels.
pub const SHAPE: [usize; 3] = [32, 32, 3];
/// Number of classes.
pub const CLASSES: u8 = 10;

const PLANE: usize = 32 * 32;
const RECORD: usize = 1 + 3 * PLANE;

/// Parses the bytes of one file.
pub fn parse(file: &[u8]) -> Result<Samples, Flaw> {
    if file.is_empty() {
        return Err(Flaw::new(Position::Byte(0), "the file is empty", FETCH_AGAIN));
    }
    let whole = file.len() - file.len() % RECORD;
    if whole != file.len() {
        return Err(Flaw::new(
            Position::Byte(whole as u64),
            format!("the last record has {} bytes, but a CIFAR-10 record has {RECORD}", file.len() - whole),
            FETCH_AGAIN,
        ));
    }
    let count = file.len() / RECORD;
    let mut pixels = reserve((3 * PLANE * count) as u64, Position::Whole)?;
    let mut labels = reserve(count as u64, Position::Whole)?;
    for (i, record) in file.chunks_exact(RECORD).enumerate() {
        let (label, planes) = (record[0], &record[1..]);
        if label >= CLASSES {
            return Err(Flaw::new(
                Position::Byte((i * RECORD) as u64),
                format!("label {label}, but CIFAR-10 has labels 0 to 9"),
                "give the binary form of CIFAR-10 (not CIFAR-100, nor the Python form)",
            ));
        }
        labels.push(label);
        pixels.extend((0..PLANE).flat_map(|at| [planes[at], planes[PLANE + at], planes[2 * PLANE + at]]));
    }
    Ok(Samples { features: Features::Bytes(pixels), labels })
}

/// Reads one file.
pub fn read_cifar(path: &Path) -> Result<Samples, DataError> {
    parse(&read_file(path)?).map_err(|flaw| flaw.in_file(path))
}

/// Reads the five training files and the test file from a folder.
pub fn read_cifar_folder(folder: &Path, name: &str) -> Result<Dataset, DataError> {
    let mut pixels = Vec::new();
    let mut labels = Vec::new();
    for file in TRAIN_FILES {
        let part = read_cifar(&folder.join(file))?;
        if let Features::Bytes(bytes) = part.features {
            pixels.extend(bytes);
        }
        labels.extend(part.labels);
    }
    let train = Samples { features: Features::Bytes(pixels), labels };
    let test = read_cifar(&folder.join(TEST_FILE))?;
    let features = SHAPE.iter().product();
    Ok(Dataset { name: name.to_owned(), features, shape: SHAPE, classes: CLASSES.into(), train, test })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::super::test_files::damaged;
    use super::*;

    /// A record whose byte at plane c, row y, column x is (100c + 5y + x) mod 256.
    fn record(label: u8) -> Vec<u8> {
        let mut record = vec![label];
        for c in 0..3 {
            for y in 0..32 {
                record.extend((0..32).map(|x| (100 * c + 5 * y + x) as u8));
            }
        }
        record
    }

    #[test]
    fn planes_become_pixels_of_three_colors() {
        let samples = parse(&[record(3), record(9)].concat()).unwrap();
        assert_eq!(samples.labels, [3, 9]);
        let Features::Bytes(pixels) = samples.features else { panic!("CIFAR-10 is bytes") };
        assert_eq!(pixels.len(), 2 * 3072);
        for (y, x, c) in [(0, 0, 0), (0, 0, 2), (7, 31, 1), (31, 31, 2)] {
            for sample in 0..2 {
                assert_eq!(pixels[3072 * sample + (32 * y + x) * 3 + c], (100 * c + 5 * y + x) as u8);
            }
        }
    }

    #[test]
    fn damage_is_named_with_its_offset() {
        let two = [record(3), record(10)].concat();
        for (file, expected) in [
            (&two[..0], "byte 0: the file is empty"),
            (&two[..3072], "byte 0: the last record has 3072 bytes"),
            (&two[..3074], "byte 3073: the last record has 1 bytes, but a CIFAR-10 record has 3073"),
            (&two[..], "byte 3073: label 10, but CIFAR-10 has labels 0 to 9"),
        ] {
            let flaw = parse(file).unwrap_err().to_string();
            assert!(flaw.contains(expected), "{flaw}\nshould contain\n{expected}");
        }
    }

    #[test]
    fn a_folder_joins_the_training_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for (label, file) in TRAIN_FILES.into_iter().enumerate() {
            fs::write(folder.path().join(file), record(label as u8)).unwrap();
        }
        let error = read_cifar_folder(folder.path(), "cifar10").unwrap_err().to_string();
        assert!(error.contains("test_batch.bin"), "{error}");
        fs::write(folder.path().join(TEST_FILE), record(8)).unwrap();
        let dataset = read_cifar_folder(folder.path(), "cifar10").unwrap();
        assert_eq!(dataset.train.labels, [0, 1, 2, 3, 4]);
        assert_eq!(dataset.train.features.len(), 5 * dataset.features);
        assert_eq!((dataset.test.labels, dataset.classes), (vec![8], 10));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_damaged_file_gives_an_error_or_whole_records(file in damaged([record(1), record(2)].concat())) {
            if let Ok(samples) = parse(&file) {
                prop_assert_eq!(samples.features.len(), 3072 * samples.len());
                prop_assert_eq!(3073 * samples.len(), file.len());
            }
        }
    }
}
