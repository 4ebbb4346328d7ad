use super::*;
use proptest::prelude::*;

fn figure_3(k: u64) -> BoundParameters {
    BoundParameters { devices: 100, k, tau: 3, mu: 1.0, l: 5.0, g: 1.0, gamma: 1.0, distance0: 500.0 }
}

fn problems() -> impl Strategy<Value = (BoundParameters, Vec<f64>, Vec<f64>)> {
    let parameters =
        (1..60u64, 0.0..1.0f64, 1..25u64, 0.05..3.0f64, 1.0..9.0f64, 0.0..9.0f64, 0.0..9.0f64, 0.0..900.0f64)
            .prop_map(|(devices, share, tau, mu, ratio, g, gamma, distance0)| BoundParameters {
                devices,
                k: 1 + (share * (devices - 1) as f64) as u64,
                tau,
                mu,
                l: mu * ratio,
                g,
                gamma,
                distance0,
            });
    (parameters, prop::collection::vec((1e-3..=1.0f64, 0.0..=1.0f64), 1..60)).prop_map(
        |(parameters, rounds)| {
            let limit = largest_rate(parameters.mu, parameters.tau);
            let rates = rounds.iter().map(|round| round.0 * limit).collect();
            (parameters, rates, rounds.iter().map(|round| round.1).collect())
        },
    )
}

fn final_loss(parameters: BoundParameters, rates: &[f64], rhos: &[f64]) -> f64 {
    Bound::new(parameters).unwrap().curve(rates, rhos).unwrap().final_loss()
}

#[test]
fn bounds_match_arbitrary_precision_for_given_rho() {
    // reference.py, beside the table, made it with mpmath at 50 digits from the closed form (products of
    // A, not the recursion), with ρ(t) = rho·(1 + (t mod 7)/7) and η(t) = limit·c/(t+c).
    let mut lines = 0;
    for line in include_str!("reference.csv").lines().filter(|l| !l.starts_with('#')).skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let [m, k, tau, mu, l, g, gamma, x0, rho, c, rounds, rest @ ..] = &cells[..] else {
            panic!("{line}")
        };
        let [loss, initial, scheduling, drift, noise, heterogeneity] = *rest else { panic!("{line}") };
        let parameters = BoundParameters {
            devices: *m as u64,
            k: *k as u64,
            tau: *tau as u64,
            mu: *mu,
            l: *l,
            g: *g,
            gamma: *gamma,
            distance0: *x0,
        };
        let bound = Bound::new(parameters).unwrap();
        let rates = bound.rates(&Rate::FromLimit { c: *c }, *rounds as usize).unwrap();
        let rhos: Vec<f64> = (0..rates.len()).map(|t| rho * (1.0 + (t % 7) as f64 / 7.0)).collect();
        let curve = bound.curve(&rates, &rhos).unwrap();
        let Parts { initial: start, terms } = curve.parts;
        let ours =
            [curve.final_loss(), start, terms.scheduling, terms.drift, terms.noise, terms.heterogeneity];
        for (ours, exact) in ours.into_iter().zip([loss, initial, scheduling, drift, noise, heterogeneity]) {
            assert!((ours - exact).abs() <= 1e-9 * exact.abs(), "{line}: {ours} against {exact}");
        }
        lines += 1;
    }
    assert_eq!(lines, 12);
}

