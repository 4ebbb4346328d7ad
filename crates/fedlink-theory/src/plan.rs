//! The best K and τ by the bound.

use super::bound::{Bound, BoundParameters};
use super::rate::Rate;
use super::rho::{Efficiencies, Link, LinkParameters, max_table};
use super::{MAX_ROUNDS, TheoryError, average, real, whole};
use rayon::prelude::*;
use serde::Serialize;
use std::ops::RangeInclusive;

/// The number of rates on the default list.
const RATES: i32 = 16;

/// The criterion of the best point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub enum Goal {
    /// The lowest loss bound after the last round.
    #[default]
    FinalLoss,
    /// The fewest rounds until the loss bound is at most this.
    RoundsTo(f64),
}

/// The channel of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub enum Averaging {
    /// The mean over all channels (see [`average::expectation`]).
    Mean {
        /// Rounds from which E\[ρ\] is estimated for each K.
        samples: usize,
    },
    /// The channel of one simulation.
    Draw,
}

/// The grid and the problem of a plan.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// The learning problem; the grid replaces its `k` and `tau`.
    pub problem: BoundParameters,
    /// The radio link that determines ρ(t).
    pub link: LinkParameters,
    /// η(t), which may depend on τ.
    pub rate: Rate,
    /// The values of K to try.
    pub ks: RangeInclusive<u64>,
    /// The values of τ to try.
    pub taus: RangeInclusive<u64>,
    /// T, the rounds of every point.
    pub rounds: usize,
    /// The criterion of the best point.
    pub goal: Goal,
    /// The channel.
    pub averaging: Averaging,
    /// The seed of the channel. All K have the same gains, so that no noise affects their comparison.
    pub seed: u64,
}

impl PlanRequest {
    /// The default rates: the largest that every τ of the grid may use, decaying as 1000/(t+1000), and
    /// its halves. With a rate that depends on τ, a comparison of τ would be meaningless.
    pub fn shared_rates(&self) -> Vec<Rate> {
        let max = f64::min(1.0, 1.0 / (self.problem.mu * *self.taus.end() as f64));
        (0..RATES)
            .map(|i| Rate::InverseTime { a: 1000.0 * max * 0.5f64.powi(i), b: 1.0, c: 1000.0 })
            .collect()
    }
}

/// One point of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GridPoint {
    /// K.
    pub k: u64,
    /// τ.
    pub tau: u64,
    /// The loss bound after the last round.
    pub loss: f64,
    /// With [`Goal::RoundsTo`], the first round with a bound at most the target.
    pub rounds_to_target: Option<usize>,
}

/// The best K and τ for a number of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BestAt {
    /// The horizon.
    pub rounds: usize,
    /// K.
    pub k: u64,
    /// τ.
    pub tau: u64,
    /// The loss bound then.
    pub loss: f64,
}

/// The whole grid and its best point.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GridPlan {
    /// The best point; ties go to the smaller K, then to the smaller τ.
    pub best: GridPoint,
    /// Every point, by K and then by τ.
    pub points: Vec<GridPoint>,
    /// The point with the lowest loss for every horizon 1..=T.
    pub by_horizon: Vec<BestAt>,
}

impl GridPlan {
    /// The point (K, τ), if it is on the grid.
    pub fn point(&self, k: u64, tau: u64) -> Option<GridPoint> {
        let index = self.points.binary_search_by_key(&(k, tau), |point| (point.k, point.tau)).ok()?;
        Some(self.points[index])
    }
}

/// The dependence of the best point on the assumptions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Sensitivity {
    /// The points K±1 and τ±1 beside the best one, if they are on the grid, each with the share by which
    /// its final loss is above (or, with a goal in rounds, possibly below) that of the best point.
    pub neighbors: Vec<(GridPoint, f64)>,
    /// The best points under scaled assumptions.
    pub shifts: Vec<Shift>,
}

