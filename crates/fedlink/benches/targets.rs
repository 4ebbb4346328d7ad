//! The ratios of `docs/performance.md`, each measured in one process with its two sides taking turns, so that
//! other load on the machine affects both. `FEDLINK_DATA` names the folder that holds `mnist/`.
//!
//! `cargo bench -p fedlink --bench targets -- [NAME…]` runs the named ones, or all but `cnn`, `large` and
//! `million`. `cnn` needs PyTorch: `FEDLINK_TORCH_PYTHON` names an interpreter that has it
//! (`cargo xtask bench cnn` makes one).

use cpu_time::ProcessTime;
use fedlink::base::kernels::{
    Matrix, Panels, SparseBatch, instruction_set, matmul, norm, pack_output_gradient, sparse_forward,
    sparse_gradient,
};
use fedlink::base::state::Persist;
use fedlink::base::units::{Bits, DeviceId};
use fedlink::compress::wire::{Coder, Format, Layout};
use fedlink::compress::{Scratch, SparseBinary, SparseScheme, SparseUpdate};
use fedlink::data::{Dataset, Scaler, Scaling, catalog};
use fedlink::learn::inputs::{BatchBuffer, Inputs, Split};
use fedlink::learn::model::{Batch, Cnn, Init, Model, Rows};
use fedlink::learn::optimizer::{Adam, Optimizer, StateMode};
use fedlink::learn::task::DeviceState;
use fedlink::parts::Parts;
use fedlink::parts::find;
use fedlink::schedule::policy::BestCompressedNorm;
use fedlink::schedule::{Ask, Policy, Reports, Schedule, View};
use fedlink::spec::{BatchSize, Config};
use fedlink::system::simulation::Simulation;
use std::ffi::OsStr;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PIXELS: usize = 784;
const HIDDEN: usize = 256;

/// Measures one thing on MNIST and prints it.
type Measure = fn(&Arc<Dataset>);

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let asked =
        |name: &str, default: bool| if named.is_empty() { default } else { named.iter().any(|n| n == name) };
    let folder = std::env::var_os("FEDLINK_DATA").map(PathBuf::from);
    let folder = folder.expect("set FEDLINK_DATA to the folder that holds mnist/");
    let dataset = Arc::new(catalog::load("mnist", &[folder]).expect("MNIST can be read"));
    println!("instruction set: {}", instruction_set());
    let targets: [(&str, bool, Measure); 11] = [
        ("first-layer", true, first_layer),
        ("density", true, density),
        ("candidates", true, candidates),
        ("share", true, share),
        ("wire", true, wire),
        ("threads", true, threads),
        ("devices", true, devices),
        ("clients", true, clients),
        ("cnn", false, cnn),
        ("large", false, large),
        ("million", false, million),
    ];
    for (name, default, measure) in targets {
        if asked(name, default) {
            measure(&dataset);
        }
    }
}

