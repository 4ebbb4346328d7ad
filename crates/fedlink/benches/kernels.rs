//! The arithmetic that takes the time, piece by piece, at the sizes of the paper's MLP (784→256→10, batches
//! of 64) on the embedded digits, which need no files. For ratios see the `targets` benchmark.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fedlink::base::kernels::{
    Matrix, Panels, matmul, norm, pack_output_gradient, sparse_forward, sparse_gradient,
};
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::DeviceId;
use fedlink::compress::{Scratch, SparseBinary, SparseScheme, SparseUpdate};
use fedlink::data::{Dataset, Scaler, Scaling};
use fedlink::learn::DescentOptions;
use fedlink::learn::correction::Adjustment;
use fedlink::learn::inputs::{BatchBuffer, Inputs, Split};
use fedlink::learn::local_training::LocalTraining;
use fedlink::learn::model::{Model, Rows};
use fedlink::learn::optimizer::{Optimizer, StateMode};
use fedlink::learn::rate::Rate;
use fedlink::learn::steps::StepCounts;
use fedlink::learn::task::DeviceState;
use fedlink::parts::Parts;
use fedlink::parts::find;
use fedlink::spec::Config;
use fedlink::system::simulation::Simulation;
use std::hint::black_box;
use std::sync::Arc;

const PIXELS: usize = 784;
const HIDDEN: usize = 256;
const DIM: usize = 203_530;

fn dataset() -> Arc<Dataset> {
    fedlink::data::load("digits", &[]).expect("the embedded data set")
}

fn adam(config: &Config) -> Box<dyn Optimizer> {
    let entry = find::<dyn Optimizer>("adam").expect("a known optimizer");
    entry.build(config.own_table("learn", "adam"), &config.scope(), &()).expect("its defaults")
}

fn mlp(config: &Config, dataset: &Dataset) -> Box<dyn Model> {
    let entry = find::<dyn Model>("mlp").expect("a known model");
    entry.build(config.own_table("learn", "mlp"), &config.scope(), dataset).expect("its defaults")
}

fn random(len: usize) -> Vec<f32> {
    let mut stream = stream(0, Purpose::Test, 0, 0);
    (0..len).map(|_| stream.normal() as f32 * 1e-3).collect()
}

fn first_layer(criterion: &mut Criterion) {
    let dataset = dataset();
    let inputs = Inputs::new(Arc::clone(&dataset), Scaling::Unit);
    let scaler = Scaler::new(&dataset, Scaling::Unit);
    let weights = random(PIXELS * HIDDEN);
    let mut group = criterion.benchmark_group("first layer");
    for rows in [16, 64, 1000] {
        let mut buffer = BatchBuffer::default();
        let batch = inputs.gather(Split::Train, 0..rows, &mut buffer);
        let Rows::Sparse(sparse) = batch.inputs else { panic!("digits are sparse") };
        let mut dense = vec![0.0; rows * PIXELS];
        for (i, row) in dense.chunks_exact_mut(PIXELS).enumerate() {
            scaler.write(&dataset.train, i, row);
        }
        let x = Matrix::new(&dense, rows, PIXELS);
        let output_gradient = random(rows * HIDDEN);
        let (mut out, mut gradient) = (vec![0.0; rows * HIDDEN], vec![0.0; PIXELS * HIDDEN]);
        let mut panels = Panels::default();
        group.bench_function(BenchmarkId::new("dense forward", rows), |b| {
            b.iter(|| matmul(x, Matrix::new(&weights, PIXELS, HIDDEN), &mut out, false));
        });
        group.bench_function(BenchmarkId::new("sparse forward", rows), |b| {
            b.iter(|| sparse_forward(sparse, &weights, &mut out, &mut panels));
        });
        group.bench_function(BenchmarkId::new("dense gradient", rows), |b| {
            b.iter(|| matmul(x.t(), Matrix::new(&output_gradient, rows, HIDDEN), &mut gradient, false));
        });
        group.bench_function(BenchmarkId::new("sparse gradient", rows), |b| {
            b.iter(|| {
                let packed = pack_output_gradient(sparse, &output_gradient, &mut panels);
                sparse_gradient(&packed, 0..PIXELS, &mut gradient);
            });
        });
    }
}

fn whole_vectors(criterion: &mut Criterion) {
    let (update, gradient) = (random(DIM), random(DIM));
    criterion.bench_function("norm", |b| b.iter(|| norm(black_box(&update))));
    let adam = adam(&Config::default());
    let mut state = DeviceState::filled(DIM, adam.starts());
    let mut theta = random(DIM);
    criterion.bench_function("adam", |b| {
        b.iter(|| adam.step(1e-3, &mut state, &mut |descent| descent.apply(0, &mut theta, &gradient)));
    });
    let (mut scratch, mut sent) = (Scratch::default(), SparseUpdate::default());
    let mut unused = stream(0, Purpose::Test, 0, 0);
    for q in [300, 1000, 3000] {
        criterion.bench_with_input(BenchmarkId::new("d-sgd", q), &q, |b, &q| {
            b.iter(|| SparseBinary {}.compress(&update, q, &mut unused, &mut scratch, &mut sent));
        });
    }
}

fn training(criterion: &mut Criterion) {
    let (dataset, config) = (dataset(), Config::default());
    let training = LocalTraining {
        model: mlp(&config, &dataset),
        inputs: Inputs::new(Arc::clone(&dataset), config.data.scaling),
        optimizer: adam(&config),
        steps: StepCounts { max: config.learn.local_steps, min: None, seed: 0 },
        batch: config.learn.batch,
        rate: Rate::constant(config.resolve(&Parts::default()).expect("it is valid").rate()),
        options: DescentOptions::default(),
        seed: 0,
    };
    let theta = training.model.init(config.learn.init, &mut stream(0, Purpose::Init, 0, 0));
    let mut state = DeviceState::filled(theta.len(), training.optimizer.starts());
    let mut scratch = training.scratch();
    let mut update = vec![0.0; theta.len()];
    criterion.bench_function("local training", |b| {
        b.iter(|| {
            scratch.samples.clear();
            scratch.samples.extend(0..1000);
            training.run(
                &theta,
                (0, DeviceId(0)),
                Adjustment::default(),
                &mut state,
                &mut scratch,
                &mut update,
            )
        });
    });
    for state in [StateMode::Keep, StateMode::Reset] {
        let mut config = config.clone();
        config.learn.state = state;
        (config.data.devices, config.data.samples_per_device) = (10, 500);
        (config.run.rounds, config.run.evaluate_every) = (u64::from(u32::MAX), u64::from(u32::MAX));
        let mut simulation = Simulation::of(&config, Arc::clone(&dataset)).expect("a valid configuration");
        criterion.bench_function(&format!("bn2-c round of 10 devices, {state:?}"), |b| {
            b.iter(|| simulation.step().expect("a round"));
        });
    }
}

criterion_group!(benches, first_layer, whole_vectors, training);
criterion_main!(benches);
