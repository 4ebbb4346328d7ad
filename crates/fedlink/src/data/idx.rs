//! The IDX format of MNIST, Fashion-MNIST and EMNIST, plain or gzip.
//!
//! A file is a four-byte magic number (0, 0, element type, number of dimensions), then each dimension as
//! a big-endian u32, then the elements, last dimension fastest. Images are unsigned bytes (type 8) in
//! three dimensions, labels unsigned bytes in one. The header determines the length of the file. A gzip
//! file is inflated to that length and one byte further, never beyond.
//!
//! EMNIST keeps each image with rows and columns swapped, and counts the labels of its letters from 1;
//! this reader changes neither (the [catalog](super::catalog) lets the letters start at 0).

use std::path::{Path, PathBuf};

use super::error::{DataError, Flaw, Position};
use super::source::{Content, FETCH_AGAIN, read_file};
use super::{Dataset, Features, Samples};

/// Images of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Their number, at least one.
    pub count: usize,
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
    /// `count × height × width` bytes, row by row.
    pub pixels: Vec<u8>,
}

/// The offset of the first label in an IDX label file.
pub(super) const LABELS_START: usize = 8;

/// Reads a file of images.
pub fn read_idx_images(path: &Path) -> Result<Images, DataError> {
    parse_images(&read_file(path)?).map_err(|flaw| flaw.in_file(path))
}

/// Reads a file of labels.
pub fn read_idx_labels(path: &Path) -> Result<Vec<u8>, DataError> {
    parse_labels(&read_file(path)?).map_err(|flaw| flaw.in_file(path))
}

/// Parses images from the bytes of a file, plain or gzip.
pub fn parse_images(file: &[u8]) -> Result<Images, Flaw> {
    let ([count, height, width], pixels) = parse(file, "images")?;
    Ok(Images { count, height, width, pixels })
}

/// Parses labels from the bytes of a file, plain or gzip.
pub fn parse_labels(file: &[u8]) -> Result<Vec<u8>, Flaw> {
    let ([_], labels) = parse(file, "labels")?;
    Ok(labels)
}

/// Unsigned bytes in `N` dimensions, none of them zero.
fn parse<const N: usize>(file: &[u8], what: &str) -> Result<([usize; N], Vec<u8>), Flaw> {
    let mut content = Content::new(file);
    let magic = content.take(4, "the magic number")?;
    if magic != [0, 0, 8, N as u8] {
        let found = u32::from_be_bytes([magic[0], magic[1], magic[2], magic[3]]);
        return Err(Flaw::new(
            Position::Byte(0),
            format!("the magic number is {found:#010x}, but IDX {what} start with 0x0000080{N}"),
            format!("give an IDX file of unsigned bytes in {N} dimension(s), plain or gzip"),
        ));
    }
    let header = content.take(4 * N as u64, "the dimensions")?;
    let mut dimensions = [0; N];
    let mut length = 1u64;
    for (i, bytes) in header.chunks_exact(4).enumerate() {
        let dimension = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let position = Position::Byte(4 + 4 * i as u64);
        if dimension == 0 {
            return Err(Flaw::new(position, "a dimension is zero, so the file holds nothing", FETCH_AGAIN));
        }
        length = length.checked_mul(u64::from(dimension)).ok_or_else(|| {
            Flaw::new(position, "the dimensions multiply to more than 2⁶⁴ bytes", FETCH_AGAIN)
        })?;
        dimensions[i] = dimension as usize;
    }
    let bytes = content.take(length, what)?;
    content.end()?;
    Ok((dimensions, bytes))
}

/// The four files of a data set in IDX form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdxFiles {
    /// Training images, bytes in three dimensions.
    pub train_images: PathBuf,
    /// A label for each training image.
    pub train_labels: PathBuf,
    /// Test images, of the same height and width.
    pub test_images: PathBuf,
    /// A label for each test image.
    pub test_labels: PathBuf,
}

/// The standard names of the four files, in the order of [`IdxFiles`].
pub const STANDARD_NAMES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

