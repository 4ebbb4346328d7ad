//! Hostile devices, and a server that knows how to deal with them.

use crate::common::{blobs, small_config};
use fedlink::adversary::{AttackKind, HostileReport, HostileUpload};
use fedlink::compress::{Budget, Feedback, SchemeKind};
use fedlink::config::Config;
use fedlink::defence::{Cap, Clip, Combine};
use fedlink::learn::optimizer::StateMode;
use fedlink::record::{Arrival, Outcome, RoundRecord};
use fedlink::schedule::policy::PolicyKind;
use fedlink::simulation::Simulation;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::Arc;

const POLICIES: [PolicyKind; 4] = [PolicyKind::Bc, PolicyKind::Bn2, PolicyKind::BcBn2, PolicyKind::Bn2C];
const SCHEMES: [SchemeKind; 4] =
    [SchemeKind::DSgd, SchemeKind::RandomSparse, SchemeKind::TopK, SchemeKind::Stc];
const ATTACKS: [AttackKind; 7] = [
    AttackKind::InflatedNorm,
    AttackKind::Garbage,
    AttackKind::Stolen,
    AttackKind::Replay,
    AttackKind::NotANumber,
    AttackKind::Huge,
    AttackKind::SignFlip,
];

fn run(config: &Config) -> (Outcome, Vec<RoundRecord>, Vec<f32>) {
    let mut records = Vec::new();
    let mut simulation = Simulation::new(config, blobs(20, 600, 90)).unwrap();
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

/// Three of twelve devices are hostile.
fn attacked(kind: AttackKind) -> Config {
    let mut config = small_config();
    (config.adversary.share, config.adversary.kind, config.radio.wire) = (0.25, kind, true);
    config.radio.symbols = 300;
    config
}

#[test]
fn an_audit_of_honest_devices_changes_nothing() {
    for policy in POLICIES {
        for scheme in SCHEMES {
            for (feedback, budget, k) in [
                (Feedback::Off, Budget::Formula, 1),
                (Feedback::Always, Budget::Formula, 3),
                (Feedback::Off, Budget::Wire, 1),
                (Feedback::Scheduled, Budget::Wire, 5),
            ] {
                let mut config = small_config();
                (config.schedule.policy, config.compress.scheme) = (policy, scheme);
                (config.compress.feedback, config.compress.budget) = (feedback, budget);
                (config.schedule.k, config.radio.symbols) = (k, 300);
                let plain = run(&config).0;
                (config.defence.audit, config.defence.strikes) = (true, 1);
                let audited = run(&config).0;
                assert_eq!(audited, plain, "{policy:?} {scheme:?} {budget:?} K = {k}");
                assert_eq!((audited.flagged_transmissions, audited.excluded.len()), (0, 0));
            }
        }
    }
}

#[test]
fn an_inflated_norm_is_scheduled_always_where_norms_decide_and_never_helps_where_they_do_not() {
    for policy in POLICIES {
        let mut config = attacked(AttackKind::InflatedNorm);
        (config.schedule.policy, config.schedule.kc) = (policy, Some(12));
        let outcome = run(&config).0;
        let always = outcome.scheduled.iter().filter(|&&times| times == 12).count();
        assert_eq!(
            always,
            if policy == PolicyKind::Bc { 0 } else { 3 },
            "{policy:?}: {:?}",
            outcome.scheduled
        );
        if policy == PolicyKind::Bc {
            let mut honest = config.clone();
            honest.adversary.share = 0.0;
            assert_eq!(run(&honest).0.digest, outcome.digest, "it uploads what it should, and nobody asked");
        }
    }
}

#[test]
fn the_audit_excludes_who_inflates_what_it_can_check() {
    // Alone on the band, BN2-C: any lie is a contradiction. BN2: what is beyond √2·q times the value.
    for (policy, amount, caught) in [
        (PolicyKind::Bn2C, 2.0, true),
        (PolicyKind::Bn2C, 1000.0, true),
        (PolicyKind::Bn2, 2.0, false),
        (PolicyKind::Bn2, 1000.0, true),
        (PolicyKind::BcBn2, 1000.0, true),
    ] {
        let mut config = attacked(AttackKind::InflatedNorm);
        (config.schedule.policy, config.schedule.k, config.schedule.kc) = (policy, 1, Some(12));
        (config.adversary.amount, config.adversary.upload) = (amount, HostileUpload::SignFlip);
        (config.defence.audit, config.defence.strikes, config.run.rounds) = (true, 2, 20);
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
fn a_round_goes_on_with_fewer_than_k_or_nobody_when_others_are_excluded() {
    let mut config = attacked(AttackKind::NotANumber);
    (config.adversary.share, config.schedule.policy, config.schedule.k) = (0.75, PolicyKind::Bn2, 6);
    config.learn.state = StateMode::Reset;
    (config.defence.audit, config.defence.strikes, config.run.rounds) = (true, 1, 12);
    let (outcome, records, _) = run(&config);
    assert_eq!(outcome.excluded.len(), 9);
    let last = records.last().unwrap();
    assert_eq!(last.transmissions.len(), 3, "three of twelve are honest");
    assert!(last.transmissions.iter().all(|sent| sent.arrival == Arrival::Used));
    config.adversary.share = 1.0;
    let (outcome, records, theta) = run(&config);
    let last = records.last().unwrap();
    assert_eq!((outcome.excluded.len(), last.transmissions.len(), last.trained), (12, 0, 0));
    let start = Simulation::new(&config, blobs(20, 600, 90)).unwrap().theta().to_vec();
    assert_eq!(theta, start, "nothing that could be read ever arrived");
    assert!(outcome.final_accuracy.is_some());
}

#[test]
fn payloads_that_cannot_be_read_count_as_silence() {
    for kind in [AttackKind::Garbage, AttackKind::Stolen, AttackKind::Replay, AttackKind::NotANumber] {
        for scheme in SCHEMES {
            let mut config = attacked(kind);
            // By norm, so that budgets differ: where all are equal, a stolen payload is as good as its owner's.
            (config.compress.scheme, config.schedule.policy) = (scheme, PolicyKind::Bn2);
            // Random values would be of any size: the clip keeps those that can be read from ending the run.
            config.defence.clip = Clip::Norm(1.0);
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
fn a_stolen_payload_is_a_second_copy_where_all_have_equal_budgets() {
    let mut config = attacked(AttackKind::Stolen);
    config.schedule.policy = PolicyKind::Bc;
    let (outcome, records, _) = run(&config);
    assert_eq!(outcome.undecodable_transmissions, 0);
    let twice = |record: &RoundRecord| {
        let bits: Vec<_> = record.transmissions.iter().map(|sent| sent.wire_bits).collect();
        bits[0] == bits[1] || bits[1] == bits[2]
    };
    assert!(records.iter().any(twice));
}

#[test]
fn values_that_are_no_numbers_are_refused_without_bytes_too() {
    let digest = |wire| {
        let mut config = attacked(AttackKind::NotANumber);
        (config.radio.wire, config.schedule.policy) = (wire, PolicyKind::Bc);
        let outcome = run(&config).0;
        assert!(outcome.undecodable_transmissions > 0);
        outcome.digest
    };
    assert_eq!(digest(false), digest(true));
}

#[test]
fn signs_of_a_magnitude_that_vanishes_are_refused_with_bytes_and_without() {
    let digest = |wire| {
        let mut config = attacked(AttackKind::Huge);
        (config.radio.wire, config.schedule.policy) = (wire, PolicyKind::Bc);
        // The smallest positive number: the product with any magnitude below one half is zero.
        (config.adversary.amount, config.compress.scheme) = (f64::from(f32::from_bits(1)), SchemeKind::Stc);
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
        for (aggregate, clip) in [(Combine::Mean, Clip::Median), (Combine::TrimmedMean, Clip::Norm(0.5))] {
            let mut config = attacked(kind);
            config.schedule.policy = PolicyKind::Bn2;
            (config.adversary.report, config.adversary.amount) = (HostileReport::Constant, 3.0);
            (config.defence.aggregate, config.defence.clip, config.defence.trim) = (aggregate, clip, 0.34);
            (config.defence.audit, config.defence.participation_cap) = (true, true);
            let on = |threads: usize, work: &(dyn Fn() -> Outcome + Sync)| {
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
            };
            let whole = || Simulation::new(&config, Arc::clone(&dataset)).unwrap().run(&mut ()).unwrap();
            let one = on(1, &whole);
            assert_eq!(on(3, &whole), one, "{kind:?}");
            let resumed = || {
                let mut bytes = Vec::new();
                let mut first = Simulation::new(&config, Arc::clone(&dataset)).unwrap();
                (0..6).for_each(|_| drop(first.step().unwrap()));
                first.checkpoint(&mut bytes).unwrap();
                let mut then = Simulation::new(&config, Arc::clone(&dataset)).unwrap();
                then.restore(Cursor::new(bytes)).unwrap();
                then.run(&mut ()).unwrap()
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
            (config.schedule.policy, config.schedule.k, config.schedule.kc) = (policy, k, Some(12));
            (config.defence.participation_cap, config.defence.cap_slack) = (true, slack);
            config.run.rounds = rounds;
            let (outcome, records, _) = run(&config);
            let cap = Cap { devices: 12, k, rounds, slack };
            let mut scheduled = [0u64; 12];
            for record in &records {
                assert!(record.transmissions.len() <= k as usize);
                record.transmissions.iter().for_each(|sent| scheduled[sent.device.index()] += 1);
                let most = *scheduled.iter().max().unwrap();
                assert!(most <= cap.most(record.round), "{policy:?} K = {k}, round {}", record.round);
                assert!(most <= k * record.round / 12 + slack);
                let before_the_end = record.round + 12 / k <= rounds;
                assert!(!(before_the_end && record.transmissions.is_empty()), "somebody may always send");
            }
            assert!(outcome.worst_average_power.0 <= 1.0 + 1e-12, "{}", outcome.worst_average_power.0);
        }
    }
}

#[test]
fn a_clipped_attacker_moves_the_model_by_no_more_than_the_norm() {
    let mut config = attacked(AttackKind::Huge);
    (config.adversary.share, config.adversary.amount, config.schedule.k) = (1.0, 1e6, 1);
    (config.defence.clip, config.run.rounds) = (Clip::Norm(0.25), 1);
    let start = Simulation::new(&config, blobs(20, 600, 90)).unwrap().theta().to_vec();
    let (_, records, theta) = run(&config);
    assert!(records[0].transmissions[0].q > 0);
    let moved = theta.iter().zip(&start).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
    assert!((moved - 0.25).abs() < 1e-4, "{moved}");
}

#[test]
fn a_median_over_whole_updates_shrugs_off_a_minority_that_a_mean_does_not() {
    let accuracy = |aggregate, share| {
        let mut config = attacked(AttackKind::Huge);
        (config.adversary.share, config.adversary.amount) = (share, 1e4);
        (config.compress.scheme, config.schedule.policy) = (SchemeKind::TopK, PolicyKind::Bc);
        // Enough symbols to send every entry.
        (config.radio.symbols, config.schedule.k, config.run.rounds) = (60_000, 12, 30);
        config.schedule.kc = None;
        config.defence.aggregate = aggregate;
        run(&config).0.final_accuracy.unwrap()
    };
    let clean = accuracy(Combine::Mean, 0.0);
    let attacked = accuracy(Combine::Mean, 0.25);
    let median = accuracy(Combine::Median, 0.25);
    let trimmed = accuracy(Combine::TrimmedMean, 0.25);
    assert!(clean > 0.9 && median > clean - 0.05, "{clean} clean, {median} by median");
    assert!(attacked < clean - 0.1, "{attacked} by mean under attack, {clean} clean");
    assert!(trimmed < clean - 0.1, "a tenth trimmed does not cover a quarter: {trimmed}");
}
