//! Rounds on nodes: a session with the inputs of a simulation gives the results of the simulation.

use fedlink::learn::optimizer::StateMode;
use fedlink::prelude::*;
use fedlink::record::{Arrival, Training};
use fedlink::system::device::{self, Device, Encoder, Sender};
use fedlink::system::session::Message;
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

fn session(config: &Config, nodes: &Simulation) -> Session {
    let samples = vec![50; config.data.devices as usize];
    Session::of(&config.resolve(&Parts::default()).unwrap(), nodes.theta().to_vec(), Some(samples)).unwrap()
}

/// One round in which every node acts as a device of `nodes`; `backwards` reverses the order of reports
/// and uploads.
fn play(session: &mut Session, nodes: &Simulation, backwards: bool) -> Vec<Arrival> {
    let fresh = Device::new(session.spec(), Vec::new()).unwrap();
    let (t, fleet) = (session.rounds_done(), &nodes.world().fleet);
    let links = session.links(t);
    let call = session.begin(t, links.known, |_| true).unwrap();
    let mut devices = vec![fresh; call.candidates.len()];
    let mut losses = 0.0;
    let mut rows: Vec<(DeviceId, Vec<f32>)> = (0..devices.len())
        .map(|i| {
            let device = call.candidates[i];
            let (update, loss) = fleet.update(session.theta(), t, device).unwrap();
            losses += loss;
            (device, devices[i].report(&call.request(i), update, loss).unwrap().answers)
        })
        .collect();
    if backwards {
        rows.reverse();
    }
    let (reported, answers): (Vec<DeviceId>, Vec<Vec<f32>>) = rows.into_iter().unzip();
    let granted = session.report(Reports::new(reported, call.asks.len(), answers.concat())).unwrap();
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
    let arrivals = session.deliver_messages(&messages, training).unwrap();
    let run = &session.spec().run;
    if session.rounds_done().is_multiple_of(run.evaluate_every) || session.rounds_done() == run.rounds {
        let evaluation = fleet.task().evaluate(session.theta()).unwrap();
        session.evaluated(evaluation).unwrap();
    }
    arrivals
}

#[test]
fn a_session_on_nodes_has_the_digest_of_the_simulation() {
    for policy in ["bc", "bn2", "bc-bn2", "bn2-c", "random", "round-robin"] {
        let config = config(policy);
        let mut simulation = Simulation::of(&config, dataset()).unwrap();
        let nodes = Simulation::of(&config, dataset()).unwrap();
        let mut session = session(&config, &nodes);
        let wanted = simulation.run(|_| ()).unwrap();
        for round in 0..config.run.rounds {
            play(&mut session, &nodes, round % 2 == 1);
        }
        assert_eq!(session.outcome(), wanted, "{policy}");
        assert_eq!(session.theta(), simulation.theta(), "{policy}");
    }
}

#[test]
fn a_saved_session_resumes_to_the_same_digest_on_a_policy_with_state() {
    let config = config("round-robin");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let (mut whole, mut first) = (session(&config, &nodes), session(&config, &nodes));
    (0..6).for_each(|_| drop(play(&mut whole, &nodes, false)));
    (0..4).for_each(|_| drop(play(&mut first, &nodes, false)));
    let mut saved = Vec::new();
    first.checkpoint(&mut saved).unwrap();
    let mut second = session(&config, &nodes);
    second.restore(std::io::Cursor::new(&saved)).unwrap();
    assert_eq!(second.rounds_done(), 4);
    (4..6).for_each(|_| drop(play(&mut second, &nodes, false)));
    assert_eq!(second.outcome(), whole.outcome());

    let mut other = config.clone();
    other.run.seed = 1;
    let mut other = session(&other, &nodes);
    assert!(other.restore(std::io::Cursor::new(&saved)).is_err());
    assert_eq!(other.rounds_done(), 0);
}

#[test]
fn a_round_continues_with_absent_lost_and_excluded_nodes() {
    let config = config("bc");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let mut session = session(&config, &nodes);
    let encoder = Encoder::of(&config.resolve(&Parts::default()).unwrap()).unwrap();
    let links = session.links(0);
    let call = session.begin(0, links.known, |device| device.0 != 5).unwrap();
    assert!(!call.candidates.contains(&DeviceId(5)));
    let granted = session.report(Reports::new(call.candidates.clone(), 0, Vec::new())).unwrap();
    assert_eq!(granted.len(), 3);
    let update = vec![0.5; session.theta().len()];
    let sender = Sender { t: 0, device: granted[0].device };
    let sent = encoder.message(&update, granted[0].grant.budget, sender).unwrap();
    let honest = Message::of(granted[0].device, &sent);
    let mut greedy = honest;
    greedy.device = granted[1].device;
    greedy.spent.bits = Bits(granted[1].grant.budget.0 * 2.0);
    let training = Training::new(3, 1.0);
    let mut unexpected = honest;
    unexpected.device = DeviceId(5);
    assert!(session.deliver_messages(&[honest, unexpected], training).is_err());
    let arrivals = session.deliver_messages(&[greedy, honest], training).unwrap();
    assert_eq!(arrivals, [Arrival::Used, Arrival::Undecodable, Arrival::Lost]);
    assert_eq!(session.rounds_done(), 1);
}

