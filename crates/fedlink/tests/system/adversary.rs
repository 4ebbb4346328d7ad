//! Adversarial devices, and the defenses of the server.

use crate::common::{blobs, small_config};
use fedlink::aggregate::Clip;
use fedlink::compress::BudgetRule;
use fedlink::learn::optimizer::StateMode;
use fedlink::record::{Arrival, Outcome, RoundRecord};
use fedlink::spec::Config;
use fedlink::system::server::Cap;
use fedlink::system::simulation::Simulation;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::Arc;

const POLICIES: [&str; 4] = ["bc", "bn2", "bc-bn2", "bn2-c"];
const SCHEMES: [&str; 8] = ["d-sgd", "random-sparse", "top-k", "stc", "rand-k", "ternary", "sign", "qsgd"];
const ATTACKS: [&str; 7] =
    ["inflated-norm", "garbage", "stolen", "replay", "not-a-number", "huge", "sign-flip"];

fn run(config: &Config) -> (Outcome, Vec<RoundRecord>, Vec<f32>) {
    let mut records = Vec::new();
    let mut simulation = Simulation::of(config, blobs(20, 600, 90)).unwrap();
    let mut observer = |record: &RoundRecord| {
        records.push(record.clone());
        ControlFlow::Continue(())
    };
    let outcome = simulation.run(&mut observer).unwrap();
    (outcome, records, simulation.theta().to_vec())
}

fn arrivals(records: &[RoundRecord], wanted: Arrival) -> usize {
    records.iter().flat_map(|record| &record.transmissions).filter(|sent| sent.arrival == wanted).count()
}

/// Three of twelve devices are adversarial.
fn attacked(kind: &str) -> Config {
    let mut config = small_config();
    (config.adversary.share, config.adversary.kind, config.radio.wire) = (0.25, kind.into(), true);
    config.radio.symbols = 300;
    config
}

#[test]
fn an_audit_of_honest_devices_changes_nothing() {
    for policy in POLICIES {
        for scheme in SCHEMES {
            for (feedback, budget, k) in [
                ("off", BudgetRule::Formula, 1),
                ("always", BudgetRule::Formula, 3),
                ("off", BudgetRule::Wire, 1),
                ("scheduled", BudgetRule::Wire, 5),
            ] {
                let mut config = small_config();
                (config.schedule.policy, config.compress.scheme) = (policy.into(), scheme.into());
                (config.compress.feedback, config.compress.budget) = (feedback.into(), budget);
                (config.schedule.k, config.radio.symbols) = (k, 300);
                let plain = run(&config).0;
                (config.defense.audit, config.defense.strikes) = (true, 1);
                let audited = run(&config).0;
                assert_eq!(audited, plain, "{policy:?} {scheme:?} {budget:?} K = {k}");
                assert_eq!((audited.flagged_transmissions, audited.excluded.len()), (0, 0));
            }
        }
    }
}

#[test]
fn an_inflated_norm_is_always_scheduled_by_norm_policies_and_never_helps_with_others() {
    for policy in POLICIES {
        let mut config = attacked("inflated-norm");
        config.schedule.policy = policy.into();
        config.set("schedule.bc-bn2.kc", 12).unwrap();
        let outcome = run(&config).0;
        let always = outcome.scheduled.iter().filter(|&&times| times == 12).count();
        assert_eq!(always, if policy == "bc" { 0 } else { 3 }, "{policy:?}: {:?}", outcome.scheduled);
        if policy == "bc" {
            let mut honest = config.clone();
            honest.adversary.share = 0.0;
            assert_eq!(run(&honest).0.digest, outcome.digest, "its upload is honest, without a report");
        }
    }
}

#[test]
fn the_audit_excludes_devices_that_inflate_reports_it_can_check() {
    // Alone on the band, BN2-C: any false report is a contradiction. BN2: a report beyond √2·q times the
    // value.
    for (policy, amount, caught) in [
        ("bn2-c", 2.0, true),
        ("bn2-c", 1000.0, true),
        ("bn2", 2.0, false),
        ("bn2", 1000.0, true),
        ("bc-bn2", 1000.0, true),
    ] {
        let mut config = attacked("inflated-norm");
        (config.schedule.policy, config.schedule.k) = (policy.into(), 1);
        config.set("schedule.bc-bn2.kc", 12).unwrap();
        config.set("adversary.inflated-norm.amount", amount).unwrap();
        config.set("adversary.inflated-norm.upload", "sign-flip").unwrap();
        (config.defense.audit, config.defense.strikes, config.run.rounds) = (true, 2, 20);
        let (outcome, records, _) = run(&config);
        let flagged = arrivals(&records, Arrival::Flagged);
        assert_eq!(outcome.flagged_transmissions, flagged as u64);
        if caught {
            assert_eq!((flagged, outcome.excluded.len()), (6, 3), "{policy:?} ×{amount}");
            // Twice each, then never again.
            for device in &outcome.excluded {
                assert_eq!(outcome.scheduled[device.index()], 2);
            }
        } else {
            assert_eq!((flagged, outcome.excluded.len()), (0, 0), "{policy:?} ×{amount}");
        }
    }
}

