//! One target under libFuzzer: the one in the environment variable `FEDLINK_FUZZ` at build time. A
//! program per target has only the code that the target reaches. This makes libFuzzer much faster,
//! because it reads the counters of the whole program after every input.
//!
//! Without an argument the program prints the target's longest input and most memory, in bytes.
#![no_main]

use fedlink_fuzz_targets::Target;
use fedlink_fuzz_targets::memory::Counting;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Found at compile time, so that no other target is linked.
const TARGET: Target = match Target::find(env!("FEDLINK_FUZZ")) {
    Some(target) => target,
    None => panic!("FEDLINK_FUZZ is not the name of a target"),
};

fuzz_target!(
    init: {
        if std::env::args_os().len() == 1 {
            println!("{} {}", TARGET.max_len, TARGET.max_memory);
            std::process::exit(0);
        }
        // Data that are made once, such as tables and a pool of threads, do not count for an input.
        (TARGET.run)(&[0; 16]);
    },
    |bytes: &[u8]| TARGET.check(bytes)
);
