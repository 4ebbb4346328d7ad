//! The wire format from outside: its test vectors, its length compared with exact integers, and arbitrary
//! bytes.

use fedlink::base::rng::{Purpose, stream};
use fedlink::compress::bits::log2_choose;
use fedlink::compress::wire::{Coder, Format, Layout, WireError, bit_length};
use fedlink::compress::{SparseScheme, SparseUpdate, Stc, Values};
use num_bigint::BigUint;
use proptest::prelude::*;
use serde_json::Value;

fn encode(format: &Format, update: &SparseUpdate) -> (Vec<u8>, u64) {
    let mut payload = Vec::new();
    let bits = Coder::default().encode(format, update, &mut payload).unwrap();
    (payload, bits)
}

fn decode(format: &Format, payload: &[u8]) -> Result<SparseUpdate, WireError> {
    let mut update = SparseUpdate::default();
    Coder::default().decode(format, payload, &mut update).map(|()| update)
}

fn shared(indices: Vec<u32>, value: f32) -> SparseUpdate {
    SparseUpdate { indices, values: Values::Shared(value) }
}

/// Equality that distinguishes −0 from 0.
fn same(a: &SparseUpdate, b: &SparseUpdate) -> bool {
    let bits = |update: &SparseUpdate| match &update.values {
        Values::Shared(value) => (true, vec![value.to_bits()]),
        Values::Each(values) => (false, values.iter().map(|value| value.to_bits()).collect()),
        Values::Grid(_) => unreachable!("no layout has a grid"),
    };
    a.indices == b.indices && bits(a) == bits(b)
}

const LAYOUTS: [Layout; 3] = [Layout::Shared, Layout::Each, Layout::Signs];

/// Bits of the values of `count` entries, with the one bit before the first.
fn value_bits(layout: Layout, count: u64) -> u64 {
    match layout {
        Layout::Shared => 33,
        Layout::Each => 32 * count + 1,
        Layout::Signs => 32 + count,
    }
}

/// The code that prints the table of the page.
#[path = "../examples/wire_overhead.rs"]
#[expect(dead_code, reason = "the test calls the function that its main prints")]
mod overhead;

/// The code that makes the test vectors.
#[path = "../examples/wire_vectors.rs"]
#[expect(dead_code, reason = "the test calls the function that its main prints")]
mod making;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/wire-1.json")).unwrap()
}

#[test]
fn the_test_vectors_are_up_to_date() {
    assert_eq!(vectors(), making::vectors(), "write them anew with `cargo xtask docs`");
}

#[test]
fn the_page_shows_the_measured_overheads_and_each_is_a_few_bits() {
    let rows = overhead::rows();
    for row in &rows {
        let max = row.random.iter().chain(&row.kinds).max().unwrap();
        // Five bits, and three in a million for rounding.
        let limit = 5.0 + 3e-6 * row.count as f64;
        assert!(*max as f64 <= limit, "{max} bits too many of {} for {:?}", row.count, row.format);
    }
    let page = include_str!("../../../docs/wire-format.md");
    let (_, rest) = page.split_once("<!-- overhead: written by `cargo xtask docs` -->\n").unwrap();
    let (table, _) = rest.split_once("<!-- end of overhead -->").unwrap();
    assert_eq!(table, overhead::table(&rows), "write it anew with `cargo xtask docs`");
}

fn format_of(case: &Value) -> (Format, Vec<u8>) {
    let layout = match case["layout"].as_str().unwrap() {
        "shared" => Layout::Shared,
        "each" => Layout::Each,
        "signs" => Layout::Signs,
        other => panic!("{other}"),
    };
    let number = |key: &str| case[key].as_u64().unwrap() as usize;
    let digits = case["payload"].as_str().unwrap().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    (Format::new(layout, number("d"), number("q")).unwrap(), digits.chunks(2).map(byte).collect())
}