/// Median times of pieces of work that take turns, in seconds of processor time: a neighbor that
/// takes the core away does not count.
fn take_turns<const N: usize>(turns: usize, mut work: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..turns {
        for (times, work) in times.iter_mut().zip(&mut work) {
            let start = ProcessTime::now();
            work();
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

/// The first layer's two products of a training step, by non-zeros against dense.
fn first_layer(dataset: &Arc<Dataset>) {
    let scaler = Scaler::new(dataset, Scaling::Unit);
    let inputs = Inputs::new(Arc::clone(dataset), Scaling::Unit);
    let weights: Vec<f32> = (0..PIXELS * HIDDEN).map(|i| (i * 7919 % 1000) as f32 * 1e-3 - 0.5).collect();
    for rows in [16, 64, 250, 1000] {
        let samples = |turn: usize| (0..rows).map(move |i| (turn * 7817 + i * 577) % 60_000);
        let (mut dense, mut out) = (vec![0.0; rows * PIXELS], vec![0.0; rows * HIDDEN]);
        let output_gradient: Vec<f32> = weights.iter().cycle().take(rows * HIDDEN).copied().collect();
        let mut gradient = vec![0.0; PIXELS * HIDDEN];
        let (mut buffer, mut panels) = (BatchBuffer::default(), Panels::default());
        let (mut sparse_out, mut block) = (out.clone(), vec![0.0; 16 * HIDDEN]);
        let (mut turn_dense, mut turn_sparse) = (0, 0);
        let [by_dense, by_sparse] = take_turns(
            30_000 / rows + 10,
            [
                &mut || {
                    turn_dense += 1;
                    for (row, sample) in dense.chunks_exact_mut(PIXELS).zip(samples(turn_dense)) {
                        scaler.write(&dataset.train, sample, row);
                    }
                    let x = Matrix::new(&dense, rows, PIXELS);
                    matmul(x, Matrix::new(&weights, PIXELS, HIDDEN), &mut out, false);
                    matmul(x.t(), Matrix::new(&output_gradient, rows, HIDDEN), &mut gradient, false);
                    black_box((&out, &gradient));
                },
                &mut || {
                    turn_sparse += 1;
                    let batch = inputs.gather(Split::Train, samples(turn_sparse), &mut buffer);
                    let Rows::Sparse(x) = batch.inputs else { panic!("MNIST is sparse") };
                    sparse_out.fill(0.0);
                    sparse_forward(x, &weights, &mut sparse_out, &mut panels);
                    let packed = pack_output_gradient(x, &output_gradient, &mut panels);
                    for first in (0..PIXELS).step_by(16) {
                        sparse_gradient(&packed, first..first + 16, &mut block);
                        black_box(&block);
                    }
                    black_box(&sparse_out);
                },
            ],
        );
        println!(
            "first-layer: batch {rows}: dense {:.0} µs, by non-zeros {:.0} µs, ratio {:.2}",
            by_dense * 1e6,
            by_sparse * 1e6,
            by_dense / by_sparse
        );
    }
}

/// The same two products for other shares of non-zeros, scattered at random: where dense becomes faster.
fn density(_: &Arc<Dataset>) {
    let rows = 64;
    let mut stream = fedlink::base::rng::stream(0, fedlink::base::rng::Purpose::Test, 0, 0);
    let mut random = |len: usize| (0..len).map(|_| stream.uniform() as f32).collect::<Vec<f32>>();
    let (weights, output_gradient) = (random(PIXELS * HIDDEN), random(rows * HIDDEN));
    let (draws, values) = (random(rows * PIXELS), random(rows * PIXELS));
    for share in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6] {
        let pick = |(&draws, &value): (&f32, &f32)| if draws < share { value } else { 0.0 };
        let dense: Vec<f32> = draws.iter().zip(&values).map(pick).collect();
        let mut sparse = SparseBatch::of_dense(&dense, PIXELS);
        let (mut out, mut gradient) = (vec![0.0; rows * HIDDEN], vec![0.0; PIXELS * HIDDEN]);
        let (mut sparse_out, mut block, mut panels) =
            (out.clone(), vec![0.0; 16 * HIDDEN], Panels::default());
        let [by_dense, by_sparse] = take_turns(
            300,
            [
                &mut || {
                    let x = Matrix::new(&dense, rows, PIXELS);
                    matmul(x, Matrix::new(&weights, PIXELS, HIDDEN), &mut out, false);
                    matmul(x.t(), Matrix::new(&output_gradient, rows, HIDDEN), &mut gradient, false);
                    black_box((&out, &gradient));
                },
                &mut || {
                    sparse.finish();
                    sparse_forward(&sparse, &weights, &mut sparse_out, &mut panels);
                    let packed = pack_output_gradient(&sparse, &output_gradient, &mut panels);
                    for first in (0..PIXELS).step_by(16) {
                        sparse_gradient(&packed, first..first + 16, &mut block);
                        black_box(&block);
                    }
                },
            ],
        );
        println!("density: {share:.1} non-zero: dense/sparse {:.2}", by_dense / by_sparse);
    }
}

/// The paper's MLP on MNIST.
fn paper(policy: &str, k: u64, state: StateMode) -> Config {
    let mut config = Config::default();
    config.data.dataset = "mnist".into();
    config.schedule.policy = policy.into();
    config.schedule.k = k;
    config.learn.state = state;
    config.run.rounds = u64::from(u32::MAX);
    config.run.evaluate_every = u64::from(u32::MAX);
    config
}

fn simulation(config: &Config, dataset: &Arc<Dataset>) -> Simulation {
    let mut simulation = Simulation::of(config, Arc::clone(dataset)).expect("a valid configuration");
    simulation.step().expect("the first round, which warms up");
    simulation
}

fn step(simulation: &mut Simulation) {
    black_box(simulation.step().expect("a round"));
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool")
}

/// BC trains K devices and not M, where that is exact.
fn candidates(dataset: &Arc<Dataset>) {
    pool(1).install(|| {
        for k in [1, 10] {
            let mut bc = simulation(&paper("bc", k, StateMode::Reset), dataset);
            let mut bn2 = simulation(&paper("bn2", k, StateMode::Reset), dataset);
            // As many trainings to a turn on both sides, so that caches are as warm.
            let rounds = 40 / k;
            let [few, all] =
                take_turns(21, [&mut || (0..rounds).for_each(|_| step(&mut bc)), &mut || step(&mut bn2)]);
            let few = few / rounds as f64;
            println!(
                "candidates: K = {k}: BC {:.2} ms, BN2 {:.2} ms a round, ratio {:.4} = {:.2}·K/M",
                few * 1e3,
                all * 1e3,
                few / all,
                few / all * 40.0 / k as f64
            );
        }
    });
}

/// BN2-C that notes when training begins and ends.
struct Watched {
    training: Arc<Mutex<Duration>>,
    began: ProcessTime,
}

impl Persist for Watched {}

impl Policy for Watched {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let candidates = BestCompressedNorm {}.candidates(view);
        self.began = ProcessTime::now();
        candidates
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::CompressedNorm]
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        *self.training.lock().expect("one thread") = self.began.elapsed();
        BestCompressedNorm {}.select(view, reports)
    }
}