proptest! {
    #[test]
    fn the_parts_add_up_to_the_whole_and_their_shares_to_one((parameters, rates, rhos) in problems()) {
        let curve = Bound::new(parameters).unwrap().curve(&rates, &rhos).unwrap();
        let whole = curve.final_loss();
        prop_assert!((curve.parts.sum() - whole).abs() <= 1e-12 * whole);
        prop_assert!(curve.parts.terms.array().iter().all(|&part| part >= 0.0) && curve.parts.initial >= 0.0);
        let shares = curve.parts.shares().sum();
        prop_assert!((shares - f64::from(whole > 0.0)).abs() < 1e-12);
    }

    #[test]
    fn a_round_contracts_and_never_overshoots((parameters, rates, rhos) in problems()) {
        let bound = Bound::new(parameters).unwrap();
        for (&eta, &rho) in rates.iter().zip(&rhos) {
            let a = bound.contraction(rho, eta);
            prop_assert!((-1e-12..=1.0).contains(&a), "A = {}", a);
        }
    }

    #[test]
    fn the_bound_rises_with_gamma_g_and_the_initial_distance((parameters, rates, rhos) in problems()) {
        let base = final_loss(parameters, &rates, &rhos);
        let changes: [fn(&mut BoundParameters); 3] =
            [|p| p.gamma += 0.5, |p| p.g += 0.5, |p| p.distance0 += 10.0];
        for change in changes {
            let mut more = parameters;
            change(&mut more);
            prop_assert!(final_loss(more, &rates, &rhos) >= base * (1.0 - 1e-12));
        }
    }

    #[test]
    fn more_scheduled_devices_lower_the_bound_at_equal_rho((parameters, rates, rhos) in problems()) {
        prop_assume!(parameters.k < parameters.devices);
        let more = BoundParameters { k: parameters.k + 1, ..parameters };
        let (more, fewer) = (final_loss(more, &rates, &rhos), final_loss(parameters, &rates, &rhos));
        prop_assert!(more <= fewer * (1.0 + 1e-12));
    }

    #[test]
    fn the_bound_falls_with_rho_of_a_round_exactly_above_the_fixed_point_of_the_round(
        (parameters, rates, rhos) in problems(), share in 0.0..1.0f64,
    ) {
        let bound = Bound::new(parameters).unwrap();
        let t = (share * rates.len() as f64) as usize;
        let (mut less, mut more) = (rhos.clone(), rhos.clone());
        (less[t], more[t]) = (0.2, 0.8);
        let above = bound.curve(&rates, &less).unwrap().distances[t] - bound.fixed_point(rates[t]);
        let (less, more) = (final_loss(parameters, &rates, &less), final_loss(parameters, &rates, &more));
        let rounding = 1e-12 * less.max(more);
        let falls = if above >= 0.0 { less - more } else { more - less };
        prop_assert!(falls >= -rounding);
    }
}

#[test]
fn without_gradients_and_heterogeneity_only_the_contraction_remains() {
    let parameters = BoundParameters { g: 0.0, gamma: 0.0, ..figure_3(5) };
    let curve = Bound::new(parameters).unwrap().curve(&[0.2; 40], &[0.1; 40]).unwrap();
    // A = 1 − 0.1·0.2·(3 − 0.2·2) = 0.948.
    assert!((curve.final_loss() / (2.5 * 500.0 * 0.948f64.powi(40)) - 1.0).abs() < 1e-12);
    assert_eq!(curve.parts.terms, Terms::default());
}

#[test]
fn a_silent_round_changes_nothing() {
    let curve = Bound::new(figure_3(5)).unwrap().curve(&[0.2; 3], &[0.1, 0.0, 0.1]).unwrap();
    assert_eq!(curve.distances[1], curve.distances[2]);
}

