//! Any bytes are IDX images or labels of the size they declare, or an error.

use fedlink::data::idx::{parse_images, parse_labels};

pub fn run(file: &[u8]) {
    if let Ok(images) = parse_images(file) {
        assert!(images.count > 0);
        assert_eq!(images.pixels.len(), images.count * images.height * images.width);
    }
    if let Ok(labels) = parse_labels(file) {
        assert!(!labels.is_empty());
    }
}
