use super::*;
use crate::base::kernels::norm;
use crate::base::rng::{Purpose, stream};
use crate::compress::value_code::{to_exponents, to_half, to_levels};
use crate::compress::{SparseScheme, Stc};
use proptest::prelude::*;

const CODES: [Code; 4] = [Code::Half, Code::Exponent, Code::Levels(2), Code::Levels(4)];

#[test]
fn as_many_entries_fit_as_the_counts_of_bits_give() {
    // At d = 203 530: 17, 9 and 2 bits per entry, and two levels of 32 bits.
    let fit = |code, bits: f64| CodedTopK { code }.largest_q(203_530, Bits(bits));
    let budgets = [1500.0, 3000.0, 36_833.0];
    assert_eq!(budgets.map(|bits| fit(Code::Half, bits)), [49, 102, 1440]);
    assert_eq!(budgets.map(|bits| fit(Code::Exponent, bits)), [68, 143, 2168]);
    assert_eq!(budgets.map(|bits| fit(Code::Levels(2), bits)), [99, 221, 4050]);
    for code in CODES {
        let scheme = CodedTopK { code };
        for dim in 1..200 {
            let max = scheme.max_q(dim);
            assert!((0..max).all(|q| scheme.bits(dim, q).0 <= scheme.bits(dim, q + 1).0 + 1e-9));
            assert!(max == dim || scheme.bits(dim, max + 1).0 < scheme.bits(dim, max).0 + 1e-9);
        }
    }
}

proptest! {
    #[test]
    fn levels_are_means_of_their_cells_and_cells_are_nearest_and_hold_no_less_than_one_level(
        update in prop::collection::vec(prop_oneof![-9.0..9.0f32, (-3i8..=3).prop_map(f32::from)], 1..60),
        four in any::<bool>(), q in 1usize..60,
    ) {
        let levels = if four { 4 } else { 2 };
        let mut out = SparseUpdate::default();
        keep_largest(&update, q, &mut Scratch::default(), &mut out);
        let Values::Each(kept) = out.values else { panic!("a value for each") };
        let mut sent = kept.clone();
        if kept.is_empty() {
            return Ok(());
        }
        to_levels(&mut sent, levels);
        let all = distinct(&sent);
        prop_assert!(all.len() <= levels);
        for level in &all {
            let cell = || kept.iter().zip(&sent).filter(|(_, to)| to.abs() == *level);
            let sum: f64 = cell().map(|(from, _)| f64::from(from.abs())).sum();
            let mean = sum / cell().count() as f64;
            prop_assert!((mean - f64::from(*level)).abs() <= 1e-6 * mean);
            for (from, _) in cell() {
                let distance = |to: f32| (f64::from(from.abs()) - f64::from(to)).abs();
                let nearest = all.iter().map(|&to| distance(to)).fold(f64::INFINITY, f64::min);
                prop_assert!(distance(*level) <= nearest + 1e-6 * mean);
            }
        }
        let (mut one, mut unused) = (SparseUpdate::default(), stream(0, Purpose::Test, 0, 0));
        Stc {}.compress(&update, q, &mut unused, &mut Scratch::default(), &mut one);
        prop_assert!(norm(&sent) >= f64::from(one.norm()) * (1.0 - 1e-6));
    }

    #[test]
    fn half_precision_is_within_a_part_in_2048_and_is_sent_as_it_is(
        values in prop::collection::vec(
            prop_oneof![-1e3..1e3f32, -1e-38..1e-38f32, Just(3e38f32)],
            1..40,
        ),
    ) {
        let mut sent = values.clone();
        to_half(&mut sent);
        let max = f64::from(values.iter().fold(0.0f32, |max, x| max.max(x.abs())));
        for (a, b) in values.iter().zip(&sent) {
            let (a, b) = (f64::from(*a), f64::from(*b));
            prop_assert!((a - b).abs() <= a.abs() / 2048.0 + max * 2f64.powi(-39), "{a} {b}");
            prop_assert!(a == 0.0 || a.is_sign_negative() == b.is_sign_negative());
        }
        let mut again = Vec::new();
        let fields = Code::Half.fields(&sent).expect("half precision");
        Code::Half.values(&fields, sent.len(), &mut again);
        prop_assert_eq!(again, sent);
    }

    #[test]
    fn every_code_satisfies_the_contract_of_schemes(
        update in prop::collection::vec(prop_oneof![-1e3..1e3f32, Just(0.0f32), Just(2.0f32)], 1..90),
        budget in (0.0..12.0f64).prop_map(f64::exp2), alone in (0.0..12.0f64).prop_map(f64::exp2),
    ) {
        for code in CODES {
            let scheme = CodedTopK { code };
            let encode = |budget: f64| {
                let (mut rng, mut out) = (stream(1, Purpose::Test, 0, 0), Encoded::default());
                let context = Context::new(update.len(), Bits(budget));
                (scheme.encode(&update, &context, &mut rng, &mut Scratch::default(), &mut out), out)
            };
            let (spent, received) = encode(budget);
            prop_assert!(spent.bits.0 <= budget);
            if spent.level == 0 {
                continue;
            }
            prop_assert_eq!(encode(spent.bits.0), (spent, received.clone()));
            prop_assert!(encode(spent.bits.0.next_down()).0.level < spent.level);
            let context = Context::new(update.len(), Bits(budget));
            let (mut payload, mut read) = (Vec::new(), Encoded::default());
            let bits = scheme.write(&mut Coder::default(), &context, &received, &mut payload).unwrap();
            prop_assert!(bits <= scheme.longest(&context), "{code:?}: {bits}");
            // If all entries are present: five bits more than counted, and the unused part of the first
            // 32.
            if received.entries() == spent.level {
                let slack = 5.0 + 33.0;
                prop_assert!(bits as f64 <= spent.bits.0 + slack, "{code:?}: {bits} of {spent:?}");
            }
            scheme.read(&mut Coder::default(), &context, &payload, &mut read).unwrap();
            prop_assert_eq!(&read, &received);
            for ask in [Ask::Norm, Ask::CompressedNorm] {
                let report = match ask {
                    Ask::Norm => norm(&update) as f32,
                    _ => encode(alone).1.norm(),
                };
                let alone = Bits(alone);
                let evidence = Evidence { ask, context, alone, exact: true, received: &received };
                prop_assert!(evidence.allows(&scheme, report), "{code:?} {ask:?} {report}");
            }
        }
    }
}

