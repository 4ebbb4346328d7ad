use super::*;
use crate::base::kernels::norm;
use crate::base::rng::{Purpose, stream};
use crate::compress::{RandomSparse, Scratch, SparseBinary, SparseScheme, Stc, TopK, Values};
use proptest::prelude::*;

fn compress(scheme: &impl SparseScheme, update: &[f32], q: usize) -> SparseUpdate {
    let (mut out, mut rng) = (SparseUpdate::default(), stream(5, Purpose::Test, 0, 0));
    scheme.compress(update, q, &mut rng, &mut Scratch::default(), &mut out);
    out
}

/// A level from 1 (at 0) to the largest of a scheme (at 1) that is the largest for some budget.
fn level(scheme: &impl SparseScheme, dim: usize, share: f64) -> usize {
    let max = scheme.largest_q(dim, Bits(f64::INFINITY));
    let q = 1 + (share * (max - 1) as f64) as usize;
    // Of two levels with the same cost, the larger is sent.
    scheme.largest_q(dim, scheme.bits(dim, q))
}

/// Updates with few values, so that ties and one-sided vectors are common; with heavy tails; sparse ones;
/// with the smallest numbers.
fn updates() -> impl Strategy<Value = Vec<f32>> {
    let tail =
        (-6.0..6.0f32, any::<bool>()).prop_map(|(x, up)| if up { x.exp2().powi(5) } else { -x.exp2() });
    prop_oneof![
        prop::collection::vec(-1e3..1e3f32, 2..120),
        prop::collection::vec((-3i8..=3).prop_map(f32::from), 2..120),
        prop::collection::vec(tail, 2..120),
        prop::collection::vec(prop_oneof![9 => Just(0.0f32), 1 => -1e30..1e30f32], 2..120),
        prop::collection::vec((-2i8..=2).prop_map(|x| f32::from(x) * f32::from_bits(1)), 2..60),
        prop::collection::vec(
            prop_oneof![Just(0.1f32), Just(-0.1), Just(0.3), Just(1e9), Just(-1e9)],
            2..120
        ),
    ]
}

/// The server's evidence on a device with budgets that hold exactly q entries, and q* alone on the band.
struct Seen {
    dim: usize,
    q: usize,
    alone: usize,
    exact: bool,
    received: Encoded,
}

impl Seen {
    fn reports(&self, scheme: &impl SparseScheme, ask: Ask) -> RangeInclusive<f64> {
        scheme.honest_reports(&self.evidence(scheme, ask))
    }

    fn allows(&self, scheme: &impl SparseScheme, ask: Ask, report: f32) -> bool {
        self.evidence(scheme, ask).allows(scheme, report)
    }

    fn evidence(&self, scheme: &impl SparseScheme, ask: Ask) -> Evidence<'_> {
        let Self { dim, q, alone, exact, ref received } = *self;
        let budget = |q: usize| {
            let bits = scheme.bits(dim, q);
            assert_eq!(scheme.largest_q(dim, bits), q, "a budget that holds {q} entries of {dim}");
            bits
        };
        let context = Context::new(dim, budget(q));
        Evidence { ask, context, alone: budget(alone), exact, received }
    }
}

/// The evidence on a device with this update that reports the truth, and its report, by the q of the
/// budget, the q that was sent and q*.
fn honest(scheme: &impl SparseScheme, ask: Ask, update: &[f32], [q, sent, alone]: [usize; 3]) -> (Seen, f32) {
    let report = match ask {
        Ask::CompressedNorm => compress(scheme, update, alone).norm(),
        _ => norm(update) as f32,
    };
    assert!(sent <= q);
    let received = Encoded::Sparse(compress(scheme, update, sent));
    (Seen { dim: update.len(), q, alone, exact: sent == q, received }, report)
}

