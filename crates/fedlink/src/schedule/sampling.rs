//! Random selections with given probabilities, and weights of updates that make the mean unbiased.

use crate::base::rng::Stream;
use crate::base::units::DeviceId;

/// Madow's systematic sampling: exactly K = Σ p distinct indices, index i with probability p_i.
///
/// The items are laid out in `order`, each as long as its probability; those that contain u, u + 1, u + 2 …
/// are taken. `p` are probabilities in 0..=1 that add up to a whole number (up to rounding, which is scaled
/// away), `u` is uniform in [0, 1). The result ascends. Source: Madow (1949), as we read it.
///
/// ```
/// use fedlink::schedule::sampling::systematic;
/// assert_eq!(systematic(&[0.5, 0.25, 0.25, 1.0], &[0, 1, 2, 3], 0.6), [1, 3]);
/// ```
pub fn systematic(p: &[f64], order: &[usize], u: f64) -> Vec<usize> {
    let total: f64 = order.iter().map(|&i| p[i]).sum();
    let whole = libm::round(total);
    if whole < 1.0 {
        return Vec::new();
    }
    let (mut sum, mut taken) = (0.0, 0.0);
    let mut chosen = Vec::with_capacity(whole as usize);
    for (place, &i) in order.iter().enumerate() {
        sum += p[i];
        // The last end is exactly K, so that rounding leaves no device out.
        let end = if place + 1 == order.len() { whole } else { (sum * (whole / total)).min(whole) };
        let passed = libm::ceil(end - u).max(0.0);
        if passed > taken && p[i] > 0.0 {
            chosen.push(i);
        }
        taken = passed.max(taken);
    }
    chosen.sort_unstable();
    chosen
}

/// `count` of `devices`, or all if there are no more, every set of them as probable as any other; ascending.
pub fn uniform(mut devices: Vec<DeviceId>, count: usize, rng: &mut Stream) -> Vec<DeviceId> {
    rng.shuffle_prefix(&mut devices, count);
    devices.truncate(count);
    devices.sort_unstable();
    devices
}

/// `count` different indices, drawn one after another with probabilities in proportion to the weights of
/// those that are left; in the order of the draws. Where all weights that are left are zero, draws are
/// uniform.
///
/// `weights` are finite and ≥ 0. It takes O(M + count·log M).
pub fn successive(weights: &[f64], count: usize, rng: &mut Stream) -> Vec<usize> {
    // Scaled, so that no sum overflows.
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let scale = |weight: &f64| if largest > 0.0 { weight / largest } else { 0.0 };
    let mut sums = Sums::new(weights.iter().map(scale));
    let count = count.min(weights.len());
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count
        && let Some(index) = sums.draw(|| rng.uniform())
    {
        sums.clear(index);
        drawn.push(index);
    }
    if drawn.len() < count {
        let mut is_left = vec![true; weights.len()];
        drawn.iter().for_each(|&index| is_left[index] = false);
        let mut left: Vec<usize> = (0..weights.len()).filter(|&index| is_left[index]).collect();
        while drawn.len() < count {
            let place = ((rng.uniform() * left.len() as f64) as usize).min(left.len() - 1);
            drawn.push(left.swap_remove(place));
        }
    }
    drawn
}

/// Weights in a tree of sums: a draw and a change take O(log M).
struct Sums {
    /// Leaves from `leaves` on, the root at 1; every other node is the sum of its two children.
    nodes: Vec<f64>,
    leaves: usize,
}

