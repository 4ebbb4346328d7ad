//! Rounds on nodes: a server with the inputs of a simulation gives the results of the simulation.

use fedlink::learn::optimizer::StateMode;
use fedlink::prelude::*;
use fedlink::record::{Arrival, Training};
use fedlink::system::device::{self, Device, Encoder, Sender};
use fedlink::system::server::Message;
use std::sync::Arc;

fn config(policy: &str) -> Config {
    let mut config = Config::default();
    config.schedule.policy = policy.into();
    config.schedule.k = 3;
    config.data.devices = 8;
    config.radio.wire = true;
    config.data.samples_per_device = 50;
    config.learn.model = "softmax".into();
    config.learn.state = StateMode::Reset;
    config.run.rounds = 6;
    config.run.evaluate_every = 2;
    config
}

fn dataset() -> Arc<fedlink::data::Dataset> {
    fedlink::data::load("digits", &[]).unwrap()
}

fn server_of(config: &Config, nodes: &Simulation) -> Server {
    let samples = vec![50; config.data.devices as usize];
    Server::of(&config.resolve(&Parts::default()).unwrap(), nodes.theta().to_vec(), Some(samples)).unwrap()
}

/// One round in which every node acts as a device of `nodes`; `backwards` reverses the order of reports
/// and uploads.
fn play(server: &mut Server, nodes: &Simulation, backwards: bool) -> Vec<Arrival> {
    let fresh = Device::new(server.spec(), Vec::new()).unwrap();
    let (t, fleet) = (server.rounds_done(), &nodes.fleet);
    let links = server.links(t);
    let call = server.begin(t, links.known, |_| true).unwrap();
    let mut devices = vec![fresh; call.candidates.len()];
    let mut losses = 0.0;
    let mut rows: Vec<(DeviceId, Vec<f32>)> = (0..devices.len())
        .map(|i| {
            let device = call.candidates[i];
            let (update, loss) = fleet.update(server.theta(), t, device).unwrap();
            losses += loss;
            (device, devices[i].report(&call.request(i), update, loss).unwrap().answers)
        })
        .collect();
    if backwards {
        rows.reverse();
    }
    let (reported, answers): (Vec<DeviceId>, Vec<Vec<f32>>) = rows.into_iter().unzip();
    let granted = server.report(Reports::new(reported, call.asks.len(), answers.concat())).unwrap();
    let sent: Vec<(DeviceId, device::Message)> = granted
        .iter()
        .map(|one| {
            let index = call.candidates.iter().position(|m| *m == one.device).unwrap();
            (one.device, devices[index].send(one.grant.budget).unwrap())
        })
        .collect();
    let mut messages: Vec<Message> = sent.iter().map(|(device, sent)| Message::of(*device, sent)).collect();
    if backwards {
        messages.reverse();
    }
    let training = Training::new(devices.len(), losses / devices.len() as f64);
    let arrivals = server.deliver_messages(&messages, training).unwrap();
    let run = &server.spec().run;
    if server.rounds_done().is_multiple_of(run.evaluate_every) || server.rounds_done() == run.rounds {
        let evaluation = fleet.task().evaluate(server.theta()).unwrap();
        server.evaluated(evaluation).unwrap();
    }
    arrivals
}

#[test]
fn a_server_on_nodes_has_the_digest_of_the_simulation() {
    for policy in ["bc", "bn2", "bc-bn2", "bn2-c", "random", "round-robin"] {
        let config = config(policy);
        let mut simulation = Simulation::of(&config, dataset()).unwrap();
        let nodes = Simulation::of(&config, dataset()).unwrap();
        let mut server = server_of(&config, &nodes);
        let wanted = simulation.run(|_| ()).unwrap();
        for round in 0..config.run.rounds {
            play(&mut server, &nodes, round % 2 == 1);
        }
        assert_eq!(server.outcome(), wanted, "{policy}");
        assert_eq!(server.theta(), simulation.theta(), "{policy}");
    }
}

