//! Custom data from `NumPy`: an `.npz` archive of `x_train`, `y_train`, `x_test` and `y_test`.
//!
//! ```python
//! numpy.savez_compressed("custom.npz", x_train=…, y_train=…, x_test=…, y_test=…)
//! ```
//!
//! * `x_…` is N × F, N × height × width, or N × height × width × channels, of `uint8`, `float32` or `float64`
//!   (kept as `float32`), finite, in C order. Bytes stay bytes. Both parts have one type
//!   and one sample shape.
//! * `y_…` is N or N × 1, of any integer type, with values from 0 to 255.
//! * The greatest label determines the number of classes. Other arrays are ignored.
//!
//! All four arrays together may claim no more than deflate's greatest ratio times the archive's size,
//! which is checked before anything is inflated. The `zip` crate reads the archive itself: its
//! allocations follow the bytes present, not the claimed counts.

mod array;
mod dictionary;

use std::io::Cursor;
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use super::error::{DataError, Flaw, Position};
use super::source::{MAX_DEFLATE_RATIO, read_file, reserve};
use super::{Dataset, Features, Samples};
use crate::base::memory;
use array::{Array, Header, Kind};

/// Reads an `.npz` file as a data set named `name`.
pub fn read_npz(path: &Path, name: &str) -> Result<Dataset, DataError> {
    parse(&read_file(path)?, name).map_err(|flaw| flaw.in_file(path))
}

/// Parses the bytes of an `.npz` file as a data set named `name`.
pub fn parse(file: &[u8], name: &str) -> Result<Dataset, Flaw> {
    let archive = ZipArchive::new(Cursor::new(file)).map_err(|error| unreadable(&error))?;
    let budget = (file.len() as u64).saturating_mul(MAX_DEFLATE_RATIO);
    let mut npz = Npz { archive, budget };
    // All headers before any number: arrays that do not fit together are not unpacked.
    let shape = npz.sample_shape("x_train", "y_train")?;
    let test_shape = npz.sample_shape("x_test", "y_test")?;
    if shape != test_shape {
        return Err(whole_array(
            "x_test",
            format!("samples are {test_shape:?} (height, width, channels), but those of x_train {shape:?}"),
            "give both parts one shape",
        ));
    }
    npz.check_memory(memory::total())?;
    let train = npz.samples("x_train", "y_train")?;
    let test = npz.samples("x_test", "y_test")?;
    if std::mem::discriminant(&train.features) != std::mem::discriminant(&test.features) {
        return Err(whole_array(
            "x_test",
            "one of x_train and x_test holds bytes, the other floats",
            "save both with one type",
        ));
    }
    Ok(Dataset::custom(name.to_owned(), shape, train, test))
}

/// An array of finite numbers.
pub(crate) struct Numbers {
    /// Its dimensions, of which none is zero.
    pub shape: Vec<usize>,
    /// Its numbers in C order.
    pub values: Vec<f64>,
}

/// The numbers of an `.npy` file, at most `max` of them; `name` is for messages.
pub(crate) fn numbers_of_npy(file: &[u8], name: &str, max: u64) -> Result<Numbers, Flaw> {
    let array = Array::open(name, file)?;
    let (payload, start) = (array.payload(), array.header.start);
    if payload.checked_add(start) != Some(file.len() as u64) {
        let (shape, length) = (&array.header.shape, file.len());
        let what = format!(
            "shape {shape:?} takes {payload} bytes, but the file has {length} with its header of {start}"
        );
        return Err(whole_array(name, what, "save the array again"));
    }
    let shape = array.header.shape.clone();
    Ok(Numbers { shape, values: read_numbers(name, array, max)? })
}

