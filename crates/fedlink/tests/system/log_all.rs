//! The log of rounds with the devices that were not scheduled.

use crate::common::{blobs, small_config};
use fedlink::prelude::*;
use fedlink::record::{Arrival, Quantity};

#[test]
fn the_log_has_every_device_once_with_its_link_and_its_report() {
    for policy in ["bn2", "bc-bn2", "bc", "random"] {
        let mut config = small_config();
        config.schedule.policy = policy.into();
        config.learn.optimizer = "sgd".into();
        let mut plain = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        let mut logged = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        logged.log_all_devices(true);
        for t in 0..config.run.rounds {
            let links = logged.server.links(t);
            let theta = logged.theta().to_vec();
            let (without, with) = (plain.step().unwrap(), logged.step().unwrap());
            assert!(without.others.is_empty());
            assert_eq!(without.transmissions, with.transmissions, "{policy}");
            let mut devices: Vec<u32> =
                with.transmissions.iter().chain(&with.others).map(|line| line.device.0).collect();
            assert!(with.others.is_sorted_by_key(|line| line.device));
            devices.sort_unstable();
            assert_eq!(devices, (0..12).collect::<Vec<u32>>());
            for line in &with.others {
                assert_eq!((line.round, line.arrival), (with.round, Arrival::NotScheduled));
                assert_eq!(line.gain, links.known.gain(line.device));
                assert_eq!(line.capacity, links.known.capacity(line.device));
                assert_eq!((line.bits.0, line.symbols.0, line.power.0, line.q), (0.0, 0.0, 0.0, 0));
                // The norm from training the device again; 0 for devices without a report.
                let (update, _) = logged.fleet.update(&theta, t, line.device).unwrap();
                let norm = update.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
                match policy {
                    "bn2" => assert!((f64::from(line.report) / norm - 1.0).abs() < 1e-6),
                    "bc" | "random" => assert_eq!(line.report, 0.0),
                    _ => assert!(line.report == 0.0 || (f64::from(line.report) / norm - 1.0).abs() < 1e-6),
                }
            }
        }
        assert_eq!(plain.outcome(), logged.outcome(), "{policy}: it changes nothing else");
    }
}

/// A run of the policy in which every device is logged.
fn logged(policy: &str, settings: &[(&str, toml::Value)]) -> Simulation {
    let mut config = small_config();
    config.schedule.policy = policy.into();
    config.learn.optimizer = "sgd".into();
    if !settings.is_empty() {
        // The radio has units then.
        config.radio.symbols = Config::default().radio.symbols;
    }
    for (key, value) in settings {
        config.set(key, value.clone()).unwrap();
    }
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    simulation.log_all_devices(true);
    simulation
}

#[test]
fn the_log_has_the_probabilities_by_which_updates_count() {
    // π/p: with equal weights the share of a drawn device is 1/(M·p).
    for policy in ["optimal", "lyapunov"] {
        let mut simulation = logged(policy, &[]);
        for _ in 0..4 {
            let record = simulation.step().unwrap();
            let p = |device: usize| record.details.decision(device).of(Quantity::Probability).unwrap();
            let k = simulation.spec().schedule.k as f64;
            let sum: f64 = (0..12).map(p).sum();
            assert!((sum - k).abs() < 1e-9, "{policy}: {sum}");
            for sent in &record.transmissions {
                assert!(
                    (sent.weight.unwrap() * 12.0 * p(sent.device.index()) - 1.0).abs() < 1e-9,
                    "{policy}"
                );
            }
        }
    }
}

#[test]
fn the_log_has_queues_as_they_were_when_the_policy_decided() {
    let mut simulation = logged("lyapunov", &[]);
    let average = simulation.server.radio().average_power().0;
    let mut queues = [0.0; 12];
    for _ in 0..6 {
        let record = simulation.step().unwrap();
        for (device, queue) in queues.iter_mut().enumerate() {
            assert_eq!(record.details.decision(device).of(Quantity::Queue), Some(*queue));
            let spent: f64 =
                record.transmissions.iter().filter(|s| s.device.index() == device).map(|s| s.power.0).sum();
            *queue = (*queue + spent - average).max(0.0);
        }
        // V·(u/p)² − Q·P is λ for all p < 1; here over V, with Q over P.
        let threshold = record.details.decision(0).of(Quantity::Threshold);
        assert!(threshold.is_some_and(f64::is_finite));
        assert!((0..12).all(|m| record.details.decision(m).of(Quantity::Threshold) == threshold));
    }
}

