//! The log of rounds with the devices that were not scheduled.

use crate::common::{blobs, small_config};
use fedlink::prelude::*;
use fedlink::record::Arrival;

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
