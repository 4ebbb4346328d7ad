//! Any bytes are the state of each part with state, which it saves as a state that it restores, or an
//! error that changes nothing.

use fedlink::adversary::Attack;
use fedlink::aggregate::Aggregator;
use fedlink::aggregate::optimizer::ServerOptimizer;
use fedlink::base::state::{Persist, State};
use fedlink::parts::{Kind, Scope};
use fedlink::schedule::Policy;
use toml::Table;

pub fn run(bytes: &[u8]) {
    let Some((&part, bytes)) = bytes.split_first() else { return };
    let part = usize::from(part);
    match part % 4 {
        0 => check(&mut *build::<dyn Policy>(part / 4), bytes),
        1 => check(&mut *build::<dyn Aggregator>(part / 4), bytes),
        2 => check(&mut *build::<dyn ServerOptimizer>(part / 4), bytes),
        _ => check(&mut *build::<dyn Attack>(part / 4), bytes),
    }
}

fn build<T: ?Sized + Kind<Material = ()>>(index: usize) -> Box<T> {
    let entry = &T::entries()[index % T::entries().len()];
    entry.build(&Table::new(), &Scope::default(), &()).expect("defaults are valid")
}

fn check<T: ?Sized + Persist>(part: &mut T, bytes: &[u8]) {
    let before = part.save();
    if part.load(State(bytes.to_vec())).is_err() {
        assert_eq!(part.save(), before);
        return;
    }
    let saved = part.save();
    part.load(saved.clone()).expect("a saved state is valid");
    assert_eq!(part.save(), saved);
}
