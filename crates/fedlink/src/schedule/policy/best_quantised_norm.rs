//! BN2-C: best ℓ2-norm after compression to the channel.

use crate::radio::Channels;
use crate::schedule::{Policy, ReportKind, Schedule, everyone, largest_reports};
use crate::units::DeviceId;

/// BN2-C: the K devices with the largest ‖Δ̂(q*)‖₂, where q* is what the device could send if it had all n
/// symbols (r(q*) ≤ n·C), with bits in proportion to it (`w_m = ‖Δ̂_m(q*)‖₂`).
///
/// Channel and update decide together: a large update behind a poor link counts for the little that would
/// arrive of it. All M devices train and report. Source: section IV-D of the paper.
#[derive(Clone, Copy, Debug)]
pub struct BestQuantisedNorm;

impl Policy for BestQuantisedNorm {
    fn candidates(&mut self, channels: &Channels, _: usize) -> Vec<DeviceId> {
        everyone(channels)
    }

    fn report(&self) -> ReportKind {
        ReportKind::QuantisedNorm
    }

    fn select(&mut self, candidates: &[DeviceId], reports: &[f32], _: &Channels, k: usize) -> Schedule {
        largest_reports(candidates, reports, k)
    }
}
