//! One function for each parser of fedlink: any bytes give a valid value or an error.
//!
//! A target must not panic, not hang, and not hold more memory than it states; it asserts the guarantees
//! of its parser for an accepted value. [`TARGETS`] lists all of them. The test of this crate runs each
//! on its seeds (`fuzz/seeds/NAME`) and on a fixed number of mutations of them; the program in the folder
//! above runs them under libFuzzer (`cargo xtask fuzz`).
//!
//! A target is one file with a function `run`, one line in the list below, and a folder of seeds.

pub mod memory;
pub mod mutation;

/// A parser under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name; its seeds are in `fuzz/seeds/NAME`.
    pub name: &'static str,
    /// The longest input, in bytes. Mutations of seeds and libFuzzer stay below it.
    pub max_len: usize,
    /// The most memory that one input may hold, in bytes, beyond the memory held before.
    pub max_memory: usize,
    /// Mutations that the test of this crate tries.
    pub mutations: u32,
    /// Parses the bytes and asserts the guarantees for the result.
    pub run: fn(&[u8]),
}

impl Target {
    /// The target called `name`.
    pub const fn find(name: &str) -> Option<Self> {
        let mut rest = TARGETS;
        while let [target, others @ ..] = rest {
            if are_equal(target.name.as_bytes(), name.as_bytes()) {
                return Some(*target);
            }
            rest = others;
        }
        None
    }

    /// Runs the target on `bytes`; panics if it holds more memory than it states. The count is that of
    /// [`memory::Counting`]; with another allocator it is zero.
    pub fn check(&self, bytes: &[u8]) {
        let (held, ()) = memory::peak(|| (self.run)(bytes));
        assert!(
            held <= self.max_memory,
            "{} held {held} bytes for an input of {}; it states at most {}",
            self.name,
            bytes.len(),
            self.max_memory
        );
    }
}

/// Equality at compile time.
const fn are_equal(mut first: &[u8], mut second: &[u8]) -> bool {
    while let ([a, others @ ..], [b, rest @ ..]) = (first, second) {
        if *a != *b {
            return false;
        }
        (first, second) = (others, rest);
    }
    first.is_empty() && second.is_empty()
}

/// Declares the targets: module, longest input, most memory, mutations in the test.
macro_rules! targets {
    ($($(#[$attribute:meta])* $name:ident: $max_len:expr, $max_memory:expr, $mutations:expr;)*) => {
        $($(#[$attribute])* mod $name;)*

        /// Every target.
        pub const TARGETS: &[Target] = &[$($(#[$attribute])* Target {
            name: stringify!($name),
            max_len: $max_len,
            max_memory: $max_memory,
            mutations: $mutations,
            run: $name::run,
        },)*];
    };
}

/// 2¹⁰ bytes.
const KB: usize = 1 << 10;
/// 2²⁰ bytes.
const MB: usize = 1 << 20;

targets! {
    #[cfg(feature = "archives")]
    archive: 8 * KB, 2 * MB, 10_000;
    cell: 8 * KB, 4 * MB, 5000;
    checkpoint: 8 * KB, 16 * MB, 5000;
    cifar: 8 * KB, 64 * KB, 20_000;
    #[cfg(feature = "archives")]
    cifar_png: 8 * KB, 2 * MB, 10_000;
    claim: 2 * KB, MB, 20_000;
    claims_file: 4 * KB, MB, 10_000;
    codec: 4 * KB, 16 * MB, 20_000;
    csv: 4 * KB, 128 * KB, 50_000;
    experiment: 4 * KB, 512 * MB, 3000;
    idx: 4 * KB, 5 * MB, 50_000;
    manifest: 4 * KB, MB, 20_000;
    mean_gains: 4 * KB, 128 * KB, 50_000;
    npz: 4 * KB, 5 * MB, 20_000;
    plain: 4 * KB, 64 * KB, 50_000;
    positions: 4 * KB, 256 * KB, 20_000;
    rate: 2 * KB, 256 * KB, 50_000;
    #[cfg(feature = "archives")]
    round_log: 4 * KB, MB, 20_000;
    server: 8 * KB, 16 * MB, 5000;
    settings: 2 * KB, 512 * MB, 3000;
    state: 4 * KB, 8 * MB, 50_000;
    trace: 4 * KB, 5 * MB, 20_000;
    wire_decode: 4 * KB, 16 * MB, 20_000;
    wire_encode: 4 * KB, 16 * MB, 20_000;
}