#[test]
fn a_saved_server_resumes_to_the_same_digest_on_a_policy_with_state() {
    let config = config("round-robin");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let (mut whole, mut first) = (server_of(&config, &nodes), server_of(&config, &nodes));
    (0..6).for_each(|_| drop(play(&mut whole, &nodes, false)));
    (0..4).for_each(|_| drop(play(&mut first, &nodes, false)));
    let mut saved = Vec::new();
    first.checkpoint(&mut saved).unwrap();
    let mut second = server_of(&config, &nodes);
    second.restore(std::io::Cursor::new(&saved)).unwrap();
    assert_eq!(second.rounds_done(), 4);
    (4..6).for_each(|_| drop(play(&mut second, &nodes, false)));
    assert_eq!(second.outcome(), whole.outcome());

    let mut other = config.clone();
    other.run.seed = 1;
    let mut other = server_of(&other, &nodes);
    assert!(other.restore(std::io::Cursor::new(&saved)).is_err());
    assert_eq!(other.rounds_done(), 0);
}

#[test]
fn a_round_continues_with_absent_lost_and_excluded_nodes() {
    let config = config("bc");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let mut server = server_of(&config, &nodes);
    let encoder = Encoder::of(&config.resolve(&Parts::default()).unwrap()).unwrap();
    let links = server.links(0);
    let call = server.begin(0, links.known, |device| device.0 != 5).unwrap();
    assert!(!call.candidates.contains(&DeviceId(5)));
    let granted = server.report(Reports::new(call.candidates.clone(), 0, Vec::new())).unwrap();
    assert_eq!(granted.len(), 3);
    let update = vec![0.5; server.theta().len()];
    let sender = Sender { t: 0, device: granted[0].device };
    let sent = encoder.message(&update, granted[0].grant.budget, sender).unwrap();
    let honest = Message::of(granted[0].device, &sent);
    let mut greedy = honest;
    greedy.device = granted[1].device;
    greedy.spent.bits = Bits(granted[1].grant.budget.0 * 2.0);
    let training = Training::new(3, 1.0);
    let mut unexpected = honest;
    unexpected.device = DeviceId(5);
    assert!(server.deliver_messages(&[honest, unexpected], training).is_err());
    let arrivals = server.deliver_messages(&[greedy, honest], training).unwrap();
    assert_eq!(arrivals, [Arrival::Used, Arrival::Undecodable, Arrival::Lost]);
    assert_eq!(server.rounds_done(), 1);
}

#[test]
fn calls_in_the_wrong_order_are_refused() {
    let config = config("bc");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let mut server = server_of(&config, &nodes);
    let nobody = Training::default();
    assert!(server.report(Reports::default()).is_err());
    assert!(server.deliver_messages(&[], nobody).is_err());
    assert!(server.evaluated(Evaluation::new(0.5, 0.5)).is_err());
    let links = server.links(0);
    assert!(server.begin(1, links.known.clone(), |_| true).is_err());
    server.begin(0, links.known, |_| true).unwrap();
    assert!(server.deliver_messages(&[], nobody).is_err());
}

#[test]
fn the_share_of_a_device_that_fails_goes_to_a_candidate_that_has_trained() {
    let config = config("bn2");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let mut server = server_of(&config, &nodes);
    let links = server.links(0);
    let capacities = links.known.capacities.clone();
    assert!(server.substitute(DeviceId(0)).is_err());
    let call = server.begin(0, links.known, |_| true).unwrap();
    let norms: Vec<f32> = (0..8).map(|m| m as f32).collect();
    let granted = server.report(Reports::new(call.candidates, 1, norms)).unwrap();
    assert_eq!(granted.iter().map(|one| one.device.0).collect::<Vec<_>>(), [5, 6, 7]);
    assert!(server.substitute(DeviceId(4)).is_err());
    // The largest reports that are not scheduled, in turn.
    for (failed, expected) in [(1, 4), (2, 3)] {
        let one = server.substitute(granted[failed].device).unwrap().unwrap();
        assert_eq!(one.device, DeviceId(expected));
        assert_eq!(one.grant.symbols, granted[failed].grant.symbols);
        assert_eq!(one.grant.budget.0, one.grant.symbols.0 * capacities[expected as usize]);
        assert_eq!(one.capacity, capacities[expected as usize]);
    }
    server.deliver_messages(&[], Training::new(8, 1.0)).unwrap();
    let sent: Vec<u32> = server.last().unwrap().transmissions.iter().map(|one| one.device.0).collect();
    assert_eq!(sent, [5, 4, 3]);
}

