//! Any bytes are the checkpoint of a server, from which it continues, or an error that changes
//! nothing.
//!
//! The first byte chooses a server; the rest is as in `checkpoint`.

use super::checkpoint::{alone, config, file};
use fedlink::learn::task::Evaluation;
use fedlink::parts::Parts;
use fedlink::record::Training;
use fedlink::schedule::Reports;
use fedlink::system::device::{Encoder, Sender};
use fedlink::system::server::{Message, Server};
use std::cell::RefCell;
use std::io::Cursor;

/// d.
const DIM: usize = 40;

thread_local! {
    static SERVERS: RefCell<Vec<(Server, Encoder, Vec<u8>)>> = RefCell::new(servers());
}

pub fn run(bytes: &[u8]) {
    alone(|| restore(bytes));
}

fn restore(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    SERVERS.with_borrow_mut(|servers| {
        // Every input starts from the same server.
        let count = servers.len();
        let (server, encoder, pristine) = &mut servers[usize::from(choice) % count];
        if server.restore(Cursor::new(file(bytes, pristine))).is_err() {
            assert!(saved(server) == *pristine, "a restore that failed has changed something");
            return;
        }
        let first = saved(server);
        server.restore(Cursor::new(&first)).expect("a saved state is valid");
        assert!(saved(server) == first, "the restored state is saved as another state");
        let _ = (server.outcome(), round(server, encoder), round(server, encoder), server.outcome());
        server.restore(Cursor::new(&*pristine)).expect("a saved state is valid");
    });
}

fn saved(server: &Server) -> Vec<u8> {
    let mut bytes = Vec::new();
    server.checkpoint(&mut bytes).expect("memory takes all");
    bytes
}

/// A round on nodes with the same result of training.
fn round(server: &mut Server, encoder: &Encoder) -> Result<(), fedlink::Error> {
    let t = server.rounds_done();
    let links = server.links(t);
    let call = server.begin(t, links.known, |_| true)?;
    let update: Vec<f32> = (0..DIM).map(|i| i as f32 - 7.5).collect();
    let mut answers = Vec::new();
    for index in 0..call.candidates.len() {
        answers.extend(encoder.answers(&call.request(index), &update, 0.7)?);
    }
    let granted = server.report(Reports::new(call.candidates, call.asks.len(), answers))?;
    let sent = granted
        .iter()
        .map(|granted| encoder.message(&update, granted.grant.budget, Sender { t, device: granted.device }))
        .collect::<Result<Vec<_>, _>>()?;
    let messages: Vec<Message> =
        granted.iter().zip(&sent).map(|(granted, sent)| Message::of(granted.device, sent)).collect();
    server.deliver_messages(&messages, Training::new(4, 0.7))?;
    server.evaluated(Evaluation::new(0.5, 1.0).with("a metric with a long name", 0.25))
}

/// Servers whose policies keep state, each after two rounds, with the nodes' half and their checkpoints.
fn servers() -> Vec<(Server, Encoder, Vec<u8>)> {
    let begun = |policy: &str| {
        let mut config = config(&[("schedule.policy", policy)]);
        config.adversary.share = 0.0;
        let parts = Parts::default();
        let mut server =
            Server::of(&config.resolve(&parts).unwrap(), vec![0.0; DIM], None).expect("a valid server");
        let encoder = Encoder::of(&config.resolve(&parts).unwrap()).expect("a valid encoder");
        (0..2).for_each(|_| round(&mut server, &encoder).expect("a round"));
        let bytes = saved(&server);
        (server, encoder, bytes)
    };
    ["round-robin", "random", "bc-bn2"].map(begun).into()
}
