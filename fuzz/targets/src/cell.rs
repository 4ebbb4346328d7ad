//! Any bytes are a finished run, which is written as a file with the same content, or an error.
//!
//! The digest at the end of a file detects every change. To test more than the digest, the bytes before
//! it are parsed once more with their right digest.

use fedlink::parts::Parts;
use fedlink::record::hexadecimal;
use fedlink::spec::{Config, Spec};
use fedlink_study::sweep::StoredRun;
use sha2::{Digest, Sha256};
use std::cell::LazyCell;
use std::path::Path;

/// The text between the content and its digest.
const SEAL: &str = ",\n\"sha256\": \"";

thread_local! {
    /// The recorded configuration of a file is not read back, so any configuration is suitable.
    static SPEC: LazyCell<Spec> =
        LazyCell::new(|| Config::default().resolve(&Parts::default()).expect("the defaults are valid"));
}

pub fn run(bytes: &[u8]) {
    check(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let content = text.rsplit_once(SEAL).map_or(text, |(content, _)| content);
    check(format!("{content}{SEAL}{}\"\n}}\n", hexadecimal(&Sha256::digest(content))).as_bytes());
}

fn check(file: &[u8]) {
    let path = Path::new("fuzz.json");
    let Ok(cell) = StoredRun::from_bytes(path, file) else { return };
    SPEC.with(|spec| {
        let written = cell.to_text(spec).expect("a parsed run can be written");
        let again = StoredRun::from_bytes(path, written.as_bytes());
        let again = again.unwrap_or_else(|error| panic!("{error}\nin\n{written}"));
        assert_eq!(again.to_text(spec).expect("a parsed run can be written"), written);
        assert_eq!((&again.label, &again.data), (&cell.label, &cell.data));
        assert_eq!((&again.processes, &again.result.status), (&cell.processes, &cell.result.status));
        assert_eq!(again.result.rows.len(), cell.result.rows.len());
    });
}
