//! Any bytes are an update of their format, which encodes to the same bytes again, or an error.

use fedlink::compress::wire::{Coder, Format, Layout};
use fedlink::compress::{SparseUpdate, Values};
use std::cell::RefCell;

thread_local! {
    static CODER: RefCell<Coder> = RefCell::default();
}

pub fn run(bytes: &[u8]) {
    let [layout, d0, d1, d2, q0, q1, payload @ ..] = bytes else { return };
    let layout = [Layout::Shared, Layout::Each, Layout::Signs][usize::from(layout % 3)];
    // Up to 2²⁰, mostly less.
    let dim = (u32::from_be_bytes([0, *d0, *d1, *d2]) >> (4 + d0 % 16)) as usize;
    let q = usize::from(u16::from_be_bytes([*q0, *q1])) % (layout.max_entries(dim) + 1);
    let format = Format::new(layout, dim, q).expect("q is in range");
    let mut update = SparseUpdate { indices: vec![7], values: Values::Shared(7.0) };
    CODER.with_borrow_mut(|coder| {
        if coder.decode(&format, payload, &mut update).is_err() {
            assert_eq!(update, SparseUpdate::default());
            return;
        }
        assert!(update.indices.len() <= q);
        let mut again = Vec::new();
        // `encode` checks order, range and values.
        let bits = coder.encode(&format, &update, &mut again).expect("a decoded update follows its format");
        assert_eq!(again, payload);
        assert!(bits <= format.longest());
    });
}
