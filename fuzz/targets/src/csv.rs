//! Any bytes are samples of one width, or an error.

use fedlink::data::Features;
use fedlink::data::csv::parse;

pub fn run(file: &[u8]) {
    if let Ok((width, samples)) = parse(file) {
        assert!(width > 0 && !samples.is_empty());
        assert_eq!(samples.features.len(), width * samples.len());
        if let Features::Floats(values) = &samples.features {
            assert!(values.iter().all(|value| value.is_finite()));
        }
    }
}
