//! Any bytes are an archive of a consistent data set, or an error.

use fedlink::data::Features;
use fedlink::data::npz::parse;

pub fn run(file: &[u8]) {
    if let Ok(dataset) = parse(file, "custom") {
        for part in [&dataset.train, &dataset.test] {
            assert!(!part.is_empty());
            assert_eq!(part.features.len(), part.len() * dataset.features);
            assert!(part.labels.iter().all(|&label| usize::from(label) < dataset.classes));
            if let Features::Floats(values) = &part.features {
                assert!(values.iter().all(|value| value.is_finite()));
            }
        }
    }
}
