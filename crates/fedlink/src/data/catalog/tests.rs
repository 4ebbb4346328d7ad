use std::fs;

use super::super::test_files::idx as idx_file;
use super::*;

/// Writes IDX files of images with one label.
fn write_idx(folder: &Path, names: [&str; 4], counts: [u32; 2], shape: [u32; 2], label: u8) {
    fs::create_dir_all(folder).unwrap();
    let [height, width] = shape;
    for (pair, count) in names.chunks_exact(2).zip(counts) {
        let pixels = vec![9; (count * height * width) as usize];
        fs::write(folder.join(pair[0]), idx_file(&[count, height, width], &pixels)).unwrap();
        fs::write(folder.join(pair[1]), idx_file(&[count], &vec![label; count as usize])).unwrap();
    }
}

fn message(name: &str, folders: &[PathBuf]) -> String {
    load(name, folders).unwrap_err().to_string()
}

#[test]
fn names_are_unique_digests_well_formed_and_shapes_not_empty() {
    for (i, entry) in CATALOG.iter().enumerate() {
        assert!(CATALOG[..i].iter().all(|earlier| earlier.name != entry.name));
        assert!(entry.shape.iter().all(|&n| n > 0) && entry.classes > 1 && entry.classes <= 256);
        for digest in entry.files.list().iter().filter_map(|file| file.sha256) {
            assert!(
                digest.len() == 64
                    && digest.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
            );
        }
    }
}

#[test]
fn a_missing_data_set_is_named_with_the_folders_and_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let folders = [folder.path().join("a"), folder.path().join("b")];
    for entry in CATALOG.iter().filter(|entry| !entry.files.list().is_empty()) {
        let error = load(entry.name, &folders).unwrap_err();
        assert!(matches!(&error, DataError::Missing { name, .. } if name == entry.name));
        let message = error.to_string();
        for expected in [
            folders[0].join(entry.name).display().to_string(),
            folders[1].join(entry.name).display().to_string(),
            format!("data set \"{}\"", entry.name),
            entry.files.list()[0].name.to_owned(),
        ] {
            assert!(message.contains(&expected), "{message}\nshould contain\n{expected}");
        }
    }
    assert!(message("mnist", &[]).contains("none were given"));
    fs::create_dir_all(folders[0].join("mnist")).unwrap();
    fs::write(folders[0].join("mnist").join(idx::STANDARD_NAMES[0]), "").unwrap();
    assert!(message("mnist", &folders).contains("train-labels-idx1-ubyte is in none of the folders"));
}

#[test]
fn the_error_of_an_unknown_name_suggests_the_nearest_one() {
    let message = message("fashon-mnist", &[]);
    assert!(message.contains("did you mean \"fashion-mnist\"?") && message.contains("cifar10"), "{message}");
    assert!(!self::message("a-data-set-of-mine", &[]).contains("did you mean"));
}

#[test]
fn a_name_loads_from_the_second_folder_with_labels_from_zero() {
    let folder = tempfile::tempdir().unwrap();
    let folders = [folder.path().join("a"), folder.path().join("b")];
    // The letters as they are, but few.
    let few = Entry { train: 3, test: 2, ..*entry("emnist-letters").unwrap() };
    let Files::Idx { files, .. } = few.files else { panic!("EMNIST is IDX") };
    write_idx(&folders[1].join(few.name), files.map(|file| file.name), [3, 2], [28, 28], 26);
    let dataset = few.load(&folders).unwrap();
    assert_eq!((dataset.classes, dataset.features), (26, 784));
    assert_eq!((dataset.train.labels, dataset.test.labels), (vec![25; 3], vec![25; 2]));
    write_idx(&folders[1].join(few.name), files.map(|file| file.name), [3, 2], [28, 28], 0);
    let refused = few.load(&folders).unwrap_err().to_string();
    assert!(refused.contains("byte 8: label 0, but emnist-letters has labels 1 to 26"), "{refused}");
}

#[test]
fn a_named_data_set_of_other_labels_or_counts_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folders = [folder.path().to_owned()];
    let named = folder.path().join("mnist");
    write_idx(&named, idx::STANDARD_NAMES, [3, 2], [28, 28], 10);
    assert!(message("mnist", &folders).contains("ubyte: byte 8: label 10, but mnist has labels 0 to 9"));
    write_idx(&named, idx::STANDARD_NAMES, [3, 2], [28, 28], 9);
    let error = load("mnist", &folders).unwrap_err();
    assert!(matches!(&error, DataError::Mismatch { name: "mnist", path, .. } if *path == named));
    let refused = error.to_string();
    assert!(
        refused.contains("this folder holds 3 training and 2 test images of shape [28, 28, 1]"),
        "{refused}"
    );
    // A path accepts any data.
    assert_eq!(load(named.to_str().unwrap(), &[]).unwrap().train.len(), 3);
}

#[test]
fn the_content_of_a_path_decides_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert!(message(path, &[]).contains("this folder holds neither"));
    let text = folder.path().join("train.csv");
    fs::write(&text, "0,1\n").unwrap();
    assert!(message(text.to_str().unwrap(), &[]).contains("the folder that holds train.csv and test.csv"));
    let through_a_file = text.join("inside");
    let refused = load(through_a_file.to_str().unwrap(), &[]);
    assert!(matches!(refused, Err(DataError::Unreadable { .. })), "{refused:?}");
    fs::write(folder.path().join("test.csv"), "1,1\n").unwrap();
    let dataset = load(path, &[]).unwrap();
    assert_eq!((dataset.name.as_str(), dataset.classes), (path, 2));
    let npz = folder.path().join("custom.npz");
    fs::write(&npz, include_bytes!("../../../tests/data/bytes.npz")).unwrap();
    assert_eq!(load(npz.to_str().unwrap(), &[]).unwrap().shape, [3, 4, 1]);
}
