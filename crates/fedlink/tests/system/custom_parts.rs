//! Parts from outside this library: policies, compressors, fading laws, partitions and tasks.

use crate::common::{blobs, resumed, run, run_with, small_config};
use fedlink::learn::optimizer::StateMode;
use fedlink::learn::task::{Cohorts, DeviceState};
use fedlink::prelude::*;
use fedlink::system::fleet::Fleet;
use std::ops::RangeInclusive;

const POLICIES: [&str; 4] = ["bc", "bn2", "bc-bn2", "bn2-c"];

fn config(policy: &str) -> Config {
    let mut config = small_config();
    config.learn.state = StateMode::Reset;
    config.schedule.policy = policy.into();
    config
}

/// Random devices, with larger probability if they were not chosen for long: a policy with state and
/// random numbers.
#[derive(Default)]
struct Patient {
    /// Rounds since each device was chosen.
    waiting: Vec<u32>,
    /// The number of uploads that were used, from `observe`.
    used: u64,
}

impl Persist for Patient {
    fn save(&self) -> State {
        State::of(&(&self.waiting, self.used))
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        (self.waiting, self.used) = state.read()?;
        Ok(())
    }
}

impl Policy for Patient {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.waiting.resize(view.links.devices(), 0);
        let mut rng = view.rng(self.used % 3);
        let keys: Vec<f64> =
            self.waiting.iter().map(|&rounds| f64::from(1 + rounds) * rng.uniform()).collect();
        fedlink::schedule::largest(&view.everyone(), view.k + 1, |m| keys[m])
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::Loss, Ask::Norm]
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        self.waiting.iter_mut().for_each(|rounds| *rounds += 1);
        let norm = |m: usize| f64::from(reports.row(m)[1]);
        let chosen = fedlink::schedule::largest(&reports.devices, view.k, norm);
        chosen.iter().for_each(|device| self.waiting[device.index()] = 0);
        Schedule::equal(chosen)
    }

    fn observe(&mut self, outcome: &RoundRecord) {
        self.used += outcome.transmissions.iter().filter(|sent| sent.q > 0).count() as u64;
    }
}

fn patient() -> Parts {
    Parts::default().policy("patient", "custom_parts.rs", |_, _| Ok(Box::new(Patient::default())))
}

#[test]
fn a_policy_with_state_and_random_numbers_is_the_same_on_any_threads_and_after_a_checkpoint() {
    let config = config("patient");
    let one = run_with(&config, blobs(20, 600, 90), &patient(), 1);
    assert_eq!(run_with(&config, blobs(20, 600, 90), &patient(), 3), one);
    for cut in [1, 5, 11] {
        assert_eq!(resumed(&config, || blobs(20, 600, 90), &patient(), cut), one, "after {cut} rounds");
    }
    let mut other = config.clone();
    other.run.seed = 1;
    assert_ne!(run_with(&other, blobs(20, 600, 90), &patient(), 1).scheduled, one.scheduled);
    assert!(one.scheduled.iter().all(|&times| times > 0), "everybody has a turn: {:?}", one.scheduled);
}

#[test]
fn a_policy_sees_reported_losses_and_the_times_at_which_devices_were_scheduled() {
    /// Schedules device t mod M, and checks the view.
    struct Watch;
    impl Persist for Watch {}
    impl Policy for Watch {
        fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
            let m = view.links.devices() as u64;
            for device in view.everyone() {
                let mut turns = (0..view.t).filter(|t| t % m == u64::from(device.0));
                assert_eq!(u64::from(view.devices.scheduled(device)), turns.clone().count() as u64);
                assert_eq!(
                    view.devices.age(device, view.t),
                    turns.next_back().map_or(view.t, |t| view.t - t - 1)
                );
                assert_eq!(view.devices.last_loss(device).is_some(), view.devices.scheduled(device) > 0);
                assert_eq!(view.samples(device), 30);
            }
            assert_eq!((view.k, view.symbols, view.noise), (3, 60, 1.0));
            vec![DeviceId((view.t % m) as u32)]
        }
        fn asks(&self) -> &[Ask] {
            &[Ask::Loss]
        }
        fn select(&mut self, _: &View, reports: &Reports) -> Schedule {
            Schedule::equal(reports.devices.iter().copied())
        }
    }
    let parts = Parts::default().policy("watch", "this test", |_, _| Ok(Box::new(Watch)));
    let mut config = config("watch");
    config.run.rounds = 30;
    let outcome = run_with(&config, blobs(20, 600, 90), &parts, 1);
    assert_eq!(outcome.scheduled, [3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2]);
}

