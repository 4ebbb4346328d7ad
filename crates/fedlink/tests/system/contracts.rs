//! Custom parts that break their contract: the error names the part, and the run continues from a
//! checkpoint.

use crate::common::{blobs, small_config};
use fedlink::prelude::*;
use std::io::Cursor;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A policy with these candidates and this schedule.
#[derive(Clone)]
struct Rogue {
    candidates: Vec<u32>,
    picks: Vec<Pick>,
}

impl Persist for Rogue {}

impl Policy for Rogue {
    fn candidates(&mut self, _: &View) -> Vec<DeviceId> {
        self.candidates.iter().copied().map(DeviceId).collect()
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::Norm]
    }

    fn select(&mut self, _: &View, _: &Reports) -> Schedule {
        Schedule::new(self.picks.clone())
    }
}

fn picks(devices: &[u32]) -> Vec<Pick> {
    devices.iter().map(|&device| Pick::new(DeviceId(device), 1.0)).collect()
}

fn with_weight(weight: f64) -> Vec<Pick> {
    let mut picks = picks(&[0, 1, 2]);
    picks[1].bit_weight = weight;
    picks
}

fn with_share(weight: f64) -> Vec<Pick> {
    let mut picks = picks(&[0, 1, 2]);
    picks[1].weight = Weight::Own(weight);
    picks
}

/// The error of the first round of a run with these parts.
fn first_round(config: &Config, parts: &Parts) -> Result<RoundRecord, Error> {
    Simulation::with_parts(config, blobs(20, 600, 90), parts)?.step()
}

#[test]
fn a_policy_that_breaks_its_contract_is_an_error_not_a_panic() {
    let good = vec![0, 1, 2, 3];
    let cases = [
        (vec![0, 1, 12], vec![], "candidate 12 does not exist; devices are 0..12"),
        (vec![0, 1, 1], vec![], "candidate 1 is named twice"),
        (good.clone(), picks(&[0, 1, 2, 3]), "it schedules 4 devices, but K = 3"),
        (good.clone(), picks(&[0, 1, 1]), "device 1 is scheduled twice"),
        (good.clone(), picks(&[0, 1, 5]), "device 5 is scheduled but was no candidate"),
        (
            good.clone(),
            with_weight(f64::NAN),
            "the bit weight of device 1 is NaN, but must be finite and at least 0",
        ),
        (
            good.clone(),
            with_weight(-1.0),
            "the bit weight of device 1 is -1, but must be finite and at least 0",
        ),
        (good.clone(), with_weight(f64::INFINITY), "the bit weight of device 1 is inf, but must be"),
        (
            good.clone(),
            with_share(f64::NAN),
            "the weight of device 1 is NaN, but must be finite and at least 0",
        ),
        (good, with_share(-0.5), "the weight of device 1 is -0.5, but must be finite and at least 0"),
    ];
    for (candidates, picks, problem) in cases {
        let rogue = Rogue { candidates, picks };
        let parts = Parts::default().policy("rogue", "this test", move |_, _| Ok(Box::new(rogue.clone())));
        let mut config = small_config();
        config.schedule.policy = "rogue".into();
        let error = first_round(&config, &parts).unwrap_err();
        let expected = format!("policy rogue broke its contract in round 1: {problem}");
        assert!(error.to_string().starts_with(&expected), "{error} is not {expected}");
        assert!(matches!(error, Error::Policy { .. }));
    }
}

#[test]
fn a_policy_may_schedule_fewer_than_k_devices_or_none() {
    for scheduled in [&[][..], &[3], &[3, 0]] {
        let rogue = Rogue { candidates: vec![3, 0], picks: picks(scheduled) };
        let parts = Parts::default().policy("shy", "this test", move |_, _| Ok(Box::new(rogue.clone())));
        let mut config = small_config();
        config.schedule.policy = "shy".into();
        let mut simulation = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
        let start = simulation.theta().to_vec();
        let record = simulation.step().unwrap();
        let sent: Vec<u32> = record.transmissions.iter().map(|sent| sent.device.0).collect();
        assert_eq!(sent, scheduled);
        let symbols: f64 = record.transmissions.iter().map(|sent| sent.symbols.0).sum();
        assert!(scheduled.is_empty() || (symbols - 60.0).abs() < 1e-9, "the whole band is shared: {symbols}");
        assert_eq!(simulation.theta() == start, scheduled.is_empty());
        simulation.run(|_| ()).unwrap();
    }
}

type Answer = fn(&mut Encoded, usize, f64) -> Spent;

/// A compressor with the results of a test.
struct Scripted(Answer);

