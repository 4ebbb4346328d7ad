//! The contract of every policy; and the paper's policies against brute force over all
//! subsets.

use super::*;
use crate::base::rng::{Purpose, stream};
use crate::base::state::{Persist, State};
use crate::base::units::{DeviceId, Power};
use crate::compress::Spent;
use crate::error::Error;
use crate::learn::task::{Evaluation, Job, Task, TaskError};
use crate::parts::{Entry, Scope, find};
use crate::radio::Known;
use crate::record::{RoundRecord, Training};
pub use crate::schedule::contract::Bench;
use crate::schedule::contract::{self, known};
use crate::schedule::received::tests::Dense;
use crate::schedule::{Ask, Bias, Reports, Sampling, Schedule, Selection, Trains, View, Weight};
use crate::spec::{Config, Spec};
use crate::system::server::{Body, Call, Server, Upload};
use crate::system::simulation::Simulation;
use proptest::prelude::*;
use std::io::Cursor;
use toml::Table;

/// The policies of the list and the documented custom one.
fn entries() -> impl Iterator<Item = &'static Entry<dyn Policy>> {
    POLICIES.iter().chain([&crate::documented::pf::ENTRY])
}

/// The indices of the scheduled devices.
pub fn devices(schedule: &Schedule) -> Vec<usize> {
    schedule.devices().map(DeviceId::index).collect()
}

/// The number of rounds in which each of `m` devices is scheduled.
pub fn counts(schedules: &[Vec<DeviceId>], m: usize) -> Vec<u32> {
    let mut counts = vec![0; m];
    schedules.iter().flatten().for_each(|device| counts[device.index()] += 1);
    counts
}

/// The devices that a policy without reports schedules, over rounds with these gains.
pub fn run_policy(policy: &mut dyn Policy, gains: &[Vec<f64>], k: usize) -> Vec<Vec<DeviceId>> {
    run_with_rates(policy, gains, &vec![1.0; gains[0].len()], k)
}

/// The same where the capacity of each device is multiplied by its number of `rates`.
pub fn run_with_rates(
    policy: &mut dyn Policy,
    gains: &[Vec<f64>],
    rates: &[f64],
    k: usize,
) -> Vec<Vec<DeviceId>> {
    let mut bench = Bench::new(gains[0].len(), k);
    let mut schedules = Vec::new();
    for (t, gains) in gains.iter().enumerate() {
        let links = known(gains);
        let rate = |(device, rate): (DeviceId, &f64)| links.capacity(device) * rate;
        let capacities = DeviceId::all(rates.len()).zip(rates).map(rate).collect();
        bench.links = Known::new(gains.clone(), capacities, Power(1.0));
        let schedule = bench.at(t as u64, |view| {
            let candidates = policy.candidates(view);
            policy.select(view, &Reports::new(candidates, 0, Vec::new()))
        });
        let chosen: Vec<DeviceId> = schedule.devices().collect();
        bench.schedule_devices(&chosen, t as u64);
        policy.observe(&RoundRecord::of_devices(t as u64 + 1, &chosen));
        schedules.push(chosen);
    }
    schedules
}

/// A real server with one policy, whose links and devices a test sets.
struct Run {
    server: Server,
}

/// Devices with 10, 11 … samples and a model of ten entries, which this test never trains.
struct Untrained;

impl Task for Untrained {
    fn theta0(&self) -> Vec<f32> {
        vec![0.0; 10]
    }

    fn samples(&self, device: DeviceId) -> usize {
        10 + device.index()
    }

    fn train(&self, _: Job) -> Result<f64, TaskError> {
        Err(TaskError("it never trains".into()))
    }

    fn evaluate(&self, _: &[f32]) -> Result<Evaluation, TaskError> {
        Err(TaskError("it is never evaluated".into()))
    }

    fn has_training_loss(&self) -> bool {
        true
    }
}

