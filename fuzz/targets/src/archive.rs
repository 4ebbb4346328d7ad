//! Any bytes, parsed as tar, as tar with gzip or as zip, give the requested members at the requested
//! places, or an error; nothing else is written.

use fedlink_cli::archive::{Member, take_from_tar, take_from_zip};
use flate2::read::GzDecoder;
use std::fs;
use std::io::Cursor;
use std::sync::LazyLock;
use tempfile::TempDir;

/// The most bytes of a member.
const LIMIT: u64 = 600;

/// A folder in a folder, so that a write outside of it is detected.
static ROOT: LazyLock<TempDir> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("a folder for temporary files");
    fs::create_dir(root.path().join("inner")).expect("a folder to write to");
    root
});

pub fn run(file: &[u8]) {
    let root = ROOT.path();
    let inner = root.join("inner");
    let member = |inside: &str, to: &str| Member { inside: inside.into(), to: inner.join(to), limit: LIMIT };
    let members = [member("p/a", "a"), member("b", "b")];
    let taken = match file {
        [b'P', b'K', ..] => take_from_zip(Cursor::new(file), &members),
        [0x1f, 0x8b, ..] => take_from_tar(GzDecoder::new(file), &members),
        _ => take_from_tar(file, &members),
    };
    let mut written: Vec<String> = fs::read_dir(&inner)
        .expect("a folder that can be read")
        .map(|entry| entry.expect("a folder that can be read").file_name().into_string().expect("our name"))
        .collect();
    written.sort();
    assert_eq!(
        fs::read_dir(root).expect("a folder that can be read").count(),
        1,
        "written beside the folder"
    );
    assert!(written.iter().all(|name| name == "a" || name == "b"), "{written:?}");
    if taken.is_ok() {
        assert_eq!(written, ["a", "b"]);
    }
    for name in written {
        let path = inner.join(name);
        let found = fs::symlink_metadata(&path).expect("it was listed");
        // One byte more than allowed is written before a member is found to be too long.
        assert!(found.is_file() && found.len() <= LIMIT + u64::from(taken.is_err()));
        fs::remove_file(path).expect("it was written by us");
    }
}
