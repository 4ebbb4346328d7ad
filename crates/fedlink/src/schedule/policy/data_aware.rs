//! Data-aware scheduling: diverse labels, many samples, long waits.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::Quantity;
use crate::schedule::{
    Bias, Pick, Policy, Reports, Schedule, Selection, Trains, View, Weight, largest_indices_by,
};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<DataAwareConfig>();

/// `[schedule.data-aware]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct DataAwareConfig {
    /// what the Gini index of a device's labels counts, against the other two
    #[key(default = 1.0, range = "≥ 0")]
    pub diversity: f64,
    /// what its share of all samples counts
    #[key(default = 1.0, range = "≥ 0")]
    pub size: f64,
    /// what the rounds since it was scheduled, over all rounds so far, count
    #[key(default = 1.0, range = "≥ 0")]
    pub age: f64,
    /// κ, power of the capacity by which the sum is multiplied; 0: channels do not count
    #[key(default = 0.0, range = "0 ..= 1000")]
    pub kappa: f64,
}

impl PartConfig for DataAwareConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "data-aware";
    const FAMILY: &'static str = "diversity";
    const MEANING: &'static str =
        "the K largest sums of label diversity, share of samples and age; updates count by size, equal bits";

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        if self.diversity + self.size + self.age <= 0.0 {
            return Err(ConfigError::new(
                "diversity",
                "is 0, and so are size and age; one of the three must be above 0",
            ));
        }
        Ok(())
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(DataAware { config: self, fixed: Vec::new() }))
    }
}

/// The K largest I_m·C_m^κ with I_m = (w₁·(1 − Σ_c p_mc²) + w₂·n_m/Σn + w₃·a_m/t)/(w₁ + w₂ + w₃); p_mc the
/// shares of the classes among the samples of device m, a_m its age, t the rounds so far. Equal bits; an
/// update counts by its samples, n_m over those of all scheduled.
///
/// Every device reports its Gini index and its size once, before the first round (64 bits): information on
/// labels leaves the device. Where the labels are unknown (nodes, custom tasks that do not give them) all
/// indices are 0. Source: after Taïk, Moudoud and Cherkaoui, *Data-Quality Based Scheduling for Federated
/// Edge Learning* (2021), as we read it, without the knapsack over resource blocks. Invariants: the index is
/// 0 for one class and 1 − 1/c for c equal ones; where sizes and labels are alike it is an order by age. With
/// two classes of equal size on every device all indices are ½.
#[derive(Clone, Debug)]
pub struct DataAware {
    config: DataAwareConfig,
    /// The constant part of I_m; empty before the first round of a process, in which it is computed.
    fixed: Vec<f64>,
}

/// 1 − Σ p² over the shares of the classes.
fn gini(counts: &[u32]) -> f64 {
    let total: f64 = counts.iter().map(|&count| f64::from(count)).sum();
    let share = |&count: &u32| if total > 0.0 { f64::from(count) / total } else { 0.0 };
    if total > 0.0 { 1.0 - counts.iter().map(|count| share(count) * share(count)).sum::<f64>() } else { 0.0 }
}

impl DataAware {
    fn note(&mut self, view: &View) {
        let devices = view.everyone();
        let total: f64 = devices.iter().map(|&device| view.samples(device) as f64).sum();
        let DataAwareConfig { diversity, size, .. } = self.config;
        let fixed = |device: DeviceId| {
            let labels = view.label_counts(device).map_or(0.0, |counts| gini(&counts));
            diversity * labels + size * view.samples(device) as f64 / total.max(1.0)
        };
        self.fixed = devices.into_iter().map(fixed).collect();
    }
}

impl Persist for DataAware {}

