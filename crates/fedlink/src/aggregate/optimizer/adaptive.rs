//! The common part of Adagrad, Adam and Yogi at the server.

use super::ServerOptimizer;
use crate::aggregate::Delta;
use crate::base::state::{Persist, State, StateError};
use crate::parts::{ConfigError, number};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// τ_a, what keeps the denominator of an adaptive server optimizer from zero (`adaptivity`).
///
/// With sparse updates most entries of Δ̄ are zero in a round. Adam's v decays meanwhile; Yogi's and
/// Adagrad's stay, at τ_a² where an entry never arrived. So one that arrives seldom meets a small √v and
/// moves by up to c·m/τ_a: a τ_a far below the entries of Δ̄, such as the 1e-3 of dense training, makes that
/// step huge. So the default is taken from the updates themselves, and |c·m/(√v + τ_a)| is then at most c
/// times the ratio of the largest entry to the median one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Adaptivity {
    /// The median of the non-zero |Δ̄_i| of the first round in which there are any; of an even number the
    /// lower one.
    #[default]
    Auto,
    /// This number.
    Fixed(f64),
}

impl Adaptivity {
    /// Checks a number.
    pub(super) fn check(self) -> Result<(), ConfigError> {
        match self {
            Self::Auto => Ok(()),
            Self::Fixed(value) => {
                let allowed = "\"auto\" or a finite number of at least 1e-15";
                number("adaptivity", value, |x| x >= 1e-15, allowed)
            }
        }
    }
}

impl Serialize for Adaptivity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Fixed(value) => serializer.serialize_f64(*value),
        }
    }
}

impl<'de> Deserialize<'de> for Adaptivity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AdaptivityVisitor;
        impl Visitor<'_> for AdaptivityVisitor {
            type Value = Adaptivity;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("\"auto\" or a number")
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Adaptivity, E> {
                Ok(Adaptivity::Fixed(value as f64))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Adaptivity, E> {
                Ok(Adaptivity::Fixed(value as f64))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Adaptivity, E> {
                Ok(Adaptivity::Fixed(value))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Adaptivity, E> {
                match value {
                    "auto" => Ok(Adaptivity::Auto),
                    other => Err(E::invalid_value(Unexpected::Str(other), &self)),
                }
            }
        }
        deserializer.deserialize_any(AdaptivityVisitor)
    }
}

/// m ← β₁·m + (1−β₁)·Δ̄, v by `second`, θ ← θ + c·m/(√v + τ_a); m starts at zero and v at τ_a².
#[derive(Clone, Debug)]
pub(super) struct Adaptive<F> {
    beta1: f64,
    adaptivity: Adaptivity,
    /// v(t+1) of v(t) and Δ̄_i.
    second: F,
    moments: Moments,
    /// Δ̄.
    delta: Vec<f32>,
}

/// The state from round to round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Moments {
    /// τ_a; none before the first round with a non-zero entry.
    adaptivity: Option<f64>,
    /// m and v; empty before that round. In double precision: Yogi compares v with the square of an entry,
    /// and the two are equal where τ_a was taken from it.
    first: Vec<f64>,
    second: Vec<f64>,
}

impl<F: Fn(f64, f64) -> f64> Adaptive<F> {
    pub(super) fn new(beta1: f64, adaptivity: Adaptivity, second: F) -> Self {
        Self { beta1, adaptivity, second, moments: Moments::default(), delta: Vec::new() }
    }
}

impl<F: Fn(f64, f64) -> f64 + Send> ServerOptimizer for Adaptive<F> {
    fn divides_by_size(&self) -> bool {
        true
    }