impl Sums {
    fn new(weights: impl ExactSizeIterator<Item = f64>) -> Self {
        let leaves = weights.len().next_power_of_two();
        let mut nodes = vec![0.0; 2 * leaves];
        nodes[leaves..].iter_mut().zip(weights).for_each(|(node, weight)| *node = weight);
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node] + nodes[2 * node + 1];
        }
        Self { nodes, leaves }
    }

    /// An index with a weight above zero, in proportion to the weights; none if there is none.
    fn draw(&self, uniform: impl FnOnce() -> f64) -> Option<usize> {
        if self.nodes[1] <= 0.0 {
            return None;
        }
        let (mut rest, mut node) = (uniform() * self.nodes[1], 1);
        while node < self.leaves {
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            // Rounding may leave a rest that is not below the whole.
            if (rest < left || right <= 0.0) && left > 0.0 {
                node *= 2;
            } else {
                (rest, node) = (rest - left, 2 * node + 1);
            }
        }
        Some(node - self.leaves)
    }

    fn clear(&mut self, index: usize) {
        let mut node = self.leaves + index;
        self.nodes[node] = 0.0;
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1];
        }
    }
}

/// Des Raj's weights of devices drawn one after another without replacement: the j-th of K counts
/// π·[(1 − Σ_(i<j) p_(i))/p_(j) + (K − j)]/K, so that the mean over all draws is Σ π·Δ.
///
/// `drawn` holds (π, p) in the order of the draws, p being the probabilities of the first draw (they add up
/// to 1 over all devices). Source: Des Raj (1956), as we read it; checked by enumeration.
pub fn des_raj(drawn: &[(f64, f64)]) -> Vec<f64> {
    let k = drawn.len() as f64;
    let mut before = 0.0;
    let weight = |(j, (target, p)): (usize, &(f64, f64))| {
        let weight = target * ((1.0 - before) / p + (k - 1.0 - j as f64)) / k;
        before += p;
        weight.max(0.0)
    };
    drawn.iter().enumerate().map(weight).collect()
}

/// The weight of each device in the objective: 1/M, or its part of all samples (`target`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Target {
    /// 1/M each.
    #[default]
    Equal,
    /// In proportion to the samples.
    BySize,
}

impl Target {
    /// π of each of `devices`, adding up to 1 over `everyone`.
    pub fn weights(
        self,
        devices: &[DeviceId],
        everyone: usize,
        samples: impl Fn(DeviceId) -> usize,
    ) -> Vec<f64> {
        match self {
            Self::Equal => vec![1.0 / everyone.max(1) as f64; devices.len()],
            Self::BySize => {
                let total: f64 = DeviceId::all(everyone).map(|device| samples(device) as f64).sum();
                devices.iter().map(|&device| samples(device) as f64 / total.max(1.0)).collect()
            }
        }
    }
}

