use super::*;
use crate::radio::rate::{FiniteBlocklength, Gap, Mcs, Shannon, TruncatedShannon, mcs::Table};
use proptest::prelude::*;

const SHANNON: Shannon = Shannon {};

fn spread(rate: &dyn Rate, snr: f64, over: f64) -> Curve<'_> {
    Curve::Spread { rate, energy: Energy { snr, over, max_snr: f64::MAX } }
}

#[test]
fn shares_of_a_band_are_those_of_the_lambert_function() {
    // −γ/(1 + W₋₁(−c·e^(−c))/c) with c = r·ln 2/γ, by scipy.special.lambertw; mpmath agrees.
    for (snr, bits, share) in [
        (4.0, 1.0, 0.242_049_404_979_690_4),
        (10.0, 0.2, 0.022_774_824_722_508_87),
        (1.0, 1.2, 2.325_152_911_152_714),
        (0.1, 0.05, 0.018_797_973_523_984_87),
    ] {
        let x = spread_share(snr, bits);
        assert!((x / share - 1.0).abs() < 1e-13, "({snr}, {bits}): {x}");
    }
    assert_eq!(spread_share(1.0, std::f64::consts::LOG2_E), f64::INFINITY);
    assert_eq!(spread_share(0.0, 1.0), f64::INFINITY);
    assert_eq!(spread_share(1.0, 0.0), 0.0);
}

proptest! {
    #[test]
    fn a_share_carries_the_requested_bits(snr_db in -40.0..80.0f64, part in 1e-9..0.999f64) {
        let snr = f64::powf(10.0, snr_db / 10.0);
        let bits = part * snr * std::f64::consts::LOG2_E;
        let x = spread_share(snr, bits);
        prop_assert!((x * (snr / x).ln_1p() * std::f64::consts::LOG2_E / bits - 1.0).abs() < 1e-11);
    }

    #[test]
    fn a_root_of_any_rising_function_is_found(at in 1e-6..1.0f64, power in 0.05..20.0f64) {
        let x = root(0.0, 1.0, at.powf(power), |x| x.powf(power));
        prop_assert!((x.powf(power) / at.powf(power) - 1.0).abs() < 1e-12, "{} for {}", x, at);
    }
}

#[test]
fn a_root_in_a_jump_is_the_last_float_before_it_and_a_flat_stretch_ends_at_its_beginning() {
    let x = root(0.0, 10.0, 0.5, |x| if x < 3.0 { 0.0 } else { 1.0 });
    assert!(x < 3.0 && 3.0 - x < 1e-14, "{x}");
    let x = root(0.0, 10.0, 4.0, |x| x.min(4.0));
    assert!((x - 4.0).abs() < 1e-14, "{x}");
}

#[test]
fn a_split_solves_the_convex_program() {
    // max t with x·log2(1 + γ_m/x_m)·n ≥ t·w_m, Σ x = 1: scipy.optimize, SLSQP and then brentq on the
    // dual.
    for (snrs, weights, expected) in REFERENCE {
        let curves: Vec<Curve> = snrs.iter().map(|&snr| spread(&SHANNON, snr, 5000.0)).collect();
        let shares = split(&weights, &curves, 5000, SlotKind::Real);
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share.0 / 5000.0 - expected).abs() < 1e-10, "{shares:?}");
        }
    }
}

const REFERENCE: [([f64; 3], [f64; 3], [f64; 3]); 3] = [
    (
        [0.2, 3.0, 50.0],
        [1.0, 2.0, 0.5],
        [0.882_300_289_364_923_2, 0.107_037_321_486_732_8, 0.010_662_389_148_344_65],
    ),
    (
        [4.0, 4.0, 0.1],
        [1.0, 1.0, 1.0],
        [0.017_503_856_026_909_95, 0.017_503_856_026_909_95, 0.964_992_287_946_178_6],
    ),
    (
        [160.0, 11.0, 0.7],
        [3.0, 1.0, 0.2],
        [0.586_722_282_325_247_6, 0.303_372_259_121_988_56, 0.109_905_458_552_764_04],
    ),
];

