//! The contract between a policy and the facts that it declares, for tests of policies, built-in or custom.

use super::{
    Ask, Bias, DeviceTable, Facts, Policy, Reports, Schedule, Trains, View, Weight, check_candidates,
};
use crate::base::units::{DeviceId, Power};
use crate::parts::Scope;
use crate::radio::link::capacity;
use crate::radio::{CapacityAt, Known};
use crate::record::RoundRecord;

/// Checks that a policy behaves as its facts declare ([`Policy::selection`], [`Policy::asks`]); the error
/// names the fact. `make` makes a new policy for a run of M devices and K, or none for a run that the policy
/// rejects.
///
/// A fact that this finds no contradiction to may still be wrong: it plays a few thousand rounds.
///
/// ```
/// use fedlink::prelude::*;
/// use fedlink::schedule::contract;
/// struct Everybody;
/// impl Persist for Everybody {}
/// impl Policy for Everybody {
///     fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
///         view.eligible()
///     }
///     fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
///         Schedule::equal(reports.devices.iter().copied().take(view.k))
///     }
///     fn selection(&self) -> fedlink::schedule::Selection {
///         let (bias, trains) = (fedlink::schedule::Bias::Biased, fedlink::schedule::Trains::Scheduled);
///         fedlink::schedule::Selection::new(bias, trains)
///     }
/// }
/// let error = contract::check(|_| Some(Box::new(Everybody))).unwrap_err();
/// assert!(error.starts_with("trains: it declares Trains::Scheduled, but 6 devices train for 1"));
/// ```
pub fn check(make: impl Fn(&Scope) -> Option<Box<dyn Policy>>) -> Result<(), String> {
    findings(make).into_iter().next().map_or(Ok(()), Err)
}

/// As [`check`], with the first finding about each fact.
pub fn findings(make: impl Fn(&Scope) -> Option<Box<dyn Policy>>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let runs = [(6, 1), (6, 2), (5, 5), (9, 3), (9, 9), (40, 4), (40, 40)];
    let mut played = 0;
    for (m, k) in runs {
        let scope = Scope { devices: m as u64, k: k as u64, ..Scope::default() };
        let fresh = || make(&scope).map(|policy| Play::new(policy, m, k));
        let Some(mut play) = fresh() else { continue };
        played += 1;
        let selection = play.policy.selection();
        let mut results = vec![(0..30).try_for_each(|_| play.check_round())];
        results.push(check_repeats(&fresh));
        if selection.bias == Bias::Unbiased && m <= 6 {
            results.push(fresh().map_or(Ok(()), |mut play| play.check_bias()));
        }
        if selection.by_channel && m == 40 && k < m {
            results.push(fresh().map_or(Ok(()), |mut play| play.check_channel()));
        }
        for problem in results.into_iter().filter_map(Result::err) {
            let fact = |text: &str| text.split(':').next().map(str::to_owned);
            if found.iter().all(|other| fact(other) != fact(&problem)) {
                found.push(format!("{problem} (M = {m}, K = {k})"));
            }
        }
    }
    if played == 0 {
        found.push("it refuses every run that it could be tested in".into());
    }
    found
}

/// Checks that policies that are made alike decide alike, and that one continues from a saved state as the
/// policy that was saved.
fn check_repeats(fresh: &dyn Fn() -> Option<Play>) -> Result<(), String> {
    const ROUNDS: usize = 12;
    const SAVED: usize = 5;
    let (Some(mut first), Some(mut second), Some(mut resumed)) = (fresh(), fresh(), fresh()) else {
        return Ok(());
    };
    if first.policy.asks() != second.policy.asks() {
        return Err("asks: two policies that are made alike do not ask for the same reports".into());
    }
    for t in 0..ROUNDS {
        if t == SAVED {
            let Some(Play { policy, .. }) = fresh() else { return Ok(()) };
            let state = first.policy.save();
            resumed.policy = policy;
            resumed.policy.load(state).map_err(|error| format!("state: load after save fails: {error}"))?;
            first.check_failure()?;
        }
        let answers = |i: usize| ((i * 5 + t * 3) % 11 + 1) as f32;
        let [a, b, c] = [first.round(answers)?, second.round(answers)?, resumed.round(answers)?];
        let same =
            |a: &Played, b: &Played| a.candidates == b.candidates && a.schedule.picks == b.schedule.picks;
        if !same(&a, &b) {
            return Err(format!(
                "determinism: two policies that are made alike decide differently in round {}; random \
                 numbers must come from the seed and the round of the view",
                t + 1
            ));
        }
        if !same(&a, &c) {
            return Err(format!(
                "state: a policy that continues from a saved state decides differently in round {}; save and \
                 load must keep all that it keeps between rounds",
                t + 1
            ));
        }
    }
    Ok(())
}

/// A policy that plays rounds.
struct Play {
    policy: Box<dyn Policy>,
    bench: Bench,
    t: u64,
}

/// A round of a policy.
struct Played {
    candidates: Vec<DeviceId>,
    /// The first report of every candidate.
    reports: Vec<f32>,
    schedule: Schedule,
}

