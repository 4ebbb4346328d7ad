//! The readers on the real MNIST files, in the folder that the environment variable `FEDLINK_DATA` names,
//! which holds `mnist/`. Without it these tests fail; they do not skip.

use std::path::PathBuf;

use fedlink::data::catalog::{self, Files};
use fedlink::data::source::sha256_uncompressed;
use fedlink::data::{Dataset, Features, Scaler, Scaling};

fn data_folder() -> PathBuf {
    let folder = std::env::var_os("FEDLINK_DATA").filter(|folder| !folder.is_empty());
    folder.expect("set FEDLINK_DATA to the folder that holds mnist/ with its four IDX files").into()
}

fn mnist() -> Dataset {
    catalog::load("mnist", &[data_folder()]).expect("FEDLINK_DATA should hold mnist/ with its four IDX files")
}

fn bytes(features: &Features) -> &[u8] {
    match features {
        Features::Bytes(bytes) => bytes,
        Features::Floats(_) => panic!("MNIST is bytes"),
    }
}

#[test]
fn mnist_loads_with_its_published_counts() {
    let dataset = mnist();
    assert_eq!((dataset.shape, dataset.features, dataset.classes), ([28, 28, 1], 784, 10));
    // Samples per digit, 0 to 9, as published with the data set.
    let published = [
        (&dataset.train, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        (&dataset.test, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    ];
    for (part, per_class) in published {
        assert_eq!(bytes(&part.features).len(), part.len() * 784);
        let mut counts = [0; 10];
        (0..part.len()).for_each(|i| counts[part.label(i)] += 1);
        assert_eq!(counts, per_class);
    }
    assert_eq!(dataset.train.labels[..5], [5, 0, 4, 1, 9]);
}

#[test]
fn standard_scaling_has_the_mean_and_deviation_in_common_use() {
    let dataset = mnist();
    let scaler = Scaler::new(&dataset, Scaling::Standard);
    let mut row = [0.0; 784];
    scaler.write(&dataset.test, 0, &mut row);
    for (&scaled, &byte) in row.iter().zip(bytes(&dataset.test.features)) {
        let common = (f32::from(byte) / 255.0 - 0.1307) / 0.3081;
        // The common constants are rounded to four digits, which moves a white pixel by up to 6e-4.
        assert!((scaled - common).abs() < 6e-4, "{scaled} against {common}");
    }
}

#[test]
fn the_files_have_the_digests_of_the_catalog() {
    let entry = catalog::entry("mnist").expect("mnist is known");
    assert!(matches!(entry.files, Files::Idx { .. }));
    for file in entry.files.list() {
        let folder = data_folder().join("mnist");
        let plain = folder.join(file.name);
        let path = if plain.is_file() { plain } else { folder.join(format!("{}.gz", file.name)) };
        assert_eq!(Some(sha256_uncompressed(&path, u64::MAX).expect("readable").as_str()), file.sha256);
    }
}

#[test]
fn a_data_set_with_one_changed_label_is_refused_under_its_name() {
    let Files::Idx { files, .. } = catalog::entry("mnist").expect("mnist is known").files else {
        panic!("MNIST is IDX")
    };
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("mnist");
    std::fs::create_dir(&copy).unwrap();
    for file in files {
        for name in [file.name.to_owned(), format!("{}.gz", file.name)] {
            let source = data_folder().join("mnist").join(&name);
            if source.is_file() {
                std::fs::copy(source, copy.join(&name)).unwrap();
            }
        }
    }
    let folders = [folder.path().to_owned()];
    let mut labels = vec![0, 0, 8, 1, 0, 0, 0xEA, 0x60];
    labels.extend(&catalog::load("mnist", &folders).expect("a copy is as good").train.labels);
    *labels.last_mut().unwrap() ^= 1;
    // The plain file is read before a compressed one.
    std::fs::write(copy.join(files[1].name), labels).unwrap();
    let refused = catalog::load("mnist", &folders).unwrap_err().to_string();
    assert!(refused.contains("the samples are not those of mnist: sha256 "), "{refused}");
    let custom = catalog::load(copy.to_str().unwrap(), &[]).expect("a path accepts any data");
    assert_eq!(custom.train.labels.len(), 60_000);
}
