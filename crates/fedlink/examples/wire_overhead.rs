//! The bits of payloads beyond ⌈log2 C(d,q)⌉ + 33, by exact integers: the table of `docs/wire-format.md`,
//! which `cargo xtask docs` writes there.
//!
//! ```text
//! cargo run --package fedlink --example wire_overhead
//! ```

use fedlink::base::rng::{Purpose, stream};
use fedlink::compress::wire::{Coder, Format, Layout};
use fedlink::compress::{SparseUpdate, Values};
use num_bigint::BigUint;
use std::fmt::Write;

/// The overheads of one format.
pub struct Row {
    /// d and q.
    pub format: [u32; 2],
    /// ⌈log2 C(d,q)⌉ + 33.
    pub count: u64,
    /// Bits beyond that, for some random supports.
    pub random: Vec<i64>,
    /// And for one of each kind of [`KINDS`].
    pub kinds: [i64; 5],
}

/// Supports that are not random: entries evenly spread, …
const KINDS: [&str; 5] = ["even", "first", "last", "halves", "clusters"];

fn kinds(dim: u32, q: u32) -> [Vec<u32>; 5] {
    let part = |i: u32, of: u32, whole: u32| (u64::from(i) * u64::from(whole) / u64::from(of)) as u32;
    // Cluster c has the entries from c·q/8 on, at the indices from c·d/8 on.
    let cluster = |i: u32| {
        let c = (0..8).rev().find(|&c| part(c, 8, q) <= i).unwrap_or(0);
        part(c, 8, dim) + i - part(c, 8, q)
    };
    [
        (0..q).map(|i| part(i, q, dim)).collect(),
        (0..q).collect(),
        (dim - q..dim).collect(),
        (0..q).map(|i| if i < q / 2 { i } else { dim - q + i }).collect(),
        (0..q).map(cluster).collect(),
    ]
}

/// `q` ascending indices below `dim`, at random.
fn random(dim: u32, q: u32, draw: u64) -> Vec<u32> {
    let mut rng = stream(1, Purpose::Test, draw, u64::from(dim));
    if dim / q > 50 {
        // Floyd's method: the i-th draw is among the first dim − q + i indices, or that last one if taken.
        let mut chosen = std::collections::BTreeSet::new();
        for last in dim - q..dim {
            let index = rng.below(u64::from(last) + 1) as u32;
            chosen.insert(if chosen.contains(&index) { last } else { index });
        }
        return chosen.into_iter().collect();
    }
    // One index after the other: those to come are chosen with the probability that is left for them.
    let mut left = u64::from(q);
    let mut is_chosen = |index: &u32| {
        let chosen = rng.below(u64::from(dim - index)) < left;
        left -= u64::from(chosen);
        chosen
    };
    (0..dim).filter(|index| is_chosen(index)).collect()
}

/// C(n, k) from its prime factors: p occurs as often as adding k and n − k in base p carries (Kummer).
fn choose(n: u64, k: u64, primes: &[u64]) -> BigUint {
    let carries = |p: u64| {
        let (mut a, mut b, mut carry, mut count) = (k, n - k, 0, 0u32);
        while a + b + carry > 0 {
            carry = u64::from(a % p + b % p + carry >= p);
            count += carry as u32;
            (a, b) = (a / p, b / p);
        }
        count
    };
    let factors: Vec<BigUint> = primes
        .iter()
        .take_while(|&&p| p <= n)
        .map(|&p| (p, carries(p)))
        .filter(|&(_, count)| count > 0)
        .map(|(p, count)| BigUint::from(p).pow(count))
        .collect();
    product(&factors)
}

/// The product of many numbers, multiplied in pairs so that factors are of like size.
fn product(factors: &[BigUint]) -> BigUint {
    match factors {
        [] => BigUint::from(1u32),
        [one] => one.clone(),
        many => {
            let (a, b) = many.split_at(many.len() / 2);
            product(a) * product(b)
        }
    }
}

fn primes_up_to(max: usize) -> Vec<u64> {
    let mut prime = vec![true; max + 1];
    (2..=max)
        .filter(|&i| {
            if prime[i] {
                (i * i..=max).step_by(i).for_each(|multiple| prime[multiple] = false);
            }
            prime[i]
        })
        .map(|i| i as u64)
        .collect()
}

/// The rows of the table. Every payload is decoded too, and compared.
pub fn rows() -> Vec<Row> {
    const MOST: u32 = 10_000_000;
    let primes = primes_up_to(MOST as usize);
    let mut coder = Coder::default();
    let mut rows = Vec::new();
    for dim in [10, 100, 1000, 7850, 10_000, 100_000, 203_530, 1_000_000, MOST] {
        let grid = [1, 2, 5, 10, 30, 100, 300, 1000, 3000, 10_000, dim / 100, dim / 10, dim / 3, dim / 2];
        let mut grid: Vec<u32> = grid.into_iter().filter(|q| (1..=dim / 2).contains(q)).collect();
        grid.sort_unstable();
        grid.dedup();
        for q in grid {
            let count = (choose(u64::from(dim), u64::from(q), &primes) - 1u32).bits() + 33;
            let format = Format::new(Layout::Shared, dim as usize, q as usize).expect("q is at most d/2");
            let mut beyond = |indices: Vec<u32>| {
                let update = SparseUpdate { indices, values: Values::Shared(1.0) };
                let (mut payload, mut received) = (Vec::new(), SparseUpdate::default());
                let bits = coder.encode(&format, &update, &mut payload).expect("an update of that format");
                coder.decode(&format, &payload, &mut received).expect("what was encoded");
                assert_eq!(received, update);
                assert!(bits <= format.longest(), "{bits} bits of {format:?}");
                bits as i64 - count as i64
            };
            let draws = if q > 100_000 { 3 } else { 20 };
            let random = (0..draws).map(|draw| beyond(random(dim, q, draw))).collect();
            rows.push(Row { format: [dim, q], count, random, kinds: kinds(dim, q).map(beyond) });
        }
    }
    rows
}

/// The table in Markdown.
pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "| d | q | ⌈log2 C(d,q)⌉ + 33 | random: mean | random: max | {} |\n|{}\n",
        KINDS.join(" | "),
        "---|".repeat(5 + KINDS.len())
    );
    for Row { format: [dim, q], count, random, kinds } in rows {
        let mean = random.iter().sum::<i64>() as f64 / random.len() as f64;
        let max = random.iter().max().expect("some were drawn");
        let kinds = kinds.map(|bits| bits.to_string()).join(" | ");
        writeln!(text, "| {dim} | {q} | {count} | {mean:.1} | {max} | {kinds} |").expect("memory");
    }
    text
}

fn main() {
    print!("{}", table(&rows()));
}
