//! Clustered sampling: one draw from each of K distributions.

use crate::base::state::{Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::RoundRecord;
use crate::schedule::received::LastUpdates;
use crate::schedule::sampling::Target;
use crate::schedule::{Bias, Entries, Pick, Policy, Reports, Schedule, Selection, Trains, View, Weight};
use serde::{Deserialize, Serialize};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<ClusteredConfig>();

/// The property that devices of one cluster share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum By {
    /// Their sizes.
    #[default]
    Size,
    /// Their last updates.
    Similarity,
}

/// `[schedule.clustered]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ClusteredConfig {
    /// the property that a cluster shares
    #[key(default = By::Size, allowed = "\"size\" | \"similarity\" (of the last updates)")]
    pub by: By,
    /// π, weight of each device in the objective
    #[key(default = Target::BySize, allowed = "\"equal\" | \"by-size\"")]
    pub target: Target,
}

impl PartConfig for ClusteredConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "clustered";
    const FAMILY: &'static str = "unbiased";
    const MEANING: &'static str =
        "one draw from each of K clusters of devices alike; a device drawn j times counts j/K; unbiased";

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        let last = (self.by == By::Similarity).then(|| LastUpdates::new(scope.devices as usize));
        Ok(Box::new(Clustered { target: self.target, last, chosen: Vec::new() }))
    }
}

/// K distributions r_k over the devices with Σ_m r_km = 1 and Σ_k r_km = K·π_m, and one draw from each; a
/// device that was drawn j times sends once and has the weight j/K. Bits are proportional to weights.
///
/// By size: the devices in the order of decreasing sizes fill one distribution after another with the masses
/// K·π_m. By similarity: clusters of Ward's method on the last received updates (Euclidean distances, never
/// seen = 0), cut so that none is heavier than 1; the K heaviest are kept, the others fill their remaining
/// mass. A device of mass above 1 first has distributions of its own. Source: Fraboni, Vidal, Kameni and
/// Lorenzi, *Clustered Sampling* (2021), as we read it.
///
/// Invariants: every device has the weight π on average, with a variance that is never above that of
/// [multinomial](super::multinomial) sampling; masses are whole numbers, so that both sums are exact. With
/// equal sizes and K | M by size it is a partition into K blocks. A device that is drawn and may not send
/// adds nothing, and the others keep their weights: normalizing over the devices that send would be biased.
/// By similarity the state is of up to M·d + M² numbers.
#[derive(Clone, Debug)]
pub struct Clustered {
    target: Target,
    last: Option<LastUpdates>,
    /// The devices that were drawn before training, ascending, with their numbers of draws.
    chosen: Vec<(DeviceId, u32)>,
}

/// A distribution over devices: whole masses, which add up to the same number in all of them.
type Distribution = Vec<(usize, u128)>;

/// Fills distributions of mass `full` one after another with the `masses` of devices, in their order.
fn fill(masses: impl IntoIterator<Item = (usize, u128)>, full: u128, open: &mut [Distribution]) {
    let room = |distribution: &Distribution| full - distribution.iter().map(|(_, mass)| mass).sum::<u128>();
    let mut left = open.iter_mut();
    let mut now = left.next().map(|one| (room(one), one));
    for (device, mut mass) in masses {
        while mass > 0
            && let Some((space, distribution)) = &mut now
        {
            let part = mass.min(*space);
            if part > 0 {
                distribution.push((device, part));
            }
            (mass, *space) = (mass - part, *space - part);
            if *space == 0 {
                now = left.next().map(|one| (room(one), one));
            }
        }
    }
}

/// The K distributions by size, of mass Σ `sizes` each.
fn by_size(sizes: &[u64], k: usize) -> Vec<Distribution> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|&a, &b| sizes[b].cmp(&sizes[a]).then(a.cmp(&b)));
    let full = sizes.iter().map(|&size| u128::from(size)).sum();
    let mut distributions = vec![Distribution::new(); k];
    fill(order.into_iter().map(|m| (m, u128::from(sizes[m]) * k as u128)), full, &mut distributions);
    distributions
}

