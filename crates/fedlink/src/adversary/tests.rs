use super::*;
use crate::compress::{SparseUpdate, Values};
use proptest::prelude::*;

fn members(devices: usize, share: f64, seed: u64) -> Vec<usize> {
    let adversary = Adversary::new(devices, share, seed, Box::new(SignFlip {}));
    adversary.map_or_else(Vec::new, |a| (0..devices).filter(|&m| a.has(DeviceId::new(m))).collect())
}

#[test]
fn the_share_is_rounded_to_whole_devices_and_zero_means_none() {
    for (share, count) in [(0.0, 0), (0.01, 0), (0.0125, 1), (0.1, 4), (0.3, 12), (1.0, 40)] {
        assert_eq!(members(40, share, 3).len(), count, "{share}");
    }
}

#[test]
fn every_device_is_adversarial_equally_often_over_the_seeds() {
    let mut counts = [0u32; 10];
    for seed in 0..5000 {
        members(10, 0.3, seed).into_iter().for_each(|m| counts[m] += 1);
    }
    // Each count is binomial(5000, 0.3) with variance 1050. Ten of them with the sum 15 000 have the sum
    // of squares over 1050·10/9, the variance of one given the sum, with 9 degrees of freedom.
    let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 1500.0).powi(2) / (1050.0 * 10.0 / 9.0)).sum();
    assert!(chi2 < 33.7, "χ² = {chi2} on 9 degrees of freedom (p < 1e-4)");
}

fn values(update: &Encoded) -> Vec<f32> {
    match update {
        Encoded::Sparse(SparseUpdate { values: Values::Shared(value), .. }) => vec![*value],
        Encoded::Sparse(SparseUpdate { values: Values::Each(values), .. }) => values.clone(),
        Encoded::Sparse(SparseUpdate { values: Values::Grid(grid), .. }) => grid.values().collect(),
        other => panic!("{other:?} is not sparse"),
    }
}

fn indices(update: &Encoded) -> Vec<u32> {
    let mut indices = Vec::new();
    update.for_each(|i, _| indices.push(i));
    indices
}

proptest! {
    #[test]
    fn attacks_on_values_are_as_documented(
        numbers in prop::collection::vec(-1e30..1e30f32, 1..20), shared: bool, amount in 1e-3..1e20f32,
    ) {
        let indices_of = (0..numbers.len() as u32).collect();
        let honest = if shared { Values::Shared(numbers[0]) } else { Values::Each(numbers) };
        let honest = Encoded::Sparse(SparseUpdate { indices: indices_of, values: honest });
        let after = |attack: &dyn Attack| {
            let mut update = honest.clone();
            attack.tamper(&mut update);
            assert_eq!(indices(&update), indices(&honest));
            values(&update)
        };
        let before = values(&honest);
        let (flipped, broken) = (after(&SignFlip {}), after(&NotANumber {}));
        prop_assert_eq!(&flipped, &before.iter().map(|x| -x).collect::<Vec<f32>>());
        prop_assert!(broken.iter().all(|x| !x.is_finite()));
        for (huge, x) in after(&Huge { amount }).iter().zip(&before) {
            let exact = f64::from(*x) * f64::from(amount);
            let limited = exact.clamp(f64::from(f32::MIN), f64::from(f32::MAX));
            prop_assert!(huge.is_finite() && (f64::from(*huge) - limited).abs() <= 1e-7 * limited.abs());
        }
        let lie = |report, upload| InflatedNorm { report, amount, upload };
        let honest_upload = lie(FalseReport::Times, FalseUpload::Honest);
        prop_assert_eq!(after(&honest_upload), before.clone());
        prop_assert_eq!(after(&lie(FalseReport::Constant, FalseUpload::SignFlip)), flipped);
        prop_assert_eq!(honest_upload.report(2.0), 2.0 * amount);
        prop_assert_eq!(lie(FalseReport::Constant, FalseUpload::Honest).report(2.0), amount);
        prop_assert!(honest_upload.report(f32::MAX).is_finite());
    }
}

#[test]
fn attacks_on_bytes_are_as_documented() {
    let devices = [4, 7, 9].map(DeviceId);
    let payloads = [vec![1u8, 2], vec![3, 4, 5], vec![]];
    let room = [80, 83, 0];
    let traffic = |t, payloads| Traffic { seed: 1, t, devices: &devices, payloads, room: &room };
    // Garbage fills the budget, and is new in every round and for every device.
    let garbage = |round, index| Garbage {}.payload(&traffic(round, &payloads), index).unwrap();
    assert_eq!((garbage(0, 0).len(), garbage(0, 1).len()), (10, 10));
    assert_ne!(garbage(0, 0), garbage(1, 0));
    assert_ne!(garbage(0, 0), garbage(0, 1));
    assert_eq!(garbage(3, 1), garbage(3, 1));
    // A replay is the first payload in every round, also after a checkpoint.
    let mut replay = Replay::default();
    assert_eq!(replay.payload(&traffic(0, &payloads), 1), Some(vec![3, 4, 5]));
    let later = [vec![8u8], vec![9], vec![]];
    assert_eq!(replay.payload(&traffic(1, &later), 1), Some(vec![3, 4, 5]));
    let mut resumed = Replay::default();
    resumed.load(replay.save()).unwrap();
    assert_eq!(resumed.payload(&traffic(2, &later), 1), Some(vec![3, 4, 5]));
    assert_eq!(resumed.payload(&traffic(2, &later), 0), Some(vec![8]));
    assert!(resumed.load(State(vec![0xff])).is_err());
    // It sends the next device's payload, or the last that it overheard.
    let mut stolen = Stolen::default();
    assert_eq!(stolen.payload(&traffic(0, &payloads), 0), Some(vec![3, 4, 5]));
    assert_eq!(stolen.payload(&traffic(0, &payloads), 1), Some(vec![1, 2]));
    let alone = [vec![6u8], vec![], vec![]];
    assert_eq!(stolen.payload(&traffic(1, &alone), 0), None, "it has overheard nothing yet");
    stolen.listen(&traffic(0, &payloads));
    let state = stolen.save();
    stolen = Stolen::default();
    stolen.load(state).unwrap();
    assert_eq!(stolen.payload(&traffic(1, &alone), 0), Some(vec![3, 4, 5]));
}

