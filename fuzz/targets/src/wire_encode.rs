//! Any update that follows its format is decoded from its payload bit for bit.

use fedlink::compress::wire::{Coder, Format, Layout, bit_length};
use fedlink::compress::{SparseUpdate, Values};
use std::cell::RefCell;

thread_local! {
    static CODER: RefCell<Coder> = RefCell::default();
}

fn bits(values: &Values) -> Vec<u32> {
    match values {
        Values::Shared(value) => vec![value.to_bits()],
        Values::Each(values) => values.iter().map(|value| value.to_bits()).collect(),
        Values::Grid(_) => unreachable!("no layout has a grid"),
    }
}

pub fn run(bytes: &[u8]) {
    let [flags, d0, d1, d2, m0, m1, v0, v1, v2, v3, gaps @ ..] = bytes else { return };
    let layout = match flags & 0x11 {
        0 => Layout::Shared,
        1 => Layout::Each,
        _ => Layout::Signs,
    };
    let dim = u32::from_be_bytes([0, *d0, *d1, *d2]) >> (4 + d0 % 16);
    let max = layout.max_entries(dim as usize) as u32;
    // Each byte is a gap, scaled by a power of two.
    let mut next = 0u32;
    let mut indices = Vec::new();
    for &gap in gaps {
        let index = next + (u32::from(gap) << ((flags >> 1) & 7));
        if index >= dim || indices.len() as u32 >= max {
            break;
        }
        indices.push(index);
        next = index + 1;
    }
    let missing = u32::from(u16::from_be_bytes([*m0, *m1]));
    let q = (indices.len() as u32 + if flags & 0x80 == 0 { 0 } else { missing }).min(max);
    let value = f32::from_bits(u32::from_be_bytes([*v0, *v1, *v2, *v3]));
    let values = match layout {
        Layout::Shared => Values::Shared(value),
        Layout::Each => {
            let value = |&index: &u32| f32::from_bits(value.to_bits() ^ index.wrapping_mul(0x9e37_79b9));
            Values::Each(indices.iter().map(value).collect())
        }
        Layout::Signs => {
            let sign = |&index: &u32| if index.wrapping_mul(0x9e37_79b9) >> 31 == 0 { value } else { -value };
            Values::Each(indices.iter().map(sign).collect())
        }
    };
    let format = Format::new(layout, dim as usize, q as usize).expect("q is in range");
    // Entries that share one magnitude are not zero.
    let sendable = |value: f32| value.is_finite() && (layout != Layout::Signs || value != 0.0);
    let sendable = bits(&values).iter().all(|&bits| sendable(f32::from_bits(bits)));
    let update = SparseUpdate { indices, values };
    let (mut payload, mut received) = (Vec::new(), SparseUpdate::default());
    CODER.with_borrow_mut(|coder| {
        let Ok(length) = coder.encode(&format, &update, &mut payload) else {
            assert!(!sendable);
            return;
        };
        assert!(sendable && length == bit_length(&payload) && length <= format.longest());
        coder.decode(&format, &payload, &mut received).expect("an encoded update decodes");
        if q > 0 {
            assert_eq!(received.indices, update.indices);
            assert_eq!(bits(&received.values), bits(&update.values));
        }
    });
}
