//! Clipping: an upper bound on the norm of every update.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// To which norm updates are clipped (`defense.clip`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Clip {
    /// To none.
    #[default]
    Off,
    /// To this one.
    Norm(f64),
    /// To the median of the latest [`WINDOW`] that arrived, those of this round included.
    Median,
}

/// Norms that the running median is of.
pub const WINDOW: usize = 101;

impl Clip {
    /// The norm to which updates are clipped if `latest` are the latest that arrived; infinite if to none.
    ///
    /// Of an even number of norms, the lower median.
    ///
    /// ```
    /// use fedlink::aggregate::Clip;
    /// assert_eq!(Clip::Median.limit(&[1.0, 900.0, 3.0, 2.0]), 2.0);
    /// assert_eq!(Clip::Norm(5.0).limit(&[]), 5.0);
    /// ```
    pub fn limit(self, latest: &[f32]) -> f64 {
        match self {
            Self::Off => f64::INFINITY,
            Self::Norm(norm) => norm,
            Self::Median if latest.is_empty() => f64::INFINITY,
            Self::Median => {
                let mut sorted = latest.to_vec();
                sorted.sort_unstable_by(f32::total_cmp);
                f64::from(sorted[(sorted.len() - 1) / 2])
            }
        }
    }
}

/// The factor for an update of norm `norm` that makes its norm at most `limit`.
pub fn factor(norm: f32, limit: f64) -> f32 {
    if f64::from(norm) <= limit { 1.0 } else { (limit / f64::from(norm)) as f32 }
}

impl Serialize for Clip {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str("off"),
            Self::Median => serializer.serialize_str("median"),
            Self::Norm(norm) => serializer.serialize_f64(*norm),
        }
    }
}

impl<'de> Deserialize<'de> for Clip {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ClipVisitor;
        impl Visitor<'_> for ClipVisitor {
            type Value = Clip;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("\"off\", \"median\" or a norm")
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Clip, E> {
                Ok(Clip::Norm(value as f64))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Clip, E> {
                Ok(Clip::Norm(value as f64))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Clip, E> {
                Ok(Clip::Norm(value))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Clip, E> {
                match value {
                    "off" => Ok(Clip::Off),
                    "median" => Ok(Clip::Median),
                    other => Err(E::invalid_value(Unexpected::Str(other), &self)),
                }
            }
        }
        deserializer.deserialize_any(ClipVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_clipped_norm_is_at_most_the_limit_and_a_short_one_is_left_alone(
            norm in 0.0..1e30f32,
            limit in 1e-30..1e30f64,
        ) {
            let factor = factor(norm, limit);
            prop_assert!(f64::from(factor) * f64::from(norm) <= limit * (1.0 + 1e-6));
            prop_assert_eq!(factor == 1.0, f64::from(norm) <= limit * (1.0 + 1e-7));
        }

        #[test]
        fn half_of_the_norms_are_at_most_the_median_and_half_at_least(
            norms in prop::collection::vec(0.0..1e3f32, 1..50),
        ) {
            let limit = Clip::Median.limit(&norms);
            let at_most = norms.iter().filter(|norm| f64::from(**norm) <= limit).count();
            let at_least = norms.iter().filter(|norm| f64::from(**norm) >= limit).count();
            prop_assert!(2 * at_most >= norms.len() && 2 * at_least >= norms.len());
        }
    }
}