/// The time of a BN2-C round apart from training: everything outside [candidates, select], and inside it
/// the norm, q* and compression of every device, measured on a true update.
fn share(dataset: &Arc<Dataset>) {
    pool(1).install(|| {
        for (k, state) in [(1, StateMode::Keep), (10, StateMode::Keep), (1, StateMode::Reset)] {
            let config = paper("watched", k, state);
            let inside = Arc::new(Mutex::new(Duration::ZERO));
            let noted = Arc::clone(&inside);
            let parts = Parts::default().policy("watched", file!(), move |_, _| {
                Ok(Box::new(Watched { training: Arc::clone(&noted), began: ProcessTime::now() }))
            });
            let mut watched =
                Simulation::with_parts(&config, Arc::clone(dataset), &parts).expect("a valid configuration");
            step(&mut watched);
            let update = one_update(&config, dataset);
            let (mut scratch, mut sent) = (Scratch::default(), SparseUpdate::default());
            let mut unused = fedlink::base::rng::stream(0, fedlink::base::rng::Purpose::Test, 0, 0);
            let mut training = Vec::new();
            let [round, report] = take_turns(
                15,
                [
                    &mut || {
                        step(&mut watched);
                        training.push(inside.lock().expect("one thread").as_secs_f64());
                    },
                    &mut || {
                        for m in 0..40 {
                            // Capacities of an exponential gain, from its quantiles.
                            let gain = -f64::ln(1.0 - (f64::from(m) + 0.5) / 40.0);
                            let capacity = (1.0 + gain * 40.0 / k as f64).log2();
                            black_box(norm(&update));
                            let q = SparseBinary {}.largest_q(update.len(), Bits(5000.0 * capacity));
                            SparseBinary {}.compress(&update, q, &mut unused, &mut scratch, &mut sent);
                            black_box(sent.norm());
                        }
                    },
                ],
            );
            training.sort_by(f64::total_cmp);
            let outside = round - training[training.len() / 2];
            println!(
                "share: {state:?}, K = {k}: round {:.2} ms, reports {:.2} ms, outside {:.2} ms: \
                 {:.1} % is not training",
                round * 1e3,
                report * 1e3,
                outside * 1e3,
                100.0 * (report + outside) / round
            );
        }
    });
}