/// One round, by device.
#[derive(Clone, Debug)]
struct Round {
    gains: Vec<f64>,
    /// Whether each device may send.
    present: Vec<bool>,
    /// Whether each device reports if it is a candidate.
    answering: Vec<bool>,
    /// The number that each reports.
    answers: Vec<f32>,
}

impl Round {
    fn plain(m: usize) -> Self {
        Self {
            gains: (0..m).map(|i| (1 + i * 5 % 9) as f64).collect(),
            present: vec![true; m],
            answering: vec![true; m],
            answers: (0..m).map(|i| (1 + i * 4 % 7) as f32).collect(),
        }
    }

    /// A random one in which a few devices are absent and a few fail, with ties.
    fn random(m: usize, t: u64) -> Self {
        let mut rng = stream(3, Purpose::Test, t, m as u64);
        let mut draw = |below: u64| rng.below(below);
        Self {
            gains: (0..m).map(|_| draw(6) as f64 / 2.0).collect(),
            present: (0..m).map(|_| draw(5) > 0).collect(),
            answering: (0..m).map(|_| draw(8) > 0).collect(),
            answers: (0..m).map(|_| draw(6) as f32).collect(),
        }
    }
}

impl Run {
    /// A run of M devices and K, or none if the policy refuses it.
    fn new(entry: &Entry<dyn Policy>, m: usize, k: usize) -> Option<Self> {
        let mut config = Config::default();
        (config.data.devices, config.schedule.k, config.run.seed) = (m as u64, k as u64, 5);
        config.radio.fading = "static".into();
        let policy = entry.choose(&Table::new(), &config.scope()).ok()?;
        let spec = Spec::builder().config(config).policy(policy).task(Untrained).build().ok()?;
        Some(Self { server: Simulation::new(spec).unwrap().server })
    }

    /// Plays a round; a decision that breaks the contract is an error of the server.
    fn play(&mut self, round: &Round) -> Result<(Call, RoundRecord), Error> {
        let call = self
            .server
            .begin(self.server.rounds_done(), known(&round.gains), |device| round.present[device.index()])?;
        let answering = |device: &&DeviceId| round.answering[device.index()];
        let devices: Vec<DeviceId> = call.candidates.iter().filter(answering).copied().collect();
        let (asks, trained) = (call.asks.len(), devices.len());
        let row = |device: &DeviceId| vec![round.answers[device.index()]; asks];
        let values = devices.iter().flat_map(row).collect();
        let scheduled = self.server.report(Reports::new(devices, asks, values))?;
        let upload = |(i, device): (usize, DeviceId)| {
            let silent = Upload {
                device,
                spent: Spent::default(),
                entries: 0,
                wire_bits: None,
                airtime: None,
                body: Body::Silent,
            };
            if i % 3 == 2 { Upload::lost(device) } else { silent }
        };
        let uploads: Vec<Upload> = scheduled.iter().map(|one| one.device).enumerate().map(upload).collect();
        let record = self.server.deliver(&uploads, Training { devices: trained, loss: 0.5 }, None)?;
        Ok((call, record.clone()))
    }
}

/// Rounds that a policy must survive.
fn hard_rounds(m: usize) -> Vec<(&'static str, Round)> {
    let plain = Round::plain(m);
    let half = |i: usize| i.is_multiple_of(2);
    let with = |change: &dyn Fn(&mut Round)| {
        let mut round = plain.clone();
        change(&mut round);
        round
    };
    vec![
        ("plain", plain.clone()),
        ("equal gains", with(&|r| r.gains.fill(1.0))),
        ("equal reports", with(&|r| r.answers.fill(2.0))),
        ("all equal", with(&|r| (r.gains.fill(1.0), r.answers.fill(2.0)).0)),
        ("zero reports", with(&|r| r.answers.fill(0.0))),
        ("a single report above zero", with(&|r| (r.answers.fill(0.0), r.answers[m - 1] = 1.0).0)),
        ("huge reports", with(&|r| r.answers.fill(f32::MAX))),
        ("tiny reports", with(&|r| r.answers.fill(f32::from_bits(1)))),
        ("zero gains", with(&|r| r.gains.fill(0.0))),
        ("half of the gains zero", with(&|r| (0..m).filter(|&i| half(i)).for_each(|i| r.gains[i] = 0.0))),
        ("huge gains", with(&|r| r.gains.fill(1e300))),
        ("half may not send", with(&|r| (0..m).for_each(|i| r.present[i] = half(i)))),
        ("the best may not send", with(&|r| (0..m).for_each(|i| r.present[i] = r.gains[i] < 5.0))),
        ("nobody may send", with(&|r| r.present.fill(false))),
        ("half fail", with(&|r| (0..m).for_each(|i| r.answering[i] = half(i)))),
        ("all fail", with(&|r| r.answering.fill(false))),
        ("one is left", with(&|r| (0..m).for_each(|i| (r.present[i], r.answering[i]) = (i == 0, i == 0)))),
    ]
}

