//! The contract of every aggregation rule, from the registry.

use super::*;
use crate::base::state::State;
use crate::compress::Values;
use crate::parts::Scope;
use proptest::prelude::*;
use toml::Table;

const DIM: usize = 8;

/// The rules of the list and the documented custom one.
fn entries() -> impl Iterator<Item = &'static Entry<dyn Aggregator>> {
    AGGREGATORS.iter().chain([&crate::documented::received_mean::ENTRY])
}

fn rules() -> impl Iterator<Item = (&'static str, Box<dyn Aggregator>)> {
    entries().map(|entry| {
        (entry.name, entry.build(&Table::new(), &Scope::default(), &()).expect("defaults build"))
    })
}

fn sparse(values: &[f32]) -> Encoded {
    let entries = (0..).zip(values).filter(|(_, value)| **value != 0.0);
    let (indices, values) = entries.map(|(i, &value): (u32, &f32)| (i, value)).unzip();
    Encoded::Sparse(SparseUpdate { indices, values: Values::Each(values) })
}

/// The step of `updates` from zeros, with the weights of the rule, in the order of the devices.
fn moved(rule: &mut dyn Aggregator, updates: &[Encoded], factor: f32) -> Vec<f32> {
    let k = updates.len();
    let weights = rule.weights(k, &|i| 1 + i);
    let contribution = |(update, weight)| Contribution { update, weight, factor };
    let contributions: Vec<Contribution> = updates.iter().zip(weights).map(contribution).collect();
    let mut theta = vec![0.0; DIM];
    rule.aggregate(&contributions, k).add_to(&mut theta, 1.0);
    theta
}

fn updates() -> impl Strategy<Value = Vec<Encoded>> {
    let dense = prop::collection::vec(prop_oneof![Just(0.0f32), -4.0..4.0f32], DIM);
    let update = (dense, any::<bool>())
        .prop_map(|(values, whole)| if whole { Encoded::Dense(values) } else { sparse(&values) });
    prop::collection::vec(update, 1..7)
}

proptest! {
    #[test]
    fn shares_are_not_negative_and_add_up_to_one(sizes in prop::collection::vec(1usize..1_000_000, 1..30)) {
        for (name, rule) in rules() {
            let weights = rule.weights(sizes.len(), &|i| sizes[i]);
            prop_assert_eq!(weights.len(), sizes.len(), "{}", name);
            prop_assert!(weights.iter().all(|weight| *weight >= 0.0), "{name}: {weights:?}");
            let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
            prop_assert!((total - 1.0).abs() < 1e-5, "{name}: {total}");
            if rule.by_size() {
                let samples: usize = sizes.iter().sum();
                let expected = |i: usize| sizes[i] as f64 / samples as f64;
                let near = |(i, &weight): (usize, &f32)| (f64::from(weight) - expected(i)).abs() < 1e-6;
                prop_assert!(weights.iter().enumerate().all(near), "{name}: {weights:?}");
            } else {
                prop_assert!(weights.iter().all(|weight| *weight == weights[0]), "{name}: {weights:?}");
            }
        }
    }

    #[test]
    fn a_rule_is_deterministic_and_its_saved_state_is_all_that_it_continues_from(
        rounds in prop::collection::vec(updates(), 1..6),
    ) {
        for (entry, (name, mut whole)) in entries().zip(rules()) {
            let mut resumed = entry.build(&Table::new(), &Scope::default(), &()).unwrap();
            for updates in &rounds {
                let state = resumed.save();
                resumed = entry.build(&Table::new(), &Scope::default(), &()).unwrap();
                resumed.load(state).unwrap();
                prop_assert!(resumed.load(State(vec![0xff; 9])).is_err(), "{name}");
                let [ours, theirs] = [&mut resumed, &mut whole].map(|rule| moved(&mut **rule, updates, 1.0));
                prop_assert_eq!(ours, theirs, "{}", name);
            }
        }
    }

    #[test]
    fn devices_that_agree_are_followed_as_far_as_the_rule_allows_and_clipped_updates_have_less_weight(
        values in prop::collection::vec(-4.0..4.0f32, DIM), k in 1usize..7, dense: bool,
    ) {
        let update = if dense { Encoded::Dense(values.clone()) } else { sparse(&values) };
        for (name, mut rule) in rules() {
            let updates = vec![update.clone(); k];
            // By default κ = 1, so that the step of K equal values is K/(K + 1) of them.
            let trust = if name == "shrunk" { k as f32 / (k as f32 + 1.0) } else { 1.0 };
            for (factor, theta) in [1.0, 0.25].map(|factor| (factor, moved(&mut *rule, &updates, factor))) {
                for (ours, value) in theta.iter().zip(&values) {
                    let exact = trust * factor * value;
                    prop_assert!((ours - exact).abs() < 1e-5, "{name}: {ours} is not {exact}");
                }
            }
        }
    }

    #[test]
    fn a_step_is_within_the_range_of_the_updates(updates in updates()) {
        let dense: Vec<Vec<f32>> = updates.iter().map(|update| {
            let mut dense = vec![0.0; DIM];
            update.add_to(&mut dense, 1.0);
            dense
        }).collect();
        for (name, mut rule) in rules() {
            let theta = moved(&mut *rule, &updates, 1.0);
            for (i, step) in theta.into_iter().enumerate() {
                let column = dense.iter().map(|update| update[i]);
                // Zero is in the range of a rule that shrinks.
                let start = if name == "shrunk" { (0.0, 0.0) } else { (f32::MAX, f32::MIN) };
                let (low, high) = column.fold(start, |(a, b): (f32, f32), x| (a.min(x), b.max(x)));
                prop_assert!((low - 1e-5..=high + 1e-5).contains(&step), "{name}: {step} of {low}..={high}");
            }
        }
    }
}

#[test]
fn without_updates_nothing_moves() {
    for (name, mut rule) in rules() {
        for k in [0, 1, 5] {
            let mut theta = vec![0.5; DIM];
            rule.aggregate(&[], k).add_to(&mut theta, 1.0);
            assert_eq!(theta, [0.5; DIM], "{name}, K = {k}");
        }
    }
}
