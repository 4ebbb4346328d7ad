use super::*;
use fedlink::parts::Parts;
use fedlink::spec::Config;

fn small(change: impl FnOnce(&mut Config)) -> Spec {
    let mut config = Config::default();
    (config.data.devices, config.data.samples_per_device) = (5, 40);
    config.learn.batch = BatchSize::Count(8);
    config.data.partition = "classes".into();
    change(&mut config);
    config.resolve(&Parts::default()).unwrap()
}

fn problem(spec: &Spec, options: MeasureOptions) -> SoftmaxProblem {
    let dataset = fedlink::data::load(&spec.data.dataset, &[]).unwrap();
    SoftmaxProblem::new(spec, &dataset, options).unwrap()
}

const POOLED: MeasureOptions = MeasureOptions { lambda: 0.1, pool: 4, path_rounds: 5 };

#[test]
fn the_gradient_vanishes_at_the_minima_and_gamma_is_their_gap() {
    let problem = problem(&small(|_| {}), POOLED);
    let measured = problem.measured();
    assert_eq!((measured.devices, measured.dim), (5, 500));
    let mut gradient = vec![0.0; 500];
    let optimum = problem.mean(&problem.optimum, &mut gradient);
    // Plain gradient descent, far slower, finds no value lower by more than the gap.
    let mut theta = vec![0.0; 500];
    for _ in 0..3000 {
        problem.mean(&theta, &mut gradient);
        theta.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= g / measured.l);
    }
    let plain = problem.mean(&theta, &mut gradient);
    assert!((optimum - measured.optimum).abs() < 1e-12);
    assert!(plain >= optimum - measured.gap && plain - optimum < 1e-6, "{plain} {optimum}");
    assert!(measured.gap <= PRECISION * 10f64.ln());
    assert!((measured.gamma - (measured.optimum - measured.mean_device_optimum)).abs() < 1e-15);
    assert!(measured.gamma > 0.05, "two classes on each device: {}", measured.gamma);
}

#[test]
fn even_data_have_a_smaller_gamma_and_equal_data_none() {
    let uneven = problem(&small(|_| {}), POOLED).measured().gamma;
    let even = problem(&small(|c| c.data.partition = "iid".into()), POOLED).measured().gamma;
    let alone = problem(&small(|c| c.data.devices = 1), POOLED).measured().clone();
    assert!(even < 0.5 * uneven, "{even} {uneven}");
    assert!(alone.gamma <= 2.0 * alone.gap);
}

#[test]
fn the_loss_is_mu_strongly_convex_and_l_smooth_between_any_two_points() {
    let problem = problem(&small(|_| {}), POOLED);
    let (mu, l) = (problem.mu(), problem.l());
    let mut rng = fedlink::base::rng::stream(5, fedlink::base::rng::Purpose::Test, 0, 0);
    let mut point = || -> Vec<f64> { (0..500).map(|_| 0.3 * rng.normal()).collect() };
    for device in 0..5 {
        let (a, b) = (point(), point());
        let (mut at_a, mut at_b) = (vec![0.0; 500], vec![0.0; 500]);
        problem.full(device, &a, &mut at_a);
        problem.full(device, &b, &mut at_b);
        let apart: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
        let turned: Vec<f64> = at_a.iter().zip(&at_b).map(|(x, y)| x - y).collect();
        let (along, square) = (dot(&turned, &apart), dot(&apart, &apart));
        assert!(along >= mu * square && along <= l * square, "{along} in {}..{}", mu * square, l * square);
    }
}

#[test]
fn the_mean_square_of_a_mini_batch_gradient_equals_that_of_draws() {
    let problem = problem(&small(|_| {}), POOLED);
    let theta = vec![0.05; 500];
    let mut gradient = vec![0.0; 500];
    let exact = problem.inspect(2, &theta, &mut gradient).mean_square;
    let mut rng = fedlink::base::rng::stream(6, fedlink::base::rng::Purpose::Test, 0, 0);
    let draws: Vec<f64> = (0..20_000)
        .map(|_| {
            problem.gradient(2, &theta, &mut rng, &mut gradient);
            dot(&gradient, &gradient)
        })
        .collect();
    let mean = draws.iter().sum::<f64>() / draws.len() as f64;
    let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
    let slack = 4.0 * (variance / draws.len() as f64).sqrt();
    assert!((mean - exact).abs() < slack, "{mean} is not within {slack} of {exact}");
}

#[test]
fn invalid_measurements_are_named() {
    let config = small(|_| {});
    let dataset = fedlink::data::load(&config.data.dataset, &[]).unwrap();
    let message = |options: MeasureOptions, spec: &Spec| {
        SoftmaxProblem::new(spec, &dataset, options).err().expect("refused").to_string()
    };
    assert!(message(MeasureOptions { lambda: 0.0, ..POOLED }, &config).starts_with("lambda: is 0"));
    assert!(message(MeasureOptions { pool: 5, ..POOLED }, &config).starts_with("pool: is 5"));
    assert!(message(MeasureOptions { path_rounds: 0, ..POOLED }, &config).starts_with("path_rounds: is 0"));
    let many = small(|c| c.data.devices = 1_000_000);
    assert!(message(POOLED, &many).starts_with("data.devices: makes 40000000 samples"));
}
