//! Sampling against queues of spent power.

use crate::base::state::{Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::{Quantity, RoundRecord};
use crate::schedule::priced::probabilities;
use crate::schedule::queues::PowerQueues;
use crate::schedule::sampling::{Target, systematic};
use crate::schedule::{Ask, Bias, Pick, Policy, Reports, Schedule, Selection, Trains, View, Weight};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<LyapunovConfig>();

/// `[schedule.lyapunov]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct LyapunovConfig {
    /// V, what the variance counts against a queue of as many times the transmit power
    #[key(default = 100.0, range = "> 0")]
    pub v: f64,
    /// whether all train and report their norms before selection
    #[key(default = true)]
    pub norms: bool,
    /// π, weight of each device in the objective
    #[key(default = Target::Equal, allowed = "\"equal\" | \"by-size\"")]
    pub target: Target,
}

impl PartConfig for LyapunovConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "lyapunov";
    const FAMILY: &'static str = "unbiased";
    const MEANING: &'static str =
        "K devices drawn by norm against what each has spent beyond P̄; unbiased: each update counts π/p";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(Lyapunov { config: self, queues: PowerQueues::default(), chosen: Vec::new() }))
    }
}

/// Q_m ← max(0, Q_m + P·x_m − P̄) for every device; in each round K are drawn with p_m = min(1,
/// u_m·√(V/(Q_m·P + λ))), u = π‖Δ‖ over its mean, and each update counts π/p.
///
/// p minimizes V·Σ u²/p + Σ Q·P·p subject to Σ p = K. Source: after Perazzone, Wang, Ji and Chan,
/// *Communication-Efficient Device Scheduling for Federated Learning Using Stochastic Optimization* (2022),
/// as we read it, without their power step. Without norms u = π, and only the K train. Invariant, in every
/// run: the average power of a device, counted as the paper's constraint counts it, is at most P̄ + Q_m(T)/T.
#[derive(Clone, Debug)]
pub struct Lyapunov {
    config: LyapunovConfig,
    queues: PowerQueues,
    /// The devices drawn before training and their weights, without reports.
    chosen: Vec<(DeviceId, f64)>,
}

impl Lyapunov {
    /// π of each of `devices`, whose updates have these norms, and p.
    fn probabilities(&self, view: &View, devices: &[DeviceId], norms: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let targets =
            self.config.target.weights(devices, view.links.devices(), |device| view.samples(device));
        let u: Vec<f64> = targets.iter().zip(norms).map(|(target, norm)| target * norm).collect();
        let mean = u.iter().sum::<f64>() / u.len().max(1) as f64;
        let mean = if mean > 0.0 && mean.is_finite() { mean } else { 1.0 };
        // Both terms over V: u² against Q·P/V, with V in units of P².
        let price = |device: &DeviceId| self.queues.over_power(*device, view) / self.config.v;
        let prices: Vec<f64> = devices.iter().map(price).collect();
        let u: Vec<f64> = u.iter().map(|u| (u / mean).min(1e100)).collect();
        let p = probabilities(&u, &prices, view.k);
        // λ is that of any device whose p is below 1.
        if let Some(i) = (0..p.len()).find(|&i| p[i] > 0.0 && p[i] < 1.0) {
            let multiplier = (u[i] / p[i]).powi(2) - prices[i];
            view.note_each(Quantity::Threshold, devices, |_| multiplier);
        }
        (targets, p)
    }

    /// Draws K of `devices`, whose updates have these norms, with their weights.
    fn draw(&self, view: &View, devices: &[DeviceId], norms: &[f64]) -> Vec<(usize, f64)> {
        let (targets, p) = self.probabilities(view, devices, norms);
        view.note_each(Quantity::Probability, devices, |row| p[row]);
        self.queues.note(view);
        let mut rng = view.rng(0);
        let mut order: Vec<usize> = (0..devices.len()).collect();
        rng.shuffle(&mut order);
        let drawn = systematic(&p, &order, rng.uniform());
        drawn.into_iter().map(|row| (row, targets[row] / p[row])).collect()
    }
}

impl Persist for Lyapunov {
    fn save(&self) -> State {
        self.queues.save()
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        self.queues.load(&state)
    }
}

