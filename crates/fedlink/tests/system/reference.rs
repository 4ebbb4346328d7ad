//! The whole system compared with a second implementation, written from the specification with plain
//! loops in double precision. It shares only the random streams with the library.

use crate::common::{blobs, mostly_zero};
use fedlink::base::kernels::{InstructionSet, instruction_set};
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::DeviceId;
use fedlink::data::Dataset;
use fedlink::data::Scaling;
use fedlink::learn::inputs::Inputs;
use fedlink::learn::model::Init;
use fedlink::parts::Parts;
use fedlink::spec::{BatchSize, Config};
use fedlink::system::simulation::Simulation;
use std::sync::Arc;

const FEATURES: usize = 20;
const CLASSES: usize = 3;
const DIM: usize = (FEATURES + 1) * CLASSES;
const KC: usize = 6;

fn config(policy: &str, k: u64) -> Config {
    let mut config = Config::default();
    config.data.devices = 10;
    config.data.samples_per_device = 25;
    config.learn.model = "softmax".into();
    config.learn.init = Init::Zeros;
    config.learn.batch = BatchSize::Full;
    config.learn.optimizer = "sgd".into();
    config.learn.rate = Some(0.3);
    config.learn.local_steps = 2;
    config.radio.symbols = 40;
    config.radio.power = 0.7;
    config.radio.noise = 1.3;
    config.schedule.policy = policy.into();
    config.schedule.k = k;
    config.set("schedule.bc-bn2.kc", KC as i64).unwrap();
    config.run.rounds = 15;
    config
}