/// A device's local training of three Adam steps, time after time; it writes its Δ to the given slice.
fn trainer(config: &Config, dataset: &Arc<Dataset>) -> impl FnMut(&mut Vec<f32>) + use<> {
    use fedlink::learn::DescentOptions;
    use fedlink::learn::correction::Adjustment;
    use fedlink::learn::local_training::LocalTraining;
    use fedlink::learn::rate::Rate;
    use fedlink::learn::steps::StepCounts;
    let (model, rule) = (config.learn.model.as_str(), config.learn.optimizer.as_str());
    let training = LocalTraining {
        model: find::<dyn Model>(model)
            .and_then(|entry| entry.build(config.own_table("learn", model), &config.scope(), dataset))
            .expect("a model"),
        inputs: Inputs::new(Arc::clone(dataset), config.data.scaling),
        optimizer: find::<dyn Optimizer>(rule)
            .and_then(|entry| entry.build(config.own_table("learn", rule), &config.scope(), &()))
            .expect("an optimizer"),
        steps: StepCounts { max: config.learn.local_steps, min: None, seed: 0 },
        batch: config.learn.batch,
        rate: Rate::constant(config.resolve(&Parts::default()).expect("it is valid").rate()),
        options: DescentOptions::default(),
        seed: 0,
    };
    let mut stream = fedlink::base::rng::stream(0, fedlink::base::rng::Purpose::Init, 0, 0);
    let theta = training.model.init(config.learn.init, &mut stream);
    let mut state = DeviceState::filled(theta.len(), training.optimizer.starts());
    let mut scratch = training.scratch();
    move |update| {
        scratch.samples.clear();
        scratch.samples.extend(0..1000);
        update.resize(theta.len(), 0.0);
        training.run(&theta, (0, DeviceId(0)), Adjustment::default(), &mut state, &mut scratch, update);
    }
}

/// Δ of a device as three Adam steps leave it.
fn one_update(config: &Config, dataset: &Arc<Dataset>) -> Vec<f32> {
    let mut update = Vec::new();
    trainer(config, dataset)(&mut update);
    update
}

/// Writing an update to the wire and reading it off again, in parts of one training step.
fn wire(dataset: &Arc<Dataset>) {
    let config = paper("bn2-c", 1, StateMode::Keep);
    let (mut train, update) = (trainer(&config, dataset), one_update(&config, dataset));
    let (mut trained, mut unused) =
        (Vec::new(), fedlink::base::rng::stream(0, fedlink::base::rng::Purpose::Test, 0, 0));
    for q in [100, 300, 1000, 3000] {
        let (mut sent, mut received) = (SparseUpdate::default(), SparseUpdate::default());
        SparseBinary {}.compress(&update, q, &mut unused, &mut Scratch::default(), &mut sent);
        let format = Format::new(Layout::Shared, update.len(), q).expect("q is small");
        let (mut coder, mut payload, mut bits) = (Coder::default(), Vec::new(), 0);
        let mut message = Vec::new();
        Coder::default().encode(&format, &sent, &mut message).expect("an update of that format");
        let mut reader = Coder::default();
        let [training, writing, reading] = take_turns(
            301,
            [
                &mut || train(&mut trained),
                &mut || bits = coder.encode(&format, &sent, &mut payload).expect("an update of that format"),
                &mut || reader.decode(&format, &message, &mut received).expect("what was encoded"),
            ],
        );
        assert_eq!(received, sent);
        let step = training / config.learn.local_steps as f64;
        println!(
            "wire: q = {q}: {bits} bits, {:.1} by the count; a step {:.0} µs, encode {:.1} and decode {:.1} \
             µs: {:.1} %",
            SparseBinary {}.bits(update.len(), q).0,
            step * 1e6,
            writing * 1e6,
            reading * 1e6,
            100.0 * (writing + reading) / step
        );
    }
}