impl Compressor for Scripted {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        _: &mut Stream,
        _: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        (self.0)(out, update.len(), context.budget.0)
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

/// Writes these entries at level 1 for a tenth of a bit.
fn entries(out: &mut Encoded, indices: &[u32], values: &[f32]) -> Spent {
    *out = Encoded::Sparse(SparseUpdate { indices: indices.to_vec(), values: Values::Each(values.to_vec()) });
    Spent::new(Bits(0.1), 1)
}

fn spent(out: &mut Encoded, bits: f64, level: usize) -> Spent {
    entries(out, &[0], &[1.0]);
    Spent::new(Bits(bits), level)
}

#[test]
fn a_compressor_that_breaks_its_contract_is_an_error_that_names_it() {
    let cases: [(Answer, &str); 13] = [
        (
            |out, _, _| entries(out, &[5, 3], &[1.0, 2.0]),
            "index 3 is out of order (after 5); indices must ascend",
        ),
        (
            |out, _, _| entries(out, &[3, 3], &[1.0, 2.0]),
            "index 3 appears twice (after 3); indices must ascend",
        ),
        (
            |out, dim, _| entries(out, &[dim as u32], &[1.0]),
            "index 195 is out of range: the model has 195 parameters",
        ),
        (|out, _, _| entries(out, &[0, 1], &[1.0]), "it has 1 values for 2 indices"),
        (|out, _, _| entries(out, &[0], &[f32::NAN]), "a value is not finite"),
        (|out, _, _| entries(out, &[0], &[f32::INFINITY]), "a value is not finite"),
        (
            |out, _, _| spent(out, f64::NAN, 1),
            "it reports that it spent NaN bits; it must be a finite number",
        ),
        (
            |out, _, _| spent(out, f64::INFINITY, 1),
            "it reports that it spent inf bits; it must be a finite number",
        ),
        (
            |out, _, _| spent(out, -1.0, 1),
            "it reports that it spent -1 bits; it must be a finite number of at least 0",
        ),
        (|out, _, budget| spent(out, budget + 1e6, 1), "it reports that it spent 1000"),
        (|out, _, _| spent(out, 0.1, 0), "it sends an update at level 0, which must then be at least 1"),
        (
            |out, _, _| {
                *out = Encoded::Silent;
                Spent::new(Bits(0.0), 2)
            },
            "it sends nothing at level 2, which must then be 0",
        ),
        (
            |out, dim, _| {
                *out = Encoded::Dense(vec![0.0; dim - 1]);
                Spent::new(Bits(0.1), 1)
            },
            "it has 194 entries, but the model has 195 parameters",
        ),
    ];
    // BN2-C compresses for the report already, BC only the update that it sends.
    for policy in ["bc", "bn2-c"] {
        for (answer, problem) in cases {
            let parts = Parts::default()
                .compressor("scripted", "this test", move |_, _| Ok(Box::new(Scripted(answer))));
            let mut config = small_config();
            (config.schedule.policy, config.compress.scheme) = (policy.into(), "scripted".into());
            let error = first_round(&config, &parts).unwrap_err();
            let message = error.to_string();
            let start = "compressor scripted broke its contract in round 1, device ";
            assert!(
                message.starts_with(start) && message.contains(problem),
                "{policy}: {message} is not {problem}"
            );
            assert!(matches!(error, Error::Compressor { .. }));
        }
    }
}

#[test]
fn a_compressor_that_claims_fewer_bits_than_it_sends_is_named_in_a_warning() {
    let warnings = |answer: Answer| {
        let parts =
            Parts::default().compressor("cheap", "this test", move |_, _| Ok(Box::new(Scripted(answer))));
        let mut config = small_config();
        config.compress.scheme = "cheap".into();
        let mut simulation = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
        let mut warnings = simulation.run(|_| ()).unwrap().warnings;
        warnings.retain(|warning| !warning.starts_with("heard "));
        warnings
    };
    // Two different values at two of 195 indices: log2 C(195, 2) + 2 = 16.2 bits; 12 rounds of K = 3.
    let cheap = warnings(|out, _, _| entries(out, &[3, 5], &[1.0, 2.0]));
    let [warning] = &cheap[..] else { panic!("{cheap:?}") };
    let start =
        "compressor cheap claims fewer bits than its entries take in 36 uploads (the first: round 1, device ";
    assert!(warning.starts_with(start), "{warning}");
    assert!(warning.contains("2 entries, which take about 16 bits, for 0"), "{warning}");
    let honest: Answer = |out, _, budget| Spent::new(Bits(budget), entries(out, &[3], &[1.0]).level);
    assert_eq!(warnings(honest), Vec::<String>::new());
}

/// A task with the methods of a test.
#[derive(Clone)]
struct Broken {
    theta0: Vec<f32>,
    samples: usize,
    train: fn(Job) -> Result<f64, TaskError>,
    evaluate: fn() -> Result<Evaluation, TaskError>,
}

impl Default for Broken {
    fn default() -> Self {
        Self {
            theta0: vec![0.5; 30],
            samples: 4,
            train: |job| {
                job.update.fill(0.1);
                Ok(0.5)
            },
            evaluate: || Ok(Evaluation::new(0.5, 0.5)),
        }
    }
}

impl Task for Broken {
    fn theta0(&self) -> Vec<f32> {
        self.theta0.clone()
    }

