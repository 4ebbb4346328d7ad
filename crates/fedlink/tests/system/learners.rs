//! Corrections of local training, rates and options of local steps, on problems with known solutions.

use crate::common::{blobs, mostly_zero, run, small_config};
use fedlink::base::units::DeviceId;
use fedlink::learn::steps::LocalSteps;
use fedlink::learn::task::{Cohorts, Evaluation, Job, Task, TaskError};
use fedlink::parts::Parts;
use fedlink::spec::Config;
use fedlink::system::server::Server;
use fedlink::system::simulation::Simulation;
use std::io::Cursor;

const DEVICES: usize = 6;
const DIM: usize = 5;

/// F_m(θ) = ½·Σ_i a_{m,i}·(θ_i − b_{m,i})², by τ_m steps of plain descent.
#[derive(Clone)]
struct Quadratic {
    rate: f64,
    steps: [u64; DEVICES],
    cohorts: Cohorts,
}

impl Quadratic {
    fn new(rate: f64, steps: u64) -> Self {
        Self { rate, steps: [steps; DEVICES], cohorts: Cohorts::SideBySide }
    }

    fn curvature(m: usize, i: usize) -> f64 {
        0.25 + ((m * 7 + i * 3) % 11) as f64 / 5.0
    }

    fn center(m: usize, i: usize) -> f64 {
        ((m * 5 + i * 2) % 13) as f64 / 4.0 - 1.5
    }

    /// Σ w·b/Σ w of entry i.
    fn weighted(i: usize, weight: impl Fn(usize) -> f64) -> f64 {
        let sum: f64 = (0..DEVICES).map(&weight).sum();
        (0..DEVICES).map(|m| weight(m) * Self::center(m, i)).sum::<f64>() / sum
    }

    /// The minimum of the mean loss.
    fn optimum(i: usize) -> f64 {
        Self::weighted(i, |m| Self::curvature(m, i))
    }

    /// The limit of `FedAvg`: Σ Δ_m = 0 with Δ_m = −(1 − (1 − η·a_m)^τ)·(θ − b_m).
    fn fixed_point(&self, i: usize) -> f64 {
        Self::weighted(i, |m| 1.0 - (1.0 - self.rate * Self::curvature(m, i)).powi(self.steps[m] as i32))
    }
}

impl Task for Quadratic {
    fn theta0(&self) -> Vec<f32> {
        vec![4.0; DIM]
    }

    fn samples(&self, device: DeviceId) -> usize {
        1 + device.index()
    }

    fn train(&self, job: Job) -> Result<f64, TaskError> {
        let m = job.device.index();
        let mut local = job.theta.to_vec();
        for _ in 0..self.steps[m] {
            let mut gradient: Vec<f32> = (0..DIM)
                .map(|i| (Self::curvature(m, i) * (f64::from(local[i]) - Self::center(m, i))) as f32)
                .collect();
            job.adjustment.add_to(&mut gradient, 0, &local, job.theta);
            local.iter_mut().zip(&gradient).for_each(|(x, g)| *x -= self.rate as f32 * g);
        }
        for ((update, local), theta) in job.update.iter_mut().zip(&local).zip(job.theta) {
            *update = local - theta;
        }
        Ok(1.0)
    }

    fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError> {
        Ok(Evaluation::new(0.0, f64::from(theta[0].abs())))
    }

    fn cohorts(&self) -> Cohorts {
        self.cohorts
    }

    fn local_steps(&self, _: u64, device: DeviceId) -> Option<LocalSteps> {
        Some(LocalSteps { count: self.steps[device.index()], rate: self.rate })
    }
}

/// Whole updates of K devices, drawn at random.
fn config(k: usize, rounds: u64, keys: &[(&str, toml::Value)]) -> Config {
    let mut config = Config::default();
    (config.data.devices, config.schedule.k) = (DEVICES as u64, k as u64);
    config.schedule.policy = "random".into();
    config.compress.scheme = "top-k".into();
    config.radio.symbols = 1 << 40;
    config.run.rounds = rounds;
    config.run.evaluate_every = rounds;
    for (key, value) in keys {
        config.set(key, value.clone()).unwrap();
    }
    config
}