/// Sends all entries unchanged if the budget holds 32 bits for each, otherwise nothing.
struct Whole;

impl Compressor for Whole {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        _: &mut Stream,
        _: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let bits = 32.0 * update.len() as f64;
        if bits > context.budget.0 {
            *out = Encoded::Silent;
            return Spent::default();
        }
        *out = Encoded::Dense(update.to_vec());
        Spent::new(Bits(bits), 1)
    }

    fn codec(&self) -> Option<&dyn Codec> {
        None
    }

    fn properties(&self, _: usize, _: usize) -> Properties {
        Properties::UNKNOWN
    }

    fn honest_reports(&self, _: &Evidence) -> RangeInclusive<f64> {
        0.0..=f64::INFINITY
    }
}

fn whole() -> Parts {
    Parts::default().compressor("whole", "custom_parts.rs", |_, _| Ok(Box::new(Whole)))
}

#[test]
fn a_compressor_of_dense_updates_gives_the_model_of_a_sparse_one_that_sends_everything() {
    for policy in POLICIES {
        for aggregate in ["mean", "by-size", "median", "trimmed-mean"] {
            let mut config = config(policy);
            (config.radio.symbols, config.run.rounds) = (100_000, 5);
            config.learn.aggregate = aggregate.into();
            let theta = |scheme: &str, parts: &Parts| {
                let mut config = config.clone();
                config.compress.scheme = scheme.into();
                let mut simulation = Simulation::with_parts(&config, blobs(20, 600, 90), parts).unwrap();
                let outcome = simulation.run(|_| ()).unwrap();
                assert_eq!(outcome.silent_transmissions, 0);
                simulation.theta().to_vec()
            };
            let sparse = theta("random-sparse", &Parts::default());
            assert_eq!(theta("whole", &whole()), sparse, "{policy} {aggregate}");
        }
    }
}

#[test]
fn a_compressor_without_bytes_is_refused_if_bytes_or_an_audit_are_needed() {
    let refused = |change: fn(&mut Config)| {
        let mut config = config("bc");
        config.compress.scheme = "whole".into();
        change(&mut config);
        let result = Simulation::with_parts(&config, blobs(20, 600, 90), &whole());
        result.map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        refused(|c| c.radio.wire = true),
        "radio.wire: needs a scheme with bytes, and \"whole\" has none; set it to false"
    );
    assert_eq!(
        refused(|c| c.compress.budget = fedlink::compress::BudgetRule::Wire),
        "compress.budget: needs a scheme with bytes, and \"whole\" has none; set it to \"formula\""
    );
    assert_eq!(
        refused(|c| c.defense.audit = true),
        "defense.audit: needs to know which reports an honest device can make, and \"whole\" does not state \
         them; set it to false"
    );
}

#[test]
fn error_feedback_and_attacks_work_on_dense_updates_too() {
    let mut config = config("bn2");
    config.compress.scheme = "whole".into();
    (config.radio.symbols, config.compress.feedback) = (20_000, "always".into());
    (config.adversary.share, config.adversary.kind) = (0.25, "sign-flip".into());
    config.learn.aggregate = "median".into();
    let one = run_with(&config, blobs(20, 600, 90), &whole(), 1);
    assert_eq!(run_with(&config, blobs(20, 600, 90), &whole(), 3), one);
    assert_eq!(resumed(&config, || blobs(20, 600, 90), &whole(), 5), one);
    assert!(one.silent_transmissions > 0 && one.mean_q > 0.0, "some fit and some do not");
}

