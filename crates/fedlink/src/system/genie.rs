//! Choices from information that no server can have: the update of every device, and the loss on all data.
//!
//! A part of the engine, not of a policy: a policy has a server's information only. A policy may name a
//! genie; the simulator lets it choose, and passes on only the reports of the chosen devices.

use crate::base::parallel::prelude::*;
use crate::base::units::{Bits, DeviceId};
use crate::compress::Encoded;
use crate::error::Error;
use crate::learn::task::Task;
use crate::schedule::{Genie, Reports};
use crate::spec::{ConfigError, Spec};
use crate::system::device::Sender;
use crate::system::fleet::{Fleet, Trained};
use crate::system::server::{Call, Server};

/// Devices that a genie may compare.
const MAX_DEVICES: u64 = 1000;
/// Evaluations of the whole training set per round.
const MAX_EVALUATIONS: u64 = 4000;
/// The largest number of sets for which all are tried.
const MAX_SETS: f64 = 1e5;

/// Rejects a genie that would take too long.
pub(crate) fn check(genie: Genie, spec: &Spec, task: &dyn Task) -> Result<(), ConfigError> {
    let (name, devices, k) = (spec.parts().policy.name(), spec.data.devices, spec.schedule.k);
    let refuse = |problem: String| Err(ConfigError::new("schedule.policy", problem));
    if devices > MAX_DEVICES {
        return refuse(format!(
            "is \"{name}\", which compares all updates of a round and is for up to {MAX_DEVICES} devices, \
             but data.devices is {devices}"
        ));
    }
    if genie == Genie::Loss {
        if devices * k > MAX_EVALUATIONS {
            return refuse(format!(
                "is \"{name}\", which evaluates the training set M·K times per round and is for up to \
                 {MAX_EVALUATIONS} of them, but data.devices · schedule.k is {}",
                devices * k
            ));
        }
        if !task.has_training_loss() {
            return refuse(format!(
                "is \"{name}\", which needs the loss on all training data, and the task does not give it"
            ));
        }
    }
    Ok(())
}

/// The reports of the devices that the genie of the server's policy chooses among those that trained; all
/// reports without a genie.
pub(crate) fn choose(
    server: &Server,
    fleet: &Fleet,
    trained: &Trained,
    call: &Call,
    reports: Reports,
) -> Result<Reports, Error> {
    let Some(genie) = server.genie() else { return Ok(reports) };
    let known = server.known()?;
    let mut kept: Vec<(DeviceId, &[f32])> = trained.kept().collect();
    kept.retain(|(device, _)| reports.index_of(*device).is_some());
    kept.sort_unstable_by_key(|(device, _)| *device);
    let budget = |device: DeviceId| -> Bits {
        let grants = server.radio().grant(&vec![device; call.k], &vec![1.0; call.k], known);
        grants.first().map_or(Bits(0.0), |grant| grant.budget)
    };
    let budgets: Vec<Bits> = kept.iter().map(|(device, _)| budget(*device)).collect();
    let compress = |(&(device, update), &budget): (&(DeviceId, &[f32]), &Bits)| {
        let mut out = Encoded::default();
        fleet.encoder().encode(update, budget, Sender { t: call.t, device }, &mut out)?;
        Ok(out)
    };
    let sent: Vec<Encoded> = kept.par_iter().zip(&budgets).map(compress).collect::<Result<_, Error>>()?;
    let rows = match genie {
        Genie::Align => {
            let updates: Vec<&[f32]> = kept.iter().map(|(_, update)| *update).collect();
            best_aligned(&Alignment::new(&updates, &sent), call.k)
        }
        Genie::Loss => {
            let scale = server.rate(call.t) / call.k as f32;
            lowest_loss(server.theta(), &sent, call.k, scale, |theta| {
                fleet.task().training_loss(theta).map_err(Error::Evaluation)
            })?
        }
    };
    let devices: Vec<DeviceId> = rows.into_iter().map(|row| kept[row].0).collect();
    let rows = devices.iter().filter_map(|device| reports.index_of(*device));
    let values = rows.flat_map(|row| reports.row(row).to_vec()).collect();
    Ok(Reports::new(devices, reports.asks(), values))
}

/// The alignment of sets of compressed updates with the mean of all updates.
pub(crate) struct Alignment {
    /// b_m = ⟨Δ̂_m, Δ̄⟩.
    along: Vec<f64>,
    /// G, row after row.
    products: Vec<f64>,
}

impl Alignment {
    /// Of updates and their transmitted parts.
    pub(crate) fn new(updates: &[&[f32]], sent: &[Encoded]) -> Self {
        let (count, dim) = (updates.len(), updates.first().map_or(0, |update| update.len()));
        let mut mean = vec![0.0f64; dim];
        for update in updates {
            mean.iter_mut().zip(*update).for_each(|(sum, &entry)| *sum += f64::from(entry) / count as f64);
        }
        let along = sent.iter().map(|one| product(one, &mean)).collect();
        let row = |one: &Encoded| {
            let mut dense = vec![0.0f64; dim];
            one.for_each(|i, value| dense[i as usize] = f64::from(value));
            sent.iter().map(|other| product(other, &dense)).collect::<Vec<f64>>()
        };
        Self { along, products: sent.par_iter().map(row).collect::<Vec<Vec<f64>>>().concat() }
    }

