//! The test vectors of the wire format, which `cargo xtask docs` writes to `tests/vectors/wire-1.json`.

use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::Bits;
use fedlink::compress::wire::{Coder, Format, Layout, VERSION};
use fedlink::compress::{Compressor, Context, Encoded, Scratch, SparseUpdate, Values};
use fedlink::parts::{Kind, Scope};
use serde_json::{Value, json};

/// `count` indices below `dim` at random, ascending.
fn random(dim: u32, count: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (0..dim).collect();
    stream(7, Purpose::Test, u64::from(dim), count as u64).shuffle_prefix(&mut all, count);
    all.truncate(count);
    all.sort_unstable();
    all
}

/// A value for each of `count` entries, of many sizes and both signs.
fn values(count: usize) -> Vec<f32> {
    let mut rng = stream(7, Purpose::Test, 0, count as u64);
    let value = |_| loop {
        let value = f32::from_bits(rng.below(1 << 32) as u32);
        if value.is_finite() {
            return value;
        }
    };
    (0..count).map(value).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn case(name: &str, layout: Layout, dim: u32, q: usize, indices: Vec<u32>, values: Values) -> Value {
    let format = Format::new(layout, dim as usize, q).expect("a format");
    let update = SparseUpdate { indices, values };
    let mut payload = Vec::new();
    let bits = Coder::default().encode(&format, &update, &mut payload).expect("an update of that format");
    let values = match &update.values {
        Values::Shared(value) => std::slice::from_ref(value),
        Values::Each(values) => values,
        Values::Grid(_) => unreachable!("no case of this layout has a grid"),
    };
    let values: Vec<String> = values.iter().map(|value| format!("{:08x}", value.to_bits())).collect();
    json!({
        "name": name, "layout": layout_name(layout), "d": dim, "q": q, "indices": update.indices,
        "values": values, "bits": bits, "payload": hex(&payload),
    })
}

fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Shared => "shared",
        Layout::Each => "each",
        Layout::Signs => "signs",
    }
}

fn valid() -> Vec<Value> {
    let shared =
        |name, dim, q, indices, value| case(name, Layout::Shared, dim, q, indices, Values::Shared(value));
    let each = |name, dim, q, indices: Vec<u32>| {
        let values = values(indices.len());
        case(name, Layout::Each, dim, q, indices, Values::Each(values))
    };
    let signs = |name, dim, q, indices: Vec<u32>, magnitude: f32| {
        let values = values(indices.len()).iter().map(|value| magnitude.copysign(*value)).collect();
        case(name, Layout::Signs, dim, q, indices, Values::Each(values))
    };
    let even = |dim: u32, count: u32| (0..count).map(|i| i * (dim / count)).collect::<Vec<u32>>();
    vec![
        shared("nothing can be sent", 10, 0, vec![], 0.0),
        shared("the only entry of two", 2, 1, vec![1], 1.0),
        shared("three of ten", 10, 3, vec![0, 4, 9], 1.5),
        shared("half of ten", 10, 5, vec![0, 2, 4, 6, 8], -1.5),
        shared("half of ten, at the end", 10, 5, vec![5, 6, 7, 8, 9], -0.0),
        shared("one missing", 100, 8, vec![3, 5, 7, 30, 31, 32, 99], 0.25),
        shared("all missing", 100, 8, vec![], 0.25),
        shared("one of one missing", 3, 1, vec![], 0.0),
        shared("the smallest value", 100, 2, vec![98, 99], f32::from_bits(1)),
        shared("the largest value", 100, 2, vec![0, 1], f32::MIN),
        shared("the last dimension without the plain law", 1024, 20, random(1024, 20), 3.0),
        shared("the first dimension with the plain law", 1025, 20, random(1025, 20), 3.0),
        shared("dense", 3000, 1500, random(3000, 1500), 1e-3),
        shared("dense with many missing", 3000, 1500, random(3000, 1400), 1e-3),
        shared("softmax regression", 7850, 200, random(7850, 200), 0.01),
        shared("softmax regression, missing", 7850, 200, random(7850, 77), 0.01),
        shared("gaps longer than the stride", 100_000, 5, vec![9, 50_000, 50_001, 98_436, 98_437], 2.0),
        shared("everything at the beginning", 20_000, 300, (0..300).collect(), -7.0),
        shared("everything at the end", 20_000, 300, (19_700..20_000).collect(), -7.0),
        shared("evenly spread", 20_000, 300, even(20_000, 300), -7.0),
        shared("the paper's network", 203_530, 500, random(203_530, 500), -2.5e-3),
        shared("a large model", 10_000_000, 40, random(10_000_000, 40), 1e-9),
        each("nothing, with a value each", 10, 0, vec![]),
        each("one of one", 1, 1, vec![0]),
        each("all of five", 5, 5, vec![0, 1, 2, 3, 4]),
        each("all but one", 50, 50, (0..50).filter(|&i| i != 20).collect()),
        each("all missing, with a value each", 50, 4, vec![]),
        each("two missing, with a value each", 50, 4, vec![17, 40]),
        each("softmax regression, with a value each", 7850, 60, random(7850, 60)),
        each("most of a dimension", 2000, 1900, random(2000, 1800)),
        each("the paper's network, with a value each", 203_530, 100, random(203_530, 100)),
        signs("nothing, with signs", 10, 0, vec![], 1.0),
        signs("one of one, with its sign", 1, 1, vec![0], 1.5),
        signs("both of two, with signs", 2, 2, vec![0, 1], 1.5),
        signs("all missing, with signs", 50, 4, vec![], 1.0),
        signs("two missing, with signs", 50, 4, vec![17, 40], 0.25),
        signs("the smallest magnitude", 100, 2, vec![98, 99], f32::from_bits(1)),
        signs("the largest magnitude", 100, 2, vec![0, 1], f32::MAX),
        signs("two groups of signs and one more", 1024, 66, random(1024, 66), 3.0),
        signs("two whole groups of signs", 1025, 65, random(1025, 65), 3.0),
        signs("as dense as signs can be", 3000, 2000, random(3000, 2000), 1e-3),
        signs("as dense as signs can be, with many missing", 3000, 2000, random(3000, 1700), 1e-3),
        signs("softmax regression, with signs", 7850, 200, random(7850, 200), 0.01),
        signs("the paper's network, with signs", 203_530, 500, random(203_530, 500), 2.5e-3),
    ]
}

