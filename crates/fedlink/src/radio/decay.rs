//! A number of scheduled devices that falls over the rounds.

/// A K that falls from round to round: K_t = max(K_min, ⌈K·e^(−β·t)⌉), t from 0.
///
/// Source: after Ji, Jiang, Walid and Li, *Dynamic Sampling and Selective Masking for Communication-Efficient
/// Federated Learning* (2020), as we read it. Invariant: the links of a round are those of a run with its
/// K_t, to the last bit.
///
/// ```
/// use fedlink::radio::Decay;
/// let decay = Decay::new(0.5, 2);
/// assert_eq!([0, 1, 2, 3, 9].map(|t| decay.k(10, t)), [10, 7, 4, 3, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decay {
    /// β ≥ 0.
    pub rate: f64,
    /// K_min, at least 1 and at most K.
    pub min: usize,
}

impl Decay {
    /// Falls at `rate` to no less than `min`.
    pub fn new(rate: f64, min: usize) -> Self {
        Self { rate, min }
    }

    /// K_t of a run that starts with `k`.
    pub fn k(&self, k: usize, t: u64) -> usize {
        // Slightly less, so that a whole product with a rounding error is not rounded up.
        let falling = libm::ceil(k as f64 * libm::exp(-self.rate * t as f64) - 1e-9) as usize;
        falling.clamp(self.min.min(k), k)
    }

    /// Σ K_s over the rounds s before `t`.
    pub(super) fn turns_before(&self, k: usize, t: u64) -> u128 {
        let mut turns = 0;
        for s in 0..t {
            let now = self.k(k, s);
            if now == self.min {
                return turns + u128::from(t - s) * now as u128;
            }
            turns += now as u128;
        }
        turns
    }
}
