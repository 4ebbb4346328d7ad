//! Bias, `ReLU` and 2×2 maximum pooling in one pass over a convolution's maps, and back.
//!
//! Adding a bias and `ReLU` preserve order, so they follow the maximum, on a quarter of the numbers:
//! max(ReLU(z + b)) = ReLU(max(z) + b).

use super::sparse_batch::SparseBatch;

/// The mark of a 2×2 block whose maximum `ReLU` set to zero; any other mark is the index of the block's
/// largest number.
const SILENT: u8 = 4;

/// The indices of a block in order: left to right, then down.
const BLOCK: [[usize; 2]; 4] = [[0, 0], [0, 1], [1, 0], [1, 1]];

/// The shape of maps of height × width × channels after pooling. An odd last row or column is left out.
pub fn pooled_shape([height, width, channels]: [usize; 3]) -> [usize; 3] {
    [height / 2, width / 2, channels]
}

/// Pools the maps of one image of the given shape: `pooled` = ReLU(largest of each 2×2 block + bias of
/// the channel). `winners` gets the index of the largest, the first of equal ones.
pub fn pool(maps: &[f32], shape: [usize; 3], biases: &[f32], pooled: &mut [f32], winners: &mut [u8]) {
    let channels = shape[2];
    let outputs = pooled.chunks_exact_mut(channels).zip(winners.chunks_exact_mut(channels));
    for (corner, (pooled, winners)) in corners(shape).zip(outputs) {
        let [first, rest @ ..] =
            BLOCK.map(|[y, x]| &maps[corner + (y * shape[1] + x) * channels..][..channels]);
        for (c, ((pooled, winner), bias)) in pooled.iter_mut().zip(winners).zip(biases).enumerate() {
            let (mut largest, mut index) = (first[c], 0);
            for (z, next) in rest.iter().zip(1..) {
                if z[c] > largest {
                    (largest, index) = (z[c], next);
                }
            }
            let output = largest + bias;
            (*pooled, *winner) = if output > 0.0 { (output, index) } else { (0.0, SILENT) };
        }
    }
}

/// The gradient of [`pool`]: the gradient of `pooled` goes to the winner of each block, all else in
/// `maps` is zero, and each channel's sum is added to `bias_gradient`.
pub fn unpool(
    gradient: &[f32],
    winners: &[u8],
    shape: [usize; 3],
    bias_gradient: &mut [f32],
    maps: &mut [f32],
) {
    let [height, width, channels] = shape;
    if height % 2 + width % 2 > 0 {
        maps.fill(0.0);
    }
    let inputs = gradient.chunks_exact(channels).zip(winners.chunks_exact(channels));
    for (corner, (gradient, winners)) in corners(shape).zip(inputs) {
        for ([y, x], index) in BLOCK.into_iter().zip(0..) {
            let block = &mut maps[corner + (y * width + x) * channels..][..channels];
            for ((z, &g), &winner) in block.iter_mut().zip(gradient).zip(winners) {
                *z = if winner == index { g } else { 0.0 };
            }
        }
    }
    add_bias_gradient(gradient, winners, bias_gradient);
}

/// As [`unpool`], with the non-zeros of the maps: a row per position, a column per channel.
pub fn unpool_sparse(
    gradient: &[f32],
    winners: &[u8],
    shape: [usize; 3],
    bias_gradient: &mut [f32],
    maps: &mut SparseBatch,
) {
    let [height, width, channels] = shape;
    maps.restart(channels);
    for y in 0..height {
        for x in 0..width {
            let (index, inside) = ((y % 2 * 2 + x % 2) as u8, y < height / 2 * 2 && x < width / 2 * 2);
            let block = if inside { y / 2 * (width / 2) + x / 2 } else { 0 };
            let block = block * channels..(block + usize::from(inside)) * channels;
            let entries = gradient[block.clone()].iter().zip(&winners[block]);
            maps.push_some(entries.map(|(&g, &winner)| (g, winner == index)));
        }
    }
    maps.finish();
    add_bias_gradient(gradient, winners, bias_gradient);
}

/// Adds each channel's sum to the gradient of its bias, without the blocks that `ReLU` set to zero.
fn add_bias_gradient(gradient: &[f32], winners: &[u8], sums: &mut [f32]) {
    let channels = sums.len();
    for (gradient, winners) in gradient.chunks_exact(channels).zip(winners.chunks_exact(channels)) {
        for ((sum, &g), &winner) in sums.iter_mut().zip(gradient).zip(winners) {
            *sum += if winner == SILENT { 0.0 } else { g };
        }
    }
}

