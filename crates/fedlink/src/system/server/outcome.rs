//! The record of the rounds: evaluations, rows, the outcome and its warnings.

use super::Server;
use super::book::Underpriced;
use crate::base::units::DeviceId;
use crate::compress::ErrorFeedback;
use crate::compress::feedback::FeedbackFacts;
use crate::error::Error;
use crate::learn::fairness::jain;
use crate::learn::task::Evaluation;
use crate::parts::parts_with;
use crate::privacy::Exposure;
use crate::record::{Cost, Energy, Guarantee, Ledger, Outcome, RoundRecord, Row};
use crate::schedule::{Ask, DeviceTable};
use std::borrow::Cow;

impl Server {
    /// Attaches an evaluation to the round that was delivered last. With `run.fairness` its metrics include
    /// the evenness of scheduling so far, and with `privacy.noise` the ε so far, if there is one.
    pub fn evaluated(&mut self, mut evaluation: Evaluation) -> Result<(), Error> {
        let guarantee = self.guarantee();
        let last = self.last.as_mut().ok_or(Error::order(
            "evaluated: no round was delivered since the last one began; evaluate after deliver, before \
             begin",
        ))?;
        if self.spec.run.fairness {
            evaluation.metrics.extend(participation(&self.book.devices, self.rounds_done));
        }
        if let Some(epsilon) = guarantee.and_then(|guarantee| guarantee.epsilon) {
            evaluation.metrics.push(("epsilon".into(), epsilon));
        }
        last.evaluation = Some(evaluation);
        Ok(())
    }

    /// The round that was delivered last, if it is not closed yet.
    pub fn last(&self) -> Option<&RoundRecord> {
        self.last.as_ref()
    }

    /// Closes the round that was delivered last: nothing more is attached to it.
    pub fn close(&mut self) -> Option<RoundRecord> {
        let record = self.last.take()?;
        self.record.add(&record);
        Some(record)
    }

    /// The record with the round that was delivered last.
    pub(super) fn counted(&self) -> Cow<'_, Ledger> {
        match &self.last {
            None => Cow::Borrowed(&self.record),
            Some(record) => {
                let mut whole = self.record.clone();
                whole.add(record);
                Cow::Owned(whole)
            }
        }
    }

    /// The run so far in numbers.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = self.counted().outcome(self.theta(), self.spec.run.target);
        outcome.excluded = self.excluded();
        outcome.warnings = self.spec.cautions();
        outcome.warnings.extend(self.warnings());
        outcome.warnings.extend(self.unheard(&outcome));
        outcome.warnings.extend(outcome.battery_warning());
        outcome.privacy = self.guarantee();
        outcome
    }

    /// That no device was ever scheduled, or most devices never were, though there were two turns for each of
    /// them.
    fn unheard(&self, outcome: &Outcome) -> Option<String> {
        let (schedule, facts) = (&self.spec.schedule, self.spec.facts());
        let (heard, devices) = (outcome.heard() as u64, self.spec.data.devices);
        if heard == 0 && outcome.rounds > 0 {
            let policy = &schedule.policy;
            return Some(format!(
                "policy {policy} scheduled no device in any of {} rounds: the model was never trained",
                outcome.rounds
            ));
        }
        let turns = outcome.rounds.saturating_mul(schedule.k);
        if 2 * heard >= devices || turns < 2 * devices || facts.policy.selection.always_the_same {
            return None;
        }
        let by_norm = self.asks().iter().any(|ask| matches!(ask, Ask::Norm | Ask::CompressedNorm));
        // States that the server has too converge to the updates of the scheduled devices, and lower their
        // reports.
        let keeps_rest = facts.feedback.keeps_rest;
        let why = if by_norm && keeps_rest {
            let without = |facts: &FeedbackFacts| !facts.keeps_rest && facts.state_decay.is_none();
            format!(
                "; compress.feedback adds the unsent part to the norm that a device reports, so that those \
                 that were scheduled are scheduled again; write {} or choose a policy that does not look at \
                 norms",
                parts_with::<dyn ErrorFeedback>(without)
            )
        } else {
            String::new()
        };
        Some(format!(
            "heard {heard}/{devices}: most devices were never scheduled in {} rounds{why}",
            outcome.rounds
        ))
    }

    /// The record of the last round as a row by itself.
    pub fn round_row(&self, record: &RoundRecord) -> Row {
        self.counted().round_row(record)
    }

    /// The evaluated rounds that are closed.
    pub fn rows(&self) -> &[Row] {
        self.record.rows()
    }

    /// The privacy loss of a device over the rounds so far; none without `privacy.noise`.
    pub(crate) fn guarantee(&self) -> Option<Guarantee> {
        let busiest = self.book.devices.all_scheduled().iter().max().copied().unwrap_or(0);
        let exposure = Exposure {
            policy: &self.spec.schedule.policy,
            asks: self.policy.asks(),
            sampling: self.policy.sampling(),
            devices: self.radio.devices() as u64,
            k: self.radio.k() as u64,
            rounds: self.rounds_done,
            busiest: busiest.into(),
        };
        self.defense.privacy.map(|mechanism| mechanism.guarantee(&exposure))
    }

    /// Joules that device number `m` has spent so far.
    pub(crate) fn spent_j(&self, m: usize) -> f64 {
        let before = self.record.costs().devices().get(m).map_or(0.0, Energy::total);
        // The round that was delivered last is not in the record yet.
        let last = self.last.as_ref().and_then(|record| record.cost.as_ref());
        let of_device = |cost: &Cost| cost.devices.iter().find(|(device, _)| device.index() == m).copied();
        before + last.and_then(of_device).map_or(0.0, |(_, spent)| spent.total())
    }

    /// Warnings on the run so far.
    pub fn warnings(&self) -> Vec<String> {
        let (policy, scheme) = (&self.spec.schedule.policy, &self.spec.parts().scheme);
        let mut warnings = Vec::new();
        if self.book.zero_weights > 0 {
            warnings.push(format!(
                "in {} rounds every bit weight of policy {policy} was 0, and the bits were shared equally",
                self.book.zero_weights
            ));
        }
        let labels = || self.facts.labels.as_ref().and_then(|labels| labels(DeviceId(0)));
        if self.policy.uses_labels() && labels().is_none() {
            warnings.push(format!(
                "policy {policy} uses the labels of the devices, but these are unknown here: all devices are \
                 alike"
            ));
        }
        if let (uploads, Some(first)) = self.book.underpriced {
            let name = scheme.name();
            let Underpriced { round, device, entries, claimed, needed } = first;
            warnings.push(format!(
                "compressor {name} claims fewer bits than its entries take in {uploads} uploads (the first: \
                 round {round}, device {device}, {entries} entries, which take about {needed:.0} bits, for \
                 {claimed:.0}); its results are too good unless both ends draw the indices from a shared seed"
            ));
        }
        warnings
    }
}

/// The evenness of scheduling in the first `rounds` rounds: Jain's index, and the current ages.
fn participation(devices: &DeviceTable, rounds: u64) -> [(String, f64); 3] {
    let ages = || DeviceId::all(devices.len()).map(|device| devices.age(device, rounds));
    [
        ("jain".into(), jain(devices.all_scheduled().iter().copied().map(f64::from)).unwrap_or(1.0)),
        ("max_age".into(), ages().max().unwrap_or(0) as f64),
        ("mean_age".into(), ages().sum::<u64>() as f64 / devices.len().max(1) as f64),
    ]
}
