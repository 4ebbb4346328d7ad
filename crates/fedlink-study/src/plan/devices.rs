//! Groups, classes, phases and batteries under the recommended settings.

use super::answer::{Answer, Cost, GroupFact};
use super::insight::{Insight, metric};
use crate::error::Error;
use crate::race::Arm;
use crate::tables::results::RunResult;
use fedlink::base::units::DeviceId;

impl Insight<'_, '_> {
    pub(super) fn devices(&self, best: Arm, answer: &mut Answer) -> Result<(), Error> {
        let spec = self.bench.spec(best)?;
        let runs = self.fresh(best);
        let count = runs.len().max(1) as f64;
        let rounds: f64 = runs.iter().map(|run| run.outcome.rounds as f64).sum();
        if runs.iter().all(|run| run.outcome.phases.is_some()) {
            let sum = |of: fn(&fedlink::record::Phases) -> f64| {
                runs.iter().filter_map(|run| run.outcome.phases.as_ref()).map(of).sum::<f64>()
                    / rounds.max(1.0)
            };
            answer.phases_s =
                vec![sum(|p| p.down_s), sum(|p| p.train_s), sum(|p| p.report_s), sum(|p| p.up_s)];
        }
        answer.deadline_s = spec.clock.deadline_s;
        answer.first_empty = runs.iter().filter_map(|run| run.outcome.first_empty).min();
        let joules = self.request.goals[0].counted_in(crate::goals::Cost::WorstDeviceJoules);
        answer.worst_device_joules =
            Cost::of(&joules, &self.readings(best, &joules)?).and_then(|cost| cost.median.value);
        let mut class = 0;
        while let Some(values) =
            runs.iter().map(|run| metric(run, &format!("class_{class}"))).collect::<Option<Vec<f64>>>()
        {
            if values.is_empty() {
                break;
            }
            answer.classes.push(values.iter().sum::<f64>() / count);
            class += 1;
        }
        let screened = &self.bench.candidates[best.candidate].screened;
        for (group, share) in screened.groups.iter().enumerate() {
            let own: Vec<usize> = DeviceId::all(spec.data.devices as usize)
                .filter(|device| spec.group_of(*device) == Some(group))
                .map(DeviceId::index)
                .collect();
            let uploads = |run: &RunResult, devices: &[usize]| -> f64 {
                devices
                    .iter()
                    .filter_map(|&device| run.outcome.scheduled.get(device))
                    .map(|&n| f64::from(n))
                    .sum()
            };
            let all: Vec<usize> = (0..spec.data.devices as usize).collect();
            let of_all: f64 = runs.iter().map(|run| uploads(run, &all)).sum();
            let joules: Vec<f64> = runs
                .iter()
                .flat_map(|run| own.iter().filter_map(|&device| run.outcome.device_energy.get(device)))
                .map(fedlink::record::Energy::total)
                .collect();
            let accuracies: Vec<f64> = runs
                .iter()
                .flat_map(|run| own.iter().filter_map(|&device| *run.outcome.device_accuracy.get(device)?))
                .collect();
            let mean = |values: &[f64]| {
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            };
            answer.groups.push(GroupFact {
                name: share.name.clone(),
                devices: share.devices,
                uploads: runs.iter().map(|run| uploads(run, &own)).sum::<f64>() / of_all.max(1.0),
                airtime: share.airtime,
                joules: mean(&joules),
                accuracy: mean(&accuracies),
            });
        }
        Ok(())
    }
}