#[test]
fn a_fading_law_decides_the_gains_of_a_run() {
    /// Device m has the gain 1 + (m + t) mod 3.
    struct Steps;
    impl Fading for Steps {
        fn gain(&self, t: u64, device: DeviceId) -> f64 {
            1.0 + ((u64::from(device.0) + t) % 3) as f64
        }
    }
    let parts = Parts::default().fading("steps", "this test", |_, _| Ok(Box::new(Steps)));
    let mut config = config("bc");
    (config.radio.fading, config.schedule.k) = ("steps".into(), 4);
    let mut simulation = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
    for t in 0..6 {
        let sent = simulation.step().unwrap().transmissions;
        assert_eq!(sent.len(), 4);
        for one in sent {
            assert_eq!((one.gain, (u64::from(one.device.0) + t) % 3), (3.0, 2));
        }
    }
}

#[test]
fn a_partition_by_indices_is_the_split_that_it_lists() {
    let dataset = blobs(20, 600, 90);
    let config = config("bn2-c");
    let split = config.resolve(&Parts::default()).and_then(|spec| spec.partition(&dataset)).unwrap();
    let lists: Vec<Vec<u32>> = (0..12)
        .map(|m| {
            let mut samples = Vec::new();
            split.samples_of(DeviceId(m), &mut samples);
            samples
        })
        .collect();
    let mut listed = config.clone();
    listed.data.partition = "listed".into();
    let parts = Parts::default().partition("listed", "this test", lists.clone());
    let outcome = run_with(&listed, dataset.clone(), &parts, 2);
    assert_eq!(outcome, run(&config, dataset.clone(), 2));
    let mut lists = lists;
    lists[4].truncate(1);
    let parts = Parts::default().partition("listed", "this test", lists.clone());
    assert_ne!(run_with(&listed, dataset.clone(), &parts, 2).digest, outcome.digest);
    lists[4].push(600);
    let parts = Parts::default().partition("listed", "this test", lists);
    let error = Simulation::with_parts(&listed, dataset, &parts).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "data.partition: device 4 has sample 600, but blobs has 0..600");
}

#[test]
fn names_of_custom_parts_survive_a_trip_through_the_text_of_the_configuration() {
    let parts = patient().fading("steady", "here", |_, _| Ok(Box::new(fedlink::radio::fading::Constant)));
    let mut config = config("patient");
    let simulation = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
    assert_eq!(simulation.spec().config().custom.len(), 1, "parts that are not chosen are not named");
    config.radio.fading = "steady".into();
    let mut simulation = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
    let recorded = simulation.spec().config().clone();
    assert_eq!(recorded.custom["patient"], "custom_parts.rs");
    assert_eq!(recorded.custom["steady"], "here");
    let text = fedlink::spec::commented_toml(&recorded);
    assert!(text.contains("[custom]"), "{text}");
    let read = Config::from_toml(&text).unwrap();
    assert_eq!(read, recorded);
    let outcome = simulation.run(|_| ()).unwrap();
    assert_eq!(run_with(&read, blobs(20, 600, 90), &parts, 1), outcome);
    // A checkpoint of one run is a checkpoint of the other.
    assert_eq!(resumed(&read, || blobs(20, 600, 90), &parts, 3), outcome);
    let error = Simulation::of(&read, blobs(20, 600, 90)).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("a custom part (") && error.ends_with("that was not given to this run"),
        "{error}"
    );
}