fn end(config: &Config, task: Quadratic) -> Vec<f64> {
    let mut simulation = Simulation::of(config, task).unwrap();
    simulation.run(|_| ()).unwrap();
    simulation.theta().iter().map(|&x| f64::from(x)).collect()
}

fn chosen(name: &str) -> (&'static str, toml::Value) {
    ("learn.correction", name.into())
}

fn assert_at(theta: &[f64], exact: impl Fn(usize) -> f64, tolerance: f64) {
    for (i, value) in theta.iter().enumerate() {
        assert!((value - exact(i)).abs() < tolerance, "entry {i}: {value} is not {}", exact(i));
    }
}

#[test]
fn fedavg_stops_at_its_biased_fixed_point_and_scaffold_and_feddyn_at_the_optimum() {
    let task = Quadratic::new(0.2, 5);
    let bias = (0..DIM).map(|i| (task.fixed_point(i) - Quadratic::optimum(i)).abs()).fold(0.0, f64::max);
    assert!(bias > 0.1, "{bias}");
    let average = end(&config(DEVICES, 300, &[]), task.clone());
    assert_at(&average, |i| task.fixed_point(i), 1e-5);
    // Also with some of the devices only, for which FedAvg never converges.
    for k in [DEVICES, 2] {
        assert_at(&end(&config(k, 3000, &[chosen("scaffold")]), task.clone()), Quadratic::optimum, 1e-4);
        let keys = [chosen("feddyn"), ("learn.feddyn.alpha", 1.0.into())];
        assert_at(&end(&config(k, 3000, &keys), task.clone()), Quadratic::optimum, 1e-4);
    }
}

#[test]
fn different_step_counts_bias_fedavg_and_not_scaffold() {
    let task = Quadratic { steps: [1, 2, 3, 5, 8, 13], ..Quadratic::new(0.05, 1) };
    let average = end(&config(DEVICES, 2000, &[]), task.clone());
    assert_at(&average, |i| task.fixed_point(i), 1e-4);
    assert_at(&end(&config(DEVICES, 3000, &[chosen("scaffold")]), task), Quadratic::optimum, 1e-4);
}

#[test]
fn fednova_takes_the_mean_by_step_and_stops_at_its_own_fixed_point() {
    let task = Quadratic { steps: [1, 2, 3, 5, 8, 13], ..Quadratic::new(0.05, 1) };
    let nova = end(&config(DEVICES, 2000, &[("learn.aggregate", "fednova".into())]), task.clone());
    // Σ Δ_m/τ_m = 0.
    let weight = |m: usize, i: usize| {
        let left = (1.0 - task.rate * Quadratic::curvature(m, i)).powi(task.steps[m] as i32);
        (1.0 - left) / task.steps[m] as f64
    };
    assert_at(&nova, |i| Quadratic::weighted(i, |m| weight(m, i)), 1e-4);
    let distance = |at: &dyn Fn(usize) -> f64| {
        (0..DIM).map(|i| (at(i) - Quadratic::optimum(i)).powi(2)).sum::<f64>().sqrt()
    };
    assert!(distance(&|i| nova[i]) < 0.5 * distance(&|i| task.fixed_point(i)), "it is closer to the optimum");
}

#[test]
fn fednova_with_equal_steps_is_the_mean_to_the_bit() {
    for (aggregate, by_size) in [("mean", false), ("by-size", true)] {
        let mut config = small_config();
        config.data.partition = "quantity".into();
        config.learn.aggregate = aggregate.into();
        let plain = run(&config, blobs(20, 600, 90), 2);
        config.learn.aggregate = "fednova".into();
        config.set("learn.fednova.by_size", by_size).unwrap();
        assert_eq!(run(&config, blobs(20, 600, 90), 2).digest, plain.digest, "{aggregate}");
    }
}