#[test]
fn the_test_vectors_are_encoded_and_decoded() {
    let vectors = vectors();
    assert_eq!(vectors["version"], fedlink::compress::wire::VERSION);
    for case in vectors["valid"].as_array().unwrap() {
        let (format, payload) = format_of(case);
        let indices = case["indices"].as_array().unwrap().iter().map(|index| index.as_u64().unwrap() as u32);
        let values = case["values"].as_array().unwrap().iter();
        let values =
            values.map(|bits| f32::from_bits(u32::from_str_radix(bits.as_str().unwrap(), 16).unwrap()));
        let mut values: Vec<f32> = values.collect();
        let values =
            if case["layout"] == "shared" { Values::Shared(values.remove(0)) } else { Values::Each(values) };
        let update = SparseUpdate { indices: indices.collect(), values };
        let (ours, bits) = encode(&format, &update);
        assert_eq!(ours, payload, "{}", case["name"]);
        assert_eq!(bits, case["bits"].as_u64().unwrap(), "{}", case["name"]);
        assert_eq!(bits, BigUint::from_bytes_be(&payload).bits(), "{}", case["name"]);
        assert!(same(&decode(&format, &payload).unwrap(), &update), "{}", case["name"]);
    }
}

#[test]
fn each_invalid_test_vector_is_refused_for_its_own_reason() {
    let short = WireError::Length { short: true };
    let long = WireError::Length { short: false };
    let reasons = [
        ("empty", short.clone()),
        ("a zero byte in front", WireError::Padded),
        ("two bytes more", WireError::TooLong { bits: 243, longest: 233 }),
        ("half of it", short),
        ("another version", WireError::Version),
        ("one", WireError::Missing { missing: 28, q: 20 }),
        ("something where nothing can be sent", WireError::TooLong { bits: 1, longest: 0 }),
        ("a zero byte where nothing can be sent", WireError::Padded),
        ("infinity", WireError::NotFinite { entry: 0, value: f32::INFINITY }),
        ("minus infinity", WireError::NotFinite { entry: 0, value: f32::NEG_INFINITY }),
        ("a value without an entry", long),
        ("seven of five missing", WireError::Missing { missing: 7, q: 5 }),
        ("an infinite magnitude", WireError::NotFinite { entry: 0, value: f32::NEG_INFINITY }),
        ("a magnitude of zero", WireError::ZeroMagnitude { entries: 1 }),
        ("a magnitude of minus zero", WireError::ZeroMagnitude { entries: 1 }),
        ("a magnitude without an entry", WireError::Length { short: false }),
    ];
    let vectors = vectors();
    let cases = vectors["invalid"].as_array().unwrap();
    for case in cases {
        let (format, payload) = format_of(case);
        let error = decode(&format, &payload).unwrap_err();
        if let Some((_, reason)) = reasons.iter().find(|(name, _)| case["name"] == *name) {
            assert_eq!(error, *reason, "{}", case["name"]);
        }
    }
    let is_there = |name: &str| cases.iter().any(|case| case["name"] == name);
    assert!(reasons.iter().all(|(name, _)| is_there(name)));
    let nan = cases.iter().find(|case| case["name"] == "not a number").map(format_of).unwrap();
    let error = decode(&nan.0, &nan.1).unwrap_err();
    assert!(matches!(error, WireError::NotFinite { entry: 0, value } if value.is_nan()), "{error}");
}

