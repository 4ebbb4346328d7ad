//! Server and devices driven by hand, compared with a simulation and with real nodes.

use crate::common::{blobs, small_config};
use fedlink::compress::wire::Coder;
use fedlink::learn::optimizer::StateMode;
use fedlink::prelude::*;
use fedlink::record::{Arrival, Training};
use fedlink::system::build::compressor;
use fedlink::system::device::Sender;
use fedlink::system::round::round;
use fedlink::system::server::{Body, Call, Scheduled, Upload};

const POLICIES: [&str; 6] = ["bc", "bn2", "bc-bn2", "bn2-c", "random", "round-robin"];
const SCHEMES: [&str; 8] = ["d-sgd", "random-sparse", "top-k", "stc", "rand-k", "ternary", "sign", "qsgd"];

fn config(policy: &str) -> Config {
    let mut config = small_config();
    config.learn.state = StateMode::Reset;
    config.schedule.policy = policy.into();
    config
}

/// Every record of a simulation, and its model.
fn simulated(config: &Config) -> (Vec<RoundRecord>, Vec<f32>) {
    let mut simulation = Simulation::of(config, blobs(20, 600, 90)).unwrap();
    let step = |_| {
        let mut record = simulation.step().unwrap();
        record.evaluation = None;
        record
    };
    let records = (0..config.run.rounds).map(step).collect();
    (records, simulation.theta().to_vec())
}

/// The training of the candidates, as on a node of each: their reports and the updates to be sent.
fn train(nodes: &Simulation, theta: &[f32], call: &Call) -> (Reports, Vec<Vec<f32>>, Training) {
    let (mut updates, mut losses, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for (index, &device) in call.candidates.iter().enumerate() {
        let (update, loss) = nodes.fleet.update(theta, call.t, device).unwrap();
        for ask in &call.asks {
            answers.push(match ask {
                Ask::Norm => fedlink::base::kernels::norm(&update) as f32,
                Ask::CompressedNorm => nodes
                    .fleet
                    .encoder()
                    .compressed_norm(&update, call.alone[index], Sender { t: call.t, device })
                    .unwrap(),
                Ask::Loss => loss as f32,
                other => panic!("{other:?} is new to this test"),
            });
        }
        updates.push(update);
        losses.push(loss);
    }
    let devices = losses.len();
    let training = Training::new(devices, losses.iter().sum::<f64>() / devices as f64);
    (Reports::new(call.candidates.clone(), call.asks.len(), answers), updates, training)
}

/// The compressed update of a scheduled device.
struct Compressed {
    device: DeviceId,
    spent: Spent,
    update: Encoded,
    payload: Vec<u8>,
    bits: u64,
}

impl Compressed {
    fn upload(&self, as_bytes: bool) -> Upload<'_> {
        let body = match &self.update {
            Encoded::Silent => Body::Silent,
            _ if as_bytes => Body::Payload(&self.payload),
            update => Body::Update(update),
        };
        let wire_bits = as_bytes.then_some(self.bits);
        Upload {
            device: self.device,
            spent: self.spent,
            entries: self.update.entries(),
            wire_bits,
            airtime: None,
            body,
        }
    }
}

/// A run in which only the server's three calls are from the library's loop; with real bytes if
/// `as_bytes`.
fn by_hand(config: &Config, as_bytes: bool) -> (Vec<RoundRecord>, Vec<f32>) {
    let parts = Parts::default();
    // The nodes, and a server without nodes.
    let nodes = Simulation::of(config, blobs(20, 600, 90)).unwrap();
    let theta0 = nodes.theta().to_vec();
    let spec = config.resolve(&parts).unwrap();
    let samples = vec![30; config.data.devices as usize];
    let mut server = Server::of(&spec, theta0, Some(samples)).unwrap();
    let scheme = compressor(&spec).unwrap();
    let mut records = Vec::new();
    for t in 0..config.run.rounds {
        let links = server.links(t);
        let call = server.begin(t, links.known, |_| true).unwrap();
        let (reports, updates, training) = train(&nodes, server.theta(), &call);
        let scheduled = server.report(reports).unwrap();
        let send = |one: &Scheduled| {
            let index = call.candidates.iter().position(|device| *device == one.device).unwrap();
            let (budget, mut update) = (one.grant.budget, Encoded::default());
            let (encoder, sender) = (nodes.fleet.encoder(), Sender { t, device: one.device });
            let spent = encoder.encode(&updates[index], budget, sender, &mut update).unwrap();
            let (mut payload, mut bits) = (Vec::new(), 0);
            if as_bytes && spent.level > 0 {
                let known = &encoder.context(updates[index].len(), budget, sender);
                let codec = scheme.codec().unwrap();
                bits = codec.write(&mut Coder::default(), known, &update, &mut payload).unwrap();
            }
            Compressed { device: one.device, spent, update, payload, bits }
        };
        let sent: Vec<Compressed> = scheduled.iter().map(send).collect();
        let uploads: Vec<Upload> = sent.iter().map(|one| one.upload(as_bytes)).collect();
        records.push(server.deliver(&uploads, training, None).unwrap().clone());
    }
    (records, server.theta().to_vec())
}

