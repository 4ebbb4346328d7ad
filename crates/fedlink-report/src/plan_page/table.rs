//! The candidates as columns.

use crate::parquet::Column;
use fedlink_study::plan::{Answer, CandidateRow, Cost};
use serde_json::Value;

/// A row for each candidate: settings, fate, link budget, and the costs on the seeds of the race.
pub fn candidate_columns(answer: &Answer) -> Vec<Column> {
    let rows = &answer.candidates;
    let text = |name: &str, of: &dyn Fn(&CandidateRow) -> String| {
        Column::Text(name.into(), rows.iter().map(of).collect())
    };
    let real = |name: &str, of: &dyn Fn(&CandidateRow) -> Option<f64>| {
        Column::Real(name.into(), rows.iter().map(|row| of(row).unwrap_or(f64::NAN)).collect())
    };
    let whole = |name: &str, of: &dyn Fn(&CandidateRow) -> i64| {
        Column::Whole(name.into(), rows.iter().map(of).collect())
    };
    let mut columns = vec![text("candidate", &|row| row.label.clone())];
    let tuned =
        ["learn.rate", "learn.server_rate"].into_iter().filter(|key| !answer.searched.contains_key(*key));
    for key in answer.searched.keys().map(String::as_str).chain(tuned) {
        let value = |row: &CandidateRow| row.settings.get(key).cloned().unwrap_or(Value::Null);
        let is_number = rows.iter().all(|row| value(row).is_number() || value(row).is_null());
        columns.push(if is_number {
            real(key, &|row| value(row).as_f64())
        } else {
            text(key, &|row| value(row).as_str().map_or_else(|| value(row).to_string(), str::to_owned))
        });
    }
    columns.push(text("stage", &|row| row.stage.clone()));
    columns.push(text("reason", &|row| row.reason.clone()));
    columns.push(text("proven", &|row| row.proven.to_string()));
    columns.push(whole("seeds", &|row| row.seeds as i64));
    columns.push(whole("rounds", &|row| i64::try_from(row.rounds).unwrap_or(i64::MAX)));
    for (goal, name) in answer.goals.iter().enumerate() {
        let name = name.split(' ').next().unwrap_or("cost");
        let cost =
            |row: &CandidateRow, of: fn(&Cost) -> Option<f64>| row.costs.get(goal)?.as_ref().and_then(of);
        columns.push(real(&format!("{name}_median"), &|row| cost(row, |cost| cost.median.value)));
        columns.push(real(&format!("{name}_low"), &|row| cost(row, |cost| cost.median.low)));
        columns.push(real(&format!("{name}_high"), &|row| cost(row, |cost| cost.median.high)));
        columns.push(real(&format!("{name}_reached"), &|row| {
            cost(row, |cost| Some(cost.median.reached as f64))
        }));
    }
    columns.push(real("accuracy", &|row| row.accuracy));
    columns.push(real("worst_class", &|row| row.worst_class));
    columns.push(real("late", &|row| Some(row.screened.late)));
    columns.push(real("silent", &|row| Some(row.screened.silent)));
    columns.push(real("lost", &|row| Some(row.screened.lost)));
    columns.push(real("round_s", &|row| row.screened.round_s));
    columns.push(real("round_j", &|row| row.screened.round_j));
    columns.push(real("battery_rounds", &|row| row.screened.battery_rounds));
    columns
}