#[test]
fn every_policy_keeps_its_contract_in_rounds_of_every_kind() {
    for entry in entries() {
        let mut played = 0;
        for m in 1..=9 {
            for k in 1..=m {
                let Some(mut run) = Run::new(entry, m, k) else { continue };
                played += 1;
                let asks = run.play(&Round::plain(m)).unwrap().0.asks;
                let random = (0..20).map(|t| ("random", Round::random(m, t)));
                for (name, round) in hard_rounds(m).into_iter().chain(random) {
                    let case = format!("{}, M = {m}, K = {k}, {name}", entry.name);
                    let (call, record) = run.play(&round).unwrap_or_else(|error| panic!("{case}: {error}"));
                    assert_eq!(call.asks, asks, "{case}: what is asked is the same in all rounds");
                    let sent: Vec<DeviceId> = record.transmissions.iter().map(|sent| sent.device).collect();
                    assert!(sent.len() <= k, "{case}");
                    let allowed = |m: &DeviceId| {
                        round.present[m.index()] && round.answering[m.index()] && call.candidates.contains(m)
                    };
                    assert!(sent.iter().all(allowed), "{case}: {sent:?} of {:?}", call.candidates);
                    let distinct: std::collections::BTreeSet<&DeviceId> = sent.iter().collect();
                    assert_eq!(distinct.len(), sent.len(), "{case}");
                    for sent in &record.transmissions {
                        assert!(sent.bit_weight.is_finite() && sent.bit_weight >= 0.0, "{case}");
                        assert!(
                            sent.weight.is_none_or(|weight| weight.is_finite() && weight >= 0.0),
                            "{case}"
                        );
                        assert!(sent.budget.0.is_finite() && sent.budget.0 >= 0.0, "{case}");
                    }
                }
            }
        }
        // A policy that schedules all devices refuses the others.
        assert!([9, 45].contains(&played), "{}: {played} runs", entry.name);
    }
}

#[test]
fn every_policy_schedules_a_device_if_all_may_send_and_report() {
    for entry in entries() {
        for (m, k) in [(1, 1), (5, 2), (9, 9), (12, 1)] {
            let Some(mut run) = Run::new(entry, m, k) else {
                assert!(k < m, "{}", entry.name);
                continue;
            };
            // Coins may come up in no round, but not in sixty.
            let rounds = if run.server.spec().facts().policy.sampling == Sampling::Other { 1 } else { 60 };
            let somebody = (0..rounds).any(|_| {
                let (_, record) = run.play(&Round::plain(m)).unwrap();
                !record.transmissions.is_empty()
            });
            assert!(somebody, "{}, M = {m}, K = {k}", entry.name);
        }
    }
}

/// The decisions of a policy in 30 random rounds; `between` changes the run before each.
fn history(
    entry: &Entry<dyn Policy>,
    (m, k): (usize, usize),
    between: impl Fn(&mut Run),
) -> Vec<(Call, RoundRecord)> {
    let mut run = Run::new(entry, m, k).unwrap();
    let play = |t| {
        between(&mut run);
        run.play(&Round::random(m, t)).unwrap()
    };
    (0..30).map(play).collect()
}

