//! BN2-C: best ℓ2-norm after compression to the channel.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::{Ask, Bias, Policy, Reports, Schedule, Selection, Trains, View, largest_reports};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<BestCompressedNorm>();

/// BN2-C: the K devices with the largest ‖Δ̂(q*)‖₂, where q* is the level that the device could send if it
/// had all n symbols (r(q*) ≤ n·C), with bits in proportion to it (`w_m = ‖Δ̂_m(q*)‖₂`).
///
/// The channel and the update decide together: over a poor link only the small part that would arrive of a
/// large update counts. All M devices train and report. Source: section IV-D of the paper.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct BestCompressedNorm {}

impl PartConfig for BestCompressedNorm {
    type Part = dyn Policy;
    const NAME: &'static str = "bn2-c";
    const FAMILY: &'static str = "norm";
    const MEANING: &'static str = "best compressed norm: the K largest ‖Δ̂‖ as if each device had \
        the whole band, bits in proportion to it";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for BestCompressedNorm {}

impl Policy for BestCompressedNorm {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        view.everyone()
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::CompressedNorm]
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Everyone).of_largest_reports()
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        largest_reports(reports, view.k)
    }
}
