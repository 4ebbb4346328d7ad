//! Uniform quantization: every entry with b bits.

use fedlink::base::rng::Stream;
use fedlink::base::units::Bits;
use fedlink::compress::{Codec, Compressor, Context, Encoded, Properties, Scratch, Spent};
use fedlink::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<Uniform>();

/// Sends the sign and magnitude of every entry in b bits, 2 ≤ b ≤ 16, and the largest magnitude in 32 bits.
/// `[compress.uniform]`.
///
/// - Bits: r(b) = b·d + 32; the level is the largest b with r(b) ≤ R.
/// - Value: s·round(L·x/s)/L with L = 2^(b−1) − 1; entries above s are sent as ±s. s is the magnitude that a
///   share `quantile` of the entries does not exceed.
///
/// Source: the mid-tread uniform quantizer of any text on source coding. Invariants: |Δ̂_i − Δ_i| ≤ |Δ_i|,
/// hence ω = 1.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    /// share of the entries whose magnitude is not clipped
    #[key(default = 0.999, range = "> 0 and ≤ 1")]
    pub quantile: f64,
}

impl PartConfig for Uniform {
    type Part = dyn Compressor;
    const NAME: &'static str = "uniform";
    const MEANING: &'static str = "uniform quantization: all entries with b bits each, and one scale";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// The scratch memory of this scheme: one vector per thread, whose memory every update reuses.
#[derive(Debug, Default)]
struct Magnitudes(Vec<f32>);

/// r(b).
fn cost(dim: usize, level: usize) -> f64 {
    (dim * level) as f64 + 32.0
}

/// The largest b within `budget`.
fn level(dim: usize, budget: Bits) -> Option<usize> {
    (2..=16).rev().find(|&level| dim > 0 && cost(dim, level) <= budget.0)
}

/// s.
fn scale(update: &[f32], quantile: f64, scratch: &mut Scratch) -> f64 {
    let Magnitudes(magnitudes) = scratch.own();
    magnitudes.clear();
    magnitudes.extend(update.iter().map(|x| x.abs()));
    let rank = (quantile * update.len() as f64).ceil() as usize;
    let (_, scale, _) = magnitudes.select_nth_unstable_by(rank.max(1) - 1, f32::total_cmp);
    f64::from(*scale)
}

impl Compressor for Uniform {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        _: &mut Stream,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let Some(level) = level(update.len(), context.budget) else {
            *out = Encoded::Silent;
            return Spent::default();
        };
        let scale = scale(update, self.quantile, scratch);
        let half = f64::from((1u32 << (level - 1)) - 1);
        let quantized = |x: &f32| {
            let part = (f64::from(*x) / scale).clamp(-1.0, 1.0);
            (scale * ((part * half).round() / half)) as f32
        };
        let mut values = match std::mem::take(out) {
            Encoded::Dense(values) => values,
            _ => Vec::new(),
        };
        values.clear();
        values.extend(update.iter().map(|x| if scale > 0.0 { quantized(x) } else { 0.0 }));
        *out = Encoded::Dense(values);
        Spent::new(Bits(cost(update.len(), level)), level)
    }

    fn codec(&self) -> Option<&dyn Codec> {
        None
    }

    fn properties(&self, _: usize, _: usize) -> Properties {
        let mut properties = Properties::UNKNOWN;
        (properties.omega, properties.homogeneous) = (Some(1.0), true);
        properties
    }
}