#[test]
fn every_support_of_every_small_format_is_decoded_from_its_own_payload() {
    for dim in 1..=12usize {
        for layout in LAYOUTS {
            for q in 1..=layout.max_entries(dim) {
                let format = Format::new(layout, dim, q).unwrap();
                let min = ceil_log2_choose(dim as u32, q as u32) + value_bits(layout, q as u64);
                let mut seen = std::collections::BTreeSet::new();
                for support in (0u32..1 << dim).filter(|support| support.count_ones() as usize <= q) {
                    let indices: Vec<u32> = (0..dim as u32).filter(|i| support >> i & 1 == 1).collect();
                    let values = match layout {
                        Layout::Shared => Values::Shared(-3.5),
                        Layout::Each => Values::Each(indices.iter().map(|&i| i as f32 - 2.0).collect()),
                        Layout::Signs => {
                            let sign = |&i: &u32| if support * (i + 3) / 5 % 2 == 0 { 0.3 } else { -0.3 };
                            Values::Each(indices.iter().map(sign).collect())
                        }
                    };
                    let update = SparseUpdate { indices, values };
                    let (payload, bits) = encode(&format, &update);
                    assert!(bits <= format.longest(), "{format:?}, {support:b}: {bits}");
                    // If encoding missing entries costs more than they save.
                    let dear = match layout {
                        Layout::Shared => 3 * q > dim,
                        Layout::Each => q == 1,
                        Layout::Signs => 2 * q > dim || q == 1,
                    };
                    assert!(
                        bits <= min + 2 || dear && update.indices.len() < q,
                        "{format:?}, {support:b}: {bits} for {min}"
                    );
                    assert!(same(&decode(&format, &payload).unwrap(), &update), "{format:?}, {support:b}");
                    assert!(seen.insert(payload), "{format:?}, {support:b}: seen before");
                }
            }
        }
    }
}

/// ⌈log2 C(d,q)⌉ from the integer itself.
fn ceil_log2_choose(dim: u32, q: u32) -> u64 {
    let choose = (0..q).fold(BigUint::from(1u32), |product, i| product * (dim - i) / (i + 1));
    (choose - 1u32).bits()
}

/// Supports of very different kinds.
fn supports(dim: u32, count: u32) -> Vec<Vec<u32>> {
    let mut all: Vec<u32> = (0..dim).collect();
    stream(3, Purpose::Test, u64::from(dim), u64::from(count)).shuffle_prefix(&mut all, count as usize);
    let mut random = all[..count as usize].to_vec();
    random.sort_unstable();
    let spread = |i: u32, shift: u64| {
        ((u64::from(i) * u64::from(dim) + shift * u64::from(dim) / 2) / u64::from(count)) as u32
    };
    vec![
        random,
        (0..count).map(|i| spread(i, 0)).collect(),
        (0..count).map(|i| spread(i, 1)).collect(),
        (0..count).collect(),
        (dim - count..dim).collect(),
        (0..count).map(|i| if i < count / 2 { i } else { dim - count + i }).collect(),
        (dim / 2 - count / 2..dim / 2 - count / 2 + count).collect(),
    ]
}

#[test]
fn the_length_is_the_count_of_the_paper_and_a_few_bits_for_every_support() {
    for dim in [10u32, 100, 1000, 1025, 3000, 7850, 30_000, 203_530] {
        for q in [1, 2, 3, 5, 10, 30, 100, 300, 1000, 3000, dim / 50, dim / 10, dim / 4, dim / 3] {
            if q == 0 || q > dim / 3 || q > 3000 {
                continue;
            }
            let format = Format::new(Layout::Shared, dim as usize, q as usize).unwrap();
            let min = ceil_log2_choose(dim, q) + 33;
            assert!(format.longest() <= min + 5, "d {dim}, q {q}: {}", format.longest());
            // All entries, one less, half of them, one, none. The largest value makes the longest payload.
            for count in [q, q - 1, q / 2, 1, 0] {
                for (kind, indices) in supports(dim, count).into_iter().enumerate() {
                    let (_, bits) = encode(&format, &shared(indices, f32::MIN));
                    assert!(
                        bits <= format.longest(),
                        "d {dim}, {count} of q {q}, support {kind}: {bits} bits, {min} by the count"
                    );
                }
            }
        }
    }
}

