//! `fedlink run` for experiments with the bound: files with a section `[bound]` or `[theorem]`.

use super::data::folders;
use super::settings;
use crate::args::RunOptions;
use crate::bound_report::{self, CurveJson};
use crate::failure::Exit;
use crate::figure::Figure;
use crate::output::{OutputFolder, check_free};
use crate::theorem_report;
use anyhow::{Context, anyhow, bail};
use fedlink_study::experiment::{
    BoundExperiment, ClaimResult, PanelResult, TheoremExperiment, TheoremResult, Verdict,
};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// An experiment with the bound.
enum Found {
    Bound(BoundExperiment),
    Theorem(Box<TheoremExperiment>),
}

/// The experiment called `name` with the settings of the command line, if it is one with the bound.
fn find(name: &str, all: &[String]) -> anyhow::Result<Option<Found>> {
    let path = Path::new(name);
    let stem = || path.file_stem().map_or_else(|| name.into(), |stem| stem.to_string_lossy().into_owned());
    let mut found = if let Some(preset) = BoundExperiment::preset(name) {
        Found::Bound(preset)
    } else if let Some(preset) = TheoremExperiment::preset(name) {
        Found::Theorem(Box::new(preset))
    } else {
        // What cannot be read is told by the one who reads every experiment.
        let Ok(text) = std::fs::read_to_string(path) else { return Ok(None) };
        if BoundExperiment::is_one(&text) {
            let mut experiment = BoundExperiment::parse(name, &text)?;
            experiment.name = stem();
            Found::Bound(experiment)
        } else if TheoremExperiment::is_one(&text) {
            let mut experiment = TheoremExperiment::parse(name, &text)?;
            experiment.name = stem();
            Found::Theorem(Box::new(experiment))
        } else {
            return Ok(None);
        }
    };
    for (setting, key, value) in settings(all)? {
        let set = match &mut found {
            Found::Bound(experiment) => experiment.set(key, value),
            Found::Theorem(experiment) => experiment.set(key, value),
        };
        set.with_context(|| format!("--set {setting}"))?;
    }
    Ok(Some(found))
}

/// The file of the experiment called `name`, if it is one with the bound.
pub fn file(name: &str, all: &[String]) -> anyhow::Result<Option<String>> {
    Ok(find(name, all)?.map(|found| match found {
        Found::Bound(experiment) => experiment.to_toml().to_owned(),
        Found::Theorem(experiment) => experiment.to_toml().to_owned(),
    }))
}

/// Runs the experiment if it is one with the bound; else there is nothing.
pub fn run(options: &RunOptions) -> anyhow::Result<Option<Exit>> {
    let started = Instant::now();
    let Some(name) = options.experiment.as_deref() else { return Ok(None) };
    let Some(mut found) = find(name, &options.settings)? else { return Ok(None) };
    if let Some(flag) = pointless(options) {
        bail!("{flag} is for simulations; {name} is computed in one go, so leave it out");
    }
    if let Some(seeds) = options.seeds {
        let seeds = seeds.to_string();
        match &mut found {
            Found::Bound(experiment) => experiment.set("bound.draws", &seeds)?,
            Found::Theorem(experiment) => experiment.set_seeds(&seeds)?,
        }
    }
    let name = match &found {
        Found::Bound(experiment) => &experiment.name,
        Found::Theorem(experiment) => &experiment.name,
    };
    let target = options.out.clone().unwrap_or_else(|| OutputFolder::free_name(Path::new("results"), name));
    check_free(&target, options.force)?;
    let threads = options.threads.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let output = match &found {
        Found::Bound(experiment) => bound(experiment, &pool)?,
        Found::Theorem(experiment) => {
            let data = folders(options.data_dir.as_deref());
            theorem(experiment, &pool.install(|| experiment.run(&data))?)?
        }
    };
    // All is computed: what goes wrong before this leaves nothing behind.
    let folder = OutputFolder::create(&target, options.force)?;
    for (name, content) in &output.files {
        folder.write(name, content)?;
    }
    folder.write("summary.json", &output.summary)?;
    let place = folder.finish()?;
    if options.json {
        print!("{}", output.summary);
    } else if !options.quiet {
        print!("{}", output.text);
        println!("\n{} in {:.1} s", place.display(), started.elapsed().as_secs_f64());
    }
    Ok(Some(Exit::Done))
}

