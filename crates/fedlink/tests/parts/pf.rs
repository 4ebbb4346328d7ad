//! PF: proportional fair scheduling.

use fedlink::base::state::{Persist, State, StateError};
use fedlink::base::units::DeviceId;
use fedlink::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use fedlink::record::RoundRecord;
use fedlink::schedule::{Bias, Policy, Selection, Trains, View, largest};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<PfConfig>();

/// `[schedule.pf]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct PfConfig {
    /// t_c, time constant of the average, in rounds
    #[key(default = 100, range = "1 ..= 1e6")]
    pub window: u64,
}

impl PartConfig for PfConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "pf";
    const FAMILY: &'static str = "fairness";
    const MEANING: &'static str = "the K largest ratios of present capacity to average rate, equal bits";

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(Pf { window: self.window, rates: vec![1.0; scope.devices as usize] }))
    }
}

/// The K devices with the largest C_m/T_m, with equal bit weights.
///
/// T_m ← (1 − 1/t_c)·T_m + C_m/t_c in rounds in which device m is scheduled; the second term is 0 in the
/// other rounds. T_m = 1 bit per symbol at the start. Only the K scheduled devices train, and no device
/// reports. Source: Viswanath, Tse and Laroia, *Opportunistic Beamforming Using Dumb Antennas* (2002), with K
/// devices in place of one. Invariants: T_m ≥ 0. State: M numbers.
pub struct Pf {
    window: u64,
    /// T_m of every device, bits per symbol.
    rates: Vec<f64>,
}

impl Persist for Pf {
    fn save(&self) -> State {
        State::of(&self.rates)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        let rates: Vec<f64> = state.read()?;
        if rates.len() != self.rates.len() {
            return Err(StateError(format!("it has {} rates for {} devices", rates.len(), self.rates.len())));
        }
        self.rates = rates;
        Ok(())
    }
}

impl Policy for Pf {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let devices = view.eligible();
        let ratio = |index: usize| {
            let device = devices[index];
            // A rate that has decayed to zero would divide by zero.
            view.links.capacity(device) / self.rates[device.index()].max(f64::MIN_POSITIVE)
        };
        largest(&devices, view.k, ratio)
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::OverRounds, Trains::Scheduled).by_channel(true)
    }

    // State changes here and not in `candidates`: a round that was begun may be abandoned and begun again.
    fn observe(&mut self, outcome: &RoundRecord) {
        let share = 1.0 / self.window as f64;
        self.rates.iter_mut().for_each(|rate| *rate *= 1.0 - share);
        for sent in &outcome.transmissions {
            self.rates[sent.device.index()] += share * sent.capacity;
        }
    }
}