    /// (bᵀ1_S)²/(1_SᵀG1_S) with the sign of bᵀ1_S; 0 if the set sends nothing.
    pub(crate) fn of(&self, set: &[usize]) -> f64 {
        let along: f64 = set.iter().map(|&m| self.along[m]).sum();
        let count = self.along.len();
        let length: f64 = set
            .iter()
            .flat_map(|&m| set.iter().map(move |&j| (m, j)))
            .map(|(m, j)| self.products[m * count + j])
            .sum();
        if length > 0.0 { along * along.abs() / length } else { 0.0 }
    }
}

fn product(sent: &Encoded, dense: &[f64]) -> f64 {
    let mut sum = 0.0;
    sent.for_each(|i, value| sum += f64::from(value) * dense[i as usize]);
    sum
}

/// The set of `k` (or all, if there are fewer) with the largest alignment, ascending.
pub(crate) fn best_aligned(alignment: &Alignment, k: usize) -> Vec<usize> {
    let count = alignment.along.len();
    let k = k.min(count);
    let sets = (0..k).fold(1.0, |sets, i| sets * (count - i) as f64 / (i + 1) as f64);
    if sets <= MAX_SETS {
        return best_of_all(alignment, k);
    }
    let mut set: Vec<usize> = Vec::with_capacity(k);
    let with = |set: &[usize], new: usize, out: Option<usize>| -> f64 {
        let rest = (0..set.len()).filter(|i| Some(*i) != out).map(|i| set[i]);
        alignment.of(&rest.chain([new]).collect::<Vec<usize>>())
    };
    // Ties go to the lower device number.
    let best = |set: &[usize], out: Option<usize>| {
        let free: Vec<usize> = (0..count).filter(|m| !set.contains(m)).collect();
        let values: Vec<f64> = free.par_iter().map(|&m| with(set, m, out)).collect();
        let index = (0..free.len()).rev().max_by(|&a, &b| values[a].total_cmp(&values[b]));
        index.map(|index| (free[index], values[index]))
    };
    while let Some((device, _)) = best(&set, None).filter(|_| set.len() < k) {
        set.push(device);
    }
    // Each exchange increases the alignment, so none repeats; the loop is bounded nevertheless.
    for _ in 0..4 * k {
        let now = alignment.of(&set);
        let exchange = (0..set.len()).find_map(|out| {
            best(&set, Some(out)).filter(|(_, value)| *value > now).map(|(device, _)| (out, device))
        });
        let Some((out, device)) = exchange else { break };
        set[out] = device;
    }
    set.sort_unstable();
    set
}

/// The best of all sets of `k`, the first of equals in lexicographic order.
fn best_of_all(alignment: &Alignment, k: usize) -> Vec<usize> {
    let count = alignment.along.len();
    let mut set: Vec<usize> = (0..k).collect();
    let (mut best, mut value) = (set.clone(), alignment.of(&set));
    // The next set: the last index that can move up does, and the later ones follow it.
    while let Some(i) = (0..k).rev().find(|&i| set[i] < count - k + i) {
        set[i] += 1;
        for j in i + 1..k {
            set[j] = set[j - 1] + 1;
        }
        let now = alignment.of(&set);
        if now > value {
            (best, value) = (set.clone(), now);
        }
    }
    best
}

