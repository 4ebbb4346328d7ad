//! Every target on its seeds and on a fixed number of mutations of them.
//!
//! There is one test only, because the allocator counts for the whole process.

use fedlink_fuzz_targets::memory::Counting;
use fedlink_fuzz_targets::mutation::{Numbers, mutated};
use fedlink_fuzz_targets::{TARGETS, Target};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The folder of the fuzzers.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The seeds of a target in the order of their names.
fn seeds(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = folder().join("seeds").join(target.name);
    let listed = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut seeds: Vec<(String, Vec<u8>)> = listed
        .map(|file| file.expect("a folder that can be read").path())
        .map(|path| (path.display().to_string(), fs::read(&path).expect("a file that can be read")))
        .collect();
    seeds.sort();
    seeds
}

/// Runs a target; an input on which it fails is kept in `fuzz/artifacts`, as libFuzzer does.
fn check(target: &Target, name: &str, bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| target.check(bytes))).is_err() {
        let artifacts = folder().join("artifacts").join(target.name);
        let kept = artifacts.join("crash-in-the-test");
        fs::create_dir_all(&artifacts).and_then(|()| fs::write(&kept, bytes)).expect("a folder to write to");
        panic!(
            "target {} failed on {name}, kept as {}; once it is fixed, make it a seed",
            target.name,
            kept.display()
        );
    }
}

#[test]
fn every_target_passes_its_seeds_and_mutations_within_its_memory() {
    for entry in fs::read_dir(folder().join("seeds")).expect("a folder that can be read") {
        let name = entry.expect("a folder that can be read").file_name().into_string().expect("a plain name");
        assert!(Target::find(&name).is_some(), "fuzz/seeds/{name} belongs to no target");
    }
    // A check of the check: memory is counted.
    let greedy: fn(&[u8]) = |_| drop(std::hint::black_box(vec![1u8; 100_000]));
    let greedy = Target { name: "greedy", max_len: 0, max_memory: 99_999, mutations: 0, run: greedy };
    assert!(catch_unwind(|| greedy.check(&[])).is_err(), "more memory than stated was not noticed");
    Target { max_memory: 110_000, ..greedy }.check(&[]);
    // Nearly the maximum number of combinations: 2¹³.
    let keys: Vec<String> = (0..13).map(|i| format!("\"custom.key{i}\" = [\"a\", \"b\"]\n")).collect();
    let experiment = Target::find("experiment").expect("it is a target");
    check(&experiment, "a large sweep", format!("[sweep]\n{}", keys.concat()).as_bytes());
    for target in TARGETS {
        let seeds = seeds(target);
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        // Data that are made once, such as tables and a pool of threads, do not count for an input.
        (target.run)(&seeds[0].1);
        for (name, bytes) in &seeds {
            assert!(bytes.len() <= target.max_len, "{name} is longer than {} bytes", target.max_len);
            check(target, name, bytes);
        }
        let seeds: Vec<Vec<u8>> = seeds.into_iter().map(|(_, bytes)| bytes).collect();
        let mut numbers = Numbers(1);
        for index in 0..target.mutations {
            check(target, &format!("mutation {index}"), &mutated(&seeds, target.max_len, &mut numbers));
        }
    }
}