    fn samples(&self, device: DeviceId) -> usize {
        if device.0 == 2 { self.samples } else { 4 }
    }

    fn train(&self, job: Job) -> Result<f64, TaskError> {
        (self.train)(job)
    }

    fn evaluate(&self, _: &[f32]) -> Result<Evaluation, TaskError> {
        (self.evaluate)()
    }
}

#[test]
fn a_task_without_a_model_or_with_devices_without_samples_is_refused() {
    let refused = |task: Broken| Simulation::of(&small_config(), task).map(|_| ()).unwrap_err().to_string();
    let start = |theta0| Broken { theta0, ..Broken::default() };
    assert_eq!(refused(start(vec![])), "task: θ(0) is empty, so there is nothing to learn");
    assert_eq!(refused(start(vec![0.0, f32::NAN])), "task: θ(0) is NaN in entry 1");
    assert_eq!(
        refused(Broken { samples: 0, ..Broken::default() }),
        "task: Broken has no samples on device 2; each needs at least one"
    );
}

#[test]
fn a_task_that_fails_is_an_error_with_its_round_and_device() {
    let failed = |task: Broken| Simulation::of(&small_config(), task).unwrap().run(|_| ()).unwrap_err();
    let train = |train| failed(Broken { train, ..Broken::default() });
    let error = train(|job| if job.t == 2 { Err(TaskError("out of memory".into())) } else { Ok(0.5) });
    assert_eq!(error.to_string(), "the task failed in round 3, device 0: out of memory");
    for broken in [
        train(|job| {
            job.update.fill(f32::NAN);
            Ok(0.5)
        }),
        train(|job| {
            job.update.fill(0.0);
            Ok(f64::NAN)
        }),
    ] {
        assert!(matches!(broken, Error::Diverged { round: 1, device: 0, .. }), "{broken}");
    }
    let error = failed(Broken { evaluate: || Err(TaskError("no test set".into())), ..Broken::default() });
    assert_eq!(error.to_string(), "the task cannot evaluate the model: no test set");
}

#[test]
fn the_error_of_an_update_that_is_not_a_number_names_its_device() {
    /// The update of one device is not a number.
    struct NoNumber(Option<DeviceId>);
    impl Task for NoNumber {
        fn theta0(&self) -> Vec<f32> {
            vec![0.5; 30]
        }
        fn samples(&self, _: DeviceId) -> usize {
            4
        }
        fn train(&self, job: Job) -> Result<f64, TaskError> {
            job.update.fill(if Some(job.device) == self.0 { f32::NAN } else { 0.1 });
            Ok(0.5)
        }
        fn evaluate(&self, _: &[f32]) -> Result<Evaluation, TaskError> {
            Ok(Evaluation::new(0.5, 0.5))
        }
    }
    let mut config = small_config();
    config.schedule.policy = "bc".into();
    config.compress.feedback = "always".into();
    let first = Simulation::of(&config, NoNumber(None)).unwrap().step().unwrap();
    let is_silent = |device: &u32| first.transmissions.iter().all(|sent| sent.device.0 != *device);
    let silent = (0..config.data.devices as u32).find(is_silent).unwrap();
    let broken = Simulation::of(&config, NoNumber(Some(DeviceId(silent)))).unwrap().step().unwrap_err();
    assert!(matches!(broken, Error::Diverged { round: 1, device, .. } if device == silent), "{broken}");
}

#[test]
fn a_cohort_with_too_few_results_is_an_error_of_the_task() {
    struct Short;
    impl Task for Short {
        fn theta0(&self) -> Vec<f32> {
            vec![0.0; 5]
        }
        fn samples(&self, _: DeviceId) -> usize {
            1
        }
        fn train(&self, _: Job) -> Result<f64, TaskError> {
            Ok(0.0)
        }
        fn evaluate(&self, _: &[f32]) -> Result<Evaluation, TaskError> {
            Ok(Evaluation::new(0.0, 0.0))
        }
        fn cohorts(&self) -> fedlink::learn::task::Cohorts {
            fedlink::learn::task::Cohorts::Of(4)
        }
        fn train_cohort(&self, mut jobs: Vec<Job>) -> Vec<Result<f64, TaskError>> {
            jobs.pop();
            jobs.into_iter().map(|job| self.train(job)).collect()
        }
    }
    let error = Simulation::of(&small_config(), Short).unwrap().step().unwrap_err();
    assert_eq!(error.to_string(), "the task failed in round 1, device 0: its cohort of 4 gave 3 results");
}

/// Fails in round 6, but only once.
struct Flaky {
    inner: Broken,
    failed: Arc<AtomicBool>,
}

impl Task for Flaky {
    fn theta0(&self) -> Vec<f32> {
        self.inner.theta0()
    }

