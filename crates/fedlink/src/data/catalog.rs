//! The known data sets, and loading a data set by name or by path.

use std::path::{Path, PathBuf};

use super::error::{DataError, Flaw, Position};
use super::idx::{self, IdxFiles};
#[cfg(feature = "files")]
use super::npz;
use super::{Dataset, Features, Samples, cifar, csv, digits};
use crate::base::rng::{Purpose, stream};

/// A known data set.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// Its name, and the folder of its files.
    pub name: &'static str,
    /// Its description in one line.
    pub meaning: &'static str,
    /// Height, width and channels of an image.
    pub shape: [usize; 3],
    /// Number of classes.
    pub classes: usize,
    /// Number of training samples.
    pub train: usize,
    /// Number of test samples.
    pub test: usize,
    /// The files that its folder must hold.
    pub files: Files,
    /// [`Dataset::digest`] of it, if we have seen the data ourselves.
    pub digest: Option<&'static str>,
}

/// The files of a known data set.
#[derive(Clone, Copy, Debug)]
pub enum Files {
    /// None: the data set is generated.
    Embedded,
    /// IDX, each plain or with `.gz`: training images and labels, test images and labels.
    Idx {
        /// The four files.
        files: [DataFile; 4],
        /// The label of the first class in the files; it becomes 0.
        first_label: u8,
    },
    /// Binary CIFAR-10: five files of training samples, one of test samples.
    Cifar([DataFile; 6]),
}

/// One file of a known data set.
#[derive(Clone, Copy, Debug)]
pub struct DataFile {
    /// Its name, without `.gz`.
    pub name: &'static str,
    /// The SHA-256 digest of its uncompressed content, if we have seen the file ourselves.
    pub sha256: Option<&'static str>,
}

impl Files {
    /// The files, training before test.
    pub fn list(&self) -> &[DataFile] {
        match self {
            Files::Embedded => &[],
            Files::Idx { files, .. } => files,
            Files::Cifar(files) => files,
        }
    }
}

const fn known(name: &'static str, sha256: &'static str) -> DataFile {
    DataFile { name, sha256: Some(sha256) }
}

const fn unseen(name: &'static str) -> DataFile {
    DataFile { name, sha256: None }
}