#[test]
fn a_constant_rate_ends_at_its_fixed_point_and_a_decreasing_one_at_the_floor() {
    let parameters = BoundParameters { g: 2.0, gamma: 4.0, ..figure_3(5) };
    let bound = Bound::new(parameters).unwrap();
    let constant = bound.curve(&vec![0.1; 3000], &vec![0.3; 3000]).unwrap();
    assert!((constant.distances[3000] / bound.fixed_point(0.1) - 1.0).abs() < 1e-12);
    // (5/2)·2·2·4/3 by hand; the distance to it falls like η.
    assert!((bound.floor() - 5.0 / 2.0 * 16.0 / 3.0).abs() < 1e-12);
    let rounds = 2_000_000;
    let rates = bound.rates(&Rate::FromLimit { c: 100.0 }, rounds).unwrap();
    let curve = bound.curve(&rates, &vec![1.0; rounds]).unwrap();
    let excess = |t: usize| curve.loss(t) / bound.floor() - 1.0;
    assert!(excess(rounds) < 1e-3 && excess(rounds) > 0.0, "{}", excess(rounds));
    assert!((excess(rounds / 2) / excess(rounds) - 2.0).abs() < 0.01);
    let near = curve.first_near(bound.floor(), 0.1).unwrap();
    assert!(excess(near) <= 0.1 && (0..near).all(|t| excess(t) > 0.1));
    assert_eq!(curve.first_below(curve.loss(near)), Some(near));
}

#[test]
fn there_is_no_floor_with_one_local_step_or_without_heterogeneity() {
    for parameters in
        [BoundParameters { tau: 1, ..figure_3(5) }, BoundParameters { gamma: 0.0, ..figure_3(5) }]
    {
        let bound = Bound::new(parameters).unwrap();
        assert_eq!(bound.floor(), 0.0);
        assert_eq!(bound.curve(&[0.1], &[1.0]).unwrap().first_near(0.0, 0.1), None);
    }
}

#[test]
fn the_largest_parameters_do_not_overflow() {
    let huge = 1e60;
    let parameters = BoundParameters {
        devices: u64::from(u32::MAX),
        k: 1,
        tau: 1_000_000,
        mu: 1e-60,
        l: huge,
        g: huge,
        gamma: huge,
        distance0: huge,
    };
    let bound = Bound::new(parameters).unwrap();
    assert!(bound.curve(&[1.0; 9], &[1.0; 9]).unwrap().final_loss().is_finite());
    assert!(bound.floor().is_finite());
}

#[test]
fn a_single_device_has_no_scheduling_term() {
    let parameters = BoundParameters { devices: 1, ..figure_3(1) };
    assert_eq!(Bound::new(parameters).unwrap().terms(1.0, 0.1).scheduling, 0.0);
}

#[test]
fn impossible_parameters_are_named() {
    let message = |change: fn(&mut BoundParameters)| {
        let mut parameters = figure_3(5);
        change(&mut parameters);
        Bound::new(parameters).unwrap_err().to_string()
    };
    let cases = [
        (message(|p| p.k = 101), "k: is 101, but must be in 1..=100 (K cannot exceed devices)"),
        (message(|p| p.k = 0), "k: is 0"),
        (message(|p| p.devices = 0), "devices: is 0"),
        (message(|p| p.tau = 0), "tau: is 0, but must be in 1..="),
        (message(|p| p.mu = 5.5), "l: is 5, but must be at least mu = 5.5"),
        (message(|p| p.mu = 0.0), "mu: is 0"),
        (message(|p| p.gamma = -0.1), "gamma: is -0.1, but must be at least 0"),
        (message(|p| p.g = -1.0), "g: is -1"),
        (message(|p| p.g = f64::NAN), "g: is NaN"),
        (message(|p| p.l = f64::INFINITY), "l: is inf"),
        (message(|p| p.distance0 = f64::NEG_INFINITY), "distance0: is -inf"),
    ];
    for (message, start) in cases {
        assert!(message.starts_with(start), "{message:?} does not start with {start:?}");
    }
    let bound = Bound::new(figure_3(5)).unwrap();
    assert_eq!(
        bound.curve(&[0.1, 0.1], &[1.0]).unwrap_err(),
        TheoryError::Length { name: "rho", got: 1, needed: 2 }
    );
    assert!(bound.curve(&[0.1], &[1.1]).unwrap_err().to_string().starts_with("rho: is 1.1"));
    assert!(bound.curve(&[0.1, 0.5], &[1.0; 2]).unwrap_err().to_string().starts_with("rate: η(1) is 0.5"));
}
