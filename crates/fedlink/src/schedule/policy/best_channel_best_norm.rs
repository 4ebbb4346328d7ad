//! BC-BN2: best channel, then best ℓ2-norm.

use crate::radio::Channels;
use crate::schedule::{Policy, ReportKind, Schedule, everyone, largest, largest_reports};
use crate::units::DeviceId;

/// BC-BN2: of the Kc devices with the largest gain g, the K with the largest ‖Δ‖₂, with bits in proportion
/// to it (`w_m = ‖Δ_m‖₂`).
///
/// Only the Kc candidates train and report. At Kc = M it is BN2; at Kc = K it selects as BC does but still
/// shares the bits by norm. Source: section IV-C of the paper.
#[derive(Clone, Copy, Debug)]
pub struct BestChannelBestNorm {
    /// Kc, how many devices the channel lets through to the second step; K ≤ Kc ≤ M.
    pub kc: usize,
}

impl Policy for BestChannelBestNorm {
    fn candidates(&mut self, channels: &Channels, _: usize) -> Vec<DeviceId> {
        largest(&everyone(channels), self.kc, |m| channels.gains[m])
    }

    fn report(&self) -> ReportKind {
        ReportKind::Norm
    }

    fn select(&mut self, candidates: &[DeviceId], reports: &[f32], _: &Channels, k: usize) -> Schedule {
        largest_reports(candidates, reports, k)
    }
}