/// The plan if one assumption is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Shift {
    /// `gamma`, `g` or `symbols`.
    pub what: &'static str,
    /// Its factor.
    pub factor: f64,
    /// The best point then; none if the target cannot be reached.
    pub best: Option<GridPoint>,
    /// The share by which the final loss at the unshifted best point is above that at the new one.
    pub regret: Option<f64>,
}

/// A checked request with its channel drawn.
///
/// ρ depends on K and the channel but not on τ, so it is computed once for each K and round; the grid is then
/// K × τ × T steps of the recursion. The result does not depend on the number of threads.
pub struct Planner {
    request: PlanRequest,
    link: Link,
    efficiencies: Efficiencies,
    rhos: Vec<Vec<f64>>,
    /// η(t) for each τ.
    rates: Vec<Vec<f64>>,
}

/// Coefficients of a round with ρ = 1 for one τ: x ← x − ρ·(pull·x − unheard·scheduling − rest).
struct Round {
    pull: f64,
    scheduling: f64,
    rest: f64,
}

/// One row of the grid: the points of a K, and its lowest bound with the τ for each horizon.
type GridRow = (Vec<GridPoint>, Vec<(f64, u64)>);

impl Planner {
    /// Checks the request and draws the channel. A K whose link carries no entry stays in the grid with ρ
    /// = 0; if this holds for all K, it is an error.
    pub fn new(request: PlanRequest) -> Result<Self, TheoryError> {
        let PlanRequest { ks, taus, rounds, seed, .. } = &request;
        whole("rounds", *rounds as u64, 1..=MAX_ROUNDS as u64, "")?;
        whole("tau", *taus.start(), 1..=*taus.end(), "")?;
        let spans = [ks, taus].map(|range| range.end().saturating_sub(*range.start()).saturating_add(1));
        let [ks_count, taus_count] = spans;
        whole("tau", taus_count, 1..=10_000, " as a number of values to try")?;
        let note =
            format!(" with {ks_count} values of K and {taus_count} of tau (the grid is kept in memory)");
        whole("rounds", *rounds as u64, 1..=max_table() / ks_count.saturating_add(taus_count), &note)?;
        whole("k", ks_count, 1..=max_table() / taus_count, " as a number of values to try")?;
        if let Goal::RoundsTo(target) = request.goal {
            real("target", target, |x| x > 0.0, "a finite number above 0")?;
        }
        let link = Link::new(request.link)?;
        let samples = match request.averaging {
            Averaging::Draw => *rounds,
            Averaging::Mean { samples } => samples,
        };
        let efficiencies = link.efficiencies(ks.clone(), samples, *seed)?;
        let spread = |k, tau| Bound::new(BoundParameters { k, tau, ..request.problem });
        average::same_devices(&spread(*ks.start(), *taus.start())?, &link)?;
        spread(*ks.end(), *taus.end())?;
        let rates = rates_of(&request, &request.rate)?;
        let mut planner = Self { request, link, efficiencies, rhos: Vec::new(), rates };
        planner.rhos = planner.rhos_with(planner.request.link.symbols);
        planner.efficiencies.check_some(&planner.link, &planner.rhos)?;
        Ok(planner)
    }

    /// The grid.
    pub fn plan(&self) -> Result<GridPlan, TheoryError> {
        self.evaluate(&self.request.problem, &self.rhos)
    }

