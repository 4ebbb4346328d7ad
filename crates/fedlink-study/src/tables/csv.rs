//! `results.csv`: a row for each evaluated round of each run.

use super::results::CurveResult;
use crate::claims::CurveKeys;
use crate::error::Error;
use fedlink::record::{Column, ROW_COLUMNS, Row};
use fedlink::spec::ScheduleConfig;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The swept keys that have a column of their own in `results.csv`: all but policy and K,
/// which are always there.
pub fn swept_columns(results: &[CurveResult]) -> Vec<&str> {
    let keys = distinct_keys(results.iter().map(|curve| &curve.keys));
    keys.into_iter().filter(|key| !["schedule.policy", "schedule.k"].contains(key)).collect()
}

/// Every key of any curve, once: a curve lacks the keys of parts that it does not choose.
pub fn distinct_keys<'a>(curves: impl Iterator<Item = &'a CurveKeys>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    curves.flatten().map(|(key, _)| key.as_str()).filter(|key| seen.insert(*key)).collect()
}

/// The columns of a row in `results.csv`: those of seconds and joules only where some run has them, those of
/// losses only where some run has units or losses, that of reports only where they cost symbols.
pub fn row_columns(results: &[CurveResult]) -> Vec<&'static Column<Row>> {
    let rows = || results.iter().flat_map(|curve| &curve.runs).flat_map(|run| &run.rows);
    let units = rows().any(|row| row.total_seconds.is_some());
    let batteries = rows().any(|row| row.empty.is_some());
    let losses = rows().any(|row| row.outages + row.late > 0);
    let is_there = |column: &&Column<Row>| match (column.unit, column.name) {
        ("s" | "J", _) => units,
        (_, "outages" | "late") => units || losses,
        (_, "empty") => batteries,
        (_, "report_symbols") => rows().any(|row| row.report_symbols > 0.0),
        _ => true,
    };
    ROW_COLUMNS.iter().filter(is_there).collect()
}

/// `results.csv`: a row for each evaluated round of each run.
pub fn csv(results: &[CurveResult]) -> Result<Vec<u8>, Error> {
    let swept = swept_columns(results);
    let metrics = metric_columns(results);
    let columns = row_columns(results);
    let names = columns.iter().map(|column| column.name);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let before = ["curve", "policy", "k"].into_iter().chain(swept.iter().copied()).chain(["seed"]);
    let metric_names: Vec<_> = metrics.iter().map(|name| guarded(name)).collect();
    writer.write_record(before.chain(names).chain(metric_names.iter().map(AsRef::as_ref)))?;
    for curve in results {
        let ScheduleConfig { policy, k, .. } = &curve.spec.schedule;
        let k = k.to_string();
        for run in &curve.runs {
            let seed = run.seed.to_string();
            for row in &run.rows {
                let swept = swept.iter().map(|key| curve.swept(key));
                let before =
                    [curve.label.as_str(), policy, &k].into_iter().chain(swept).chain([seed.as_str()]);
                let values = columns.iter().map(|column| (column.value)(row).text());
                let metric = |name: &String| {
                    let found = row.metrics.iter().find(|(known, _)| known == name);
                    found.map_or_else(String::new, |(_, value)| value.to_string())
                };
                let values = before
                    .map(|text| guarded(text).into_owned())
                    .chain(values)
                    .chain(metrics.iter().map(metric));
                writer.write_record(values)?;
            }
        }
    }
    writer.into_inner().map_err(|error| Error::Table(error.to_string()))
}

/// A text as a field of a table. A spreadsheet would evaluate a text that begins like a formula, so an
/// apostrophe precedes it; numbers do not change.
pub fn guarded(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) && text.parse::<f64>().is_err();
    if is_formula { format!("'{text}").into() } else { text.into() }
}

/// The names of further metrics that tasks measured, in the order in which they first appear.
pub fn metric_columns(results: &[CurveResult]) -> Vec<String> {
    let rows = results.iter().flat_map(|curve| &curve.runs).flat_map(|run| &run.rows);
    let mut names: Vec<String> = Vec::new();
    for (name, _) in rows.flat_map(|row| &row.metrics) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_of_a_table_is_a_formula() {
        for text in ["=1+1", "+x", "-x", "@sum", "\t=1", "\r=1", "\n=1"] {
            assert_eq!(guarded(text), format!("'{text}"));
        }
        for text in ["", "bc", "k=1", "-0.5", "+3", "-1e-3", "1", "'=1"] {
            assert_eq!(guarded(text), text);
        }
    }
}
