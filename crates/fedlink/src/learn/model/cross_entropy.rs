//! Softmax cross-entropy, the loss of every classifier here.

use super::Score;
use crate::base::kernels::exp;

/// −ln p(label) of one row of logits, with p = softmax(logits).
fn cross_entropy(logits: &[f32], label: u8) -> f64 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits.iter().map(|&z| libm::expf(z - largest)).sum();
    f64::from(libm::logf(sum)) - f64::from(logits[usize::from(label)] - largest)
}

/// Rows whose exponentials are computed together.
const GROUP: usize = 16;

/// Replaces the logits of each row by the gradient of the mean loss, (p − onehot(label))/rows. Returns
/// the mean loss and the mean of the squared losses.
pub(super) fn loss_and_gradient(logits: &mut [f32], labels: &[u8]) -> (f64, f64) {
    let rows = labels.len();
    let classes = logits.len() / rows;
    let (mut loss, mut square) = (0.0, 0.0);
    for (group, labels) in logits.chunks_mut(GROUP * classes).zip(labels.chunks(GROUP)) {
        let mut below = [0.0; GROUP];
        for ((row, &label), below) in group.chunks_exact_mut(classes).zip(labels).zip(&mut below) {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            row.iter_mut().for_each(|z| *z -= largest);
            *below = f64::from(row[usize::from(label)]);
        }
        exp(group);
        for ((row, &label), below) in group.chunks_exact_mut(classes).zip(labels).zip(below) {
            let sum: f32 = row.iter().fold(0.0, |sum, p| sum + p);
            let own = f64::from(libm::logf(sum)) - below;
            loss += own;
            square += own * own;
            let scale = 1.0 / (sum * rows as f32);
            row.iter_mut().for_each(|p| *p *= scale);
            row[usize::from(label)] -= 1.0 / rows as f32;
        }
    }
    (loss / rows as f64, square / rows as f64)
}

/// Total loss, and the number of rows whose largest logit (the first of equal ones) is the label's.
pub(super) fn score(logits: &[f32], labels: &[u8]) -> Score {
    let classes = logits.len() / labels.len();
    let mut score = Score { correct_of_class: vec![0; classes], ..Score::default() };
    for (row, &label) in logits.chunks_exact(classes).zip(labels) {
        score.loss += cross_entropy(row, label);
        let best = (1..classes).fold(0, |best, c| if row[c] > row[best] { c } else { best });
        if best == usize::from(label) {
            score.correct += 1;
            score.correct_of_class[best] += 1;
        }
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_logits_cost_the_logarithm_of_the_number_of_classes() {
        assert!((cross_entropy(&[3.0; 10], 4) - 10f64.ln()).abs() < 1e-6);
    }

    #[test]
    fn huge_logits_neither_overflow_nor_change_the_loss() {
        assert!((cross_entropy(&[1e4, 0.0], 1) - 1e4).abs() < 1e-2);
        assert_eq!(cross_entropy(&[1e4, 0.0], 0), 0.0);
    }

    #[test]
    fn the_loss_returned_with_the_gradient_is_the_mean_over_rows() {
        let logits = [0.3, -1.0, 2.0, 5.0, 4.0, -50.0];
        let [a, b] = [cross_entropy(&logits[..3], 1), cross_entropy(&logits[3..], 2)];
        let alone = (f64::midpoint(a, b), f64::midpoint(a * a, b * b));
        assert_eq!(loss_and_gradient(&mut logits.clone(), &[1, 2]), alone);
    }

    #[test]
    fn right_answers_are_counted_by_class() {
        let logits = [0.0, 1.0, 2.0, 9.0, 0.0, 0.0, 0.0, 3.0, 1.0, 0.0, 5.0, 7.0];
        let score = score(&logits, &[2, 0, 1, 1]);
        assert_eq!((score.correct, score.correct_of_class), (3, vec![1, 1, 1]));
    }

    #[test]
    fn a_tie_for_the_largest_logit_goes_to_the_first_class() {
        assert_eq!(score(&[1.0, 1.0], &[0]).correct, 1);
        assert_eq!(score(&[1.0, 1.0], &[1]).correct, 0);
    }
}
