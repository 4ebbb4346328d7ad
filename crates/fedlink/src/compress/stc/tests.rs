use super::*;
use crate::base::kernels::norm;
use crate::base::rng::{Purpose, stream};
use crate::compress::audit::contains;
use crate::compress::sparse::tests::best_level_by_brute_force;
use crate::compress::{Context, Encoded, Spent};
use proptest::prelude::*;

fn compress(update: &[f32], q: usize) -> SparseUpdate {
    // Memory left from an earlier update must change nothing.
    let (mut scratch, mut out) = (Scratch::default(), SparseUpdate::default());
    for update in [&[9.0; 60], update] {
        Stc {}.compress(update, q, &mut stream(0, Purpose::Test, 0, 0), &mut scratch, &mut out);
    }
    out
}

fn each(sent: &SparseUpdate) -> &[f32] {
    let Values::Each(values) = &sent.values else { panic!("a value for each entry") };
    values
}

fn dense(sent: &SparseUpdate, dim: usize) -> Vec<f64> {
    let mut dense = vec![0.0; dim];
    sent.indices.iter().zip(each(sent)).for_each(|(&i, &value)| dense[i as usize] = f64::from(value));
    dense
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn wide(update: &[f32]) -> Vec<f64> {
    update.iter().map(|&x| f64::from(x)).collect()
}

/// Heavy tails, ties, zeros, the smallest numbers there are, one entry alone, all of one magnitude.
fn updates() -> impl Strategy<Value = Vec<f32>> {
    let tail =
        (-6.0..6.0f32, any::<bool>()).prop_map(|(x, up)| if up { x.exp2().powi(5) } else { -x.exp2() });
    let one = (1..60usize, any::<prop::sample::Index>(), -1e30..1e30f32).prop_map(|(dim, at, value)| {
        let mut update = vec![0.0; dim];
        update[at.index(dim)] = value;
        update
    });
    let equal = (1e-30..1e30f32, prop::collection::vec(any::<bool>(), 1..120))
        .prop_map(|(x, up)| up.iter().map(|&up| if up { x } else { -x }).collect());
    prop_oneof![
        prop::collection::vec(-1e3..1e3f32, 1..120),
        prop::collection::vec((-3i8..=3).prop_map(f32::from), 1..120),
        prop::collection::vec(tail, 1..120),
        prop::collection::vec(prop_oneof![9 => Just(0.0f32), 1 => -1e30..1e30f32], 1..120),
        prop::collection::vec((-2i8..=2).prop_map(|x| f32::from(x) * f32::from_bits(1)), 1..60),
        prop::collection::vec((-9i8..=9).prop_map(|x| f32::from(x) * f32::from_bits(1)), 1..60),
        prop::collection::vec(prop_oneof![Just(0.1f32), Just(-0.3), Just(1e9), Just(-1e9)], 1..120),
        prop::collection::vec(Just(-0.0f32), 1..10),
        one,
        equal,
    ]
}

proptest! {
    #[test]
    fn the_result_equals_that_of_a_sort(update in updates(), q in 0usize..130) {
        let mut order: Vec<usize> = (0..update.len()).filter(|&i| update[i] != 0.0).collect();
        order.sort_by(|&i, &j| update[j].abs().total_cmp(&update[i].abs()).then(i.cmp(&j)));
        order.truncate(q);
        order.sort_unstable();
        let sum: f64 = order.iter().map(|&i| f64::from(update[i].abs())).sum();
        let mean = (sum / order.len() as f64) as f32;
        let values = order.iter().map(|&i| if update[i] < 0.0 { -mean } else { mean }).collect();
        let indices = order.iter().map(|&i| i as u32).collect();
        prop_assert_eq!(compress(&update, q), SparseUpdate { indices, values: Values::Each(values) });
    }

    #[test]
    fn the_upload_is_a_projection_with_the_delta_of_the_formula(update in updates(), q in 1usize..130) {
        let sent = compress(&update, q);
        let (v, sent_dense) = (wide(&update), dense(&sent, update.len()));
        let (whole, part, between) = (dot(&v, &v), dot(&sent_dense, &sent_dense), dot(&v, &sent_dense));
        // μ is rounded to an f32: relatively by 2⁻²⁴, or by half of the least positive number.
        let magnitude = each(&sent).first().map_or(0.0, |value| f64::from(value.abs()));
        let rounding = (1e-6 * magnitude + TINY) * magnitude * sent.indices.len() as f64;
        prop_assert!((between - part).abs() <= rounding, "{} {}", between, part);
        let left: Vec<f64> = v.iter().zip(&sent_dense).map(|(v, sent)| v - sent).collect();
        let delta = sent.indices.len() as f64 * magnitude.powi(2) / whole;
        if whole > 0.0 {
            let error = (dot(&left, &left) - (1.0 - delta) * whole).abs();
            prop_assert!(error <= 2.0 * rounding + 1e-12 * whole, "{} of {}", error, whole);
        }
        // Its norm is the one that is reported.
        let norm = part.sqrt();
        prop_assert!((f64::from(sent.norm()) - norm).abs() <= 1e-6 * norm + TINY);
    }

    #[test]
    fn the_upload_scales_with_the_update(
        update in prop::collection::vec(-1e3..1e3f32, 1..99), q in 0usize..99,
    ) {
        let half: Vec<f32> = update.iter().map(|x| x * -0.5).collect();
        let (sent, scaled) = (compress(&update, q), compress(&half, q));
        prop_assert_eq!(sent.indices.len(), scaled.indices.len());
        prop_assert!(each(&sent).iter().zip(each(&scaled)).all(|(a, b)| a * -0.5 == *b));
    }

    #[test]
    fn no_other_support_signs_or_value_are_nearer(
        update in prop_oneof![
            prop::collection::vec(-9.0..9.0f32, 1..9),
            prop::collection::vec((-2i8..=2).prop_map(f32::from), 1..9),
        ],
    ) {
        let v = wide(&update);
        let distance = |other: &[f64]| v.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        for q in 1..=update.len().min(3) {
            let ours = distance(&dense(&compress(&update, q), update.len()));
            let of_q = |support: &u32| support.count_ones() as usize == q;
            for support in (0u32..1 << update.len()).filter(of_q) {
                for signs in (0u32..1 << update.len()).filter(|signs| signs & !support == 0) {
                    let bit = |bits: u32, i: usize| f64::from(bits >> i & 1);
                    let sign = |i: usize| bit(support, i) * (1.0 - 2.0 * bit(signs, i));
                    let pattern: Vec<f64> = (0..update.len()).map(sign).collect();
                    // The best value for these signs, and some that are not.
                    let best = dot(&v, &pattern) / q as f64;
                    for value in [best, 0.9 * best, 1.1 * best, best + 0.5] {
                        let other: Vec<f64> = pattern.iter().map(|sign| value * sign).collect();
                        let theirs = distance(&other);
                        prop_assert!(ours <= theirs + 1e-6 * dot(&v, &v), "{} {}", ours, theirs);
                    }
                }
            }
        }
    }

    #[test]
    fn q_is_the_largest_that_fits(dim in 1usize..5000, share in 0.0..1.2f64) {
        let budget = 32.0 + share * 1.6 * dim as f64;
        let q = Stc {}.largest_q(dim, Bits(budget));
        let cost = |q| Stc {}.bits(dim, q).0;
        prop_assert!(q <= max_q(dim));
        prop_assert!(q == 0 || cost(q) <= budget);
        prop_assert!(q == max_q(dim) || budget < cost(q + 1));
    }
}

#[test]
fn q_matches_a_linear_scan_over_exact_binomials() {
    // C(d,q)·2^q ≤ 2^(R−32) in integers, for whole R.
    for dim in 1..=60u128 {
        let choose = |q: u128| (0..q).fold(1u128, |product, i| product * (dim - i) / (i + 1));
        let ways: Vec<u128> = (0..=dim).map(|q| choose(q) << q).collect();
        let max = max_q(dim as usize);
        assert!(ways[..=max].is_sorted() && ways[max..].is_sorted_by(|a, b| a > b), "d = {dim}");
        for budget in 0..=140u32 {
            let fits = |q: &usize| budget >= 32 && ways[*q] <= 1u128 << (budget - 32);
            let scan = (1..=max).filter(fits).max().unwrap_or(0);
            // At exact powers of two the logarithm may round up by one unit in the last place.
            let ours = Stc {}.largest_q(dim as usize, Bits(f64::from(budget) + 1e-9));
            assert_eq!(ours, scan, "d = {dim}, R = {budget}");
        }
    }
}

#[test]
fn q_is_right_at_the_ends_of_the_range() {
    assert_eq!(Stc {}.largest_q(1024, Bits(42.999)), 0);
    assert_eq!(Stc {}.largest_q(1024, Bits(43.001)), 1);
    assert_eq!(Stc {}.largest_q(1024, Bits(f64::INFINITY)), 683);
    assert_eq!(Stc {}.largest_q(1024, Bits(f64::NAN)), 0);
    assert_eq!(Stc {}.largest_q(1024, Bits(-1.0)), 0);
    assert_eq!(Stc {}.largest_q(0, Bits(100.0)), 0);
    assert_eq!(Stc {}.largest_q(1, Bits(33.0)), 1);
    // r(1) = r(2) = 34 bits.
    assert_eq!(Stc {}.largest_q(2, Bits(34.0 + 1e-9)), 2);
    assert_eq!(compress(&[1.0, -2.0], 0), SparseUpdate { indices: vec![], values: Values::Each(vec![]) });
}

#[test]
fn the_paper_s_network_sends_the_bits_of_the_formula() {
    for (budget, q) in [(1500.0, 110), (3000.0, 244), (36_833.0, 4677)] {
        assert_eq!(Stc {}.largest_q(203_530, Bits(budget)), q);
        assert!(Stc {}.bits(203_530, q).0 <= budget && budget < Stc {}.bits(203_530, q + 1).0);
    }
}

fn report(kind: Reported, update: &[f32], alone: usize) -> f32 {
    match kind {
        Reported::Compressed => compress(update, alone).norm(),
        Reported::Norm => norm(update) as f32,
    }
}

/// The kind of report.
#[derive(Clone, Copy, Debug)]
enum Reported {
    Norm,
    Compressed,
}

/// The evidence of the server.
struct Case<'a> {
    kind: Reported,
    sent: Sent<'a>,
}