#[test]
fn a_policy_is_deterministic_and_its_saved_state_is_all_that_it_continues_from() {
    for entry in entries() {
        for (m, k) in [(1, 1), (7, 2), (9, 5), (8, 8)] {
            if Run::new(entry, m, k).is_none() {
                assert!(k < m, "{}", entry.name);
                continue;
            }
            let whole = history(entry, (m, k), |_| ());
            assert_eq!(history(entry, (m, k), |_| ()), whole, "{}: two fresh instances", entry.name);
            // A fresh instance before every round, and a state that it cannot read, which must change
            // nothing.
            let resumed = history(entry, (m, k), |run| {
                let mut saved = Vec::new();
                run.server.checkpoint(&mut saved).unwrap();
                let mut fresh = Run::new(entry, m, k).unwrap();
                fresh.server.restore(Cursor::new(saved)).unwrap();
                assert!(fresh.server.load_parts(&State(vec![0xff; 9])).is_err(), "{}", entry.name);
                run.server = fresh.server;
            });
            assert_eq!(resumed, whole, "{}: saved and loaded before every round", entry.name);
        }
    }
}

#[test]
fn a_policy_without_state_refuses_a_state() {
    for entry in entries() {
        let mut policy = entry.build(&Table::new(), &Scope::default(), &()).unwrap();
        let state = policy.save();
        policy.load(state.clone()).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        assert_eq!(policy.save(), state, "{}", entry.name);
        if state.is_empty() {
            let error = policy.load(State(vec![1, 2, 3])).unwrap_err();
            assert_eq!(error.to_string(), "it keeps no state, but the checkpoint has 3 bytes for it");
        }
    }
}

const PAPER: [&str; 4] = ["bc", "bn2", "bc-bn2", "bn2-c"];

/// A policy of the paper, with Kc where it has one.
fn policy(name: &str, m: usize, k: usize, kc: usize) -> Box<dyn Policy> {
    let mut own = Table::new();
    if name == "bc-bn2" {
        own.insert("kc".into(), (kc as i64).into());
    }
    let scope = Scope { devices: m as u64, k: k as u64, ..Scope::default() };
    find::<dyn Policy>(name).unwrap().build(&own, &scope, &()).unwrap()
}

fn schedule(name: &str, gains: &[f64], norms: &[f32], k: usize, kc: usize) -> Schedule {
    Bench::with_gains(gains, k).schedule(&mut *policy(name, gains.len(), k, kc), norms)
}

/// All subsets of `pool` with `size` members.
fn subsets(pool: &[usize], size: usize) -> Vec<Vec<usize>> {
    (0u32..1 << pool.len())
        .filter(|mask| mask.count_ones() as usize == size)
        .map(|mask| (0..pool.len()).filter(|i| mask >> i & 1 == 1).map(|i| pool[i]).collect())
        .collect()
}

/// The subset of `pool` whose values, sorted from the largest, come first; ties to the lower indices.
fn best_subset(pool: &[usize], size: usize, value: &dyn Fn(usize) -> f64) -> Vec<usize> {
    let rank = |subset: &Vec<usize>| {
        let mut values: Vec<f64> = subset.iter().map(|&m| value(m)).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        values
    };
    subsets(pool, size)
        .into_iter()
        .reduce(|best, other| {
            let order = rank(&best).partial_cmp(&rank(&other)).unwrap();
            if order.is_lt() || (order.is_eq() && other < best) { other } else { best }
        })
        .unwrap()
}

fn brute_force(name: &str, gains: &[f64], norms: &[f32], k: usize, kc: usize) -> Vec<usize> {
    let all: Vec<usize> = (0..gains.len()).collect();
    let gain = |m: usize| gains[m];
    let norm = |m: usize| f64::from(norms[m]);
    match name {
        "bc" => best_subset(&all, k, &gain),
        "bn2" | "bn2-c" => best_subset(&all, k, &norm),
        "bc-bn2" => best_subset(&best_subset(&all, kc, &gain), k, &norm),
        other => panic!("{other} is not a policy of the paper"),
    }
}

