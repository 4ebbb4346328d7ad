//! One target under libFuzzer: that of which the environment variable `FEDLINK_FUZZ` has the name while this
//! is built. A program of its own for each target has only the code that the target reaches, and libFuzzer,
//! which goes through the counters of the whole program after every input, is faster by far.
//!
//! Without an argument the program prints the target's longest input and most memory, in bytes.
#![no_main]

use fedlink_fuzz_targets::Target;
use fedlink_fuzz_targets::memory::Counting;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Found while this is compiled, so that no other target is linked.
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
        // What is made once, such as tables and a pool of threads, belongs to no input.
        (TARGET.run)(&[0; 16]);
    },
    |bytes: &[u8]| TARGET.check(bytes)
);