/// Payloads that are wrong in one way each: changed ones, and some that no encoder makes.
fn invalid() -> Vec<Value> {
    let format = Format::new(Layout::Shared, 7850, 20).expect("a format");
    let update = SparseUpdate { indices: random(7850, 20), values: Values::Shared(1.0) };
    let mut good = Vec::new();
    Coder::default().encode(&format, &update, &mut good).expect("an update of that format");
    let other = |name: &str, layout: &str, d: u32, q: u32, payload: &[u8]| {
        let payload = hex(payload);
        json!({ "name": name, "layout": layout, "d": d, "q": q, "payload": payload })
    };
    let case = |name: &str, payload: &[u8]| other(name, "shared", 7850, 20, payload);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut payload = good.clone();
        change(&mut payload);
        payload
    };
    // The only entry of one: the version and that none is missing, on the value.
    let of_one = |value: f32| stack(value, &[(SELDOM, SLOTS), VERSION_1]);
    // With signs, an entry of one is as likely as not to be missing.
    let sign_of_one = |value: f32| stack(value, &[(SLOTS / 2, SLOTS), VERSION_1]);
    let no_sign = |value: f32| stack(value, &[(0, SLOTS / 2), VERSION_1]);
    vec![
        case("empty", &[]),
        case("a zero byte in front", &changed(&|payload| payload.insert(0, 0))),
        case("a byte more", &changed(&|payload| payload.push(0))),
        case("two bytes more", &changed(&|payload| payload.extend([1, 2]))),
        case("a byte less", &changed(&|payload| payload.truncate(good.len() - 1))),
        case("half of it", &changed(&|payload| payload.truncate(good.len() / 2))),
        case("another version", &[0xff; 20]),
        case("all ones but the version", &[&[0x80, 0, 0, 0][..], &[0xff; 30][..]].concat()),
        case("one", &[1]),
        // Of a message's bottom, 2³² + the bits of the value, with nothing on it.
        case("a value and no symbol", &[1, 0x3f, 0x80, 0, 0]),
        other("something where nothing can be sent", "shared", 10, 0, &[1]),
        other("a zero byte where nothing can be sent", "each", 10, 0, &[0]),
        other("infinity", "each", 1, 1, &of_one(f32::INFINITY)),
        other("minus infinity", "each", 1, 1, &of_one(f32::NEG_INFINITY)),
        other("not a number", "each", 1, 1, &of_one(f32::NAN)),
        other("a value without an entry", "each", 1, 1, &stack(1.0, &[(0, SELDOM), VERSION_1])),
        other("seven of five missing", "shared", 20, 5, &seven_of_five()),
        other("an infinite magnitude", "signs", 1, 1, &sign_of_one(f32::NEG_INFINITY)),
        other("a magnitude that is not a number", "signs", 1, 1, &sign_of_one(f32::NAN)),
        other("a magnitude of zero", "signs", 1, 1, &sign_of_one(0.0)),
        other("a magnitude of minus zero", "signs", 1, 1, &sign_of_one(-0.0)),
        other("a magnitude without an entry", "signs", 1, 1, &no_sign(1.0)),
        other("something where no signs can be sent", "signs", 10, 0, &[1]),
    ]
}

