//! BN2: best ℓ2-norm.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::{Ask, Bias, Policy, Reports, Schedule, Selection, Trains, View, largest_reports};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<BestNorm>();

/// BN2: the K devices with the largest ‖Δ‖₂, with bits in proportion to it (`w_m = ‖Δ_m‖₂`).
///
/// All M devices train and report one norm each. Source: section IV-B of the paper.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct BestNorm {}

impl PartConfig for BestNorm {
    type Part = dyn Policy;
    const NAME: &'static str = "bn2";
    const FAMILY: &'static str = "norm";
    const MEANING: &'static str = "best norm: the K largest ‖Δ‖, bits in proportion to it";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for BestNorm {}

impl Policy for BestNorm {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        view.everyone()
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::Norm]
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Everyone).of_largest_reports()
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        largest_reports(reports, view.k)
    }
}