#[track_caller]
fn assert_same(ours: &(Vec<RoundRecord>, Vec<f32>), theirs: &(Vec<RoundRecord>, Vec<f32>), name: &str) {
    assert_eq!(ours.0, theirs.0, "{name}: the records");
    let bits = |theta: &[f32]| theta.iter().map(|weight| weight.to_bits()).collect::<Vec<u32>>();
    assert_eq!(bits(&ours.1), bits(&theirs.1), "{name}: the model");
}

#[test]
fn rounds_driven_by_hand_are_those_of_a_simulation() {
    for policy in POLICIES {
        assert_same(&by_hand(&config(policy), false), &simulated(&config(policy)), policy);
    }
}

#[test]
fn a_server_with_bytes_from_nodes_equals_a_simulation_on_bytes() {
    for policy in POLICIES {
        for scheme in SCHEMES {
            let mut config = config(policy);
            (config.compress.scheme, config.radio.wire, config.radio.symbols) = (scheme.into(), true, 200);
            assert_same(&by_hand(&config, true), &simulated(&config), &format!("{policy} {scheme}"));
        }
    }
}

#[test]
fn the_loop_of_a_round_over_server_and_fleet_is_that_of_a_simulation() {
    // With device state and feedback, which only the fleet can have.
    for policy in POLICIES {
        let mut config = config(policy);
        config.learn.state = StateMode::Keep;
        config.compress.feedback = "always".into();
        let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        assert!(simulation.fleet.keeps_state());
        let Simulation { server, fleet, .. } = &mut simulation;
        let mut records = Vec::new();
        for t in 0..config.run.rounds {
            let links = server.links(t);
            let call = server.begin(t, links.known, |_| true).unwrap();
            let mut trained = fleet.train(server.theta(), &call, |_| true).unwrap();
            let scheduled = server.report(trained.reports.clone()).unwrap();
            let sent = fleet.send(&mut trained, server.theta(), &scheduled, t).unwrap();
            let uploads: Vec<Upload> = sent.iter().map(|one| one.upload()).collect();
            records.push(server.deliver(&uploads, trained.training, None).unwrap().clone());
            let delivered = vec![true; sent.len()];
            fleet.settle(t, trained, sent, &delivered);
        }
        let theta = server.theta().to_vec();
        assert_same(&(records, theta), &simulated(&config), policy);
        let mut again = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
        let Simulation { server, fleet, clock, .. } = &mut again;
        let mut step = |t| {
            round(server, fleet, clock, t).unwrap();
            server.last().unwrap().clone()
        };
        let records: Vec<RoundRecord> = (0..config.run.rounds).map(&mut step).collect();
        assert_same(&(records, again.theta().to_vec()), &simulated(&config), policy);
    }
}

#[test]
fn a_fleet_reports_whether_its_devices_keep_state() {
    let keeps = |state, feedback: &str| {
        let mut config = config("bc");
        (config.learn.state, config.compress.feedback) = (state, feedback.into());
        Simulation::of(&config, blobs(20, 600, 90)).unwrap().fleet.keeps_state()
    };
    assert!(!keeps(StateMode::Reset, "off"));
    assert!(keeps(StateMode::Keep, "off"));
    assert!(keeps(StateMode::Reset, "scheduled"));
}

