//! The best K and τ for the paper's figure 4 with even data, over the whole grid K = 1..=100, τ = 1..=20,
//! and the dependence of the answer on the assumptions. `cargo run --release -p fedlink-theory --example
//! plan`

use fedlink_theory::TheoryError;
use fedlink_theory::bound::BoundParameters;
use fedlink_theory::plan::{Averaging, Goal, PlanRequest, Planner};
use fedlink_theory::rate::Rate;
use fedlink_theory::rho::LinkParameters;
use std::time::Instant;

fn main() -> Result<(), TheoryError> {
    let (g, gamma) = (1.0, 1.0);
    let request = PlanRequest {
        problem: BoundParameters { devices: 100, k: 1, tau: 1, mu: 0.25, l: 5.0, g, gamma, distance0: 500.0 },
        link: LinkParameters::default(),
        rate: Rate::InverseTime { a: 1000.0, b: 20.0 * 0.25, c: 1000.0 },
        ks: 1..=100,
        taus: 1..=20,
        rounds: 1000,
        goal: Goal::FinalLoss,
        averaging: Averaging::Mean { samples: 1000 },
        seed: 0,
    };
    let start = Instant::now();
    let planner = Planner::new(request)?;
    let plan = planner.plan()?;
    let planned = start.elapsed();
    println!("best: K = {}, τ = {}, loss bound {:.2}", plan.best.k, plan.best.tau, plan.best.loss);
    for rounds in [10, 30, 100, 300, 1000] {
        let best = plan.by_horizon[rounds - 1];
        println!("  for {rounds} rounds: K = {}, τ = {}, {:.2}", best.k, best.tau, best.loss);
    }
    let sensitivity = planner.sensitivity(&plan)?;
    for (point, excess) in &sensitivity.neighbors {
        println!("  at K = {}, τ = {}: {:+.2} %", point.k, point.tau, 100.0 * excess);
    }
    for shift in &sensitivity.shifts {
        if let Some((best, regret)) = shift.best.zip(shift.regret) {
            let (what, factor) = (shift.what, shift.factor);
            println!(
                "  {what} × {factor}: K = {}, τ = {}; staying costs {:.2} %",
                best.k,
                best.tau,
                100.0 * regret
            );
        }
    }
    println!("{planned:.2?} for {} points, {:.2?} with the sensitivity", plan.points.len(), start.elapsed());
    Ok(())
}