/// The K distributions by similarity, of mass Σ `sizes` each.
fn by_similarity(sizes: &[u64], k: usize, distance: impl Fn(usize, usize) -> f64) -> Vec<Distribution> {
    let full: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
    let mut distributions = Vec::with_capacity(k);
    let mut masses: Vec<u128> = sizes.iter().map(|&size| u128::from(size) * k as u128).collect();
    for (m, mass) in masses.iter_mut().enumerate() {
        while *mass >= full && full > 0 {
            distributions.push(vec![(m, full)]);
            *mass -= full;
        }
    }
    let mut clusters = cut(&ward(sizes.len(), distance), &masses, full);
    let mass_of = |cluster: &Vec<usize>| cluster.iter().map(|&m| masses[m]).sum::<u128>();
    clusters.sort_by(|a, b| mass_of(b).cmp(&mass_of(a)).then(a.cmp(b)));
    let kept = (k - distributions.len()).min(clusters.len());
    let rest = clusters.split_off(kept);
    let own = distributions.len();
    let with_mass = |m: usize| (m, masses[m]);
    distributions.extend(clusters.into_iter().map(|cluster| {
        cluster.into_iter().map(with_mass).filter(|(_, mass)| *mass > 0).collect::<Distribution>()
    }));
    fill(rest.into_iter().flatten().map(with_mass), full, &mut distributions[own..]);
    distributions
}

/// The merges of Ward's method over `count` points at these distances, in an order in which parts precede the
/// whole: merge i makes the cluster `count` + i of two earlier ones.
///
/// By chains of nearest neighbors (Murtagh 1983), which take O(count²): the update of Lance and Williams on
/// squared distances, d²(ab, c) = ((n_a + n_c)·d²(a, c) + (n_b + n_c)·d²(b, c) − n_c·d²(a, b))/(n_a + n_b +
/// n_c).
fn ward(count: usize, distance: impl Fn(usize, usize) -> f64) -> Vec<(usize, usize)> {
    let mut squares: Vec<f64> =
        (0..count * count).map(|i| distance(i / count, i % count)).map(|d| d * d).collect();
    let mut sizes = vec![1.0; count];
    // Which cluster is in each row; a row that was merged into another is out.
    let mut names: Vec<Option<usize>> = (0..count).map(Some).collect();
    let (mut merges, mut chain) = (Vec::with_capacity(count.saturating_sub(1)), Vec::<usize>::new());
    while merges.len() + 1 < count {
        if chain.is_empty() {
            chain.extend(names.iter().position(Option::is_some));
        }
        let (a, before) = (chain[chain.len() - 1], chain.iter().rev().nth(1).copied());
        let others = (0..count).filter(|&b| b != a && names[b].is_some());
        // Of equals the one before in the chain, so that it ends; then the lower.
        let nearer = |&b: &usize, &c: &usize| {
            let first = |row: usize| Some(row) != before;
            squares[a * count + b].total_cmp(&squares[a * count + c]).then(first(b).cmp(&first(c)))
        };
        let Some(b) = others.min_by(nearer) else { break };
        // One that is in the chain elsewhere can only be there by rounding: the two are merged then too.
        if !chain.contains(&b) {
            chain.push(b);
            continue;
        }
        chain.retain(|&row| row != a && row != b);
        let (low, high) = (a.min(b), a.max(b));
        merges.push((names[low].unwrap_or_default(), names[high].unwrap_or_default()));
        let between = squares[a * count + b];
        for c in (0..count).filter(|&c| c != low && c != high && names[c].is_some()) {
            let (n_a, n_b, n_c) = (sizes[low], sizes[high], sizes[c]);
            let merged = ((n_a + n_c) * squares[low * count + c] + (n_b + n_c) * squares[high * count + c]
                - n_c * between)
                / (n_a + n_b + n_c);
            squares[low * count + c] = merged.max(0.0);
            squares[c * count + low] = merged.max(0.0);
        }
        sizes[low] += sizes[high];
        (names[low], names[high]) = (Some(count + merges.len() - 1), None);
    }
    merges
}

