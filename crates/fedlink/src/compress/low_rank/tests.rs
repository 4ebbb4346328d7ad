use super::*;
use crate::base::rng::{Purpose, stream};
use proptest::prelude::*;

/// Singular values, the largest first, by one-sided Jacobi rotations in double precision.
fn singular_values(w: &[f32], shape: Shape) -> Vec<f64> {
    let column = |j: usize| (0..shape.rows).map(|i| f64::from(w[i * shape.cols + j])).collect::<Vec<f64>>();
    let mut columns: Vec<Vec<f64>> = (0..shape.cols).map(column).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for _ in 0..60 {
        for i in 0..shape.cols {
            for j in i + 1..shape.cols {
                let (a, b) = (dot(&columns[i], &columns[i]), dot(&columns[j], &columns[j]));
                let c = dot(&columns[i], &columns[j]);
                if c.abs() <= 1e-15 * (a * b).sqrt() {
                    continue;
                }
                let zeta = (b - a) / (2.0 * c);
                let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let cos = 1.0 / (1.0 + t * t).sqrt();
                let sin = cos * t;
                let (before, after) = columns.split_at_mut(j);
                for (x, y) in before[i].iter_mut().zip(&mut after[0]) {
                    (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
                }
            }
        }
    }
    let mut values: Vec<f64> = columns.iter().map(|column| dot(column, column).sqrt()).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

fn matrix(rows: usize, cols: usize, seed: u64) -> Vec<f32> {
    let mut rng = stream(seed, Purpose::Test, 8, 0);
    // Columns of falling weight, so that singular values differ.
    let weight = |j: usize| 0.5f64.powi(j as i32);
    (0..rows * cols).map(|i| (rng.normal() * weight(i % cols)) as f32).collect()
}

fn energy(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x).powi(2)).sum()
}

#[test]
fn unquantized_terms_are_those_of_the_singular_value_decomposition() {
    for seed in 0..4 {
        let shape = Shape { rows: 20, cols: 6 };
        let mut w = matrix(20, 6, seed);
        let expected = singular_values(&w, shape);
        let (mut u, mut v) = (Vec::new(), Vec::new());
        let mut taken = 0.0;
        let whole = energy(&w);
        for (i, sigma) in expected.iter().take(4).enumerate() {
            leading(&w, shape, 300, &mut u, &mut v);
            let ours = norm(&v);
            assert!((ours / sigma - 1.0).abs() < 1e-5, "term {i}: {ours} {sigma}");
            taken += ours * ours;
            for (row, u) in w.chunks_exact_mut(6).zip(&u) {
                row.iter_mut().zip(&v).for_each(|(w, v)| *w -= u * v);
            }
            let sum: f64 = expected[..=i].iter().map(|sigma| sigma * sigma).sum();
            assert!((whole - energy(&w) - sum).abs() < 1e-5 * whole && (taken - sum).abs() < 1e-5 * whole);
        }
    }
}

const SHAPES: [Shape; 4] = [
    Shape { rows: 12, cols: 8 },
    Shape { rows: 8, cols: 1 },
    Shape { rows: 4, cols: 8 },
    Shape { rows: 5, cols: 1 },
];
const DIM: usize = 12 * 8 + 8 + 4 * 8 + 5;

fn sent(scheme: LowRank, update: &[f32], budget: f64) -> (Spent, Encoded) {
    let context = Context::new(update.len(), Bits(budget)).with_shapes(&SHAPES);
    let (mut rng, mut out) = (stream(0, Purpose::Test, 0, 0), Encoded::default());
    let spent = scheme.encode(update, &context, &mut rng, &mut Scratch::default(), &mut out);
    (spent, out)
}

fn updates() -> impl Strategy<Value = Vec<f32>> {
    prop_oneof![
        prop::collection::vec(-9.0..9.0f32, DIM),
        (prop::collection::vec(-3.0..3.0f32, 12), prop::collection::vec(-3.0..3.0f32, 8)).prop_map(
            |(u, v)| {
                let mut update = vec![0.01; DIM];
                (0..96).for_each(|i| update[i] = u[i / 8] * v[i % 8]);
                update
            }
        ),
    ]
}

