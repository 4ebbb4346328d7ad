//! BC: best channel.

use crate::radio::Channels;
use crate::schedule::{Policy, ReportKind, Schedule, everyone, largest};
use crate::units::DeviceId;

/// BC: the K devices with the largest gain g, each with an equal share of bits (`w_m = 1`).
///
/// Nobody reports anything and only the K winners need train. Source: section IV-A of the paper.
#[derive(Clone, Copy, Debug)]
pub struct BestChannel;

impl Policy for BestChannel {
    fn candidates(&mut self, channels: &Channels, k: usize) -> Vec<DeviceId> {
        largest(&everyone(channels), k, |m| channels.gains[m])
    }

    fn report(&self) -> ReportKind {
        ReportKind::Nothing
    }

    fn select(&mut self, candidates: &[DeviceId], _: &[f32], _: &Channels, _: usize) -> Schedule {
        Schedule { devices: candidates.to_vec(), weights: vec![1.0; candidates.len()] }
    }
}
