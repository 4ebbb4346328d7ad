//! A complete folder for an experiment with the bound or the theorem.

use crate::bound_report::{self, CurveJson};
use crate::error::Error;
use crate::figure::Figure;
use crate::file_names::file_names;
use crate::theorem_report;
use fedlink_study::claims::{Verdict, Verdicts};
use fedlink_study::output::OutputFolder;
use fedlink_study::theory::{BoundExperiment, PanelResult, TheoremExperiment, TheoremResult};
use serde::Serialize;
use std::fmt::Write;

/// The output of an experiment with the bound; [`TheoryOutput::write`] writes it to the disk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TheoryOutput {
    /// Every file but the summary, with its content.
    pub files: Vec<(String, Vec<u8>)>,
    /// `summary.json`.
    pub summary: String,
    /// The same for people.
    pub text: String,
}

impl TheoryOutput {
    /// Writes all files.
    pub fn write(&self, folder: &OutputFolder) -> Result<(), Error> {
        for (name, content) in &self.files {
            folder.write(name, content)?;
        }
        Ok(folder.write("summary.json", &self.summary)?)
    }
}

/// `summary.json` of a figure.
#[derive(Serialize)]
struct FigureJson<'a> {
    panels: Vec<PanelJson<'a>>,
    claims: &'a [Verdict],
}

#[derive(Serialize)]
struct PanelJson<'a> {
    panel: &'a str,
    title: &'a str,
    eta: String,
    curves: Vec<CurveJson<'a>>,
}

/// The output of a figure of the bound, from its panels and the verdicts on its claims.
pub fn bound_output(
    experiment: &BoundExperiment,
    panels: &[PanelResult],
    verdicts: &Verdicts,
) -> Result<TheoryOutput, Error> {
    let mut files = vec![("config.toml".to_owned(), experiment.to_toml().into())];
    let mut text = String::new();
    let names: Vec<&str> = panels.iter().map(|result| result.panel.name.as_str()).collect();
    let looks = bound_report::Looks::of(panels.iter().flat_map(|result| &result.curves));
    for (PanelResult { panel, curves, .. }, file) in panels.iter().zip(file_names(&names)) {
        let study = &panel.study;
        let subtitle = format!(
            "M = {}, n = {}, d = {}, η(t) = {}",
            study.link.devices, study.link.symbols, study.link.dim, study.rate
        );
        let chart = bound_report::chart(&panel.title, &subtitle, curves, &looks);
        files.push((format!("{file}.svg"), chart.svg().into()));
        files.push((format!("{file}.png"), chart.png()?));
        let _ = writeln!(text, "{} ({})\n\n{}", panel.title, panel.name, bound_report::table(curves));
    }
    let tables: Vec<_> =
        panels.iter().map(|result| (result.panel.name.as_str(), &result.curves[..])).collect();
    files.push(("results.csv".into(), bound_report::csv(&tables)?));
    if !verdicts.is_empty() {
        files.push(("claims.json".into(), verdicts.json()?.into()));
        text += &verdicts.text();
    }
    let json = FigureJson {
        panels: panels
            .iter()
            .map(|result| PanelJson {
                panel: &result.panel.name,
                title: &result.panel.title,
                eta: result.panel.study.rate.to_string(),
                curves: result.curves.iter().map(CurveJson::new).collect(),
            })
            .collect(),
        claims: &verdicts.claims,
    };
    Ok(TheoryOutput { files, summary: serde_json::to_string_pretty(&json)? + "\n", text })
}

/// The output of a check of the theorem.
pub fn theorem_output(
    experiment: &TheoremExperiment,
    results: &[TheoremResult],
) -> Result<TheoryOutput, Error> {
    let mut files = vec![("config.toml".to_owned(), experiment.to_toml().into())];
    let mut text = String::new();
    for result in results {
        let chart = theorem_report::chart(result);
        files.push((format!("{}.svg", result.problem), chart.svg().into()));
        files.push((format!("{}.png", result.problem), chart.png()?));
        text += &theorem_report::text(result);
    }
    files.push(("results.csv".into(), theorem_report::csv(results)?));
    Ok(TheoryOutput { files, summary: serde_json::to_string_pretty(results)? + "\n", text })
}
