//! An interrupted and resumed run equals an uninterrupted one.

use crate::common::{blobs, small_config};
use fedlink::learn::optimizer::StateMode;
use fedlink::spec::Config;
use fedlink::system::checkpoint::CheckpointError;
use fedlink::system::simulation::Simulation;
use proptest::prelude::*;
use std::io::Cursor;
use std::sync::Arc;

/// The state after `rounds` rounds.
fn saved(config: &Config, rounds: u64) -> Vec<u8> {
    let mut simulation = Simulation::of(config, blobs(20, 600, 90)).unwrap();
    (0..rounds).for_each(|_| drop(simulation.step().unwrap()));
    let mut bytes = Vec::new();
    simulation.checkpoint(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_resumed_run_ends_with_the_same_bits() {
    let dataset = blobs(20, 600, 90);
    for policy in ["bc", "bn2", "bc-bn2", "bn2-c"] {
        for (optimizer, state) in
            [("adam", StateMode::Keep), ("adagrad", StateMode::Keep), ("adam", StateMode::Reset)]
        {
            for feedback in ["off", "scheduled", "always"] {
                let mut config = small_config();
                config.schedule.policy = policy.into();
                config.learn.optimizer = optimizer.into();
                config.learn.state = state;
                config.compress.feedback = feedback.into();
                if policy == "bn2" {
                    config.compress.scheme = "random-sparse".into();
                }
                let mut whole = Simulation::of(&config, Arc::clone(&dataset)).unwrap();
                let outcome = whole.run(|_| ()).unwrap();
                // In the middle of an interval between evaluations, and twice.
                let mut resumed = Simulation::of(&config, Arc::clone(&dataset)).unwrap();
                resumed.restore(Cursor::new(saved(&config, 4))).unwrap();
                assert_eq!(resumed.rounds_done(), 4);
                (0..3).for_each(|_| drop(resumed.step().unwrap()));
                let mut again = Vec::new();
                resumed.checkpoint(&mut again).unwrap();
                let mut resumed = Simulation::of(&config, Arc::clone(&dataset)).unwrap();
                resumed.restore(Cursor::new(again)).unwrap();
                assert_eq!(resumed.run(|_| ()).unwrap(), outcome, "{policy:?} {state:?} {feedback:?}");
                assert_eq!(resumed.rows(), whole.rows());
                assert_eq!(resumed.theta(), whole.theta());
            }
        }
    }
}

#[test]
fn another_configuration_or_another_layout_is_refused() {
    let bytes = saved(&small_config(), 2);
    let mut config = small_config();
    config.radio.noise = 1.5;
    let mut other = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    assert!(matches!(other.restore(Cursor::new(&bytes)), Err(CheckpointError::OtherConfig)));
    let mut simulation = Simulation::of(&small_config(), blobs(20, 600, 90)).unwrap();
    let mut newer = bytes.clone();
    newer[7] += 2;
    let end = newer.len() - 4;
    let sum = crc32fast::hash(&newer[..end]);
    newer[end..].copy_from_slice(&sum.to_le_bytes());
    assert!(matches!(
        simulation.restore(Cursor::new(newer)),
        Err(CheckpointError::Version { found: 6, reads: 5 })
    ));
    // The same configuration over data of another width: the sizes do not fit.
    let mut narrow = Simulation::of(&small_config(), blobs(10, 600, 90)).unwrap();
    assert!(matches!(narrow.restore(Cursor::new(&bytes)), Err(CheckpointError::Damaged(_))));
    assert_eq!(narrow.rounds_done(), 0);
}

/// A checkpoint with `state` in a right frame.
fn sealed(checkpoint: &[u8], state: &[u8]) -> Vec<u8> {
    let mut file = [&checkpoint[..48], state].concat();
    file.extend(crc32fast::hash(&file).to_le_bytes());
    file
}

#[test]
fn a_state_with_one_changed_byte_is_refused_or_continues_without_a_panic() {
    let config = small_config();
    let whole = saved(&config, 1);
    let state = &whole[48..whole.len() - 4];
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    // θ of 203 entries is near the beginning; the lengths and the counts follow.
    let theta = 2 + 4 * simulation.theta().len();
    for at in (0..4).chain(theta..state.len()) {
        for largest in [false, true] {
            let mut changed = state.to_vec();
            // A number of ten bytes, 2⁶⁴ − 1, in place of one byte; or its lowest bit.
            let number = [[0xff; 9].as_slice(), &[1]].concat();
            if largest {
                drop(changed.splice(at..=at, number));
            } else {
                changed[at] ^= 1;
            }
            if simulation.restore(Cursor::new(sealed(&whole, &changed))).is_ok() {
                let _ = (simulation.step(), simulation.outcome());
            }
        }
    }
    simulation.restore(Cursor::new(&whole)).unwrap();
    assert_eq!(simulation.rounds_done(), 1);
}

#[test]
fn a_state_is_valid_for_a_longer_run_if_it_does_not_depend_on_the_number_of_rounds() {
    let dataset = blobs(20, 600, 90);
    let mut short = small_config();
    (short.run.rounds, short.run.evaluate_every) = (6, 3);
    let mut long = short.clone();
    long.run.rounds = 10;
    let whole = Simulation::of(&long, Arc::clone(&dataset)).unwrap().run(|_| ()).unwrap();
    for done in [2, 5, 6] {
        let mut longer = Simulation::of(&long, Arc::clone(&dataset)).unwrap();
        longer.restore(Cursor::new(saved(&short, done))).unwrap();
        assert_eq!(longer.run(|_| ()).unwrap(), whole, "after {done} rounds");
    }
    let refused = |short: &Config, done: u64, long: &Config| {
        let mut longer = Simulation::of(long, Arc::clone(&dataset)).unwrap();
        let result = longer.restore(Cursor::new(saved(short, done)));
        assert!(matches!(result, Err(CheckpointError::OtherConfig)));
    };
    // A shorter run does not have this round.
    refused(&long, 8, &short);
    // The sixth round would not have been evaluated in a longer run.
    (short.run.evaluate_every, long.run.evaluate_every) = (4, 4);
    refused(&short, 6, &long);
    (short.defense.participation_cap, long.defense.participation_cap) = (true, true);
    refused(&short, 2, &long);
}

/// A disk with room for this number of bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(std::io::Error::new(std::io::ErrorKind::StorageFull, "no room"));
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_at_any_position() {
    let mut config = small_config();
    config.set("learn.mlp.hidden", vec![2000]).unwrap();
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    simulation.step().unwrap();
    let mut whole = Vec::new();
    simulation.checkpoint(&mut whole).unwrap();
    for room in [0, 10, whole.len() / 2, whole.len() - 1] {
        match simulation.checkpoint(Full(room)) {
            Err(CheckpointError::Io(error)) => assert_eq!(error.kind(), std::io::ErrorKind::StorageFull),
            other => panic!("{room} bytes: {other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_checkpoint_is_noticed_and_changes_nothing(at in 0.0..1.0f64, bit in 0u8..8, cut: bool) {
        let mut bytes = saved(&small_config(), 1);
        let at = (at * bytes.len() as f64) as usize;
        if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
        let mut simulation = Simulation::of(&small_config(), blobs(20, 600, 90)).unwrap();
        let theta = simulation.theta().to_vec();
        prop_assert!(simulation.restore(Cursor::new(bytes)).is_err());
        prop_assert_eq!(simulation.rounds_done(), 0);
        prop_assert_eq!(simulation.theta(), &theta[..]);
    }

    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes: Vec<u8>, sealed: bool) {
        // With a right checksum any state after it is parsed.
        let mut file = saved(&small_config(), 0)[..40].to_vec();
        file.extend(bytes);
        if sealed {
            file.extend(crc32fast::hash(&file).to_le_bytes());
        }
        let mut simulation = Simulation::of(&small_config(), blobs(20, 600, 90)).unwrap();
        prop_assert!(simulation.restore(Cursor::new(file)).is_err());
    }
}