fn ids(schedule: &Schedule) -> Vec<usize> {
    schedule.devices().map(DeviceId::index).collect()
}

fn weights(schedule: &Schedule) -> Vec<f64> {
    schedule.picks.iter().map(|pick| pick.bit_weight).collect()
}

/// Small systems with few distinct values, so that ties are common: (gains, norms, k, kc).
fn systems() -> impl Strategy<Value = (Vec<f64>, Vec<f32>, usize, usize)> {
    (1usize..9)
        .prop_flat_map(|m| {
            let gains = prop::collection::vec((0u8..5).prop_map(f64::from), m);
            let norms = prop::collection::vec((0u8..5).prop_map(f32::from), m);
            (gains, norms, 1..=m)
        })
        .prop_flat_map(|(gains, norms, k)| {
            let kc = k..=gains.len();
            (Just(gains), Just(norms), Just(k), kc)
        })
}

proptest! {
    #[test]
    fn every_policy_picks_the_best_of_all_subsets((gains, norms, k, kc) in systems()) {
        for name in PAPER {
            let chosen = schedule(name, &gains, &norms, k, kc);
            prop_assert_eq!(ids(&chosen), brute_force(name, &gains, &norms, k, kc), "{}", name);
            let expected = |d: DeviceId| if name == "bc" { 1.0 } else { f64::from(norms[d.index()]) };
            let expected: Vec<f64> = chosen.devices().map(expected).collect();
            prop_assert_eq!(weights(&chosen), expected, "{}", name);
            prop_assert!(chosen.picks.iter().all(|pick| pick.weight == Weight::Rule), "{}", name);
        }
    }

    #[test]
    fn renaming_devices_with_distinct_values_renames_the_choice(
        m in 2usize..12,
        keys in prop::collection::vec(any::<u32>(), 12),
        k in 1usize..12,
    ) {
        let k = k.min(m);
        let kc = (2 * k).min(m);
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_by_key(|&i| (keys[i], i));
        let gains: Vec<f64> = (0..m).map(|i| (i * 7 % 13) as f64).collect();
        let norms: Vec<f32> = (0..m).map(|i| (i * 5 % 17) as f32).collect();
        // Device `order[i]` of the original is called `i` in the renamed system.
        let renamed_gains: Vec<f64> = order.iter().map(|&i| gains[i]).collect();
        let renamed_norms: Vec<f32> = order.iter().map(|&i| norms[i]).collect();
        for name in PAPER {
            let original = ids(&schedule(name, &gains, &norms, k, kc));
            let renamed = schedule(name, &renamed_gains, &renamed_norms, k, kc);
            let mut back: Vec<usize> = ids(&renamed).into_iter().map(|i| order[i]).collect();
            back.sort_unstable();
            prop_assert_eq!(original, back, "{}", name);
        }
    }
}

