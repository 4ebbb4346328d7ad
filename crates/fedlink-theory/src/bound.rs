//! The bound for given ρ(t) and η(t).

use super::rate::Rate;
use super::{MAX_ROUNDS, TheoryError, real, whole};
use serde::Serialize;

/// The constants of the learning problem and of the schedule in the theorem.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BoundParameters {
    /// M, devices.
    pub devices: u64,
    /// K, devices scheduled in a round.
    pub k: u64,
    /// τ, local steps in a round.
    pub tau: u64,
    /// μ, strong convexity of every device's loss.
    pub mu: f64,
    /// L, smoothness of every device's loss.
    pub l: f64,
    /// G, root of the bound on the mean square norm of a stochastic gradient.
    pub g: f64,
    /// Γ = F* − mean of F_m*, the heterogeneity of the devices' data.
    pub gamma: f64,
    /// ‖θ(0) − θ*‖², squared distance at the start.
    pub distance0: f64,
}

/// The four terms of B(t), or their contributions to a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Terms {
    /// `(M−K)·ρη²τ²G² / (K(M−1))`: only K of M devices send.
    pub scheduling: f64,
    /// `ρ(1+μ(1−η))·η²G²·τ(τ−1)(2τ−1)/6`: devices move away from θ(t) while they train.
    pub drift: f64,
    /// `ρη²(τ²+τ−1)·G²`: stochastic gradients do not vanish at the optimum.
    pub noise: f64,
    /// `2ρη(τ−1)·Γ`: every device pulls toward its own optimum.
    pub heterogeneity: f64,
}

impl Terms {
    /// The terms in the order of their fields.
    pub fn array(self) -> [f64; 4] {
        [self.scheduling, self.drift, self.noise, self.heterogeneity]
    }

    /// Their sum, in that order.
    pub fn sum(self) -> f64 {
        self.array().iter().sum()
    }

    fn map2(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            scheduling: f(self.scheduling, other.scheduling),
            drift: f(self.drift, other.drift),
            noise: f(self.noise, other.noise),
            heterogeneity: f(self.heterogeneity, other.heterogeneity),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.map2(other, |a, b| a + b)
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        self.map2(self, |x, _| x * factor)
    }
}

/// The parts of a loss bound. The recursion is linear, so the parts add up to the whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Parts {
    /// The rest of the initial distance.
    pub initial: f64,
    /// The contribution of each term of B.
    pub terms: Terms,
}

impl Parts {
    /// The whole.
    pub fn sum(self) -> f64 {
        self.initial + self.terms.sum()
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { initial: self.initial + other.initial, terms: self.terms.plus(other.terms) }
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { initial: factor * self.initial, terms: self.terms.scaled(factor) }
    }

    /// Every part as a share of the whole; all zero if the whole is.
    #[must_use]
    pub fn shares(self) -> Self {
        let whole = self.sum();
        self.scaled(if whole > 0.0 { 1.0 / whole } else { 0.0 })
    }
}

/// The bound on E‖θ(t) − θ*‖² and on E\[F(θ(t))\] − F*.
///
/// With 0 < η ≤ min{1, 1/(μτ)} and 0 ≤ ρ ≤ 1 in round t,
///
/// `x(t+1) = A·x(t) + B`, `A = 1 − μρη(τ − η(τ−1))`, B is the sum of [`Terms`], `x(0) = ‖θ(0)−θ*‖²`,
///
/// and the loss bound is (L/2)·x. Source: Theorem 1 and Corollary 1 of the paper. Invariants: 0 ≤ A ≤ 1
/// (since `μη(τ−η(τ−1)) ≤ μητ ≤ 1`), so x ≥ 0 and x rises with x(0), Γ and G; A and B are affine in ρ, so
/// x(T) falls with ρ(t) if and only if x(t) is above [`Bound::fixed_point`] at η(t).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    parameters: BoundParameters,
}

