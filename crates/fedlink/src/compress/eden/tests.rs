use super::*;
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use proptest::prelude::*;

fn eden(bits: u64, scale: Scale) -> Eden {
    Eden { bits, scale }
}

/// The upload of the device of draw `i` for an update, with n places.
fn sent(scheme: Eden, update: &[f32], n: usize, i: u64) -> (Spent, Encoded) {
    let budget = Bits(32.0 + (n as u64 * scheme.bits) as f64);
    let context = Context::new(update.len(), budget).of(11, (i, DeviceId(5)));
    let (mut rng, mut out) = (stream(0, Purpose::Test, 0, 0), Encoded::default());
    let spent = scheme.encode(update, &context, &mut rng, &mut Scratch::default(), &mut out);
    (spent, out)
}

fn values(out: &Encoded) -> &[f32] {
    let Encoded::Coded(Coded { values, .. }) = out else { panic!("it is coded") };
    values
}

fn normal(dim: usize, seed: u64) -> Vec<f32> {
    let mut rng = stream(seed, Purpose::Test, 1, 0);
    (0..dim).map(|_| rng.normal() as f32).collect()
}

fn energy(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x).powi(2)).sum()
}

/// ‖v̂ − v‖².
fn loss(sent: &[f32], update: &[f32]) -> f64 {
    sent.iter().zip(update).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
}

/// Lloyd's algorithm on the density of the standard normal law: centroids are means of their cells, cells end
/// halfway between centroids; and the distortion it ends with.
fn lloyd(bits: u32) -> (Vec<f64>, f64) {
    let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    let above = |x: f64| 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
    let count = 1usize << (bits - 1);
    let mut centroids: Vec<f64> = (0..count).map(|i| (i as f64 + 0.5) * 3.0 / count as f64).collect();
    let mut power = 0.0;
    for _ in 0..20_000 {
        let ends: Vec<f64> = (0..=count)
            .map(|i| match i {
                0 => 0.0,
                i if i == count => f64::INFINITY,
                i => 0.5 * (centroids[i - 1] + centroids[i]),
            })
            .collect();
        let tail = |x: f64| if x.is_infinite() { (0.0, 0.0) } else { (density(x), above(x)) };
        power = 0.0;
        for i in 0..count {
            let ((low_density, low), (high_density, high)) = (tail(ends[i]), tail(ends[i + 1]));
            centroids[i] = (low_density - high_density) / (low - high);
            power += 2.0 * (low - high) * centroids[i].powi(2);
        }
    }
    // For the means of their cells E(x − c)² = 1 − E c².
    (centroids, 1.0 - power)
}

#[test]
fn the_centroids_are_those_that_lloyd_s_algorithm_ends_with() {
    for (bits, distortion) in [(1, 0.363_38), (2, 0.117_48), (3, 0.034_548), (4, 0.009_501)] {
        let (centroids, measured) = lloyd(bits);
        let ours = CENTROIDS[bits as usize - 1];
        assert_eq!(ours.len(), centroids.len());
        for (ours, independent) in ours.iter().zip(&centroids) {
            assert!((f64::from(*ours) - independent).abs() < 2e-6, "{bits}: {ours} {independent}");
        }
        assert!((measured - distortion).abs() < 5e-6, "{bits}: {measured}");
    }
}

#[test]
fn an_entry_goes_to_the_nearest_centroid() {
    for centroids in CENTROIDS {
        for i in 0..4000 {
            let x = i as f32 * 1e-3;
            let ours = (x - centroids[usize::from(nearest(centroids, x))]).abs();
            let best = centroids.iter().fold(f32::INFINITY, |min, c| min.min((x - c).abs()));
            assert!(ours <= best + 1e-6, "{x}");
        }
    }
}

#[test]
fn every_set_of_places_is_as_probable_as_any_other() {
    // C(8, n) sets; each should be drawn 4000/C(8, n) times, within five standard deviations.
    for (n, sets) in [(1, 8), (3, 56), (4, 70), (6, 28), (8, 1)] {
        let mut counts = std::collections::BTreeMap::new();
        let mut rotation = Rotation::default();
        for i in 0..4000 {
            rotation.draw_places(&mut stream(3, Purpose::Test, i, 0), 7, n);
            let mut places = Vec::new();
            Rotation::for_each_place(&rotation.places, |place| places.push(place));
            assert!(places.len() == n && places.is_sorted() && places.iter().all(|&place| place < 8));
            *counts.entry(places).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), sets);
        let expected = 4000.0 / sets as f64;
        let spread = 5.0 * expected.sqrt();
        assert!(counts.values().all(|&count| (f64::from(count) - expected).abs() <= spread), "{counts:?}");
    }
}