/// The largest clusters of a tree of `merges` that are not heavier than `full`, each ascending. Every leaf is
/// at most that heavy.
fn cut(merges: &[(usize, usize)], masses: &[u128], full: u128) -> Vec<Vec<usize>> {
    let count = masses.len();
    let mut weights = masses.to_vec();
    merges.iter().for_each(|&(a, b)| weights.push(weights[a] + weights[b]));
    let mut clusters = Vec::new();
    let mut waiting = vec![weights.len().saturating_sub(1)];
    while let Some(node) = waiting.pop().filter(|_| count > 0) {
        if node >= count && weights[node] > full {
            waiting.extend([merges[node - count].0, merges[node - count].1]);
            continue;
        }
        let (mut members, mut inside) = (Vec::new(), vec![node]);
        while let Some(one) = inside.pop() {
            match one.checked_sub(count) {
                None => members.push(one),
                Some(merge) => inside.extend([merges[merge].0, merges[merge].1]),
            }
        }
        members.sort_unstable();
        clusters.push(members);
    }
    clusters
}

impl Clustered {
    fn distributions(&mut self, view: &View) -> Vec<Distribution> {
        let size = |device: DeviceId| match self.target {
            Target::Equal => 1,
            Target::BySize => view.samples(device) as u64,
        };
        let sizes: Vec<u64> = view.everyone().into_iter().map(size).collect();
        match &mut self.last {
            None => by_size(&sizes, view.k),
            Some(last) => {
                last.refresh();
                by_similarity(&sizes, view.k, |a, b| last.distance(a, b))
            }
        }
    }
}

impl Persist for Clustered {
    fn save(&self) -> State {
        self.last.as_ref().map(LastUpdates::save).unwrap_or_default()
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        match &mut self.last {
            Some(last) => last.load(&state),
            None => state.expect_none(),
        }
    }
}