/// Independent: bisection on λ with every inverse a bisection too, on a grid of all rates.
fn by_bisection(weights: &[f64], curves: &[Curve], n: f64) -> Vec<f64> {
    let inverse = |curve: &Curve, bits: f64| {
        let (mut low, mut high) = (0.0, n);
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if curve.bits(middle) < bits { low = middle } else { high = middle }
        }
        high
    };
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..120 {
        let middle = 0.5 * (low + high);
        let used: f64 = weights.iter().zip(curves).map(|(w, c)| inverse(c, middle * w)).sum();
        if used < n { low = middle } else { high = middle }
    }
    weights.iter().zip(curves).map(|(w, c)| inverse(c, low * w)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn splits_of_concave_links_add_up_and_make_bits_proportional_to_weights(
        links in prop::collection::vec((-15.0..40.0f64, 0.05..20.0f64, 0usize..4), 2..12),
    ) {
        let rates: [&dyn Rate; 3] = [&SHANNON, &Gap { ratio: 2.0 }, &FiniteBlocklength::new(1e-3)];
        let n = 5000.0 * links.len() as f64;
        let curves: Vec<Curve> = links
            .iter()
            .map(|&(db, _, kind)| {
                let snr = f64::powf(10.0, db / 10.0);
                match kind {
                    3 => Curve::Fixed { rate: rates[2], snr },
                    _ => spread(rates[kind], snr, n),
                }
            })
            .collect();
        let weights: Vec<f64> = links.iter().map(|link| link.1).collect();
        let shares = split(&weights, &curves, n as u64, SlotKind::Real);
        let total: f64 = shares.iter().map(|share| share.0).sum();
        prop_assert!((total / n - 1.0).abs() < 1e-12);
        let ratio = |m: usize| curves[m].bits(shares[m].0) / weights[m];
        for m in 1..curves.len() {
            prop_assert!((ratio(m) / ratio(0) - 1.0).abs() < 1e-9, "{} against {}", ratio(m), ratio(0));
        }
        for (share, expected) in shares.iter().zip(by_bisection(&weights, &curves, n)) {
            prop_assert!((share.0 - expected).abs() < 1e-9 * n, "{:?} against {}", shares, expected);
        }
        let whole = split(&weights, &curves, n as u64, SlotKind::Whole);
        prop_assert_eq!(whole.iter().map(|share| share.0).sum::<f64>(), n);
        for (whole, real) in whole.iter().zip(&shares) {
            prop_assert!(whole.0.fract() == 0.0 && (whole.0 - real.0).abs() <= 1.0);
        }
    }

    #[test]
    fn a_better_link_does_not_lower_the_bits_of_all(
        links in prop::collection::vec((-10.0..30.0f64, 0.1..10.0f64), 2..8),
        better in 0.0..10.0f64,
    ) {
        let weights: Vec<f64> = links.iter().map(|link| link.1).collect();
        let level = |first: f64| {
            let curve = |(m, link): (usize, &(f64, f64))| {
                let db = link.0 + if m == 0 { first } else { 0.0 };
                spread(&SHANNON, f64::powf(10.0, db / 10.0), 5000.0)
            };
            let curves: Vec<Curve> = links.iter().enumerate().map(curve).collect();
            let shares = split(&weights, &curves, 5000, SlotKind::Real);
            curves[0].bits(shares[0].0) / weights[0]
        };
        prop_assert!(level(better) >= level(0.0) * (1.0 - 1e-10));
    }

    #[test]
    fn any_finite_input_gives_finite_shares_that_add_up(
        bits in prop::collection::vec((any::<u64>(), any::<u64>(), 0usize..8), 1..8),
        n in 1..=1u64 << 53,
    ) {
        let finite = |x: u64| Some(f64::from_bits(x).abs()).filter(|x| x.is_finite()).unwrap_or(0.0);
        let table = Mcs::of(Table::Nr256Qam);
        let truncated = TruncatedShannon { attenuation: 0.6, max_bits: 4.4, min_snr: 0.1 };
        let rates: [&dyn Rate; 4] = [&SHANNON, &table, &truncated, &FiniteBlocklength::new(1e-5)];
        let weights: Vec<f64> = bits.iter().map(|link| finite(link.0)).collect();
        let curves: Vec<Curve> = bits
            .iter()
            .map(|link| match (rates[link.2 % 4], finite(link.1)) {
                (rate, snr) if link.2 < 4 => Curve::Fixed { rate, snr },
                (rate, snr) => spread(rate, snr, n as f64),
            })
            .collect();
        for kind in [SlotKind::Real, SlotKind::Whole] {
            let shares = split(&weights, &curves, n, kind);
            let total: f64 = shares.iter().map(|share| share.0).sum();
            let proper = |share: &Symbols| share.0.is_finite() && share.0 >= 0.0;
            prop_assert!(shares.iter().all(proper), "{:?}", shares);
            prop_assert!((total / n as f64 - 1.0).abs() < 1e-9, "{:?} of {}", shares, n);
            for (curve, share) in curves.iter().zip(&shares) {
                prop_assert!(curve.bits(share.0).is_finite() && curve.bits(share.0) >= 0.0);
            }
        }
    }
}