#[test]
fn a_custom_part_is_made_from_its_own_table_for_the_run_at_hand() {
    struct From(u32);
    impl Persist for From {}
    impl Policy for From {
        fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
            (self.0..self.0 + view.k as u32).map(DeviceId).collect()
        }
        fn select(&mut self, _: &View, reports: &Reports) -> Schedule {
            Schedule::equal(reports.devices.iter().copied())
        }
    }
    let parts = Parts::default().policy("mine", "here", |own, scope| {
        let first = own.get("first").and_then(toml::Value::as_integer).unwrap_or(0);
        if first < 0 {
            return Err(fedlink::spec::ConfigError::new("schedule.mine.first", "must be at least 0"));
        }
        assert_eq!((scope.devices, scope.k, scope.rounds), (12, 3, 12));
        Ok(Box::new(From(first as u32)))
    });
    let mut config = config("mine");
    config.custom.insert("mine".into(), "here".into());
    config.set("schedule.mine.first", 7).unwrap();
    let outcome = run_with(&config, blobs(20, 600, 90), &parts, 1);
    assert_eq!(outcome.scheduled, [0, 0, 0, 0, 0, 0, 0, 12, 12, 12, 0, 0]);
    config.set("schedule.mine.first", -1).unwrap();
    let error = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "schedule.mine.first: must be at least 0");
}

/// The library's own training as a custom task.
struct Borrowed {
    fleet: Fleet,
    theta0: Vec<f32>,
    cohorts: Cohorts,
}

impl Borrowed {
    fn new(config: &Config, cohorts: Cohorts) -> Self {
        let Simulation { server, fleet, .. } = Simulation::of(config, blobs(20, 600, 90)).unwrap();
        Self { fleet, theta0: server.theta().to_vec(), cohorts }
    }
}

impl Task for Borrowed {
    fn theta0(&self) -> Vec<f32> {
        self.theta0.clone()
    }

    fn samples(&self, _: DeviceId) -> usize {
        30
    }

    fn train(&self, job: Job) -> Result<f64, TaskError> {
        let result = self.fleet.update(job.theta, job.t, job.device);
        let (delta, loss) = result.map_err(|error| TaskError(error.to_string()))?;
        job.update.copy_from_slice(&delta);
        Ok(loss)
    }

    fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError> {
        self.fleet.task().evaluate(theta)
    }

    fn cohorts(&self) -> Cohorts {
        self.cohorts
    }
}

const COHORTS: [Cohorts; 4] = [Cohorts::SideBySide, Cohorts::Of(1), Cohorts::Of(3), Cohorts::Of(100)];

#[test]
fn a_task_that_trains_as_the_library_does_has_its_digest_in_cohorts_of_any_size() {
    for policy in POLICIES {
        let config = config(policy);
        let built_in = run(&config, blobs(20, 600, 90), 2);
        for cohorts in COHORTS {
            let custom = run(&config, Borrowed::new(&config, cohorts), 2);
            assert_eq!(custom.digest, built_in.digest, "{policy}, {cohorts:?}");
        }
    }
}

#[test]
fn a_task_names_itself_in_the_configuration() {
    let config = config("bc");
    let simulation = Simulation::of(&config, Borrowed::new(&config, Cohorts::Of(3))).unwrap();
    let recorded = simulation.spec().config();
    assert_eq!(recorded.custom["Borrowed"], "task");
    let named =
        [&recorded.data.dataset, &recorded.data.partition, &recorded.learn.model, &recorded.learn.optimizer];
    assert!(named.iter().all(|name| *name == "Borrowed"), "{named:?}");
    assert_eq!(&Config::from_toml(&fedlink::spec::commented_toml(recorded)).unwrap(), recorded);
}

/// Pulls θ toward a number of each device, less with every training, which it counts in its state's
/// bytes. It keeps a vector, too.
struct Tiring(Cohorts);

impl Task for Tiring {
    fn theta0(&self) -> Vec<f32> {
        (0..40).map(|i| (i as f32).sin()).collect()
    }