/// The numbers of the arrays of an `.npz` file whose name is in `names`, in the order of `names`, at most
/// `max` numbers each.
pub(crate) fn numbers_of_npz(file: &[u8], names: &[&str], max: u64) -> Result<Vec<Option<Numbers>>, Flaw> {
    let archive = ZipArchive::new(Cursor::new(file)).map_err(|error| unreadable(&error))?;
    let budget = (file.len() as u64).saturating_mul(MAX_DEFLATE_RATIO);
    let mut npz = Npz { archive, budget };
    let read = |name: &&str| {
        if npz.archive.index_for_name(&format!("{name}.npy")).is_none() {
            return Ok(None);
        }
        let (shape, values) = npz.counted(name, |name, array| read_numbers(name, array, max))?;
        Ok(Some(Numbers { shape, values }))
    };
    names.iter().map(read).collect()
}

struct Npz<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    /// The bytes of numbers that the remaining arrays may claim.
    budget: u64,
}

impl Npz<'_> {
    /// The shape of a sample, by the headers of the samples and of their labels.
    fn sample_shape(&mut self, x: &str, y: &str) -> Result<[usize; 3], Flaw> {
        let (x_shape, ()) = self.array(x, |name, array| check_features(name, &array.header))?;
        let shape = match x_shape[..] {
            [_, length] => [1, length, 1],
            [_, height, width] => [height, width, 1],
            [_, height, width, channels] => [height, width, channels],
            _ => {
                return Err(whole_array(
                    x,
                    format!("shape {x_shape:?} is not one of samples"),
                    "save N × F, N × height × width, or N × height × width × channels numbers",
                ));
            }
        };
        let (y_shape, ()) = self.array(y, |name, array| check_labels(name, &array.header))?;
        if !matches!(y_shape[..], [_] | [_, 1]) || y_shape[0] != x_shape[0] {
            return Err(whole_array(
                y,
                format!("shape {y_shape:?} does not go with the {} samples of {x}", x_shape[0]),
                "save one label per sample",
            ));
        }
        Ok(shape)
    }

    /// Rejects samples that take more than the memory of the machine.
    fn check_memory(&mut self, memory: Option<u64>) -> Result<(), Flaw> {
        let mut bytes = 0u64;
        for name in ["x_train", "y_train", "x_test", "y_test"] {
            let (_, kept) = self.array(name, |_, array| {
                let count = array.payload() / array.header.width as u64;
                // Real numbers are kept with four bytes, the others with one.
                Ok(if array.header.kind == Kind::Float { count.saturating_mul(4) } else { count })
            })?;
            bytes = bytes.saturating_add(kept);
        }
        match memory {
            Some(memory) if bytes > memory => Err(Flaw::new(
                Position::Whole,
                format!("the samples take {bytes} bytes, and this machine has {memory} bytes of memory"),
                "use a part of the data, or a machine with more memory",
            )),
            _ => Ok(()),
        }
    }

    fn samples(&mut self, x: &str, y: &str) -> Result<Samples, Flaw> {
        let (x_shape, features) = self.counted(x, read_features)?;
        let (y_shape, labels) = self.counted(y, read_labels)?;
        debug_assert_eq!(x_shape[0], y_shape[0]);
        Ok(Samples { features, labels })
    }

    /// As [`Npz::array`], and takes the numbers of the array from the budget.
    fn counted<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str, Array<'_, &mut dyn std::io::Read>) -> Result<T, Flaw>,
    ) -> Result<(Vec<usize>, T), Flaw> {
        let mut payload = 0;
        let read = self.array(name, |name, array| {
            payload = array.payload();
            read(name, array)
        })?;
        self.budget -= payload;
        Ok(read)
    }

    /// Opens the array `name`, checks its claimed size, and reads it by `read`.
    fn array<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str, Array<'_, &mut dyn std::io::Read>) -> Result<T, Flaw>,
    ) -> Result<(Vec<usize>, T), Flaw> {
        let mut entry = match self.archive.by_name(&format!("{name}.npy")) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => {
                return Err(Flaw::new(
                    Position::Whole,
                    format!("there is no array {name}"),
                    "save x_train, y_train, x_test and y_test",
                ));
            }
            Err(error) => return Err(unreadable(&error)),
        };
        let size = entry.size();
        let array = Array::open(name, &mut entry as &mut dyn std::io::Read)?;
        let (payload, shape) = (array.payload(), array.header.shape.clone());
        if payload.checked_add(array.header.start) != Some(size) {
            let what = format!(
                "shape {shape:?} takes {payload} bytes, but the archive declares that the array has {size} \
                                with its header of {}",
                array.header.start
            );
            return Err(whole_array(name, what, "save the arrays again"));
        }
        if payload > self.budget {
            let what =
                format!("shape {shape:?} takes {payload} bytes, more than an archive of this size can hold");
            return Err(whole_array(name, what, "save the arrays again"));
        }
        Ok((shape, read(name, array)?))
    }
}

