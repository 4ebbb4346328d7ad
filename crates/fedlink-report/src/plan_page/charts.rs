//! The charts of the page of a plan.

use crate::chart::{Bars, Curve, HeatMap, Lines, Look, Quantity};
use fedlink_study::plan::{Answer, CandidateRow, Cost, CurveFact};

/// The gray of settings that are no finalists.
const OTHERS: Look = Look { color: 6, dash: 0, marker: Some(0) };

fn label(goal: &str) -> String {
    let cost = goal.split(' ').next().unwrap_or("cost");
    format!("{cost} until the goal")
}

/// The costs of two goals: the finalists with their intervals as crosses, the others of the race as points.
/// None for one goal, and where no finalist reaches both.
pub fn pareto_chart(answer: &Answer) -> Option<Lines> {
    let [first, second, ..] = &answer.goals[..] else { return None };
    let is_known = |cost: &Cost| cost.median.value.is_some();
    if !answer.finalists.iter().any(|priced| priced.costs.iter().all(is_known)) {
        return None;
    }
    let finalist = |label: &String| answer.finalists.iter().any(|priced| priced.label == *label);
    let value = |cost: &Cost| cost.median.value.unwrap_or(f64::NAN);
    let both = |row: &CandidateRow| match &row.costs[..] {
        [Some(x), Some(y), ..] => Some((value(x), value(y))),
        _ => None,
    };
    // Every point by itself: a point between two gaps has a marker and no line.
    let gap = (f64::NAN, f64::NAN);
    let others: Vec<(f64, f64)> = answer
        .candidates
        .iter()
        .filter(|row| !finalist(&row.label))
        .filter_map(both)
        .flat_map(|point| [point, gap])
        .collect();
    let mut curves: Vec<Curve> = Vec::new();
    for (i, priced) in answer.finalists.iter().enumerate() {
        let [x, y, ..] = &priced.costs[..] else { continue };
        let (x0, y0) = (value(x), value(y));
        let mut points = vec![(x0, y0)];
        for (low, high, across) in [(x.median.low, x.median.high, true), (y.median.low, y.median.high, false)]
        {
            if let (Some(low), Some(high)) = (low, high) {
                points.push(gap);
                points.extend(if across { [(low, y0), (high, y0)] } else { [(x0, low), (x0, high)] });
            }
        }
        curves.push(Curve {
            label: priced.label.clone(),
            look: Some(Look::new(i, 0, i)),
            points,
            ..Curve::default()
        });
    }
    curves.push(Curve {
        label: "other settings (seeds of the race)".into(),
        look: Some(OTHERS),
        points: others,
        ..Curve::default()
    });
    let (x, y) = (Quantity::plain(label(first)).margin(0.05), Quantity::plain(label(second)).margin(0.05));
    Some(Lines::new("", &x, &y, curves))
}

/// Mean accuracy of the finalists by the cost of the first goal.
pub fn accuracy_chart(answer: &Answer) -> Lines {
    let curve = |(i, own): (usize, &CurveFact)| Curve {
        label: own.label.clone(),
        look: Some(Look::new(i, i, i)),
        points: own.cost.iter().copied().zip(own.accuracy.iter().copied()).collect(),
        ..Curve::default()
    };
    let cost = answer.goals.first().and_then(|goal| goal.split(' ').next()).unwrap_or("cost").to_owned();
    let curves = answer.curves.iter().enumerate().map(curve).collect();
    Lines::new("", &Quantity::plain(cost).from_zero(), &Quantity::share("mean accuracy"), curves)
}

/// The accuracy of the worst class of the finalists; none if it was not recorded.
pub fn worst_class_chart(answer: &Answer) -> Option<Lines> {
    let curve = |(i, own): (usize, &CurveFact)| Curve {
        label: own.label.clone(),
        look: Some(Look::new(i, i, i)),
        points: own.cost.iter().copied().zip(own.worst_class.iter().copied()).collect(),
        ..Curve::default()
    };
    let curves: Vec<Curve> = answer.curves.iter().enumerate().map(curve).collect();
    let cost = answer.goals.first().and_then(|goal| goal.split(' ').next()).unwrap_or("cost").to_owned();
    let is_there = curves.iter().any(|curve| !curve.points.is_empty());
    let y = Quantity::share("mean accuracy of the worst class");
    is_there.then(|| Lines::new("", &Quantity::plain(cost).from_zero(), &y, curves))
}

/// The relative cost of the values of each key; a chart for each key.
pub fn worth_chart(answer: &Answer) -> Vec<(String, Bars)> {
    let mut keys: Vec<&String> = answer.knobs.iter().map(|fact| &fact.key).collect();
    keys.dedup();
    keys.iter()
        .map(|key| {
            let own = answer.knobs.iter().filter(|fact| fact.key == **key);
            let bars: Vec<(String, f64)> =
                own.map(|fact| (fact.value.clone(), fact.ratio.unwrap_or(f64::NAN))).collect();
            let chart = Bars::whole("", key, "cost, relative", &bars, Some(("recommended".into(), 1.0)));
            ((*key).clone(), chart)
        })
        .collect()
}

/// The geometric mean of the best costs over two keys of numbers, such as K and τ; none if there are not two,
/// or no costs.
pub fn map_chart(answer: &Answer) -> Option<HeatMap> {
    let ordered: Vec<(&String, &Vec<serde_json::Value>)> = answer
        .searched
        .iter()
        .filter(|(_, values)| values.len() > 1 && values.iter().all(serde_json::Value::is_number))
        .collect();
    let k = ordered.iter().position(|(key, _)| *key == "schedule.k").unwrap_or(0);
    let x = ordered.get(k)?;
    let y = ordered.iter().enumerate().find(|(i, _)| *i != k).map(|(_, axis)| axis)?;
    let best = |across: &serde_json::Value, up: &serde_json::Value| {
        let is_here =
            |row: &&CandidateRow| row.settings.get(x.0) == Some(across) && row.settings.get(y.0) == Some(up);
        let cost = |row: &CandidateRow| row.costs.first()?.as_ref()?.median.value;
        answer.candidates.iter().filter(is_here).filter_map(cost).reduce(f64::min).unwrap_or(f64::NAN)
    };
    let rows: Vec<Vec<f64>> =
        y.1.iter().rev().map(|up| x.1.iter().map(|across| best(across, up)).collect()).collect();
    if rows.iter().flatten().all(|cost| cost.is_nan()) {
        return None;
    }
    let names =
        |values: &mut dyn Iterator<Item = &serde_json::Value>| values.map(ToString::to_string).collect();
    let cost = answer.goals.first().and_then(|goal| goal.split(' ').next()).unwrap_or("cost");
    let scale = Quantity::plain(format!("least {cost} on the seeds of the race (dark is better)"));
    Some(
        HeatMap::new("", (x.0, y.0), &scale, &rows)
            .with_names(names(&mut x.1.iter()), names(&mut y.1.iter().rev())),
    )
}
