//! Error feedback in whole runs: both sides keep the same state after any loss, and a node may restart.

use crate::common::{blobs, small_config};
use fedlink::base::units::DeviceId;
use fedlink::prelude::*;
use fedlink::record::{Arrival, Training};
use fedlink::schedule::Reports;
use fedlink::system::device::{self, Device, Request, Sender};
use fedlink::system::server::Scheduled;
use fedlink::system::server::{Message, Server};
use std::io::Cursor;

fn config(feedback: &str) -> Config {
    let mut config = small_config();
    (config.compress.feedback, config.compress.scheme) = (feedback.into(), "stc".into());
    config.schedule.policy = "bn2-c".into();
    config
}

#[test]
fn runs_resume_and_repeat_to_the_bit_with_every_kind() {
    for feedback in ["decay", "momentum", "ef21"] {
        for kappa in [1.0, 0.9] {
            let mut config = config(feedback);
            config.set("compress.ef21.kappa", kappa).unwrap();
            let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let run = || {
                let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
                let outcome = simulation.run(|_| ()).unwrap();
                (outcome, simulation.theta().to_vec())
            };
            let whole = pool(1).install(run);
            assert_eq!(pool(3).install(run), whole, "{feedback:?}");
            let mut first = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
            (0..4).for_each(|_| drop(first.step().unwrap()));
            let mut bytes = Vec::new();
            first.checkpoint(&mut bytes).unwrap();
            let mut resumed = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
            resumed.restore(Cursor::new(bytes)).unwrap();
            assert_eq!((resumed.run(|_| ()).unwrap(), resumed.theta().to_vec()), whole, "{feedback:?}");
        }
    }
}

/// A server and its nodes, which communicate by messages only.
struct Nodes {
    server: Server,
    devices: Vec<Device>,
    /// The sums of the used payloads of each device.
    sums: Vec<Vec<f32>>,
    dim: usize,
}

impl Nodes {
    fn new(config: &Config, dim: usize) -> Self {
        let parts = Parts::default();
        let devices = config.data.devices as usize;
        Self {
            server: Server::of(&config.resolve(&parts).unwrap(), vec![0.0; dim], None).unwrap(),
            devices: vec![fresh(config); devices],
            sums: vec![vec![0.0; dim]; devices],
            dim,
        }
    }

    /// A round with these updates, in which the uploads of `lost` devices are lost; the arrival of each.
    fn round(&mut self, updates: &[Vec<f32>], lost: &[u32]) -> Vec<(DeviceId, Arrival)> {
        let t = self.server.rounds_done();
        let known = self.server.links(t).known;
        let call = self.server.begin(t, known, |_| true).unwrap();
        let mut answers = Vec::new();
        for (i, &device) in call.candidates.iter().enumerate() {
            let update = updates[device.index()].clone();
            let report = self.devices[device.index()].report(&call.request(i), update, 0.5).unwrap();
            if report.lost_state {
                self.server.forget(device).unwrap();
                self.sums[device.index()].fill(0.0);
            }
            answers.extend(report.answers);
        }
        let reports = Reports::new(call.candidates, call.asks.len(), answers);
        let scheduled = self.server.report(reports).unwrap();
        let send =
            |one: &Scheduled| (one.device, self.devices[one.device.index()].send(one.grant.budget).unwrap());
        let sent: Vec<(DeviceId, device::Message)> = scheduled.iter().map(send).collect();
        let arrived: Vec<Message> = sent
            .iter()
            .filter(|(device, _)| !lost.contains(&device.0))
            .map(|(device, message)| Message::of(*device, message))
            .collect();
        let arrivals = self.server.deliver_messages(&arrived, Training::new(updates.len(), 0.5)).unwrap();
        for ((device, message), arrival) in sent.iter().zip(&arrivals) {
            if *arrival == Arrival::Used {
                message.own.add_to(&mut self.sums[device.index()], 1.0);
            }
        }
        sent.iter().map(|(device, _)| *device).zip(arrivals).collect()
    }

    /// Checks that both sides and the payloads agree for every device.
    fn assert_agree(&mut self) {
        let t = self.server.rounds_done();
        for (m, device) in self.devices.iter().enumerate() {
            let sender = Sender { t, device: DeviceId(m as u32) };
            // The request of the next round contains the server's acknowledgment.
            let mut device = device.clone();
            let acknowledged = self.server.acknowledged(sender.device);
            let request = Request { sender, asks: &[], alone: Bits(0.0), acknowledged };
            let zero = vec![0.0; self.dim];
            assert!(!device.report(&request, zero.clone(), 0.5).unwrap().lost_state, "{m}");
            let server = self.server.device_state(sender.device).unwrap_or(&zero);
            let own = if device.residual().is_empty() { &zero[..] } else { device.residual() };
            assert_eq!(own, server, "{m}");
            assert_eq!(self.sums[m], server, "{m}: the payloads alone");
        }
    }
}

/// A device before its first upload.
fn fresh(config: &Config) -> Device {
    Device::new(&config.resolve(&Parts::default()).unwrap(), Vec::new()).unwrap()
}

fn updates(devices: usize, dim: usize) -> Vec<Vec<f32>> {
    let entry = |m: usize, i: usize| ((m * 31 + i * 7) as f32).sin() * (1.0 + m as f32);
    (0..devices).map(|m| (0..dim).map(|i| entry(m, i)).collect()).collect()
}