fn read_features(name: &str, array: Array<'_, &mut dyn std::io::Read>) -> Result<Features, Flaw> {
    let count = array.payload() / array.header.width as u64;
    let position = Position::Array(name.to_owned(), array.header.start);
    check_features(name, &array.header)?;
    if array.header.kind == Kind::Float {
        let mut values = reserve(count, position)?;
        array.read(|header, number| {
            values.push(header.float(number).ok_or_else(|| {
                (
                    "a number is not finite as a float32".into(),
                    format!("make {name} finite before you save it"),
                )
            })?);
            Ok(())
        })?;
        return Ok(Features::Floats(values));
    }
    let mut values = reserve(count, position)?;
    array.read(|_, number| {
        values.extend_from_slice(number);
        Ok(())
    })?;
    Ok(Features::Bytes(values))
}

fn read_numbers<R: std::io::Read>(name: &str, array: Array<'_, R>, max: u64) -> Result<Vec<f64>, Flaw> {
    let count = array.payload() / array.header.width as u64;
    if count > max {
        let what =
            format!("shape {:?} holds {count} numbers, more than the {max} allowed", array.header.shape);
        return Err(whole_array(name, what, "save a part of it"));
    }
    let mut values = reserve(count, Position::Array(name.to_owned(), array.header.start))?;
    array.read(|header, number| {
        values.push(header.double(number).ok_or_else(|| {
            ("a number is not finite".into(), format!("make {name} finite before you save it"))
        })?);
        Ok(())
    })?;
    Ok(values)
}

/// Rejects labels that are not whole numbers.
fn check_labels(name: &str, header: &Header) -> Result<(), Flaw> {
    if header.kind == Kind::Float {
        return Err(whole_array(name, "labels are floats", format!("save {name}.astype('uint8')")));
    }
    Ok(())
}

/// Rejects features of a type that is not kept.
fn check_features(name: &str, header: &Header) -> Result<(), Flaw> {
    if matches!((header.kind, header.width), (Kind::Unsigned, 1) | (Kind::Float, _)) {
        return Ok(());
    }
    Err(whole_array(
        name,
        "features are integers of more than one byte, or signed ones",
        format!("save {name}.astype('uint8') for pixels from 0 to 255, or .astype('float32')"),
    ))
}

fn read_labels(name: &str, array: Array<'_, &mut dyn std::io::Read>) -> Result<Vec<u8>, Flaw> {
    check_labels(name, &array.header)?;
    let count = array.payload() / array.header.width as u64;
    let mut labels = reserve(count, Position::Array(name.to_owned(), array.header.start))?;
    array.read(|header: &Header, number| {
        let value = header.integer(number);
        labels.push(u8::try_from(value).map_err(|_| {
            (
                format!("label {value} is not from 0 to 255"),
                "number the classes from 0, at most 256 of them".into(),
            )
        })?);
        Ok(())
    })?;
    Ok(labels)
}

fn whole_array(name: &str, what: impl Into<String>, fix: impl Into<String>) -> Flaw {
    Flaw::new(Position::Array(name.to_owned(), 0), what, fix)
}

