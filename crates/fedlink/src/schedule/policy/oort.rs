//! Oort: losses, speed and confidence.

use crate::base::state::{Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::{Quantity, RoundRecord};
use crate::schedule::sampling::successive;
use crate::schedule::{Ask, Bias, Policy, Selection, Trains, View};
use serde::{Deserialize, Serialize};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<OortConfig>();

/// Points of the percentile that the pacer moves by.
const PACER_POINTS: f64 = 5.0;

/// `[schedule.oort]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct OortConfig {
    /// ε before the first round, share of the K drawn from devices never tried
    #[key(default = 0.9, range = "0 ..= 1")]
    pub exploration: f64,
    /// factor of ε per round
    #[key(default = 0.95, range = "0 ..= 1")]
    pub exploration_decay: f64,
    /// below which ε does not fall while some were never tried
    #[key(default = 0.2, range = "0 ..= 1")]
    pub exploration_min: f64,
    /// share of the last score taken above which devices are drawn
    #[key(default = 0.7, range = "0 ..= 1")]
    pub cutoff: f64,
    /// power of T/t for devices slower than desired
    #[key(default = 2.0, range = "0 ..= 100")]
    pub penalty: f64,
    /// quantile of the utilities to which larger ones are clipped
    #[key(default = 0.98, range = "0 ..= 1")]
    pub clip: f64,
    /// T, desired time of a bit at first, percentile over devices
    #[key(default = 10.0, range = "0 ..= 100")]
    pub percentile: f64,
    /// rounds after which the pacer moves T by 5 points, if utilities stood still or jumped
    #[key(default = 20, range = "≥ 1", max = u32::MAX)]
    pub pacer: u64,
}

impl PartConfig for OortConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "oort";
    const FAMILY: &'static str = "loss";
    const MEANING: &'static str =
        "devices drawn by size × RMS loss, speed and confidence, some of those never tried; equal bits";

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(Oort::new(self, scope.devices as usize)))
    }
}

/// Score s_m = (min(U_m, q) − 0.999·U_min)/(U_max − 0.999·U_min) + √(0.1·ln t/L_m), times (T/t_m)^penalty if
/// t_m > T; (1−ε)·K devices with s ≥ cutoff·(the last score that would be taken) drawn without replacement
/// with p ∝ s, the others of the K among devices never tried, with p ∝ C.
///
/// U_m = n_m·√(mean ℓ²) over the samples of its last local training, t the round from 1, L_m the round in
/// which m trained last, q the clip quantile of U, t_m = 1/C_m the time of a bit (a round lasts the same for
/// all), T a percentile of the t_m. ε = max(ε₀·decay^t, min), and 0 once every device was tried. The pacer
/// raises the percentile by 5 if the utility of the scheduled devices over the last rounds differs by at most
/// a tenth from that of the rounds before, and lowers it by 5 if by five times or more. Equal bits; no device
/// reports before selection, the K report when they train.
///
/// Source: Lai, Zhu, Madhyastha and Chowdhury, *Oort: Efficient Federated Learning via Guided Participant
/// Selection* (2021) and its code, as we read them. Where they specify nothing or fail: (1−ε)·K is rounded up
/// or down at random, so that it is unbiased also at K = 1; the cut is at the score of the last device that
/// would be taken, which exists; the confidence term is computed at selection, so that it grows while a
/// device waits; places that exploration cannot fill are drawn by score.
#[derive(Clone, Debug)]
pub struct Oort {
    config: OortConfig,
    /// n_m, from the view of the round.
    sizes: Vec<f64>,
    state: OortState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct OortState {
    arms: Vec<Arm>,
    percentile: f64,
    /// Utilities over the pacer's last rounds, and those before.
    now: f64,
    before: Option<f64>,
}

/// The state of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Arm {
    /// √(mean ℓ²) when it trained last.
    loss: f64,
    /// The round in which it trained last, from 1; 0: never.
    last: u64,
}

