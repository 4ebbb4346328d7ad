//! Power by a virtual queue of energy (drift plus penalty).

use super::{LinkGain, PowerMaterial, PowerPolicy};
use crate::base::state::{Persist, State, StateError};
use crate::base::units::{DeviceId, Power};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this policy.
pub const ENTRY: Entry<dyn PowerPolicy> = Entry::of::<QueueConfig>();

/// `[radio.queue]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct QueueConfig {
    /// V, what bits count against energy: more spends more, and sooner
    #[key(default = 1.0, range = "> 0")]
    pub v: f64,
}

impl PartConfig for QueueConfig {
    type Part = dyn PowerPolicy;
    const NAME: &'static str = "queue";
    const MEANING: &'static str = "each device tracks the energy that it is ahead of P̄, and lowers its \
                                   power as that grows";

    fn build(self, _: &Scope, material: &PowerMaterial) -> Result<Box<dyn PowerPolicy>, ConfigError> {
        if material.max.is_none() {
            let problem = "is \"queue\", which sends with the maximum while a device has spent nothing; set \
                           radio.power_max";
            return Err(ConfigError::new("radio.power_policy", problem));
        }
        Ok(Box::new(Queue { v: self.v, material: *material, queues: vec![0.0; material.devices] }))
    }
}

/// Q_m ← max(Q_m + E_m(t) − Ē, 0) in every round, with Ē = P̄·n·T_s; a device sends with
/// P = (V/(Q_m·T_s·ln 2) − σ²/(β·g))⁺, at most the maximum, which it sends with while Q_m = 0.
///
/// P maximizes V·n·log2(1 + β·g·P/σ²) − Q_m·P·n·T_s; T_s is the seconds of a symbol (1 without a bandwidth).
/// Source: drift plus penalty, Neely (2010), as we read it. Invariant, in every run: the mean energy of a
/// device over T rounds is at most Ē + Q_m(T)/T.
#[derive(Clone, Debug)]
pub struct Queue {
    v: f64,
    material: PowerMaterial,
    queues: Vec<f64>,
}

impl Queue {
    fn symbol_s(&self) -> f64 {
        self.material.symbol_s.unwrap_or(1.0)
    }

    /// Ē, the energy that a device may spend per round on average.
    fn allowance(&self) -> f64 {
        self.material.average * self.material.symbols * self.symbol_s()
    }

    /// Q_m of each device.
    pub fn queues(&self) -> &[f64] {
        &self.queues
    }
}

impl Persist for Queue {
    fn save(&self) -> State {
        State::of(&self.queues)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        let queues: Vec<f64> = state.read()?;
        if queues.len() != self.queues.len() || queues.iter().any(|q| !q.is_finite() || *q < 0.0) {
            return Err(StateError("its queues are not those of this run".into()));
        }
        self.queues = queues;
        Ok(())
    }
}

impl PowerPolicy for Queue {
    fn power(&self, device: DeviceId, link: LinkGain) -> Power {
        let queue = self.queues[device.index()];
        let max = self.material.max.unwrap_or(self.material.average);
        if link.gain <= 0.0 {
            return Power(0.0);
        }
        if queue <= 0.0 {
            return Power(max);
        }
        let level = self.v / (queue * self.symbol_s() * std::f64::consts::LN_2);
        Power((level - self.material.noise / link.gain).clamp(0.0, max))
    }

    fn settle(&mut self, radiated: &[(DeviceId, f64)]) {
        let allowance = self.allowance();
        for (device, energy) in radiated {
            self.queues[device.index()] += energy;
        }
        self.queues.iter_mut().for_each(|queue| *queue = (*queue - allowance).max(0.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};
    use proptest::prelude::*;

    fn queue(v: f64) -> Queue {
        let material = PowerMaterial {
            devices: 3,
            k: 1,
            average: 0.5,
            max: Some(20.0),
            noise: 1.0,
            symbols: 10.0,
            symbol_s: Some(0.1),
            ..PowerMaterial::default()
        };
        Queue { v, material, queues: vec![0.0; 3] }
    }

    proptest! {
        /// The upper bound of the method, for any channels and any choice of scheduled devices.
        #[test]
        fn no_device_spends_more_than_its_allowance_and_its_queue(seed in any::<u64>(), v in 1e-3..1e3f64) {
            let mut policy = queue(v);
            let mut rng = stream(seed, Purpose::Test, 0, 0);
            let mut spent = [0.0; 3];
            let rounds = 300;
            for _ in 0..rounds {
                let device = DeviceId(rng.below(3) as u32);
                let power = policy.power(device, LinkGain { gain: rng.exponential(), mean_gain: 1.0 }).0;
                let energy = power * 10.0 * 0.1;
                spent[device.index()] += energy;
                policy.settle(&[(device, energy)]);
            }
            for (spent, queue) in spent.iter().zip(policy.queues()) {
                let bound = 0.5 + queue / f64::from(rounds);
                prop_assert!(spent / f64::from(rounds) <= bound * (1.0 + 1e-12));
            }
        }

        /// The power is the best of a fine grid for V·n·log2(1 + gP/σ²) − Q·P·n·T_s.
        #[test]
        fn the_power_maximizes_the_bits_less_the_price_of_energy(gain in 0.01..10.0f64, q in 0.01..100.0f64) {
            let mut policy = queue(2.0);
            policy.queues[1] = q;
            let power = policy.power(DeviceId(1), LinkGain { gain, mean_gain: 1.0 }).0;
            let value = |p: f64| 2.0 * 10.0 * (1.0 + gain * p).log2() - q * p * 10.0 * 0.1;
            let best = (0..=20_000).map(|i| value(f64::from(i) * 1e-3)).fold(f64::MIN, f64::max);
            prop_assert!(value(power) >= best - 1e-9, "{} {}", value(power), best);
        }
    }

    #[test]
    fn its_state_survives_a_checkpoint_and_another_size_is_refused() {
        let mut policy = queue(1.0);
        policy.settle(&[(DeviceId(2), 7.0)]);
        let mut other = queue(1.0);
        other.load(policy.save()).unwrap();
        assert_eq!(other.queues(), [0.0, 0.0, 6.5]);
        assert!(other.load(State::of(&vec![1.0f64])).is_err());
        assert_eq!(other.queues(), [0.0, 0.0, 6.5]);
    }
}
