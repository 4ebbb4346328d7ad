use super::*;
use crate::compress::feedback::FEEDBACKS;
use crate::parts::Parts;
use crate::spec::Config;
use proptest::prelude::*;

/// A device that sends all entries of its update if its budget allows it.
fn device(feedback: &str) -> Device {
    let mut config = Config::default();
    (config.compress.scheme, config.compress.feedback) = ("random-sparse".into(), feedback.into());
    Device::new(&config.resolve(&Parts::default()).unwrap(), Vec::new()).unwrap()
}

/// The report of round `round`, from 1, after the server has acknowledged another.
fn report(device: &mut Device, round: u64, acknowledged: u64, update: &[f32]) -> Report {
    let sender = Sender { t: round - 1, device: DeviceId(0) };
    let acknowledged = Some(acknowledged);
    let request = Request { sender, asks: &[Ask::Norm], alone: Bits(1e6), acknowledged };
    device.report(&request, update.to_vec(), 0.5).unwrap()
}

/// Receives an acknowledgment between two rounds, as in the request of the next one.
fn synchronize(device: &mut Device, acknowledged: u64) -> bool {
    !report(device, 100, acknowledged, &[0.0, 0.0]).lost_state
}

/// Sends in round `round`, so that the server has the update `h` of the device if the upload counts.
fn send(device: &mut Device, round: u64, acknowledged: u64, h: f32) {
    assert!(!report(device, round, acknowledged, &[h, 0.0]).lost_state);
    assert!(device.send(Bits(1e6)).unwrap().payload.is_some());
    device.settle(true);
}

#[test]
fn a_device_changes_its_state_only_for_acknowledged_uploads() {
    let mut node = device("ef21");
    send(&mut node, 1, 0, 1.0);
    // Its upload of round 1 did not count, that of round 4 did.
    send(&mut node, 4, 0, 2.0);
    assert!(synchronize(&mut node, 4) && synchronize(&mut node, 4));
    assert_eq!(node.residual(), [2.0, 0.0]);
    send(&mut node, 6, 4, 5.0);
    assert!(synchronize(&mut node, 4), "the upload of round 6 was lost");
    assert_eq!(node.residual(), [2.0, 0.0]);
    // The server acknowledges an upload that this device has not sent.
    assert!(!synchronize(&mut node, 5));
    assert!(node.residual().is_empty());
    // The server has no state: there is nothing to lose.
    send(&mut node, 7, 0, 1.0);
    assert!(synchronize(&mut node, 7) && synchronize(&mut node, 0));
    assert!(node.residual().is_empty());
}

#[test]
fn a_device_sends_the_change_of_its_update_and_notices_that_it_has_started_again() {
    let mut node = device("ef21");
    send(&mut node, 1, 0, 1.0);
    // v = Δ − h.
    assert_eq!(report(&mut node, 2, 1, &[4.0, 4.0]).answers, [5.0]);
    assert!(report(&mut device("ef21"), 2, 1, &[4.0, 4.0]).lost_state);
}

#[test]
fn a_device_refuses_calls_that_do_not_match() {
    let mut node = device("ef21");
    let refused = |result: Result<(), Error>| result.unwrap_err().to_string();
    assert!(refused(node.send(Bits(1.0)).map(drop)).contains("no update waits"));
    let sender = Sender { t: 0, device: DeviceId(0) };
    let request = Request { sender, asks: &[], alone: Bits(1.0), acknowledged: None };
    assert!(refused(node.report(&request, vec![1.0], 0.5).map(drop)).contains("must give the round"));
    let mut node = device("scheduled");
    send(&mut node, 1, 0, 1.0);
    assert!(refused(node.report(&request, vec![1.0], 0.5).map(drop)).contains("another size"));
    for broken in [f32::NAN, f32::INFINITY] {
        let diverged = device("off").report(&request, vec![broken], 0.5);
        assert!(matches!(diverged, Err(Error::Diverged { round: 1, device: 0, .. })));
    }
}

#[test]
fn an_upload_that_is_lost_or_never_settled_leaves_the_residual_as_it_was() {
    for feedback in ["scheduled", "decay", "momentum"] {
        for settle in [true, false] {
            let mut node = device(feedback);
            report(&mut node, 1, 0, &[3.0, 4.0]);
            node.send(Bits(0.0)).unwrap();
            if settle {
                node.settle(false);
            }
            assert_eq!(report(&mut node, 2, 0, &[3.0, 4.0]).answers, [5.0], "{feedback}");
            assert!(node.residual().is_empty());
        }
    }
}

proptest! {
    #[test]
    fn a_device_goes_on_from_its_state_as_if_it_had_never_stopped(
        rounds in prop::collection::vec((prop::collection::vec(-9.0..9.0f32, 12), 0.0..200.0f64), 1..6),
    ) {
        for entry in FEEDBACKS {
            let mut steady = device(entry.name);
            let mut acknowledged = 0;
            let fresh = device(entry.name);
            let mut states = vec![State::default()];
            for (t, (update, budget)) in rounds.iter().enumerate() {
                let round = t as u64 + 1;
                let restored = |states: &[State]| {
                    let mut device = fresh.clone();
                    device.load(states.last().unwrap().clone()).unwrap();
                    device
                };
                let mut other = restored(&states);
                let ours = report(&mut steady, round, acknowledged, update);
                prop_assert_eq!(&report(&mut other, round, acknowledged, update), &ours);
                states.push(other.save());
                // The upload follows in another process.
                let mut other = restored(&states);
                prop_assert_eq!(other.waiting(), Some(round - 1));
                let sent = steady.send(Bits(*budget)).unwrap();
                prop_assert_eq!(&other.send(Bits(*budget)).unwrap(), &sent);
                steady.settle(true);
                other.settle(true);
                states.push(other.save());
                if sent.payload.is_some() && t % 2 == 0 {
                    acknowledged = round;
                }
            }
        }
    }
}
