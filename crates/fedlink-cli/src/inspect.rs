//! The condition of the files of a known data set.

use fedlink::data::catalog::{Entry, Files};
use fedlink::data::source::sha256_uncompressed;
use fedlink::data::{cifar, idx};
use std::fmt;
use std::path::{Path, PathBuf};

/// The condition of a file.
#[derive(Debug)]
pub enum Condition {
    /// It is intact.
    Good(Proof),
    /// It is damaged, with the reason.
    Damaged(String),
    /// It is missing.
    Missing,
}

/// The proof that a file is intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The digest of its content is the known one.
    Digest,
    /// It could be read and holds as many samples as it should; its digest is not known.
    Parsed,
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digest => "SHA-256 as known",
            Self::Parsed => "readable, of the right size (no digest known)",
        })
    }
}

/// The file that a data set is loaded from: plain, or else, for IDX files, with `.gz`.
pub fn locate(entry: &Entry, index: usize, folder: &Path) -> Option<PathBuf> {
    names(entry, index).into_iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// The names that file `index` may have, the one looked for first in front.
pub fn names(entry: &Entry, index: usize) -> Vec<String> {
    let name = entry.files.list()[index].name;
    match entry.files {
        Files::Idx { .. } => vec![name.to_owned(), format!("{name}.gz")],
        Files::Embedded | Files::Cifar(_) => vec![name.to_owned()],
    }
}

/// Whether a folder holds one of the files at least.
pub fn holds_any(entry: &Entry, folder: &Path) -> bool {
    (0..entry.files.list().len()).any(|index| locate(entry, index, folder).is_some())
}

/// The folder that a data set is loaded from: the first that holds all of its files.
pub fn location(entry: &Entry, folders: &[PathBuf]) -> Option<PathBuf> {
    let count = entry.files.list().len();
    let holds_all = |folder: &PathBuf| (0..count).all(|index| locate(entry, index, folder).is_some());
    folders.iter().map(|folder| folder.join(entry.name)).find(holds_all).filter(|_| count > 0)
}

/// The condition of every file in a folder.
pub fn inspect(entry: &Entry, folder: &Path) -> Vec<Condition> {
    let condition = |index| match locate(entry, index, folder) {
        None => Condition::Missing,
        Some(path) => match verify(entry, index, &path) {
            Ok(proof) => Condition::Good(proof),
            Err(why) => Condition::Damaged(why),
        },
    };
    (0..entry.files.list().len()).map(condition).collect()
}

/// Whether the file at `path`, plain or gzip, is file `index` of the data set; if not, why not.
pub fn verify(entry: &Entry, index: usize, path: &Path) -> Result<Proof, String> {
    if let Some(known) = entry.files.list()[index].sha256 {
        let found = sha256_uncompressed(path, size(entry, index)).map_err(|error| error.to_string())?;
        if found == known {
            return Ok(Proof::Digest);
        }
        return Err(format!("its content has SHA-256 {found}, but {known} is right"));
    }
    parse(entry, index, path)?;
    Ok(Proof::Parsed)
}

fn parse(entry: &Entry, index: usize, path: &Path) -> Result<(), String> {
    let expect = |found: usize, what: &str| {
        let expected = samples(entry, index);
        let wrong = format!("it holds {found} {what}, but {} has {expected} here", entry.name);
        if found == expected { Ok(()) } else { Err(wrong) }
    };
    let message = |error: fedlink::data::DataError| error.to_string();
    match entry.files {
        Files::Embedded => Ok(()),
        Files::Cifar(_) => expect(cifar::read_cifar(path).map_err(message)?.len(), "images"),
        Files::Idx { .. } if index.is_multiple_of(2) => {
            let images = idx::read_idx_images(path).map_err(message)?;
            if [images.height, images.width, 1] != entry.shape {
                return Err(format!("its images are {} × {}", images.height, images.width));
            }
            expect(images.count, "images")
        }
        Files::Idx { first_label, .. } => {
            let labels = idx::read_idx_labels(path).map_err(message)?;
            let classes = usize::from(first_label)..usize::from(first_label) + entry.classes;
            if let Some(label) = labels.iter().find(|&&label| !classes.contains(&usize::from(label))) {
                return Err(format!("label {label} is none of {}", entry.name));
            }
            expect(labels.len(), "labels")
        }
    }
}

/// The number of samples in file `index`.
fn samples(entry: &Entry, index: usize) -> usize {
    match entry.files {
        Files::Embedded => 0,
        Files::Idx { .. } if index < 2 => entry.train,
        Files::Cifar(files) if index + 1 < files.len() => entry.train / (files.len() - 1),
        Files::Idx { .. } | Files::Cifar(_) => entry.test,
    }
}

/// Bytes of file `index`, uncompressed.
pub fn size(entry: &Entry, index: usize) -> u64 {
    let samples = samples(entry, index) as u64;
    let image: usize = entry.shape.iter().product();
    match entry.files {
        Files::Embedded => 0,
        Files::Idx { .. } if index.is_multiple_of(2) => 16 + samples * image as u64,
        Files::Idx { .. } => 8 + samples,
        Files::Cifar(_) => samples * (1 + image as u64),
    }
}

/// Paths in a sentence.
pub fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink::data::catalog::entry;

    #[test]
    fn sizes_are_those_of_the_published_files() {
        let sizes = |name| {
            let entry = entry(name).unwrap();
            (0..entry.files.list().len()).map(|index| size(entry, index)).collect::<Vec<_>>()
        };
        assert_eq!(sizes("mnist"), [47_040_016, 60_008, 7_840_016, 10_008]);
        assert_eq!(sizes("cifar10"), [30_730_000; 6]);
        assert_eq!(sizes("emnist-letters")[1], 124_808);
    }

    #[test]
    fn a_file_without_a_known_digest_is_checked_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels");
        let letters = entry("emnist-letters").unwrap();
        let write = |count: u32, label: u8| {
            let header = [&[0, 0, 8, 1], &count.to_be_bytes()[..]].concat();
            std::fs::write(&path, [header, vec![label; count as usize]].concat()).unwrap();
            verify(letters, 1, &path)
        };
        assert_eq!(write(124_800, 26), Ok(Proof::Parsed));
        assert_eq!(write(124_800, 0), Err("label 0 is none of emnist-letters".into()));
        assert_eq!(write(124_800, 27), Err("label 27 is none of emnist-letters".into()));
        let few = write(3, 1).unwrap_err();
        assert_eq!(few, "it holds 3 labels, but emnist-letters has 124800 here");
        assert!(verify(letters, 0, &path).unwrap_err().contains("magic number"));
    }
}
