//! Any bytes are samples of one width, or an error.
#![no_main]

use fedlink::data::Features;
use fedlink::data::csv::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    if let Ok((width, samples)) = parse(file) {
        assert!(width > 0 && !samples.is_empty());
        assert_eq!(samples.features.len(), width * samples.len());
        if let Features::Floats(values) = &samples.features {
            assert!(values.iter().all(|value| value.is_finite()));
        }
    }
});