#[test]
fn calls_in_the_wrong_order_are_refused() {
    let config = config("bc");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let mut session = session(&config, &nodes);
    let nobody = Training::default();
    assert!(session.report(Reports::default()).is_err());
    assert!(session.deliver_messages(&[], nobody).is_err());
    assert!(session.evaluated(Evaluation::new(0.5, 0.5)).is_err());
    let links = session.links(0);
    assert!(session.begin(1, links.known.clone(), |_| true).is_err());
    session.begin(0, links.known, |_| true).unwrap();
    assert!(session.deliver_messages(&[], nobody).is_err());
}

#[test]
fn the_share_of_a_device_that_fails_goes_to_a_candidate_that_has_trained() {
    let config = config("bn2");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let mut session = session(&config, &nodes);
    let links = session.links(0);
    let capacities = links.known.capacities.clone();
    assert!(session.substitute(DeviceId(0)).is_err());
    let call = session.begin(0, links.known, |_| true).unwrap();
    let norms: Vec<f32> = (0..8).map(|m| m as f32).collect();
    let granted = session.report(Reports::new(call.candidates, 1, norms)).unwrap();
    assert_eq!(granted.iter().map(|one| one.device.0).collect::<Vec<_>>(), [5, 6, 7]);
    assert!(session.substitute(DeviceId(4)).is_err());
    // The largest reports that are not scheduled, in turn.
    for (failed, expected) in [(1, 4), (2, 3)] {
        let one = session.substitute(granted[failed].device).unwrap().unwrap();
        assert_eq!(one.device, DeviceId(expected));
        assert_eq!(one.grant.symbols, granted[failed].grant.symbols);
        assert_eq!(one.grant.budget.0, one.grant.symbols.0 * capacities[expected as usize]);
        assert_eq!(one.capacity, capacities[expected as usize]);
    }
    session.deliver_messages(&[], Training::new(8, 1.0)).unwrap();
    let sent: Vec<u32> = session.last().unwrap().transmissions.iter().map(|one| one.device.0).collect();
    assert_eq!(sent, [5, 4, 3]);
}

#[test]
fn there_is_no_substitute_where_only_the_scheduled_train() {
    let config = config("bc");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let mut session = session(&config, &nodes);
    let links = session.links(0);
    let call = session.begin(0, links.known, |_| true).unwrap();
    let granted = session.report(Reports::new(call.candidates, 0, Vec::new())).unwrap();
    assert_eq!(session.substitute(granted[0].device).unwrap(), None);
}

#[test]
fn rates_that_arrive_with_the_reports_decide_on_the_budgets() {
    let config = config("bc");
    let nodes = Simulation::of(&config, dataset()).unwrap();
    let mut session = session(&config, &nodes);
    let links = session.links(0);
    assert!(session.relink(links.known.clone()).is_err());
    let call = session.begin(0, links.known.clone(), |device| device.0 != 0).unwrap();
    let mut now = links.known.clone();
    now.capacities.iter_mut().for_each(|capacity| *capacity *= 2.0);
    session.relink(now.clone()).unwrap();
    let few = Reports::new(call.candidates[..2].to_vec(), 0, Vec::new());
    for one in session.report(few).unwrap() {
        assert_eq!(one.capacity, now.capacities[one.device.index()]);
    }
    // A candidate without a report may not send, nor may a device that is not there.
    let gone = [call.candidates[2], DeviceId(0)];
    assert!(gone.iter().all(|device| !session.server().devices().may_send(*device)));
    assert!(session.relink(now).is_err());
}

#[test]
fn nodes_may_give_their_samples_with_their_report() {
    let mut config = config("bn2");
    config.learn.aggregate = "by-size".into();
    config.schedule.k = 2;
    config.radio.symbols = 10_000_000;
    let mut session = Session::of(&config.resolve(&Parts::default()).unwrap(), vec![0.0; 4], None).unwrap();
    let encoder = Encoder::of(&config.resolve(&Parts::default()).unwrap()).unwrap();
    let links = session.links(0);
    session.begin(0, links.known, |_| true).unwrap();
    session.set_samples(DeviceId(0), 30);
    session.set_samples(DeviceId(1), 10);
    let reports = Reports::new(vec![DeviceId(0), DeviceId(1)], 1, vec![1.0, 1.0]);
    let granted = session.report(reports).unwrap();
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
    session.deliver_messages(&messages, Training::new(2, 1.0)).unwrap();
    assert_eq!(session.theta(), [0.75, 0.25, 0.0, 0.0]);
}

#[test]
fn devices_without_samples_or_with_none_given_are_refused() {
    let config = config("bn2");
    let refused = |samples: Vec<usize>| {
        let session = Session::of(&config.resolve(&Parts::default()).unwrap(), vec![0.0; 4], Some(samples));
        session.err().expect("it is refused").to_string()
    };
    let mut samples = vec![5; 8];
    samples[3] = 0;
    assert_eq!(refused(samples), "samples: device 3 has none, but must have at least one");
    assert_eq!(refused(vec![5; 7]), "samples: are those of 7 devices, but data.devices is 8");
}
