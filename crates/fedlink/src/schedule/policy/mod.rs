//! The scheduling policies, one file each.

crate::register! {
    /// All policies.
    POLICIES: dyn Policy;
    best_channel,
    best_norm,
    best_channel_best_norm,
    best_compressed_norm,
    random,
    poisson,
    round_robin,
    proportional_fair,
    age,
    norm_channel,
    power_of_choice,
    active,
    oort,
    optimal,
    importance,
    lyapunov,
    multinomial,
    gradient_channel,
    ucb,
    clustered,
    divfl,
    ocean,
    deadline,
    data_aware,
    fixed,
    all,
    ideal,
    genie_align,
    genie_loss,
}

pub use best_channel::BestChannel;
pub use best_channel_best_norm::BestChannelBestNorm;
pub use best_compressed_norm::BestCompressedNorm;
pub use best_norm::BestNorm;
pub use poisson::Poisson;
pub use random::Random;
pub use round_robin::RoundRobin;

use super::Policy;

#[cfg(test)]
mod tests;
