//! The theorem compared with runs of the system that it describes.
//!
//! [`check`] runs uniform scheduling, equal bits and random sparsification on a [`Problem`] whose optimum and
//! constants are known, under many seeds, and compares the mean of ‖θ(t) − θ*‖² with the bound, and every
//! term of the bound with the quantity that it bounds in the proof.

mod quadratic;
mod run;

pub use quadratic::{Quadratic, QuadraticParameters};

use super::bound::{Bound, BoundParameters, Parts, Terms};
use super::rate::Rate;
use super::rho::{LinkParameters, max_table};
use super::{Estimate, TheoryError, whole};
use crate::statistics::Moments;
use fedlink::base::rng::Stream;
use rayon::prelude::*;
use run::{Run, run};
use serde::{Deserialize, Serialize};

/// F_m at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Inspection {
    /// F_m(θ).
    pub loss: f64,
    /// E‖∇F_m(θ, ξ)‖² over ξ.
    pub mean_square: f64,
}

/// A strongly convex learning problem with known constants.
pub trait Problem: Sync {
    /// M.
    fn devices(&self) -> usize;
    /// μ.
    fn mu(&self) -> f64;
    /// L.
    fn l(&self) -> f64;
    /// Γ = F* − mean F_m*.
    fn gamma(&self) -> f64;
    /// θ(0).
    fn start(&self) -> &[f64];
    /// θ*.
    fn optimum(&self) -> &[f64];
    /// F_m(θ) and the mean square norm of its stochastic gradient there; `scratch` is as long as θ.
    fn inspect(&self, device: usize, theta: &[f64], scratch: &mut [f64]) -> Inspection;
    /// Writes a stochastic gradient of F_m at θ to `out`, its randomness from `rng`.
    fn gradient(&self, device: usize, theta: &[f64], rng: &mut Stream, out: &mut [f64]);
}

/// The schedule of the devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Schedule {
    /// K devices uniformly at random.
    #[default]
    Uniform,
    /// The K largest gains.
    BestChannel,
    /// The K largest ‖Δ‖ (with equal bits).
    BestNorm,
}

impl Schedule {
    /// Its name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::BestChannel => "best-channel",
            Self::BestNorm => "best-norm",
        }
    }

    /// The assumption of the theorem that it violates, if any.
    pub fn breaks(self) -> Option<&'static str> {
        match self {
            // With equal fading distributions, the devices with the largest gains are a uniformly random
            // set.
            Self::Uniform | Self::BestChannel => None,
            Self::BestNorm => Some("the theorem needs a choice that is blind to the updates"),
        }
    }
}

/// The parameters of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckRequest {
    /// The link; its `dim` and `devices` are those of the problem, its `choice` is replaced by `schedule`.
    pub link: LinkParameters,
    /// The schedule of the devices.
    pub schedule: Schedule,
    /// K.
    pub k: u64,
    /// τ.
    pub tau: u64,
    /// η(t).
    pub rate: Rate,
    /// T.
    pub rounds: usize,
    /// The first seed.
    pub seed: u64,
    /// The number of seeds.
    pub seeds: u64,
}

/// The runs and the bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// The schedule of the devices.
    pub schedule: Schedule,
    /// The assumption of the theorem that the runs violate, if any.
    pub breaks: Option<&'static str>,
    /// The constants of the bound. G² is the largest E‖∇F_m(θ, ξ)‖² (over ξ) at any point that any device
    /// of any run visited, scheduled or not.
    pub parameters: BoundParameters,
    /// The number of runs, each with its own seed.
    pub seeds: u64,
    /// The mean of ρ(t) over rounds and runs.
    pub mean_rho: f64,
    /// E‖θ(t) − θ*‖² for t = 0, …, T, with the 95 % interval over the seeds.
    pub measured: Vec<Estimate>,
    /// The bound on it: the mean over the seeds of the bound for each run's own ρ(t).
    pub bound: Vec<f64>,
    /// The sums of the terms of B over all rounds, mean over the seeds.
    pub promised_terms: Terms,
    /// The sums of the bounded quantities in the runs, mean over the seeds:
    ///
    /// - scheduling: ‖θ(t+1) − υ(t+1)‖², where υ is the result of the mean of all M compressed updates;
    /// - drift: ρ(1+μ(1−η))·(1/M)·ΣΣ_{i≥2} ‖θ_m^i − θ‖²;
    /// - noise: ‖υ(t+1) − θ(t)‖² + ρη²·(1/M)·ΣΣ_{i≥2} ‖∇F_m(θ_m^i, ξ)‖²;
    /// - heterogeneity: 2ρη·(1/M)·ΣΣ_{i≥2} (F_m(θ*) − F_m(θ_m^i)), negative if the devices do better on
    ///   their own data than θ* does.
    pub measured_terms: Terms,
    /// The bound after the last round by its parts, mean over the seeds.
    pub promised_parts: Parts,
    /// The same recursion with the measured quantities in place of the terms: A contracts as in the
    /// theorem, B is measured. In expectation the proof places this between the measured distance and the
    /// bound, so it splits the looseness of the bound: `promised_parts / measured_parts` is due to the
    /// terms, `measured_parts / measured` to the earlier steps of the proof (least curvature in every
    /// direction, products bounded by sums of squares).
    pub measured_parts: Parts,
    /// The first t at which the measured mean exceeds the bound by more than rounding.
    pub exceeded: Option<usize>,
}