/// Two threads against one, by wall-clock time: of use on a machine that does nothing else.
fn threads(dataset: &Arc<Dataset>) {
    let config = paper("bn2-c", 1, StateMode::Keep);
    let (one, two) = (pool(1), pool(2));
    let mut alone = one.install(|| simulation(&config, dataset));
    let mut shared = two.install(|| simulation(&config, dataset));
    let round = |pool: &rayon::ThreadPool, simulation: &mut Simulation| {
        let (wall, processor) = (Instant::now(), ProcessTime::now());
        pool.install(|| step(simulation));
        [wall.elapsed().as_secs_f64(), processor.elapsed().as_secs_f64()]
    };
    let (mut slow, mut fast) = ([f64::INFINITY; 2], [f64::INFINITY; 2]);
    for _ in 0..40 {
        for (best, time) in slow.iter_mut().zip(round(&one, &mut alone)) {
            *best = best.min(time);
        }
        for (best, time) in fast.iter_mut().zip(round(&two, &mut shared)) {
            *best = best.min(time);
        }
    }
    println!(
        "threads: the best of 40 rounds: {:.2} ms on one, {:.2} ms on two, ratio {:.2}; \
         processor time {:.2} and {:.2} ms",
        slow[0] * 1e3,
        fast[0] * 1e3,
        slow[0] / fast[0],
        slow[1] * 1e3,
        fast[1] * 1e3,
    );
}

fn many(devices: u64, model: &str) -> Config {
    let mut config = paper("bn2", 10, StateMode::Reset);
    config.data.devices = devices;
    config.set("data.iid.sharing", "overlapping").expect("a key");
    config.learn.model = model.into();
    config
}

fn timed_round(devices: u64, model: &str, dataset: &Arc<Dataset>) {
    let before = resident();
    let config = many(devices, model);
    let mut simulation = Simulation::of(&config, Arc::clone(dataset)).expect("a valid configuration");
    let start = ProcessTime::now();
    step(&mut simulation);
    let time = start.elapsed().as_secs_f64();
    println!(
        "devices: {model}, M = {devices}: a round in {time:.2} s of processor time, {:.3} ms a device, \
         {:.0} MB beyond the data set at most",
        time / devices as f64 * 1e3,
        peak() - before
    );
}

fn devices(dataset: &Arc<Dataset>) {
    for devices in [100, 1000, 10_000] {
        timed_round(devices, "mlp", dataset);
    }
}

fn large(dataset: &Arc<Dataset>) {
    timed_round(100_000, "mlp", dataset);
}

fn million(dataset: &Arc<Dataset>) {
    timed_round(1_000_000, "softmax", dataset);
}

/// Megabytes of the process, now and at most so far.
fn resident() -> f64 {
    status("VmRSS:")
}

fn peak() -> f64 {
    status("VmHWM:")
}

fn status(key: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) / 1e3
}

/// Softmax regression, a thousand clients of 69 samples, ten a round, one local epoch, a hundred rounds.
fn clients(dataset: &Arc<Dataset>) {
    let mut config = paper("bc", 10, StateMode::Reset);
    config.data.devices = 1000;
    config.data.samples_per_device = 69;
    config.set("data.iid.sharing", "overlapping").expect("a key");
    config.learn.model = "softmax".into();
    config.learn.optimizer = "sgd".into();
    config.learn.rate = Some(0.03);
    config.learn.batch = BatchSize::Count(10);
    config.learn.local_steps = 7;
    config.run.rounds = 101;
    for threads in [1, 2] {
        pool(threads).install(|| {
            let mut simulation = simulation(&config, dataset);
            let (wall, processor) = (Instant::now(), ProcessTime::now());
            let outcome = simulation.run(|_| ()).expect("a run");
            let (time, processor) = (wall.elapsed().as_secs_f64(), processor.elapsed().as_secs_f64());
            let accuracy = 100.0 * outcome.final_accuracy.unwrap_or(f64::NAN);
            println!(
                "clients: {threads} threads: 100 rounds in {time:.3} s ({processor:.3} s of processor time), \
                 accuracy {accuracy:.1} %"
            );
        });
    }
}

