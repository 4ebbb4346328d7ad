//! The level and norm that the configured compressor gives at a budget.

use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::Bits;
use fedlink::compress::{Compressor, Context, Encoded, Scratch};
use std::sync::Arc;

/// Budgets at which the compressed norm of the Gaussian update is known; between them it is interpolated.
const NORM_POINTS: usize = 24;

/// The configured compressor with an update to try it on.
pub(super) struct CompressorProbe {
    compressor: Arc<dyn Compressor>,
    update: Vec<f32>,
    seed: u64,
    scratch: Scratch,
    out: Encoded,
}

impl CompressorProbe {
    pub(super) fn new(compressor: Arc<dyn Compressor>, dim: usize, seed: u64) -> Self {
        let mut rng = stream(seed, Purpose::Schedule, u64::MAX, u64::MAX);
        let scale = 1.0 / libm::sqrt(dim as f64);
        let update = (0..dim).map(|_| (rng.normal() * scale) as f32).collect();
        Self { compressor, update, seed, scratch: Scratch::default(), out: Encoded::Silent }
    }

    /// q, the level at a budget.
    pub(super) fn level(&mut self, bits: f64) -> usize {
        let mut rng = stream(self.seed, Purpose::Schedule, u64::MAX, u64::MAX - 1);
        let Self { compressor, update, scratch, out, .. } = self;
        let context = Context::new(update.len(), Bits(bits));
        compressor.encode(update, &context, &mut rng, scratch, out).level
    }

    /// The largest q, if the compressor states it.
    pub(super) fn highest_level(&self) -> Option<usize> {
        self.compressor.highest_level(self.update.len())
    }

    /// The smallest budget for an update, to a thousandth of a bit.
    pub(super) fn smallest(&mut self) -> Option<f64> {
        let mut high = 1.0;
        while self.level(high) == 0 {
            high *= 2.0;
            if high > 1e12 {
                return None;
            }
        }
        let mut low = 0.0;
        while high - low > 1e-3 {
            let middle = 0.5 * (low + high);
            if self.level(middle) == 0 { low = middle } else { high = middle }
        }
        Some(high)
    }

    /// ‖Δ̂‖₂ of the update at budgets from the smallest on, as (ln bits, norm).
    pub(super) fn norms(&mut self, smallest: Option<f64>, most: f64) -> Vec<(f64, f64)> {
        let Some(smallest) = smallest else { return Vec::new() };
        let (from, to) = (libm::log(smallest), libm::log(most.max(2.0 * smallest)));
        let point = |i: usize| from + (to - from) * i as f64 / (NORM_POINTS - 1) as f64;
        (0..NORM_POINTS)
            .map(|i| {
                self.level(libm::exp(point(i)) * (1.0 + 1e-9));
                (point(i), f64::from(self.out.norm()))
            })
            .collect()
    }
}

/// The norm at `bits`, interpolated; 0 below the smallest budget.
pub(super) fn norm_at(norms: &[(f64, f64)], bits: f64) -> f64 {
    let (Some(first), Some(last)) = (norms.first(), norms.last()) else { return 0.0 };
    let x = libm::log(bits);
    if x < first.0 || bits <= 0.0 {
        return 0.0;
    }
    let after = norms.iter().position(|point| point.0 >= x);
    match after {
        None => last.1,
        Some(0) => first.1,
        Some(i) => {
            let ((x0, y0), (x1, y1)) = (norms[i - 1], norms[i]);
            y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        }
    }
}