impl Bound {
    /// Checks the parameters; an error names the wrong one.
    pub fn new(parameters: BoundParameters) -> Result<Self, TheoryError> {
        let BoundParameters { devices, k, tau, mu, l, g, gamma, distance0 } = parameters;
        whole("devices", devices, 1..=u64::from(u32::MAX), "")?;
        whole("k", k, 1..=devices, " (K cannot exceed devices)")?;
        whole("tau", tau, 1..=1_000_000, "")?;
        // Far beyond any practical value; within these ranges no bound overflows.
        real("mu", mu, |x| (1e-60..=1e60).contains(&x), "above 0 (in 1e-60..=1e60)")?;
        real("l", l, |x| (mu..=1e60).contains(&x), &format!("at least mu = {mu} (and at most 1e60)"))?;
        for (name, value) in [("g", g), ("gamma", gamma), ("distance0", distance0)] {
            real(name, value, |x| (0.0..=1e60).contains(&x), "at least 0 (and at most 1e60)")?;
        }
        Ok(Self { parameters })
    }

    /// Its parameters.
    pub fn parameters(&self) -> &BoundParameters {
        &self.parameters
    }

    /// min{1, 1/(μτ)}, the largest rate for which the theorem holds.
    pub fn largest_rate(&self) -> f64 {
        largest_rate(self.parameters.mu, self.parameters.tau)
    }

    /// η(0), …, η(`rounds`−1), each checked against 0 < η ≤ min{1, 1/(μτ)}.
    pub fn rates(&self, rate: &Rate, rounds: usize) -> Result<Vec<f64>, TheoryError> {
        rate.values(self.parameters.mu, self.parameters.tau, rounds)
    }

    /// `c = (1 − A)/ρ = μη(τ − η(τ−1))`, the contraction of a round with ρ = 1.
    pub fn pull(&self, eta: f64) -> f64 {
        let (mu, tau) = (self.parameters.mu, self.parameters.tau as f64);
        mu * eta * (tau - eta * (tau - 1.0))
    }

    /// A(t) for ρ and η of a round.
    pub fn contraction(&self, rho: f64, eta: f64) -> f64 {
        1.0 - rho * self.pull(eta)
    }

    /// The terms of B(t) for ρ and η of a round.
    pub fn terms(&self, rho: f64, eta: f64) -> Terms {
        let BoundParameters { devices, k, tau, mu, g, gamma, .. } = self.parameters;
        let (m, k, tau) = (devices as f64, k as f64, tau as f64);
        // A single device is always scheduled: 0/0 is 0.
        let unheard = if devices == 1 { 0.0 } else { (m - k) / (k * (m - 1.0)) };
        let scale = rho * eta * eta * g * g;
        Terms {
            scheduling: unheard * scale * tau * tau,
            drift: (1.0 + mu * (1.0 - eta)) * scale * (tau * (tau - 1.0) * (2.0 * tau - 1.0) / 6.0),
            noise: scale * (tau * tau + tau - 1.0),
            heterogeneity: 2.0 * rho * eta * (tau - 1.0) * gamma,
        }
    }

    /// x(t+1) from x(t).
    pub fn step(&self, x: f64, rho: f64, eta: f64) -> f64 {
        self.contraction(rho, eta) * x + self.terms(rho, eta).sum()
    }

    /// The x that a round with rate η does not change, for any ρ: B/(1 − A). The limit at a constant
    /// rate.
    pub fn fixed_point(&self, eta: f64) -> f64 {
        self.terms(1.0, eta).sum() / self.pull(eta)
    }

    /// The loss bound's limit for decreasing rates: `(L/2)·2(τ−1)Γ/(μτ)`, the limit of the fixed point as
    /// η → 0.
    ///
    /// The paper has zero here. That holds for τ = 1 or Γ = 0 only: the heterogeneity term is of the
    /// order of η, as is the contraction. (The bound converges to it if Σ ρη diverges; if η falls so fast
    /// that the sum converges, the bound stops above it.)
    pub fn floor(&self) -> f64 {
        let BoundParameters { tau, mu, l, gamma, .. } = self.parameters;
        0.5 * l * (2.0 * (tau as f64 - 1.0) * gamma / (mu * tau as f64))
    }

