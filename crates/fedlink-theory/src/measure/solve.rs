//! Minima of strongly convex functions, with a bound on their error.

/// Pairs of steps and gradient changes that are kept.
const HISTORY: usize = 12;
/// Evaluations after which the search ends, converged or not.
const MAX_EVALUATIONS: usize = 5000;

/// The end of a search.
#[derive(Clone, Debug)]
pub(crate) struct Minimum {
    /// The last θ, d entries.
    pub point: Vec<f64>,
    /// The value at it.
    pub value: f64,
    /// ‖∇f‖²/(2μ) at it: by strong convexity the value is at most this much above the minimum.
    pub gap: f64,
}

/// Minimizes a μ-strongly convex function by L-BFGS until the gap is at most `tolerance`.
///
/// `function` writes the gradient and returns the value. Source: Nocedal & Wright, algorithms 7.4 and
/// 7.5, with backtracking to sufficient decrease; strong convexity makes every kept curvature sᵀy ≥ μ‖s‖²
/// positive. The returned gap is the one reached.
pub(crate) fn minimize(
    start: &[f64],
    mu: f64,
    tolerance: f64,
    mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> Minimum {
    let mut point = start.to_vec();
    let mut gradient = vec![0.0; point.len()];
    let mut value = function(&point, &mut gradient);
    let mut evaluations = 1;
    let mut history: Vec<(Vec<f64>, Vec<f64>, f64)> = Vec::new();
    let (mut next, mut next_gradient) = (point.clone(), gradient.clone());
    loop {
        let gap = dot(&gradient, &gradient) / (2.0 * mu);
        if gap <= tolerance || evaluations >= MAX_EVALUATIONS {
            return Minimum { point, value, gap };
        }
        let direction = direction(&gradient, &history);
        let slope = dot(&direction, &gradient);
        // Without history the direction is −∇f, whose length is unrelated to the distance.
        let mut step = if history.is_empty() { 1.0 / (1.0 + dot(&gradient, &gradient).sqrt()) } else { 1.0 };
        loop {
            next.iter_mut().zip(&point).zip(&direction).for_each(|((n, p), d)| *n = p + step * d);
            let next_value = function(&next, &mut next_gradient);
            evaluations += 1;
            if next_value <= value + 1e-4 * step * slope {
                value = next_value;
                break;
            }
            step *= 0.5;
            if evaluations >= MAX_EVALUATIONS || step < 1e-20 {
                // Rounding hides any further decrease.
                return Minimum { point, value, gap };
            }
        }
        let moved: Vec<f64> = next.iter().zip(&point).map(|(n, p)| n - p).collect();
        let turned: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(n, g)| n - g).collect();
        let curvature = dot(&moved, &turned);
        if curvature > 0.0 {
            history.push((moved, turned, curvature));
            if history.len() > HISTORY {
                history.remove(0);
            }
        }
        std::mem::swap(&mut point, &mut next);
        std::mem::swap(&mut gradient, &mut next_gradient);
    }
}

/// −H·∇f, where H approximates the inverse curvature from the history (the two-loop recursion).
fn direction(gradient: &[f64], history: &[(Vec<f64>, Vec<f64>, f64)]) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut factors = Vec::with_capacity(history.len());
    for (moved, turned, curvature) in history.iter().rev() {
        let factor = dot(moved, &direction) / curvature;
        direction.iter_mut().zip(turned).for_each(|(d, y)| *d -= factor * y);
        factors.push(factor);
    }
    if let Some((_, turned, curvature)) = history.last() {
        let scale = curvature / dot(turned, turned);
        direction.iter_mut().for_each(|d| *d *= scale);
    }
    for ((moved, turned, curvature), factor) in history.iter().zip(factors.into_iter().rev()) {
        let change = factor - dot(turned, &direction) / curvature;
        direction.iter_mut().zip(moved).for_each(|(d, s)| *d += change * s);
    }
    direction
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quadratic_is_minimized_at_the_solution_of_its_linear_system() {
        // f = ½ Σ s_i (x_i − c_i)², condition number 10⁴.
        let s: Vec<f64> = (0..30).map(|i| 10f64.powf(-2.0 + 4.0 * f64::from(i) / 29.0)).collect();
        let c: Vec<f64> = (0..30).map(|i| f64::from(i % 7) - 3.0).collect();
        let minimum = minimize(&[0.0; 30], 1e-2, 1e-14, |x, gradient| {
            (0..30).for_each(|i| gradient[i] = s[i] * (x[i] - c[i]));
            (0..30).map(|i| 0.5 * s[i] * (x[i] - c[i]).powi(2)).sum()
        });
        assert!(minimum.gap <= 1e-14 && minimum.value <= minimum.gap, "{minimum:?}");
        assert!(minimum.point.iter().zip(&c).all(|(x, c)| (x - c).abs() < 1e-5));
    }

    #[test]
    fn a_search_that_cannot_reach_its_tolerance_returns_its_gap() {
        let minimum = minimize(&[3.0], 1.0, 0.0, |x, gradient| {
            gradient[0] = x[0] + 1e-30;
            0.5 * x[0] * x[0]
        });
        assert!(minimum.gap > 0.0);
    }
}