/// The start of each 2×2 block, in the order of the pooled pixels.
fn corners([height, width, channels]: [usize; 3]) -> impl Iterator<Item = usize> {
    (0..height / 2).flat_map(move |y| (0..width / 2).map(move |x| 2 * (y * width + x) * channels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_a_block_wins_and_the_first_of_equals() {
        // Two channels of one 2×4 map; the first channel's second block ties, the second
        // channel's first one too.
        #[rustfmt::skip]
        let maps = [
            1.0, 7.0,  2.0, 7.0,   5.0, 1.0,  6.0, 2.0,
            4.0, 7.0,  3.0, 7.0,   6.0, 3.0,  0.0, 4.0,
        ];
        let (mut pooled, mut winners) = ([f32::NAN; 4], [9; 4]);
        pool(&maps, [2, 4, 2], &[0.5, -3.0], &mut pooled, &mut winners);
        assert_eq!(pooled, [4.5, 4.0, 6.5, 1.0]);
        assert_eq!(winners, [2, 0, 1, 3]);

        let (mut bias_gradient, mut back) = ([100.0, 200.0], [f32::NAN; 16]);
        unpool(&[1.0, 2.0, 3.0, 4.0], &winners, [2, 4, 2], &mut bias_gradient, &mut back);
        #[rustfmt::skip]
        let expected = [
            0.0, 2.0,  0.0, 0.0,   0.0, 0.0,  3.0, 0.0,
            1.0, 0.0,  0.0, 0.0,   0.0, 0.0,  0.0, 4.0,
        ];
        assert_eq!(back, expected);
        assert_eq!(bias_gradient, [104.0, 206.0]);
    }

    #[test]
    fn a_block_that_relu_sets_to_zero_has_no_gradient() {
        let maps = [-1.0, -2.0, -3.0, -4.0];
        for (bias, output, passes) in [(0.5, 0.0, false), (1.0, 0.0, false), (1.5, 0.5, true)] {
            let (mut pooled, mut winners) = ([f32::NAN], [9]);
            pool(&maps, [2, 2, 1], &[bias], &mut pooled, &mut winners);
            assert_eq!(pooled, [output]);
            let (mut bias_gradient, mut back) = ([0.0], [f32::NAN; 4]);
            unpool(&[3.0], &winners, [2, 2, 1], &mut bias_gradient, &mut back);
            let passed = if passes { 3.0 } else { 0.0 };
            assert_eq!((back, bias_gradient), ([passed, 0.0, 0.0, 0.0], [passed]));
        }
    }

    #[test]
    fn an_odd_last_row_and_column_are_ignored() {
        // The numbers outside the one block are the largest by far.
        let maps = [1.0, 2.0, 99.0, 4.0, 3.0, 99.0, 99.0, 99.0, 99.0];
        let (mut pooled, mut winners) = ([f32::NAN], [9]);
        assert_eq!(pooled_shape([3, 3, 1]), [1, 1, 1]);
        pool(&maps, [3, 3, 1], &[0.0], &mut pooled, &mut winners);
        assert_eq!((pooled, winners), ([4.0], [2]));
        let mut back = [f32::NAN; 9];
        unpool(&[6.0], &winners, [3, 3, 1], &mut [0.0], &mut back);
        assert_eq!(back, [0.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn the_sparse_gradient_has_the_non_zeros_of_the_dense_one() {
        let mut s = crate::base::rng::stream(4, crate::base::rng::Purpose::Test, 0, 0);
        for shape in [[4, 6, 3], [5, 7, 2], [2, 2, 17], [3, 3, 1]] {
            let len = pooled_shape(shape).iter().product();
            let gradient: Vec<f32> = (0..len).map(|_| s.normal() as f32).collect();
            let winners: Vec<u8> = (0..len).map(|_| s.below(5) as u8).collect();
            let mut maps = vec![f32::NAN; shape.iter().product()];
            let (mut biases, mut again) = (vec![0.5; shape[2]], vec![0.5; shape[2]]);
            unpool(&gradient, &winners, shape, &mut biases, &mut maps);
            // The batch was used before; its old entries must go.
            let mut sparse = SparseBatch::of_dense(&[1.0; 6], 2);
            unpool_sparse(&gradient, &winners, shape, &mut again, &mut sparse);
            assert_eq!((sparse.to_dense(), again), (maps, biases));
            assert!(sparse.has_columns() && sparse.rows() == shape[0] * shape[1]);
        }
    }
}