/// Every known data set.
pub const CATALOG: &[Entry] = &[
    Entry {
        name: "digits",
        meaning: "drawn digits that look handwritten, 28 × 28 gray; embedded, needs no file",
        shape: [28, 28, 1],
        classes: 10,
        train: 60_000,
        test: 10_000,
        files: Files::Embedded,
        digest: None,
    },
    Entry {
        name: "mnist",
        meaning: "handwritten digits, 28 × 28 gray",
        shape: [28, 28, 1],
        classes: 10,
        train: 60_000,
        test: 10_000,
        files: Files::Idx {
            files: [
                known(
                    idx::STANDARD_NAMES[0],
                    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                ),
                known(
                    idx::STANDARD_NAMES[1],
                    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                ),
                known(
                    idx::STANDARD_NAMES[2],
                    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                ),
                known(
                    idx::STANDARD_NAMES[3],
                    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                ),
            ],
            first_label: 0,
        },
        digest: Some("463d357710cd3ab3b0e14993724e721ac384541e28b811ff492b86882fb45a7e"),
    },
    Entry {
        name: "fashion-mnist",
        meaning: "articles of clothing, 28 × 28 gray, harder than mnist and of the same form",
        shape: [28, 28, 1],
        classes: 10,
        train: 60_000,
        test: 10_000,
        files: Files::Idx {
            files: [
                known(
                    idx::STANDARD_NAMES[0],
                    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                ),
                known(
                    idx::STANDARD_NAMES[1],
                    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                ),
                known(
                    idx::STANDARD_NAMES[2],
                    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                ),
                known(
                    idx::STANDARD_NAMES[3],
                    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
                ),
            ],
            first_label: 0,
        },
        digest: Some("31785a1eb65c68e84710c5e6c85f3c0faacdf17e2c3b61ffbd1c9beb0e7b7b0c"),
    },
    Entry {
        name: "emnist-digits",
        meaning: "handwritten digits of EMNIST, 28 × 28 gray, rows and columns swapped",
        shape: [28, 28, 1],
        classes: 10,
        train: 240_000,
        test: 40_000,
        files: Files::Idx {
            files: [
                unseen("emnist-digits-train-images-idx3-ubyte"),
                unseen("emnist-digits-train-labels-idx1-ubyte"),
                unseen("emnist-digits-test-images-idx3-ubyte"),
                unseen("emnist-digits-test-labels-idx1-ubyte"),
            ],
            first_label: 0,
        },
        digest: None,
    },
    Entry {
        name: "emnist-letters",
        meaning: "handwritten letters of EMNIST, 28 × 28 gray, rows and columns swapped; a is class 0",
        shape: [28, 28, 1],
        classes: 26,
        train: 124_800,
        test: 20_800,
        files: Files::Idx {
            files: [
                unseen("emnist-letters-train-images-idx3-ubyte"),
                unseen("emnist-letters-train-labels-idx1-ubyte"),
                unseen("emnist-letters-test-images-idx3-ubyte"),
                unseen("emnist-letters-test-labels-idx1-ubyte"),
            ],
            first_label: 1,
        },
        digest: None,
    },
    Entry {
        name: "emnist-balanced",
        meaning: "handwritten digits and letters of EMNIST, 28 × 28 gray, rows and columns swapped",
        shape: [28, 28, 1],
        classes: 47,
        train: 112_800,
        test: 18_800,
        files: Files::Idx {
            files: [
                unseen("emnist-balanced-train-images-idx3-ubyte"),
                unseen("emnist-balanced-train-labels-idx1-ubyte"),
                unseen("emnist-balanced-test-images-idx3-ubyte"),
                unseen("emnist-balanced-test-labels-idx1-ubyte"),
            ],
            first_label: 0,
        },
        digest: None,
    },
    Entry {
        name: "cifar10",
        meaning: "photographs of animals and vehicles, 32 × 32 in color",
        shape: cifar::SHAPE,
        classes: 10,
        train: 50_000,
        test: 10_000,
        files: Files::Cifar([
            known(cifar::TRAIN_FILES[0], "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
            known(cifar::TRAIN_FILES[1], "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
            known(cifar::TRAIN_FILES[2], "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
            known(cifar::TRAIN_FILES[3], "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
            known(cifar::TRAIN_FILES[4], "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
            known(cifar::TEST_FILE, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
        ]),
        digest: Some("104ca86acfbd5fd8f83495646903b418ff1355cbc45699d8a1936b56d333c158"),
    },
];

/// The remedy for data that carry the name of a known data set but differ from it.
const LOAD_BY_PATH: &str = "give the folder's path to load it as custom data";

/// The data set called `name`, none if it is unknown.
pub fn entry(name: &str) -> Option<&'static Entry> {
    CATALOG.iter().find(|entry| entry.name == name)
}

/// Loads a data set.
///
/// * The name of a [`CATALOG`] entry: its files are searched in the subfolder of that name of each of
///   `search_folders`, in turn. A name takes precedence over a path: write `./mnist` for a folder of your
///   own.
/// * The path of an `.npz` file: see [`npz`].
/// * The path of a folder: the four [IDX files of standard names](idx::STANDARD_NAMES), or
///   [`train.csv` and `test.csv`](csv), or the six files of [binary CIFAR-10](cifar).
pub fn load(name_or_path: &str, search_folders: &[PathBuf]) -> Result<Dataset, DataError> {
    if let Some(entry) = entry(name_or_path) {
        return entry.load(search_folders);
    }
    let path = Path::new(name_or_path);
    if path.is_dir() {
        return load_folder(path, name_or_path);
    }
    let exists = path.try_exists().map_err(|source| DataError::Unreadable { path: path.into(), source })?;
    if !exists {
        let near = |entry: &&Entry| strsim::damerau_levenshtein(entry.name, name_or_path);
        let nearest =
            CATALOG.iter().min_by_key(near).filter(|entry| near(entry) <= 3).map(|entry| entry.name);
        let known = CATALOG.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        return Err(DataError::Unknown { name: name_or_path.to_owned(), nearest, known });
    }
    if path.extension().is_some_and(|extension| extension == "npz") {
        #[cfg(feature = "files")]
        return npz::read_npz(path, name_or_path);
        #[cfg(not(feature = "files"))]
        return Err(Flaw::new(
            Position::Whole,
            "this build does not read .npz files",
            "give a folder of plain files, or build fedlink with the feature `files`",
        )
        .in_file(path));
    }
    Err(Flaw::new(
        Position::Whole,
        "a data set is not a file of this kind",
        "give an .npz file, or the folder that holds train.csv and test.csv, or IDX or CIFAR-10 files",
    )
    .in_file(path))
}

fn load_folder(folder: &Path, name: &str) -> Result<Dataset, DataError> {
    let has = |file: &str| folder.join(file).is_file();
    let [images, ..] = idx::STANDARD_NAMES;
    if has(images) || has(&format!("{images}.gz")) {
        idx::read_idx_folder(folder, name)
    } else if has(csv::FILES[0]) {
        csv::read_csv_folder(folder, name)
    } else if has(cifar::TRAIN_FILES[0]) {
        cifar::read_cifar_folder(folder, name)
    } else {
        Err(Flaw::new(
            Position::Whole,
            format!("this folder holds neither {images}(.gz), nor train.csv, nor {}", cifar::TRAIN_FILES[0]),
            "give the folder of a data set in IDX, CSV or binary CIFAR-10 form, or an .npz file",
        )
        .in_file(folder))
    }
}

impl Entry {
    /// Generated data of its sizes, for estimates of time: drawn digits in place of 28 × 28 gray images,
    /// noise in place of others. Labels are random: nothing can be learned from them.
    pub fn stand_in(&self) -> Dataset {
        let features: usize = self.shape.iter().product();
        let digits = (features == 28 * 28).then(digits::digits);
        let samples = |count: usize, of: Option<&Samples>, part: u64| {
            let mut rng = stream(0, Purpose::Digits, u64::MAX, part);
            let pixels = match of.map(|samples| &samples.features) {
                Some(Features::Bytes(bytes)) => {
                    bytes.iter().copied().cycle().take(count * features).collect()
                }
                _ => (0..count * features).map(|_| rng.below(256) as u8).collect(),
            };
            let labels = (0..count).map(|_| rng.below(self.classes as u64) as u8).collect();
            Samples { features: Features::Bytes(pixels), labels }
        };
        Dataset {
            name: self.name.to_owned(),
            features,
            shape: self.shape,
            classes: self.classes,
            train: samples(self.train, digits.as_ref().map(|digits| &digits.train), 0),
            test: samples(self.test, digits.as_ref().map(|digits| &digits.test), 1),
        }
    }

    fn load(&self, search_folders: &[PathBuf]) -> Result<Dataset, DataError> {
        if matches!(self.files, Files::Embedded) {
            return Ok(digits::digits());
        }
        let folders: Vec<_> = search_folders.iter().map(|folder| folder.join(self.name)).collect();
        let mut missing = None;
        for folder in &folders {
            match &self.files {
                Files::Embedded => {}
                Files::Idx { files, first_label } => {
                    match IdxFiles::find(folder, files.map(|file| file.name)) {
                        Ok(found) => {
                            let mut dataset = found.read(self.name)?;
                            self.shift_labels(&mut dataset.train, *first_label, &found.train_labels)?;
                            self.shift_labels(&mut dataset.test, *first_label, &found.test_labels)?;
                            return self.check(Dataset { classes: self.classes, ..dataset }, folder);
                        }
                        // A folder that exists but lacks a file gives the better hint.
                        Err(name) if folder.is_dir() => missing = Some(name),
                        Err(_) => {}
                    }
                }
                Files::Cifar(files) => match files.iter().find(|file| !folder.join(file.name).is_file()) {
                    None => return self.check(cifar::read_cifar_folder(folder, self.name)?, folder),
                    Some(file) if folder.is_dir() => missing = Some(file.name.to_owned()),
                    Some(_) => {}
                },
            }
        }
        let missing = missing.unwrap_or_else(|| self.files.list()[0].name.to_owned());
        Err(DataError::Missing { name: self.name.to_owned(), missing, looked_in: folders })
    }

    /// Makes labels start at 0, and rejects a label outside the known classes.
    fn shift_labels(&self, samples: &mut Samples, first: u8, path: &Path) -> Result<(), DataError> {
        for (i, label) in samples.labels.iter_mut().enumerate() {
            *label = label.checked_sub(first).filter(|&class| usize::from(class) < self.classes).ok_or_else(
                || {
                    let last = usize::from(first) + self.classes - 1;
                    Flaw::new(
                        Position::Byte((idx::LABELS_START + i) as u64),
                        format!("label {label}, but {} has labels {first} to {last}", self.name),
                        LOAD_BY_PATH,
                    )
                    .unlike(self.name, path)
                },
            )?;
        }
        Ok(())
    }

    /// A name identifies exactly one data set, so that results under it can be compared.
    fn check(&self, dataset: Dataset, folder: &Path) -> Result<Dataset, DataError> {
        let found = (dataset.shape, dataset.train.len(), dataset.test.len());
        if found == (self.shape, self.train, self.test) {
            let digest = self.digest.map(|known| (known, dataset.digest()));
            let Some((known, found)) = digest.filter(|(known, found)| known != found) else {
                return Ok(dataset);
            };
            let what = format!("the samples are not those of {}: sha256 {found}, not {known}", self.name);
            return Err(Flaw::new(Position::Whole, what, LOAD_BY_PATH).unlike(self.name, folder));
        }
        let describe = |(shape, train, test): ([usize; 3], usize, usize)| {
            format!("{train} training and {test} test images of shape {shape:?}")
        };
        let expected = describe((self.shape, self.train, self.test));
        let what = format!("{} has {expected}, but this folder holds {}", self.name, describe(found));
        Err(Flaw::new(Position::Whole, what, LOAD_BY_PATH).unlike(self.name, folder))
    }
}

#[cfg(test)]
mod tests;
