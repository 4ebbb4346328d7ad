//! One run of the system on a [`Problem`].

use super::{CheckRequest, Problem, Schedule};
use crate::bound::{Bound, Parts, Terms};
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::{Bits, Power};
use fedlink::compress::{RandomSparse, Scratch, SparseScheme, SparseUpdate};
use fedlink::radio::access::slots::{SlotKind, split_slots};
use fedlink::radio::link::{capacity, transmit_power};

/// The result of one run.
pub(super) struct Run {
    /// ‖θ(t) − θ*‖² for t = 0, …, T.
    pub distances: Vec<f64>,
    /// ρ(t).
    pub rhos: Vec<f64>,
    /// The quantities that the terms of B bound, summed over the rounds.
    pub terms: Terms,
    /// The same, each round's share contracted by the A of all later ones, and the remaining part of the
    /// start.
    pub parts: Parts,
    /// The largest E‖∇F_m(θ, ξ)‖² at any point visited.
    pub largest_square: f64,
}

/// The sums of the local steps of all devices.
#[derive(Default)]
struct Local {
    updates: Vec<Vec<f32>>,
    /// ΣΣ_{i≥2} ‖θ_m^i − θ‖².
    drift: f64,
    /// ΣΣ_{i≥2} ‖∇F_m(θ_m^i, ξ)‖².
    squares: f64,
    /// ΣΣ_{i≥2} (F_m(θ*) − F_m(θ_m^i)).
    ahead: f64,
    largest_square: f64,
}

/// Runs all rounds. Every device trains in every round, so that the statements of the proof on
/// unscheduled devices can be measured too; only scheduled devices change the model.
pub(super) fn run(
    problem: &dyn Problem,
    request: &CheckRequest,
    (bound, rates): (&Bound, &[f64]),
    seed: u64,
) -> Run {
    let (devices, k) = (problem.devices() as f64, request.k as f64);
    let mut theta = problem.start().to_vec();
    let mut scratch = vec![0.0; theta.len()];
    let at_optimum: Vec<f64> =
        (0..problem.devices()).map(|m| problem.inspect(m, problem.optimum(), &mut scratch).loss).collect();
    let distance0 = square_distance(&theta, problem.optimum());
    let mut run = Run {
        distances: vec![distance0],
        rhos: Vec::with_capacity(rates.len()),
        terms: Terms::default(),
        parts: Parts { initial: distance0, terms: Terms::default() },
        largest_square: 0.0,
    };
    let mut sent = SparseUpdate::default();
    for (t, &eta) in rates.iter().enumerate() {
        let t = t as u64;
        let local = train(problem, request.tau, (seed, t), (&theta, &at_optimum), eta);
        let (chosen, rho) = schedule(request, &local.updates, seed, t);
        let q = (rho * theta.len() as f64).round() as usize;

        // υ − θ, the mean over all devices, and θ(t+1) − θ, the mean over the scheduled ones.
        let (mut all, mut heard) = (vec![0.0f64; theta.len()], vec![0.0f64; theta.len()]);
        let mut scratch = Scratch::default();
        for (m, update) in local.updates.iter().enumerate() {
            let mut rng = stream(seed, Purpose::Sparsify, t, m as u64);
            RandomSparse {}.compress(update, q, &mut rng, &mut scratch, &mut sent);
            let is_heard = chosen.contains(&m);
            for &i in &sent.indices {
                let value = f64::from(update[i as usize]);
                all[i as usize] += value / devices;
                if is_heard {
                    heard[i as usize] += value / k;
                }
            }
        }
        theta.iter_mut().zip(&heard).for_each(|(w, step)| *w += step);

        let mu = problem.mu();
        let terms = Terms {
            scheduling: square_distance(&heard, &all),
            drift: rho * (1.0 + mu * (1.0 - eta)) * local.drift / devices,
            noise: all.iter().map(|x| x * x).sum::<f64>() + rho * eta * eta * local.squares / devices,
            heterogeneity: 2.0 * rho * eta * local.ahead / devices,
        };
        run.terms = run.terms.plus(terms);
        run.parts = run.parts.scaled(bound.contraction(rho, eta)).plus(Parts { initial: 0.0, terms });
        run.largest_square = run.largest_square.max(local.largest_square);
        run.rhos.push(rho);
        run.distances.push(square_distance(&theta, problem.optimum()));
    }
    run
}

/// τ local steps of every device from θ.
fn train(
    problem: &dyn Problem,
    tau: u64,
    (seed, t): (u64, u64),
    (theta, at_optimum): (&[f64], &[f64]),
    eta: f64,
) -> Local {
    let mut result = Local::default();
    let (mut gradient, mut scratch) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
    for (m, optimum) in at_optimum.iter().enumerate() {
        let mut rng = stream(seed, Purpose::Batch, t, m as u64);
        let mut local = theta.to_vec();
        for step in 0..tau {
            let here = problem.inspect(m, &local, &mut scratch);
            result.largest_square = result.largest_square.max(here.mean_square);
            problem.gradient(m, &local, &mut rng, &mut gradient);
            if step > 0 {
                result.drift += square_distance(&local, theta);
                result.squares += gradient.iter().map(|g| g * g).sum::<f64>();
                result.ahead += optimum - here.loss;
            }
            local.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= eta * g);
        }
        result.updates.push(local.iter().zip(theta).map(|(w, start)| (w - start) as f32).collect());
    }
    result
}

/// The devices of a round and ρ: equal bits for each of them.
fn schedule(request: &CheckRequest, updates: &[Vec<f32>], seed: u64, t: u64) -> (Vec<usize>, f64) {
    let (devices, k) = (updates.len(), request.k as usize);
    let gains = crate::rho::gains(seed, t, devices);
    let mut order: Vec<usize> = (0..devices).collect();
    match request.schedule {
        Schedule::Uniform => stream(seed, Purpose::Uniform, t, 0).shuffle_prefix(&mut order, k),
        Schedule::BestChannel => order.sort_by(|&a, &b| gains[b].total_cmp(&gains[a])),
        Schedule::BestNorm => {
            let norms: Vec<f64> = updates.iter().map(|update| fedlink::base::kernels::norm(update)).collect();
            order.sort_by(|&a, &b| norms[b].total_cmp(&norms[a]));
        }
    }
    order.truncate(k);
    let power = transmit_power(devices, k, Power(request.link.power));
    let capacities: Vec<f64> = order.iter().map(|&m| capacity(gains[m], power, request.link.noise)).collect();
    let slots = split_slots(&vec![1.0; k], &capacities, request.link.symbols, SlotKind::Real);
    let dim = request.link.dim as usize;
    // Equal bits up to rounding, and one q for all.
    let q_of = |i: usize| RandomSparse {}.largest_q(dim, Bits(slots[i].0 * capacities[i]));
    let q = (0..k).map(q_of).min().unwrap_or(0);
    (order, q as f64 / dim as f64)
}

pub(super) fn square_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}
