//! Any bytes are the checkpoint of a server session, from which it continues, or an error that changes
//! nothing.
//!
//! The first byte chooses a session; the rest is as in `checkpoint`.

use super::checkpoint::{alone, config, file};
use fedlink::learn::task::Evaluation;
use fedlink::parts::Parts;
use fedlink::record::Training;
use fedlink::schedule::Reports;
use fedlink::system::device::{Encoder, Sender};
use fedlink::system::session::{Message, Session};
use std::cell::RefCell;
use std::io::Cursor;

/// d.
const DIM: usize = 40;

thread_local! {
    static SESSIONS: RefCell<Vec<(Session, Encoder, Vec<u8>)>> = RefCell::new(sessions());
}

pub fn run(bytes: &[u8]) {
    alone(|| restore(bytes));
}

fn restore(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    SESSIONS.with_borrow_mut(|sessions| {
        // Every input starts from the same session.
        let count = sessions.len();
        let (session, encoder, pristine) = &mut sessions[usize::from(choice) % count];
        if session.restore(Cursor::new(file(bytes, pristine))).is_err() {
            assert!(saved(session) == *pristine, "a restore that failed has changed something");
            return;
        }
        let first = saved(session);
        session.restore(Cursor::new(&first)).expect("a saved state is valid");
        assert!(saved(session) == first, "the restored state is saved as another state");
        let _ = (session.outcome(), round(session, encoder), round(session, encoder), session.outcome());
        session.restore(Cursor::new(&*pristine)).expect("a saved state is valid");
    });
}

fn saved(session: &Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.checkpoint(&mut bytes).expect("memory takes all");
    bytes
}

/// A round on nodes with the same result of training.
fn round(session: &mut Session, encoder: &Encoder) -> Result<(), fedlink::Error> {
    let t = session.rounds_done();
    let links = session.links(t);
    let call = session.begin(t, links.known, |_| true)?;
    let update: Vec<f32> = (0..DIM).map(|i| i as f32 - 7.5).collect();
    let mut answers = Vec::new();
    for index in 0..call.candidates.len() {
        answers.extend(encoder.answers(&call.request(index), &update, 0.7)?);
    }
    let granted = session.report(Reports::new(call.candidates, call.asks.len(), answers))?;
    let sent = granted
        .iter()
        .map(|granted| encoder.message(&update, granted.grant.budget, Sender { t, device: granted.device }))
        .collect::<Result<Vec<_>, _>>()?;
    let messages: Vec<Message> =
        granted.iter().zip(&sent).map(|(granted, sent)| Message::of(granted.device, sent)).collect();
    session.deliver_messages(&messages, Training::new(4, 0.7))?;
    session.evaluated(Evaluation::new(0.5, 1.0).with("a metric with a long name", 0.25))
}

/// Sessions whose policies keep state, each after two rounds, with the nodes' half and their checkpoints.
fn sessions() -> Vec<(Session, Encoder, Vec<u8>)> {
    let begun = |policy: &str| {
        let mut config = config(&[("schedule.policy", policy)]);
        config.adversary.share = 0.0;
        let parts = Parts::default();
        let mut session =
            Session::of(&config.resolve(&parts).unwrap(), vec![0.0; DIM], None).expect("a valid session");
        let encoder = Encoder::of(&config.resolve(&parts).unwrap()).expect("a valid encoder");
        (0..2).for_each(|_| round(&mut session, &encoder).expect("a round"));
        let bytes = saved(&session);
        (session, encoder, bytes)
    };
    ["round-robin", "random", "bc-bn2"].map(begun).into()
}