/// A training step of the CNN beside the same in PyTorch, in turn, each on one thread.
fn cnn(_: &Arc<Dataset>) {
    const TURNS: usize = 40;
    let python =
        std::env::var_os("FEDLINK_TORCH_PYTHON").expect("FEDLINK_TORCH_PYTHON names a Python with torch");
    for shape in [[28, 28, 1], [32, 32, 3]] {
        let mut peer = Peer::start(&python, shape);
        let mut step = cnn_step(shape);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for turn in 0..TURNS + 5 {
            let start = ProcessTime::now();
            step();
            let (our_step, their_step) = (start.elapsed().as_secs_f64(), peer.step());
            if turn >= 5 {
                ours.push(our_step);
                theirs.push(their_step);
            }
        }
        let [height, width, channels] = shape;
        let (ours, theirs) = (sorted(ours), sorted(theirs));
        println!(
            "cnn: {height}×{width}×{channels}, batch 64, Adam: {:.2} ms a step, PyTorch ({}) {:.2} ms, ratio \
             {:.2}; the least of {TURNS} {:.2} and {:.2} ms, ratio {:.2}",
            ours[TURNS / 2] * 1e3,
            peer.name,
            theirs[TURNS / 2] * 1e3,
            theirs[TURNS / 2] / ours[TURNS / 2],
            ours[0] * 1e3,
            theirs[0] * 1e3,
            theirs[0] / ours[0],
        );
    }
}

fn sorted(mut times: Vec<f64>) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    times
}

/// A step of Adam on random images of a shape.
fn cnn_step(shape: [usize; 3]) -> impl FnMut() {
    let mut stream = fedlink::base::rng::stream(0, fedlink::base::rng::Purpose::Test, 0, 0);
    let model = Cnn::new(shape, 10).expect("images that are large enough");
    let adam = Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-7 };
    let mut theta = model.init(Init::GlorotUniform, &mut stream);
    let mut state = DeviceState::filled(model.dim(), adam.starts());
    let mut work = model.workspace(64);
    let images: Vec<f32> =
        (0..64 * shape.iter().product::<usize>()).map(|_| stream.uniform() as f32).collect();
    let labels: Vec<u8> = (0..64).map(|_| stream.below(10) as u8).collect();
    move || {
        let batch = Batch { inputs: Rows::Dense(&images), labels: &labels };
        adam.step(1e-3, &mut state, &mut |descent| {
            black_box(model.descend(&mut theta, batch, &mut work, descent));
        });
    }
}

/// `bench/peers/torch/cnn.py`, which takes a step for each line that it is sent.
struct Peer {
    process: Child,
    answers: BufReader<ChildStdout>,
    /// Its report on itself.
    name: String,
}

impl Peer {
    fn start(python: &OsStr, shape: [usize; 3]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peers/torch/cnn.py");
        let mut command = Command::new(python);
        command.arg(script).args(shape.map(|side| side.to_string()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("Python starts");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut peer = Self { process, answers, name: String::new() };
        peer.name = peer.answer();
        peer
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer of PyTorch");
        line.trim().to_owned()
    }

    fn step(&mut self) -> f64 {
        writeln!(self.process.stdin.as_mut().expect("a pipe"), "1").expect("PyTorch listens");
        self.answer().parse().expect("seconds of processor time")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Without input it ends.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