    /// The bound over `rates.len()` rounds with η(t) = `rates[t]` and ρ(t) = `rhos[t]`.
    pub fn curve(&self, rates: &[f64], rhos: &[f64]) -> Result<Curve, TheoryError> {
        if rates.len() != rhos.len() {
            return Err(TheoryError::Length { name: "rho", got: rhos.len(), needed: rates.len() });
        }
        whole("rounds", rates.len() as u64, 0..=MAX_ROUNDS as u64, "")?;
        check_rates(rates, self.parameters.mu, self.parameters.tau)?;
        for &rho in rhos {
            real("rho", rho, |x| (0.0..=1.0).contains(&x), "in 0..=1")?;
        }
        let half_l = 0.5 * self.parameters.l;
        let mut parts = Parts { initial: self.parameters.distance0, terms: Terms::default() };
        let mut distances = Vec::with_capacity(rates.len() + 1);
        distances.push(self.parameters.distance0);
        for (&eta, &rho) in rates.iter().zip(rhos) {
            distances.push(self.step(distances[distances.len() - 1], rho, eta));
            let a = self.contraction(rho, eta);
            parts.initial *= a;
            parts.terms = parts.terms.map2(self.terms(rho, eta), |sum, new| a * sum + new);
        }
        Ok(Curve { half_l, distances, parts: parts.scaled(half_l) })
    }
}

/// min{1, 1/(μτ)}.
pub(super) fn largest_rate(mu: f64, tau: u64) -> f64 {
    f64::min(1.0, 1.0 / (mu * tau as f64))
}

/// Checks 0 < η ≤ min{1, 1/(μτ)}; the error names the first invalid round.
pub(super) fn check_rates(rates: &[f64], mu: f64, tau: u64) -> Result<(), TheoryError> {
    let limit = largest_rate(mu, tau);
    // Two ways to compute 1/(μτ) may differ in the last places.
    let allowed = |eta: f64| eta > 0.0 && eta <= limit * (1.0 + 1e-12);
    match rates.iter().position(|&eta| !allowed(eta)) {
        Some(t) => Err(TheoryError::Rate { t, eta: rates[t], limit, tau }),
        None => Ok(()),
    }
}

/// A bound over the rounds 0..=T.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    half_l: f64,
    /// x(0), …, x(T), bounds on E‖θ(t) − θ*‖².
    pub distances: Vec<f64>,
    /// The parts of the loss bound after the last round.
    pub parts: Parts,
}

impl Curve {
    /// (L/2)·x(t), the bound on E\[F(θ(t))\] − F*. `t` is at most the number of rounds.
    pub fn loss(&self, t: usize) -> f64 {
        self.half_l * self.distances[t]
    }

    /// The loss bound after the last round.
    pub fn final_loss(&self) -> f64 {
        self.loss(self.distances.len() - 1)
    }

    /// The loss bounds after 0, 1, …, T rounds.
    pub fn losses(&self) -> Vec<f64> {
        self.distances.iter().map(|x| self.half_l * x).collect()
    }

    /// The first t at which the loss bound is at most `target`.
    pub fn first_below(&self, target: f64) -> Option<usize> {
        self.distances.iter().position(|x| self.half_l * x <= target)
    }

    /// The first t at which the loss bound is within the share `tolerance` of `level` (0.1: 10 % to
    /// either side). With [`Bound::floor`] as level it is the time at which the bound has practically
    /// converged; never for a floor of zero.
    pub fn first_near(&self, level: f64, tolerance: f64) -> Option<usize> {
        let near = |x: &f64| level > 0.0 && (self.half_l * x - level).abs() <= tolerance * level;
        self.distances.iter().position(near)
    }
}

#[cfg(test)]
mod tests;
