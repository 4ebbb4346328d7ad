//! `fedlink bound plan`: the best K and τ for a deployment, by the convergence bound.

use super::bound::{flagged, rate};
use super::{check_free, experiment, filled};
use crate::args::bound::BoundPlanOptions;
use crate::failure::Exit;
use anyhow::Context;
use fedlink::spec::Spec;
use fedlink_report::bound_report::{self, number};
use fedlink_report::chart::{Curve, HeatMap, Lines, Quantity};
use fedlink_report::figure::Figure;
use fedlink_study::data_folders;
use fedlink_study::link_budget::{DeviceLink, LinkBudgetOptions, link_budget};
use fedlink_study::output::OutputFolder;
use fedlink_theory::TheoryError;
use fedlink_theory::bound::{BoundParameters, Parts};
use fedlink_theory::measure::{MeasureOptions, Measured, SoftmaxProblem};
use fedlink_theory::plan::{Averaging, BestAt, Goal, GridPlan, PlanRequest, Planner, Sensitivity};
use fedlink_theory::rho::LinkParameters;
use fedlink_theory::study::{Mode, Study};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// The horizons for which one K and τ are best.
#[derive(Clone, Copy, Debug, Serialize)]
struct Horizons {
    from: usize,
    to: usize,
    k: u64,
    tau: u64,
    /// The bound at the last horizon.
    loss: f64,
}

/// The measured constants, and the classes of their problem.
struct Measurement {
    constants: Measured,
    classes: usize,
}

/// `plan.json`.
#[derive(Serialize)]
struct PlanJson<'a> {
    problem: BoundParameters,
    link: LinkParameters,
    eta: String,
    rounds: usize,
    goal: Goal,
    measured: Option<&'a Measured>,
    best: fedlink_theory::plan::GridPoint,
    shares: Parts,
    floor: f64,
    horizons: &'a [Horizons],
    sensitivity: &'a Sensitivity,
    points: &'a [fedlink_theory::plan::GridPoint],
}

pub fn run(options: &BoundPlanOptions) -> anyhow::Result<Exit> {
    options.out.as_deref().map_or(Ok(()), |out| check_free(out, options.force))?;
    let (request, measured) = request(options)?;
    let refused = |error: TheoryError| flagged(&error);
    let mut planner = Planner::new(request).map_err(refused)?;
    let rates = if options.eta.is_some() { Vec::new() } else { planner.request().shared_rates() };
    let plan = planner.plan_with_best_rate(&rates).map_err(refused)?;
    let request = planner.request();
    let sensitivity = planner.sensitivity(&plan).map_err(refused)?;
    let study = Study {
        problem: request.problem,
        link: request.link,
        rate: request.rate.clone(),
        ks: vec![plan.best.k],
        taus: vec![plan.best.tau],
        rounds: request.rounds,
        mode: Mode::Expectation { samples: options.samples as usize },
        seed: request.seed,
    };
    let best = study.run().map_err(refused)?.remove(0);
    let horizons = horizons(&plan.by_horizon);
    let json = PlanJson {
        problem: request.problem,
        link: request.link,
        eta: request.rate.to_string(),
        rounds: request.rounds,
        goal: request.goal,
        measured: measured.as_ref().map(|measured| &measured.constants),
        best: plan.best,
        shares: best.shares,
        floor: best.floor,
        horizons: &horizons,
        sensitivity: &sensitivity,
        points: &plan.points,
    };
    let json = serde_json::to_string_pretty(&json)? + "\n";
    let written = match &options.out {
        Some(out) => Some(filled(out, options.force, |folder| {
            write_figures(folder, request, &plan)?;
            folder.write("plan.csv", csv(&plan)?)?;
            Ok(folder.write("plan.json", &json)?)
        })?),
        None => None,
    };
    if options.json {
        out!("{json}")?;
        return Ok(Exit::Done);
    }
    if let Some(measured) = &measured {
        out!("{}", measured_text(&measured.constants))?;
    }
    out!("{}", summary(request, &plan, &horizons, &sensitivity))?;
    out!("{}", assumed_text(options, request, measured.as_ref()))?;
    if !rates.is_empty() {
        outln!("The learning rate is the best of {} that were tried; --eta sets another.", rates.len())?;
    }
    out!("\n{}", bound_report::table(&[best]))?;
    if let Some(written) = written {
        outln!("\n{}", written.display())?;
        outln!("  surface.svg  surface.png  horizons.svg  horizons.png  plan.csv  plan.json")?;
    }
    Ok(Exit::Done)
}

