//! BN2: best ℓ2-norm.

use crate::radio::Channels;
use crate::schedule::{Policy, ReportKind, Schedule, everyone, largest_reports};
use crate::units::DeviceId;

/// BN2: the K devices with the largest ‖Δ‖₂, with bits in proportion to it (`w_m = ‖Δ_m‖₂`).
///
/// All M devices train and report one norm each. Source: section IV-B of the paper.
#[derive(Clone, Copy, Debug)]
pub struct BestNorm;

impl Policy for BestNorm {
    fn candidates(&mut self, channels: &Channels, _: usize) -> Vec<DeviceId> {
        everyone(channels)
    }

    fn report(&self) -> ReportKind {
        ReportKind::Norm
    }

    fn select(&mut self, candidates: &[DeviceId], reports: &[f32], _: &Channels, k: usize) -> Schedule {
        largest_reports(candidates, reports, k)
    }
}