#[test]
fn fedprox_has_the_closed_form_of_quadratics_and_vanishes_as_mu_grows() {
    for mu in [0.0, 0.1, 1.0, 30.0] {
        let (rate, steps) = (0.03, 4);
        let keys = [chosen("prox"), ("learn.prox.mu", mu.into())];
        let theta = end(&config(DEVICES, 1, &keys), Quadratic::new(rate, steps));
        let exact = |i: usize| {
            let delta = |m: usize| {
                let stiff = Quadratic::curvature(m, i) + mu;
                let gradient = Quadratic::curvature(m, i) * (4.0 - Quadratic::center(m, i));
                -gradient * (1.0 - (1.0 - rate * stiff).powi(steps as i32)) / stiff
            };
            4.0 + (0..DEVICES).map(delta).sum::<f64>() / DEVICES as f64
        };
        assert_at(&theta, exact, 1e-5);
    }
    for correction in ["prox", "feddyn"] {
        let key = if correction == "prox" { "learn.prox.mu" } else { "learn.feddyn.alpha" };
        let moved = |strength: f64| {
            // η·μ stays the same, so that local training is stable and long enough to converge.
            let keys = [chosen(correction), (key, strength.into())];
            end(&config(DEVICES, 1, &keys), Quadratic::new(0.5 / strength, 40))
                .iter()
                .map(|x| (x - 4.0).abs())
                .fold(0.0, f64::max)
        };
        let far = [10.0, 1e3, 1e5].map(moved);
        assert!(far[1] < 0.02 * far[0] && far[2] < 0.02 * far[1], "{correction}: {far:?}");
    }
}

#[test]
fn the_server_s_rate_follows_its_schedule() {
    // θ − b shrinks by 1 − c_t·η·a in a round of one device and one step.
    let mut config = config(1, 3, &[("learn.server_rate", 0.5.into())]);
    config.set("learn.server_rate_schedule", "step(1, 0.5)").unwrap();
    config.schedule.policy = "bc".into();
    config.data.devices = 1;
    config.schedule.k = 1;
    let theta = end(&config, Quadratic::new(0.1, 1));
    let exact = |i: usize| {
        let (a, b) = (Quadratic::curvature(0, i), Quadratic::center(0, i));
        let left: f64 = [0.5, 0.25, 0.125].iter().map(|c| 1.0 - c * 0.1 * a).product();
        b + (4.0 - b) * left
    };
    assert_at(&theta, exact, 1e-6);
}

/// A softmax model with plain descent, all devices and whole updates.
fn softmax(rounds: u64) -> Config {
    let mut config = small_config();
    config.learn.model = "softmax".into();
    config.learn.optimizer = "sgd".into();
    config.learn.rate = Some(0.05);
    config.compress.scheme = "top-k".into();
    config.radio.symbols = 1 << 40;
    config.schedule.policy = "random".into();
    config.run.rounds = rounds;
    config
}

fn step_of(config: &Config) -> Vec<f32> {
    let mut simulation = Simulation::of(config, blobs(20, 600, 90)).unwrap();
    let before = simulation.theta().to_vec();
    simulation.run(|_| ()).unwrap();
    simulation.theta().iter().zip(&before).map(|(after, before)| after - before).collect()
}

#[test]
fn the_local_rate_follows_its_schedule() {
    let mut config = softmax(1);
    config.learn.local_steps = 1;
    config.learn.init = fedlink::learn::model::Init::Zeros;
    let whole = step_of(&config);
    config.set("learn.rate_schedule", "warmup(2)").unwrap();
    let half = step_of(&config);
    assert!(whole.iter().any(|x| *x != 0.0));
    for (half, whole) in half.iter().zip(&whole) {
        assert!((half - 0.5 * whole).abs() < 1e-9, "{half} {whole}");
    }
}

#[test]
fn a_clipped_local_step_is_at_most_rate_times_limit_and_a_wide_limit_changes_nothing() {
    let mut config = softmax(1);
    (config.learn.local_steps, config.schedule.k) = (1, 1);
    config.set("learn.gradient_clip", 0.01).unwrap();
    let length = step_of(&config).iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    assert!((length - 0.05 * 0.01).abs() < 1e-7, "{length}");
    for (optimizer, model) in [("sgd", "mlp"), ("adam", "mlp"), ("adagrad", "softmax")] {
        for dataset in [blobs(20, 600, 90), mostly_zero(20, 600, 90)] {
            let mut config = small_config();
            (config.learn.optimizer, config.learn.model) = (optimizer.into(), model.into());
            config.run.rounds = 3;
            let plain = run(&config, dataset.clone(), 2);
            config.set("learn.gradient_clip", 1e20).unwrap();
            assert_eq!(run(&config, dataset, 2).digest, plain.digest, "{optimizer}, {model}");
        }
    }
}

