//! The format, not the payload, determines the memory of decoding.
//!
//! One test, because the allocator counts for the whole process.

mod counting;

use counting::peak;
use fedlink::base::rng::{Purpose, stream};
use fedlink::compress::wire::{Coder, Format, Layout};
use fedlink::compress::{SparseUpdate, Values};

#[test]
fn no_payload_makes_the_decoder_allocate_more_than_its_format_allows() {
    const TABLES: usize = 40_000;
    for (layout, dim, q) in
        [(Layout::Shared, 203_530, 2_000), (Layout::Each, 203_530, 900), (Layout::Signs, 203_530, 2_000)]
    {
        let format = Format::new(layout, dim, q).expect("a format");
        // Indices, values if each entry has one, the inverses of d/64, and the tables of the plain law.
        let allowed = 4 * q + if layout == Layout::Shared { 0 } else { 4 * q } + dim / 8 + TABLES;
        let indices: Vec<u32> = (0..q as u32).map(|i| i * 100).collect();
        let values = if layout == Layout::Shared { Values::Shared(0.5) } else { Values::Each(vec![0.5; q]) };
        let mut payload = Vec::new();
        let sent = SparseUpdate { indices, values };
        Coder::default().encode(&format, &sent, &mut payload).expect("an update of that format");
        let decode = |payload: &[u8]| {
            let mut update = SparseUpdate::default();
            let result = Coder::default().decode(&format, payload, &mut update);
            (result, update)
        };
        let (held, (result, update)) = peak(|| decode(&payload));
        assert!(result.is_ok() && update == sent);
        assert!(held <= allowed, "{held} bytes for a good payload, {allowed} allowed");

        // Ten million bytes are rejected before they are read.
        let (held, (result, _)) = peak(|| decode(&vec![1; 10_000_000][..]));
        assert!(result.is_err() && held <= 10_000_000 + 1000, "{held} bytes for a long payload");

        // Random bytes of any accepted length.
        for round in 0..200 {
            let mut rng = stream(1, Purpose::Test, round, 0);
            let mut garbage: Vec<u8> = (0..payload.len()).map(|_| rng.below(256) as u8).collect();
            garbage.truncate(1 + rng.below(payload.len() as u64) as usize);
            garbage[0] |= 1;
            let (held, _) = peak(|| decode(&garbage));
            assert!(held <= allowed, "{held} bytes for garbage of {}, {allowed} allowed", garbage.len());
        }
    }
}