impl Oort {
    fn new(config: OortConfig, devices: usize) -> Self {
        let state = OortState {
            arms: vec![Arm::default(); devices],
            percentile: config.percentile,
            now: 0.0,
            before: None,
        };
        Self { config, sizes: Vec::new(), state }
    }

    /// ε in round `t`, from 1, if some were never tried.
    fn exploration(&self, t: u64) -> f64 {
        let OortConfig { exploration, exploration_decay, exploration_min, .. } = self.config;
        (exploration * libm::pow(exploration_decay, t as f64)).max(exploration_min)
    }

    /// T, the desired one of these times of a bit.
    fn desired(&self, times: &[f64]) -> f64 {
        if self.state.percentile >= 100.0 || times.is_empty() {
            return f64::INFINITY;
        }
        let rank = ((times.len() as f64 * self.state.percentile / 100.0) as usize).min(times.len() - 1);
        let mut times = times.to_vec();
        *times.select_nth_unstable_by(rank, f64::total_cmp).1
    }

    /// s of devices that were tried: (U, L, t) each, in round `t`, with the desired time of a bit.
    fn scores(&self, tried: &[(f64, u64, f64)], t: u64, desired: f64) -> Vec<f64> {
        let mut sorted: Vec<f64> = tried.iter().map(|(utility, ..)| *utility).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some((&min, &max)) = sorted.first().zip(sorted.last()) else { return Vec::new() };
        let clip = sorted[((sorted.len() as f64 * self.config.clip) as usize).min(sorted.len() - 1)];
        let (low, range) = (0.999 * min, max - 0.999 * min);
        let score = |&(utility, last, time): &(f64, u64, f64)| {
            let value = if range > 0.0 { (utility.min(clip) - low) / range } else { 0.0 };
            let confidence = libm::sqrt(0.1 * libm::log(t as f64) / last.max(1) as f64);
            let slow = if time > desired { libm::pow(desired / time, self.config.penalty) } else { 1.0 };
            (value + confidence) * slow
        };
        tried.iter().map(score).collect()
    }

    /// The indices of those from which `count` are drawn.
    fn above_the_cut(&self, scores: &[f64], count: usize) -> Vec<usize> {
        let mut sorted = scores.to_vec();
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let cut = sorted.get(count.saturating_sub(1)).map_or(0.0, |last| last * self.config.cutoff);
        (0..scores.len()).filter(|&i| scores[i] >= cut).collect()
    }
}

impl Persist for Oort {
    fn save(&self) -> State {
        State::of(&self.state)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        let state: OortState = state.read()?;
        let OortState { arms, percentile, now, before } = &state;
        let numbers = arms.iter().map(|arm| arm.loss).chain([*percentile, *now]).chain(*before);
        if arms.len() != self.state.arms.len() || numbers.into_iter().any(|x| !(x.is_finite() && x >= 0.0)) {
            return Err(StateError("its utilities are not those of this run".into()));
        }
        self.state = state;
        Ok(())
    }
}