#[test]
fn draws_have_their_order_and_ranks_their_scores() {
    let mut simulation = logged("importance", &[]);
    let record = simulation.step().unwrap();
    let mut order: Vec<f64> = record
        .transmissions
        .iter()
        .map(|sent| record.details.decision(sent.device.index()).of(Quantity::Order).unwrap())
        .collect();
    order.sort_by(f64::total_cmp);
    assert_eq!(order, (1..=order.len()).map(|i| i as f64).collect::<Vec<f64>>());
    assert!(
        record
            .others
            .iter()
            .all(|o| { record.details.decision(o.device.index()).of(Quantity::Order).is_none() })
    );
    for policy in ["age", "proportional-fair", "norm-channel", "gradient-channel", "data-aware"] {
        let mut simulation = logged(policy, &[]);
        for _ in 0..3 {
            let record = simulation.step().unwrap();
            let score =
                |device: DeviceId| record.details.decision(device.index()).of(Quantity::Score).unwrap();
            let least = record.transmissions.iter().map(|s| score(s.device)).fold(f64::INFINITY, f64::min);
            assert!(record.others.iter().all(|o| score(o.device) <= least), "{policy}");
        }
    }
}

#[test]
fn amplitudes_and_block_gains_are_those_of_the_channel_and_nothing_is_kept_without_a_log() {
    let settings = [
        ("radio.access", "ofdma".into()),
        ("radio.bandwidth_hz", 3.6e6.into()),
        ("radio.uplink_s", 0.01.into()),
        ("radio.snr_db", 10.0.into()),
        ("radio.profile", "tdl-c300".into()),
        ("radio.antennas", 2.into()),
    ];
    let mut simulation = logged("bc", &settings);
    for t in 0..2 {
        let links = simulation.server.links(t);
        let record = simulation.step().unwrap();
        for device in DeviceId::all(12) {
            let (blocks, h) =
                (record.details.blocks_of(device.index()), record.details.amplitudes_of(device.index()));
            assert!(blocks.len() > 1 && h.len() == 2 * blocks.len());
            let n = blocks.len();
            for (k, gain) in blocks.iter().enumerate() {
                let power = |a: usize| h[a * n + k][0].powi(2) + h[a * n + k][1].powi(2);
                assert!((power(0) + power(1) - gain).abs() <= 1e-9 * gain.max(1e-9));
            }
            // The gain of the band in use is the mean over its blocks.
            let mean = blocks.iter().sum::<f64>() / n as f64;
            assert!((mean / links.gains[device.index()] - 1.0).abs() < 1e-9);
        }
    }
    let mut plain = logged("bc", &settings);
    plain.log_all_devices(false);
    assert_eq!(plain.step().unwrap().details, fedlink::record::Details::default());
}

#[test]
fn a_policy_that_observes_all_devices_has_their_reports_without_a_log() {
    use fedlink::base::state::Persist;
    use fedlink::schedule::{Ask, Reports, Schedule, View};
    use std::sync::{Arc, Mutex};
    struct Curious(Arc<Mutex<Vec<usize>>>);
    impl Persist for Curious {}
    impl Policy for Curious {
        fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
            view.everyone()
        }
        fn asks(&self) -> &[Ask] {
            &[Ask::Norm]
        }
        fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
            Schedule::equal(reports.devices.iter().copied().take(view.k))
        }
        fn observes_all(&self) -> bool {
            true
        }
        fn observe(&mut self, record: &RoundRecord) {
            assert!(record.others.iter().all(|other| other.report > 0.0));
            self.0.lock().unwrap().push(record.others.len());
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let parts = Parts::default().policy("curious", "a test", move |_, _| Ok(Box::new(Curious(kept.clone()))));
    let mut config = small_config();
    config.schedule.policy = "curious".into();
    let others = 12 - config.schedule.k as usize;
    let spec = config.resolve_on(blobs(20, 600, 90), &parts).unwrap();
    let mut simulation = Simulation::new(spec).unwrap();
    (0..3).for_each(|_| drop(simulation.step().unwrap()));
    assert_eq!(*seen.lock().unwrap(), [others; 3]);
}
