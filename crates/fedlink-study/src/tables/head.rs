//! The subject of a study.

use crate::events::Head;
use crate::experiment::Sweep;
use crate::goals::Goal;
use fedlink::spec::Spec;

/// The most values that a text lists.
const FEW: usize = 3;

/// The subject of a sweep.
pub fn head(sweep: &Sweep) -> Head {
    head_of(sweep.curves.iter().map(|curve| &curve.spec), sweep.experiment.goals())
}

/// The subject of curves.
pub fn head_of<'a>(specs: impl Iterator<Item = &'a Spec>, goals: &[(String, Goal)]) -> Head {
    let mut head = Head {
        goals: goals.iter().map(|(name, goal)| (name.clone(), goal.to_string())).collect(),
        ..Head::default()
    };
    for (index, spec) in specs.enumerate() {
        if index == 0 {
            head.target = spec.run.target;
        }
        add(&mut head.data, spec.data.dataset.clone());
        add(&mut head.models, spec.learn.model.clone());
        add(&mut head.splits, spec.data.partition.clone());
        add(&mut head.devices, spec.data.devices);
        add(&mut head.rounds, spec.run.rounds);
        add(&mut head.seeds, spec.run.seeds);
    }
    head
}

fn add<T: PartialEq>(values: &mut Vec<T>, value: T) {
    if !values.contains(&value) {
        values.push(value);
    }
}

impl Head {
    /// `digits · softmax · iid · 60 devices · 200 rounds · 6 seeds`.
    pub fn text(&self) -> String {
        let names = |values: &[String]| listed(values);
        let numbers = |values: &[u64], one: &str, more: &str| {
            let noun = if values == [1] { one } else { more };
            let shown = listed(&values.iter().map(u64::to_string).collect::<Vec<String>>());
            if shown.is_empty() { shown } else { format!("{shown} {noun}") }
        };
        let parts = [
            names(&self.data),
            names(&self.models),
            names(&self.splits),
            numbers(&self.devices, "device", "devices"),
            numbers(&self.rounds, "round", "rounds"),
            numbers(&self.seeds, "seed", "seeds"),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(" · ")
    }
}

/// A few values, and the number of the others.
fn listed(values: &[String]) -> String {
    match values.len() {
        0..=FEW => values.join(", "),
        all => format!("{}, … ({all})", values[..FEW].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{change, curve_of};

    #[test]
    fn the_text_names_every_distinct_value_once_and_counts_many() {
        let mut curve = curve_of("bc", &[&[0.5]]);
        change(&mut curve, |config| (config.run.rounds, config.run.seeds) = (50, 1));
        let specs: Vec<Spec> = (1..=4)
            .map(|devices| {
                change(&mut curve, |config| (config.data.devices, config.schedule.k) = (10 * devices, 1));
                curve.spec.clone()
            })
            .collect();
        let text = head_of(specs.iter(), &[]).text();
        assert!(text.ends_with("· 10, 20, 30, … (4) devices · 50 rounds · 1 seed"), "{text}");
        assert!(text.starts_with(&specs[0].data.dataset), "{text}");
    }
}