/// A server of four devices with a model of five entries, and up to two of them scheduled by norm.
fn small_server(change: impl Fn(&mut Config)) -> Server {
    let mut config = Config::default();
    (config.data.devices, config.schedule.k, config.schedule.policy) = (4, 2, "bn2".into());
    config.radio.fading = "static".into();
    change(&mut config);
    let spec = config.resolve(&Parts::default()).unwrap();
    Server::of(&spec, vec![0.0; 5], Some(vec![1, 2, 3, 4])).unwrap()
}

fn ids(devices: &[u32]) -> Vec<DeviceId> {
    devices.iter().copied().map(DeviceId).collect()
}

fn begin(server: &mut Server, t: u64) -> Call {
    let known = server.links(t).known;
    server.begin(t, known, |_| true).unwrap()
}

/// An upload of all entries of the model, each of this value.
fn dense(device: u32, update: &Encoded) -> Upload<'_> {
    let spent = Spent::new(Bits(1.0), 1);
    Upload {
        device: DeviceId(device),
        spent,
        entries: 5,
        wire_bits: None,
        airtime: None,
        body: Body::Update(update),
    }
}

#[test]
fn calls_in_the_wrong_order_or_that_do_not_match_are_refused() {
    let mut server = small_server(|_| ());
    let training = Training::default();
    let message = |result: Result<(), Error>| result.unwrap_err().to_string();
    assert_eq!(message(server.report(Reports::default()).map(drop)), "report: no round has begun");
    assert_eq!(message(server.deliver(&[], training, None).map(drop)), "deliver: no round has begun");
    begin(&mut server, 0);
    assert_eq!(message(server.deliver(&[], training, None).map(drop)), "deliver: no device has reported yet");
    let report = |server: &mut Server, devices: &[u32], asks: usize| {
        begin(server, 0);
        let values = vec![1.0; devices.len() * asks];
        server.report(Reports::new(ids(devices), asks, values)).map(drop)
    };
    assert_eq!(
        message(report(&mut server, &[0, 1, 2], 2)),
        "report: every candidate must report each requested number"
    );
    assert_eq!(
        message(report(&mut server, &[0, 1, 2], 0)),
        "report: every candidate must report each requested number"
    );
    assert_eq!(message(report(&mut server, &[0, 1, 1], 1)), "report: a device reports twice");
    assert_eq!(message(report(&mut server, &[0, 9], 1)), "report: a device that was no candidate reports");
    for value in [f32::NAN, f32::INFINITY] {
        begin(&mut server, 0);
        let reports = Reports::new(ids(&[0, 1]), 1, vec![1.0, value]);
        let problem = format!("device 1 reported {value} in round 1; a report must be a finite number");
        assert_eq!(message(server.report(reports).map(drop)), problem);
    }
    report(&mut server, &[], 1).unwrap();
    report(&mut server, &[], 0).unwrap();
    report(&mut server, &[3, 1], 1).unwrap();
    let order = "deliver: there must be one upload of each scheduled device, in their order";
    let lost = |devices: &[u32]| -> Vec<Upload> { ids(devices).into_iter().map(Upload::lost).collect() };
    for uploads in [&[3u32, 1][..], &[1], &[1, 2], &[1, 3, 3], &[]] {
        report(&mut server, &[3, 1], 1).unwrap();
        let result = server.deliver(&lost(uploads), training, None);
        assert!(matches!(result, Err(Error::Order(_))));
        assert_eq!(message(result.map(drop)), order);
    }
    server.deliver(&lost(&[1, 3]), training, None).expect("a call that was refused changes nothing");
    assert_eq!(message(server.deliver(&[], training, None).map(drop)), "deliver: no round has begun");
}

#[test]
fn reports_in_any_order_are_those_of_the_candidates_and_refused_ones_leave_the_round_open() {
    let granted = |devices: &[u32], values: &[f32]| {
        let mut server = small_server(|_| ());
        begin(&mut server, 0);
        for wrong in [&[0, 9][..], &[0, 0]] {
            assert!(server.report(Reports::new(ids(wrong), 1, vec![1.0; 2])).is_err());
        }
        assert!(server.report(Reports::new(ids(&[0]), 1, vec![f32::NAN])).is_err());
        server.report(Reports::new(ids(devices), 1, values.to_vec())).unwrap()
    };
    let in_order = granted(&[0, 1, 3], &[2.0, 1.0, 5.0]);
    assert_eq!(in_order.iter().map(|one| one.device.0).collect::<Vec<u32>>(), [0, 3]);
    assert_eq!(granted(&[3, 1, 0], &[5.0, 1.0, 2.0]), in_order);
}