    fn samples(&self, device: DeviceId) -> usize {
        1 + device.index()
    }

    fn train(&self, job: Job) -> Result<f64, TaskError> {
        let state: &mut DeviceState = job.state.ok_or_else(|| TaskError("no state".into()))?;
        if state.vectors.is_empty() {
            *state = DeviceState::filled(job.theta.len(), &[0.0]);
        }
        state.bytes.push(job.device.0 as u8);
        state.steps += 1;
        let tired = 1.0 / state.bytes.len() as f32;
        for ((update, theta), kept) in job.update.iter_mut().zip(job.theta).zip(&mut state.vectors[0]) {
            *kept = 0.5 * *kept + tired * (job.device.0 as f32 - theta);
            *update = *kept;
        }
        Ok(f64::from(tired))
    }

    fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError> {
        let mean = theta.iter().map(|&x| f64::from(x)).sum::<f64>() / theta.len() as f64;
        Ok(Evaluation::new(0.25, mean.abs()).with("mean", mean).with("first", f64::from(theta[0])))
    }

    fn cohorts(&self) -> Cohorts {
        self.0
    }

    fn state_vectors(&self) -> Option<usize> {
        Some(1)
    }
}

#[test]
fn the_device_state_of_a_task_is_the_same_in_cohorts_on_threads_and_after_a_checkpoint() {
    for policy in ["bc", "bn2-c"] {
        let mut config = config(policy);
        config.compress.feedback = "scheduled".into();
        let one = run(&config, Tiring(Cohorts::SideBySide), 1);
        for cohorts in COHORTS {
            assert_eq!(run(&config, Tiring(cohorts), 3), one, "{policy} {cohorts:?}");
            let resumed = resumed(&config, || Tiring(cohorts), &Parts::default(), 5);
            assert_eq!(resumed, one, "{policy} {cohorts:?}");
        }
    }
}

#[test]
fn named_metrics_are_in_records_rows_and_the_digest() {
    struct Renamed(Tiring);
    impl Task for Renamed {
        fn name(&self) -> String {
            "Tiring".into()
        }
        fn theta0(&self) -> Vec<f32> {
            self.0.theta0()
        }
        fn samples(&self, device: DeviceId) -> usize {
            self.0.samples(device)
        }
        fn train(&self, job: Job) -> Result<f64, TaskError> {
            self.0.train(job)
        }
        fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError> {
            let mut evaluation = self.0.evaluate(theta)?;
            evaluation.metrics[1].0 = "the first entry, under a name of some length".into();
            Ok(evaluation)
        }
        fn state_vectors(&self) -> Option<usize> {
            Some(1)
        }
    }
    let config = config("bc");
    let mut simulation = Simulation::of(&config, Tiring(Cohorts::SideBySide)).unwrap();
    let mut evaluations = Vec::new();
    for _ in 0..config.run.rounds {
        evaluations.extend(simulation.step().unwrap().evaluation);
    }
    assert_eq!(evaluations.len(), simulation.rows().len());
    for (row, evaluation) in simulation.rows().iter().zip(&evaluations) {
        assert_eq!(row.metrics, evaluation.metrics);
        assert_eq!(row.metrics.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["mean", "first"]);
        assert_eq!((row.test_accuracy, row.test_loss), (0.25, row.metrics[0].1.abs()));
    }
    assert_eq!(f64::from(simulation.theta()[0]), evaluations.last().unwrap().metrics[1].1);
    let renamed = run(&config, Renamed(Tiring(Cohorts::SideBySide)), 1);
    assert_ne!(renamed.digest, simulation.outcome().digest);
    assert_eq!(renamed.final_loss, simulation.outcome().final_loss);
    // Names of any length are in a checkpoint too.
    let again =
        resumed(&config, || Renamed(Tiring(Cohorts::SideBySide)), &Parts::default(), config.run.rounds - 1);
    assert_eq!(again, renamed);
}