/// The output of an attack over several rounds; `between` is called before each round.
fn history(make: &dyn Fn() -> Box<dyn Attack>, between: impl Fn(&mut Box<dyn Attack>)) -> Vec<String> {
    let mut attack = make();
    let devices = [4, 7, 9].map(DeviceId);
    let round = |t: u64| {
        between(&mut attack);
        let bytes = |m: u64| (0..3 + t % 4 + m).map(|i| (t * 31 + m * 7 + i) as u8 | 1).collect::<Vec<u8>>();
        let payloads = if t % 3 == 2 { [bytes(0), vec![], vec![]] } else { [bytes(0), bytes(1), bytes(2)] };
        let traffic = Traffic { seed: 3, t, devices: &devices, payloads: &payloads, room: &[64, 80, 96] };
        let mut update =
            Encoded::Sparse(SparseUpdate { indices: vec![1, 5], values: Values::Each(vec![0.5, -2.0]) });
        attack.tamper(&mut update);
        let sent: Vec<Option<Vec<u8>>> = (0..3).map(|i| attack.payload(&traffic, i)).collect();
        attack.listen(&traffic);
        format!("{} {update:?} {sent:?}", attack.report(1.5 + t as f32))
    };
    (0..10).map(round).collect()
}

#[test]
fn every_attack_is_deterministic_and_continues_from_its_saved_state() {
    for entry in ATTACKS {
        let make = || entry.build(&toml::Table::new(), &crate::parts::Scope::default(), &()).unwrap();
        let whole = history(&make, |_| ());
        assert_eq!(history(&make, |_| ()), whole, "{}: two fresh instances", entry.name);
        let resumed = history(&make, |attack| {
            let state = attack.save();
            *attack = make();
            attack.load(state).unwrap();
            assert!(attack.load(State(vec![0xff; 9])).is_err(), "{}", entry.name);
        });
        assert_eq!(resumed, whole, "{}: saved and loaded before every round", entry.name);
    }
}

#[test]
fn every_attack_keeps_indices_and_changes_bytes_only_if_it_declares_so() {
    for entry in ATTACKS {
        let mut attack = entry.build(&toml::Table::new(), &crate::parts::Scope::default(), &()).unwrap();
        for honest in [0.0, 1e-30, 1.0, f32::MAX] {
            let report = attack.report(honest);
            assert!(report.is_finite() && report >= 0.0, "{}: {report}", entry.name);
        }
        let honest = Encoded::Sparse(SparseUpdate {
            indices: vec![0, 2, 9],
            values: Values::Each(vec![1.0, -1.0, 0.0]),
        });
        let mut update = honest.clone();
        attack.tamper(&mut update);
        assert_eq!(indices(&update), indices(&honest), "{}", entry.name);
        let traffic =
            Traffic { seed: 1, t: 0, devices: &[DeviceId(0)], payloads: &[vec![1, 2]], room: &[32] };
        let instead = attack.payload(&traffic, 0);
        assert!(instead.is_none() || attack.acts_on_bytes(), "{}", entry.name);
        assert!(
            instead.is_none_or(|bytes| 8 * bytes.len() <= 32),
            "{}: more than its budget holds",
            entry.name
        );
    }
}

#[test]
fn an_attack_does_not_change_honest_or_silent_devices() {
    let mut adversary = Adversary::new(6, 0.5, 2, Box::new(Garbage {})).unwrap();
    let devices: Vec<DeviceId> = DeviceId::all(6).collect();
    let before: Vec<Vec<u8>> =
        (0..6).map(|m| if m % 2 == 0 { vec![m as u8 + 1; 5] } else { vec![] }).collect();
    let mut after = before.clone();
    adversary.transmit(0, &devices, &[80; 6], &mut after);
    for device in devices {
        let m = device.index();
        let changed = adversary.has(device) && m.is_multiple_of(2);
        assert_eq!(after[m] != before[m], changed, "device {m}");
        let update = Encoded::Sparse(SparseUpdate { indices: vec![1], values: Values::Shared(2.0) });
        assert_eq!(adversary.tampered(device, &update).is_some(), adversary.has(device));
    }
}
