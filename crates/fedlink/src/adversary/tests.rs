use super::*;
use proptest::prelude::*;

fn config(devices: u64, share: f64, seed: u64) -> Config {
    let mut config = Config::default();
    (config.data.devices, config.adversary.share, config.run.seed) = (devices, share, seed);
    config
}

fn hostile(config: &Config) -> Vec<usize> {
    let adversary = Adversary::new(config);
    adversary.map_or_else(Vec::new, |a| (0..a.hostile.len()).filter(|&m| a.hostile[m]).collect())
}

#[test]
fn the_share_is_rounded_to_whole_devices_and_zero_means_none() {
    for (share, count) in [(0.0, 0), (0.01, 0), (0.0125, 1), (0.1, 4), (0.3, 12), (1.0, 40)] {
        assert_eq!(hostile(&config(40, share, 3)).len(), count, "{share}");
    }
}

#[test]
fn every_device_is_hostile_equally_often_over_the_seeds() {
    let mut counts = [0u32; 10];
    for seed in 0..5000 {
        hostile(&config(10, 0.3, seed)).into_iter().for_each(|m| counts[m] += 1);
    }
    // Each count is binomial(5000, 0.3) with variance 1050; over ten of them that add up to 15 000 the sum of squares,
    // over the variance 1050·10/9 of one given the sum, has 9 degrees of freedom.
    let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 1500.0).powi(2) / (1050.0 * 10.0 / 9.0)).sum();
    assert!(chi2 < 33.7, "χ² = {chi2} on 9 degrees of freedom (p < 1e-4)");
}

fn values(update: &SparseUpdate) -> Vec<f32> {
    match &update.values {
        Values::Shared(value) => vec![*value],
        Values::Each(values) => values.clone(),
    }
}

proptest! {
    #[test]
    fn attacks_on_values_do_what_they_say(numbers in prop::collection::vec(-1e30..1e30f32, 1..20), shared: bool, amount in 1e-3..1e20f32) {
        let indices = (0..numbers.len() as u32).collect();
        let honest = if shared { Values::Shared(numbers[0]) } else { Values::Each(numbers) };
        let honest = SparseUpdate { indices, values: honest };
        let after = |attack: &dyn Attack| {
            let mut update = honest.clone();
            attack.tamper(&mut update);
            assert_eq!(update.indices, honest.indices);
            values(&update)
        };
        let before = values(&honest);
        prop_assert_eq!(after(&SignFlip), before.iter().map(|x| -x).collect::<Vec<f32>>());
        prop_assert!(after(&NotANumber).iter().all(|x| !x.is_finite()));
        for (huge, x) in after(&Huge { amount }).iter().zip(&before) {
            let exact = f64::from(*x) * f64::from(amount);
            let limited = exact.clamp(f64::from(f32::MIN), f64::from(f32::MAX));
            prop_assert!(huge.is_finite() && (f64::from(*huge) - limited).abs() <= 1e-7 * limited.abs());
        }
        let lie = |report, upload| InflatedNorm { report, amount, upload };
        let honest_upload = lie(HostileReport::Times, HostileUpload::Honest);
        prop_assert_eq!(after(&honest_upload), before.clone());
        prop_assert_eq!(after(&lie(HostileReport::Constant, HostileUpload::SignFlip)), after(&SignFlip));
        prop_assert_eq!(honest_upload.report(2.0), 2.0 * amount);
        prop_assert_eq!(lie(HostileReport::Constant, HostileUpload::Honest).report(2.0), amount);
        prop_assert!(honest_upload.report(f32::MAX).is_finite());
    }
}

#[test]
fn attacks_on_bytes_send_what_they_say() {
    let devices = [4, 7, 9].map(DeviceId);
    let payloads = [vec![1u8, 2], vec![3, 4, 5], vec![]];
    let room = [80, 83, 0];
    let air = |round, payloads| Air { seed: 1, round, devices: &devices, payloads, room: &room };
    // Garbage fills the budget, and is new in every round and for every device.
    let garbage = |round, place| Garbage.payload(&air(round, &payloads), place).unwrap();
    assert_eq!((garbage(0, 0).len(), garbage(0, 1).len()), (10, 10));
    assert_ne!(garbage(0, 0), garbage(1, 0));
    assert_ne!(garbage(0, 0), garbage(0, 1));
    assert_eq!(garbage(3, 1), garbage(3, 1));
    // A replay is the first payload for ever, also after a checkpoint.
    let replay = Replay::default();
    assert_eq!(replay.payload(&air(0, &payloads), 1), Some(vec![3, 4, 5]));
    let later = [vec![8u8], vec![9], vec![]];
    assert_eq!(replay.payload(&air(1, &later), 1), Some(vec![3, 4, 5]));
    let mut resumed = Replay::default();
    resumed.restore(&replay.state()).unwrap();
    assert_eq!(resumed.payload(&air(2, &later), 1), Some(vec![3, 4, 5]));
    assert_eq!(resumed.payload(&air(2, &later), 0), Some(vec![8]));
    assert!(resumed.restore(&[0xff]).is_err());
    // A thief takes the next device's, or what it heard last.
    let mut stolen = Stolen::default();
    assert_eq!(stolen.payload(&air(0, &payloads), 0), Some(vec![3, 4, 5]));
    assert_eq!(stolen.payload(&air(0, &payloads), 1), Some(vec![1, 2]));
    let alone = [vec![6u8], vec![], vec![]];
    assert_eq!(stolen.payload(&air(1, &alone), 0), None, "it has heard nothing yet");
    stolen.listen(&air(0, &payloads));
    let state = stolen.state();
    stolen = Stolen::default();
    stolen.restore(&state).unwrap();
    assert_eq!(stolen.payload(&air(1, &alone), 0), Some(vec![3, 4, 5]));
}