fn never_flagged<S: SparseScheme>(
    scheme: &S,
    update: &[f32],
    shares: [f64; 3],
    [equal, wire]: [bool; 2],
) -> Result<(), TestCaseError> {
    let of = |share: f64| level(scheme, update.len(), share);
    let (q, mut alone) = (of(shares[0]), of(shares[1]));
    if equal {
        alone = q;
    }
    let sent = if wire { 1 + (shares[2] * (q - 1) as f64) as usize } else { q };
    for ask in Ask::ALL {
        let (mut seen, report) = honest(scheme, ask, update, [q, sent, alone]);
        seen.exact = !wire;
        prop_assert!(
            seen.allows(scheme, ask, report),
            "{} {ask:?}: {report} is not in {:?}, q = {q}, sent {sent}, q* = {alone}",
            std::any::type_name::<S>(),
            seen.reports(scheme, ask)
        );
    }
    Ok(())
}

fn any_inflation_is_caught(
    scheme: &impl SparseScheme,
    update: &[f32],
    share: f64,
    factor: f32,
) -> Result<(), TestCaseError> {
    let q = level(scheme, update.len(), share);
    let ask = Ask::CompressedNorm;
    let (seen, report) = honest(scheme, ask, update, [q; 3]);
    if report.is_normal() && (report * factor).is_finite() {
        prop_assert!(
            !seen.allows(scheme, ask, report * factor) && !seen.allows(scheme, ask, report / factor)
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn an_honest_device_is_never_flagged(
        update in updates(), shares in [0.0..=1.0f64, 0.0..=1.0, 0.0..=1.0], equal: bool, wire: bool,
    ) {
        never_flagged(&SparseBinary {}, &update, shares, [equal, wire])?;
        never_flagged(&RandomSparse {}, &update, shares, [equal, wire])?;
        never_flagged(&TopK {}, &update, shares, [equal, wire])?;
        never_flagged(&Stc {}, &update, shares, [equal, wire])?;
    }

    #[test]
    fn any_inflation_is_caught_if_the_device_had_the_whole_band(
        update in updates(), share in 0.0..=1.0f64, factor in 1.001..1e6f32,
    ) {
        any_inflation_is_caught(&SparseBinary {}, &update, share, factor)?;
        any_inflation_is_caught(&RandomSparse {}, &update, share, factor)?;
        any_inflation_is_caught(&TopK {}, &update, share, factor)?;
        any_inflation_is_caught(&Stc {}, &update, share, factor)?;
    }
}

/// The update with the largest norm among all that D-SGD(q) compresses to c entries of value 1, by trying
/// the shapes of its two halves: the whole sum in one entry, or all entries equal.
#[test]
fn the_bound_on_the_norm_is_attained() {
    for (dim, q) in [(10, 1), (10, 3), (10, 5), (31, 4), (400, 4), (400, 30), (401, 200)] {
        let spike = |count: usize| {
            let mut part = vec![0.0f32; count];
            part[0] = count as f32;
            part
        };
        let flat = |count: usize| vec![1.0f32; count];
        let minus = |part: Vec<f32>| part.into_iter().map(|x| -x).collect::<Vec<f32>>();
        // Zeros are not positive: for all q entries to be kept, the others must be above zero.
        let lift = |part: Vec<f32>| part.into_iter().map(|x| x.max(1e-6)).collect::<Vec<f32>>();
        let others = q.min(dim - q);
        let shapes = [
            [lift(spike(q)), minus(lift(spike(others)))].concat(),
            [lift(spike(q)), minus(flat(dim - q))].concat(),
            [flat(dim - others), minus(lift(spike(others)))].concat(),
        ];
        let mut largest = 0.0f64;
        let mut bound = 0.0;
        for mut update in shapes {
            update.resize(dim, 0.0);
            let received = compress(&SparseBinary {}, &update, q);
            let Values::Shared(value) = received.values else { panic!("one value") };
            if received.indices.len() != q {
                continue;
            }
            let seen = Seen { dim, q, alone: q, exact: true, received: Encoded::Sparse(received) };
            let range = seen.reports(&SparseBinary {}, Ask::Norm);
            assert!(norm(&update) <= *range.end());
            largest = largest.max(norm(&update) / f64::from(value.abs()));
            bound = range.end() / f64::from(value.abs());
        }
        assert!(largest > 0.999 * bound, "d = {dim}, q = {q}: {largest} of {bound}");
    }
}

fn a_larger_value_is_caught<S: SparseScheme>(scheme: &S) {
    let update: Vec<f32> = (0..100).map(|i| (i as f32).sin()).collect();
    let (mut seen, report) = honest(scheme, Ask::Norm, &update, [7; 3]);
    seen.received.change_values(|value| 100.0 * value);
    assert!(!seen.allows(scheme, Ask::Norm, report), "{}", std::any::type_name::<S>());
}

#[test]
fn a_value_above_the_reported_norm_is_caught() {
    a_larger_value_is_caught(&SparseBinary {});
    a_larger_value_is_caught(&RandomSparse {});
    a_larger_value_is_caught(&TopK {});
    a_larger_value_is_caught(&Stc {});
}

fn caught(scheme: &impl SparseScheme, ask: Ask, factor: f32, [q, alone]: [usize; 2]) -> bool {
    let update: Vec<f32> = (0..400).map(|i| (1.7 * i as f32).sin()).collect();
    let (seen, report) = honest(scheme, ask, &update, [q, q, alone]);
    !seen.allows(scheme, ask, factor * report)
}

#[test]
fn an_inflated_norm_is_caught_exactly_if_the_bounds_exclude_it() {
    // ‖Δ‖ = √200 = 14.1, ‖Δ̂(40)‖ = 0.99·√40 = 6.3, and the largest norm that cannot be excluded:
    // 40·√2·0.99 = 56.
    assert!(!caught(&SparseBinary {}, Ask::Norm, 3.9, [40, 80]));
    assert!(caught(&SparseBinary {}, Ask::Norm, 4.1, [40, 80]));
    // ‖Δ̂(80)‖ = 0.95·√80 of at most 0.99·√80.
    assert!(!caught(&SparseBinary {}, Ask::CompressedNorm, 1.02, [40, 80]));
    assert!(caught(&SparseBinary {}, Ask::CompressedNorm, 1.1, [40, 80]));
    // Top-k: the omitted entries are at most 0.98 each, ‖Δ‖² ≤ 40 + 360·0.97.
    assert!(!caught(&TopK {}, Ask::Norm, 1.3, [40, 80]));
    assert!(caught(&TopK {}, Ask::Norm, 1.5, [40, 80]));
    assert!(!caught(&RandomSparse {}, Ask::Norm, 1e6, [40, 80]));
    assert!(!caught(&RandomSparse {}, Ask::CompressedNorm, 1e6, [40, 80]));
}

#[test]
fn an_update_is_no_evidence_about_the_loss() {
    for report in [0.0, 1e-30, 7.0, f32::MAX] {
        let (seen, _) = honest(&TopK {}, Ask::Loss, &[1.0, -2.0, 3.0, 0.5], [2, 2, 3]);
        assert!(seen.allows(&TopK {}, Ask::Loss, report), "{report}");
    }
}

#[test]
fn the_ranges_of_the_budgets_are_those_of_their_levels() {
    // `honest_reports` turns budgets into q and q*, and calls the scheme at that level.
    let update: Vec<f32> = (0..60).map(|i| (1.7 * i as f32).sin()).collect();
    let scheme = TopK {};
    for [q, alone] in [[3, 9], [9, 3], [5, 6]] {
        let (seen, _) = honest(&scheme, Ask::Norm, &update, [q, q, alone]);
        let Encoded::Sparse(update) = &seen.received else { panic!("a sparse update") };
        let sent = Sent { dim: 60, q, alone, exact: true, update };
        assert_eq!(seen.reports(&scheme, Ask::Norm), scheme.honest_norm(&sent));
        assert_eq!(seen.reports(&scheme, Ask::CompressedNorm), scheme.honest_compressed_norm(&sent));
    }
}
