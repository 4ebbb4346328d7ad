//! Every policy against brute force over all subsets, and what it must not depend on.

use super::*;
use crate::radio::Channels;
use crate::schedule::Schedule;
use crate::units::DeviceId;
use proptest::prelude::*;

const KINDS: [PolicyKind; 4] = [PolicyKind::Bc, PolicyKind::Bn2, PolicyKind::BcBn2, PolicyKind::Bn2C];

fn channels(gains: &[f64]) -> Channels {
    Channels { gains: gains.to_vec(), capacities: gains.iter().map(|g| (1.0 + g).log2()).collect() }
}

fn schedule(kind: PolicyKind, gains: &[f64], norms: &[f32], k: usize, kc: usize) -> Schedule {
    let channels = channels(gains);
    let mut policy = policy(kind, kc);
    let candidates = policy.candidates(&channels, k);
    let reports: Vec<f32> = candidates.iter().map(|c| norms[c.index()]).collect();
    policy.select(&candidates, &reports, &channels, k)
}

/// All subsets of `pool` with `size` members.
fn subsets(pool: &[usize], size: usize) -> Vec<Vec<usize>> {
    (0u32..1 << pool.len())
        .filter(|mask| mask.count_ones() as usize == size)
        .map(|mask| (0..pool.len()).filter(|i| mask >> i & 1 == 1).map(|i| pool[i]).collect())
        .collect()
}

/// The subset of `pool` whose values, sorted from the largest, come first; ties to the lower indices.
fn best_subset(pool: &[usize], size: usize, value: &dyn Fn(usize) -> f64) -> Vec<usize> {
    let rank = |subset: &Vec<usize>| {
        let mut values: Vec<f64> = subset.iter().map(|&m| value(m)).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        values
    };
    subsets(pool, size)
        .into_iter()
        .reduce(|best, other| {
            let order = rank(&best).partial_cmp(&rank(&other)).unwrap();
            if order.is_lt() || (order.is_eq() && other < best) { other } else { best }
        })
        .unwrap()
}

fn brute_force(kind: PolicyKind, gains: &[f64], norms: &[f32], k: usize, kc: usize) -> Vec<usize> {
    let all: Vec<usize> = (0..gains.len()).collect();
    let gain = |m: usize| gains[m];
    let norm = |m: usize| f64::from(norms[m]);
    match kind {
        PolicyKind::Bc => best_subset(&all, k, &gain),
        PolicyKind::Bn2 | PolicyKind::Bn2C => best_subset(&all, k, &norm),
        PolicyKind::BcBn2 => best_subset(&best_subset(&all, kc, &gain), k, &norm),
    }
}

fn ids(schedule: &Schedule) -> Vec<usize> {
    schedule.devices.iter().map(|d| d.index()).collect()
}

/// Small systems with few distinct values, so that ties are common: (gains, norms, k, kc).
fn systems() -> impl Strategy<Value = (Vec<f64>, Vec<f32>, usize, usize)> {
    (1usize..9)
        .prop_flat_map(|m| {
            let gains = prop::collection::vec((0u8..5).prop_map(f64::from), m);
            let norms = prop::collection::vec((0u8..5).prop_map(f32::from), m);
            (gains, norms, 1..=m)
        })
        .prop_flat_map(|(gains, norms, k)| {
            let kc = k..=gains.len();
            (Just(gains), Just(norms), Just(k), kc)
        })
}

proptest! {
    #[test]
    fn every_policy_picks_the_best_of_all_subsets((gains, norms, k, kc) in systems()) {
        for kind in KINDS {
            let chosen = schedule(kind, &gains, &norms, k, kc);
            prop_assert_eq!(ids(&chosen), brute_force(kind, &gains, &norms, k, kc), "{:?}", kind);
            let expected = |d: &DeviceId| match kind {
                PolicyKind::Bc => 1.0,
                _ => f64::from(norms[d.index()]),
            };
            let weights: Vec<f64> = chosen.devices.iter().map(expected).collect();
            prop_assert_eq!(chosen.weights, weights, "{:?}", kind);
        }
    }

    #[test]
    fn renaming_devices_with_distinct_values_renames_the_choice(
        m in 2usize..12,
        keys in prop::collection::vec(any::<u32>(), 12),
        k in 1usize..12,
    ) {
        let k = k.min(m);
        let kc = (2 * k).min(m);
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_by_key(|&i| (keys[i], i));
        let gains: Vec<f64> = (0..m).map(|i| (i * 7 % 13) as f64).collect();
        let norms: Vec<f32> = (0..m).map(|i| (i * 5 % 17) as f32).collect();
        // Device `order[i]` of the original is called `i` in the renamed system.
        let renamed_gains: Vec<f64> = order.iter().map(|&i| gains[i]).collect();
        let renamed_norms: Vec<f32> = order.iter().map(|&i| norms[i]).collect();
        for kind in KINDS {
            let original = ids(&schedule(kind, &gains, &norms, k, kc));
            let renamed = schedule(kind, &renamed_gains, &renamed_norms, k, kc);
            let mut back: Vec<usize> = ids(&renamed).into_iter().map(|i| order[i]).collect();
            back.sort_unstable();
            prop_assert_eq!(original, back, "{:?}", kind);
        }
    }
}

#[test]
fn bc_bn2_is_bn2_when_the_channel_excludes_nobody() {
    let (gains, norms) = ([0.3, 2.0, 0.1, 5.0], [1.0, 0.5, 4.0, 2.0]);
    assert_eq!(
        schedule(PolicyKind::BcBn2, &gains, &norms, 2, 4),
        schedule(PolicyKind::Bn2, &gains, &norms, 2, 4)
    );
}

#[test]
fn bc_bn2_at_kc_equal_k_selects_as_bc_but_weighs_by_norm() {
    let (gains, norms) = ([0.3, 2.0, 0.1, 5.0], [1.0, 0.5, 4.0, 2.0]);
    let combined = schedule(PolicyKind::BcBn2, &gains, &norms, 2, 2);
    let channel = schedule(PolicyKind::Bc, &gains, &norms, 2, 2);
    assert_eq!(combined.devices, channel.devices);
    assert_eq!(combined.weights, [0.5, 2.0]);
    assert_eq!(channel.weights, [1.0, 1.0]);
}