/// The decisions of a policy in eight rounds with links and reports of their own, where device i has the name
/// `names[i]`: the scheduled devices, by their original names, with bit weight and weight.
fn renamed(
    entry: &Entry<dyn Policy>,
    names: &[usize],
    seed: u64,
    unit: f32,
) -> Vec<Vec<(usize, f64, Weight)>> {
    let (m, k) = (names.len(), 3);
    let scope = Scope { devices: m as u64, k: k as u64, ..Scope::default() };
    let mut policy = entry.build(&Table::new(), &scope, &()).unwrap();
    let mut bench = Bench::new(m, k).with_equal_sizes().seeded(seed);
    let mut rounds = Vec::new();
    for t in 0..8 {
        let mut rng = stream(9, Purpose::Test, t, 0);
        let gains: Vec<f64> = (0..m).map(|_| rng.exponential()).collect();
        let answers: Vec<f32> = (0..m).map(|_| rng.uniform() as f32 + 0.5).collect();
        bench.links = known(&names.iter().map(|&name| gains[name]).collect::<Vec<_>>());
        let schedule = bench.at(t, |view| {
            let candidates = policy.candidates(view);
            let asks = policy.asks().len();
            let row = |device: &DeviceId| vec![unit * answers[names[device.index()]]; asks];
            let values = candidates.iter().flat_map(row).collect();
            policy.select(view, &Reports::new(candidates, asks, values))
        });
        let total: f64 = schedule.picks.iter().map(|pick| pick.bit_weight).sum();
        let mut round: Vec<(usize, f64, Weight)> = schedule
            .picks
            .iter()
            .map(|pick| (names[pick.device.index()], pick.bit_weight / total, pick.weight))
            .collect();
        round.sort_by_key(|(name, ..)| *name);
        let chosen: Vec<DeviceId> = schedule.devices().collect();
        bench.schedule_devices(&chosen, t);
        for &device in &chosen {
            // Without equal distances, which go to the lower device.
            let mut rng = stream(11, Purpose::Test, t, names[device.index()] as u64);
            let update: Vec<f32> = (0..3).map(|_| rng.normal() as f32).collect();
            policy.receive(device, &Dense(&update));
        }
        policy.observe(&RoundRecord::of_devices(t + 1, &chosen));
        rounds.push(round);
    }
    rounds
}

/// Policies whose choice depends on links and reports alone, never on the name of a device. Others draw at
/// random, take devices in an order, or have ties by construction (`divfl`: of two updates that are nearest
/// to each other either lowers the cost by the same amount).
const NAMELESS: [&str; 8] =
    ["bc", "bn2", "bc-bn2", "bn2-c", "proportional-fair", "age", "norm-channel", "gradient-channel"];

#[test]
fn renaming_devices_renames_the_choice_over_rounds() {
    let own: Vec<usize> = (0..7).collect();
    for entry in NAMELESS.map(|name| find::<dyn Policy>(name).unwrap()) {
        let first = renamed(entry, &own, 0, 1.0);
        for names in [[6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 5, 2, 4], [1, 2, 3, 4, 5, 6, 0]] {
            let mut other = renamed(entry, &names, 0, 1.0);
            for (one, other) in first.iter().flatten().zip(other.iter_mut().flatten()) {
                // Sums in another order round otherwise.
                assert!((one.1 - other.1).abs() < 1e-12, "{}: {one:?} {other:?}", entry.name);
                other.1 = one.1;
            }
            assert_eq!(other, first, "{}, called {names:?}", entry.name);
        }
    }
}

/// From the registry: where norms are reported, their unit has no effect.
#[test]
fn scaling_all_norms_changes_nothing_under_any_policy() {
    let own: Vec<usize> = (0..7).collect();
    let mut checked = Vec::new();
    for entry in entries() {
        let policy = entry.build(&Table::new(), &Scope::default(), &()).unwrap();
        if !policy.asks().iter().any(|ask| matches!(ask, Ask::Norm | Ask::CompressedNorm)) {
            continue;
        }
        for seed in 0..20 {
            let once = renamed(entry, &own, seed, 1.0);
            assert!(once.iter().all(|round| !round.is_empty()), "{}", entry.name);
            for unit in [0.0625, 1024.0] {
                let scaled = renamed(entry, &own, seed, unit);
                for (one, other) in once.iter().flatten().zip(scaled.iter().flatten()) {
                    let alike = one.0 == other.0 && one.2 == other.2 && (one.1 - other.1).abs() < 1e-12;
                    assert!(alike, "{}, times {unit}: {one:?} {other:?}", entry.name);
                }
            }
        }
        checked.push(entry.name);
    }
    assert_eq!(
        checked,
        ["bn2", "bc-bn2", "bn2-c", "norm-channel", "optimal", "importance", "lyapunov", "gradient-channel"]
    );
}

#[test]
fn bc_bn2_is_bn2_when_the_channel_excludes_no_device() {
    let (gains, norms) = ([0.3, 2.0, 0.1, 5.0], [1.0, 0.5, 4.0, 2.0]);
    assert_eq!(schedule("bc-bn2", &gains, &norms, 2, 4), schedule("bn2", &gains, &norms, 2, 4));
}

