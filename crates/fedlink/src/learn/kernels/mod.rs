//! The arithmetic that takes the time.

mod matmul;
mod patches;
mod pool;

pub use matmul::{Matrix, matmul};
pub use patches::Window;
pub use pool::{pool, pooled_shape, unpool};

/// ‖v‖₂, accumulated in double precision over eight interleaved lanes (a fixed order for any machine).
pub fn norm(vector: &[f32]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let chunks = vector.chunks_exact(8);
    let rest: f64 = chunks.remainder().iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(x) * f64::from(x);
        }
    }
    (lanes.iter().sum::<f64>() + rest).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_norm_matches_a_plain_sum(vector in prop::collection::vec(-1e18..1e18f32, 0..70)) {
            let plain = vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            prop_assert!((norm(&vector) - plain).abs() <= 1e-12 * plain);
        }
    }
}