impl Policy for Oort {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.sizes = view.everyone().iter().map(|&device| view.samples(device) as f64).collect();
        let t = view.t + 1;
        let devices = view.eligible();
        let time = |device: DeviceId| 1.0 / view.links.capacity(device);
        let desired = self.desired(&devices.iter().map(|&device| time(device)).collect::<Vec<f64>>());
        let arm = |device: &DeviceId| self.state.arms[device.index()];
        let (tried, new): (Vec<DeviceId>, Vec<DeviceId>) =
            devices.into_iter().partition(|device| arm(device).last > 0);
        let mut rng = view.rng(0);
        // (1−ε)·K, rounded at random.
        let wanted = (1.0 - if new.is_empty() { 0.0 } else { self.exploration(t) }) * view.k as f64;
        let exploited = libm::floor(wanted + rng.uniform()) as usize;
        let exploited = exploited.min(view.k).min(tried.len());
        let explored = (view.k - exploited).min(new.len());
        // Places that exploration cannot fill are drawn by score.
        let exploited = (view.k - explored).min(tried.len());
        let facts = |device: &DeviceId| {
            let Arm { loss, last } = arm(device);
            (self.sizes[device.index()] * loss, last, time(*device))
        };
        let scores = self.scores(&tried.iter().map(facts).collect::<Vec<_>>(), t, desired);
        let above = self.above_the_cut(&scores, exploited);
        view.note_each(Quantity::Score, &tried, |i| scores[i]);
        let cut = above.iter().map(|&i| scores[i]).fold(f64::INFINITY, f64::min);
        view.note_each(Quantity::Threshold, if above.is_empty() { &[] } else { &tried }, |_| cut);
        let weights: Vec<f64> = above.iter().map(|&i| scores[i]).collect();
        let drawn = successive(&weights, exploited, &mut rng).into_iter().map(|i| tried[above[i]]);
        let mut chosen: Vec<DeviceId> = drawn.collect();
        let speeds: Vec<f64> = new.iter().map(|&device| view.links.capacity(device)).collect();
        chosen.extend(successive(&speeds, explored, &mut rng).into_iter().map(|i| new[i]));
        chosen.sort_unstable();
        chosen
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::RmsLoss]
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Scheduled)
    }

    fn observe(&mut self, outcome: &RoundRecord) {
        let round = outcome.round;
        for sent in &outcome.transmissions {
            let m = sent.device.index();
            if let Some(arm) = self.state.arms.get_mut(m) {
                *arm = Arm { loss: f64::from(sent.report).max(0.0), last: round };
                self.state.now += self.sizes.get(m).copied().unwrap_or(1.0) * arm.loss;
            }
        }
        if round.is_multiple_of(self.config.pacer) {
            let now = std::mem::take(&mut self.state.now);
            if let Some(before) = self.state.before.replace(now) {
                let moved = (now - before).abs();
                let by = if moved <= 0.1 * before {
                    PACER_POINTS
                } else if moved >= 5.0 * before {
                    -PACER_POINTS
                } else {
                    0.0
                };
                self.state.percentile = (self.state.percentile + by).clamp(PACER_POINTS, 100.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use crate::record::Transmission;
    use proptest::prelude::*;

    /// A policy with these losses, one for each device that was tried, from these rounds.
    fn oort(config: OortConfig, devices: usize, known: &[(u32, f64, u64)]) -> Oort {
        let mut policy = Oort::new(config, devices);
        for &(device, loss, last) in known {
            policy.state.arms[device as usize] = Arm { loss, last };
        }
        policy
    }

    /// A round in which these devices sent and reported.
    fn record(round: u64, reports: &[(u32, f32)]) -> RoundRecord {
        let devices: Vec<DeviceId> = reports.iter().map(|(device, _)| DeviceId(*device)).collect();
        let mut record = RoundRecord::of_devices(round, &devices);
        let note = |(sent, (_, report)): (&mut Transmission, &(u32, f32))| sent.report = *report;
        record.transmissions.iter_mut().zip(reports).for_each(note);
        record
    }

    #[test]
    fn the_score_is_the_formula_on_a_table_of_five() {
        let policy = oort(OortConfig { clip: 0.6, ..OortConfig::default() }, 5, &[]);
        // (U, L, t); sorted U are 10, 20, 30, 40, 100, of which the fourth is the clip quantile.
        let tried = [(10.0, 9, 1.0), (20.0, 1, 1.0), (30.0, 4, 4.0), (40.0, 9, 0.5), (100.0, 3, 2.0)];
        let scores = policy.scores(&tried, 9, 2.0);
        let range = 100.0 - 9.99;
        let bonus = |last: f64| (0.1 * 9f64.ln() / last).sqrt();
        let wanted = [
            (10.0 - 9.99) / range + bonus(9.0),
            (20.0 - 9.99) / range + bonus(1.0),
            ((30.0 - 9.99) / range + bonus(4.0)) * 0.25,
            (40.0 - 9.99) / range + bonus(9.0),
            (40.0 - 9.99) / range + bonus(3.0),
        ];
        for (got, wanted) in scores.iter().zip(wanted) {
            assert!((got - wanted).abs() < 1e-12, "{scores:?}");
        }
        // ln 1 = 0: no confidence is counted in the first round.
        let first = policy.scores(&[(10.0, 1, 1.0), (20.0, 1, 1.0)], 1, 2.0);
        assert!((first[0] - 0.01 / 10.01).abs() < 1e-12 && (first[1] - 1.0).abs() < 1e-12);
        // A device that waits is looked at again: its bonus grows with t.
        let later = policy.scores(&tried, 99, 2.0);
        assert!(later.iter().zip(&scores).all(|(later, now)| later > now));
    }

    #[test]
    fn without_exploration_cutoff_and_penalty_it_takes_the_largest_scores() {
        let config = OortConfig {
            exploration: 0.0,
            exploration_min: 0.0,
            cutoff: 1.0,
            penalty: 0.0,
            ..OortConfig::default()
        };
        // Equal ages; U = n·loss with n = 10 + m: 50, 33, 60, 26, 42.
        let known = [(0, 5.0, 2), (1, 3.0, 2), (2, 5.0, 2), (3, 2.0, 2), (4, 3.0, 2)];
        for k in 1..=4 {
            let bench = Bench::new(5, k);
            let chosen = bench.at(7, |view| oort(config, 5, &known).candidates(view));
            let mut wanted = [2, 0, 4, 1, 3][..k].to_vec();
            wanted.sort_unstable();
            assert_eq!(chosen.iter().map(|device| device.index()).collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn devices_never_tried_are_explored_by_speed_also_at_k_1_and_tried_ones_too() {
        let known = [(0, 1.0, 1), (1, 2.0, 1)];
        let bench = Bench::with_gains(&[1.0, 1.0, 1.0, 15.0], 1);
        // ε is 0.2 in round 400: C = 1 and 4 of the two that were never tried.
        let rounds = 20_000;
        let mut counts = [0.0; 4];
        for t in 0..rounds {
            let mut policy = oort(OortConfig { exploration: 0.0, ..OortConfig::default() }, 4, &known);
            let chosen = bench.at(400 + t, |view| policy.candidates(view));
            assert_eq!(chosen.len(), 1);
            counts[chosen[0].index()] += 1.0;
        }
        let near = |count: f64, p: f64| {
            let deviation = (rounds as f64 * p * (1.0 - p)).sqrt();
            assert!((count - rounds as f64 * p).abs() < 4.5 * deviation, "{counts:?}");
        };
        near(counts[2], 0.2 * 0.2);
        near(counts[3], 0.2 * 0.8);
        near(counts[0] + counts[1], 0.8);
        // In the first round no device was tried, and ε = 0.9·0.95.
        assert!((Oort::new(OortConfig::default(), 4).exploration(1) - 0.855).abs() < 1e-12);
        assert_eq!(Oort::new(OortConfig::default(), 4).exploration(500), 0.2);
    }

    #[test]
    fn reports_are_kept_and_the_pacer_moves_the_desired_time() {
        let config = OortConfig { pacer: 2, ..OortConfig::default() };
        let mut policy = oort(config, 3, &[]);
        policy.sizes = vec![10.0, 20.0, 30.0];
        // Sums of n·loss in pairs of rounds: 52 is within a tenth of 50, 200 is neither, 4000 is beyond five
        // times.
        let pairs = [(50.0, 10.0), (52.0, 15.0), (200.0, 15.0), (4000.0, 10.0), (4200.0, 15.0)];
        let mut round = 0;
        for (sum, percentile) in pairs {
            for half in [sum / 2.0, sum / 2.0] {
                round += 1;
                policy.observe(&record(round, &[(1, half / 20.0)]));
            }
            assert!(
                (policy.state.percentile - percentile).abs() < 1e-12,
                "after {round}: {}",
                policy.state.percentile
            );
        }
        assert_eq!(policy.state.arms[1], Arm { loss: 105.0, last: 10 });
        assert_eq!(policy.state.arms[0], Arm::default());
        // The 10th percentile of ten times is the second smallest.
        let mut policy = oort(config, 10, &[]);
        let times: Vec<f64> = (0..10).rev().map(f64::from).collect();
        assert_eq!(policy.desired(&times), 1.0);
        policy.state.percentile = 100.0;
        assert_eq!(policy.desired(&times), f64::INFINITY);
    }

    #[test]
    fn the_reports_are_root_mean_squares_of_the_losses_of_samples() {
        let mut config = crate::spec::Config::default();
        config.data.devices = 6;
        config.data.samples_per_device = 30;
        (config.schedule.policy, config.schedule.k, config.run.rounds) = ("oort".into(), 2, 3);
        config.learn.model = "softmax".into();
        config.learn.init = crate::learn::model::Init::Zeros;
        config.learn.local_steps = 1;
        let data = crate::data::load("digits", &[]).unwrap();
        let mut simulation = crate::system::simulation::Simulation::of(&config, data.clone()).unwrap();
        // All logits are zero at first: every sample loses ln 10.
        let first = simulation.step().unwrap();
        assert!(first.transmissions.iter().all(|sent| (f64::from(sent.report) - 10f64.ln()).abs() < 1e-6));
        // Later the losses differ, and the root mean square is above their mean.
        let second = simulation.step().unwrap();
        let sum: f64 = second.transmissions.iter().map(|sent| f64::from(sent.report)).sum();
        assert!(sum / 2.0 > second.training.loss + 1e-6, "{sum} {}", second.training.loss);
    }

    proptest! {
        #[test]
        fn drawn_devices_are_above_the_cut_and_k_of_them(
            arms in prop::collection::vec((0.0..10.0f64, 0u64..9), 1..9),
            k in 1usize..9,
            t in 9u64..60,
        ) {
            let (m, k) = (arms.len(), k.min(arms.len()));
            let told = (0..).zip(&arms).map(|(i, &(loss, last))| (i, loss, last));
            let known: Vec<(u32, f64, u64)> = told.collect();
            let bench = Bench::new(m, k);
            let mut policy = oort(OortConfig::default(), m, &known);
            let chosen = bench.at(t, |view| policy.candidates(view));
            prop_assert_eq!(chosen.len(), k);
            bench.at(t, |view| {
                let tried: Vec<DeviceId> =
                    DeviceId::all(m).filter(|device| arms[device.index()].1 > 0).collect();
                let time = |device: DeviceId| 1.0 / view.links.capacity(device);
                let facts: Vec<(f64, u64, f64)> = tried
                    .iter()
                    .map(|&d| ((10 + d.index()) as f64 * arms[d.index()].0, arms[d.index()].1, time(d)))
                    .collect();
                let desired = policy.desired(&DeviceId::all(m).map(time).collect::<Vec<f64>>());
                let scores = policy.scores(&facts, t + 1, desired);
                let taken: Vec<f64> =
                    tried.iter().zip(&scores).filter(|(d, _)| chosen.contains(d)).map(|(_, s)| *s).collect();
                let mut sorted = scores.clone();
                sorted.sort_by(|a, b| b.total_cmp(a));
                if let Some(last) = taken.len().checked_sub(1) {
                    assert!(taken.iter().all(|s| *s >= 0.7 * sorted[last]), "{scores:?} {chosen:?}");
                }
            });
        }
    }
}