#[test]
fn bc_bn2_at_kc_equal_k_selects_as_bc_but_weighs_by_norm() {
    let (gains, norms) = ([0.3, 2.0, 0.1, 5.0], [1.0, 0.5, 4.0, 2.0]);
    let combined = schedule("bc-bn2", &gains, &norms, 2, 2);
    let channel = schedule("bc", &gains, &norms, 2, 2);
    assert_eq!(ids(&combined), ids(&channel));
    assert_eq!(weights(&combined), [0.5, 2.0]);
    assert_eq!(weights(&channel), [1.0, 1.0]);
}

#[test]
fn the_default_kc_is_the_paper_s_and_always_allowed() {
    let entry = find::<dyn Policy>("bc-bn2").unwrap();
    for (devices, k, kc) in [(40, 1, 10), (40, 10, 20), (40, 20, 40), (40, 40, 40), (5, 1, 5)] {
        let scope = Scope { devices, k, ..Scope::default() };
        let own = entry.resolve(&Table::new(), &scope).unwrap();
        assert_eq!(own["kc"].as_integer(), Some(kc), "M = {devices}, K = {k}");
        // A resolved table resolves to itself.
        assert_eq!(entry.resolve(&own, &scope), Ok(own));
    }
}

#[test]
fn the_devices_that_train_before_selection_are_those_that_the_policy_declares() {
    for entry in entries() {
        for (m, k) in [(6, 1), (9, 3), (9, 9)] {
            let scope = Scope { devices: m as u64, k: k as u64, ..Scope::default() };
            if entry.choose(&Table::new(), &scope).and_then(|chosen| chosen.fits(&scope)).is_err() {
                continue;
            }
            let policy = entry.build(&Table::new(), &scope, &()).unwrap();
            let mut run = Run::new(entry, m, k).unwrap();
            for _ in 0..30 {
                let (call, record) = run.play(&Round::plain(m)).unwrap();
                let (trained, sent) = (call.candidates.len(), record.transmissions.len());
                let case = format!("{}, M = {m}, K = {k}: {trained} trained, {sent} sent", entry.name);
                match policy.selection().trains {
                    Trains::Scheduled => assert_eq!(trained, sent, "{case}"),
                    Trains::Some => assert!(trained >= sent, "{case}"),
                    Trains::Everyone => assert_eq!(trained, m, "{case}"),
                }
                let own = record.transmissions.iter().all(|sent| sent.weight.is_some());
                assert!(sent == 0 || own == policy.selection().own_weights, "{case}");
            }
        }
    }
}

/// Each device has the weight π on average over the random numbers of the policy, whatever was reported and
/// observed before: of the policies that declare it, all rounds of a run within 4.5 deviations.
#[test]
fn a_policy_that_declares_to_be_unbiased_is() {
    let rounds = 6000;
    let mut checked = Vec::new();
    for entry in entries() {
        for (m, k) in [(6usize, 2usize), (5, 5)] {
            let scope = Scope { devices: m as u64, k: k as u64, ..Scope::default() };
            if entry.choose(&Table::new(), &scope).and_then(|chosen| chosen.fits(&scope)).is_err() {
                continue;
            }
            let policy = entry.build(&Table::new(), &scope, &()).unwrap();
            if policy.selection().bias != Bias::Unbiased {
                continue;
            }
            let own = entry.resolve(&Table::new(), &scope).unwrap();
            let by_size = own.get("target").and_then(toml::Value::as_str) == Some("by-size");
            let mut run = Run::new(entry, m, k).unwrap();
            let (mut sums, mut squares) = (vec![0.0; m], vec![0.0; m]);
            for t in 0..rounds {
                let round =
                    Round { answers: (0..m).map(|i| (1 + (i + t) % 4) as f32).collect(), ..Round::plain(m) };
                let (_, record) = run.play(&round).unwrap();
                let count = record.transmissions.len() as f64;
                for sent in &record.transmissions {
                    let weight = sent.weight.unwrap_or(1.0 / count);
                    sums[sent.device.index()] += weight;
                    squares[sent.device.index()] += weight * weight;
                }
            }
            for (device, (sum, square)) in sums.iter().zip(&squares).enumerate() {
                let n = f64::from(rounds as u32);
                let (mean, variance) = (sum / n, (square / n - (sum / n).powi(2)).max(0.0));
                let slack = 4.5 * (variance / n).sqrt() + 1e-9;
                // The devices of a run have 10, 11 … samples.
                let size = |device: usize| (10 + device) as f64;
                let all: f64 = (0..m).map(size).sum();
                let wanted = if by_size { size(device) / all } else { 1.0 / m as f64 };
                assert!((mean - wanted).abs() < slack, "{} K = {k}, device {device}: {mean}", entry.name);
            }
            checked.push(entry.name);
        }
    }
    for name in
        ["random", "optimal", "importance", "lyapunov", "multinomial", "clustered", "poisson", "all", "ideal"]
    {
        assert!(checked.contains(&name), "{name} is not among {checked:?}");
    }
}

