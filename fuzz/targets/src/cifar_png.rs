//! Any bytes are a sheet of the given number of images, which gives whole records, or an error.

use fedlink_cli::cifar_png::convert;
use std::io::Cursor;

pub fn run(file: &[u8]) {
    let Some((&count, sheet)) = file.split_first() else { return };
    let labels: Vec<u8> = (0..count % 4).collect();
    let mut records = Vec::new();
    if convert("sheet", Cursor::new(sheet), &labels, &mut records).is_ok() {
        assert_eq!(records.len(), labels.len() * 3073);
        assert!(records.chunks(3073).zip(&labels).all(|(record, label)| record[0] == *label));
    }
}