/// The request, from the flags and, with `--measure`, from a measurement.
fn request(options: &BoundPlanOptions) -> anyhow::Result<(PlanRequest, Option<Measurement>)> {
    let defaults = LinkParameters::default();
    let mut link = LinkParameters {
        devices: options.devices.unwrap_or(defaults.devices),
        dim: options.dim.unwrap_or(defaults.dim),
        choice: options.channels,
        ..defaults
    };
    let mut problem = BoundParameters {
        devices: link.devices,
        k: 1,
        tau: 1,
        mu: options.mu.unwrap_or(0.25),
        l: options.l.unwrap_or(5.0),
        g: options.g.unwrap_or(1.0),
        gamma: options.gamma.unwrap_or(1.0),
        distance0: options.d0.unwrap_or(500.0),
    };
    let mut measured = None;
    if let Some(name) = &options.measure {
        // The constants are those of the first curve.
        let experiment = experiment(Some(name), &options.settings).context("--measure")?;
        let curves = experiment.expand(&fedlink::parts::Parts::default())?.curves;
        let spec = &curves[0].spec;
        let dataset = fedlink::data::load(&spec.data.dataset, &data_folders(options.data_dir.as_deref()))
            .context("--measure: data.dataset")?;
        let lambda = options.lambda.unwrap_or(MeasureOptions::default().lambda);
        let measuring = SoftmaxProblem::new(spec, &dataset, MeasureOptions { lambda, ..Default::default() });
        let constants = measuring
            .map_err(|error| match error {
                TheoryError::Config(error) => anyhow::Error::from(error).context("--measure"),
                other => flagged(&other),
            })?
            .measured()
            .clone();
        (link.devices, link.dim) = (constants.devices, constants.dim);
        let folders = data_folders(options.data_dir.as_deref());
        (link.symbols, link.power, link.noise) = radio(spec, &folders)?;
        problem = BoundParameters {
            devices: constants.devices,
            mu: constants.mu,
            l: constants.l,
            g: constants.g,
            gamma: constants.gamma,
            distance0: constants.distance0,
            ..problem
        };
        measured = Some(Measurement { constants, classes: dataset.classes });
    }
    link.symbols = options.symbols.unwrap_or(link.symbols);
    link.power = options.power.unwrap_or(link.power);
    link.noise = options.noise.unwrap_or(link.noise);
    let request = PlanRequest {
        problem,
        link,
        rate: options.eta.as_deref().map(rate).transpose()?.unwrap_or_default(),
        ks: options.k.clone().unwrap_or(1..=link.devices),
        taus: options.tau.clone(),
        rounds: options.rounds as usize,
        goal: options.target.map_or(Goal::FinalLoss, Goal::RoundsTo),
        averaging: Averaging::Mean { samples: options.samples as usize },
        seed: options.seed,
    };
    Ok((request, measured))
}

/// n, P̄ and σ² of the radio of a scenario. With units, σ² is relative to the mean gain of the devices: the
/// bound knows Rayleigh links of mean gain 1 only.
fn radio(spec: &Spec, folders: &[PathBuf]) -> anyhow::Result<(u64, f64, f64)> {
    if spec.radio.bandwidth_hz.is_none() {
        return Ok((spec.radio.symbols, spec.radio.power, spec.radio.noise));
    }
    let policies = vec![spec.schedule.policy.clone()];
    let budget = LinkBudgetOptions { rounds: Some(1), policies, seeds: 1 };
    let study = link_budget(spec, &fedlink::parts::Parts::default(), folders, &budget)?;
    let gain = |link: &DeviceLink| libm::pow(10.0, 0.1 * link.snr_db) * study.noise / link.power;
    let mean = study.links.iter().map(gain).sum::<f64>() / study.links.len() as f64;
    Ok((study.symbols, study.average_power, study.noise / mean))
}

