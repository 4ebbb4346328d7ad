//! `fedlink bound`: the convergence bound for any parameters.

use crate::args::bound::BoundOptions;
use crate::bound_report::{self, CurveJson};
use crate::failure::Exit;
use crate::figure::Figure;
use crate::output::OutputFolder;
use anyhow::{Context, anyhow};
use fedlink::theory::TheoryError;
use fedlink::theory::bound::BoundParameters;
use fedlink::theory::experiment::EXPECTATION_SAMPLES;
use fedlink::theory::rate::Rate;
use fedlink::theory::rho::LinkParameters;
use fedlink::theory::study::{Mode, Study, StudyCurve};
use serde::Serialize;
use std::path::Path;

/// `bound.json`.
#[derive(Serialize)]
struct BoundJson<'a> {
    link: LinkParameters,
    eta: String,
    rounds: usize,
    mode: Mode,
    seed: u64,
    curves: Vec<CurveJson<'a>>,
}

pub fn run(options: &BoundOptions) -> anyhow::Result<Exit> {
    let study = study(options)?;
    study.check().map_err(|error| flagged(&error))?;
    let folder = options.out.as_deref().map(|path| OutputFolder::create(path, options.force)).transpose()?;
    let curves = study.run().map_err(|error| flagged(&error))?;
    let json = json(&study, &curves)?;
    let place = match folder {
        Some(folder) => {
            let title = format!("Loss bound for Γ = {}, G = {}", options.gamma, options.g);
            let subtitle = format!("M = {}, n = {}, d = {}", options.devices, options.symbols, options.dim);
            let chart = bound_report::chart(&title, &subtitle, &curves);
            folder.write("bound.svg", chart.svg())?;
            folder.write("bound.png", chart.png()?)?;
            folder.write("bound.csv", bound_report::csv(&[("bound", &curves)])?)?;
            folder.write("bound.json", &json)?;
            Some(folder.finish()?)
        }
        None => None,
    };
    if options.json {
        print!("{json}");
        return Ok(Exit::Done);
    }
    println!("Bound on E[F] − F* after {} rounds, and where it comes from:\n", study.rounds);
    print!("{}", bound_report::table(&curves));
    println!(
        "floor: what the bound tends to if η falls to 0 slowly; within 10 %: the first round that near to it"
    );
    if let Some(place) = place {
        println!("\n{}\n  bound.svg  bound.png  bound.csv  bound.json", place.display());
    }
    Ok(Exit::Done)
}

fn study(options: &BoundOptions) -> anyhow::Result<Study> {
    let link = LinkParameters {
        devices: options.devices,
        dim: options.dim,
        symbols: options.symbols,
        power: options.power,
        noise: options.noise,
        choice: options.channels,
        ..LinkParameters::default()
    };
    let problem = BoundParameters {
        devices: options.devices,
        k: 1,
        tau: 1,
        mu: options.mu,
        l: options.l,
        g: options.g,
        gamma: options.gamma,
        distance0: options.d0,
    };
    let mode = if options.expectation {
        Mode::Expectation { samples: EXPECTATION_SAMPLES }
    } else {
        Mode::Draws(options.draws)
    };
    Ok(Study {
        problem,
        link,
        rate: rate(&options.eta)?,
        ks: options.k.clone(),
        taus: options.tau.clone(),
        rounds: options.rounds as usize,
        mode,
        seed: options.seed,
    })
}

fn json(study: &Study, curves: &[StudyCurve]) -> anyhow::Result<String> {
    let json = BoundJson {
        link: study.link,
        eta: study.rate.to_string(),
        rounds: study.rounds,
        mode: study.mode,
        seed: study.seed,
        curves: curves.iter().map(CurveJson::new).collect(),
    };
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}

/// A rate as `--eta` says it: `@file` or the name of a file is a table, anything else is what the library reads.
pub fn rate(text: &str) -> anyhow::Result<Rate> {
    let file = match text.strip_prefix('@') {
        Some(file) => Some(Path::new(file)),
        None => Some(Path::new(text)).filter(|path| path.is_file()),
    };
    let Some(file) = file else { return text.parse().map_err(|error| flagged(&error)) };
    let content =
        std::fs::read_to_string(file).with_context(|| format!("--eta: cannot read {}", file.display()))?;
    let words = content.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let value = |(i, word): (usize, &str)| {
        let problem = || anyhow!("--eta: value {} of {} is {word:?}, not a number", i + 1, file.display());
        word.parse::<f64>().map_err(|_| problem())
    };
    Ok(Rate::Table(words.enumerate().map(value).collect::<anyhow::Result<_>>()?))
}

/// The error with the flag that sets what is at fault.
pub fn flagged(error: &TheoryError) -> anyhow::Error {
    let message = error.to_string();
    let flag = |name: &str| match name {
        "distance0" => Some("d0".to_owned()),
        "rate" => Some("eta".to_owned()),
        "k and tau" => Some("k, --tau".to_owned()),
        "k" | "tau" | "gamma" | "g" | "mu" | "l" | "devices" | "symbols" | "dim" | "power" | "noise"
        | "rounds" | "draws" | "samples" | "target" | "lambda" => Some(name.to_owned()),
        _ => None,
    };
    match message.split_once(": ").and_then(|(name, rest)| Some((flag(name)?, rest))) {
        Some((flag, rest)) => anyhow!("--{flag}: {rest}"),
        None => anyhow!(message),
    }
}