impl IdxFiles {
    /// Finds files of these names, each with or without `.gz`, in a folder; or the first name not found.
    pub fn find(folder: &Path, names: [&str; 4]) -> Result<Self, String> {
        let [train_images, train_labels, test_images, test_labels] = names.map(|name| {
            let plain = folder.join(name);
            let packed = folder.join(format!("{name}.gz"));
            [plain, packed].into_iter().find(|path| path.is_file()).ok_or_else(|| name.to_owned())
        });
        Ok(IdxFiles {
            train_images: train_images?,
            train_labels: train_labels?,
            test_images: test_images?,
            test_labels: test_labels?,
        })
    }

    /// Reads the four files. The greatest label determines the number of classes.
    pub fn read(&self, name: &str) -> Result<Dataset, DataError> {
        let (train_shape, train) = read_pair(&self.train_images, &self.train_labels)?;
        let (test_shape, test) = read_pair(&self.test_images, &self.test_labels)?;
        if train_shape != test_shape {
            let [height, width] = test_shape;
            let [train_height, train_width] = train_shape;
            return Err(Flaw::new(
                Position::Byte(8),
                format!(
                    "test images are {height} × {width}, but training images {train_height} × {train_width}"
                ),
                "give training and test files of one data set",
            )
            .in_file(&self.test_images));
        }
        let [height, width] = train_shape;
        Ok(Dataset::custom(name.to_owned(), [height, width, 1], train, test))
    }
}

/// Reads the four files of standard names, with or without `.gz`, from a folder.
pub fn read_idx_folder(folder: &Path, name: &str) -> Result<Dataset, DataError> {
    let files = IdxFiles::find(folder, STANDARD_NAMES).map_err(|missing| {
        Flaw::new(
            Position::Whole,
            format!("there is no file {missing} or {missing}.gz in this folder"),
            format!("the folder should hold {}, each plain or .gz", STANDARD_NAMES.join(", ")),
        )
        .in_file(folder)
    })?;
    files.read(name)
}