    /// The grid at the one of `rates` whose best point is the best; ties go to the earlier. The planner
    /// keeps that rate, and its request has it. Without `rates` this is [`Planner::plan`].
    ///
    /// A rate that is too large for the problem puts the fixed point of the bound above its start. Then
    /// the link that carries least gives the lowest bound, which is useless advice; so a plan should
    /// state its rate.
    pub fn plan_with_best_rate(&mut self, rates: &[Rate]) -> Result<GridPlan, TheoryError> {
        let mut best: Option<(GridPlan, &Rate)> = None;
        let mut nearest: Option<(f64, TheoryError)> = None;
        for rate in rates {
            self.set_rate(rate)?;
            match self.plan() {
                Ok(plan) => {
                    if best.as_ref().is_none_or(|(old, _)| is_better(&plan.best, &old.best)) {
                        best = Some((plan, rate));
                    }
                }
                Err(error @ TheoryError::OutOfReach { lowest, .. }) => {
                    if nearest.as_ref().is_none_or(|(old, _)| lowest < *old) {
                        nearest = Some((lowest, error));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        match (best, nearest) {
            (Some((plan, rate)), _) => self.set_rate(rate).map(|()| plan),
            (None, Some((_, error))) => Err(error),
            (None, None) => self.plan(),
        }
    }

    fn set_rate(&mut self, rate: &Rate) -> Result<(), TheoryError> {
        self.rates = rates_of(&self.request, rate)?;
        self.request.rate = rate.clone();
        Ok(())
    }

    /// The request, with the chosen rate.
    pub fn request(&self) -> &PlanRequest {
        &self.request
    }

    /// The dependence of `plan` on K, τ, Γ, G and n, the last three scaled by ±20 %.
    pub fn sensitivity(&self, plan: &GridPlan) -> Result<Sensitivity, TheoryError> {
        let GridPoint { k, tau, loss, .. } = plan.best;
        let beside = [(k - 1, tau), (k + 1, tau), (k, tau - 1), (k, tau + 1)];
        let excess = |point: GridPoint| (point, share_above(point.loss, loss));
        let neighbors = beside.into_iter().filter_map(|(k, tau)| plan.point(k, tau)).map(excess).collect();
        let mut shifts = Vec::new();
        for factor in [0.8, 1.2] {
            let BoundParameters { gamma, g, .. } = self.request.problem;
            let problem = self.request.problem;
            let symbols = ((self.request.link.symbols as f64 * factor).round() as u64).max(1);
            let cases = [
                ("gamma", BoundParameters { gamma: gamma * factor, ..problem }, None),
                ("g", BoundParameters { g: g * factor, ..problem }, None),
                ("symbols", problem, Some(self.rhos_with(symbols))),
            ];
            for (what, problem, rhos) in cases {
                let shifted = match self.evaluate(&problem, rhos.as_ref().unwrap_or(&self.rhos)) {
                    Err(TheoryError::OutOfReach { .. }) => None,
                    other => Some(other?),
                };
                let best = shifted.as_ref().map(|plan| plan.best);
                let stayed = shifted.as_ref().and_then(|plan| plan.point(k, tau));
                let regret = stayed.zip(best).map(|(old, new)| share_above(old.loss, new.loss));
                shifts.push(Shift { what, factor, best, regret });
            }
        }
        shifts.sort_by_key(|shift| ["gamma", "g", "symbols"].iter().position(|what| *what == shift.what));
        Ok(Sensitivity { neighbors, shifts })
    }

    /// ρ(t) for every K; the same in every round if it is the mean.
    fn rhos_with(&self, symbols: u64) -> Vec<Vec<f64>> {
        let rhos = self.efficiencies.rhos(&self.link, symbols);
        match self.request.averaging {
            Averaging::Draw => rhos,
            Averaging::Mean { .. } => {
                let mean = |row: Vec<f64>| row.iter().sum::<f64>() / row.len() as f64;
                rhos.into_iter().map(|row| vec![mean(row); self.request.rounds]).collect()
            }
        }
    }

    fn evaluate(&self, problem: &BoundParameters, rhos: &[Vec<f64>]) -> Result<GridPlan, TheoryError> {
        let rounds = self.request.taus.clone().zip(&self.rates).map(|(tau, rates)| {
            // K enters only by a factor of the scheduling term; at K = 1 that factor is 1 (0 for a single
            // device).
            let bound = Bound::new(BoundParameters { k: 1, tau, ..*problem })?;
            let round = |&eta: &f64| {
                let terms = bound.terms(1.0, eta);
                let rest = terms.drift + terms.noise + terms.heterogeneity;
                Round { pull: bound.pull(eta), scheduling: terms.scheduling, rest }
            };
            Ok(rates.iter().map(round).collect())
        });
        let rounds = rounds.collect::<Result<Vec<Vec<Round>>, TheoryError>>()?;
        let rows: Vec<GridRow> =
            rhos.par_iter().enumerate().map(|(i, rhos)| self.row(problem, i, rhos, &rounds)).collect();
        let mut by_horizon: Vec<BestAt> = (1..=self.request.rounds)
            .map(|rounds| BestAt { rounds, k: 0, tau: 0, loss: f64::INFINITY })
            .collect();
        let mut points = Vec::with_capacity(rows.len() * rounds.len());
        for (row, lowest) in rows {
            let k = row[0].k;
            points.extend(row);
            for (best, (loss, tau)) in by_horizon.iter_mut().zip(lowest) {
                if loss < best.loss {
                    *best = BestAt { k, tau, loss, ..*best };
                }
            }
        }
        Ok(GridPlan { best: self.best(&points)?, points, by_horizon })
    }

    /// The recursion for one K and all τ.
    fn row(&self, problem: &BoundParameters, i: usize, rhos: &[f64], rounds: &[Vec<Round>]) -> GridRow {
        let k = self.efficiencies.first_k + i as u64;
        let (half_l, devices) = (0.5 * problem.l, problem.devices as f64);
        let unheard = if k == 1 { 1.0 } else { (devices - k as f64) / (k as f64 * (devices - 1.0)) };
        let target = match self.request.goal {
            Goal::FinalLoss => f64::NEG_INFINITY,
            Goal::RoundsTo(target) => target,
        };
        let mut lowest = vec![(f64::INFINITY, 0); rhos.len()];
        let mut points = Vec::with_capacity(rounds.len());
        for (tau, rounds) in self.request.taus.clone().zip(rounds) {
            let mut x = problem.distance0;
            let mut reached = (half_l * x <= target).then_some(0);
            for (t, (round, &rho)) in rounds.iter().zip(rhos).enumerate() {
                x -= rho * (round.pull * x - (unheard * round.scheduling + round.rest));
                let loss = half_l * x;
                if loss < lowest[t].0 {
                    lowest[t] = (loss, tau);
                }
                if loss <= target && reached.is_none() {
                    reached = Some(t + 1);
                }
            }
            points.push(GridPoint { k, tau, loss: half_l * x, rounds_to_target: reached });
        }
        (points, lowest)
    }

    /// The first of the best points.
    fn best(&self, points: &[GridPoint]) -> Result<GridPoint, TheoryError> {
        let lowest = points.iter().min_by(|a, b| a.loss.total_cmp(&b.loss)).expect("a grid has a point");
        let Goal::RoundsTo(target) = self.request.goal else { return Ok(*lowest) };
        let reached = points.iter().filter(|point| point.rounds_to_target.is_some());
        let soonest = reached.reduce(|best, point| if is_better(point, best) { point } else { best });
        let GridPoint { k, tau, loss, .. } = *lowest;
        soonest.copied().ok_or(TheoryError::OutOfReach {
            target,
            rounds: self.request.rounds,
            lowest: loss,
            k,
            tau,
        })
    }
}

/// η(t) for each τ.
fn rates_of(request: &PlanRequest, rate: &Rate) -> Result<Vec<Vec<f64>>, TheoryError> {
    let values = |tau| rate.values(request.problem.mu, tau, request.rounds);
    request.taus.clone().map(values).collect()
}

/// Fewer rounds to the target, if there is one, then the lower loss.
fn is_better(new: &GridPoint, old: &GridPoint) -> bool {
    new.rounds_to_target.cmp(&old.rounds_to_target).then(new.loss.total_cmp(&old.loss)).is_lt()
}

/// loss/base − 1, and 0 where both are 0.
fn share_above(loss: f64, base: f64) -> f64 {
    if loss == base { 0.0 } else { loss / base - 1.0 }
}

#[cfg(test)]
mod tests;
