//! BC-BN2: best channel, then best ℓ2-norm.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys, within};
use crate::schedule::{
    Ask, Bias, Policy, Reports, Schedule, Selection, Trains, View, largest, largest_reports,
};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<BestChannelBestNormConfig>();

/// `[schedule.bc-bn2]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct BestChannelBestNormConfig {
    /// Kc, devices that pass the selection by channel, train and report
    #[key(allowed = "schedule.k ..= data.devices", derived = "max(10, 2K), at most M")]
    pub kc: u64,
}

impl PartConfig for BestChannelBestNormConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "bc-bn2";
    const FAMILY: &'static str = "norm";
    const MEANING: &'static str = "best channel, then best norm: the K largest ‖Δ‖ among the Kc \
        largest gains, bits in proportion to ‖Δ‖";

    fn derive(&mut self, scope: &Scope) {
        if self.kc == 0 {
            self.kc = scope.k.saturating_mul(2).max(10).min(scope.devices);
        }
    }

    fn resolve(&mut self, scope: &Scope) -> Result<(), ConfigError> {
        within("kc", self.kc, scope.k..=scope.devices, " (from schedule.k to data.devices)")
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(BestChannelBestNorm { kc: self.kc as usize }))
    }
}

/// BC-BN2: of the Kc devices with the largest gain g, the K with the largest ‖Δ‖₂, with bits in proportion
/// to it (`w_m = ‖Δ_m‖₂`).
///
/// Only the Kc candidates train and report. At Kc = M it is BN2; at Kc = K it selects as BC does but still
/// shares the bits by norm. Source: section IV-C of the paper.
#[derive(Clone, Copy, Debug)]
pub struct BestChannelBestNorm {
    /// Kc, the number of devices that the channel lets through to the second step; K ≤ Kc ≤ M.
    pub kc: usize,
}

impl Persist for BestChannelBestNorm {}

impl Policy for BestChannelBestNorm {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        largest(&view.everyone(), self.kc, |m| view.links.gains[m])
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::Norm]
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Some).of_largest_reports().by_channel(true)
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        largest_reports(reports, view.k)
    }
}