/// A new policy of `entry` for a run, or none for a run that it refuses.
fn fresh(entry: &Entry<dyn Policy>, scope: &Scope) -> Option<Box<dyn Policy>> {
    let chosen = entry.choose(&Table::new(), scope).ok()?;
    chosen.fits(scope).ok()?;
    chosen.build(scope, &()).ok()
}

#[test]
fn every_policy_behaves_as_its_facts_declare() {
    for entry in entries() {
        contract::check(|scope| fresh(entry, scope))
            .unwrap_or_else(|error| panic!("{}: {error}", entry.name));
    }
}

/// Acts as `inner` and declares other facts.
struct Liar(Box<dyn Policy>, Selection);

impl Persist for Liar {}

impl Policy for Liar {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.0.candidates(view)
    }

    fn asks(&self) -> &[Ask] {
        self.0.asks()
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        self.0.select(view, reports)
    }

    fn selection(&self) -> Selection {
        self.1
    }
}

#[test]
fn a_policy_that_contradicts_a_fact_is_caught_with_the_name_of_the_fact() {
    let random = Selection::new(Bias::Unbiased, Trains::Scheduled);
    let largest = Selection::new(Bias::Biased, Trains::Everyone);
    let lies = [
        ("bn2", Selection { trains: Trains::Scheduled, ..largest }, "trains: it declares Trains::Scheduled"),
        (
            "bc",
            Selection { bias: Bias::Biased, trains: Trains::Everyone, ..random },
            "trains: it declares Trains::Everyone",
        ),
        ("bc", random, "bias: it declares Bias::Unbiased, but device "),
        ("round-robin", random.by_channel(true), "by_channel: it declares that it picks by the channel"),
        ("random", Selection { bias: Bias::OverRounds, ..random }.by_channel(true), "by_channel: "),
        (
            "random",
            random.with_weights(),
            "own_weights: it declares true, but it sets Weight::Own for 0 of 1",
        ),
        ("optimal", largest, "own_weights: it declares false, but it sets Weight::Own for 1 of 1"),
        ("bc-bn2", Selection { trains: Trains::Some, ..largest }.of_largest_reports(), ""),
        (
            "gradient-channel",
            Selection { trains: Trains::Some, ..largest }.of_largest_reports(),
            "largest_reports: ",
        ),
    ];
    for (name, selection, start) in lies {
        let entry = find::<dyn Policy>(name).unwrap();
        let liar = |scope: &Scope| Some(Box::new(Liar(fresh(entry, scope)?, selection)) as Box<dyn Policy>);
        let error = contract::check(liar).err().unwrap_or_default();
        assert!(error.starts_with(start) && error.is_empty() == start.is_empty(), "{name}: {error:?}");
    }
    let refuses = contract::check(|_| None).unwrap_err();
    assert_eq!(refuses, "it refuses every run that it could be tested in");
}
