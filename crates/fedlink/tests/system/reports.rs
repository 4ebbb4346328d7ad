//! Whole runs in which reports take symbols of the round (`schedule.report_bits`).

use crate::common::{blobs, resumed, run, small_config};
use fedlink::base::units::DeviceId;
use fedlink::prelude::*;
use fedlink::radio::access::slots::SlotKind;
use fedlink::schedule::Ask;
use fedlink::system::server::Call;
use fedlink::system::server::Server;

fn config(policy: &str, bits: u64) -> Config {
    let mut config = small_config();
    config.radio.symbols = 5000;
    config.schedule.policy = policy.into();
    (config.schedule.k, config.schedule.report_bits, config.run.rounds) = (3, bits, 6);
    config
}

#[test]
fn slots_and_report_symbols_add_up_to_the_round() {
    for (policy, asked) in [("bn2", true), ("bc-bn2", true), ("power-of-choice", true), ("bc", false)] {
        for bits in [0, 8, 16, 32] {
            for slots in [SlotKind::Real, SlotKind::Whole] {
                let mut config = config(policy, bits);
                config.radio.slots = slots;
                let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
                for _ in 0..6 {
                    let record = simulation.step().unwrap();
                    let slots: f64 = record.transmissions.iter().map(|sent| sent.symbols.0).sum();
                    assert!((slots + record.report_symbols as f64 - 5000.0).abs() < 1e-6, "{policy} {bits}");
                    assert_eq!(record.report_symbols > 0, asked && bits > 0, "{policy} {bits}");
                    for sent in &record.transmissions {
                        assert_eq!(sent.report_symbols, record.report_symbols);
                    }
                }
                let mean = simulation.outcome().report_symbols_per_round;
                assert_eq!(mean > 0.0, asked && bits > 0);
                assert!((simulation.rows()[0].report_symbols > 0.0) == (asked && bits > 0));
            }
        }
    }
}

#[test]
fn the_symbols_are_those_of_every_candidate_at_its_own_rate() {
    let config = config("bn2", 32);
    let mut server = Server::of(&config.resolve(&Parts::default()).unwrap(), vec![0.0; 50], None).unwrap();
    let links = server.links(0);
    let call = server.begin(0, links.known.clone(), |_| true).unwrap();
    let reporting: Vec<DeviceId> =
        DeviceId::all(links.known.devices()).filter(|&m| links.known.capacity(m) >= 0.1).collect();
    assert_eq!(call.candidates, reporting, "devices below the floor do not report");
    let sum: f64 = reporting.iter().map(|&m| 32.0 / links.known.capacity(m)).sum();
    assert!((call.report_symbols.iter().sum::<f64>() - sum).abs() < 1e-9);
    let granted = server.report(equal_reports(&call)).unwrap();
    let slots: f64 = granted.iter().map(|one| one.grant.symbols.0).sum();
    assert!((slots - (5000.0 - sum.ceil())).abs() < 1e-6, "{slots} {sum}");
}

fn equal_reports(call: &Call) -> Reports {
    assert_eq!(call.asks, [Ask::Norm]);
    Reports::new(call.candidates.clone(), 1, vec![1.25; call.candidates.len()])
}

#[test]
fn with_equal_norms_and_eight_bits_bn2_selects_as_bc() {
    let schedule = |policy: &str, t: u64| {
        let mut config = config(policy, 8);
        config.run.seed = t;
        let mut server =
            Server::of(&config.resolve(&Parts::default()).unwrap(), vec![0.0; 50], None).unwrap();
        let known = server.links(0).known;
        let call = server.begin(0, known, |_| true).unwrap();
        // Norms that differ by less than a step of the code.
        let norms = call.candidates.iter().map(|m| 4.0 + 0.05 * m.index() as f32 / 20.0).collect();
        let values = if policy == "bn2" { norms } else { Vec::new() };
        let reports = Reports::new(call.candidates.clone(), call.asks.len(), values);
        let granted = server.report(reports).unwrap();
        granted.iter().map(|one| one.device).collect::<Vec<DeviceId>>()
    };
    for seed in 0..20 {
        assert_eq!(schedule("bn2", seed), schedule("bc", seed), "seed {seed}");
    }
}

#[test]
fn free_reports_change_nothing_and_whole_numbers_cost_only_symbols() {
    let digest = |config: &Config| run(config, blobs(20, 600, 90), 1).digest;
    let free = config("bn2", 0);
    let mut plain = free.clone();
    plain.schedule.report_bits = Config::default().schedule.report_bits;
    assert_eq!(digest(&free), digest(&plain));
    assert_ne!(digest(&config("bn2", 32)), digest(&free));
    // A policy without reports has no cost.
    assert_eq!(digest(&config("bc", 32)), digest(&config("bc", 0)));
}

#[test]
fn nothing_depends_on_threads_or_on_a_stop() {
    for policy in ["bn2", "bn2-c", "power-of-choice"] {
        let config = config(policy, 8);
        let one = run(&config, blobs(20, 600, 90), 1);
        assert!(one.report_symbols_per_round > 0.0);
        assert_eq!(run(&config, blobs(20, 600, 90), 3), one);
        for stop in [1, 4] {
            assert_eq!(resumed(&config, || blobs(20, 600, 90), &Parts::default(), stop), one);
        }
    }
}

#[test]
fn reports_that_take_the_whole_round_leave_no_symbols_for_uploads() {
    let mut config = config("bn2", 32);
    config.radio.symbols = 20;
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    let record = simulation.step().unwrap();
    assert_eq!(record.report_symbols, 20);
    assert_eq!(record.transmissions.len(), 3);
    assert!(record.transmissions.iter().all(|sent| sent.budget.0 == 0.0 && sent.q == 0));
}

#[test]
fn reports_take_energy_and_no_time_beyond_the_round() {
    let mut config = config("bn2", 32);
    config.radio.symbols = Config::default().radio.symbols;
    config.set("radio.bandwidth_hz", 1e6).unwrap();
    let charged = run(&config, blobs(20, 600, 90), 1);
    config.schedule.report_bits = 0;
    let free = run(&config, blobs(20, 600, 90), 1);
    assert_eq!(charged.seconds(), free.seconds());
    assert!(charged.energy.unwrap().report_j > 0.0 && free.energy.unwrap().report_j == 0.0);
}

#[test]
fn incompatible_settings_are_refused_by_name() {
    let problem = |change: &dyn Fn(&mut Config)| {
        let mut config = config("bn2", 8);
        change(&mut config);
        config.validate().unwrap_err().to_string()
    };
    for (message, start) in [
        (problem(&|c| c.schedule.report_bits = 7), "schedule.report_bits: is 7, but must be 0, 8, 16 or 32"),
        (
            problem(&|c| c.defense.audit = true),
            "defense.audit: compares reports with uploads to the last digit",
        ),
        (problem(&|c| c.radio.report_floor = Some(0.0)), "radio.report_floor: is 0"),
        (
            problem(&|c| {
                c.radio.symbols = Config::default().radio.symbols;
                (c.radio.bandwidth_hz, c.clock.report_bits) = (Some(1e6), 8.0);
            }),
            "clock.report_bits: and schedule.report_bits both charge the reports",
        ),
        (
            problem(&|c| (c.schedule.report_bits, c.radio.report_floor) = (0, Some(0.2))),
            "radio.report_floor: has no effect here: it is for reports that take symbols",
        ),
    ] {
        assert!(message.starts_with(start), "{message}");
    }
}