#[test]
fn a_round_continues_with_fewer_than_k_devices_or_none_after_exclusions() {
    let mut config = attacked("not-a-number");
    (config.adversary.share, config.schedule.policy, config.schedule.k) = (0.75, "bn2".into(), 6);
    config.learn.state = StateMode::Reset;
    (config.defense.audit, config.defense.strikes, config.run.rounds) = (true, 1, 12);
    let (outcome, records, _) = run(&config);
    assert_eq!(outcome.excluded.len(), 9);
    let last = records.last().unwrap();
    assert_eq!(last.transmissions.len(), 3, "three of twelve are honest");
    assert!(last.transmissions.iter().all(|sent| sent.arrival == Arrival::Used));
    config.adversary.share = 1.0;
    let (outcome, records, theta) = run(&config);
    let last = records.last().unwrap();
    assert_eq!((outcome.excluded.len(), last.transmissions.len(), last.training.devices), (12, 0, 0));
    let start = Simulation::of(&config, blobs(20, 600, 90)).unwrap().theta().to_vec();
    assert_eq!(theta, start, "nothing that could be read ever arrived");
    assert!(outcome.final_accuracy.is_some());
}

#[test]
fn unreadable_payloads_count_as_silence() {
    for kind in ["garbage", "stolen", "replay", "not-a-number"] {
        // Signs have no redundancy: any bytes of their length are signs and a magnitude. A payload of
        // QSGD does not depend on the budget: an old one is readable if it fits.
        let readable =
            |scheme: &str| scheme == "sign" && kind != "not-a-number" || scheme == "qsgd" && kind == "replay";
        for scheme in SCHEMES.into_iter().filter(|scheme| !readable(scheme)) {
            let mut config = attacked(kind);
            // By norm, so that budgets differ: with equal budgets, a stolen payload is as valid as the
            // original.
            (config.compress.scheme, config.schedule.policy) = (scheme.into(), "bn2".into());
            // Random values may have any size: the clip keeps readable ones from ending the run.
            config.defense.clip = Clip::Norm(1.0);
            let (outcome, records, theta) = run(&config);
            let lost = arrivals(&records, Arrival::Undecodable);
            assert!(lost > 0, "{kind:?} {scheme:?}");
            assert_eq!(outcome.undecodable_transmissions, lost as u64);
            assert!(theta.iter().all(|weight| weight.is_finite()));
            assert_eq!(outcome.silent_transmissions, arrivals(&records, Arrival::Silent) as u64);
        }
    }
}

#[test]
fn a_stolen_payload_is_a_second_copy_with_equal_budgets() {
    let mut config = attacked("stolen");
    config.schedule.policy = "bc".into();
    let (outcome, records, _) = run(&config);
    assert_eq!(outcome.undecodable_transmissions, 0);
    let twice = |record: &RoundRecord| {
        let bits: Vec<_> = record.transmissions.iter().map(|sent| sent.wire_bits).collect();
        bits[0] == bits[1] || bits[1] == bits[2]
    };
    assert!(records.iter().any(twice));
}

#[test]
fn values_that_are_not_numbers_are_refused_without_bytes_too() {
    let digest = |wire| {
        let mut config = attacked("not-a-number");
        (config.radio.wire, config.schedule.policy) = (wire, "bc".into());
        let outcome = run(&config).0;
        assert!(outcome.undecodable_transmissions > 0);
        outcome.digest
    };
    assert_eq!(digest(false), digest(true));
}

#[test]
fn signs_of_a_magnitude_that_vanishes_are_refused_with_bytes_and_without() {
    let digest = |wire| {
        let mut config = attacked("huge");
        (config.radio.wire, config.schedule.policy) = (wire, "bc".into());
        // The smallest positive number: the product with any magnitude below one half is zero.
        config.set("adversary.huge.amount", f64::from(f32::from_bits(1))).unwrap();
        config.compress.scheme = "stc".into();
        let outcome = run(&config).0;
        assert!(outcome.undecodable_transmissions > 0);
        outcome.digest
    };
    assert_eq!(digest(false), digest(true));
}

