//! Runs one target under libFuzzer: that of which the environment variable `FEDLINK_FUZZ` has the name. If it
//! is empty, the targets are listed: name, longest input and most memory, in bytes.
#![no_main]

use fedlink_fuzz_targets::memory::Counting;
use fedlink_fuzz_targets::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FEDLINK_FUZZ").unwrap_or_default();
    if name.is_empty() {
        TARGETS
            .iter()
            .for_each(|target| println!("{} {} {}", target.name, target.max_len, target.max_memory));
        std::process::exit(0);
    }
    let target = Target::find(&name).unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("FEDLINK_FUZZ is {name:?}, but must be one of {}", names.join(", "));
        std::process::exit(2)
    });
    // What is made once, such as tables and a pool of threads, belongs to no input.
    (target.run)(&[0; 16]);
    target
});

fuzz_target!(
    init: {
        let _ = *TARGET;
    },
    |bytes: &[u8]| TARGET.check(bytes)
);
