//! Contracts of every compression scheme in the registry.

use super::contract::encode;
use super::*;
use crate::base::kernels::norm;
use crate::parts::{PartConfig, Scope};
use crate::schedule::Ask;
use proptest::prelude::*;
use toml::Table;

fn schemes() -> impl Iterator<Item = (&'static str, Box<dyn Compressor>)> {
    SCHEMES.iter().chain([&crate::documented::uniform::ENTRY]).map(|entry| {
        (entry.name, entry.build(&Table::new(), &Scope::default(), &()).expect("defaults build"))
    })
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
    fn every_scheme_meets_its_budget_and_depends_on_its_arguments_alone(
        update in updates(), budget in budgets(),
    ) {
        for (name, scheme) in schemes() {
            prop_assert_eq!(contract::check_encoding(&*scheme, &update, Bits(budget)), Ok(()), "{}", name);
        }
    }

    #[test]
    fn the_spent_bits_give_the_same_level_and_fewer_a_lower_one(update in updates(), budget in budgets()) {
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
    fn bytes_carry_the_update_unchanged_and_are_no_longer_than_their_bound(
        update in updates(), budget in budgets(),
    ) {
        for (name, scheme) in schemes() {
            let (spent, out) = encode(&*scheme, &update, Bits(budget));
            let Some(codec) = scheme.codec().filter(|_| spent.level > 0) else { continue };
            let known = &Context::new(update.len(), Bits(budget));
            let (mut payload, mut coder) = (Vec::new(), Coder::default());
            let bits = codec.write(&mut coder, known, &out, &mut payload).unwrap();
            prop_assert!(bits <= codec.longest(known), "{name}: {bits} bits");
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
            let (mut received, known) = (Encoded::default(), &Context::new(dim, Bits(budget)));
            if codec.read(&mut Coder::default(), known, &payload, &mut received).is_ok() {
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
                let (context, received) = (Context::new(update.len(), budget), &received);
                let evidence = Evidence { ask, context, alone, exact: true, received };
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
            if let Encoded::Dense(_) = one {
                // One magnitude for all entries: its sign is received.
                assert!(received[dim / 2] < 0.0, "{name}, d = {dim}");
            } else if let Encoded::Coded(_) = one {
                // It is received through a transform, which rounds.
                let off = received.iter().zip(&update).fold(0.0f32, |max, (a, b)| max.max((a - b).abs()));
                assert!(off <= 1e-6, "{name}, d = {dim}: {received:?}");
            } else if spent.level > 0 {
                assert_eq!(received, update, "{name}, d = {dim}");
            }
            // Only a scheme whose levels need more than the available entries stays silent.
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

#[test]
fn declared_properties_of_a_scheme_hold_within_four_standard_errors() {
    for (name, scheme) in schemes() {
        let drawn = contract::drawn(&*scheme).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert!(drawn.cases >= 20, "{name}: only {} cases", drawn.cases);
        let declared = scheme.properties(4, 1);
        assert_eq!(drawn.is_biased, !declared.unbiased, "{name}");
        assert!(
            declared.unbiased || declared.projection || declared.omega.is_some(),
            "{name} declares nothing"
        );
    }
}

/// Sends what `send` makes of the encoding of `sparse-binary`, and declares `properties`.
struct Wrong {
    send: fn(&mut Encoded, &mut Spent, &mut Stream),
    properties: Properties,
}

impl Compressor for Wrong {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        rng: &mut Stream,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let (_, scheme) = schemes().next().unwrap();
        let mut spent = scheme.encode(update, context, rng, scratch, out);
        if spent.level > 0 {
            (self.send)(out, &mut spent, rng);
        }
        spent
    }

    fn codec(&self) -> Option<&dyn Codec> {
        None
    }

    fn properties(&self, _: usize, _: usize) -> Properties {
        self.properties
    }
}

#[test]
fn a_scheme_that_breaks_its_contract_is_found_with_the_name_of_the_fact() {
    type Send = fn(&mut Encoded, &mut Spent, &mut Stream);
    let cases: [(Send, Properties, &str); 6] = [
        (|_, spent, _| spent.bits.0 += 1e9, Properties::UNKNOWN, "budget: it spends "),
        (|_, spent, _| spent.bits.0 = f64::NAN, Properties::UNKNOWN, "bits: it spends NaN bits"),
        (|_, spent, _| spent.level = 0, Properties::UNKNOWN, "silence: it sends an update at level 0"),
        (|out, _, _| *out = Encoded::Dense(vec![1.0]), Properties::UNKNOWN, "update: it has 1 entries"),
        (|_, _, _| (), Properties::unbiased(Some(1e9)), "unbiased: "),
        (|_, _, _| (), Properties { omega: Some(0.0), ..Properties::UNKNOWN }, "omega: it declares ω = 0"),
    ];
    for (send, properties, start) in cases {
        let found = contract::findings(&Wrong { send, properties });
        assert!(found.iter().any(|problem| problem.starts_with(start)), "{start}: {found:?}");
    }
    assert_eq!(contract::findings(&Wrong { send: |_, _, _| (), properties: Properties::UNKNOWN }), [""; 0]);
}

proptest! {
    /// A factor that is a power of two is exact in floating point, so the same update is sent to the bit.
    /// The bits of QSGD are those of its payload, the digits of a number with ‖v‖/s at its bottom: they
    /// may differ by one, and then the level within the budget may differ too.
    #[test]
    fn a_homogeneous_scheme_sends_four_times_the_update_for_a_factor_of_four(
        update in prop::collection::vec(-1e3..1e3f32, 1..60), budget in budgets(),
    ) {
        for (name, scheme) in schemes() {
            let (spent, mut once) = encode(&*scheme, &update, Bits(budget));
            if spent.level == 0 || !scheme.properties(update.len(), spent.level).homogeneous {
                continue;
            }
            once.change_values(|value| 4.0 * value);
            let fourfold: Vec<f32> = update.iter().map(|x| 4.0 * x).collect();
            let (again, sent) = encode(&*scheme, &fourfold, Bits(budget));
            if name != Qsgd::NAME {
                prop_assert_eq!((again, sent), (spent, once), "{}", name);
            } else if again.level == spent.level {
                prop_assert_eq!(sent, once, "{}", name);
                prop_assert!((again.bits.0 - spent.bits.0).abs() <= 1.0, "{name}: {again:?} {spent:?}");
            } else {
                // One of the two is one bit too long; the other fills the budget.
                let more = again.bits.0.max(spent.bits.0);
                prop_assert_eq!(more, budget.floor(), "{}: {:?} {:?}", name, again, spent);
            }
        }
    }
}