impl Play {
    fn new(policy: Box<dyn Policy>, m: usize, k: usize) -> Self {
        Self { policy, bench: Bench::new(m, k), t: 0 }
    }

    /// An error if a call of the policy has failed.
    fn check_failure(&self) -> Result<(), String> {
        self.policy.failure().map_or(Ok(()), |problem| Err(format!("call: {problem}")))
    }

    /// Plays a round in which every candidate reports its number of `answers`.
    fn round(&mut self, answers: impl Fn(usize) -> f32) -> Result<Played, String> {
        let (t, policy, bench) = (self.t, &mut *self.policy, &mut self.bench);
        let asks = policy.asks().to_vec();
        let failed =
            |policy: &dyn Policy| policy.failure().map_or(Ok(()), |problem| Err(format!("call: {problem}")));
        let (candidates, reports, schedule) = bench.at(t, |view| {
            let view = &View { k: policy.round_k(view).clamp(1, view.k), ..*view };
            let candidates = policy.candidates(view);
            failed(policy)?;
            check_candidates(&candidates, view.links.devices())
                .map_err(|error| format!("candidates: {error}"))?;
            let reports: Vec<f32> = candidates.iter().map(|device| answers(device.index())).collect();
            let rows = reports.iter().flat_map(|report| vec![*report; asks.len()]).collect();
            let schedule = policy.select(view, &Reports::new(candidates.clone(), asks.len(), rows));
            failed(policy)?;
            schedule.check(&candidates, view.k).map_err(|error| format!("schedule: {error}"))?;
            Ok::<_, String>((candidates, reports, schedule))
        })?;
        if asks.contains(&Ask::Loss) {
            candidates.iter().zip(&reports).for_each(|(device, loss)| bench.note_loss(device.0, *loss));
        }
        let chosen: Vec<DeviceId> = schedule.devices().collect();
        bench.schedule_devices(&chosen, t);
        policy.observe(&RoundRecord::of_devices(t + 1, &chosen));
        failed(policy)?;
        self.t += 1;
        if *policy.asks() != asks[..] {
            return Err("asks: the requested reports differ between rounds".into());
        }
        Ok(Played { candidates, reports, schedule })
    }

    /// One round against every fact that each round shows.
    fn check_round(&mut self) -> Result<(), String> {
        let (m, selection) = (self.bench.links.devices(), self.policy.selection());
        let t = self.t as usize;
        let Played { candidates, reports, schedule } = self.round(|i| (1 + (i * 4 + t) % m) as f32)?;
        let (trained, sent) = (candidates.len(), schedule.picks.len());
        let verb = if sent == 1 { "is" } else { "are" };
        if selection.trains == Trains::Scheduled && trained != sent {
            return Err(format!(
                "trains: it declares Trains::Scheduled, but {trained} devices train for {sent} that {verb} \
                 scheduled"
            ));
        }
        if selection.trains == Trains::Everyone && trained != m {
            return Err(format!("trains: it declares Trains::Everyone, but {trained} of {m} devices train"));
        }
        let own = schedule.picks.iter().filter(|pick| matches!(pick.weight, Weight::Own(_))).count();
        if own != if selection.own_weights { sent } else { 0 } {
            return Err(format!(
                "own_weights: it declares {}, but it sets Weight::Own for {own} of {sent} devices",
                selection.own_weights
            ));
        }
        if selection.largest_reports {
            let mut ranked: Vec<(f32, DeviceId)> = reports.into_iter().zip(candidates).collect();
            ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let mut chosen: Vec<DeviceId> = schedule.devices().collect();
            let mut largest: Vec<DeviceId> = ranked.iter().take(sent).map(|(_, device)| *device).collect();
            chosen.sort_unstable();
            largest.sort_unstable();
            if chosen != largest {
                return Err(
                    "largest_reports: it does not schedule the devices with the largest first reports".into(),
                );
            }
        }
        Ok(())
    }

    /// Whether each device has the weight π on average over many rounds: equal weights, or by samples.
    fn check_bias(&mut self) -> Result<(), String> {
        let (m, rounds) = (self.bench.links.devices(), 6000);
        let (mut sums, mut squares) = (vec![0.0; m], vec![0.0; m]);
        for t in 0..rounds {
            let schedule = self.round(|i| (1 + (i + t) % 4) as f32)?.schedule;
            let count = schedule.picks.len() as f64;
            for pick in &schedule.picks {
                let weight = if let Weight::Own(weight) = pick.weight { weight } else { 1.0 / count };
                sums[pick.device.index()] += weight;
                squares[pick.device.index()] += weight * weight;
            }
        }
        let n = rounds as f64;
        let size = |i: usize| (10 + i) as f64;
        let all: f64 = (0..m).map(size).sum();
        let off = |target: &dyn Fn(usize) -> f64| {
            (0..m).find(|&i| {
                let mean = sums[i] / n;
                let variance = (squares[i] / n - mean * mean).max(0.0);
                (mean - target(i)).abs() > 4.5 * (variance / n).sqrt() + 1e-9
            })
        };
        match (off(&|_| 1.0 / m as f64), off(&|i| size(i) / all)) {
            (Some(device), Some(_)) => Err(format!(
                "bias: it declares Bias::Unbiased, but device {device} has the mean weight {:.4}, not 1/M = \
                 {:.4}",
                sums[device] / n,
                1.0 / m as f64
            )),
            _ => Ok(()),
        }
    }