impl Policy for Lyapunov {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.queues.begin(view);
        if self.config.norms {
            return view.everyone();
        }
        let devices = view.eligible();
        let drawn = self.draw(view, &devices, &vec![1.0; devices.len()]);
        self.chosen = drawn.into_iter().map(|(row, weight)| (devices[row], weight)).collect();
        self.chosen.iter().map(|(device, _)| *device).collect()
    }

    fn asks(&self) -> &[Ask] {
        if self.config.norms { &[Ask::Norm] } else { &[] }
    }

    fn selection(&self) -> Selection {
        let trains = if self.config.norms { Trains::Everyone } else { Trains::Scheduled };
        Selection::new(Bias::Unbiased, trains).with_weights().by_average_power()
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        let devices = &reports.devices;
        let drawn: Vec<(DeviceId, f64)> = if self.config.norms {
            let norms: Vec<f64> =
                (0..devices.len()).map(|row| f64::from(reports.first(row)).max(0.0)).collect();
            self.draw(view, devices, &norms).into_iter().map(|(row, weight)| (devices[row], weight)).collect()
        } else {
            self.chosen.iter().filter(|(device, _)| devices.contains(device)).copied().collect()
        };
        let pick =
            |(device, weight): (DeviceId, f64)| Pick { device, bit_weight: 1.0, weight: Weight::Own(weight) };
        Schedule { picks: drawn.into_iter().map(pick).collect() }
    }

    fn observe(&mut self, outcome: &RoundRecord) {
        self.queues.observe(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use crate::data;
    use crate::schedule::sampling::tests::inclusion;
    use crate::system::simulation::Simulation;

    /// Six devices of which two are in debt, and their reports.
    fn indebted() -> (Lyapunov, [f64; 6], Bench) {
        let mut queues = PowerQueues::default();
        let bench = Bench::new(6, 2);
        bench.at(0, |view| queues.begin(view));
        // Each transmission is of power 1, as is the energy that each device may spend per round.
        queues.observe(&RoundRecord::of_devices(1, &[1, 1, 1, 4, 4, 4, 4, 4, 4].map(DeviceId)));
        let config = LyapunovConfig { v: 3.0, target: Target::BySize, norms: true };
        (Lyapunov { config, queues, chosen: Vec::new() }, [1.0, 2.5, 0.4, 7.0, 1.5, 0.9], bench)
    }

    #[test]
    fn the_probabilities_meet_the_conditions_of_the_minimum_with_the_queues_as_prices() {
        let (policy, norms, bench) = indebted();
        let devices: Vec<DeviceId> = DeviceId::all(6).collect();
        let (targets, p) = bench.at(7, |view| policy.probabilities(view, &devices, &norms));
        let debts: Vec<f64> = bench
            .at(7, |view| devices.iter().map(|&device| policy.queues.over_power(device, view)).collect());
        assert_eq!(debts, [0.0, 2.0, 0.0, 0.0, 5.0, 0.0]);
        assert!((p.iter().sum::<f64>() - 2.0).abs() < 1e-12, "{p:?}");
        // V·u²/p² − Q·P is one λ for all p < 1 and no less for p = 1, with u over its mean.
        let u: Vec<f64> = targets.iter().zip(norms).map(|(target, norm)| target * norm).collect();
        let mean = u.iter().sum::<f64>() / 6.0;
        let level = |i: usize| 3.0 * (u[i] / mean / p[i]).powi(2) - debts[i];
        let free: Vec<usize> = (0..6).filter(|&i| p[i] < 1.0).collect();
        assert!(free.len() >= 4 && free.len() < 6, "{p:?}");
        let lambda = level(free[0]);
        assert!(free.iter().all(|&i| (level(i) - lambda).abs() < 1e-9 * lambda.abs()), "{p:?}");
        assert!((0..6).filter(|i| !free.contains(i)).all(|i| level(i) >= lambda), "{p:?}");
        // Without the debts those that have one would be scheduled more often, the others less.
        let idle = Lyapunov { queues: PowerQueues::default(), ..policy };
        let (_, without) = bench.at(7, |view| idle.probabilities(view, &devices, &norms));
        let more = |i: usize| without[i] > p[i];
        assert_eq!([0, 1, 2, 4, 5].map(more), [false, true, false, true, false], "{p:?} {without:?}");
    }

    #[test]
    fn the_mean_over_all_draws_is_the_weighted_mean_of_the_updates() {
        let (policy, norms, bench) = indebted();
        let devices: Vec<DeviceId> = DeviceId::all(6).collect();
        let (targets, p) = bench.at(7, |view| policy.probabilities(view, &devices, &norms));
        let deltas = [3.0, -1.0, 0.25, 8.0, -5.5, 2.0];
        let exact: f64 = targets.iter().zip(deltas).map(|(target, delta)| target * delta).sum();
        for order in [[0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4], [2, 4, 0, 5, 1, 3]] {
            let of = inclusion(&p, &order);
            let mean: f64 = (0..6).map(|i| of[i] * targets[i] / p[i] * deltas[i]).sum();
            assert!((mean - exact).abs() < 1e-12, "{mean} {exact}");
        }
    }

    #[test]
    fn no_device_spends_more_than_its_average_and_its_queue_in_any_run() {
        let mut config = crate::spec::Config::default();
        config.data.devices = 8;
        config.data.samples_per_device = 20;
        config.learn.model = "softmax".into();
        (config.schedule.policy, config.schedule.k, config.run.rounds) = ("lyapunov".into(), 2, 40);
        for norms in [true, false] {
            config.set("schedule.lyapunov.norms", norms).unwrap();
            config.set("schedule.lyapunov.v", 3.0).unwrap();
            let mut simulation = Simulation::of(&config, data::load("digits", &[]).unwrap()).unwrap();
            let mut queues = [0.0f64; 8];
            for _ in 0..40 {
                let record = simulation.step().unwrap();
                record.transmissions.iter().for_each(|sent| queues[sent.device.index()] += sent.power.0);
                queues.iter_mut().for_each(|queue| *queue = (*queue - 1.0).max(0.0));
            }
            let outcome = simulation.outcome();
            for (average, queue) in outcome.average_power.iter().zip(queues) {
                assert!(*average <= 1.0 + queue / 40.0 + 1e-12, "{average} {queue}");
            }
            // P = M·P̄/K = 4: with a small V no device is far ahead of another.
            assert!(outcome.scheduled.iter().all(|n| (6..=14).contains(n)), "{:?}", outcome.scheduled);
        }
    }
}