/// The first flag given that means nothing here.
fn pointless(options: &RunOptions) -> Option<&'static str> {
    let flags = [
        ("--resume", options.resume),
        ("--cell", options.cell.is_some()),
        ("--dry-run", options.dry_run),
        ("--quick", options.quick),
        ("--checkpoint-every", options.checkpoint_every.is_some()),
        ("--log-rounds", options.log_rounds),
        ("--latex", options.latex),
    ];
    flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
}

/// What an experiment leaves.
struct Output {
    files: Vec<(String, Vec<u8>)>,
    /// `summary.json`.
    summary: String,
    /// What to print.
    text: String,
}

/// `summary.json` of a figure.
#[derive(Serialize)]
struct FigureJson<'a> {
    panels: Vec<PanelJson<'a>>,
    claims: &'a [ClaimResult],
}

#[derive(Serialize)]
struct PanelJson<'a> {
    panel: &'a str,
    title: &'a str,
    eta: String,
    curves: Vec<CurveJson<'a>>,
}

/// Computes a figure.
fn bound(experiment: &BoundExperiment, pool: &rayon::ThreadPool) -> anyhow::Result<Output> {
    let (panels, claims) =
        pool.install(|| experiment.run()).map_err(|error| anyhow!("{}: {error}", experiment.name))?;
    let mut files = vec![("config.toml".to_owned(), experiment.to_toml().into())];
    let mut text = String::new();
    for PanelResult { panel, curves } in &panels {
        let study = &panel.study;
        let subtitle = format!(
            "M = {}, n = {}, d = {}, η(t) = {}",
            study.link.devices, study.link.symbols, study.link.dim, study.rate
        );
        let chart = bound_report::chart(&panel.title, &subtitle, curves);
        files.push((format!("{}.svg", panel.name), chart.svg().into()));
        files.push((format!("{}.png", panel.name), chart.png()?));
        let _ = writeln!(text, "{} ({})\n\n{}", panel.title, panel.name, bound_report::table(curves));
    }
    let tables: Vec<_> =
        panels.iter().map(|result| (result.panel.name.as_str(), &result.curves[..])).collect();
    files.push(("results.csv".into(), bound_report::csv(&tables)?));
    files.push(("claims.csv".into(), bound_report::claims_csv(&claims)?));
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    if !claims.is_empty() {
        let _ = write!(
            text,
            "Claims: {} hold, {} do not, {} undecided\n\n{}",
            count(Verdict::Holds),
            count(Verdict::DoesNotHold),
            count(Verdict::Undecided),
            bound_report::claims(&claims)
        );
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
        claims: &claims,
    };
    Ok(Output { files, summary: serde_json::to_string_pretty(&json)? + "\n", text })
}

/// Tells of a check of the theorem.
fn theorem(experiment: &TheoremExperiment, results: &[TheoremResult]) -> anyhow::Result<Output> {
    let mut files = vec![("config.toml".to_owned(), experiment.to_toml().into())];
    let mut text = String::new();
    for result in results {
        let chart = theorem_report::chart(result);
        files.push((format!("{}.svg", result.problem), chart.svg().into()));
        files.push((format!("{}.png", result.problem), chart.png()?));
        text += &theorem_report::text(result);
    }
    files.push(("results.csv".into(), theorem_report::csv(results)?));
    Ok(Output { files, summary: serde_json::to_string_pretty(results)? + "\n", text })
}
