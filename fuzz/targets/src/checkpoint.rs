//! Any bytes are the checkpoint of a simulation, from which it continues, or an error that changes
//! nothing.
//!
//! The first byte chooses a simulation. The rest is a file, see [`file`].

use fedlink::data::{Dataset, Features, Samples};
use fedlink::spec::{BatchSize, Config};
use fedlink::system::simulation::Simulation;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::io::Cursor;
use std::sync::Arc;

/// Magic and digest of the configuration.
const FRAME: usize = 8 + 32;
/// The checksum.
const CHECK: usize = 4;

thread_local! {
    static SIMULATIONS: RefCell<Vec<(Simulation, Vec<u8>)>> = RefCell::new(simulations());
    /// Such small rounds would spend their time on passing work between threads: this thread does all of
    /// it.
    static POOL: ThreadPool = ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build()
        .expect("a thread that is in no pool");
}

/// Does the work without other threads.
pub fn alone(work: impl FnOnce() + Send) {
    POOL.with(|pool| pool.install(work));
}

pub fn run(bytes: &[u8]) {
    alone(|| restore(bytes));
}

fn restore(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    SIMULATIONS.with_borrow_mut(|simulations| {
        // Every input starts from the same simulation.
        let count = simulations.len();
        let (simulation, pristine) = &mut simulations[usize::from(choice) % count];
        if simulation.restore(Cursor::new(file(bytes, pristine))).is_err() {
            assert!(saved(simulation) == *pristine, "a restore that failed has changed something");
            return;
        }
        let first = saved(simulation);
        simulation.restore(Cursor::new(&first)).expect("a saved state is valid");
        assert!(saved(simulation) == first, "the restored state is saved as another state");
        // An adversarial model may diverge, which is an error.
        let _ = (simulation.outcome(), simulation.step(), simulation.step(), simulation.outcome());
        simulation.restore(Cursor::new(&*pristine)).expect("a saved state is valid");
    });
}

fn saved(simulation: &Simulation) -> Vec<u8> {
    let mut bytes = Vec::new();
    simulation.checkpoint(&mut bytes).expect("memory takes all");
    bytes
}

/// The file given by the bytes. After a first byte of 0 they are the whole file. After a 1 they are the
/// state in it, and its frame (magic, digest of the configuration, checksum) is right. After any other
/// byte they are changes of the state of the checkpoint `pristine`, four bytes each, so that seeds fit
/// any layout.
pub fn file(bytes: &[u8], pristine: &[u8]) -> Vec<u8> {
    let (frame, state) = pristine.split_at(FRAME);
    let mut state = state[..state.len() - CHECK].to_vec();
    match bytes.split_first() {
        Some((0, whole)) => return whole.to_vec(),
        Some((1, given)) => state = given.to_vec(),
        Some((_, changes)) => changes.chunks_exact(4).for_each(|edit| change(&mut state, edit)),
        None => {}
    }
    let mut file = [frame, &state].concat();
    file.extend(crc32fast::hash(&file).to_le_bytes());
    file
}

/// Changes a state: position (two bytes), kind of change, and value.
fn change(state: &mut Vec<u8>, edit: &[u8]) {
    let at = usize::from(u16::from_be_bytes([edit[0], edit[1]])) % (state.len() + 1);
    let value = edit[3];
    match (edit[2] % 5, state.get_mut(at)) {
        (0, Some(byte)) => *byte = value,
        (1, Some(byte)) => *byte ^= value,
        (2, Some(_)) => drop(state.drain(at..state.len().min(at + usize::from(value)))),
        // The largest number, as postcard writes it.
        (3, Some(_)) => drop(state.splice(at..=at, [[0xff; 9].as_slice(), &[1]].concat())),
        _ => state.insert(at, value),
    }
}

/// Simulations in which every part keeps state, each after two rounds, with their checkpoints.
fn simulations() -> Vec<(Simulation, Vec<u8>)> {
    let choices: [&[(&str, &str)]; 3] = [
        &[("schedule.policy", "round-robin"), ("learn.optimizer", "sgd")],
        &[("schedule.policy", "random"), ("adversary.kind", "replay"), ("learn.aggregate", "median")],
        &[("schedule.policy", "bn2-c"), ("adversary.kind", "stolen"), ("compress.feedback", "always")],
    ];
    let begun = |choice: &&[(&str, &str)]| {
        let mut simulation = Simulation::of(&config(choice), data()).expect("a valid run");
        (0..2).for_each(|_| drop(simulation.step().expect("a round")));
        let bytes = saved(&simulation);
        (simulation, bytes)
    };
    choices.iter().map(begun).collect()
}

/// Four devices and a model of nine parameters.
pub fn config(settings: &[(&str, &str)]) -> Config {
    let mut config = Config::default();
    config.data.devices = 4;
    config.data.samples_per_device = 4;
    config.learn.model = "softmax".into();
    config.learn.batch = BatchSize::Count(2);
    config.learn.local_steps = 1;
    config.learn.server_optimizer = "momentum".into();
    config.radio.symbols = 60;
    config.radio.wire = true;
    config.schedule.k = 2;
    config.adversary.share = 0.5;
    config.defense.audit = true;
    config.defense.participation_cap = true;
    config.run.rounds = 1000;
    config.run.evaluate_every = 1;
    settings.iter().for_each(|(key, value)| config.set(key, *value).expect("a key"));
    config
}

fn data() -> Arc<Dataset> {
    let samples = |count: usize| Samples {
        features: Features::Bytes((0..2 * count).map(|i| (i * 37) as u8).collect()),
        labels: (0..count).map(|i| (i % 3) as u8).collect(),
    };
    let (train, test) = (samples(16), samples(6));
    Arc::new(Dataset { name: "fuzz".into(), features: 2, shape: [1, 2, 1], classes: 3, train, test })
}