impl Policy for Clustered {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let mut rng = view.rng(0);
        let mut counts = vec![0u32; view.links.devices()];
        for distribution in self.distributions(view) {
            let full = distribution.iter().map(|(_, mass)| mass).sum::<u128>();
            // Masses are at most the number of all samples, so that a whole number below it is drawn exactly.
            let mut rest = u128::from(rng.below(u64::try_from(full).unwrap_or(u64::MAX)));
            for (m, mass) in distribution {
                if rest < mass {
                    counts[m] += 1;
                    break;
                }
                rest -= mass;
            }
        }
        let drawn = DeviceId::all(counts.len()).zip(counts).filter(|(_, count)| *count > 0);
        self.chosen = drawn.collect();
        self.chosen.iter().map(|(device, _)| *device).collect()
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Unbiased, Trains::Scheduled).with_weights()
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        let pick = |&(device, count): &(DeviceId, u32)| {
            let weight = f64::from(count) / view.k as f64;
            Pick { device, bit_weight: weight, weight: Weight::Own(weight) }
        };
        let mut there = reports.devices.clone();
        there.sort_unstable();
        let sends = |(device, _): &&(DeviceId, u32)| there.binary_search(device).is_ok();
        Schedule { picks: self.chosen.iter().filter(sends).map(pick).collect() }
    }

    fn receive(&mut self, device: DeviceId, update: &dyn Entries) {
        if let Some(last) = &mut self.last {
            last.receive(device, update);
        }
    }

    fn observe(&mut self, outcome: &RoundRecord) {
        if let Some(last) = &mut self.last {
            outcome.transmissions.iter().for_each(|sent| last.note_scheduled(sent.device));
        }
    }

    fn state_numbers(&self, devices: u64, dim: u64) -> u128 {
        // Ward's method works on a copy of the distances.
        let copy = 2 * u128::from(devices) * u128::from(devices);
        if self.last.is_some() { LastUpdates::numbers(devices, dim) + copy } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use crate::schedule::received::tests::Dense;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn points() -> impl Strategy<Value = Vec<(u64, [f32; 2])>> {
        prop::collection::vec((1u64..40, [-5.0..5.0f32, -5.0..5.0f32]), 1..=8)
    }

    fn distance(a: [f32; 2], b: [f32; 2]) -> f64 {
        (f64::from(a[0]) - f64::from(b[0])).hypot(f64::from(a[1]) - f64::from(b[1]))
    }

    /// r_km as shares, and whether both sums are exact.
    fn shares(distributions: &[Distribution], sizes: &[u64], k: usize) -> Vec<Vec<f64>> {
        let full: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
        assert_eq!(distributions.len(), k);
        let mut by_device = vec![0u128; sizes.len()];
        let mut table = Vec::new();
        for distribution in distributions {
            assert_eq!(distribution.iter().map(|(_, mass)| mass).sum::<u128>(), full, "Σ_m r = 1");
            let mut row = vec![0.0; sizes.len()];
            for &(m, mass) in distribution {
                by_device[m] += mass;
                row[m] += mass as f64 / full as f64;
            }
            table.push(row);
        }
        for (mass, &size) in by_device.iter().zip(sizes) {
            assert_eq!(*mass, u128::from(size) * k as u128, "Σ_k r = K·π");
        }
        table
    }

    /// Mean and variance of Σ α·x over all draws, one after another of every distribution.
    fn moments(table: &[Vec<f64>], x: &[f64]) -> (f64, f64) {
        let mut outcomes = vec![(1.0, 0.0)];
        for row in table {
            let support = |m: &usize| row[*m] > 0.0;
            let longer = outcomes.iter().flat_map(|&(p, sum)| {
                (0..x.len()).filter(support).map(move |m| (p * row[m], sum + x[m] / table.len() as f64))
            });
            outcomes = longer.collect();
        }
        let mean: f64 = outcomes.iter().map(|(p, sum)| p * sum).sum();
        (mean, outcomes.iter().map(|(p, sum)| p * (sum - mean).powi(2)).sum())
    }

    proptest! {
        #[test]
        fn both_sums_are_exact_and_mean_and_variance_are_those_of_the_theorem(
            points in points(),
            k in 1usize..=5,
        ) {
            let points = &points[..points.len().min(6)];
            let k = k.min(points.len());
            let sizes: Vec<u64> = points.iter().map(|(size, _)| *size).collect();
            let total: u64 = sizes.iter().sum();
            let x: Vec<f64> = points.iter().map(|(_, at)| f64::from(at[0])).collect();
            let pi = |m: usize| sizes[m] as f64 / total as f64;
            let wanted: f64 = x.iter().enumerate().map(|(m, x)| pi(m) * x).sum();
            let square: f64 = x.iter().enumerate().map(|(m, x)| pi(m) * x * x).sum();
            let multinomial = (square - wanted * wanted) / k as f64;
            let near = |a: usize, b: usize| distance(points[a].1, points[b].1);
            for distributions in [by_size(&sizes, k), by_similarity(&sizes, k, near)] {
                let table = shares(&distributions, &sizes, k);
                let (mean, variance) = moments(&table, &x);
                prop_assert!((mean - wanted).abs() < 1e-12, "{} {}", mean, wanted);
                prop_assert!(variance <= multinomial + 1e-12, "{} {}", variance, multinomial);
            }
        }

        /// The clusters of the tree against plain agglomeration by the increase of the sum of squares around
        /// the means.
        #[test]
        fn the_tree_is_that_of_plain_agglomeration(points in points()) {
            let at: Vec<[f64; 2]> = points.iter().map(|(_, at)| at.map(f64::from)).collect();
            let mut plain: Vec<Vec<usize>> = (0..at.len()).map(|m| vec![m]).collect();
            let mut wanted = BTreeSet::new();
            while plain.len() > 1 {
                let sum = |set: &Vec<usize>, i: usize| set.iter().map(|&m| at[m][i]).sum::<f64>();
                let mean = |set: &Vec<usize>| [0, 1].map(|i| sum(set, i) / set.len() as f64);
                let increase = |a: &Vec<usize>, b: &Vec<usize>| {
                    let (n, m) = (a.len() as f64, b.len() as f64);
                    let (x, y) = (mean(a), mean(b));
                    n * m / (n + m) * ((x[0] - y[0]).powi(2) + (x[1] - y[1]).powi(2))
                };
                let pairs = (0..plain.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
                let best = pairs.min_by(|&(a, b), &(c, d)| {
                    increase(&plain[a], &plain[b]).total_cmp(&increase(&plain[c], &plain[d]))
                });
                let (i, j) = best.unwrap();
                let taken = plain.remove(i);
                plain[j].extend(taken);
                plain[j].sort_unstable();
                wanted.insert(plain[j].clone());
            }
            let mut sets: Vec<Vec<usize>> = (0..at.len()).map(|m| vec![m]).collect();
            for (a, b) in ward(at.len(), |a, b| distance(points[a].1, points[b].1)) {
                let mut merged = [&sets[a][..], &sets[b][..]].concat();
                merged.sort_unstable();
                sets.push(merged);
            }
            let got: BTreeSet<Vec<usize>> = sets.into_iter().filter(|set| set.len() > 1).collect();
            prop_assert_eq!(got, wanted);
        }
    }

    #[test]
    fn with_equal_sizes_it_is_a_partition_into_blocks() {
        for distributions in by_size(&[7; 12], 4).chunks(1) {
            assert_eq!(distributions[0].len(), 3);
        }
        // A device of more than one mass has distributions of its own, in both forms.
        for distributions in [by_size(&[70, 10, 10, 10], 2), by_similarity(&[70, 10, 10, 10], 2, |_, _| 1.0)]
        {
            assert_eq!(distributions[0], [(0, 100)]);
            assert_eq!(distributions[1].len(), 4);
        }
    }

    #[test]
    fn updates_that_are_alike_are_in_one_cluster_so_that_one_of_each_kind_is_drawn() {
        let config = ClusteredConfig { by: By::Similarity, target: Target::Equal };
        let scope = Scope { devices: 6, ..Scope::default() };
        let mut policy = config.build(&scope, &()).unwrap();
        for m in 0..6u32 {
            let update = if m % 2 == 0 { [1.0, 0.1 * m as f32] } else { [-9.0, 0.1 * m as f32] };
            policy.receive(DeviceId(m), &Dense(&update));
        }
        let bench = Bench::new(6, 2);
        let mut seen = BTreeSet::new();
        for t in 0..60 {
            let chosen = bench.at(t, |view| policy.candidates(view));
            assert_eq!(chosen.iter().map(|device| device.0 % 2).sum::<u32>(), 1, "{chosen:?}");
            seen.extend(chosen);
        }
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn an_absent_device_adds_nothing_and_no_other_weight_grows() {
        let bench = Bench::new(4, 2).with_equal_sizes();
        let mut policy = ClusteredConfig::default().build(&Scope::default(), &()).unwrap();
        for t in 0..20 {
            bench.at(t, |view| {
                let chosen = policy.candidates(view);
                let there = vec![chosen[0]];
                let schedule = policy.select(view, &Reports::new(there, 0, vec![]));
                assert_eq!(schedule.picks[0].weight, Weight::Own(0.5));
            });
        }
    }
}