#[test]
fn the_limit_of_the_length_rises_with_q_and_stays_near_the_count() {
    for dim in [1usize, 2, 3, 10, 1024, 1025, 7850, 203_530, 10_000_000, (1 << 24) + 1, u32::MAX as usize] {
        for layout in LAYOUTS {
            let (mut q, mut before) = (0, 0);
            while q <= layout.max_entries(dim) {
                let longest = Format::new(layout, dim, q).unwrap().longest();
                assert!(longest >= before, "{layout:?}, d {dim}, q {q}: {longest} after {before}");
                let count = log2_choose(dim as u64, q as u64) + value_bits(layout, q as u64) as f64;
                // If fewer entries can take more bits than all.
                let dear = match layout {
                    Layout::Shared => 3 * q > dim,
                    Layout::Each => dim > 1 << 24 || q == 1 && dim < 256,
                    Layout::Signs => 2 * q > dim,
                };
                assert!(
                    dear || q == 0 || (longest as f64) < count + 6.0 + 4e-6 * count + dim as f64 / 2e9,
                    "{layout:?}, d {dim}, q {q}: {longest} bits, {count} counted"
                );
                before = longest;
                q += 1 + q / 100;
            }
        }
    }
}

#[test]
fn a_value_for_each_entry_takes_less_than_the_counted_33_bits() {
    for (dim, q) in [(100u32, 7u32), (7850, 60), (203_530, 900)] {
        let format = Format::new(Layout::Each, dim as usize, q as usize).unwrap();
        let min = ceil_log2_choose(dim, q) + 32 * u64::from(q) + 1;
        for indices in supports(dim, q) {
            let values = Values::Each(indices.iter().map(|&i| 0.5 - i as f32).collect());
            let (_, bits) = encode(&format, &SparseUpdate { indices, values });
            assert!(bits <= format.longest(), "d {dim}, q {q}: {bits} bits for {min}");
            assert!(format.longest() <= min + 5 && min + 5 <= ceil_log2_choose(dim, q) + 33 * u64::from(q));
        }
    }
}

#[test]
fn signs_take_the_counted_bits_and_a_few_for_every_support() {
    for dim in [10u32, 100, 1000, 1025, 3000, 7850, 30_000, 203_530] {
        for q in [1, 2, 3, 5, 10, 32, 33, 34, 100, 300, 1000, 3000, dim / 50, dim / 10, dim / 3, dim / 2] {
            if q == 0 || q > dim / 2 || q > 3000 {
                continue;
            }
            let format = Format::new(Layout::Signs, dim as usize, q as usize).unwrap();
            // ⌈r(q)⌉.
            let min = ceil_log2_choose(dim, q) + u64::from(q) + 32;
            assert!(format.longest() <= min + 5, "d {dim}, q {q}: {} for {min}", format.longest());
            assert_eq!((Stc {}.bits(dim as usize, q as usize).0 - 1e-9).ceil() as u64, min);
            for count in [q, q - 1, q / 2, 1, 0] {
                for (kind, indices) in supports(dim, count).into_iter().enumerate() {
                    // All negative: the largest numbers in the code of signs.
                    for modulus in [1, 2, 7] {
                        let sign = |i: u32| if i.is_multiple_of(modulus) { f32::MIN } else { f32::MAX };
                        let values = Values::Each((0..count).map(sign).collect());
                        let update = SparseUpdate { indices: indices.clone(), values };
                        let (payload, bits) = encode(&format, &update);
                        assert!(
                            bits <= format.longest(),
                            "d {dim}, {count} of q {q}, support {kind}: {bits} bits, {min} by the count"
                        );
                        assert!(same(&decode(&format, &payload).unwrap(), &update));
                    }
                }
            }
        }
    }
}

