//! The recommended settings under other assumptions.

use super::answer::{Answer, Cost, SensitivityFact, json};
use super::insight::{Insight, compare};
use super::screen::screen;
use super::vary::changes;
use crate::error::Error;
use crate::events::Event;
use crate::goals::Reading;
use crate::race::{Arm, Bench};
use fedlink::spec::Spec;
use std::ops::Range;

impl Insight<'_, '_> {
    /// Runs the best settings under other assumptions. False if the user stops.
    pub fn vary(&mut self, answer: &mut Answer, best: Arm, seeds: Range<u64>) -> Result<bool, Error> {
        let settings = self.bench.settings(best)?;
        let spec = self.bench.resolve(&settings)?;
        let changes = changes(&spec);
        let text = format!(
            "{} changes of the scenario, {} fresh seeds each",
            changes.len(),
            seeds.end - seeds.start
        );
        self.bench.begin("vary", &text, changes.len())?;
        let until = self.request.goals[0].clone();
        let own: Vec<Reading> =
            self.readings(best, &until)?.into_iter().take((seeds.end - seeds.start) as usize).collect();
        let mut wanted = Vec::new();
        let mut facts: Vec<(SensitivityFact, Option<Spec>)> = Vec::new();
        for change in changes {
            let mut with = settings.clone();
            with.extend(change.settings.iter().cloned());
            let mut fact = SensitivityFact {
                change: change.text.clone(),
                settings: json(&change.settings),
                cost: None,
                ratio: None,
                low: None,
                high: None,
                late: 0.0,
                problem: None,
            };
            let screened = self.bench.resolve(&with).map_err(Error::from).and_then(|spec| {
                let tools = &self.bench.tools;
                let judged = screen(&spec, tools.parts, tools.folders, self.request, 0)?;
                // Twice the devices may need more data than there are.
                self.bench.check(&spec)?;
                Ok((spec, judged))
            });
            match screened {
                Ok((spec, judged)) if judged.kind != Some("refused") => {
                    fact.late = judged.late;
                    for seed in seeds.clone() {
                        wanted.push((format!("{} seed {seed}", change.text), spec.with_seed(seed)));
                    }
                    facts.push((fact, Some(spec)));
                }
                Ok((_, judged)) => facts.push((SensitivityFact { problem: judged.out, ..fact }, None)),
                Err(error) => {
                    facts.push((SensitivityFact { problem: Some(error.to_string()), ..fact }, None));
                }
            }
        }
        let Some(results) = self.bench.run_all(&wanted, false)? else { return Ok(false) };
        let mut results = results.into_iter();
        for (mut fact, spec) in facts {
            if let Some(spec) = spec {
                let readings: Vec<Reading> = seeds
                    .clone()
                    .filter_map(|_| results.next())
                    .map(|run| self.bench.read(&run, &spec, &until))
                    .collect();
                fact.cost = Cost::of(&until, &readings);
                let ratio = compare(&readings, &own).and_then(|all| all.ratio);
                (fact.ratio, fact.low, fact.high) =
                    (ratio.map(|r| r.mean), ratio.and_then(|r| r.low), ratio.and_then(|r| r.high));
                let reason = fact.cost.as_ref().map_or_else(String::new, |cost| cost.text.clone());
                self.bench.write(Event::Decided {
                    stage: "vary".into(),
                    candidate: fact.change.clone(),
                    reason,
                })?;
            }
            answer.sensitivities.push(fact);
        }
        Ok(true)
    }
}