/// Up to `k` of `sent`, added one by one: the one that makes the loss of θ + scale·ΣΔ̂ the smallest;
/// ascending.
fn lowest_loss(
    theta: &[f32],
    sent: &[Encoded],
    k: usize,
    scale: f32,
    loss: impl Fn(&[f32]) -> Result<f64, Error> + Sync,
) -> Result<Vec<usize>, Error> {
    let (mut set, mut model) = (Vec::new(), theta.to_vec());
    while set.len() < k.min(sent.len()) {
        let free: Vec<usize> = (0..sent.len()).filter(|m| !set.contains(m)).collect();
        let with = |&m: &usize| {
            let mut model = model.clone();
            sent[m].add_to(&mut model, scale);
            loss(&model)
        };
        let losses: Vec<f64> = free.par_iter().map(with).collect::<Result<_, Error>>()?;
        let best = (0..free.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        let Some(best) = best else { break };
        sent[free[best]].add_to(&mut model, scale);
        set.push(free[best]);
    }
    set.sort_unstable();
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The alignment of a set, by the definition: ⟨s, Δ̄⟩·|⟨s, Δ̄⟩|/‖s‖², s = ΣΔ̂.
    fn by_definition(updates: &[Vec<f32>], sent: &[Vec<f32>], set: &[usize]) -> f64 {
        let dim = updates[0].len();
        let entry = |i: usize| set.iter().map(|&m| f64::from(sent[m][i])).sum::<f64>();
        let mean = |i: usize| updates.iter().map(|u| f64::from(u[i])).sum::<f64>() / updates.len() as f64;
        let along: f64 = (0..dim).map(|i| entry(i) * mean(i)).sum();
        let length: f64 = (0..dim).map(|i| entry(i) * entry(i)).sum();
        if length > 0.0 { along * along.abs() / length } else { 0.0 }
    }

    fn fleet() -> impl Strategy<Value = (Vec<Vec<f32>>, Vec<Vec<f32>>, usize)> {
        (2usize..=8, 1usize..=8).prop_flat_map(|(m, k)| {
            let vectors = || prop::collection::vec(prop::collection::vec(-2.0..2.0f32, 5), m);
            (vectors(), vectors(), Just(k.min(m)))
        })
    }

    fn alignment(updates: &[Vec<f32>], sent: &[Vec<f32>]) -> Alignment {
        let sent: Vec<Encoded> = sent.iter().map(|values| Encoded::Dense(values.clone())).collect();
        Alignment::new(&updates.iter().map(Vec::as_slice).collect::<Vec<&[f32]>>(), &sent)
    }

    proptest! {
        #[test]
        fn no_set_of_k_is_better_aligned((updates, sent, k) in fleet()) {
            let chosen = best_aligned(&alignment(&updates, &sent), k);
            prop_assert_eq!(chosen.len(), k);
            let reached = by_definition(&updates, &sent, &chosen);
            for mask in 0u32..1 << updates.len() {
                let set: Vec<usize> = (0..updates.len()).filter(|m| mask >> m & 1 == 1).collect();
                if set.len() == k {
                    let rounding = 1e-9 * reached.abs().max(1.0);
                    prop_assert!(by_definition(&updates, &sent, &set) <= reached + rounding);
                }
            }
        }

        #[test]
        fn the_alignment_is_the_gain_of_the_best_step((updates, sent, k) in fleet()) {
            // max over s of ‖Δ̄‖² − ‖Δ̄ − s·v‖² is ⟨v, Δ̄⟩²/‖v‖², by a grid of steps around the best.
            let set: Vec<usize> = (0..k).collect();
            let value = alignment(&updates, &sent).of(&set).abs();
            let dim = updates[0].len();
            let v: Vec<f64> = (0..dim).map(|i| set.iter().map(|&m| f64::from(sent[m][i])).sum()).collect();
            let mean: Vec<f64> = (0..dim)
                .map(|i| updates.iter().map(|u| f64::from(u[i])).sum::<f64>() / updates.len() as f64)
                .collect();
            let gain = |s: f64| {
                let left: f64 = mean.iter().zip(&v).map(|(m, v)| (m - s * v).powi(2)).sum();
                mean.iter().map(|m| m * m).sum::<f64>() - left
            };
            let squares: f64 = v.iter().map(|v| v * v).sum();
            prop_assume!(squares > 1e-3);
            let best = v.iter().zip(&mean).map(|(v, m)| v * m).sum::<f64>() / squares;
            prop_assert!((gain(best) - value).abs() < 1e-6 * value.max(1.0));
            prop_assert!(gain(best + 0.1) <= value + 1e-9 && gain(best - 0.1) <= value + 1e-9);
        }
    }

    #[test]
    fn among_many_devices_no_single_exchange_gains() {
        use crate::base::rng::{Purpose, stream};
        let mut rng = stream(1, Purpose::Test, 0, 0);
        let mut vectors = |count: usize| -> Vec<Vec<f32>> {
            (0..count).map(|_| (0..20).map(|_| rng.normal() as f32).collect()).collect()
        };
        let (updates, sent) = (vectors(30), vectors(30));
        let set = best_aligned(&alignment(&updates, &sent), 12);
        assert_eq!(set.len(), 12);
        let reached = by_definition(&updates, &sent, &set);
        for out in 0..12 {
            for new in (0..30).filter(|new| !set.contains(new)) {
                let mut other = set.clone();
                other[out] = new;
                assert!(by_definition(&updates, &sent, &other) <= reached * (1.0 + 1e-9));
            }
        }
    }

    #[test]
    fn the_genie_of_the_loss_takes_the_steepest_descent_first() {
        // Loss ‖θ − 1‖² in two dimensions, from 0: steps of 1 along the first entry, 0.5 along both, −1 along
        // the second.
        let sent = [[1.0, 0.0], [0.5, 0.5], [0.0, -1.0]].map(|values| Encoded::Dense(values.to_vec()));
        let loss = |theta: &[f32]| Ok(theta.iter().map(|x| f64::from(1.0 - x).powi(2)).sum());
        let of = |k| lowest_loss(&[0.0, 0.0], &sent, k, 1.0, loss).unwrap();
        assert_eq!((of(1), of(2), of(5)), (vec![1], vec![0, 1], vec![0, 1, 2]));
    }
}
