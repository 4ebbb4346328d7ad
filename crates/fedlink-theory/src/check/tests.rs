use super::*;
use crate::rho::{Choice, Link};

fn quadratic(change: impl FnOnce(&mut QuadraticParameters)) -> Quadratic {
    let mut parameters = QuadraticParameters {
        devices: 10,
        dim: 30,
        mu: 1.0,
        l: 3.0,
        spread: 0.5,
        noise: 4.0,
        distance0: 60.0,
        seed: 0,
    };
    change(&mut parameters);
    Quadratic::new(parameters).unwrap()
}

fn request() -> CheckRequest {
    CheckRequest {
        link: LinkParameters { symbols: 1500, ..Default::default() },
        schedule: Schedule::Uniform,
        k: 3,
        tau: 3,
        rate: "0.2*50/(t+50)".parse().unwrap(),
        rounds: 150,
        seed: 0,
        seeds: 60,
    }
}

#[test]
fn the_measured_mean_never_exceeds_the_bound_on_quadratics() {
    type Change = fn(&mut QuadraticParameters, &mut CheckRequest);
    let cases: [Change; 6] = [
        |_, _| {},
        |_, r| r.schedule = Schedule::BestChannel,
        |_, r| (r.k, r.tau) = (1, 5),
        // All devices, one step, the largest allowed rate.
        |_, r| (r.k, r.tau, r.rate) = (10, 1, Rate::FromLimit { c: 100.0 }),
        // Equal devices without noise: only the contraction remains.
        |p, _| (p.spread, p.noise) = (0.0, 0.0),
        // A start at the optimum: only the noise remains.
        |p, _| p.distance0 = 0.0,
    ];
    for (i, case) in cases.iter().enumerate() {
        let mut request = request();
        let quadratic = quadratic(|p| case(p, &mut request));
        let check = check(&quadratic, &request).unwrap();
        assert_eq!(check.exceeded, None, "case {i}");
        assert!(check.breaks.is_none());
        // The interval is included, so that chance does not decide the comparison.
        let clear =
            (1..=150).filter(|&t| check.measured[t].mean + check.measured[t].half_width <= check.bound[t]);
        assert_eq!(clear.count(), 150, "case {i}");
        // The chain of the proof: measured distance, recursion with measured terms, bound.
        let (last, middle) = (&check.measured[150], check.measured_parts.sum());
        assert!(last.mean + last.half_width <= middle * (1.0 + 1e-9), "case {i}: {last:?} > {middle}");
        assert!(middle <= check.bound[150] * (1.0 + 1e-9), "case {i}: {middle} > {}", check.bound[150]);
        assert!((check.promised_parts.sum() / check.bound[150] - 1.0).abs() < 1e-9, "case {i}");
        // Each lemma separately: no quantity exceeds its term.
        let (promised, measured) = (check.promised_terms.array(), check.measured_terms.array());
        for (term, (promised, measured)) in promised.iter().zip(measured).enumerate() {
            assert!(
                measured <= promised * (1.0 + 1e-9) + 1e-9,
                "case {i}, term {term}: {measured} > {promised}"
            );
        }
    }
}

#[test]
fn a_gradient_bound_that_is_too_small_is_detected() {
    // The same comparison with half of G and no Γ must fail, which shows that the check can fail.
    let mut request = request();
    (request.k, request.tau, request.seeds) = (1, 1, 100);
    let quadratic = quadratic(|p| (p.distance0, p.l, p.spread) = (0.0, 1.0, 0.0));
    let check = check(&quadratic, &request).unwrap();
    let too_small = Bound::new(BoundParameters { g: 0.5 * check.parameters.g, ..check.parameters }).unwrap();
    let rates = too_small.rates(&request.rate, 150).unwrap();
    let curve = too_small.curve(&rates, &vec![check.mean_rho; 150]).unwrap();
    assert!((1..=150).any(|t| check.measured[t].mean - check.measured[t].half_width > curve.distances[t]));
}

#[test]
fn rho_of_a_run_is_that_of_the_link_under_the_same_seed() {
    let (quadratic, mut request) = (quadratic(|_| {}), request());
    request.link = LinkParameters { devices: 10, dim: 30, symbols: 1500, ..Default::default() };
    for (schedule, choice) in [(Schedule::Uniform, Choice::Uniform), (Schedule::BestChannel, Choice::Best)] {
        request.schedule = schedule;
        let link = Link::new(LinkParameters { choice, ..request.link }).unwrap();
        let parameters = BoundParameters {
            devices: 10,
            k: 3,
            tau: 3,
            mu: 1.0,
            l: 3.0,
            g: 0.0,
            gamma: 0.0,
            distance0: 60.0,
        };
        let run = run(&quadratic, &request, (&Bound::new(parameters).unwrap(), &[0.1; 40]), 7);
        assert_eq!(run.rhos, link.rhos(3, 40, 7).unwrap());
    }
}

#[test]
fn without_noise_and_with_all_devices_a_round_is_gradient_descent() {
    // One device, ρ = 1, τ = 1: x ← x − η·s∘(x − c), by hand.
    let quadratic = quadratic(|p| (p.devices, p.noise) = (1, 0.0));
    let mut request = request();
    (request.k, request.tau, request.rounds, request.seeds) = (1, 1, 20, 2);
    (request.rate, request.link.symbols) = (Rate::Constant(0.1), 1_000_000);
    let check = check(&quadratic, &request).unwrap();
    assert!((check.mean_rho - 1.0).abs() < 1e-12);
    let spectrum = |i: i32| 3f64.powf(f64::from(i) / 29.0);
    for t in [0usize, 1, 7, 20] {
        let by_hand: f64 = (0..30).map(|i| 60.0 / 30.0 * (1.0 - 0.1 * spectrum(i)).powi(2 * t as i32)).sum();
        assert!((check.measured[t].mean / by_hand - 1.0).abs() < 1e-5, "t = {t}");
    }
    assert!(check.measured_terms.scheduling.abs() < 1e-20);
}

#[test]
fn a_choice_by_norm_is_marked_as_outside_the_theorem() {
    let mut request = request();
    (request.schedule, request.seeds, request.rounds) = (Schedule::BestNorm, 4, 10);
    let check = check(&quadratic(|_| {}), &request).unwrap();
    assert!(check.breaks.unwrap().contains("blind to the updates"));
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let mut request = request();
    (request.seeds, request.rounds) = (20, 10);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| check(&quadratic(|_| {}), &request).unwrap())
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn invalid_parameters_of_a_check_are_named() {
    let message = |change: fn(&mut CheckRequest)| {
        let mut request = request();
        change(&mut request);
        check(&quadratic(|_| {}), &request).unwrap_err().to_string()
    };
    assert!(message(|r| r.k = 11).starts_with("k: is 11"));
    assert!(message(|r| r.seeds = 0).starts_with("seeds: is 0"));
    assert!(message(|r| r.seeds = u64::MAX).starts_with("seeds: is 18446744073709551615"));
    assert!(message(|r| r.rounds = 0).starts_with("rounds: is 0"));
    assert!(message(|r| r.rate = Rate::Constant(0.9)).starts_with("rate: η(0) is 0.9"));
    assert!(message(|r| r.link.noise = 0.0).starts_with("noise: is 0"));
}
