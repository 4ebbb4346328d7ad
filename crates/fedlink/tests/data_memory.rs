//! The allocations of the readers are within a small constant times the size of their input.
//!
//! One test, because the allocator counts for the whole process.

mod counting;

use std::io::{Cursor, Write};

use counting::peak;
use fedlink::data::{cifar, csv, idx, npz};
use zip::write::{SimpleFileOptions, ZipWriter};

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

fn idx_images(dimensions: [u32; 3], bytes: usize) -> Vec<u8> {
    let mut file = vec![0, 0, 8, 3];
    file.extend(dimensions.iter().flat_map(|dimension| dimension.to_be_bytes()));
    file.resize(16 + bytes, 0);
    file
}

fn npy(descr: &str, shape: &str, bytes: usize) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.resize(file.len() + bytes, 0);
    file
}

fn npz_file(arrays: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        writer.start_file(format!("{name}.npy"), options).expect("memory takes all");
        writer.write_all(bytes).expect("memory takes all");
    }
    writer.finish().expect("memory takes all").into_inner()
}

/// Replaces the uncompressed size that the archive claims for its first entry, in both of its headers.
fn claim_size(archive: &mut [u8], size: u32) {
    for (signature, offset) in [(b"PK\x03\x04", 22), (b"PK\x01\x02", 24)] {
        let at = archive.windows(4).position(|bytes| bytes == signature).expect("a zip header");
        archive[at + offset..at + offset + 4].copy_from_slice(&size.to_le_bytes());
    }
}

/// Inflating needs a window, its tables and a buffer, whatever the size of the file.
const INFLATER: usize = 300_000;

#[test]
fn no_file_makes_a_reader_allocate_much_more_than_its_size() {
    // A gzip file that claims more than it can hold is refused before anything is allocated for it.
    let bomb = gzip(&idx_images([60_000, 28, 28], 0));
    let (held, result) = peak(|| idx::parse_images(&bomb));
    assert!(result.is_err() && held < INFLATER, "{held} bytes for an IDX header without content");

    // A true bomb, 100 MB of zeros in 100 kB, that claims one small image: inflated one byte beyond it.
    let bomb = gzip(&idx_images([1, 28, 28], 100_000_000));
    let (held, result) = peak(|| idx::parse_images(&bomb));
    assert!(result.is_err() && held < INFLATER, "{held} bytes for an image with a long tail");

    // The upper bound for a gzip file: its true content.
    let packed = gzip(&idx_images([1000, 100, 100], 10_000_000));
    let (held, result) = peak(|| idx::parse_images(&packed));
    assert!(result.is_ok() && held < 10_000_000 + INFLATER, "{held} bytes for 10 MB of images");

    // A plain file that claims 2⁶⁰ bytes.
    let plain = idx_images([1 << 20; 3], 100);
    let (held, result) = peak(|| idx::parse_images(&plain));
    assert!(result.is_err() && held < 1000, "{held} bytes for a plain header");

    // An array header that claims 4 GB in a small archive, with an archive header that bears it out.
    for (descr, width) in [("|u1", 1), ("<f4", 4), ("<f8", 8)] {
        let array = npy(descr, &format!("(1, {})", 4_000_000_000u64 / width), 0);
        let mut bomb = npz_file(&[("x_train", &array)]);
        let (held, result) = peak(|| npz::parse(&bomb, "custom"));
        assert!(result.is_err() && held < INFLATER, "{held} bytes for an array header");
        claim_size(&mut bomb, 4_000_000_000 + array.len() as u32);
        let (held, result) = peak(|| npz::parse(&bomb, "custom"));
        let message = result.expect_err("4 GB do not fit into a small archive").to_string();
        assert!(message.contains("more than an archive of this size can hold"), "{message}");
        assert!(held < INFLATER, "{held} bytes for an array header that the archive bears out");
    }

    // 50 MB of zeros with a header that claims ten numbers: refused by the sizes alone, nothing is
    // inflated.
    let bomb = npz_file(&[("x_train", &npy("|u1", "(2, 5)", 50_000_000))]);
    let (held, result) = peak(|| npz::parse(&bomb, "custom"));
    assert!(result.is_err() && held < INFLATER, "{held} bytes for an array with a long tail");

    // Text and CIFAR-10 are never compressed: a small multiple of the file.
    let mut text = "0,1,2,3,4,5,6,7,8,9\n".repeat(10_000);
    text.push_str("0,1,2,3,4,5,6,7,8,9.5\n");
    let (held, result) = peak(|| csv::parse(text.as_bytes()));
    assert!(result.is_ok() && held < 8 * text.len(), "{held} bytes for {} of text", text.len());
    let records = vec![0; 3073 * 100];
    let (held, result) = peak(|| cifar::parse(&records));
    assert!(result.is_ok() && held <= records.len(), "{held} bytes for {} of records", records.len());
}