#[test]
fn lost_uploads_move_neither_side_and_states_decode_from_payloads_alone() {
    let mut config = config("ef21");
    config.schedule.k = 4;
    let mut nodes = Nodes::new(&config, 300);
    let updates = updates(config.data.devices as usize, 300);
    let mut lost = 0;
    for t in 0..12 {
        let before: Vec<Vec<f32>> = nodes.sums.clone();
        let astray: Vec<u32> = (0..12).filter(|m| (m + t) % 3 == 0).collect();
        let arrivals = nodes.round(&updates, &astray);
        lost += arrivals.iter().filter(|(_, arrival)| *arrival == Arrival::Lost).count();
        for (device, arrival) in arrivals {
            if arrival == Arrival::Lost {
                let server = nodes.server.device_state(device).unwrap_or(&[0.0; 300]);
                assert_eq!(server, before[device.index()]);
            }
        }
        nodes.assert_agree();
    }
    assert!(lost > 3, "the test loses some: {lost}");
}

#[test]
fn a_node_that_restarts_is_noticed_and_both_sides_start_again_from_zero() {
    let config = config("ef21");
    let mut nodes = Nodes::new(&config, 300);
    let updates = updates(config.data.devices as usize, 300);
    for _ in 0..6 {
        nodes.round(&updates, &[]);
    }
    nodes.assert_agree();
    let device = DeviceId::all(12).find(|m| nodes.server.acknowledged(*m) > Some(0)).unwrap();
    nodes.devices[device.index()] = fresh(&config);
    assert!(nodes.server.device_state(device).is_some());
    let forgotten = nodes.round(&updates, &(0..12).collect::<Vec<u32>>());
    assert!(forgotten.iter().all(|(_, arrival)| *arrival == Arrival::Lost));
    assert_eq!(nodes.server.acknowledged(device), Some(0));
    assert!(nodes.server.device_state(device).is_none());
    for _ in 0..6 {
        nodes.round(&updates, &[]);
        nodes.assert_agree();
    }
}

#[test]
fn the_step_is_the_mean_of_all_states_for_any_schedule() {
    let mut config = config("ef21");
    config.learn.server_rate = 0.5;
    let mut nodes = Nodes::new(&config, 300);
    let updates = updates(config.data.devices as usize, 300);
    for _ in 0..5 {
        let before: Vec<f32> = nodes.server.theta().to_vec();
        nodes.round(&updates, &[]);
        for (i, (after, before)) in nodes.server.theta().iter().zip(&before).enumerate() {
            let mean: f64 = nodes.sums.iter().map(|h| f64::from(h[i])).sum::<f64>() / 12.0;
            let step = f64::from(after - before);
            assert!((step - 0.5 * mean).abs() < 1e-4, "{i}: {step} {mean}");
        }
    }
}

#[test]
fn with_all_devices_and_whole_updates_it_is_plain_averaging_up_to_rounding() {
    let theta = |feedback| {
        let mut config = config(feedback);
        (config.schedule.policy, config.schedule.k) = ("round-robin".into(), config.data.devices);
        (config.compress.scheme, config.radio.symbols) = ("top-k".into(), 10_000_000);
        let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        let record = simulation.step().unwrap();
        assert!(record.transmissions.iter().all(|sent| sent.arrival == Arrival::Used));
        simulation.run(|_| ()).unwrap();
        simulation.theta().to_vec()
    };
    let (plain, states) = (theta("off"), theta("ef21"));
    let largest = plain.iter().fold(0.0f32, |max, x| max.max(x.abs()));
    let error = plain.iter().zip(&states).fold(0.0f32, |max, (a, b)| max.max((a - b).abs()));
    assert!(error <= 1e-4 * largest, "{error} of {largest}");
    assert_ne!(plain, theta_zero());
}

fn theta_zero() -> Vec<f32> {
    Simulation::of(&config("off"), blobs(20, 600, 90)).unwrap().theta().to_vec()
}

#[test]
fn a_round_without_uploads_does_not_move_the_model() {
    let mut config = config("ef21");
    config.radio.symbols = 1;
    config.radio.power = 1e-9;
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    let start = simulation.theta().to_vec();
    simulation.run(|_| ()).unwrap();
    assert_eq!(simulation.theta(), start);
}

#[test]
fn robust_rules_clipping_and_audit_act_on_the_states() {
    for (key, value) in [("learn.aggregate", "median"), ("defense.clip", "median")] {
        let mut config = config("ef21");
        config.set(key, value).unwrap();
        config.defense.audit = true;
        let outcome = Simulation::of(&config, blobs(20, 600, 90)).unwrap().run(|_| ()).unwrap();
        assert!(outcome.excluded.is_empty(), "honest devices pass the audit of their innovations");
    }
}

#[test]
fn states_beyond_the_memory_are_refused_before_the_first_round() {
    let mut config = config("ef21");
    (config.data.devices, config.schedule.k) = (4_000_000_000, 3);
    let error =
        Server::of(&config.resolve(&Parts::default()).unwrap(), vec![0.0; 10_000_000], None).err().unwrap();
    assert!(error.to_string().contains("compress.feedback"), "{error}");
}

#[test]
fn a_server_without_states_has_nothing_to_forget() {
    let mut server =
        Server::of(&config("off").resolve(&Parts::default()).unwrap(), vec![0.0; 10], None).unwrap();
    assert!(server.forget(DeviceId(0)).is_err());
    assert_eq!(server.acknowledged(DeviceId(0)), None);
    let mut server =
        Server::of(&config("ef21").resolve(&Parts::default()).unwrap(), vec![0.0; 10], None).unwrap();
    assert!(server.forget(DeviceId(12)).is_err(), "there are devices 0..12");
}
