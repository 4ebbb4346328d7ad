//! How many bits payloads have beyond ⌈log2 C(d,q)⌉ + 33, by exact integers; the table of `docs/wire-format.md`:
//!
//! ```text
//! cargo run --release --example wire_overhead
//! ```

use fedlink::compress::wire::{Coder, Format, Layout};
use fedlink::compress::{SparseUpdate, Values};
use fedlink::rng::{Purpose, stream};
use num_bigint::BigUint;

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

fn primes_up_to(most: usize) -> Vec<u64> {
    let mut prime = vec![true; most + 1];
    (2..=most)
        .filter(|&i| {
            if prime[i] {
                (i * i..=most).step_by(i).for_each(|multiple| prime[multiple] = false);
            }
            prime[i]
        })
        .map(|i| i as u64)
        .collect()
}

/// `count` ascending places below `dim`, at random.
fn random(dim: u32, count: u32, draw: u64) -> Vec<u32> {
    // Floyd's method: the i-th draw is among the first dim − count + i places, or that last one if taken.
    let mut chance = stream(1, Purpose::Test, draw, u64::from(dim));
    let mut chosen = std::collections::BTreeSet::new();
    for last in dim - count..dim {
        let place = chance.below(u64::from(last) + 1) as u32;
        chosen.insert(if chosen.contains(&place) { last } else { place });
    }
    chosen.into_iter().collect()
}

fn main() {
    const MOST: u32 = 10_000_000;
    const DRAWS: u64 = 20;
    let primes = primes_up_to(MOST as usize);
    let mut coder = Coder::default();
    println!("| d | q | ⌈log2 C(d,q)⌉ + 33 | random: mean | random: most | even | first | last |");
    println!("|---|---|---|---|---|---|---|---|");
    for dim in [10, 100, 1000, 7850, 10_000, 100_000, 203_530, 1_000_000, MOST] {
        let grid = [1, 2, 5, 10, 30, 100, 300, 1000, 3000, 10_000, dim / 100, dim / 10, dim / 3, dim / 2];
        let mut grid: Vec<u32> = grid.into_iter().filter(|q| (1..=dim / 2).contains(q)).collect();
        grid.sort_unstable();
        grid.dedup();
        for q in grid {
            let least = (choose(u64::from(dim), u64::from(q), &primes) - 1u32).bits() + 33;
            let format = Format::new(Layout::Shared, dim as usize, q as usize).expect("q is at most d/2");
            let mut beyond = |places: Vec<u32>| {
                let update = SparseUpdate { indices: places, values: Values::Shared(1.0) };
                let (mut payload, mut received) = (Vec::new(), SparseUpdate::default());
                let bits = coder.encode(&format, &update, &mut payload).expect("an update of that format");
                coder.decode(&format, &payload, &mut received).expect("what was encoded");
                assert_eq!(received, update);
                assert!(bits <= format.longest());
                bits as i64 - least as i64
            };
            let draws = if u64::from(q) * DRAWS > 2_000_000 { 3 } else { DRAWS };
            let random: Vec<i64> = (0..draws).map(|draw| beyond(random(dim, q, draw))).collect();
            let mean = random.iter().sum::<i64>() as f64 / draws as f64;
            let most = random.iter().max().expect("draws");
            let even = (0..q).map(|i| (u64::from(i) * u64::from(dim) / u64::from(q)) as u32).collect();
            let (even, first, last) =
                (beyond(even), beyond((0..q).collect()), beyond((dim - q..dim).collect()));
            println!("| {dim} | {q} | {least} | {mean:.1} | {most} | {even} | {first} | {last} |");
        }
    }
}