#[test]
fn every_attack_gives_the_same_bits_for_any_number_of_threads_and_after_a_checkpoint() {
    let dataset = blobs(20, 600, 90);
    for kind in ATTACKS {
        for (aggregate, clip) in [("mean", Clip::Median), ("trimmed-mean", Clip::Norm(0.5))] {
            let mut config = attacked(kind);
            config.schedule.policy = "bn2".into();
            config.set("adversary.inflated-norm.report", "constant").unwrap();
            config.set("adversary.inflated-norm.amount", 3.0).unwrap();
            config.set("adversary.huge.amount", 3.0).unwrap();
            (config.learn.aggregate, config.defense.clip) = (aggregate.into(), clip);
            config.set("learn.trimmed-mean.trim", 0.34).unwrap();
            (config.defense.audit, config.defense.participation_cap) = (true, true);
            let on = |threads: usize, work: &(dyn Fn() -> Outcome + Sync)| {
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
            };
            let whole = || Simulation::of(&config, Arc::clone(&dataset)).unwrap().run(|_| ()).unwrap();
            let one = on(1, &whole);
            assert_eq!(on(3, &whole), one, "{kind:?}");
            let resumed = || {
                let mut bytes = Vec::new();
                let mut first = Simulation::of(&config, Arc::clone(&dataset)).unwrap();
                (0..6).for_each(|_| drop(first.step().unwrap()));
                first.checkpoint(&mut bytes).unwrap();
                let mut then = Simulation::of(&config, Arc::clone(&dataset)).unwrap();
                then.restore(Cursor::new(bytes)).unwrap();
                then.run(|_| ()).unwrap()
            };
            assert_eq!(on(2, &resumed), one, "{kind:?}");
        }
    }
}

#[test]
fn the_cap_holds_in_every_round_and_power_is_within_its_average_at_the_end() {
    for (k, slack, rounds) in [(1, 1, 24), (3, 1, 20), (5, 2, 23), (7, 1, 24), (12, 1, 10)] {
        for policy in POLICIES {
            let mut config = small_config();
            (config.schedule.policy, config.schedule.k) = (policy.into(), k);
            config.set("schedule.bc-bn2.kc", 12).unwrap();
            (config.defense.participation_cap, config.defense.cap_slack) = (true, slack);
            config.run.rounds = rounds;
            let (outcome, records, _) = run(&config);
            let cap = Cap { devices: 12, k, rounds, slack };
            let mut scheduled = [0u64; 12];
            for record in &records {
                assert!(record.transmissions.len() <= k as usize);
                record.transmissions.iter().for_each(|sent| scheduled[sent.device.index()] += 1);
                let max = *scheduled.iter().max().unwrap();
                assert!(max <= cap.max_scheduled(record.round), "{policy:?} K = {k}, round {}", record.round);
                assert!(max <= k * record.round / 12 + slack);
                let before_the_end = record.round + 12 / k <= rounds;
                assert!(!(before_the_end && record.transmissions.is_empty()), "somebody may always send");
            }
            assert!(outcome.worst_average_power.0 <= 1.0 + 1e-12, "{}", outcome.worst_average_power.0);
        }
    }
}

#[test]
fn a_clipped_attacker_moves_the_model_by_no_more_than_the_norm() {
    let mut config = attacked("huge");
    (config.adversary.share, config.schedule.k) = (1.0, 1);
    config.set("adversary.huge.amount", 1e6).unwrap();
    (config.defense.clip, config.run.rounds) = (Clip::Norm(0.25), 1);
    let start = Simulation::of(&config, blobs(20, 600, 90)).unwrap().theta().to_vec();
    let (_, records, theta) = run(&config);
    assert!(records[0].transmissions[0].q > 0);
    let moved = theta.iter().zip(&start).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
    assert!((moved - 0.25).abs() < 1e-4, "{moved}");
}

#[test]
fn a_median_over_whole_updates_resists_a_minority_that_moves_a_mean() {
    let accuracy = |aggregate: &str, share| {
        let mut config = attacked("huge");
        config.adversary.share = share;
        config.set("adversary.huge.amount", 1e4).unwrap();
        (config.compress.scheme, config.schedule.policy) = ("top-k".into(), "bc".into());
        // Enough symbols to send every entry.
        (config.radio.symbols, config.schedule.k, config.run.rounds) = (60_000, 12, 30);
        config.learn.aggregate = aggregate.into();
        run(&config).0.final_accuracy.unwrap()
    };
    let clean = accuracy("mean", 0.0);
    let attacked = accuracy("mean", 0.25);
    let median = accuracy("median", 0.25);
    let trimmed = accuracy("trimmed-mean", 0.25);
    assert!(clean > 0.9 && median > clean - 0.05, "{clean} clean, {median} by median");
    assert!(attacked < clean - 0.1, "{attacked} by mean under attack, {clean} clean");
    assert!(trimmed < clean - 0.1, "a tenth trimmed does not cover a quarter: {trimmed}");
}