    fn samples(&self, device: DeviceId) -> usize {
        self.inner.samples(device)
    }

    fn train(&self, job: Job) -> Result<f64, TaskError> {
        if job.t == 5 && job.device.0 == 7 && !self.failed.swap(true, Relaxed) {
            return Err(TaskError("a cable came loose".into()));
        }
        let state = job.state.ok_or_else(|| TaskError("no state".into()))?;
        state.bytes.push(1);
        let step = (state.bytes.len() as f32).recip() * (1.0 + job.device.0 as f32);
        job.update.iter_mut().zip(job.theta).for_each(|(update, theta)| *update = step * (1.0 - theta));
        Ok(f64::from(step))
    }

    fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError> {
        Ok(Evaluation::new(0.0, f64::from(theta[0].abs())))
    }

    fn state_vectors(&self) -> Option<usize> {
        Some(0)
    }
}

#[test]
fn after_an_error_a_run_continues_only_from_a_checkpoint() {
    let flaky = |failed: bool| Flaky { inner: Broken::default(), failed: Arc::new(AtomicBool::new(failed)) };
    for policy in ["bn2", "round-robin"] {
        let mut config = small_config();
        config.schedule.policy = policy.into();
        let whole = Simulation::of(&config, flaky(true)).unwrap().run(|_| ()).unwrap();
        let mut simulation = Simulation::of(&config, flaky(false)).unwrap();
        let mut saved = Vec::new();
        for t in 0..5 {
            if t == 3 {
                simulation.checkpoint(&mut saved).unwrap();
            }
            simulation.step().unwrap();
        }
        let error = simulation.step().unwrap_err();
        assert_eq!(error.to_string(), "the task failed in round 6, device 7: a cable came loose");
        // Some devices have finished the round and some have not: the run must not continue from here.
        for _ in 0..2 {
            let error = simulation.step().unwrap_err();
            assert!(matches!(error, Error::Failed { round: 6 }), "{error}");
        }
        assert!(matches!(simulation.run(|_| ()), Err(Error::Failed { round: 6 })));
        assert_eq!(simulation.rounds_done(), 5);
        // A state that cannot be restored does not repair the run.
        assert!(simulation.restore(Cursor::new(&saved[..saved.len() - 1])).is_err());
        assert!(matches!(simulation.step(), Err(Error::Failed { round: 6 })));
        simulation.restore(Cursor::new(&saved)).unwrap();
        assert_eq!(simulation.rounds_done(), 3);
        assert_eq!(simulation.run(|_| ()).unwrap(), whole, "{policy}");
    }
}

#[test]
fn a_state_that_a_policy_cannot_restore_names_it_and_changes_nothing() {
    /// Restores no state but that of round 0.
    struct Forgetful(u64);
    impl Persist for Forgetful {
        fn save(&self) -> State {
            State::of(&self.0)
        }
        fn load(&mut self, state: State) -> Result<(), StateError> {
            match state.read::<u64>()? {
                0 => Ok(()),
                rounds => Err(StateError(format!("{rounds} rounds are too many"))),
            }
        }
    }
    impl Policy for Forgetful {
        fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
            self.0 += 1;
            view.everyone()
        }
        fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
            Schedule::equal(reports.devices.iter().copied().take(view.k))
        }
    }
    let parts = Parts::default().policy("forgetful", "this test", |_, _| Ok(Box::new(Forgetful(0))));
    let mut config = small_config();
    config.schedule.policy = "forgetful".into();
    let mut simulation = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
    simulation.step().unwrap();
    let mut saved = Vec::new();
    simulation.checkpoint(&mut saved).unwrap();
    let mut other = Simulation::with_parts(&config, blobs(20, 600, 90), &parts).unwrap();
    let theta = other.theta().to_vec();
    let error = other.restore(Cursor::new(&saved)).unwrap_err().to_string();
    assert_eq!(error, "the checkpoint cannot be restored: policy forgetful: 1 rounds are too many");
    assert_eq!((other.rounds_done(), other.theta()), (0, &theta[..]));
    other.step().unwrap();
}
