//! The share of an update's energy that every compression scheme sends with so many bits: the table of
//! `docs/compressors.md`.
//!
//! ```sh
//! FEDLINK_DATA=FOLDER cargo run --release --example compressors           # FOLDER holds mnist/
//! cargo run --release --example compressors -- digits                     # without any files
//! ```
//!
//! Two updates of each of two scenarios, after 20 rounds: IID data with Adam, and two classes on a device
//! with AdaGrad, otherwise as in the presets `fig1` and `fig2`. The share is ⟨v, v̂⟩²/(‖v‖²·‖v̂‖²), the part
//! of ‖v‖² that the best multiple of v̂ explains. For a projection it is ‖v̂‖²/‖v‖², for an unbiased scheme
//! 1/(1 + ω) on average.

use fedlink::base::kernels::norm;
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::{Bits, DeviceId, Shape};
use fedlink::compress::{Compressor, Context, Encoded, Scratch};
use fedlink::data::catalog;
use fedlink::parts::{Scope, find};
use fedlink::spec::Config;
use fedlink::system::simulation::Simulation;
use std::path::PathBuf;
use toml::Table;

const BUDGETS: [f64; 4] = [1500.0, 3000.0, 12_000.0, 36_833.0];

/// The schemes that are compared, each with one key of its table.
const SCHEMES: &[(&str, &[(&str, &str)])] = &[
    ("d-sgd", &[]),
    ("stc", &[]),
    ("top-k", &[]),
    ("random-sparse", &[]),
    ("rand-k", &[]),
    ("qsgd", &[]),
    ("ternary", &[]),
    ("sign", &[]),
    ("eden", &[]),
    ("eden", &[("scale", "\"projection\"")]),
    ("low-rank", &[("bits", "1")]),
    ("low-rank", &[("bits", "2")]),
    ("low-rank", &[("bits", "3")]),
];

fn config(dataset: &str, is_iid: bool) -> Result<Config, Box<dyn std::error::Error>> {
    let mut config = Config::default();
    config.data.dataset = dataset.into();
    config.learn.batch = fedlink::spec::BatchSize::Count(64);
    (config.schedule.policy, config.schedule.k) = ("round-robin".into(), 10);
    // Whole updates: twenty rounds of federated averaging.
    (config.compress.scheme, config.radio.symbols) = ("top-k".into(), 100_000_000);
    config.run.rounds = 20;
    if is_iid {
        (config.learn.optimizer, config.learn.rate) = ("adam".into(), Some(1e-3));
    } else {
        (config.data.partition, config.learn.optimizer, config.learn.rate) =
            ("classes".into(), "adagrad".into(), Some(0.03));
        config.set("learn.adagrad.initial_accumulator", 0.1)?;
    }
    Ok(config)
}

/// The share that a scheme sends of an update.
fn share(scheme: &dyn Compressor, update: &[f32], budget: f64, shapes: &[Shape], device: DeviceId) -> f64 {
    let context = Context::new(update.len(), Bits(budget)).of(0, (20, device)).with_shapes(shapes);
    let mut rng = stream(0, Purpose::Sparsify, 20, u64::from(device.0));
    let mut out = Encoded::default();
    scheme.encode(update, &context, &mut rng, &mut Scratch::default(), &mut out);
    let own = f64::from(out.norm());
    if own == 0.0 { 0.0 } else { (out.dot(update) / own / norm(update)).powi(2) }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dataset = std::env::args().nth(1).unwrap_or_else(|| "mnist".into());
    let folders: Vec<PathBuf> = std::env::var_os("FEDLINK_DATA").map(PathBuf::from).into_iter().collect();
    let dataset_files = catalog::load(&dataset, &folders)?;
    let dataset_files = std::sync::Arc::new(dataset_files);
    let mut tables = Vec::new();
    for is_iid in [true, false] {
        let config = config(&dataset, is_iid)?;
        let mut simulation = Simulation::of(&config, std::sync::Arc::clone(&dataset_files))?;
        simulation.run(|_| ())?;
        let fleet = &simulation.fleet;
        let shapes = fleet.task().shapes();
        let updates = [DeviceId(3), DeviceId(17)]
            .map(|device| fleet.update(simulation.theta(), 20, device).map(|(update, _)| (device, update)));
        let updates: Vec<(DeviceId, Vec<f32>)> = updates.into_iter().collect::<Result<_, _>>()?;
        tables.push((shapes, updates));
    }
    let columns = ["IID", "two classes"].map(|name| {
        let column = |bits: f64| format!("{name}, {:.1} kbit", bits / 1000.0);
        BUDGETS.map(column).join(" | ")
    });
    println!("| scheme | {} |", columns.join(" | "));
    println!("|---|{}", "---|".repeat(2 * BUDGETS.len()));
    for (name, keys) in SCHEMES {
        let Ok(entry) = find::<dyn Compressor>(name) else { continue };
        let settings: Vec<String> = keys.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let own: Table = toml::from_str(&settings.join("\n"))?;
        let scheme = entry.build(&own, &Scope::default(), &())?;
        let named = keys.iter().map(|(key, value)| format!("{key} {}", value.trim_matches('"')));
        let mut cells =
            vec![std::iter::once(format!("`{name}`")).chain(named).collect::<Vec<_>>().join(", ")];
        for (shapes, updates) in &tables {
            for budget in BUDGETS {
                let sum: f64 =
                    updates.iter().map(|(device, v)| share(&*scheme, v, budget, shapes, *device)).sum();
                cells.push(format!("{:.1}", 100.0 * sum / updates.len() as f64));
            }
        }
        println!("| {} |", cells.join(" | "));
    }
    Ok(())
}