const SLOTS: u64 = 1 << 32;
const VERSION_1: (u64, u64) = (0, SLOTS - (1 << 24));

/// Slots below which a value for each means that entries are missing.
const SELDOM: u64 = 1 << 24;

/// A payload of few symbols, the last one on top, by the page's rule for putting them while no word moves.
fn stack(value: f32, symbols: &[(u64, u64)]) -> Vec<u8> {
    let mut number = SLOTS + u64::from(value.to_bits());
    for &(start, end) in symbols {
        let width = end - start;
        assert!(number < SLOTS * width, "a word would move");
        number = SLOTS * (number / width) + start + number % width;
    }
    number.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect()
}

/// With q = 5 among 20, three digits encode the number of missing entries: 6 is one less than 7.
fn seven_of_five() -> Vec<u8> {
    let theta = SLOTS * 5 / 16 + 1;
    let square = |u: u64| u * u / SLOTS + 1;
    let yes = |u: u64| SLOTS * u / (SLOTS + u) + 1;
    let [low, middle, high] = [theta, square(theta), square(square(theta))].map(yes);
    stack(1.0, &[(0, high), (0, middle), (low, SLOTS), (0, theta), VERSION_1])
}

/// The message of a scheme with these settings for normal numbers, in a layout of its own; q is the
/// largest number of entries.
fn scheme_case(layout: &str, name: &str, own: &str, dim: usize, budget: f64) -> Option<Value> {
    let own: toml::Table = own.parse().expect("settings");
    let entry = <dyn Compressor>::entries().iter().find(|entry| entry.name == name).expect("a scheme");
    let scheme = entry.build(&own, &Scope::default(), &()).expect("valid settings");
    let mut rng = stream(7, Purpose::Test, 1, dim as u64);
    // A quarter are zeros, and sizes differ.
    let size = |i: usize| if i % 4 == 3 { 0.0 } else { 1.0 + (i % 5) as f64 };
    let update: Vec<f32> = (0..dim).map(|i| (rng.normal() * size(i)) as f32).collect();
    let (context, mut sent, mut payload) = (Context::new(dim, Bits(budget)), Encoded::default(), Vec::new());
    let spent = scheme.encode(&update, &context, &mut rng, &mut Scratch::default(), &mut sent);
    if spent.level == 0 {
        return None;
    }
    let codec = scheme.codec().expect("a scheme with bytes");
    let bits = codec.write(&mut Coder::default(), &context, &sent, &mut payload).expect("its own update");
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    sent.for_each(|i, value| {
        indices.push(i);
        values.push(format!("{:08x}", value.to_bits()));
    });
    Some(json!({
        "name": format!("{name} of {dim} within {budget} bits"), "layout": layout, "d": dim, "q": spent.level,
        "indices": indices, "values": values, "bits": bits, "payload": hex(&payload),
    }))
}

fn schemes() -> Vec<Value> {
    let mut all = Vec::new();
    for (dim, budget) in [(1, 100.0), (40, 90.0), (40, 170.0), (500, 700.0), (500, 5000.0), (3000, 2000.0)] {
        for (layout, name, own) in [
            ("rand-k", "rand-k", ""),
            ("sign", "sign", ""),
            ("half", "top-k", "value_bits = 16"),
            ("exponent", "top-k", "value_bits = \"exponent\""),
            ("levels-2", "top-k", "value_bits = \"levels\""),
            ("levels-4", "top-k", "value_bits = \"levels\"\nlevels = 4"),
            ("grid", "qsgd", ""),
        ] {
            all.extend(scheme_case(layout, name, own, dim, budget));
        }
    }
    all
}

/// All of them.
pub fn vectors() -> Value {
    json!({ "version": VERSION, "valid": valid(), "invalid": invalid(), "schemes": schemes() })
}

fn main() {
    let vectors = vectors();
    // A line for each.
    let lines = |key: &str| {
        let cases = vectors[key].as_array().expect("a list");
        cases.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n")
    };
    println!(
        "{{\"version\": {VERSION},\n\"valid\": [\n{}\n],\n\"invalid\": [\n{}\n],\n\"schemes\": [\n{}\n]}}",
        lines("valid"),
        lines("invalid"),
        lines("schemes")
    );
}
