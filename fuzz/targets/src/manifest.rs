//! Any bytes are the record of a folder on its runs (`manifest.json`) and on their data (`data.json`), or
//! none.

use fedlink_study::sweep::{DataFacts, differences, parse_data, records_complete};

pub fn run(bytes: &[u8]) {
    if records_complete(bytes) {
        let text = String::from_utf8_lossy(bytes);
        // A key may be written with escapes.
        assert!(text.contains("true") && (text.contains("complete") || text.contains('\\')));
    }
    let Some(there) = parse_data(bytes) else { return };
    assert_eq!(differences(&there, &there), None);
    let mut here: DataFacts = there.clone();
    here.values_mut().for_each(|fact| fact.sha256.push('0'));
    let named = differences(&there, &here).unwrap_or_default();
    assert!(there.keys().all(|name| named.contains(name.as_str())), "{named}");
    assert_eq!(named.is_empty(), there.is_empty());
}