#[test]
fn updates_of_another_format_are_refused_with_a_reason() {
    let refused = |layout, dim, q, update: &SparseUpdate| {
        let format = Format::new(layout, dim, q).unwrap();
        Coder::default().encode(&format, update, &mut Vec::new()).unwrap_err().to_string()
    };
    let each = |indices: &[u32], values: &[f32]| SparseUpdate {
        indices: indices.to_vec(),
        values: Values::Each(values.to_vec()),
    };
    assert!(refused(Layout::Shared, 10, 2, &shared(vec![1, 2, 3], 1.0)).contains("3 entries"));
    assert!(refused(Layout::Shared, 10, 2, &shared(vec![3, 3], 1.0)).contains("entry 3 follows entry 3"));
    assert!(refused(Layout::Shared, 10, 2, &shared(vec![3, 1], 1.0)).contains("entry 1 follows entry 3"));
    assert!(refused(Layout::Shared, 10, 2, &shared(vec![3, 10], 1.0)).contains("entry 10 of 10"));
    assert!(refused(Layout::Shared, 10, 2, &each(&[3], &[1.0])).contains("Shared"));
    assert!(refused(Layout::Each, 10, 2, &shared(vec![3], 1.0)).contains("Each"));
    assert!(refused(Layout::Each, 10, 2, &each(&[3, 4], &[1.0])).contains("1 values for 2 entries"));
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(refused(Layout::Shared, 10, 2, &shared(vec![3], bad)).contains("entry 0"));
        assert!(refused(Layout::Each, 10, 2, &each(&[3, 4], &[1.0, bad])).contains("entry 1"));
        assert!(refused(Layout::Signs, 10, 2, &each(&[3, 4], &[bad, -bad])).contains("entry 0"));
    }
    assert!(refused(Layout::Signs, 10, 2, &shared(vec![3], 1.0)).contains("Signs"));
    assert!(refused(Layout::Signs, 10, 2, &each(&[3, 4], &[1.0])).contains("1 values for 2 entries"));
    assert!(refused(Layout::Signs, 10, 2, &each(&[3, 4], &[-1.0, 1.5])).contains("entry 1 is 1.5"));
    assert!(refused(Layout::Signs, 10, 2, &each(&[3, 4], &[1.0, 0.0])).contains("entry 1 is 0"));
    assert!(
        refused(Layout::Signs, 10, 2, &each(&[3, 4], &[0.0, -0.0]))
            .contains("magnitude of its 2 entries is 0")
    );
    for (layout, dim, q) in [
        (Layout::Shared, 10, 6),
        (Layout::Each, 10, 11),
        (Layout::Each, usize::MAX, 1),
        (Layout::Signs, 10, 8),
        (Layout::Signs, usize::MAX, 1),
    ] {
        assert!(Format::new(layout, dim, q).unwrap_err().to_string().contains("d/2"), "{layout:?} {dim} {q}");
    }
}

fn layouts() -> impl Strategy<Value = Layout> {
    prop::sample::select(LAYOUTS.to_vec())
}

/// A format and an update that follows it.
fn updates() -> impl Strategy<Value = (Format, SparseUpdate)> {
    let dims = prop_oneof![1..40usize, 1..3000usize, 1000..60_000usize];
    let values = prop_oneof![
        any::<f32>().prop_filter("finite", |value| value.is_finite()),
        prop::sample::select(vec![
            0.0,
            -0.0,
            f32::from_bits(1),
            -f32::MIN_POSITIVE / 2.0,
            f32::MAX,
            f32::MIN
        ]),
    ];
    let values = prop::collection::vec(values, 1..20);
    (dims, 0.0..=1.0f64, 0.0..=1.0f64, (layouts(), any::<[bool; 2]>()), any::<u64>(), values).prop_map(
        |(dim, share, full, (layout, [sparse, all]), seed, values)| {
            let max = layout.max_entries(dim);
            let q = ((if sparse { share.powi(6) } else { share }) * max as f64) as usize;
            let count = if all { q } else { (full * q as f64) as usize };
            let mut indices: Vec<u32> = (0..dim as u32).collect();
            stream(seed, Purpose::Test, 0, 0).shuffle_prefix(&mut indices, count);
            indices.truncate(count);
            indices.sort_unstable();
            let values = match layout {
                Layout::Shared => Values::Shared(if q == 0 { 0.0 } else { values[0] }),
                Layout::Each => Values::Each(values.iter().copied().cycle().take(count).collect()),
                Layout::Signs => {
                    let magnitude = values[0].abs().max(f32::from_bits(1));
                    let sign =
                        |i: usize| if seed.rotate_left(i as u32) % 3 == 0 { -magnitude } else { magnitude };
                    Values::Each((0..count).map(sign).collect())
                }
            };
            (Format::new(layout, dim, q).unwrap(), SparseUpdate { indices, values })
        },
    )
}