    /// Whether the device in a deep fade is left out where all others have good channels and all report the
    /// same.
    fn check_channel(&mut self) -> Result<(), String> {
        let m = self.bench.links.devices();
        for faded in 0..m {
            let gains: Vec<f64> = (0..m).map(|i| if i == faded { 1e-9 } else { 4.0 }).collect();
            self.bench.links = known(&gains);
            if self.round(|_| 1.0)?.schedule.devices().any(|device| device.index() == faded) {
                return Err(format!(
                    "by_channel: it declares that it picks by the channel, but it schedules device {faded} \
                     in a deep fade"
                ));
            }
        }
        Ok(())
    }
}

/// The knowledge of a server without a server, for tests of policies: M devices with given gains, some of
/// which may not send.
///
/// ```
/// use fedlink::base::units::DeviceId;
/// use fedlink::prelude::*;
/// use fedlink::schedule::contract::Bench;
/// let schedule = Bench::with_gains(&[1.0, 5.0, 3.0], 2).schedule(&mut Bc {}, &[0.0; 3]);
/// assert_eq!(schedule.devices().collect::<Vec<_>>(), [DeviceId(1), DeviceId(2)]);
/// ```
pub struct Bench {
    /// K.
    pub k: usize,
    /// n.
    pub symbols: u64,
    /// Seconds of a symbol.
    pub symbol_s: Option<f64>,
    seed: u64,
    /// Samples of device m are 10 + m·this.
    growth: usize,
    pub(crate) links: Known,
    devices: DeviceTable,
    /// The facts that are known of the devices from the start.
    pub facts: Facts,
}

/// Links whose power is shared: C = log2(1 + g/k) with k scheduled devices.
struct ByShare;

impl CapacityAt for ByShare {
    fn capacity_at(&self, _: u64, known: &Known, device: DeviceId, k: usize) -> f64 {
        capacity(known.gain(device), Power(1.0 / k as f64), 1.0)
    }
}

/// Links with these gains, of capacity log2(1 + g).
pub(crate) fn known(gains: &[f64]) -> Known {
    let capacities = gains.iter().map(|&gain| capacity(gain, Power(1.0), 1.0)).collect();
    Known::new(gains.to_vec(), capacities, Power(1.0))
}

impl Bench {
    /// M devices, up to K of which are scheduled; neighbors have different gains.
    pub fn new(m: usize, k: usize) -> Self {
        let gains: Vec<f64> = (0..m).map(|i| (1 + i * 7 % 13) as f64).collect();
        Self::with_gains(&gains, k)
    }

    /// Devices with these gains.
    pub fn with_gains(gains: &[f64], k: usize) -> Self {
        let (links, devices) = (known(gains), DeviceTable::new(gains.len()));
        Self { k, symbols: 5000, symbol_s: None, seed: 0, growth: 1, links, devices, facts: Facts::default() }
    }

    /// The same in a run of another seed.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The same with 10 samples on every device.
    #[must_use]
    pub fn with_equal_sizes(mut self) -> Self {
        self.growth = 0;
        self
    }

    /// Notes a loss that a device reported.
    pub fn note_loss(&mut self, device: u32, loss: f32) {
        self.devices.note_loss(DeviceId(device), loss);
    }

    /// The same with devices that may not send.
    #[must_use]
    pub fn excluding(mut self, devices: &[usize]) -> Self {
        for &device in devices {
            self.devices.set_may_send(device, false);
            self.links.silence(device);
        }
        self
    }

    /// Calls `read` with the view of round `t`.
    pub fn at<R>(&self, t: u64, read: impl FnOnce(&View) -> R) -> R {
        let samples = |device: DeviceId| 10 + device.index() * self.growth;
        read(&View {
            t,
            k: self.k,
            dim: 1000,
            symbols: self.symbols,
            symbol_s: self.symbol_s,
            average_power: Power(1.0),
            noise: 1.0,
            links: &self.links,
            devices: &self.devices,
            turns: u128::from(t) * self.k as u128,
            uplink: &ByShare,
            known_of: &self.facts,
            samples: &samples,
            seed: self.seed,
            notes: None,
        })
    }

    /// Notes that `devices` were scheduled in round `t`.
    pub fn schedule_devices(&mut self, devices: &[DeviceId], t: u64) {
        devices.iter().for_each(|device| self.devices.note_scheduled(*device, t));
    }

    /// The decision of `policy` in round 0 if every candidate reports its number of `answers`.
    pub fn schedule(&self, policy: &mut dyn Policy, answers: &[f32]) -> Schedule {
        self.at(0, |view| {
            let candidates = policy.candidates(view);
            let asks = policy.asks().len();
            let values = candidates.iter().flat_map(|device| vec![answers[device.index()]; asks]).collect();
            policy.select(view, &Reports::new(candidates, asks, values))
        })
    }
}
