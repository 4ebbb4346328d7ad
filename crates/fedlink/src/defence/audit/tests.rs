use super::*;
use crate::compress::{Scratch, compressor};
use crate::learn::kernels::norm;
use crate::rng::{Purpose, stream};
use proptest::prelude::*;

const SCHEMES: [SchemeKind; 4] =
    [SchemeKind::DSgd, SchemeKind::RandomSparse, SchemeKind::TopK, SchemeKind::Stc];

fn compress(scheme: SchemeKind, update: &[f32], q: usize) -> SparseUpdate {
    let (mut out, mut chance) = (SparseUpdate::default(), stream(5, Purpose::Test, 0, 0));
    compressor(scheme).compress(update, q, &mut chance, &mut Scratch::default(), &mut out);
    out
}

fn most(scheme: SchemeKind, dim: usize) -> usize {
    if scheme == SchemeKind::DSgd { dim / 2 } else { dim }
}

/// Few values, so that ties and one-sided vectors are common; heavy tails; sparse ones; the smallest numbers there are.
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

/// A device with this update that reports the truth: what the server sees, by the q of the budget, the q that was
/// sent and q*.
fn honest(
    scheme: SchemeKind,
    kind: ReportKind,
    update: &[f32],
    [q, sent, alone]: [usize; 3],
) -> (SparseUpdate, f32) {
    let report = match kind {
        ReportKind::QuantisedNorm => compress(scheme, update, alone).norm(),
        _ => norm(update) as f32,
    };
    assert!(sent <= q);
    (compress(scheme, update, sent), report)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn an_honest_device_is_never_flagged(
        update in updates(), shares in [0.0..=1.0f64, 0.0..=1.0, 0.0..=1.0], equal: bool, wire: bool,
    ) {
        for scheme in SCHEMES {
            let of = |share: f64| 1 + (share * (most(scheme, update.len()) - 1) as f64) as usize;
            let (q, mut alone) = (of(shares[0]), of(shares[1]));
            if equal {
                alone = q;
            }
            let sent = if wire { 1 + (shares[2] * (q - 1) as f64) as usize } else { q };
            for kind in [ReportKind::Nothing, ReportKind::Norm, ReportKind::QuantisedNorm] {
                let (received, report) = honest(scheme, kind, &update, [q, sent, alone]);
                let dim = update.len();
                let evidence = Evidence { scheme, kind, dim, q, exact: !wire, alone, received: &received };
                prop_assert!(
                    evidence.allows(report),
                    "{scheme:?} {kind:?}: {report} is not in {:?}, q = {q}, sent {sent}, q* = {alone}",
                    evidence.reports()
                );
            }
        }
    }

    #[test]
    fn any_inflation_is_caught_where_the_device_had_the_band_alone(update in updates(), share in 0.0..=1.0f64, factor in 1.001..1e6f32) {
        for scheme in SCHEMES {
            let q = 1 + (share * (most(scheme, update.len()) - 1) as f64) as usize;
            let kind = ReportKind::QuantisedNorm;
            let (received, report) = honest(scheme, kind, &update, [q; 3]);
            if !report.is_normal() || !(report * factor).is_finite() {
                continue;
            }
            let evidence = Evidence { scheme, kind, dim: update.len(), q, exact: true, alone: q, received: &received };
            prop_assert!(!evidence.allows(report * factor) && !evidence.allows(report / factor));
        }
    }
}

/// The update with the largest norm among all that D-SGD(q) turns into c entries of value 1, by trying the shapes
/// of its two halves: all of the sum in one entry, or everything equal.
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
        // Zeros are not positive: a spike must stand on something for all q entries to be kept.
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
            let received = compress(SchemeKind::DSgd, &update, q);
            let Values::Shared(value) = received.values else { panic!("one value") };
            if received.indices.len() != q {
                continue;
            }
            let evidence = Evidence {
                scheme: SchemeKind::DSgd,
                kind: ReportKind::Norm,
                dim,
                q,
                exact: true,
                alone: q,
                received: &received,
            };
            let range = evidence.reports();
            assert!(norm(&update) <= *range.end());
            largest = largest.max(norm(&update) / f64::from(value.abs()));
            bound = range.end() / f64::from(value.abs());
        }
        assert!(largest > 0.999 * bound, "d = {dim}, q = {q}: {largest} of {bound}");
    }
}

#[test]
fn a_value_above_the_reported_norm_is_caught() {
    let update: Vec<f32> = (0..100).map(|i| (i as f32).sin()).collect();
    for scheme in SCHEMES {
        let (mut received, report) = honest(scheme, ReportKind::Norm, &update, [7; 3]);
        match &mut received.values {
            Values::Shared(value) => *value *= 100.0,
            Values::Each(values) => values.iter_mut().for_each(|value| *value *= 100.0),
        }
        let (kind, dim) = (ReportKind::Norm, update.len());
        let evidence = Evidence { scheme, kind, dim, q: 7, exact: true, alone: 7, received: &received };
        assert!(!evidence.allows(report), "{scheme:?}");
    }
}

#[test]
fn an_inflated_norm_is_caught_where_it_can_be_and_only_there() {
    let update: Vec<f32> = (0..400).map(|i| (1.7 * i as f32).sin()).collect();
    let caught = |scheme, kind, factor: f32, [q, alone]: [usize; 2]| {
        let (received, report) = honest(scheme, kind, &update, [q, q, alone]);
        let evidence = Evidence { scheme, kind, dim: 400, q, exact: true, alone, received: &received };
        !evidence.allows(factor * report)
    };
    // ‖Δ‖ = √200 = 14.1, ‖Δ̂(40)‖ = 0.99·√40 = 6.3, and what cannot be excluded: 40·√2·0.99 = 56.
    assert!(!caught(SchemeKind::DSgd, ReportKind::Norm, 3.9, [40, 80]));
    assert!(caught(SchemeKind::DSgd, ReportKind::Norm, 4.1, [40, 80]));
    // ‖Δ̂(80)‖ = 0.95·√80 of at most 0.99·√80.
    assert!(!caught(SchemeKind::DSgd, ReportKind::QuantisedNorm, 1.02, [40, 80]));
    assert!(caught(SchemeKind::DSgd, ReportKind::QuantisedNorm, 1.1, [40, 80]));
    // Top-k: what is left out is at most 0.98 each, ‖Δ‖² ≤ 40 + 360·0.97.
    assert!(!caught(SchemeKind::TopK, ReportKind::Norm, 1.3, [40, 80]));
    assert!(caught(SchemeKind::TopK, ReportKind::Norm, 1.5, [40, 80]));
    assert!(!caught(SchemeKind::RandomSparse, ReportKind::Norm, 1e6, [40, 80]));
    assert!(!caught(SchemeKind::RandomSparse, ReportKind::QuantisedNorm, 1e6, [40, 80]));
}