#[test]
fn a_built_in_model_learns_with_every_correction_and_reproducibly() {
    for correction in ["prox", "scaffold", "feddyn"] {
        let mut config = softmax(12);
        config.set("learn.local_steps_min", 1).unwrap();
        config.set("learn.weight_decay", 0.01).unwrap();
        config.set("learn.rate_schedule", "warmup(3) cosine").unwrap();
        let plain = run(&config, blobs(20, 600, 90), 2);
        config.set("learn.correction", correction).unwrap();
        config.set("learn.prox.mu", 0.5).unwrap();
        let whole = run(&config, blobs(20, 600, 90), 1);
        assert_ne!(whole.digest, plain.digest, "{correction}");
        assert!(whole.final_loss.unwrap().is_finite());
        assert_eq!(run(&config, blobs(20, 600, 90), 4).digest, whole.digest, "{correction}: threads");
        let mut first = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        for _ in 0..5 {
            first.step().unwrap();
        }
        let mut saved = Vec::new();
        first.checkpoint(&mut saved).unwrap();
        let mut resumed = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        resumed.restore(Cursor::new(&saved)).unwrap();
        assert_eq!(resumed.run(|_| ()).unwrap().digest, whole.digest, "{correction}: resumed");
        // The saved state of one correction is rejected by a run with another.
        let mut other = Simulation::of(&softmax(12), blobs(20, 600, 90)).unwrap();
        assert!(other.restore(Cursor::new(&saved)).is_err());
    }
}

#[test]
fn corrections_apply_in_cohorts_and_lost_updates_change_neither_side() {
    for correction in ["prox", "scaffold", "feddyn"] {
        let mut config = config(3, 30, &[chosen(correction)]);
        // A budget that is sometimes too small for an entry.
        config.radio.symbols = 60;
        let alone = end(&config, Quadratic::new(0.1, 3));
        for cohorts in [Cohorts::Of(1), Cohorts::Of(4)] {
            let task = Quadratic { cohorts, ..Quadratic::new(0.1, 3) };
            assert_eq!(end(&config, task), alone, "{correction}, {cohorts:?}");
        }
    }
}

#[test]
fn scaffold_s_control_variate_is_charged_on_the_downlink() {
    let seconds = |correction: &str| {
        let mut config = softmax(2);
        config.set("radio.bandwidth_hz", 1e6).unwrap();
        config.set("radio.symbols", 5000).unwrap();
        config.set("clock.downlink", "broadcast").unwrap();
        config.set("clock.broadcast.bps", 1e6).unwrap();
        config.set("learn.correction", correction).unwrap();
        let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        simulation.step().unwrap().cost.unwrap().phases.down_s
    };
    // 63 weights of 32 bits at 1 Mbit/s.
    assert!((seconds("none") - 63.0 * 32.0 / 1e6).abs() < 1e-12, "{}", seconds("none"));
    assert!((seconds("scaffold") - 2.0 * seconds("none")).abs() < 1e-12);
    assert_eq!(seconds("feddyn"), seconds("none"));
}

#[test]
fn a_correction_refuses_incompatible_settings_by_name() {
    let problem = |keys: &[(&str, toml::Value)]| {
        let mut config = softmax(2);
        for (key, value) in keys {
            config.set(key, value.clone()).unwrap();
        }
        config.validate().unwrap_err().to_string()
    };
    let sgd = "learn.correction: is \"scaffold\", which needs learn.optimizer = \"sgd\" without momentum";
    for keys in [("learn.optimizer", toml::Value::from("adam")), ("learn.sgd.momentum", 0.9.into())] {
        let error = problem(&[chosen("scaffold"), keys]);
        assert!(error.starts_with(sgd), "{error}");
    }
    for (key, value) in [
        ("compress.feedback", toml::Value::from("scheduled")),
        ("defense.clip", 1.0.into()),
        ("defense.audit", true.into()),
    ] {
        for name in ["scaffold", "feddyn"] {
            let error = problem(&[chosen(name), (key, value.clone())]);
            assert!(
                error.starts_with(&format!("learn.correction: is \"{name}\", which needs {key}"))
                    || key == "defense.clip" && error.contains(key),
                "{error}"
            );
        }
    }
    let error = problem(&[chosen("feddyn"), ("learn.server_rate", 0.5.into())]);
    assert!(
        error.contains("which needs learn.server_optimizer = \"sgd\" with learn.server_rate = 1"),
        "{error}"
    );
    let error = problem(&[("learn.weight_decay", 20.0.into())]);
    assert_eq!(error, "learn.weight_decay: is 20, but must be below 1/η = 20 (learn.rate is 0.05)");
    let error = problem(&[("learn.local_steps_min", 4.into())]);
    assert_eq!(error, "learn.local_steps_min: is 4, but must be in 1..=3 (learn.local_steps is 3)");
    let mut config = softmax(2);
    let error = config.set("learn.rate_schedule", "linear").unwrap_err().to_string();
    assert!(
        error.starts_with("learn.rate_schedule: is \"linear\", but must be \"constant\", \"step("),
        "{error}"
    );
}

