//! The scheduling policies, one file each.

mod best_channel;
mod best_channel_best_norm;
mod best_norm;
mod best_quantised_norm;

pub use best_channel::BestChannel;
pub use best_channel_best_norm::BestChannelBestNorm;
pub use best_norm::BestNorm;
pub use best_quantised_norm::BestQuantisedNorm;

use super::Policy;
use serde::{Deserialize, Serialize};

/// The name of a policy in a configuration (`schedule.policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyKind {
    /// K largest channel gains.
    Bc,
    /// K largest update norms.
    Bn2,
    /// K largest update norms among the Kc largest channel gains.
    #[serde(rename = "bc-bn2")]
    BcBn2,
    /// K largest norms of the update as the channel would let it through.
    #[default]
    #[serde(rename = "bn2-c")]
    Bn2C,
}

/// The policy called `kind`; `kc` matters to BC-BN2 alone.
pub fn policy(kind: PolicyKind, kc: usize) -> Box<dyn Policy> {
    match kind {
        PolicyKind::Bc => Box::new(BestChannel),
        PolicyKind::Bn2 => Box::new(BestNorm),
        PolicyKind::BcBn2 => Box::new(BestChannelBestNorm { kc }),
        PolicyKind::Bn2C => Box::new(BestQuantisedNorm),
    }
}

#[cfg(test)]
mod tests;