/// The mean loss of softmax regression over `samples`, and its gradient.
fn gradient(theta: &[f64], data: &Dataset, samples: &[u32]) -> (f64, Vec<f64>) {
    let (mut loss, mut gradient) = (0.0, vec![0.0; DIM]);
    for &s in samples {
        let x: Vec<f64> = (0..FEATURES)
            .map(|f| f64::from(data.train.image(s as usize, FEATURES).unwrap()[f]) / 255.0)
            .chain([1.0])
            .collect();
        let logits: Vec<f64> =
            (0..CLASSES).map(|c| (0..=FEATURES).map(|f| x[f] * theta[f * CLASSES + c]).sum()).collect();
        let total: f64 = logits.iter().map(|z| z.exp()).sum();
        for c in 0..CLASSES {
            let truth = f64::from(u8::from(usize::from(data.train.labels[s as usize]) == c));
            let error = logits[c].exp() / total - truth;
            loss -= truth * (logits[c].exp() / total).ln() / samples.len() as f64;
            for f in 0..=FEATURES {
                gradient[f * CLASSES + c] += error * x[f] / samples.len() as f64;
            }
        }
    }
    (loss, gradient)
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
fn quantize(update: &[f64], q: usize) -> Vec<f64> {
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

/// The mean of `values` over `devices`: plain, or weighted by the number of samples.
fn mean_over(devices: &[usize], sizes: &[usize], aggregate: &str, values: &[f64]) -> f64 {
    let weight = |d: usize| if aggregate == "by-size" { sizes[d] as f64 } else { 1.0 };
    let total: f64 = devices.iter().map(|&d| weight(d)).sum();
    devices.iter().map(|&d| weight(d) * values[d]).sum::<f64>() / total
}

/// One round of the specification: the devices, their q, the training loss, and θ(t+1).
fn reference_round(config: &Config, data: &Dataset, theta: &mut [f64], t: u64) -> (Vec<(usize, usize)>, f64) {
    let (m, k, n) = (config.data.devices as usize, config.schedule.k as usize, config.radio.symbols as f64);
    let split = config.resolve(&Parts::default()).and_then(|spec| spec.partition(data)).unwrap();
    let (mut updates, mut losses, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for device in 0..m {
        let mut samples = Vec::new();
        split.samples_of(DeviceId(device as u32), &mut samples);
        let (mut local, mut mean_loss) = (theta.to_vec(), 0.0);
        for _ in 0..config.learn.local_steps {
            let (loss, g) = gradient(&local, data, &samples);
            local
                .iter_mut()
                .zip(g)
                .for_each(|(w, g)| *w -= config.resolve(&Parts::default()).unwrap().rate() * g);
            mean_loss += loss / config.learn.local_steps as f64;
        }
        updates.push(local.iter().zip(&*theta).map(|(a, b)| a - b).collect::<Vec<f64>>());
        losses.push(mean_loss);
        sizes.push(samples.len());
    }
    let gains: Vec<f64> =
        (0..m as u64).map(|d| -(1.0 - stream(0, Purpose::Channel, t, d).uniform()).ln()).collect();
    let power = m as f64 * config.radio.power / k as f64;
    let c: Vec<f64> = gains.iter().map(|g| (1.0 + g * power / config.radio.noise).log2()).collect();
    let norms: Vec<f64> = updates.iter().map(|u| norm(u)).collect();
    let alone: Vec<f64> = (0..m).map(|d| norm(&quantize(&updates[d], largest_q(n * c[d])))).collect();
    let all: Vec<usize> = (0..m).collect();
    let by_gain = |count| largest(&all, count, &gains);
    // The devices that train are the candidates.
    let (trained, weights) = match config.schedule.policy.as_str() {
        "bc" => (by_gain(k), vec![1.0; m]),
        "bn2" => (all, norms),
        "bc-bn2" => (by_gain(KC), norms),
        "bn2-c" => (all, alone),
        other => panic!("{other} is not a policy of the paper"),
    };
    let chosen = largest(&trained, k, &weights);
    let total: f64 = chosen.iter().map(|&d| weights[d] / c[d]).sum();
    let mut sent = Vec::new();
    let mut quantized = vec![vec![0.0; m]; DIM];
    for &d in &chosen {
        let bits = n * weights[d] / total;
        let q = largest_q(bits);
        quantize(&updates[d], q).into_iter().enumerate().for_each(|(i, x)| quantized[i][d] = x);
        sent.push((d, q));
    }
    let mean =
        |devices: &[usize], values: &[f64]| mean_over(devices, &sizes, &config.learn.aggregate, values);
    theta.iter_mut().zip(&quantized).for_each(|(w, x)| *w += mean(&chosen, x));
    (sent, mean(&trained, &losses))
}

/// Runs `config` in both implementations and compares every round.
fn compare(config: &Config, data: &Arc<Dataset>) {
    let name = format!("{:?} K={}", config.schedule.policy, config.schedule.k);
    let mut simulation = Simulation::of(config, Arc::clone(data)).unwrap();
    let mut theta = vec![0.0; DIM];
    for t in 0..config.run.rounds {
        let (expected, loss) = reference_round(config, data, &mut theta, t);
        let record = simulation.step().unwrap();
        let ours: Vec<(usize, usize)> =
            record.transmissions.iter().map(|sent| (sent.device.index(), sent.q)).collect();
        assert_eq!(ours, expected, "{name} round {t}");
        let far = theta.iter().zip(simulation.theta()).map(|(a, &b)| (a - f64::from(b)).abs());
        let far = far.fold(0.0, f64::max);
        assert!(far < 1e-5, "{name} round {t}: θ differs by {far}");
        assert!(
            (record.training.loss - loss).abs() < 1e-5,
            "{name} round {t}: {} {loss}",
            record.training.loss
        );
        for sent in &record.transmissions {
            assert!(sent.bits <= sent.budget, "{name} round {t}");
        }
        let symbols: f64 = record.transmissions.iter().map(|sent| sent.symbols.0).sum();
        assert!((symbols / 40.0 - 1.0).abs() < 1e-9);
    }
}

const POLICIES: [&str; 4] = ["bc", "bn2", "bc-bn2", "bn2-c"];

#[test]
fn every_policy_follows_the_specification_round_by_round() {
    follows_the_specification(&blobs(FEATURES, 400, 60));
}

#[test]
fn every_policy_follows_the_specification_on_mostly_zero_inputs() {
    let data = mostly_zero(FEATURES, 400, 60);
    assert!(Inputs::new(Arc::clone(&data), Scaling::Unit).is_sparse());
    follows_the_specification(&data);
}

/// The two tests above again in a process that uses no vector instructions.
#[test]
fn the_portable_kernels_follow_the_specification_too() {
    let own = std::env::current_exe().expect("this program");
    let run = std::process::Command::new(own)
        .args(["every_policy_follows", "the_instruction_set_is_the_requested_one"])
        .env(INSTRUCTIONS, "portable")
        .output()
        .expect("this program starts");
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && output.contains("3 passed"), "{output}");
}

/// The environment variable that sets the instruction set of a process of these tests.
const INSTRUCTIONS: &str = "INSTRUCTIONS_OF_THE_TEST";

/// Chooses the instruction set from the environment, if one is given.
fn choose_instructions() -> Option<String> {
    let asked = std::env::var(INSTRUCTIONS).ok()?;
    InstructionSet::choose(&asked).expect("a set that this machine has");
    Some(asked)
}

#[test]
fn the_instruction_set_is_the_requested_one() {
    if let Some(asked) = choose_instructions() {
        assert_eq!(instruction_set(), asked);
    }
    assert!(InstructionSet::choose("sse9").unwrap_err().contains("there are portable, avx2, avx512"));
}

fn follows_the_specification(data: &Arc<Dataset>) {
    choose_instructions();
    for policy in POLICIES {
        for k in [1, 3, 6] {
            compare(&config(policy, k), data);
        }
    }
}

#[test]
fn devices_of_unequal_size_count_the_same_or_by_size() {
    let data = blobs(FEATURES, 400, 60);
    for policy in POLICIES {
        for partition in ["quantity", "dirichlet"] {
            for aggregate in ["mean", "by-size"] {
                let mut config = config(policy, 3);
                config.data.partition = partition.into();
                config.set("data.quantity.spread", 1.0).unwrap();
                config.set("data.dirichlet.sizes", "free").unwrap();
                config.learn.aggregate = aggregate.into();
                compare(&config, &data);
            }
        }
    }
}