#[cfg(test)]
pub(in crate::schedule) mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};
    use proptest::prelude::*;

    /// The exact probability of each index in systematic sampling with this order: the sampled set is
    /// constant in U between the ends of the pieces modulo 1.
    pub fn inclusion(p: &[f64], order: &[usize]) -> Vec<f64> {
        let k = p.iter().sum::<f64>().round();
        let mut ends: Vec<f64> = order
            .iter()
            .scan(0.0, |sum, &i| {
                *sum += p[i];
                Some(*sum)
            })
            .map(|end| end - end.floor())
            .chain([0.0, 1.0])
            .collect();
        ends.sort_by(f64::total_cmp);
        let mut inclusion = vec![0.0; p.len()];
        // Ends that are one but for rounding are left out.
        for pair in ends.windows(2).filter(|pair| pair[1] - pair[0] > 1e-14) {
            let chosen = systematic(p, order, 0.5 * (pair[0] + pair[1]));
            assert_eq!(chosen.len() as f64, k, "{p:?}");
            chosen.iter().for_each(|&i| inclusion[i] += pair[1] - pair[0]);
        }
        inclusion
    }

    /// Probabilities that add up to a whole number.
    fn probabilities() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.01..1.0f64, 1..9).prop_map(|raw| {
            let k = (raw.iter().sum::<f64>() * 0.7).floor().max(1.0).min(raw.len() as f64);
            // Scaled up to Σ = k; the excess over 1 goes to the others.
            let mut p = raw;
            for _ in 0..200 {
                let (fixed, free): (f64, f64) =
                    p.iter().fold((0.0, 0.0), |(a, b), &x| if x >= 1.0 { (a + 1.0, b) } else { (a, b + x) });
                let scale = if free > 0.0 { (k - fixed) / free } else { 1.0 };
                p.iter_mut().for_each(|x| *x = if *x >= 1.0 { 1.0 } else { (*x * scale).min(1.0) });
            }
            p
        })
    }

    proptest! {
        #[test]
        fn systematic_sampling_includes_each_with_its_probability_and_exactly_k(p in probabilities()) {
            let order: Vec<usize> = (0..p.len()).rev().collect();
            let inclusion = inclusion(&p, &order);
            for (got, wanted) in inclusion.iter().zip(&p) {
                prop_assert!((got - wanted).abs() < 1e-12, "{:?} {:?}", inclusion, p);
            }
        }
    }

    #[test]
    fn systematic_sampling_is_exact_where_the_arithmetic_is() {
        // Whole 64ths: the sampled set is constant between them, so that their middles cover all values of U.
        let p = [5.0, 64.0, 11.0, 17.0, 31.0, 1.0, 40.0, 23.0].map(|part| part / 64.0);
        let k = p.iter().sum::<f64>() as usize;
        let orders = [[0, 1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 7, 4, 2, 5]];
        for order in orders {
            let mut taken = [0u32; 8];
            for middle in 0..64 {
                let chosen = systematic(&p, &order, (f64::from(middle) + 0.5) / 64.0);
                assert_eq!(chosen.len(), k);
                chosen.iter().for_each(|&i| taken[i] += 1);
            }
            assert_eq!(taken.map(|count| f64::from(count) / 64.0), p, "{order:?}");
        }
    }

    /// All ordered samples of K out of p with their probabilities.
    pub fn ordered(p: &[f64], k: usize) -> Vec<(Vec<usize>, f64)> {
        let mut samples = vec![(Vec::new(), 1.0)];
        for _ in 0..k {
            let mut longer = Vec::new();
            for (drawn, probability) in samples {
                let left: f64 = 1.0 - drawn.iter().map(|&i: &usize| p[i]).sum::<f64>();
                for i in (0..p.len()).filter(|i| !drawn.contains(i)) {
                    let mut next = drawn.clone();
                    next.push(i);
                    longer.push((next, probability * p[i] / left));
                }
            }
            samples = longer;
        }
        samples
    }

    #[test]
    fn the_shares_of_des_raj_are_unbiased_by_enumeration() {
        let p = [0.1, 0.2, 0.3, 0.4];
        let target = [0.25; 4];
        for k in 1..=4 {
            let mut mean = [0.0; 4];
            for (drawn, probability) in ordered(&p, k) {
                let pairs: Vec<(f64, f64)> = drawn.iter().map(|&i| (target[i], p[i])).collect();
                for (&i, weight) in drawn.iter().zip(des_raj(&pairs)) {
                    mean[i] += probability * weight;
                }
            }
            for (got, wanted) in mean.iter().zip(&target) {
                assert!((got - wanted).abs() < 1e-12, "K = {k}: {mean:?}");
            }
        }
    }

    #[test]
    fn successive_draws_have_the_probabilities_of_ordered_samples() {
        let p = [0.1, 0.2, 0.3, 0.4];
        let n = 100_000;
        let mut counts = std::collections::BTreeMap::new();
        let mut rng = stream(3, Purpose::Test, 0, 0);
        for _ in 0..n {
            *counts.entry(successive(&p.map(|p| p * 7.0), 2, &mut rng)).or_insert(0u32) += 1;
        }
        for (drawn, probability) in ordered(&p, 2) {
            let (mean, deviation) =
                (f64::from(n) * probability, (f64::from(n) * probability * (1.0 - probability)).sqrt());
            let count = f64::from(counts[&drawn]);
            assert!((count - mean).abs() < 4.5 * deviation, "{drawn:?}: {count} of {mean}");
        }
        // Weights of zero are drawn last, each once.
        let all = successive(&[0.0, 5.0, 0.0], 3, &mut rng);
        assert_eq!((all[0], all.len()), (1, 3));
        assert_eq!(successive(&[f64::MAX, f64::MAX], 2, &mut rng).len(), 2);
    }
}
