//! `fedlink bound`: the convergence bound for any parameters.

use super::{check_free, filled};
use crate::args::bound::BoundOptions;
use crate::failure::Exit;
use anyhow::{Context, anyhow, bail};
use fedlink::base::files;
use fedlink_report::bound_report::{self, CurveJson, Looks};
use fedlink_report::figure::Figure;
use fedlink_study::theory::EXPECTATION_SAMPLES;
use fedlink_theory::bound::BoundParameters;
use fedlink_theory::rate::Rate;
use fedlink_theory::rho::LinkParameters;
use fedlink_theory::study::{Mode, Study, StudyCurve};
use fedlink_theory::{MAX_ROUNDS, TheoryError};
use serde::Serialize;
use std::path::Path;

/// The most bytes of a table of rates or of ρ.
const MAX_TABLE_BYTES: u64 = 256 << 20;

/// `bound.json`.
#[derive(Serialize)]
struct BoundJson<'a> {
    link: LinkParameters,
    eta: String,
    rounds: usize,
    mode: &'a Mode,
    seed: u64,
    curves: Vec<CurveJson<'a>>,
}

pub fn run(options: &BoundOptions) -> anyhow::Result<Exit> {
    let study = study(options)?;
    study.check().map_err(|error| flagged(&error))?;
    options.out.as_deref().map_or(Ok(()), |out| check_free(out, options.force))?;
    let curves = study.run().map_err(|error| flagged(&error))?;
    let json = json(&study, &curves)?;
    let written = match &options.out {
        Some(out) => Some(filled(out, options.force, |folder| {
            let title = format!("Loss bound for Γ = {}, G = {}", options.gamma, options.g);
            let link = format!("M = {}, n = {}, d = {}", options.devices, options.symbols, options.dim);
            let subtitle = match &options.rho {
                Some(rho) => format!("M = {}, ρ = {rho}", options.devices),
                None => link,
            };
            let chart = bound_report::chart(&title, &subtitle, &curves, &Looks::of(&curves));
            folder.write("bound.svg", chart.svg())?;
            folder.write("bound.png", chart.png()?)?;
            folder.write("bound.csv", bound_report::csv(&[("bound", &curves)])?)?;
            folder.write("bound.json", &json)?;
            Ok(())
        })?),
        None => None,
    };
    if options.json {
        out!("{json}")?;
        return Ok(Exit::Done);
    }
    outln!("Bound on E[F] − F* after {} rounds, and where it comes from:\n", study.rounds)?;
    out!("{}", bound_report::table(&curves))?;
    outln!(
        "floor: the limit of the bound if η falls to 0 slowly; within 10 %: the first round within 10 % of it"
    )?;
    if let Some(written) = written {
        outln!("\n{}\n  bound.svg  bound.png  bound.csv  bound.json", written.display())?;
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
    let mode = match &options.rho {
        Some(rho) => Mode::Given(given_rho(rho, options.rounds as usize)?),
        None if options.expectation => Mode::Expectation { samples: EXPECTATION_SAMPLES },
        None => Mode::Draws(options.draws),
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
        mode: &study.mode,
        seed: study.seed,
        curves: curves.iter().map(CurveJson::new).collect(),
    };
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}

/// The rate of `--eta`: `@file` or a path is a table; the library parses any other text.
pub fn rate(text: &str) -> anyhow::Result<Rate> {
    if let Some(file) = text.strip_prefix('@') {
        return table("--eta", Path::new(file)).map(Rate::Table);
    }
    text.parse().or_else(|error| match Path::new(text) {
        file if file.is_file() => table("--eta", file).map(Rate::Table),
        _ => Err(flagged(&error)),
    })
}

/// ρ(t) as `--rho` gives it: a number for all rounds, or `@file`.
fn given_rho(text: &str, rounds: usize) -> anyhow::Result<Vec<f64>> {
    if let Some(file) = text.strip_prefix('@') {
        let mut values = table("--rho", Path::new(file))?;
        values.truncate(rounds);
        return Ok(values);
    }
    let value: f64 =
        text.parse().map_err(|_| anyhow!("--rho: {text:?} is neither a number in 0..=1 nor @FILE"))?;
    if rounds > MAX_ROUNDS {
        bail!("--rounds: is {rounds}, but must be in 1..={MAX_ROUNDS}");
    }
    Ok(vec![value; rounds])
}

/// The numbers in a file.
fn table(flag: &str, file: &Path) -> anyhow::Result<Vec<f64>> {
    let cannot = || format!("{flag}: cannot read {}", file.display());
    let content = files::read_text(file, MAX_TABLE_BYTES).with_context(cannot)?;
    let words = content.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let value = |(i, word): (usize, &str)| {
        let word_shown: String = word.chars().take(40).collect();
        let problem =
            || anyhow!("{flag}: value {} of {} is {word_shown:?}, not a number", i + 1, file.display());
        word.parse::<f64>().map_err(|_| problem())
    };
    words.enumerate().map(value).collect()
}

/// The error with the flag of the faulty value.
pub fn flagged(error: &TheoryError) -> anyhow::Error {
    let message = error.to_string();
    let flag = |name: &str| match name {
        "distance0" => Some("d0".to_owned()),
        "rate" => Some("eta".to_owned()),
        "k and tau" => Some("k, --tau".to_owned()),
        "k" | "tau" | "gamma" | "g" | "mu" | "l" | "devices" | "symbols" | "dim" | "power" | "noise"
        | "rounds" | "draws" | "rho" | "samples" | "target" | "lambda" => Some(name.to_owned()),
        _ => None,
    };
    match message.split_once(": ").and_then(|(name, rest)| Some((flag(name)?, rest))) {
        Some((flag, rest)) => anyhow!("--{flag}: {rest}"),
        None => anyhow!(message),
    }
}