impl Case<'_> {
    fn reports(&self) -> RangeInclusive<f64> {
        match self.kind {
            Reported::Norm => Stc {}.honest_norm(&self.sent),
            Reported::Compressed => Stc {}.honest_compressed_norm(&self.sent),
        }
    }

    fn allows(&self, report: f32) -> bool {
        contains(&self.reports(), report)
    }
}

fn evidence(
    kind: Reported,
    dim: usize,
    [q, alone]: [usize; 2],
    exact: bool,
    update: &SparseUpdate,
) -> Case<'_> {
    Case { kind, sent: Sent { dim, q, alone, exact, update } }
}

/// Checks every q, every q* and every number of entries that may be sent of a budget for q.
fn is_believed(update: &[f32]) {
    let dim = update.len();
    let sent: Vec<SparseUpdate> = (0..=dim).map(|q| compress(update, q)).collect();
    for kind in [Reported::Norm, Reported::Compressed] {
        for alone in 0..=dim + 1 {
            let report = report(kind, update, alone);
            for q in 1..=dim {
                for (exact, min) in [(true, q), (false, 1)] {
                    for received in &sent[min..=q] {
                        let evidence = evidence(kind, dim, [q, alone], exact, received);
                        assert!(
                            evidence.allows(report),
                            "{kind:?} {update:?}: {report} is not in {:?}, q = {q}, exact {exact}, \
                             sent {}, q* = {alone}",
                            evidence.reports(),
                            received.indices.len()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn no_honest_device_is_accused_at_any_budget() {
    let tiny = f32::from_bits(1);
    for dim in 1..=9usize {
        is_believed(&vec![0.0; dim]);
        // The largest of these have norms just within range: one that is not finite is no report.
        for value in [1.0, 0.1, tiny, 3.0 * tiny, 1e-38, 3e38 / (dim * dim) as f32] {
            is_believed(&vec![-value; dim]);
            // One entry alone, one among tiny ones, a slope, a steep slope, ties.
            let spike = |rest: f32| (0..dim).map(|i| if i == dim / 2 { value } else { rest }).collect();
            let spikes: [Vec<f32>; 3] = [0.0, -tiny, value * 1e-6].map(spike);
            spikes.iter().for_each(|update| is_believed(update));
            let made = |of: &dyn Fn(usize) -> f32| (0..dim).map(of).collect::<Vec<f32>>();
            is_believed(&made(&|i| value * i as f32));
            is_believed(&made(&|i| value * (-0.5f32).powi(i as i32)));
            is_believed(&made(&|i| if i % 3 == 0 { value } else { -value / 3.0 }));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_honest_device_is_accused_for_any_update(
        update in updates(), shares in [0.0..=1.0f64, 0.0..=1.0, 0.0..=1.0], exact: bool, equal: bool,
    ) {
        let of = |share: f64| 1 + (share * (update.len() - 1) as f64) as usize;
        let q = of(shares[0]);
        let alone = if equal { q } else { of(shares[1]) };
        let sent = if exact { q } else { 1 + (shares[2] * (q - 1) as f64) as usize };
        let received = compress(&update, sent);
        for kind in [Reported::Norm, Reported::Compressed] {
            let (report, dim) = (report(kind, &update, alone), update.len());
            let evidence = evidence(kind, dim, [q, alone], exact, &received);
            prop_assert!(
                evidence.allows(report),
                "{kind:?}: {report} is not in {:?}, q = {q}, sent {sent}, q* = {alone}",
                evidence.reports()
            );
        }
    }
}

/// `count` entries of 1, then `tail` entries of `rest`, then zeros.
fn steps(dim: usize, count: usize, tail: usize, rest: f32) -> Vec<f32> {
    let entry = |i| {
        if i < count {
            1.0
        } else if i < count + tail {
            rest
        } else {
            0.0
        }
    };
    (0..dim).map(entry).collect()
}

/// Checks that the report on `update` attains the end of the range.
fn attains(
    kind: Reported,
    update: &[f32],
    [q, alone]: [usize; 2],
    exact: bool,
    end: fn(&RangeInclusive<f64>) -> f64,
) {
    let received = compress(update, q);
    let evidence = evidence(kind, update.len(), [q, alone], exact, &received);
    let (report, bound) = (f64::from(report(kind, update, alone)), end(&evidence.reports()));
    assert!(
        (report / bound - 1.0).abs() < 1e-5,
        "{kind:?}, d = {}, q = {q}, q* = {alone}: {report} of {bound}",
        update.len()
    );
    assert!(evidence.allows(report as f32));
}

#[test]
fn every_bound_is_attained() {
    let low: fn(&RangeInclusive<f64>) -> f64 = |range| *range.start();
    let high: fn(&RangeInclusive<f64>) -> f64 = |range| *range.end();
    let tiny = 1e-12;
    for dim in [1usize, 2, 3, 10, 31, 120] {
        for q in 1..=dim {
            for exact in [true, false] {
                let norm = Reported::Norm;
                attains(norm, &steps(dim, q, 0, 0.0), [q, q], exact, low);
                if q * q >= dim {
                    attains(norm, &steps(dim, 1, q - 1, tiny), [q, q], exact, high);
                } else {
                    attains(norm, &steps(dim, dim, 0, 0.0), [q, q], exact, high);
                }
                for alone in 1..=dim {
                    let compressed = Reported::Compressed;
                    let (equal, uneven) = if alone < q {
                        (steps(dim, q, 0, 0.0), steps(dim, 1, q - 1, tiny))
                    } else {
                        (steps(dim, dim, 0, 0.0), steps(dim, q, dim - q, tiny))
                    };
                    let (lowest, highest) = if alone < q { (equal, uneven) } else { (uneven, equal) };
                    attains(compressed, &lowest, [q, alone], exact, low);
                    attains(compressed, &highest, [q, alone], exact, high);
                }
            }
            // All that there is was sent.
            for count in 1..q {
                attains(Reported::Norm, &steps(dim, count, 0, 0.0), [q, q], true, low);
                attains(Reported::Norm, &steps(dim, 1, count - 1, tiny), [q, q], true, high);
                for alone in 1..=dim {
                    let compressed = Reported::Compressed;
                    attains(compressed, &steps(dim, count, 0, 0.0), [q, alone], true, low);
                    attains(compressed, &steps(dim, 1, count - 1, tiny), [q, alone], true, high);
                }
            }
        }
    }
}

#[test]
fn an_inflated_report_is_caught_beyond_the_bound_and_not_before() {
    let update: Vec<f32> = (0..400).map(|i| (1.7 * i as f32).sin()).collect();
    let caught = |kind, factor: f32, [q, alone]: [usize; 2]| {
        let received = compress(&update, q);
        !evidence(kind, 400, [q, alone], true, &received).allows(factor * report(kind, &update, alone))
    };
    // ‖Δ‖ = √200 = 14.1; μ = 0.996, and the norm that cannot be excluded is 0.996·40 = 39.8.
    assert!(!caught(Reported::Norm, 2.8, [40, 80]) && caught(Reported::Norm, 2.9, [40, 80]));
    // ‖Δ̂(80)‖ = 0.984·√80 of at most 0.996·√80.
    assert!(!caught(Reported::Compressed, 1.01, [40, 80]));
    assert!(caught(Reported::Compressed, 1.015, [40, 80]));
    // Alone, the report is known.
    for factor in [0.99999, 1.00001] {
        assert!(caught(Reported::Compressed, factor, [40, 40]));
    }
    assert!(!caught(Reported::Compressed, 1.0, [40, 40]));
}

#[test]
fn an_upload_that_no_honest_device_sends_is_accepted_for_no_report() {
    let arrived = |values: Values| SparseUpdate { indices: vec![1, 4], values };
    let bad = [
        arrived(Values::Shared(1.0)),
        arrived(Values::Each(vec![1.0, 2.0])),
        arrived(Values::Each(vec![0.0, -0.0])),
        arrived(Values::Each(vec![f32::NAN, f32::NAN])),
        arrived(Values::Each(vec![f32::INFINITY, f32::NEG_INFINITY])),
    ];
    let good = arrived(Values::Each(vec![1.0, -1.0]));
    for kind in [Reported::Norm, Reported::Compressed] {
        for report in [0.0, 1.0, 2.0f32.sqrt(), f32::MAX, f32::INFINITY] {
            for received in &bad {
                assert!(!evidence(kind, 9, [3, 3], false, received).allows(report), "{received:?}");
            }
            assert!(!evidence(kind, 9, [1, 1], false, &good).allows(report), "two entries of one");
        }
        assert!(evidence(kind, 9, [2, 2], true, &good).allows(2.0f32.sqrt()));
    }
}

#[test]
fn the_best_level_is_that_of_brute_force() {
    best_level_by_brute_force(&Stc {}, 30);
}

#[test]
fn entries_of_one_magnitude_are_all_worth_sending_and_those_below_half_of_the_mean_are_not() {
    let best = |update: &[f32]| Stc {}.best_q(update, update.len(), &mut Scratch::default()).unwrap();
    assert_eq!(best(&[2.0, -2.0, 2.0, 2.0, -2.0]), 5);
    // S(√(1 + 1/q) − 1) with S = 4, q = 2: 0.8990.
    assert_eq!(best(&[2.0, -2.0, 0.8989]), 2);
    assert_eq!(best(&[2.0, -2.0, 0.8991]), 3);
    // Zeros add nothing: the fewest of equals.
    assert_eq!(best(&[3.0, 0.0, 0.0, 3.0]), 2);
}

/// Where r(q) = r(q + 1), which is at q = (2d − 1)/3, the bits of the best level allow one entry more.
#[test]
fn the_best_level_is_sent_also_where_one_entry_more_takes_the_same_bits() {
    let update = [3.0, -2.9, 2.8, 0.1, 0.05];
    let context = Context::new(5, Bits(1e3));
    assert_eq!(ternary_bits(5, 3), ternary_bits(5, 4));
    let best = Stc {}.best_level(&update, &context, &mut Scratch::default());
    assert_eq!(best, Some(3));
    let (mut rng, mut sent) = (stream(0, Purpose::Test, 0, 0), Encoded::default());
    let spent = Stc {}.encode(&update, &context.up_to(best), &mut rng, &mut Scratch::default(), &mut sent);
    assert_eq!(spent, Spent { bits: ternary_bits(5, 3), level: 3 });
    // μ = 2.9: 3·2.9² of the energy, where four entries have 4·2.2².
    assert!((f64::from(sent.norm()).powi(2) - 25.23).abs() < 1e-4, "{sent:?}");
}
