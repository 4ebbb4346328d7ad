//! What every compression scheme must keep, from the registry.

use super::*;
use crate::kernels::norm;
use crate::registry::Scope;
use crate::rng::{Purpose, stream};
use crate::schedule::Ask;
use proptest::prelude::*;
use toml::Table;

fn schemes() -> impl Iterator<Item = (&'static str, Box<dyn Compressor>)> {
    SCHEMES.iter().map(|entry| {
        (entry.name, entry.build(&Table::new(), &Scope::default(), &()).expect("defaults build"))
    })
}

/// What a scheme makes of an update, with memory that has been used before.
fn encode(scheme: &dyn Compressor, update: &[f32], budget: Bits) -> (Spent, Encoded) {
    let (mut scratch, mut out) = (Scratch::default(), Encoded::Dense(vec![7.0; 3]));
    let mut spent = Spent::default();
    for update in [&[3.0, -9.0, 0.25, 8.0, 1.0, 1.0, 2.0, -2.0], update] {
        spent = scheme.encode(update, budget, &mut stream(4, Purpose::Test, 1, 2), &mut scratch, &mut out);
    }
    (spent, out)
}

fn updates() -> impl Strategy<Value = Vec<f32>> {
    prop_oneof![
        prop::collection::vec(-1e3..1e3f32, 1..200),
        prop::collection::vec((-3i8..=3).prop_map(f32::from), 1..60),
        prop::collection::vec(prop_oneof![9 => Just(0.0f32), 1 => -1e30..1e30f32], 1..120),
        prop::collection::vec((-2i8..=2).prop_map(|x| f32::from(x) * f32::from_bits(1)), 1..60),
        prop::collection::vec(Just(0.0f32), 1..40),
        prop::collection::vec(-1.0..1.0f32, 1..4),
    ]
}

fn budgets() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (0.0..13.0f64).prop_map(f64::exp2),
        1 => prop::sample::select(vec![0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300, 32.0, 33.0]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_budget_is_met_and_level_zero_is_silence(update in updates(), budget in budgets()) {
        for (name, scheme) in schemes() {
            let (spent, out) = encode(&*scheme, &update, Bits(budget));
            prop_assert!(spent.bits.0 >= 0.0 && spent.bits.0.is_finite(), "{name}: {spent:?}");
            prop_assert!(spent.bits.0 == 0.0 || spent.bits.0 <= budget, "{name}: {spent:?} of {budget}");
            let silent = matches!(out, Encoded::Silent);
            prop_assert_eq!(silent, spent.level == 0, "{}: {:?}", name, spent);
            prop_assert_eq!(silent, spent.bits.0 == 0.0, "{}: {:?}", name, spent);
            prop_assert_eq!(out.check(update.len()), Ok(()), "{}", name);
            prop_assert!(silent || budget > 0.0, "{name}");
        }
    }

    #[test]
    fn what_was_spent_holds_the_same_and_a_bit_less_holds_less(update in updates(), budget in budgets()) {
        for (name, scheme) in schemes() {
            let (spent, out) = encode(&*scheme, &update, Bits(budget));
            if spent.level == 0 {
                continue;
            }
            prop_assert_eq!(encode(&*scheme, &update, spent.bits), (spent, out), "{}", name);
            let (less, _) = encode(&*scheme, &update, Bits(spent.bits.0.next_down()));
            prop_assert!(less.level < spent.level, "{name}: {less:?} after {spent:?}");
            prop_assert!(less.bits.0 < spent.bits.0, "{name}: {less:?} after {spent:?}");
        }
    }

    #[test]
    fn the_result_depends_on_the_arguments_alone(update in updates(), budget in budgets()) {
        for (name, scheme) in schemes() {
            let mut fresh = Encoded::default();
            let mut rng = stream(4, Purpose::Test, 1, 2);
            let spent = scheme.encode(&update, Bits(budget), &mut rng, &mut Scratch::default(), &mut fresh);
            prop_assert_eq!(encode(&*scheme, &update, Bits(budget)), (spent, fresh), "{}", name);
        }
    }

    #[test]
    fn bytes_carry_the_update_unchanged_and_are_no_longer_than_their_bound(
        update in updates(), budget in budgets(),
    ) {
        for (name, scheme) in schemes() {
            let (spent, out) = encode(&*scheme, &update, Bits(budget));
            let Some(codec) = scheme.codec().filter(|_| spent.level > 0) else { continue };
            let known = (update.len(), Bits(budget));
            let (mut payload, mut coder) = (Vec::new(), Coder::default());
            let bits = codec.write(&mut coder, known, &out, &mut payload).unwrap();
            prop_assert!(bits <= codec.longest(known.0, known.1), "{name}: {bits} bits");
            prop_assert_eq!(bits, wire::bit_length(&payload), "{}", name);
            prop_assert!(codec.accepts(&out), "{name}");
            let mut received = Encoded::Dense(vec![1.0; 9]);
            codec.read(&mut Coder::default(), known, &payload, &mut received).unwrap();
            prop_assert_eq!(&received, &out, "{}", name);
        }
    }

    #[test]
    fn any_bytes_are_an_update_of_the_format_or_an_error(
        payload in prop::collection::vec(any::<u8>(), 0..40), dim in 1usize..300, budget in budgets(),
    ) {
        for (name, scheme) in schemes() {
            let Some(codec) = scheme.codec() else { continue };
            let mut received = Encoded::default();
            if codec.read(&mut Coder::default(), (dim, Bits(budget)), &payload, &mut received).is_ok() {
                prop_assert_eq!(received.check(dim), Ok(()), "{}", name);
            }
        }
    }

    #[test]
    fn an_honest_report_is_among_the_honest_reports(
        update in updates(), budget in budgets(), alone in budgets(),
    ) {
        for (name, scheme) in schemes() {
            let (budget, alone) = (Bits(budget), Bits(alone));
            let (spent, received) = encode(&*scheme, &update, budget);
            if spent.level == 0 {
                continue;
            }
            for ask in Ask::ALL {
                let report = match ask {
                    Ask::Norm => norm(&update) as f32,
                    Ask::CompressedNorm => encode(&*scheme, &update, alone).1.norm(),
                    Ask::Loss | Ask::RmsLoss => 2.5,
                };
                let (dim, received) = (update.len(), &received);
                let evidence = Evidence { ask, dim, budget, alone, exact: true, received };
                prop_assert!(evidence.allows(&*scheme, report), "{name} {ask:?}: {report}");
            }
        }
    }
}

#[test]
fn a_zero_update_is_silent_and_a_single_entry_gets_through() {
    for (name, scheme) in schemes() {
        for dim in [1, 2, 3, 50] {
            let (_, zero) = encode(&*scheme, &vec![0.0; dim], Bits(1e6));
            assert_eq!(zero.norm(), 0.0, "{name}, d = {dim}");
            let mut update = vec![0.0; dim];
            update[dim / 2] = -2.5;
            let (spent, one) = encode(&*scheme, &update, Bits(1e6));
            let mut received = vec![0.0; dim];
            one.add_to(&mut received, 1.0);
            if spent.level > 0 {
                assert_eq!(received, update, "{name}, d = {dim}");
            }
            // Only a scheme whose levels need more entries than there are stays silent.
            assert!(spent.level > 0 || dim == 1, "{name}, d = {dim}");
        }
    }
}

#[test]
fn an_update_without_entries_is_silent() {
    for (name, scheme) in schemes() {
        let (spent, out) = encode(&*scheme, &[], Bits(1e6));
        assert_eq!((spent, out), (Spent::default(), Encoded::Silent), "{name}");
    }
}