impl Check {
    /// bound/measured at round t, the factor by which the bound is too large.
    pub fn looseness(&self, t: usize) -> f64 {
        self.bound[t] / self.measured[t].mean
    }
}

/// Runs the system under `seeds` seeds. The result does not depend on the number of threads.
pub fn check(problem: &dyn Problem, request: &CheckRequest) -> Result<Check, TheoryError> {
    let devices = problem.devices() as u64;
    let link = LinkParameters { devices, dim: problem.start().len() as u64, ..request.link };
    let request = &CheckRequest { link, ..request.clone() };
    super::rho::Link::new(link)?;
    whole("rounds", request.rounds as u64, 1..=1_000_000, "")?;
    let max = max_table() / (request.rounds as u64 + 1);
    whole("seeds", request.seeds, 1..=max, &format!(" for {} rounds", request.rounds))?;
    let distance0 = run::square_distance(problem.start(), problem.optimum());
    let mut parameters = BoundParameters {
        devices,
        k: request.k,
        tau: request.tau,
        mu: problem.mu(),
        l: problem.l(),
        g: 0.0,
        gamma: problem.gamma(),
        distance0,
    };
    let shape = Bound::new(parameters)?;
    let rates = shape.rates(&request.rate, request.rounds)?;
    let under = |i: u64| run(problem, request, (&shape, &rates), request.seed.wrapping_add(i));
    let runs: Vec<Run> = (0..request.seeds).into_par_iter().map(under).collect();
    parameters.g = runs.iter().map(|run| run.largest_square).fold(0.0, f64::max).sqrt();
    let bound = Bound::new(parameters)?;
    let share = 1.0 / runs.len() as f64;
    let mut moments = vec![Moments::default(); request.rounds + 1];
    let mut check = Check {
        schedule: request.schedule,
        breaks: request.schedule.breaks(),
        parameters,
        seeds: request.seeds,
        mean_rho: 0.0,
        measured: Vec::new(),
        bound: vec![0.0; request.rounds + 1],
        promised_terms: Terms::default(),
        measured_terms: Terms::default(),
        promised_parts: Parts { initial: 0.0, terms: Terms::default() },
        measured_parts: Parts { initial: 0.0, terms: Terms::default() },
        exceeded: None,
    };
    for run in &runs {
        let curve = bound.curve(&rates, &run.rhos)?;
        curve.distances.iter().zip(&mut check.bound).for_each(|(x, sum)| *sum += share * x);
        run.distances.iter().zip(&mut moments).for_each(|(x, sum)| sum.add(*x));
        check.measured_terms = check.measured_terms.plus(run.terms.scaled(share));
        check.measured_parts = check.measured_parts.plus(run.parts.scaled(share));
        // A curve's parts are those of the loss.
        let parts = curve.parts.scaled(2.0 / parameters.l);
        check.promised_parts = check.promised_parts.plus(parts.scaled(share));
        for (&rho, &eta) in run.rhos.iter().zip(&rates) {
            check.promised_terms = check.promised_terms.plus(bound.terms(rho, eta).scaled(share));
            check.mean_rho += share * rho / request.rounds as f64;
        }
    }
    check.measured = moments.iter().map(Moments::estimate).collect();
    let above = |t: &usize| check.measured[*t].mean > check.bound[*t] * (1.0 + 1e-9);
    check.exceeded = (0..=request.rounds).find(above);
    Ok(check)
}

#[cfg(test)]
mod tests;