proptest! {
    #[test]
    fn energies_add_up_bits_fit_and_the_payload_decodes_to_the_update(
        update in updates(), budget in 30.0..2000.0f64, bits in 1u64..=4,
    ) {
        let scheme = LowRank { bits };
        let (spent, out) = sent(scheme, &update, budget);
        if spent.level == 0 {
            prop_assert!(budget < 2.0 + 33.0 + (DIM as f64).log2().ceil() + 1.0);
            return Ok(());
        }
        prop_assert!(spent.bits.0 <= budget && spent.level as f64 == spent.bits.0);
        let context = Context::new(DIM, Bits(budget)).with_shapes(&SHAPES);
        let Encoded::Coded(coded) = &out else { panic!("it is coded") };
        let (of_terms, _) = scheme.terms(&context, coded);
        let of_rest = f64::from(coded.rest.norm()).powi(2);
        let error: f64 =
            coded.values.iter().zip(&update).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
        let whole = energy(&update);
        prop_assert!((whole - error - of_terms - of_rest).abs() <= 1e-4 * whole, "{} {}", error, of_terms);
        prop_assert!(error <= (1.0 - 1.0 / DIM as f64) * whole + 1e-4 * whole);
        // By hand: the count of the terms, their end and the rest.
        let terms: Vec<usize> = {
            let mut found = Vec::new();
            LowRank::for_each_term(&matrices(&context), &coded.symbols, |(_, shape), _, _| {
                found.push(shape.rows + shape.cols);
            });
            found
        };
        prop_assert_eq!(terms.len(), coded.scales.len());
        let count: u64 = terms.iter().map(|sides| 2 + 32 + *sides as u64 * bits).sum::<u64>() + 2;
        prop_assert!(spent.bits.0 >= count as f64 + 33.0);
        let (mut payload, mut received) = (Vec::new(), Encoded::default());
        let length = scheme.write(&mut Coder::default(), &context, &out, &mut payload).unwrap();
        prop_assert!(length as f64 <= spent.bits.0 + 8.0, "{} {}", length, spent.bits.0);
        prop_assert!(length <= scheme.longest(&context));
        scheme.read(&mut Coder::default(), &context, &payload, &mut received).unwrap();
        prop_assert_eq!(&received, &out);
        // The audit accepts an honest norm.
        let evidence = Evidence {
            ask: Ask::Norm,
            context,
            alone: Bits(budget),
            exact: true,
            received: &received,
        };
        prop_assert!(evidence.allows(&scheme, norm(&update) as f32));
    }

    #[test]
    fn an_update_read_from_any_bytes_is_written_as_the_same_bytes(
        payload in prop::collection::vec(any::<u8>(), 0..90), budget in 30.0..900.0f64,
    ) {
        let context = Context::new(DIM, Bits(budget)).with_shapes(&SHAPES);
        let (scheme, mut update) = (LowRank::default(), Encoded::default());
        if scheme.read(&mut Coder::default(), &context, &payload, &mut update).is_ok() {
            prop_assert_eq!(update.check(DIM), Ok(()));
            let mut again = Vec::new();
            scheme.write(&mut Coder::default(), &context, &update, &mut again).unwrap();
            prop_assert_eq!(again, payload);
        }
    }

    #[test]
    fn without_layers_it_is_sparse_ternary_compression(
        update in prop::collection::vec(-9.0..9.0f32, 60), budget in 50.0..200.0f64,
    ) {
        let context = Context::new(60, Bits(budget));
        let (mut rng, mut out) = (stream(0, Purpose::Test, 0, 0), Encoded::default());
        let spent = LowRank::default().encode(&update, &context, &mut rng, &mut Scratch::default(), &mut out);
        let mut stc = Encoded::default();
        let within = Context::new(60, Bits(budget.floor()));
        let alone = Stc {}.encode(&update, &within, &mut rng, &mut Scratch::default(), &mut stc);
        prop_assert_eq!(spent.bits.0, alone.bits.0.ceil());
        let dense = |encoded: &Encoded| {
            let mut dense = vec![0.0f32; 60];
            encoded.add_to(&mut dense, 1.0);
            dense
        };
        prop_assert_eq!(dense(&out), dense(&stc));
    }
}

#[test]
fn a_matrix_of_rank_one_is_sent_as_terms() {
    let mut update = vec![0.0f32; DIM];
    (0..96).for_each(|i| update[i] = ((i / 8) as f32 - 5.5) * ((i % 8) as f32 - 2.5));
    let kept = |encoded: &Encoded| {
        let mut left = update.clone();
        encoded.add_to(&mut left, -1.0);
        1.0 - energy(&left) / energy(&update)
    };
    let mut stc = Encoded::default();
    let mut rng = stream(0, Purpose::Test, 0, 0);
    let context = Context::new(DIM, Bits(150.0));
    Stc {}.encode(&update, &context, &mut rng, &mut Scratch::default(), &mut stc);
    let ours = kept(&sent(LowRank { bits: 3 }, &update, 150.0).1);
    assert!(ours > kept(&stc) && ours > 0.9, "{ours} {}", kept(&stc));
}

#[test]
fn only_the_first_256_layers_have_terms() {
    const LAYERS: usize = 300;
    let shapes = [Shape { rows: 4, cols: 4 }; LAYERS];
    // Of rank one and increasing from layer to layer, so that terms of the last layers remove the most
    // energy.
    let value = |i: usize| (i / 16 + 1) as f32 * ((i / 4 % 4) as f32 - 1.5) * ((i % 4) as f32 - 1.5);
    let update: Vec<f32> = (0..16 * LAYERS).map(value).collect();
    let context = Context::new(update.len(), Bits(5000.0)).with_shapes(&shapes);
    let (scheme, mut out) = (LowRank::default(), Encoded::default());
    let mut rng = stream(0, Purpose::Test, 0, 0);
    scheme.encode(&update, &context, &mut rng, &mut Scratch::default(), &mut out);
    let Encoded::Coded(coded) = &out else { panic!("it is coded") };
    let mut starts = Vec::new();
    LowRank::for_each_term(&matrices(&context), &coded.symbols, |(start, _), _, _| starts.push(start / 16));
    assert!(starts.contains(&255) && starts.iter().all(|layer| *layer < 256), "{starts:?}");
    let mut left = update.clone();
    out.add_to(&mut left, -1.0);
    assert!(energy(&left) < energy(&update));
    let (mut payload, mut received) = (Vec::new(), Encoded::default());
    scheme.write(&mut Coder::default(), &context, &out, &mut payload).unwrap();
    scheme.read(&mut Coder::default(), &context, &payload, &mut received).unwrap();
    assert_eq!(received, out);
}