    fn step(&mut self, theta: &mut [f32], delta: &Delta, rate: f32) {
        self.delta.clear();
        self.delta.resize(theta.len(), 0.0);
        delta.add_to(&mut self.delta, 1.0);
        let Moments { adaptivity, first, second } = &mut self.moments;
        let Some(floor) = adaptivity.or_else(|| match self.adaptivity {
            Adaptivity::Fixed(value) => Some(value),
            Adaptivity::Auto => median_of_non_zeros(&self.delta),
        }) else {
            // No update has arrived yet, so m is zero.
            return;
        };
        *adaptivity = Some(floor);
        first.resize(theta.len(), 0.0);
        second.resize(theta.len(), floor * floor);
        let (beta1, rate) = (self.beta1, f64::from(rate));
        for (((weight, m), v), &step) in theta.iter_mut().zip(first).zip(second).zip(&self.delta) {
            let step = f64::from(step);
            *m = beta1 * *m + (1.0 - beta1) * step;
            *v = (self.second)(*v, step);
            *weight = (f64::from(*weight) + rate * *m / (v.sqrt() + floor)) as f32;
        }
    }
}

impl<F> Persist for Adaptive<F> {
    fn save(&self) -> State {
        State::of(&self.moments)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        let moments: Moments = state.read()?;
        let floor = moments.adaptivity;
        if moments.first.len() != moments.second.len() || floor.is_some_and(|x| !(x.is_finite() && x > 0.0)) {
            return Err(StateError("its moments contradict each other".into()));
        }
        self.moments = moments;
        Ok(())
    }
}

/// The lower median of the magnitudes of the entries that are not zero, if there are any.
fn median_of_non_zeros(values: &[f32]) -> Option<f64> {
    let mut magnitudes: Vec<f32> = values.iter().map(|x| x.abs()).filter(|x| *x > 0.0).collect();
    let middle = magnitudes.len().checked_sub(1)? / 2;
    Some(f64::from(*magnitudes.select_nth_unstable_by(middle, f32::total_cmp).1))
}

#[cfg(test)]
mod tests {
    use super::super::{SERVER_OPTIMIZERS, ServerOptimizer};
    use super::*;
    use crate::compress::{SparseUpdate, Values};
    use crate::parts::{Scope, find};
    use proptest::prelude::*;
    use toml::{Table, Value};

    const DIM: usize = 6;
    const NAMES: [&str; 3] = ["adagrad", "adam", "yogi"];

