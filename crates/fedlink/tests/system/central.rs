//! Central training as a special case: one device with all data, and a link that carries everything.

use fedlink::spec::Config;
use fedlink::system::simulation::Simulation;

/// Accuracy on `digits` after five epochs of Adam at 10⁻³ with batches of 64.
fn central_accuracy(model: &str) -> f64 {
    let mut config = Config::default();
    config.data.devices = 1;
    config.data.samples_per_device = 60_000;
    config.learn.model = model.into();
    config.learn.local_steps = 938;
    config.radio.symbols = 1_000_000_000;
    config.compress.scheme = "random-sparse".into();
    config.run.rounds = 5;
    let dataset = fedlink::data::load(&config.data.dataset, &[]).unwrap();
    let mut simulation = Simulation::of(&config, dataset).unwrap();
    let dim = simulation.theta().len();
    let outcome = simulation.run(|_| ()).unwrap();
    assert_eq!(outcome.mean_q, dim as f64, "every entry gets through");
    outcome.final_accuracy.unwrap()
}

#[test]
fn digits_are_as_hard_as_documented() {
    let (softmax, mlp) = (central_accuracy("softmax"), central_accuracy("mlp"));
    assert!((0.85..0.94).contains(&softmax), "softmax regression: {softmax}");
    assert!((0.96..0.99).contains(&mlp), "MLP: {mlp}");
}
