use super::*;
use crate::base::rng::{Purpose, stream};
use crate::learn::model::tests::gradient;

/// The network in double precision, written from its definition: the mean loss over the batch.
fn plain_loss(widths: &[usize], theta: &[f64], inputs: &[f64], labels: &[u8]) -> f64 {
    let mut total = 0.0;
    for (x, &label) in inputs.chunks_exact(widths[0]).zip(labels) {
        let mut a = x.to_vec();
        let mut at = 0;
        for (l, pair) in widths.windows(2).enumerate() {
            let (weights, biases) = (&theta[at..], &theta[at + pair[0] * pair[1]..]);
            let z: Vec<f64> = (0..pair[1])
                .map(|o| biases[o] + (0..pair[0]).map(|i| a[i] * weights[i * pair[1] + o]).sum::<f64>())
                .collect();
            at += (pair[0] + 1) * pair[1];
            let hidden = l + 2 < widths.len();
            a = z.into_iter().map(|z| if hidden { z.max(0.0) } else { z }).collect();
        }
        total += a.iter().map(|z| z.exp()).sum::<f64>().ln() - a[usize::from(label)];
    }
    total / labels.len() as f64
}

#[test]
fn sparse_inputs_give_the_gradients_and_scores_of_dense_ones() {
    for widths in [vec![90, 10], vec![40, 83, 3], vec![300, 64, 5, 4]] {
        let classes = *widths.last().unwrap();
        let model = Mlp::new(widths[0], &widths[1..widths.len() - 1], classes);
        let mut s = stream(5, Purpose::Test, 0, widths.len() as u64);
        let theta: Vec<f32> = (0..model.dim()).map(|_| s.normal() as f32 * 0.3).collect();
        // Whole columns and stray entries are zero.
        let dense: Vec<f32> = (0..9 * widths[0])
            .map(|i| if i % widths[0] % 7 < 3 || s.uniform() < 0.6 { 0.0 } else { s.normal() as f32 })
            .collect();
        let labels: Vec<u8> = (0..9).map(|_| s.below(classes as u64) as u8).collect();
        let sparse = SparseBatch::of_dense(&dense, widths[0]);
        let mut rows_only = sparse.clone();
        let mut work = model.workspace(11);
        let [dense, sparse] =
            [Rows::Dense(&dense), Rows::Sparse(&sparse)].map(|inputs| Batch { inputs, labels: &labels });
        let (loss, expected) = gradient(&model, &theta, dense, &mut work);
        let (sparse_loss, ours) = gradient(&model, &theta, sparse, &mut work);
        assert!((loss - sparse_loss).abs() < 1e-5 * loss);
        for (a, b) in expected.iter().zip(&ours) {
            assert!((a - b).abs() < 1e-5, "{widths:?}: {a} against {b}");
        }
        rows_only.finish_rows();
        let rows_only = Batch { inputs: Rows::Sparse(&rows_only), labels: &labels };
        assert_eq!(gradient(&model, &theta, rows_only, &mut work), (sparse_loss, ours));
        let (a, b) = (model.score(&theta, dense, &mut work), model.score(&theta, sparse, &mut work));
        assert!(a.correct == b.correct && (a.loss - b.loss).abs() < 1e-5 * a.loss);
    }
}

#[test]
fn gradients_match_finite_differences_of_an_independent_network() {
    for widths in [vec![7, 4], vec![7, 5, 4], vec![6, 5, 4, 3], vec![3, 9, 8, 7, 2]] {
        let classes = *widths.last().unwrap();
        let model = Mlp::new(widths[0], &widths[1..widths.len() - 1], classes);
        let mut s = stream(4, Purpose::Test, 0, widths.len() as u64);
        let rows = 6;
        let theta: Vec<f32> = (0..model.dim()).map(|_| s.normal() as f32 * 0.5).collect();
        let inputs: Vec<f32> = (0..rows * widths[0]).map(|_| s.normal() as f32).collect();
        let labels: Vec<u8> = (0..rows).map(|_| s.below(classes as u64) as u8).collect();
        // A used workspace for more rows than the batch has: no stale number may affect the result.
        let mut work = model.workspace(rows + 3);
        let batch = Batch { inputs: Rows::Dense(&inputs), labels: &labels };
        gradient(&model, &theta, batch, &mut work);
        let (loss, gradient) = gradient(&model, &theta, batch, &mut work);

        let theta: Vec<f64> = theta.iter().map(|&x| f64::from(x)).collect();
        let inputs: Vec<f64> = inputs.iter().map(|&x| f64::from(x)).collect();
        let truth = |theta: &[f64]| plain_loss(&widths, theta, &inputs, &labels);
        assert!((loss - truth(&theta)).abs() < 1e-5);
        for i in 0..model.dim() {
            let step = 1e-5;
            let mut moved = theta.clone();
            moved[i] += step;
            let above = truth(&moved);
            moved[i] -= 2.0 * step;
            let slope = (above - truth(&moved)) / (2.0 * step);
            assert!(
                (f64::from(gradient[i]) - slope).abs() < 2e-5,
                "{widths:?} θ[{i}]: {} {slope}",
                gradient[i]
            );
        }
    }
}

#[test]
fn the_paper_s_models_have_the_paper_s_dimensions() {
    assert_eq!(Mlp::new(784, &[256], 10).dim(), 203_530);
    assert_eq!(Mlp::new(784, &[], 10).dim(), 7_850);
    assert_eq!(Mlp::new(784, &[128, 64], 10).dim(), 785 * 128 + 129 * 64 + 65 * 10);
}

#[test]
fn glorot_weights_fill_their_range_and_biases_are_zero() {
    let model = Mlp::new(784, &[256], 10);
    let theta = model.init(Init::GlorotUniform, &mut stream(0, Purpose::Init, 0, 0));
    let limit = (6.0f32 / (784.0 + 256.0)).sqrt();
    let first = &theta[..784 * 256];
    assert!(first.iter().all(|w| w.abs() <= limit));
    let variance = first.iter().map(|w| f64::from(w * w)).sum::<f64>() / first.len() as f64;
    assert!((variance / f64::from(limit * limit / 3.0) - 1.0).abs() < 0.02);
    assert!(theta[784 * 256..784 * 256 + 256].iter().all(|&b| b == 0.0));
    assert!(theta[203_520..].iter().all(|&b| b == 0.0));
}

#[test]
fn a_score_is_the_number_of_right_answers_and_the_sum_of_losses() {
    // Two inputs, two classes, weights that copy the inputs to the logits.
    let model = Mlp::new(2, &[], 2);
    let theta = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];
    let batch = Batch { inputs: Rows::Dense(&[5.0, 0.0, 0.0, 5.0, 5.0, 0.0]), labels: &[0, 1, 1] };
    let score = model.score(&theta, batch, &mut model.workspace(3));
    let right = (1.0 + (-5f64).exp()).ln();
    assert_eq!(score.correct, 2);
    assert!((score.loss - (2.0 * right + right + 5.0)).abs() < 1e-5);
}