impl Policy for DataAware {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        if self.fixed.len() != view.links.devices() {
            self.note(view);
        }
        let devices = view.eligible();
        let DataAwareConfig { diversity, size, age, kappa } = self.config;
        let value = |i: usize| {
            let device = devices[i];
            let waited = view.devices.age(device, view.t) as f64 / view.t.max(1) as f64;
            let importance = (self.fixed[device.index()] + age * waited) / (diversity + size + age);
            let channel = if kappa > 0.0 { kappa * libm::log(view.links.capacity(device)) } else { 0.0 };
            // Of equals, the larger gain.
            (libm::log(importance) + channel, view.links.gain(device))
        };
        view.note_each(Quantity::Score, &devices, |i| value(i).0);
        largest_indices_by(&devices, view.k, value).into_iter().map(|i| devices[i]).collect()
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Scheduled).with_weights().by_channel(self.config.kappa > 0.0)
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        let sizes: Vec<f64> = reports.devices.iter().map(|&device| view.samples(device) as f64).collect();
        let total: f64 = sizes.iter().sum();
        let pick = |(&device, size): (&DeviceId, f64)| {
            let weight = Weight::Own(if total > 0.0 { size / total } else { 0.0 });
            Pick { device, bit_weight: 1.0, weight }
        };
        Schedule { picks: reports.devices.iter().zip(sizes).map(pick).collect() }
    }

    fn uses_labels(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use crate::data;
    use crate::schedule::Facts;
    use crate::system::simulation::Simulation;
    use std::sync::Arc;

    fn policy(config: DataAwareConfig) -> DataAware {
        DataAware { config, fixed: Vec::new() }
    }

    #[test]
    fn the_index_of_one_class_is_0_and_of_c_equal_ones_1_minus_1_over_c() {
        assert_eq!((gini(&[7]), gini(&[0, 12, 0]), gini(&[])), (0.0, 0.0, 0.0));
        for c in 1..=10usize {
            assert!((gini(&vec![30; c]) - (1.0 - 1.0 / c as f64)).abs() < 1e-12);
        }
    }

    #[test]
    fn where_labels_and_sizes_are_alike_the_oldest_come_first() {
        let mut bench = Bench::new(6, 2).with_equal_sizes();
        bench.facts = Facts { labels: Some(Arc::new(|_| Some(vec![5, 5]))), ..Facts::default() };
        for (t, device) in [(0, 4), (1, 0), (2, 2), (3, 5), (4, 1), (5, 3)] {
            bench.schedule_devices(&[DeviceId(device)], t);
        }
        for kappa in [0.0, 1e-9] {
            let config = DataAwareConfig { kappa, ..DataAwareConfig::default() };
            assert_eq!(bench.at(6, |view| policy(config).candidates(view)), [DeviceId(0), DeviceId(4)]);
        }
    }

    #[test]
    fn the_choice_is_the_largest_sum_and_updates_count_by_size() {
        let mut bench = Bench::with_gains(&[1.0; 4], 2);
        let labels = |device: DeviceId| {
            Some([vec![8, 0, 0], vec![4, 4, 0], vec![3, 3, 3], vec![6, 2, 0]][device.index()].clone())
        };
        bench.facts = Facts { labels: Some(Arc::new(labels)), ..Facts::default() };
        bench.schedule_devices(&[DeviceId(2)], 3);
        let mut made = policy(DataAwareConfig::default());
        // Ginis 0, 1/2, 2/3, 3/8; sizes 10, 11, 12, 13 of 46; ages 4/4, 4/4, 0, 4/4.
        let schedule = bench.at(4, |view| {
            let chosen = made.candidates(view);
            made.select(view, &Reports::new(chosen, 0, vec![]))
        });
        let picks = schedule.picks.iter();
        let got: Vec<(u32, Weight)> = picks.map(|pick| (pick.device.0, pick.weight)).collect();
        assert_eq!(got, [(1, Weight::Own(11.0 / 24.0)), (3, Weight::Own(13.0 / 24.0))]);
        // By labels alone.
        let config = DataAwareConfig { size: 0.0, age: 0.0, ..DataAwareConfig::default() };
        assert_eq!(bench.at(4, |view| policy(config).candidates(view)), [DeviceId(1), DeviceId(2)]);
    }

    #[test]
    fn a_run_has_the_labels_of_its_devices() {
        let mut config = crate::spec::Config::default();
        (config.data.devices, config.data.samples_per_device) = (6, 40);
        config.data.partition = "classes".into();
        config.learn.model = "softmax".into();
        (config.schedule.policy, config.schedule.k, config.run.rounds) = ("data-aware".into(), 2, 3);
        let dataset = data::load("digits", &[]).unwrap();
        let mut simulation = Simulation::of(&config, dataset).unwrap();
        let task = simulation.fleet.task();
        for device in DeviceId::all(6) {
            let counts = task.label_counts(device).unwrap();
            assert_eq!(counts.iter().sum::<u32>(), 40);
            assert_eq!(counts.iter().filter(|count| **count > 0).count(), 2, "two classes each");
        }
        let outcome = simulation.run(|_| ()).unwrap();
        assert!(outcome.warnings.iter().all(|warning| !warning.contains("labels")), "{:?}", outcome.warnings);
    }

    #[test]
    fn nodes_with_unknown_labels_are_named_in_a_warning() {
        let mut config = crate::spec::Config::default();
        config.schedule.policy = "data-aware".into();
        let parts = crate::parts::Parts::default();
        let server =
            crate::system::server::Server::of(&config.resolve(&parts).unwrap(), vec![0.0; 20], None).unwrap();
        let [warning] = &server.warnings()[..] else { panic!("one warning") };
        assert!(warning.starts_with("policy data-aware uses the labels"), "{warning}");
    }
}