#[test]
fn dead_links_zero_weights_and_single_links_are_treated_as_with_linear_links() {
    let curves = |snrs: &[f64]| -> Vec<Curve<'static>> {
        snrs.iter().map(|&snr| spread(&SHANNON, snr, 10.0)).collect()
    };
    let shares = |w: &[f64], snrs: &[f64]| {
        split(w, &curves(snrs), 10, SlotKind::Real).iter().map(|share| share.0).collect::<Vec<f64>>()
    };
    assert_eq!(shares(&[1.0, 1.0], &[0.0, 2.0]), [0.0, 10.0]);
    assert_eq!(shares(&[1.0, 1.0], &[0.0, 0.0]), [5.0, 5.0]);
    assert_eq!(shares(&[0.0, 1.0], &[3.0, 2.0]), [0.0, 10.0]);
    assert_eq!(shares(&[0.0, 0.0], &[3.0, 3.0]), [5.0, 5.0]);
    assert_eq!(
        shares(&[1.0, 0.0], &[0.0, 3.0]),
        [5.0, 5.0],
        "as with linear links: nobody with a weight lives"
    );
    assert_eq!(shares(&[1.0], &[3.0]), [10.0]);
    assert_eq!(shares(&[1e-310, 1e300], &[3.0, 0.0]), [10.0, 0.0]);
}

#[test]
fn a_link_that_is_full_gets_the_symbols_left_over_and_ratios_stay() {
    // The energy of the first link lasts for few symbols at the lowest step of the table.
    let table = Mcs::of(Table::Lte64Qam);
    let curves = [spread(&table, 0.01, 1000.0), spread(&table, 100.0, 1000.0)];
    let shares = split(&[1.0, 2.0], &curves, 1000, SlotKind::Real);
    assert!((shares[0].0 + shares[1].0 - 1000.0).abs() < 1e-9);
    let bits = [curves[0].bits(shares[0].0), curves[1].bits(shares[1].0)];
    assert!((bits[1] / bits[0] - 2.0).abs() < 1e-9, "{bits:?}");
    assert!((bits[0] / curves[0].bits(1000.0) - 1.0).abs() < 1e-9);
}

#[test]
fn codes_too_short_for_the_round_share_it_equally() {
    let finite = FiniteBlocklength::new(1e-5);
    let curves = [Curve::Fixed { rate: &finite, snr: 0.05 }; 8];
    assert!(curves[0].bits(1000.0) > 0.0 && curves[0].bits(125.0) == 0.0);
    let shares = split(&[1.0; 8], &curves, 1000, SlotKind::Real);
    assert_eq!(shares, [Symbols(125.0); 8]);
}
