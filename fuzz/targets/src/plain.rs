//! Any bytes are an update of the given dimension, which is written as the same bytes again, or none.

use fedlink::compress::plain::{read, write};

pub fn run(bytes: &[u8]) {
    let [d0, d1, payload @ ..] = bytes else { return };
    let dim = usize::from(u16::from_be_bytes([*d0, *d1]));
    if let Some(update) = read(payload, dim) {
        assert_eq!(update.check(dim), Ok(()));
        let mut again = Vec::new();
        write(&update, &mut again);
        assert_eq!(again, payload);
    }
}