#[test]
fn there_is_no_substitute_where_only_the_scheduled_train() {
    let config = config("bc");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let mut server = server_of(&config, &nodes);
    let links = server.links(0);
    let call = server.begin(0, links.known, |_| true).unwrap();
    let granted = server.report(Reports::new(call.candidates, 0, Vec::new())).unwrap();
    assert_eq!(server.substitute(granted[0].device).unwrap(), None);
}

#[test]
fn rates_that_arrive_with_the_reports_decide_on_the_budgets() {
    let config = config("bc");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let mut server = server_of(&config, &nodes);
    let links = server.links(0);
    assert!(server.relink(links.known.clone()).is_err());
    let call = server.begin(0, links.known.clone(), |device| device.0 != 0).unwrap();
    let mut now = links.known.clone();
    now.capacities.iter_mut().for_each(|capacity| *capacity *= 2.0);
    server.relink(now.clone()).unwrap();
    let few = Reports::new(call.candidates[..2].to_vec(), 0, Vec::new());
    for one in server.report(few).unwrap() {
        assert_eq!(one.capacity, now.capacities[one.device.index()]);
    }
    // A candidate without a report may not send, nor may a device that is not there.
    let gone = [call.candidates[2], DeviceId(0)];
    assert!(gone.iter().all(|device| !server.devices().may_send(*device)));
    assert!(server.relink(now).is_err());
}

#[test]
fn nodes_may_give_their_samples_with_their_report() {
    let mut config = config("bn2");
    config.learn.aggregate = "by-size".into();
    config.schedule.k = 2;
    config.radio.symbols = 10_000_000;
    let mut server = Server::of(&config.resolve(&Parts::default()).unwrap(), vec![0.0; 4], None).unwrap();
    let encoder = Encoder::of(&config.resolve(&Parts::default()).unwrap()).unwrap();
    let links = server.links(0);
    server.begin(0, links.known, |_| true).unwrap();
    server.set_samples(DeviceId(0), 30);
    server.set_samples(DeviceId(1), 10);
    let reports = Reports::new(vec![DeviceId(0), DeviceId(1)], 1, vec![1.0, 1.0]);
    let granted = server.report(reports).unwrap();
    let update = |m: usize| if m == 0 { [1.0, 0.0, 0.0, 0.0] } else { [0.0, 1.0, 0.0, 0.0] };
    let sent: Vec<_> = granted
        .iter()
        .map(|one| {
            let sender = Sender { t: 0, device: one.device };
            encoder.message(&update(one.device.index()), one.grant.budget, sender).unwrap()
        })
        .collect();
    let messages: Vec<Message> =
        granted.iter().zip(&sent).map(|(one, sent)| Message::of(one.device, sent)).collect();
    server.deliver_messages(&messages, Training::new(2, 1.0)).unwrap();
    assert_eq!(server.theta(), [0.75, 0.25, 0.0, 0.0]);
}

#[test]
fn devices_without_samples_or_with_none_given_are_refused() {
    let config = config("bn2");
    let refused = |samples: Vec<usize>| {
        let server = Server::of(&config.resolve(&Parts::default()).unwrap(), vec![0.0; 4], Some(samples));
        server.err().expect("it is refused").to_string()
    };
    let mut samples = vec![5; 8];
    samples[3] = 0;
    assert_eq!(refused(samples), "samples: device 3 has none, but must have at least one");
    assert_eq!(refused(vec![5; 7]), "samples: are those of 7 devices, but data.devices is 8");
}