#[test]
fn the_loss_is_that_of_the_formula() {
    for dim in [4096usize, 3000] {
        let padded = dim.next_power_of_two();
        for (bits, distortion) in [(1, 0.363_38), (2, 0.117_48), (3, 0.034_548), (4, 0.009_501)] {
            for n in [dim / 10, dim / 2, padded] {
                let v = normal(dim, bits);
                let mean = |scale| {
                    let loss = |i| loss(values(&sent(eden(bits, scale), &v, n, i).1), &v);
                    (0..12).map(loss).sum::<f64>() / (12.0 * energy(&v))
                };
                let of_padded = padded as f64 / (n as f64 * (1.0 - distortion)) - 1.0;
                let omega = of_padded * dim as f64 / padded as f64;
                let unbiased = mean(Scale::Unbiased);
                assert!((unbiased / omega - 1.0).abs() < 0.08, "{dim} {bits} {n}: {unbiased} {omega}");
                let (kept, delta) = (1.0 - mean(Scale::Projection), 1.0 / (1.0 + omega));
                assert!((kept / delta - 1.0).abs() < 0.05, "{dim} {bits} {n}: {kept} {delta}");
            }
        }
    }
}

/// An unbiased estimate of ‖E v̂ − v‖²/‖v‖²: the product of two independent means' errors.
fn bias(v: &[f32], n: usize, draws: u64) -> f64 {
    let scheme = Eden::default();
    let error = |draws: std::ops::Range<u64>| {
        let mut sum = vec![0.0f64; v.len()];
        let count = draws.clone().count() as f64;
        for i in draws {
            sum.iter_mut().zip(values(&sent(scheme, v, n, i).1)).for_each(|(s, &x)| *s += f64::from(x));
        }
        sum.iter().zip(v).map(|(s, &v)| s / count - f64::from(v)).collect::<Vec<f64>>()
    };
    let (one, two) = (error(0..draws), error(draws..2 * draws));
    one.iter().zip(&two).map(|(a, b)| a * b).sum::<f64>() / energy(v)
}

#[test]
fn the_bias_over_hadamard_rotations_is_below_a_hundredth_but_for_few_equal_entries() {
    let mut spike = vec![0.0; 4096];
    spike[17] = 3.0;
    let few: Vec<f32> = (0..4096).map(|i| if i % 700 == 3 { 1.0 } else { 0.01 }).collect();
    let heavy: Vec<f32> = normal(4096, 4).into_iter().map(|x| x.powi(3)).collect();
    for (name, v) in [("one entry", spike), ("few", few), ("normal", normal(4096, 3)), ("heavy", heavy)] {
        let square = bias(&v, 4096, 300);
        // The estimate of the square is uncertain by about ω/(draws·√d) = 3e-5.
        let bias = square.max(0.0).sqrt();
        let expected = if name == "few" { 0.04..0.09 } else { 0.0..0.01 };
        assert!(expected.contains(&bias), "{name}: bias {bias} of the norm");
    }
}

#[test]
fn an_update_of_two_unequal_entries_has_the_bias_of_their_ratio() {
    // The signs of the rotated update are those of the larger entry: v̂ = ((r² + 1)/r, 0) in every draw, and
    // ‖v̂ − v‖ = ‖(1/r, −1)‖ = ‖v‖/r.
    for larger in [1.25f32, 2.0, 8.0] {
        let mut two = vec![0.0; 4096];
        (two[5], two[900]) = (larger, -1.0);
        let bias = bias(&two, 4096, 2).sqrt();
        assert!((bias * f64::from(larger) - 1.0).abs() < 1e-4, "{bias} of the norm for {larger}");
    }
}

#[test]
fn one_place_is_unbiased_to_rounding_over_all_signs_and_places() {
    // With n = 1 the code is exact: v̂ = d′·x_i·(row i rotated back), whose mean over i is v for every D.
    let v = [0.6f32, -0.3, 0.1, 0.0];
    let mut sum = [0.0f64; 4];
    let mut seen = std::collections::BTreeSet::new();
    for i in 0..400 {
        let (_, out) = sent(Eden::default(), &v, 1, i);
        // One of each of the 16·4 cases.
        let key: Vec<u32> = values(&out).iter().map(|x| x.to_bits()).collect();
        if seen.insert(key) {
            sum.iter_mut().zip(values(&out)).for_each(|(s, &x)| *s += f64::from(x));
        }
    }
    let mean = sum.map(|s| s / seen.len() as f64);
    for (mean, v) in mean.iter().zip(v) {
        assert!((mean - f64::from(v)).abs() < 1e-6, "{mean} {v}, {} cases", seen.len());
    }
}