fn read_pair(images_path: &Path, labels_path: &Path) -> Result<([usize; 2], Samples), DataError> {
    let images = read_idx_images(images_path)?;
    let labels = read_idx_labels(labels_path)?;
    if images.count != labels.len() {
        return Err(Flaw::new(
            Position::Byte(4),
            format!("{} labels for the {} images of {}", labels.len(), images.count, images_path.display()),
            "give images and labels of one data set",
        )
        .in_file(labels_path));
    }
    Ok(([images.height, images.width], Samples { features: Features::Bytes(images.pixels), labels }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::super::test_files::{damaged, gzip, idx};
    use super::*;

    fn flaw_of(file: &[u8]) -> String {
        parse_images(file).unwrap_err().to_string()
    }

    #[test]
    fn images_and_labels_are_read_plain_or_gzip() {
        let expected = Images { count: 2, height: 1, width: 3, pixels: vec![1, 2, 3, 4, 5, 6] };
        let images = idx(&[2, 1, 3], &[1, 2, 3, 4, 5, 6]);
        let labels = idx(&[2], &[7, 0]);
        assert_eq!(parse_images(&images).unwrap(), expected);
        assert_eq!(parse_images(&gzip(&images)).unwrap(), expected);
        assert_eq!(parse_labels(&labels).unwrap(), [7, 0]);
        assert_eq!(parse_labels(&gzip(&labels)).unwrap(), [7, 0]);
    }

    #[test]
    fn each_kind_of_damage_is_named_with_its_offset() {
        let valid = idx(&[2, 1, 3], &[1, 2, 3, 4, 5, 6]);
        let long = [&valid[..], &[9]].concat();
        let cases = [
            (vec![], "byte 0: the magic number should take 4 bytes, but the file ends after 0"),
            (valid[..9].to_vec(), "byte 4: the dimensions should take 12 bytes, but the file ends after 5"),
            (valid[..20].to_vec(), "byte 16: images should take 6 bytes, but the file ends after 4"),
            (long.clone(), "byte 22: the content should end here"),
            (gzip(&long), "byte 22: the content should end here"),
            (gzip(&valid[..20]), "byte 16: images should take 6 bytes, but the file ends after 4"),
            (
                idx(&[6], &[0; 6]),
                "byte 0: the magic number is 0x00000801, but IDX images start with 0x00000803",
            ),
            (idx(&[0, 28, 28], &[]), "byte 4: a dimension is zero"),
            (idx(&[u32::MAX; 3], &[]), "byte 12: the dimensions multiply to more than 2⁶⁴ bytes"),
            (idx(&[60_000, 28, 28], &[]), "byte 16: images should take 47040000 bytes"),
            (gzip(&idx(&[60_000, 28, 28], &[])), "a gzip file of this size can hold no more than"),
            ([gzip(&valid), vec![1]].concat(), "byte 22: the gzip data is broken"),
        ];
        for (file, expected) in cases {
            let flaw = flaw_of(&file);
            assert!(flaw.contains(expected), "{flaw}\nshould contain\n{expected}");
        }
    }

    fn write_folder(folder: &Path, labels: &[u8], test_shape: [u32; 3]) {
        let [count, height, width] = test_shape;
        let test_pixels = vec![9; (count * height * width) as usize];
        let files = [
            idx(&[2, 1, 2], &[1, 2, 3, 4]),
            gzip(&idx(&[labels.len() as u32], labels)),
            idx(&test_shape, &test_pixels),
            idx(&[count], &vec![1; count as usize]),
        ];
        for ((name, gz), bytes) in STANDARD_NAMES.into_iter().zip(["", ".gz", "", ""]).zip(files) {
            fs::write(folder.join(format!("{name}{gz}")), bytes).unwrap();
        }
    }

    #[test]
    fn a_folder_of_the_four_standard_files_is_a_data_set() {
        let folder = tempfile::tempdir().unwrap();
        write_folder(folder.path(), &[0, 4], [1, 1, 2]);
        let dataset = read_idx_folder(folder.path(), "tiny").unwrap();
        assert_eq!((dataset.shape, dataset.features, dataset.classes), ([1, 2, 1], 2, 5));
        assert_eq!(dataset.train.features, Features::Bytes(vec![1, 2, 3, 4]));
        assert_eq!(dataset.train.labels, [0, 4]);
        assert_eq!(dataset.test.labels, [1]);
    }

    #[test]
    fn counts_and_shapes_that_disagree_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        write_folder(folder.path(), &[0, 4, 1], [1, 1, 2]);
        let error = read_idx_folder(folder.path(), "tiny").unwrap_err().to_string();
        assert!(error.contains("train-labels-idx1-ubyte.gz: byte 4: 3 labels for the 2 images"), "{error}");
        write_folder(folder.path(), &[0, 4], [1, 2, 2]);
        let error = read_idx_folder(folder.path(), "tiny").unwrap_err().to_string();
        assert!(error.contains("test images are 2 × 2, but training images 1 × 2"), "{error}");
        fs::remove_file(folder.path().join(STANDARD_NAMES[2])).unwrap();
        let error = read_idx_folder(folder.path(), "tiny").unwrap_err().to_string();
        assert!(error.contains("there is no file t10k-images-idx3-ubyte or"), "{error}");
    }

    proptest! {
        #[test]
        fn a_damaged_plain_file_gives_an_error_or_images_of_the_size_it_declares(
            file in damaged(idx(&[3, 2, 4], &[5; 24])),
        ) {
            if let Ok(images) = parse_images(&file) {
                prop_assert_eq!(images.pixels.len(), images.count * images.height * images.width);
                prop_assert_eq!(images.pixels.len() + 16, file.len());
            }
        }

        #[test]
        fn a_damaged_gzip_file_gives_an_error_or_labels(file in damaged(gzip(&idx(&[40], &[3; 40])))) {
            let _ = parse_images(&file);
            if let Ok(labels) = parse_labels(&file) {
                prop_assert!(!labels.is_empty());
            }
        }
    }
}