/// Every constant of the bound with its origin, and how loose the bound is before the first round.
fn assumed_text(options: &BoundPlanOptions, request: &PlanRequest, measured: Option<&Measurement>) -> String {
    let BoundParameters { devices, mu, l, g, gamma, distance0, .. } = request.problem;
    let LinkParameters { symbols, power, noise, dim, .. } = request.link;
    let from = |given: bool, is_measured: bool| match (given, is_measured && measured.is_some()) {
        (true, _) => "given",
        (false, true) => "of the scenario",
        (false, false) => "assumed",
    };
    let mut text = String::from("\nConstants\n");
    let mut line = |name: &str, value: f64, given: bool| {
        let _ = writeln!(text, "  {name:<14} {:<10} {}", number(value), from(given, true));
    };
    line("M", devices as f64, options.devices.is_some());
    line("d", dim as f64, options.dim.is_some());
    line("n", symbols as f64, options.symbols.is_some());
    line("P̄", power, options.power.is_some());
    line("σ²", noise, options.noise.is_some());
    line("μ", mu, options.mu.is_some());
    line("L", l, options.l.is_some());
    line("G", g, options.g.is_some());
    line("Γ", gamma, options.gamma.is_some());
    line("‖θ(0) − θ*‖²", distance0, options.d0.is_some());
    let _ = writeln!(
        text,
        "  links          Rayleigh, one mean gain for all devices; every round has n symbols and one power"
    );
    if let Some(measured) = measured {
        let start = 0.5 * l * distance0;
        // θ(0) = 0 answers every class alike.
        let loss = libm::log(measured.classes as f64) - measured.constants.optimum;
        let _ = writeln!(
            text,
            "Before the first round the bound is {}, and the loss is {} above its minimum: the bound is \
             loose {:.0} times. Seconds, joules, policies and compressors are not in it; fedlink plan \
             answers by simulation.",
            number(start),
            number(loss),
            start / loss
        );
    }
    text
}

fn horizons(by_horizon: &[BestAt]) -> Vec<Horizons> {
    let mut horizons: Vec<Horizons> = Vec::new();
    for &BestAt { rounds, k, tau, loss, .. } in by_horizon {
        match horizons.last_mut() {
            Some(last) if (last.k, last.tau) == (k, tau) => (last.to, last.loss) = (rounds, loss),
            _ => horizons.push(Horizons { from: rounds, to: rounds, k, tau, loss }),
        }
    }
    horizons
}

fn measured_text(measured: &Measured) -> String {
    let Measured { mu, l, gamma, g, distance0, optimum, mean_device_optimum, gap, .. } = measured;
    format!(
        "Measured by softmax regression (d = {}) on {} devices:\n\
         \x20 μ = {}, L = {}, Γ = {} (F* = {}, mean F_m* = {}, each to {gap:.0e}), G = {}, \
         ‖θ(0) − θ*‖² = {}\n\
         \x20 G holds on the path of full-gradient training from θ = 0; \
         μ is the weight of the regularizer.\n\n",
        measured.dim,
        measured.devices,
        number(*mu),
        number(*l),
        number(*gamma),
        number(*optimum),
        number(*mean_device_optimum),
        number(*g),
        number(*distance0),
    )
}