#[test]
fn exponents_have_the_right_mean_and_a_variance_of_an_eighth_at_most() {
    for x in [1.5f32, -1.5, 1.0, 1.25, 3.9, 6.0 * 2f32.powi(-30)] {
        let (draws, mut sum, mut squares) = (20_000, 0.0, 0.0);
        for draw in 0..draws {
            let mut value = [x];
            to_exponents(&mut value, &mut stream(9, Purpose::Test, draw, 0));
            let error = f64::from(value[0]) / f64::from(x) - 1.0;
            sum += error;
            squares += error * error;
        }
        let n = draws as f64;
        // |x| = 2^k(1 + f): 2^k or twice that, with variance f(1 − f)/(1 + f)², ⅛ at f = ½… 1/9 there.
        let f = f64::from(x.abs()) / libm::scalbn(1.0, libm::ilogbf(x)) - 1.0;
        let exact = f * (1.0 - f) / (1.0 + f).powi(2);
        assert!(exact <= 0.125 + 1e-12);
        assert!((sum / n).abs() <= 4.0 * (exact / n).sqrt(), "{x}: {}", sum / n);
        assert!((squares / n - exact).abs() <= 0.01, "{x}: {} {exact}", squares / n);
    }
    // The maximum of f(1 − f)/(1 + f)² is 1/8, at f = 1/3.
    assert!((1.0 / 3.0 * (2.0 / 3.0) / (4.0f64 / 3.0).powi(2) - 0.125).abs() < 1e-15);
}
