//! Any bytes are IDX images or labels of the size they declare, or an error.
#![no_main]

use fedlink::data::idx::{parse_images, parse_labels};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    if let Ok(images) = parse_images(file) {
        assert!(images.count > 0);
        assert_eq!(images.pixels.len(), images.count * images.height * images.width);
    }
    if let Ok(labels) = parse_labels(file) {
        assert!(!labels.is_empty());
    }
});