fn follows(format: &Format, update: &SparseUpdate, dim: u32, q: usize) {
    assert!(update.indices.len() <= q, "{format:?}");
    assert!(update.indices.array_windows().all(|[a, b]| a < b));
    assert!(update.indices.iter().all(|&index| index < dim));
    match &update.values {
        Values::Shared(value) => assert!(value.is_finite()),
        Values::Each(values) => {
            assert_eq!(values.len(), update.indices.len());
            assert!(values.iter().all(|value| value.is_finite()));
        }
        Values::Grid(_) => panic!("no layout has a grid"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_decoded_update_is_the_encoded_one((format, update) in updates()) {
        let (payload, bits) = encode(&format, &update);
        prop_assert_eq!(bits, bit_length(&payload));
        prop_assert!(bits <= format.longest(), "{} bits of {}", bits, format.longest());
        prop_assert!(same(&decode(&format, &payload).unwrap(), &update));
    }

    #[test]
    fn memory_of_one_message_does_not_affect_the_next(
        (first, before) in updates(), (format, update) in updates(),
    ) {
        let (mut coder, mut payload, mut received) = (Coder::default(), Vec::new(), SparseUpdate::default());
        coder.encode(&first, &before, &mut payload).unwrap();
        coder.decode(&first, &payload, &mut received).unwrap();
        coder.encode(&format, &update, &mut payload).unwrap();
        prop_assert_eq!(&payload, &encode(&format, &update).0);
        coder.decode(&format, &payload, &mut received).unwrap();
        prop_assert!(same(&received, &decode(&format, &payload).unwrap()));
    }

    #[test]
    fn a_damaged_payload_is_another_update_or_an_error(
        (format, update) in updates(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (good, _) = encode(&format, &update);
        prop_assume!(!good.is_empty());
        let mut payload = good.clone();
        changes.iter().for_each(|(at, flip)| payload[at.index(good.len())] ^= flip);
        if let Some(cut) = cut {
            payload.truncate(cut.index(good.len()));
        }
        if let Ok(received) = decode(&format, &payload) {
            // Different payloads are different updates: the decoded update encodes to the received bytes.
            prop_assert_eq!(&encode(&format, &received).0, &payload);
            prop_assert_eq!(payload == good, same(&received, &update));
        }
    }

    #[test]
    fn any_bytes_are_an_update_of_the_format_or_an_error(
        dim in 1..5000usize, share in 0.0..=1.0f64, layout in layouts(),
        payload in prop::collection::vec(any::<u8>(), 0..200), trim in any::<bool>(),
    ) {
        let q = (share.powi(3) * layout.max_entries(dim) as f64) as usize;
        let format = Format::new(layout, dim, q).unwrap();
        // Most random bytes are too long: with a valid length, more of the decoder is tested.
        let right = (format.longest() / 8) as usize;
        let payload = if trim { &payload[..payload.len().min(right)] } else { &payload[..] };
        let mut update = shared(vec![1, 2], 3.0);
        if Coder::default().decode(&format, payload, &mut update).is_ok() {
            follows(&format, &update, dim as u32, q);
            prop_assert_eq!(encode(&format, &update).0, payload);
        } else {
            prop_assert_eq!(update, SparseUpdate::default());
        }
    }
}