    fn sparse(values: &[f32]) -> Delta<'static> {
        let entries = (0..).zip(values).filter(|(_, value)| **value != 0.0);
        let (indices, values) = entries.map(|(i, &value): (u32, &f32)| (i, value)).unzip();
        Delta::Step(SparseUpdate { indices, values: Values::Each(values) })
    }

    fn build(name: &str, keys: &[(&str, Value)]) -> Box<dyn ServerOptimizer> {
        let own: Table = keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        find::<dyn ServerOptimizer>(name).unwrap().build(&own, &Scope::default(), &()).unwrap()
    }

    /// The rules of Reddi et al. as printed, in double precision.
    fn second(name: &str, v: f64, delta: f64, beta2: f64) -> f64 {
        let square = delta * delta;
        match name {
            "adagrad" => v + square,
            "adam" => beta2 * v + (1.0 - beta2) * square,
            _ if v > square => v - (1.0 - beta2) * square,
            _ if v < square => v + (1.0 - beta2) * square,
            _ => v,
        }
    }

    proptest! {
        #[test]
        fn each_follows_the_paper_in_double_precision_from_v_equal_to_the_square_of_the_adaptivity(
            steps in prop::collection::vec(
                prop::collection::vec(prop_oneof![Just(0.0f32), -1.0..1.0f32], DIM), 1..40,
            ),
            beta1 in 0.0..0.99f64, beta2 in 0.5..0.999f64, rate in 0.01..1.0f64,
            fixed in prop::option::of(0.01..1.0f64), cut in 0usize..40,
        ) {
            for name in NAMES {
                let mut keys = vec![("beta1", Value::Float(beta1))];
                if name != "adagrad" {
                    keys.push(("beta2", Value::Float(beta2)));
                }
                if let Some(value) = fixed {
                    keys.push(("adaptivity", Value::Float(value)));
                }
                let (mut ours, mut theta) = (build(name, &keys), vec![0.5f32; DIM]);
                let (mut exact, mut m, mut v) = ([0.5f64; DIM], [0.0f64; DIM], [0.0f64; DIM]);
                let mut floor = fixed;
                if let Some(value) = fixed {
                    v = [value * value; DIM];
                }
                for (t, values) in steps.iter().enumerate() {
                    if t == cut {
                        let state = ours.save();
                        ours = build(name, &keys);
                        ours.load(state).unwrap();
                    }
                    ours.step(&mut theta, &sparse(values), rate as f32);
                    if floor.is_none() {
                        let mut sizes: Vec<f64> =
                            values.iter().filter(|x| **x != 0.0).map(|x| f64::from(x.abs())).collect();
                        sizes.sort_by(f64::total_cmp);
                        let Some(&middle) = sizes.get(sizes.len().wrapping_sub(1) / 2) else { continue };
                        floor = Some(middle);
                        v = [middle * middle; DIM];
                    }
                    for i in 0..DIM {
                        let delta = f64::from(values[i]);
                        m[i] = beta1 * m[i] + (1.0 - beta1) * delta;
                        v[i] = second(name, v[i], delta, beta2);
                        exact[i] += rate * m[i] / (v[i].sqrt() + floor.unwrap());
                    }
                }
                for (ours, exact) in theta.iter().zip(&exact) {
                    let error = (f64::from(*ours) - exact).abs();
                    prop_assert!(error < 1e-4 * (1.0 + exact.abs()), "{name}: {ours} {exact}");
                }
            }
        }

        #[test]
        fn scaling_all_updates_changes_no_step_if_the_adaptivity_follows_them(
            steps in prop::collection::vec(prop::collection::vec(-1.0..1.0f32, DIM), 1..10),
            power in -8i32..8,
        ) {
            let scale = 2f32.powi(power);
            for name in NAMES {
                let (mut plain, mut scaled) = (build(name, &[]), build(name, &[]));
                let [mut a, mut b] = [[0.0f32; DIM]; 2];
                for step in &steps {
                    plain.step(&mut a, &sparse(step), 0.1);
                    scaled.step(&mut b, &sparse(&step.iter().map(|x| x * scale).collect::<Vec<_>>()), 0.1);
                }
                prop_assert_eq!(a, b, "{}", name);
            }
        }

        #[test]
        fn no_entry_moves_further_than_the_rate_times_the_largest_entry_over_the_adaptivity(
            quiet in 0usize..3000, last in 0.5..2.0f32,
        ) {
            for name in NAMES {
                let (mut optimizer, mut theta) = (build(name, &[]), [0.0f32; DIM]);
                optimizer.step(&mut theta, &sparse(&[1.0, -1.0, 1.0, 0.0, 0.0, 0.0]), 0.1);
                for _ in 0..quiet {
                    optimizer.step(&mut theta, &sparse(&[1.0, -1.0, 0.0, 0.0, 0.0, 0.0]), 0.1);
                }
                // Entry 2 has not arrived for long, so that v is nearly zero under Adam.
                let before = theta[2];
                optimizer.step(&mut theta, &sparse(&[1.0, -1.0, last, 0.0, 0.0, 0.0]), 0.1);
                let moved = (theta[2] - before).abs();
                prop_assert!(moved <= 0.1 * last.max(1.0), "{name}: {moved}");
            }
        }
    }

    #[test]
    fn a_wrong_key_is_refused_by_its_table() {
        for name in NAMES {
            for (key, value) in [("adaptivity", Value::Float(0.0)), ("beta1", Value::Float(1.0))] {
                let entry = SERVER_OPTIMIZERS.iter().find(|entry| entry.name == name).unwrap();
                let own = Table::from_iter([(key.to_owned(), value)]);
                let error = entry.resolve(&own, &Scope::default()).unwrap_err();
                assert_eq!(error.key, format!("learn.server.{name}.{key}"));
            }
        }
    }
}
