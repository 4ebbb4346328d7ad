//! Any text is a file of claims and published values (`fedlink verify --claims FILE`), or an error.

use fedlink_study::experiment::ClaimsFile;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match ClaimsFile::parse("fuzz.toml", text) {
        Ok(file) => assert_eq!(file.name, "fuzz.toml"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
