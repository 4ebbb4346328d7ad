//! Contracts of every compression scheme in the registry.

use super::*;
use crate::base::kernels::norm;
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use crate::parts::{PartConfig, Scope};
use crate::schedule::Ask;
use proptest::prelude::*;
use toml::Table;

fn schemes() -> impl Iterator<Item = (&'static str, Box<dyn Compressor>)> {
    SCHEMES.iter().chain([&crate::documented::uniform::ENTRY]).map(|entry| {
        (entry.name, entry.build(&Table::new(), &Scope::default(), &()).expect("defaults build"))
    })
}

/// The result of a scheme for an update, with memory that has been used before.
fn encode(scheme: &dyn Compressor, update: &[f32], budget: Bits) -> (Spent, Encoded) {
    let (mut scratch, mut out) = (Scratch::default(), Encoded::Dense(vec![7.0; 3]));
    let mut spent = Spent::default();
    for update in [&[3.0, -9.0, 0.25, 8.0, 1.0, 1.0, 2.0, -2.0], update] {
        let context = Context::new(update.len(), budget);
        spent = scheme.encode(update, &context, &mut stream(4, Purpose::Test, 1, 2), &mut scratch, &mut out);
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
    fn the_budget_is_met_and_level_zero_is_silent(update in updates(), budget in budgets()) {
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
    fn the_result_depends_on_the_arguments_alone(update in updates(), budget in budgets()) {
        for (name, scheme) in schemes() {
            let mut fresh = Encoded::default();
            let mut rng = stream(4, Purpose::Test, 1, 2);
            let context = Context::new(update.len(), Bits(budget));
            let spent = scheme.encode(&update, &context, &mut rng, &mut Scratch::default(), &mut fresh);
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

/// The result of a scheme for an update in draw `i`, and its level.
fn draw(scheme: &dyn Compressor, update: &[f32], budget: Bits, i: u64) -> (usize, Vec<f64>) {
    let context = Context::new(update.len(), budget).of(7, (i, DeviceId(3)));
    let (mut rng, mut out) = (stream(7, Purpose::Test, i, 3), Encoded::default());
    let spent = scheme.encode(update, &context, &mut rng, &mut Scratch::default(), &mut out);
    let mut sent = vec![0.0; update.len()];
    out.for_each(|i, value| sent[i as usize] = f64::from(value));
    (spent.level, sent)
}

/// Small updates of all sorts, from a fixed seed each.
fn small_updates() -> Vec<Vec<f32>> {
    let mut all = vec![
        vec![1.0, -1.0, 1.0, 1.0],
        vec![5.0, 1e-3, -1e-3, 2e-3, 1e-3, 1e-3],
        vec![0.6, -0.3, 0.1, 0.0],
        vec![-4.0, -3.0, 2.0, 1.0, 1.0, 0.0, 0.0],
    ];
    for seed in 0..4 {
        let mut rng = stream(seed, Purpose::Test, 0, 0);
        let dim = 3 + 2 * seed;
        all.push((0..dim).map(|_| rng.normal() as f32).collect());
        all.push((0..dim).map(|_| (2.0 * rng.normal()).exp() as f32).collect());
    }
    all
}

/// The mean of `numbers` and four times its standard error.
fn mean(numbers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = numbers.clone().count() as f64;
    let mean = numbers.clone().sum::<f64>() / count;
    let variance = numbers.map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    (mean, 4.0 * (variance / count).sqrt())
}

#[test]
fn declared_properties_of_a_scheme_hold_within_four_standard_errors() {
    for (name, scheme) in schemes() {
        let (mut checked, mut is_biased) = (0, false);
        // Without random numbers one draw covers all.
        let many = |i| draw(&*scheme, &[-4.0, -3.0, 2.0, 1.0, 1.0, 0.5, 0.25], Bits(70.0), i);
        let is_random = (1..20).any(|i| many(i) != many(0));
        for update in small_updates() {
            let square = update.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
            for budget in [40.0, 48.0, 70.0, 104.0, 150.0, 300.0, 1e4] {
                let draw = |i| draw(&*scheme, &update, Bits(budget), i);
                let (level, _) = draw(0);
                let draws = if is_random { 1500 } else { 1 };
                let all: Vec<(usize, Vec<f64>)> = (0..draws).map(draw).collect();
                let highest = all.iter().map(|(level, _)| *level).max().unwrap_or(0);
                if highest == 0 {
                    continue;
                }
                // The mean within a budget: over all draws, whatever their levels.
                for (i, &truth) in update.iter().enumerate() {
                    let (mean, unsure) = mean(all.iter().map(|(_, sent)| sent[i]));
                    let seen = all.iter().filter(|(_, sent)| sent[i] != 0.0).count();
                    if is_random && seen < 20 {
                        // Too rare for a standard deviation.
                        continue;
                    }
                    let off = (mean - f64::from(truth)).abs() > unsure + 1e-5 * square.sqrt();
                    let unbiased = scheme.properties(update.len(), highest.max(1)).unbiased;
                    assert!(!(unbiased && off), "{name}, {update:?}, {budget}: entry {i}: {mean} ± {unsure}");
                    is_biased |= off;
                }
                if all.iter().any(|(other, _)| *other != level) {
                    continue;
                }
                checked += 1;
                let Properties { unbiased, omega, delta, projection, .. } =
                    scheme.properties(update.len(), level);
                let case = format!("{name}, {update:?}, level {level}");
                let error = |sent: &[f64]| -> f64 {
                    sent.iter().zip(&update).map(|(a, b)| (a - f64::from(*b)).powi(2)).sum()
                };
                let (loss, unsure) = mean(all.iter().map(|(_, sent)| error(sent)));
                let limit = unsure + 1e-5 * square;
                if let Some(omega) = omega {
                    assert!(omega >= 0.0 && loss <= omega * square + limit, "{case}: {loss} for ω = {omega}");
                }
                if let Some(delta) = delta {
                    assert!(delta > 0.0 && delta <= 1.0, "{case}: δ = {delta}");
                    assert!(loss <= (1.0 - delta) * square + limit, "{case}: {loss} for δ = {delta}");
                }
                for (_, sent) in all.iter().filter(|_| projection) {
                    let along: f64 = sent.iter().zip(&update).map(|(a, b)| a * f64::from(*b)).sum();
                    let own: f64 = sent.iter().map(|a| a * a).sum();
                    assert!((along - own).abs() <= 1e-5 * square, "{case}: {along} is not {own}");
                }
                // The declared values are at least the measured ones.
                assert!(unbiased || projection || omega.is_some(), "{case} declares nothing");
            }
        }
        assert!(checked >= 20, "{name}: only {checked} cases");
        assert_eq!(is_biased, !scheme.properties(4, 1).unbiased, "{name}");
    }
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