#[test]
fn absent_devices_are_not_candidates_and_a_round_without_devices_is_valid() {
    for policy in POLICIES {
        let mut server = small_server(|config| config.schedule.policy = policy.into());
        let known = server.links(0).known;
        let call = server.begin(0, known.clone(), |device| device.0 != 1).unwrap();
        assert!(!call.candidates.contains(&DeviceId(1)), "{policy}");
        assert_eq!(call.alone.len(), call.candidates.len());
        let call = server.begin(0, known, |_| false).unwrap();
        assert_eq!(call.candidates, []);
        assert_eq!(server.report(Reports::new(vec![], call.asks.len(), vec![])).unwrap(), []);
        let record = server.deliver(&[], Training::default(), None).unwrap();
        assert_eq!((record.round, record.transmissions.len()), (1, 0), "{policy}");
        assert_eq!(server.theta(), [0.0; 5]);
    }
}

#[test]
fn a_lost_upload_has_no_weight_and_an_unreadable_one_counts_as_zero() {
    use Arrival::{Lost, Silent, Undecodable, Used};
    let whole = Encoded::Dense(vec![1.0; 5]);
    let after = |aggregate: &str, bodies: [Body; 2]| {
        let mut server = small_server(|config| config.learn.aggregate = aggregate.into());
        let call = begin(&mut server, 0);
        server.report(Reports::new(call.candidates, 1, vec![1.0, 5.0, 1.0, 5.0])).unwrap();
        let [one, three] = bodies.map(|body| Upload { body, ..dense(0, &whole) });
        let uploads = [Upload { device: DeviceId(1), ..one }, Upload { device: DeviceId(3), ..three }];
        let record = server.deliver(&uploads, Training::default(), None).unwrap();
        let arrivals: Vec<Arrival> = record.transmissions.iter().map(|sent| sent.arrival).collect();
        (server.theta()[0], arrivals)
    };
    let used = Body::Update(&whole);
    assert_eq!(after("mean", [used, used]), (1.0, vec![Used, Used]));
    assert_eq!(after("mean", [used, Body::Lost]), (1.0, vec![Used, Lost]));
    assert_eq!(after("mean", [used, Body::Silent]), (0.5, vec![Used, Silent]));
    assert_eq!(after("mean", [Body::Unreadable, used]), (0.5, vec![Undecodable, Used]));
    assert_eq!(after("mean", [Body::Payload(&[0; 40]), used]), (0.5, vec![Undecodable, Used]));
    assert_eq!(after("mean", [Body::Lost, Body::Lost]), (0.0, vec![Lost, Lost]));
    // Devices 1 and 3 have two and four samples.
    let third = 2.0f32 / 6.0;
    assert_eq!(after("by-size", [used, Body::Silent]), (third, vec![Used, Silent]));
    assert_eq!(after("by-size", [Body::Lost, used]), (1.0, vec![Lost, Used]));
    assert_eq!(after("median", [used, Body::Silent]).0, 0.5);
    assert_eq!(after("median", [used, Body::Lost]).0, 1.0);
}

#[test]
fn an_abandoned_round_changes_nothing() {
    let play = |abandon: bool| {
        let mut server = small_server(|config| config.schedule.policy = "bn2-c".into());
        let whole = Encoded::Dense(vec![0.25; 5]);
        let mut records = Vec::new();
        for t in 0..5 {
            if abandon {
                begin(&mut server, t);
            }
            let call = begin(&mut server, t);
            let values = (0..call.candidates.len()).map(|i| ((i as u64 + t) % 4) as f32).collect();
            let scheduled = server.report(Reports::new(call.candidates, 1, values)).unwrap();
            let uploads: Vec<Upload> = scheduled.iter().map(|one| dense(one.device.0, &whole)).collect();
            records.push(server.deliver(&uploads, Training::default(), None).unwrap().clone());
        }
        (records, server.theta().to_vec())
    };
    assert_eq!(play(true), play(false));
}
