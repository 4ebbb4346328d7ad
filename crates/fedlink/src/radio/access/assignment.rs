//! The assignment problem: rows to columns, one to one, at the largest total value.

/// The column of each row, all different, so that the sum of `value(row, column)` is largest; none for a row
/// that gets no column, which happens only if there are more rows than columns.
///
/// The method of Kuhn (1955) and Munkres (1957) with potentials and shortest augmenting paths,
/// O(rows²·columns). Values must be finite and ≥ 0.
pub fn assign(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Vec<Option<usize>> {
    // Columns beyond the real ones have value 0 and mean "no column". Index 0 is a sentinel on both sides.
    let width = columns.max(rows);
    let cost = |row: usize, column: usize| if column <= columns { -value(row - 1, column - 1) } else { 0.0 };
    let mut row_potential = vec![0.0; rows + 1];
    let mut column_potential = vec![0.0; width + 1];
    let mut row_of = vec![0; width + 1];
    let mut before = vec![0; width + 1];
    for row in 1..=rows {
        row_of[0] = row;
        let mut column = 0;
        let mut slack = vec![f64::INFINITY; width + 1];
        let mut used = vec![false; width + 1];
        while row_of[column] != 0 {
            used[column] = true;
            let from = row_of[column];
            let (mut delta, mut next) = (f64::INFINITY, 0);
            for j in (1..=width).filter(|&j| !used[j]) {
                let reduced = cost(from, j) - row_potential[from] - column_potential[j];
                if reduced < slack[j] {
                    (slack[j], before[j]) = (reduced, column);
                }
                if slack[j] < delta {
                    (delta, next) = (slack[j], j);
                }
            }
            for j in 0..=width {
                if used[j] {
                    row_potential[row_of[j]] += delta;
                    column_potential[j] -= delta;
                } else {
                    slack[j] -= delta;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[before[column]];
            column = before[column];
        }
    }
    let mut chosen = vec![None; rows];
    for column in (1..=columns).filter(|&column| row_of[column] != 0) {
        chosen[row_of[column] - 1] = Some(column - 1);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The largest total over all one-to-one choices, by trying them all.
    fn brute_force(values: &[Vec<f64>], row: usize, taken: &mut Vec<bool>, skips: usize) -> f64 {
        if row == values.len() {
            return 0.0;
        }
        let mut best = f64::NEG_INFINITY;
        if skips > 0 {
            best = brute_force(values, row + 1, taken, skips - 1);
        }
        for column in 0..taken.len() {
            if !taken[column] {
                taken[column] = true;
                best = best.max(values[row][column] + brute_force(values, row + 1, taken, skips));
                taken[column] = false;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn the_total_is_the_largest_of_all_assignments(
            values in (1usize..=6, 1usize..=6).prop_flat_map(|(rows, columns)| {
                let value = prop_oneof![0.0..100.0f64, (0..4u8).prop_map(f64::from)];
                prop::collection::vec(prop::collection::vec(value, columns), rows)
            }),
        ) {
            let (rows, columns) = (values.len(), values[0].len());
            let chosen = assign(rows, columns, |row, column| values[row][column]);
            let mut taken = vec![false; columns];
            let mut total = 0.0;
            for (row, column) in chosen.iter().enumerate() {
                if let Some(column) = *column {
                    prop_assert!(!taken[column], "column {} twice", column);
                    taken[column] = true;
                    total += values[row][column];
                }
            }
            prop_assert_eq!(chosen.iter().flatten().count(), rows.min(columns));
            let best = brute_force(&values, 0, &mut vec![false; columns], rows.saturating_sub(columns));
            prop_assert!((total - best).abs() < 1e-9, "{} is not {}", total, best);
        }
    }

    #[test]
    fn nothing_to_assign_is_no_assignment() {
        assert!(assign(0, 3, |_, _| 1.0).is_empty());
        assert_eq!(assign(2, 0, |_, _| 1.0), [None, None]);
        assert_eq!(assign(1, 1, |_, _| 0.0), [Some(0)]);
    }
}
