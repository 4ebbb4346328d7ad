use super::super::tests::any_floats;
use super::*;
use proptest::prelude::*;

/// The reference: the definition entry by entry, with the multiply-add of the set.
fn plain(set: InstructionSet, terms: impl Iterator<Item = (f32, f32)>, start: f32) -> f32 {
    terms.filter(|(x, _)| *x != 0.0).fold(start, |sum, (x, y)| {
        if set == InstructionSet::PORTABLE { x * y + sum } else { x.mul_add(y, sum) }
    })
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// A batch and a dense matrix with every kind of float. It is wide enough for panels of each width, and
/// has more inputs than one panel of single columns.
fn operands() -> impl Strategy<Value = (Vec<f32>, Vec<f32>, [usize; 3])> {
    (1usize..6, prop_oneof![Just(1), 2usize..300, Just(TILE + 3)], 1usize..300).prop_flat_map(
        |(rows, inputs, width)| {
            let width = if inputs > 300 { width % 3 + 1 } else { width };
            let batch = any_floats(rows * inputs);
            (batch, any_floats(inputs.max(rows) * width), Just([rows, inputs, width]))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn products_equal_the_definition_bit_for_bit_on_every_instruction_set(
        (dense, other, [rows, inputs, width]) in operands(),
    ) {
        let batch = SparseBatch::of_dense(&dense, inputs);
        let mut panels = Panels::default();
        for set in InstructionSet::available() {
            let mut out = vec![0.25; rows * width];
            // The memory that is fetched beside it changes nothing.
            let ahead = Ahead::new([&other, &dense[..inputs], &[]]);
            forward_on(set, &batch, &other[..inputs * width], &mut out, &mut panels, ahead);
            for (i, &ours) in out.iter().enumerate() {
                let (r, o) = (i / width, i % width);
                let terms = (0..inputs).map(|c| (dense[r * inputs + c], other[c * width + o]));
                prop_assert!(same(ours, plain(set, terms, 0.25)), "forward {r} {o}");
            }
            let packed = pack_on(set, &batch, &other[..rows * width], &mut panels);
            let some = inputs / 3..inputs;
            let mut out = vec![f32::NAN; some.len() * width];
            sparse_gradient(&packed, some.clone(), &mut out);
            for (i, &ours) in out.iter().enumerate() {
                let (c, o) = (some.start + i / width, i % width);
                let terms = (0..rows).map(|r| (dense[r * inputs + c], other[r * width + o]));
                prop_assert!(same(ours, plain(set, terms, 0.0)), "gradient {c} {o}");
            }
            let mut by_row = vec![f32::NAN; inputs * width];
            gradient_by_row_on(set, &batch, &other[..rows * width], &mut by_row, &mut panels);
            let by_row = &by_row[some.start * width..];
            prop_assert!(out.iter().zip(by_row).all(|(a, b)| same(*a, *b)), "by row");
        }
    }

    #[test]
    fn instruction_sets_differ_by_rounding_only(
        dense in prop::collection::vec(prop_oneof![Just(0.0), -1.0..1.0f32], 4 * 200),
        weights in prop::collection::vec(-1.0..1.0f32, 200 * 20),
    ) {
        let batch = SparseBatch::of_dense(&dense, 200);
        for set in InstructionSet::available() {
            let mut out = vec![0.0; 4 * 20];
            forward_on(set, &batch, &weights, &mut out, &mut Panels::default(), Ahead::default());
            for (i, &ours) in out.iter().enumerate() {
                let term = |c: usize| {
                    f64::from(dense[i / 20 * 200 + c]) * f64::from(weights[c * 20 + i % 20])
                };
                let truth: f64 = (0..200).map(term).sum();
                prop_assert!((f64::from(ours) - truth).abs() < 2e-5);
            }
        }
    }
}
