use super::*;
use proptest::prelude::*;

fn update(dim: usize) -> impl Strategy<Value = Encoded> {
    let indices = prop::collection::btree_set(0..dim as u32, 0..200);
    (indices, any::<bool>(), -2.0..2.0f32).prop_map(|(indices, shared, value)| {
        let indices: Vec<u32> = indices.into_iter().collect();
        let each = || indices.iter().map(|&i| value * (i as f32).sin()).collect();
        let values = if shared { Values::Shared(value) } else { Values::Each(each()) };
        Encoded::Sparse(SparseUpdate { indices, values })
    })
}

#[test]
fn the_update_of_a_custom_scheme_is_checked() {
    let sparse = |indices: &[u32], values: &[f32]| {
        let values = Values::Each(values.to_vec());
        Encoded::Sparse(SparseUpdate { indices: indices.to_vec(), values }).check(10)
    };
    assert_eq!(sparse(&[0, 4, 9], &[1.0, 2.0, 3.0]), Ok(()));
    assert_eq!(Encoded::Silent.check(10), Ok(()));
    assert_eq!(Encoded::Dense(vec![0.0; 10]).check(10), Ok(()));
    let cases = [
        (sparse(&[4, 0], &[1.0, 2.0]), "index 0 is out of order (after 4)"),
        (sparse(&[4, 4], &[1.0, 2.0]), "index 4 appears twice"),
        (sparse(&[4, 10], &[1.0, 2.0]), "index 10 is out of range: the model has 10 parameters"),
        (sparse(&[4], &[1.0, 2.0]), "it has 2 values for 1 indices"),
        (sparse(&[4], &[f32::NAN]), "a value is not finite"),
        (Encoded::Dense(vec![0.0; 9]).check(10), "it has 9 entries, but the model has 10 parameters"),
        (Encoded::Dense(vec![f32::INFINITY; 10]).check(10), "a value is not finite"),
    ];
    for (result, problem) in cases {
        assert!(result.as_ref().unwrap_err().starts_with(problem), "{result:?} is not {problem}");
    }
}

#[test]
fn the_information_of_an_update_is_that_of_its_indices_and_values() {
    let of = |values| SparseUpdate { indices: vec![0, 3, 4, 9], values }.information(10).0;
    let indices = 210f64.log2(); // C(10, 4)
    assert!((of(Values::Shared(7.0)) - indices).abs() < 1e-12);
    assert!((of(Values::Each(vec![1.0; 4])) - indices).abs() < 1e-12);
    // Four values, all different: two bits each. Two and two: one bit each.
    assert!((of(Values::Each(vec![1.0, 2.0, 3.0, 4.0])) - indices - 8.0).abs() < 1e-12);
    assert!((of(Values::Each(vec![1.0, -1.0, -1.0, 1.0])) - indices - 4.0).abs() < 1e-12);
    // Three and one: 3·log2(4/3) + log2 4.
    let uneven = 3.0 * (4.0f64 / 3.0).log2() + 2.0;
    assert!((of(Values::Each(vec![1.0, -1.0, 1.0, 1.0])) - indices - uneven).abs() < 1e-12);
    assert_eq!(SparseUpdate::default().information(10).0, 0.0);
}

proptest! {
    #[test]
    fn adding_all_updates_equals_adding_each_in_turn_to_the_bit(
        updates in prop::collection::vec((update(3 * BLOCK + 5), -1.0..1.0f32), 0..6),
    ) {
        let start: Vec<f32> = (0..3 * BLOCK + 5).map(|i| (i as f32).cos()).collect();
        let mut one_by_one = start.clone();
        for (update, weight) in &updates {
            // The definition: θ_i += weight·Δ̂_i.
            update.for_each(|i, value| one_by_one[i as usize] += weight * value);
        }
        let mut together = start;
        let updates: Vec<(&Encoded, f32)> =
            updates.iter().map(|(update, weight)| (update, *weight)).collect();
        add_all(&mut together, &updates);
        prop_assert!(together.iter().zip(&one_by_one).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}