fn summary(
    request: &PlanRequest,
    plan: &GridPlan,
    horizons: &[Horizons],
    sensitivity: &Sensitivity,
) -> String {
    let (best, mut text) = (plan.best, String::new());
    let _ = writeln!(
        text,
        "Schedule K = {} of {} devices with τ = {} local step{}.",
        best.k,
        request.problem.devices,
        best.tau,
        if best.tau == 1 { "" } else { "s" }
    );
    let _ = match (request.goal, best.rounds_to_target) {
        (Goal::RoundsTo(target), Some(rounds)) => writeln!(
            text,
            "The bound on E[F] − F* reaches {} after {rounds} rounds, the fewest of {} points.",
            number(target),
            plan.points.len()
        ),
        _ => writeln!(
            text,
            "The bound on E[F] − F* after {} rounds is then {}, the lowest of {} points.",
            request.rounds,
            number(best.loss),
            plan.points.len()
        ),
    };
    let _ = writeln!(text, "The learning rate is η(t) = {}.", request.rate);
    let start = 0.5 * request.problem.l * request.problem.distance0;
    if best.loss >= start {
        let _ = writeln!(
            text,
            "It starts from {}: the bound is vacuous here. Try a smaller rate or more rounds.",
            number(start)
        );
    }
    let _ = writeln!(text, "\nBest if training ends after");
    // Of many short stretches only the longest are shown.
    let mut shown: Vec<Horizons> = horizons.to_vec();
    if shown.len() > 12 {
        shown.sort_by_key(|stretch| std::cmp::Reverse(stretch.to - stretch.from));
        shown.truncate(12);
        shown.sort_by_key(|stretch| stretch.from);
    }
    for Horizons { from, to, k, tau, loss } in &shown {
        let _ = writeln!(
            text,
            "  {from:>6} to {to:<6} rounds: K = {k}, τ = {tau} (bound {} at the end)",
            number(*loss)
        );
    }
    if shown.len() < horizons.len() {
        let _ = writeln!(text, "  and {} shorter stretches between them", horizons.len() - shown.len());
    }
    let _ = writeln!(text, "\nOff by one (change of the final bound)");
    for (point, excess) in &sensitivity.neighbors {
        let _ = writeln!(text, "  K = {}, τ = {}: {:+.2} %", point.k, point.tau, 100.0 * excess);
    }
    let _ = writeln!(text, "\nIf an assumption is off, the best would be");
    for shift in &sensitivity.shifts {
        let _ = match shift.best.zip(shift.regret) {
            Some((best, regret)) => writeln!(
                text,
                "  {:>7} × {:<3}: K = {}, τ = {}; keeping the plan costs {:.2} %",
                shift.what,
                shift.factor,
                best.k,
                best.tau,
                100.0 * regret
            ),
            None => writeln!(text, "  {:>7} × {:<3}: the target is out of reach", shift.what, shift.factor),
        };
    }
    let _ = writeln!(
        text,
        "\nThis is an upper bound for convex losses; it ranks choices, it does not predict a loss."
    );
    text
}

fn csv(plan: &GridPlan) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for point in &plan.points {
        writer.serialize(point)?;
    }
    Ok(writer.into_inner()?)
}

fn write_figures(folder: &OutputFolder, request: &PlanRequest, plan: &GridPlan) -> anyhow::Result<()> {
    let value = |k: u64, tau: u64| plan.point(k, tau).map_or(f64::NAN, |point| libm::log10(point.loss));
    let title = format!(
        "Loss bound after {} rounds; best: K = {}, τ = {}",
        request.rounds, plan.best.k, plan.best.tau
    );
    // The first row is on top: τ rises upwards.
    let row = |tau: u64| request.ks.clone().map(|k| value(k, tau)).collect();
    let rows: Vec<Vec<f64>> = request.taus.clone().rev().map(row).collect();
    let axes = ("K, devices scheduled per round", "τ, local steps");
    let bound = Quantity::plain("log10 of the bound (dark is better)");
    let (ks, taus) = (request.ks.clone(), request.taus.clone().rev());
    let names = |numbers: &mut dyn Iterator<Item = u64>| numbers.map(|number| number.to_string()).collect();
    let surface = HeatMap::new(title, axes, &bound, &rows)
        .with_names(names(&mut ks.into_iter()), names(&mut taus.into_iter()));
    folder.write("surface.svg", surface.svg())?;
    folder.write("surface.png", surface.png()?)?;
    let curve = |label: &str, value: fn(&BestAt) -> u64| Curve {
        label: label.into(),
        points: plan.by_horizon.iter().map(|best| (best.rounds as f64, value(best) as f64)).collect(),
        ..Curve::default()
    };
    let horizons = Lines::new(
        "Best K and τ by the number of rounds",
        &Quantity::plain("rounds until training ends").margin(0.02),
        &Quantity::plain("best value").from_zero(),
        vec![curve("K", |best| best.k), curve("τ", |best| best.tau)],
    );
    folder.write("horizons.svg", horizons.svg())?;
    folder.write("horizons.png", horizons.png()?)?;
    Ok(())
}
