//! The whole system against a second implementation, written from the specification with plain loops in double
//! precision and sharing nothing with the library but the random streams.

use crate::common::blobs;
use fedlink::config::{BatchSize, Config};
use fedlink::data::Dataset;
use fedlink::data::partition::partition;
use fedlink::learn::model::{Init, ModelKind};
use fedlink::learn::optimizer::OptimizerKind;
use fedlink::rng::{Purpose, stream};
use fedlink::schedule::policy::PolicyKind;
use fedlink::simulation::Simulation;
use fedlink::units::DeviceId;
use std::sync::Arc;

const FEATURES: usize = 20;
const CLASSES: usize = 3;
const DIM: usize = (FEATURES + 1) * CLASSES;

fn config(policy: PolicyKind, k: u64) -> Config {
    let mut config = Config::default();
    config.data.devices = 10;
    config.data.samples_per_device = 25;
    config.learn.model = ModelKind::Softmax;
    config.learn.init = Init::Zeros;
    config.learn.batch = BatchSize::Full;
    config.learn.optimizer = OptimizerKind::Sgd;
    config.learn.rate = Some(0.3);
    config.learn.local_steps = 2;
    config.radio.symbols = 40;
    config.radio.power = 0.7;
    config.radio.noise = 1.3;
    config.schedule.policy = policy;
    config.schedule.k = k;
    config.schedule.kc = Some(6);
    config.run.rounds = 15;
    config
}

/// The mean-loss gradient of softmax regression over `samples`.
fn gradient(theta: &[f64], data: &Dataset, samples: &[u32]) -> Vec<f64> {
    let mut gradient = vec![0.0; DIM];
    for &s in samples {
        let x: Vec<f64> = (0..FEATURES)
            .map(|f| f64::from(data.train.picture(s as usize, FEATURES).unwrap()[f]) / 255.0)
            .chain([1.0])
            .collect();
        let logits: Vec<f64> =
            (0..CLASSES).map(|c| (0..=FEATURES).map(|f| x[f] * theta[f * CLASSES + c]).sum()).collect();
        let total: f64 = logits.iter().map(|z| z.exp()).sum();
        for c in 0..CLASSES {
            let truth = f64::from(u8::from(usize::from(data.train.labels[s as usize]) == c));
            let error = logits[c].exp() / total - truth;
            for f in 0..=FEATURES {
                gradient[f * CLASSES + c] += error * x[f] / samples.len() as f64;
            }
        }
    }
    gradient
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// log2 C(d,q) as a plain sum of logarithms.
fn log2_choose(d: usize, q: usize) -> f64 {
    (0..q).map(|i| ((d - i) as f64 / (i + 1) as f64).log2()).sum()
}

fn largest_q(bits: f64) -> usize {
    (1..=DIM / 2).take_while(|&q| log2_choose(DIM, q) + 33.0 <= bits).last().unwrap_or(0)
}

/// D-SGD by sorting, as a dense vector.
fn quantise(update: &[f64], q: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..DIM).collect();
    order.sort_by(|&i, &j| update[j].total_cmp(&update[i]).then(i.cmp(&j)));
    let top: Vec<usize> = order[..q].iter().copied().filter(|&i| update[i] > 0.0).collect();
    order.sort_by(|&i, &j| update[i].total_cmp(&update[j]).then(i.cmp(&j)));
    let bottom: Vec<usize> = order[..q].iter().copied().filter(|&i| update[i] < 0.0).collect();
    let mean = |side: &[usize]| side.iter().map(|&i| update[i]).sum::<f64>() / side.len().max(1) as f64;
    let (a, b) = (mean(&top), mean(&bottom));
    let mut dense = vec![0.0; DIM];
    let (side, value) = if a >= b.abs() { (top, a) } else { (bottom, b) };
    side.into_iter().for_each(|i| dense[i] = value);
    dense
}

