//! Any bytes are whole CIFAR-10 records, or an error.

use fedlink::data::cifar::parse;

pub fn run(file: &[u8]) {
    if let Ok(samples) = parse(file) {
        assert_eq!(samples.len() * 3073, file.len());
        assert_eq!(samples.features.len(), samples.len() * 3072);
        assert!(samples.labels.iter().all(|&label| label < 10));
    }
}