/// A task without support for corrections.
struct Plain;

impl Task for Plain {
    fn theta0(&self) -> Vec<f32> {
        vec![0.0; DIM]
    }
    fn samples(&self, _: DeviceId) -> usize {
        1
    }
    fn train(&self, job: Job) -> Result<f64, TaskError> {
        job.update.fill(1.0);
        Ok(1.0)
    }
    fn evaluate(&self, _: &[f32]) -> Result<Evaluation, TaskError> {
        Ok(Evaluation::new(0.0, 0.0))
    }
}

#[test]
fn tasks_and_nodes_that_add_no_corrections_refuse_them() {
    let of_task = |key: &str, value: toml::Value| {
        let config = config(2, 1, &[(key, value)]);
        Simulation::of(&config, Plain).map(|_| ()).unwrap_err().to_string()
    };
    for (key, value, start) in [
        (
            "learn.correction",
            toml::Value::from("prox"),
            "learn.correction: is \"prox\", but the task Plain makes its local steps",
        ),
        (
            "learn.aggregate",
            "fednova".into(),
            "learn.aggregate: is \"fednova\", but the task Plain does not state",
        ),
        (
            "learn.weight_decay",
            0.1.into(),
            "learn.weight_decay: has no effect here: \"Plain\" trains by its own steps",
        ),
        ("learn.rate_schedule", "cosine".into(), "learn.rate_schedule: has no effect here"),
    ] {
        let error = of_task(key, value);
        assert!(error.starts_with(start), "{error}");
    }
    for (key, value) in [("learn.correction", "prox"), ("learn.aggregate", "fednova")] {
        let config = config(2, 1, &[(key, value.into())]);
        let error = Server::of(&config.resolve(&Parts::default()).unwrap(), vec![0.0; DIM], None)
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(&format!("{key}: is \"{value}\", but nodes")), "{error}");
    }
    // Settings of the server work on nodes as in a simulation.
    let config =
        config(2, 1, &[("learn.aggregate", "shrunk".into()), ("learn.server_optimizer", "yogi".into())]);
    assert!(Server::of(&config.resolve(&Parts::default()).unwrap(), vec![0.0; DIM], None).is_ok());
}

/// A task of many parameters whose devices apply corrections.
struct Wide;

impl Task for Wide {
    fn theta0(&self) -> Vec<f32> {
        vec![0.0; 1_000_000]
    }
    fn samples(&self, _: DeviceId) -> usize {
        1
    }
    fn train(&self, _: Job) -> Result<f64, TaskError> {
        Err(TaskError("it is never reached".into()))
    }
    fn evaluate(&self, _: &[f32]) -> Result<Evaluation, TaskError> {
        Ok(Evaluation::new(0.0, 0.0))
    }
    fn local_steps(&self, _: u64, _: DeviceId) -> Option<LocalSteps> {
        Some(LocalSteps { count: 1, rate: 1.0 })
    }
}

#[test]
fn vectors_of_all_devices_that_cannot_fit_are_refused_before_the_first_round() {
    if fedlink::base::memory::total().is_none() {
        return;
    }
    let mut config = config(1, 1, &[chosen("scaffold")]);
    // 4 TB of control variates.
    config.data.devices = 1_000_000;
    let error = Simulation::of(&config, Wide).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.starts_with("learn.model: 1000005 vectors of d = 1000000 numbers take at least"),
        "{error}"
    );
    assert!(error.contains("compress.feedback and learn.correction at their defaults"), "{error}");
    config.learn.correction = "prox".into();
    assert!(Simulation::of(&config, Wide).is_ok());
}