/// The indices of the `count` largest of `values` among `pool`, ascending.
fn largest(pool: &[usize], count: usize, values: &[f64]) -> Vec<usize> {
    let mut order = pool.to_vec();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
    order.truncate(count);
    order.sort_unstable();
    order
}

/// What one round of the specification does: the devices, their q, and θ(t+1).
fn reference_round(config: &Config, data: &Dataset, theta: &mut [f64], t: u64) -> Vec<(usize, usize)> {
    let (m, k, n) = (config.data.devices as usize, config.schedule.k as usize, config.radio.symbols as f64);
    let split = partition(config, data).unwrap();
    let updates: Vec<Vec<f64>> = (0..m)
        .map(|device| {
            let mut samples = Vec::new();
            split.samples_of(DeviceId::new(device), &mut samples);
            let mut local = theta.to_vec();
            for _ in 0..config.learn.local_steps {
                let g = gradient(&local, data, &samples);
                local.iter_mut().zip(g).for_each(|(w, g)| *w -= config.rate() * g);
            }
            local.iter().zip(&*theta).map(|(a, b)| a - b).collect()
        })
        .collect();
    let gains: Vec<f64> =
        (0..m as u64).map(|d| -(1.0 - stream(0, Purpose::Channel, t, d).uniform()).ln()).collect();
    let power = m as f64 * config.radio.power / k as f64;
    let c: Vec<f64> = gains.iter().map(|g| (1.0 + g * power / config.radio.noise).log2()).collect();
    let norms: Vec<f64> = updates.iter().map(|u| norm(u)).collect();
    let alone: Vec<f64> = (0..m).map(|d| norm(&quantise(&updates[d], largest_q(n * c[d])))).collect();
    let all: Vec<usize> = (0..m).collect();
    let (chosen, weights): (Vec<usize>, Vec<f64>) = match config.schedule.policy {
        PolicyKind::Bc => (largest(&all, k, &gains), vec![1.0; m]),
        PolicyKind::Bn2 => (largest(&all, k, &norms), norms),
        PolicyKind::BcBn2 => (largest(&largest(&all, config.kc() as usize, &gains), k, &norms), norms),
        PolicyKind::Bn2C => (largest(&all, k, &alone), alone),
    };
    let total: f64 = chosen.iter().map(|&d| weights[d] / c[d]).sum();
    let mut sent = Vec::new();
    for &d in &chosen {
        let bits = n * weights[d] / total;
        let q = largest_q(bits);
        for (w, x) in theta.iter_mut().zip(quantise(&updates[d], q)) {
            *w += x / k as f64;
        }
        sent.push((d, q));
    }
    sent
}

#[test]
fn every_policy_follows_the_specification_round_by_round() {
    let data = blobs(FEATURES, 400, 60);
    for policy in [PolicyKind::Bc, PolicyKind::Bn2, PolicyKind::BcBn2, PolicyKind::Bn2C] {
        for k in [1, 3, 6] {
            let config = config(policy, k);
            let mut simulation = Simulation::new(&config, Arc::clone(&data)).unwrap();
            let mut theta = vec![0.0; DIM];
            for t in 0..config.run.rounds {
                let expected = reference_round(&config, &data, &mut theta, t);
                let record = simulation.step().unwrap();
                let ours: Vec<(usize, usize)> =
                    record.transmissions.iter().map(|sent| (sent.device.index(), sent.q)).collect();
                assert_eq!(ours, expected, "{policy:?} K={k} round {t}");
                let far = theta.iter().zip(simulation.theta()).map(|(a, &b)| (a - f64::from(b)).abs());
                let far = far.fold(0.0, f64::max);
                assert!(far < 1e-5, "{policy:?} K={k} round {t}: θ differs by {far}");
                for sent in &record.transmissions {
                    assert!(sent.bits <= sent.budget, "{policy:?} K={k} round {t}");
                }
                let symbols: f64 = record.transmissions.iter().map(|sent| sent.symbols.0).sum();
                assert!((symbols / 40.0 - 1.0).abs() < 1e-9);
            }
        }
    }
}
