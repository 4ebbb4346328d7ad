//! Any bytes are an update in the codec of each scheme, which is written as the same bytes again, or an
//! error.
//!
//! The first byte chooses a scheme, and its highest bit whether the layers of the model are known.

use fedlink::base::units::{Bits, Shape};
use fedlink::compress::wire::{Coder, bit_length};
use fedlink::compress::{Compressor, Context, Encoded};
use fedlink::parts::{Kind, Scope, find};
use std::cell::RefCell;
use toml::Table;

thread_local! {
    /// Every scheme with its defaults, and the schemes whose settings change their bytes.
    static SCHEMES: Vec<Box<dyn Compressor>> = {
        let build = |name: &str, own: &str| {
            let own: Table = own.parse().expect("settings");
            find::<dyn Compressor>(name).and_then(|entry| entry.build(&own, &Scope::default(), &()))
        };
        let defaults = <dyn Compressor>::entries().iter().map(|entry| (entry.name, ""));
        let others = [
            ("top-k", "value_bits = 16"),
            ("top-k", "value_bits = \"exponent\""),
            ("top-k", "value_bits = \"levels\""),
            ("top-k", "value_bits = \"levels\"\nlevels = 4"),
        ];
        defaults.chain(others).map(|(name, own)| build(name, own).expect("valid settings")).collect()
    };
    static CODER: RefCell<Coder> = RefCell::default();
}

/// Two matrices and biases that have `dim` numbers together.
fn layers(dim: usize) -> [Shape; 3] {
    let rows = (dim / 2).isqrt();
    let first = Shape { rows, cols: rows };
    let second = Shape { rows: 3, cols: (dim - first.len()) / 4 };
    [first, second, Shape { rows: dim - first.len() - second.len(), cols: 1 }]
}

pub fn run(bytes: &[u8]) {
    let [choice, d0, d1, b0, b1, b2, payload @ ..] = bytes else { return };
    // Up to 2¹⁶, mostly less.
    let dim = usize::from(u16::from_be_bytes([*d0, *d1]) >> (d0 % 8));
    let budget = Bits(f64::from(u32::from_be_bytes([0, *b0, *b1, *b2])) / 8.0);
    let layers = layers(dim);
    let context = &Context::new(dim, budget).with_shapes(if choice & 0x80 == 0 { &[] } else { &layers });
    SCHEMES.with(|schemes| {
        let Some(codec) = schemes[usize::from(choice & 0x7f) % schemes.len()].codec() else { return };
        CODER.with_borrow_mut(|coder| {
            let mut update = Encoded::Dense(vec![7.0]);
            if codec.read(coder, context, payload, &mut update).is_err() {
                return;
            }
            assert_eq!(update.check(dim), Ok(()));
            let mut again = Vec::new();
            let bits = codec.write(coder, context, &update, &mut again);
            let bits = bits.expect("a decoded update follows its format");
            assert_eq!(again, payload);
            assert!(bits == bit_length(payload) && bits <= codec.longest(context));
        });
    });
}