proptest! {
    #[test]
    fn a_projection_is_one_and_scales_and_budgets_are_filled_to_the_bit(
        update in prop::collection::vec(-1e3..1e3f32, 1..70), budget in 0.0..400.0f64, bits in 1u64..=4,
    ) {
        let scheme = eden(bits, Scale::Projection);
        let context = Context::new(update.len(), Bits(budget)).of(2, (3, DeviceId(1)));
        let mut out = Encoded::default();
        let mut unused = stream(0, Purpose::Test, 0, 0);
        let spent = scheme.encode(&update, &context, &mut unused, &mut Scratch::default(), &mut out);
        let all = update.len().next_power_of_two();
        let fits = ((budget - 32.0) / bits as f64).floor().max(0.0) as usize;
        prop_assert_eq!(spent.level, fits.min(all));
        if spent.level == 0 {
            prop_assert_eq!(out, Encoded::Silent);
            return Ok(());
        }
        prop_assert_eq!(spent.bits.0, 32.0 + (spent.level as u64 * bits) as f64);
        let along = dot(values(&out), &update);
        prop_assert!((along - energy(values(&out))).abs() <= 1e-5 * energy(&update));
        // The payload has one bit more, and gives the same to the bit.
        let (mut payload, mut received) = (Vec::new(), Encoded::default());
        let length = scheme.write(&mut Coder::default(), &context, &out, &mut payload).unwrap();
        prop_assert_eq!(length, 33 + spent.level as u64 * bits);
        scheme.read(&mut Coder::default(), &context, &payload, &mut received).unwrap();
        prop_assert_eq!(received, out);
    }

    #[test]
    fn the_rotation_keeps_the_norm_and_back_it_is_the_update(
        update in prop::collection::vec(-1e3..1e3f32, 1..70),
    ) {
        let all = update.len().next_power_of_two();
        let rotate = |x: &mut Vec<f32>| {
            x.resize(all, 0.0);
            hadamard(x);
            x.iter_mut().for_each(|x| *x /= (all as f32).sqrt());
        };
        let mut x = update.clone();
        Rotation::flip(&mut stream(5, Purpose::Test, 0, 0), &mut x);
        prop_assert_eq!(energy(&x), energy(&update));
        rotate(&mut x);
        prop_assert!((energy(&x) / (energy(&update) + 1e-30) - 1.0).abs() < 1e-5 || energy(&update) < 1e-20);
        rotate(&mut x);
        Rotation::flip(&mut stream(5, Purpose::Test, 0, 0), &mut x[..update.len()]);
        let largest = update.iter().fold(0.0f32, |max, x| max.max(x.abs()));
        prop_assert!(x.iter().zip(&update).all(|(a, b)| (a - b).abs() <= 1e-5 * largest));
    }
}

#[test]
fn rounds_and_devices_draw_other_signs() {
    let v = vec![1.0; 64];
    let symbols = |t, device| {
        let context = Context::new(64, Bits(96.0)).of(1, (t, DeviceId(device)));
        let (mut rng, mut out) = (stream(0, Purpose::Test, 0, 0), Encoded::default());
        Eden::default().encode(&v, &context, &mut rng, &mut Scratch::default(), &mut out);
        let Encoded::Coded(Coded { symbols, .. }) = out else { panic!("it is coded") };
        symbols
    };
    assert_ne!(symbols(0, 0), symbols(1, 0));
    assert_ne!(symbols(0, 0), symbols(0, 1));
    assert_eq!(symbols(4, 2), symbols(4, 2));
}

#[test]
fn extreme_updates_are_sent_with_finite_values() {
    for v in
        [vec![f32::MAX; 5], vec![f32::from_bits(1); 5], vec![0.0; 5], vec![-0.0, 0.0, f32::MAX, 1.0, 1e-40]]
    {
        for scale in [Scale::Unbiased, Scale::Projection] {
            for n in [1, 3, 8] {
                let (_, out) = sent(eden(1, scale), &v, n, 0);
                assert!(out.check(5).is_ok(), "{v:?}: {out:?}");
            }
        }
    }
}