fn unreadable(error: &ZipError) -> Flaw {
    Flaw::new(
        Position::Whole,
        format!("this is not a readable .npz archive ({error})"),
        "save the arrays with numpy.savez or numpy.savez_compressed",
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::super::test_files::damaged;
    use super::*;

    /// Written by `NumPy` 2: `savez_compressed`, `x` = uint8 `arange(24).reshape(2, 3, 4)` and its last image
    /// reversed, `y` = int64 `[3, 0]` and `[1]`.
    const BYTES: &[u8] = include_bytes!("../../../tests/data/bytes.npz");
    /// Written by `NumPy` 2: `savez`, `x` = big-endian float64 `arange(12).reshape(3, 1, 2, 2) / 8 - 1` and
    /// its first sample, `y` = uint16 `[[0], [255], [2]]` and `[[7]]`.
    const FLOATS: &[u8] = include_bytes!("../../../tests/data/floats.npz");

    fn npy(descr: &str, shape: &str, payload: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\0".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(payload);
        file
    }

    fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in arrays {
            let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
            writer.start_file(format!("{name}.npy"), options).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    /// A valid archive of two training samples and one test sample, in which one array is replaced.
    fn with(name: &str, array: &[u8]) -> Vec<u8> {
        let mut arrays = [
            ("x_train", npy("|u1", "(2, 3)", &[1, 2, 3, 4, 5, 6])),
            ("y_train", npy("|i1", "(2,)", &[0, 1])),
            ("x_test", npy("|u1", "(1, 3)", &[7, 8, 9])),
            ("y_test", npy("|u1", "(1,)", &[1])),
        ];
        arrays.iter_mut().filter(|(known, _)| *known == name).for_each(|entry| entry.1 = array.to_vec());
        npz(&arrays)
    }

    #[test]
    fn an_archive_of_bytes_by_numpy_is_read() {
        let dataset = parse(BYTES, "custom").unwrap();
        assert_eq!((dataset.shape, dataset.features, dataset.classes), ([3, 4, 1], 12, 4));
        assert_eq!(
            dataset.train,
            Samples { features: Features::Bytes((0..24).collect()), labels: vec![3, 0] }
        );
        let reversed = Features::Bytes((12..24).rev().collect());
        assert_eq!(dataset.test, Samples { features: reversed, labels: vec![1] });
    }

    #[test]
    fn an_archive_of_floats_by_numpy_is_read() {
        let dataset = parse(FLOATS, "custom").unwrap();
        assert_eq!((dataset.shape, dataset.features, dataset.classes), ([1, 2, 2], 4, 256));
        let numbers: Vec<f32> = (0..12u8).map(|i| f32::from(i) / 8.0 - 1.0).collect();
        assert_eq!(dataset.test.features, Features::Floats(numbers[..4].to_vec()));
        assert_eq!(dataset.train.features, Features::Floats(numbers));
        assert_eq!((dataset.train.labels, dataset.test.labels), (vec![0, 255, 2], vec![7]));
    }

    #[test]
    fn the_error_names_the_flaw_of_an_array() {
        let float = |value: f32| npy("<f4", "(1, 3)", &[[0; 4], [0; 4], value.to_le_bytes()].concat());
        let cases = [
            (
                with("x_train", &npy("|u1", "(6,)", &[0; 6])),
                "array x_train, byte 0: shape [6] is not one of samples",
            ),
            (with("x_train", &npy("<i8", "(2, 3)", &[0; 48])), "x_train.astype('uint8') for pixels"),
            (with("x_train", &npy("|u1", "(2, 3)", &[0; 5])), "takes 6 bytes, but the archive declares"),
            (with("x_train", &npy("|u1", "(2, 3)", &[0; 7])), "takes 6 bytes, but the archive declares"),
            (with("x_train", &npy("|u1", "(9223372036854775807, 3)", &[0; 6])), "more than can be counted"),
            (with("x_train", b"junk"), "array x_train, byte 0: 8 bytes should follow"),
            (
                with("y_train", &npy("|u1", "(3,)", &[0; 3])),
                "shape [3] does not go with the 2 samples of x_train",
            ),
            (with("y_train", &npy("|u1", "(2, 2)", &[0; 4])), "shape [2, 2] does not go with"),
            (with("y_train", &npy("|i1", "(2,)", &[0, 0xff])), "label -1 is not from 0 to 255"),
            (
                with("y_train", &npy("<u2", "(2,)", &[0, 0, 0, 1])),
                "label 256 is not from 0 to 255; number the classes",
            ),
            (with("y_test", &npy("<f4", "(1,)", &[0; 4])), "labels are floats; save y_test.astype('uint8')"),
            (with("x_test", &npy("|u1", "(1, 4)", &[0; 4])), "samples are [1, 4, 1]"),
            (with("x_test", &float(0.5)), "one of x_train and x_test holds bytes, the other floats"),
            (with("x_test", &float(f32::NAN)), "array x_test, byte 78: a number is not finite"),
            (npz(&[]), "there is no array x_train"),
            (b"PK\x03\x04 but no more".to_vec(), "not a readable .npz archive"),
            (Vec::new(), "not a readable .npz archive"),
        ];
        for (file, expected) in cases {
            let flaw = parse(&file, "custom").unwrap_err().to_string();
            assert!(flaw.contains(expected), "{flaw}\nshould contain\n{expected}");
        }
    }

    #[test]
    fn arrays_that_do_not_fit_together_or_into_memory_are_refused_before_they_are_unpacked() {
        // Its numbers are cut off, so that reading them would be another error.
        let long = npy("|u1", "(60000, 784)", &vec![0; 60_000 * 784]);
        for (name, array, problem) in [
            ("x_train", &long, "array y_train, byte 0: shape [2] does not go with the 60000 samples"),
            ("x_test", &long, "array y_test, byte 0: shape [1] does not go with the 60000 samples"),
        ] {
            let mut file = with(name, array);
            // Damage in the packed numbers.
            let middle = file.len() / 2;
            file[middle] ^= 0xff;
            assert!(parse(&file, "custom").unwrap_err().to_string().contains(problem), "{name}");
        }
        let whole = with("y_test", &npy("|u1", "(1,)", &[1]));
        let archive = ZipArchive::new(Cursor::new(&whole[..])).unwrap();
        let mut npz = Npz { archive, budget: u64::MAX };
        assert_eq!(npz.check_memory(Some(12)), Ok(()));
        let problem = npz.check_memory(Some(11)).unwrap_err().to_string();
        assert!(problem.starts_with("the samples take 12 bytes, and this machine has 11"), "{problem}");
    }

    #[test]
    fn a_flipped_bit_in_stored_numbers_fails_the_checksum() {
        let mut file = FLOATS.to_vec();
        // The first number, −1 as a big-endian float64; its last bit makes a finite neighbor.
        let number = file.windows(8).position(|bytes| bytes == (-1f64).to_be_bytes()).unwrap();
        file[number + 7] ^= 1;
        let flaw = parse(&file, "custom").unwrap_err().to_string();
        assert!(flaw.contains("array x_train") && flaw.contains("checksum"), "{flaw}");
    }

    fn check(file: &[u8]) {
        if let Ok(dataset) = parse(file, "custom") {
            for part in [&dataset.train, &dataset.test] {
                assert_eq!(part.features.len(), part.len() * dataset.features);
                assert!(part.labels.iter().all(|&label| usize::from(label) < dataset.classes));
                assert!(!part.is_empty());
            }
        }
    }

    proptest! {
        #[test]
        fn a_damaged_archive_gives_an_error_or_a_consistent_data_set(
            file in prop_oneof![damaged(BYTES.to_vec()), damaged(FLOATS.to_vec())],
        ) {
            check(&file);
        }

        #[test]
        fn a_damaged_array_in_a_sound_archive_gives_an_error_or_a_consistent_data_set(
            array in damaged(npy("<f8", "(2, 3)", &[0; 48])),
        ) {
            check(&with("x_train", &array));
            check(&with("y_train", &array));
        }
    }
}
