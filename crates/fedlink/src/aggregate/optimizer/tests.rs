//! The contract of every server optimizer, from the registry.

use super::*;
use crate::base::state::State;
use crate::compress::{SparseUpdate, Values};
use crate::parts::Scope;
use proptest::prelude::*;
use toml::Table;

const DIM: usize = 5;

/// The optimizers of the list and the documented custom one.
fn entries() -> impl Iterator<Item = &'static Entry<dyn ServerOptimizer>> {
    SERVER_OPTIMIZERS.iter().chain([&crate::documented::nesterov::ENTRY])
}

fn optimizers() -> impl Iterator<Item = (&'static str, Box<dyn ServerOptimizer>)> {
    entries().map(|entry| {
        (entry.name, entry.build(&Table::new(), &Scope::default(), &()).expect("defaults build"))
    })
}

fn delta(values: &[f32]) -> Delta<'static> {
    let indices = (0..values.len() as u32).collect();
    Delta::Step(SparseUpdate { indices, values: Values::Each(values.to_vec()) })
}

proptest! {
    #[test]
    fn an_optimizer_is_deterministic_and_its_saved_state_is_all_that_it_continues_from(
        steps in prop::collection::vec(prop::collection::vec(-1.0..1.0f32, DIM), 1..12), rate in 0.1..2.0f32,
    ) {
        for (entry, (name, mut whole)) in entries().zip(optimizers()) {
            let fresh = || entry.build(&Table::new(), &Scope::default(), &()).unwrap();
            let (mut again, mut resumed) = (fresh(), fresh());
            let [mut a, mut b, mut c] = [[0.25f32; DIM]; 3];
            for step in &steps {
                whole.step(&mut a, &delta(step), rate);
                again.step(&mut b, &delta(step), rate);
                let state = resumed.save();
                resumed = fresh();
                resumed.load(state).unwrap();
                prop_assert!(resumed.load(State(vec![0xff; 9])).is_err(), "{name}");
                resumed.step(&mut c, &delta(step), rate);
                prop_assert_eq!(a, b, "{}: two fresh instances", name);
                prop_assert_eq!(a, c, "{}: saved and loaded before every step", name);
            }
        }
    }
}

#[test]
fn a_fresh_optimizer_moves_along_the_step_and_nowhere_without_one() {
    for (name, mut optimizer) in optimizers() {
        let mut theta = [1.0f32; DIM];
        optimizer.step(&mut theta, &delta(&[0.0; DIM]), 1.0);
        assert_eq!(theta, [1.0; DIM], "{name}");
        let step = [0.5, -0.5, 0.25, 0.0, -1.0];
        optimizer.step(&mut theta, &delta(&step), 1.0);
        let along: f32 = theta.iter().zip(&step).map(|(theta, step)| (theta - 1.0) * step).sum();
        assert!(along > 0.0, "{name}: {theta:?}");
        assert!(theta.iter().all(|weight| weight.is_finite()), "{name}");
    }
}
