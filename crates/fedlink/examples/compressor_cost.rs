//! The time of compression: `cargo run --release -p fedlink --example compressor_cost`.
//!
//! First EDEN's transform against passes over the same memory that only change signs, for as many passes as
//! it makes and for all sizes of models; then each scheme, for the paper's MLP (d = 203 530) on the digits,
//! bits of a round of n = 5000 symbols at K = 10: milliseconds of one encoding, of a round of BC in which the
//! ten train and send, and the share of the ten encodings in it. One thread; processor time, the least of
//! many turns that all things measured take one after another, so that other work on the machine weighs on
//! all of them.

use cpu_time::ThreadTime;
use fedlink::base::kernels::{hadamard, instruction_set};
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::{Bits, DeviceId};
use fedlink::compress::{Compressor, Context, Encoded, Scratch};
use fedlink::data;
use fedlink::parts::{Kind, Scope};
use fedlink::spec::Config;
use fedlink::system::simulation::Simulation;
use std::hint::black_box;

/// Bits of a device.
const BUDGET: f64 = 3683.0;
const K: u64 = 10;

/// Milliseconds of `work`.
fn milliseconds(work: impl FnOnce()) -> f64 {
    let start = ThreadTime::now();
    work();
    1e3 * start.elapsed().as_secs_f64()
}

/// Passes that the transform makes over memory: one for blocks of 2¹³ numbers, one for every two stages
/// beyond.
fn passes(log: u32) -> u32 {
    1 + log.saturating_sub(13).div_ceil(2)
}

fn transform() {
    println!(
        "transform of 2^log numbers; milliseconds, least of many turns; a pass reads and writes each number \
         once"
    );
    println!("log  passes  transform  one pass  transform / passes");
    for log in [13, 16, 18, 20, 22, 24] {
        let mut x: Vec<f32> = (0..1u32 << log).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32).collect();
        let (mut ours, mut pass) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..(1usize << 26 >> log).clamp(12, 400) {
            ours = ours.min(milliseconds(|| hadamard(black_box(&mut x))));
            // Back to where it was, so that it never overflows.
            let back = 1.0 / f64::from(1u32 << log).sqrt() as f32;
            x.iter_mut().for_each(|x| *x *= back);
            pass = pass.min(milliseconds(|| black_box(&mut x).iter_mut().for_each(|x| *x = -*x)));
        }
        let ratio = ours / (f64::from(passes(log)) * pass);
        println!("{log:3}  {:6}  {ours:9.3}  {pass:8.3}  {ratio:18.2}", passes(log));
    }
}

fn schemes() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::default();
    config.schedule.policy = "bc".into();
    (config.schedule.k, config.run.rounds) = (K, 1000);
    let mut runs = Vec::new();
    for entry in <dyn Compressor>::entries() {
        config.compress.scheme = entry.name.into();
        let simulation = Simulation::of(&config, data::load("digits", &[])?)?;
        let compressor = entry.build(&toml::Table::new(), &Scope::default(), &())?;
        runs.push((entry.name, simulation, compressor, f64::INFINITY, f64::INFINITY));
    }
    // An update with few large entries: the cubes of normal numbers.
    let dim = 203_530;
    let mut rng = stream(1, Purpose::Test, 0, 0);
    let update: Vec<f32> = (0..dim).map(|_| (1e-3 * rng.normal().powi(3)) as f32).collect();
    let shapes = [(784, 256), (256, 1), (256, 10), (10, 1)]
        .map(|(rows, cols)| fedlink::base::units::Shape { rows, cols });
    let (mut scratch, mut out) = (Scratch::default(), Encoded::Silent);
    for turn in 0..30 {
        for (_, simulation, compressor, encoding, round) in &mut runs {
            *round = round.min(milliseconds(|| drop(black_box(simulation.step()))));
            let context = Context::new(dim, Bits(BUDGET)).of(1, (turn, DeviceId(0))).with_shapes(&shapes);
            let encode = || {
                black_box(compressor.encode(&update, &context, &mut rng, &mut scratch, black_box(&mut out)));
            };
            *encoding = encoding.min(milliseconds(encode));
        }
    }
    println!("\nd = {dim}, {BUDGET} bits; milliseconds");
    println!("scheme         encoding   round of BC   share of {K} encodings");
    for (name, _, _, encoding, round) in &runs {
        println!("{name:13} {encoding:9.3} {round:13.2} {:12.1} %", 100.0 * K as f64 * encoding / round);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("instruction set {}", instruction_set());
    transform();
    // A pool of no further threads: all work is done by this one.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build()?;
    pool.install(|| schemes().map_err(|error| error.to_string()))?;
    Ok(())
}
