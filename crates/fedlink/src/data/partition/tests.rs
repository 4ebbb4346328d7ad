//! What every split must be, whatever its numbers; and each split against the distribution it claims to be.

use super::*;
use crate::data::{Features, Samples};
use crate::rng::{Purpose, stream};
use PartitionKind::{Classes, Dirichlet, Iid, Quantity, Shards};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

/// Training samples with so many of each class, in mixed order.
fn dataset(counts: &[usize]) -> Dataset {
    let mut labels: Vec<u8> = (0u8..).zip(counts).flat_map(|(label, &count)| vec![label; count]).collect();
    stream(5, Purpose::Test, 0, 0).shuffle(&mut labels);
    let train = Samples { features: Features::Bytes(vec![0; labels.len()]), labels };
    let test = Samples { features: Features::Bytes(vec![0]), labels: vec![0] };
    Dataset { name: "mixed".into(), features: 1, shape: [1, 1, 1], classes: counts.len(), train, test }
}

fn config(kind: PartitionKind, devices: usize, per_device: usize) -> Config {
    let mut config = Config::default();
    config.data.partition = kind;
    config.data.devices = devices as u64;
    config.data.samples_per_device = per_device as u64;
    config
}

fn samples_of(partition: &dyn Partition, device: usize) -> Vec<u32> {
    // Whatever was in the vector must not matter.
    let mut samples = vec![u32::MAX; 3];
    partition.samples_of(DeviceId::new(device), &mut samples);
    samples
}

fn error(config: &Config, dataset: &Dataset) -> String {
    partition(config, dataset).map(|_| ()).unwrap_err().to_string()
}

/// Mean of `values` and five times its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 5.0 * (variance / n).sqrt())
}

#[track_caller]
fn assert_mean(values: &[f64], truth: f64) {
    let (mean, slack) = mean(values);
    assert!((mean - truth).abs() <= slack, "{mean} is not within {slack} of {truth}");
}

const ALL: &[PartitionKind] = &[Iid, Classes, Dirichlet, Shards, Quantity];

/// A training set and a configuration that it can be split by, in one of the ways `kinds`.
fn possible(kinds: &[PartitionKind]) -> impl Strategy<Value = (Vec<usize>, Config)> {
    let kinds = prop::sample::select(kinds.to_vec());
    let numbers = (any::<[u16; 4]>(), any::<[bool; 2]>(), 0u64..1 << 40, -9.0..9.0, 0.0..3.0);
    (prop::collection::vec(1usize..40, 1..8), kinds, numbers).prop_map(
        |(counts, kind, ([a, b, c, d], [overlapping, free], seed, log_alpha, spread))| {
            let pick = |raw: u16, most: usize| 1 + usize::from(raw) % most;
            let (train, fewest) = (counts.iter().sum::<usize>(), *counts.iter().min().unwrap());
            let devices = pick(a, train.min(20));
            let disjoint = kind.sharings()[0] == Sharing::Disjoint && !overlapping;
            let mut config = config(kind, devices, pick(b, if disjoint { train / devices } else { train }));
            config.run.seed = seed;
            config.data.alpha = 10f64.powf(log_alpha);
            config.data.size_spread = spread;
            config.data.shards_per_device = pick(c, train / devices) as u64;
            if free {
                config.data.sizes = Sizes::Free;
            }
            if kind.sharings().len() == 2 && overlapping {
                config.data.sharing = Some(Sharing::Overlapping);
            }
            if kind == Classes {
                let chosen = pick(c, counts.len());
                config.data.classes_per_device = chosen as u64;
                config.data.samples_per_device =
                    (chosen + usize::from(d) % (chosen * (fewest - 1) + 1)) as u64;
            }
            (counts, config)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_device_has_samples_that_exist_none_twice_and_as_many_as_it_says((counts, config) in possible(ALL)) {
        let data = dataset(&counts);
        let split = partition(&config, &data).unwrap();
        let (devices, b) = (config.data.devices as usize, config.data.samples_per_device as usize);
        let mut total = 0;
        for device in 0..devices {
            let samples = samples_of(&*split, device);
            let distinct: BTreeSet<u32> = samples.iter().copied().collect();
            prop_assert!(!samples.is_empty());
            prop_assert_eq!(distinct.len(), samples.len());
            prop_assert!((*distinct.last().unwrap() as usize) < data.train.len());
            prop_assert_eq!(split.size_of(DeviceId::new(device)), samples.len());
            let equal = match config.data.partition {
                Iid | Classes => true,
                Dirichlet => config.data.sizes == Sizes::Equal,
                Shards | Quantity => false,
            };
            prop_assert!(!equal || samples.len() == b);
            total += samples.len();
        }
        match (config.data.partition, config.data.sharing()) {
            (Shards, _) => prop_assert_eq!(total, data.train.len()),
            (Quantity, Sharing::Disjoint) => prop_assert_eq!(total, devices * b),
            _ => {}
        }
    }

    #[test]
    fn disjoint_devices_share_nothing((counts, config) in possible(&[Iid, Shards, Quantity])) {
        prop_assume!(config.data.sharing() == Sharing::Disjoint);
        let data = dataset(&counts);
        let split = partition(&config, &data).unwrap();
        let mut taken = BTreeSet::new();
        for device in 0..config.data.devices as usize {
            prop_assert!(samples_of(&*split, device).into_iter().all(|sample| taken.insert(sample)));
        }
    }

    #[test]
    fn a_device_s_samples_do_not_depend_on_who_else_was_asked_or_in_what_order((counts, config) in possible(ALL)) {
        let data = dataset(&counts);
        let devices = config.data.devices as usize;
        let one = partition(&config, &data).unwrap();
        let forward: Vec<_> = (0..devices).map(|device| samples_of(&*one, device)).collect();
        let other = partition(&config, &data).unwrap();
        let last_only = samples_of(&*other, devices - 1);
        prop_assert_eq!(&last_only, &forward[devices - 1]);
        for device in (0..devices).rev() {
            prop_assert_eq!(&samples_of(&*other, device), &forward[device]);
        }
    }

    #[test]
    fn a_device_has_the_classes_it_was_promised_equally_often((counts, config) in possible(&[Classes])) {
        let data = dataset(&counts);
        let report = describe(&*partition(&config, &data).unwrap(), &data, config.data.devices as usize);
        for counts in report.class_counts {
            let there: Vec<usize> = counts.into_iter().filter(|&count| count > 0).collect();
            prop_assert_eq!(there.len() as u64, config.data.classes_per_device);
            prop_assert!(there.iter().max().unwrap() - there.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn a_device_has_whole_shards_of_the_sorted_training_set((counts, config) in possible(&[Shards])) {
        let train: usize = counts.iter().sum();
        let (devices, s) = (config.data.devices as usize, config.data.shards_per_device as usize);
        let data = dataset(&counts);
        let split = partition(&config, &data).unwrap();
        let mut sorted: Vec<usize> = (0..train).collect();
        sorted.sort_by_key(|&sample| data.train.labels[sample]);
        let mut place = vec![0; train];
        sorted.iter().enumerate().for_each(|(at, &sample)| place[sample] = at);
        let shards = devices * s;
        let shard_at = |at: usize| (0..shards).rfind(|j| j * train / shards <= at).unwrap();
        for device in 0..devices {
            let samples = samples_of(&*split, device);
            let mine: BTreeSet<usize> = samples.iter().map(|&i| shard_at(place[i as usize])).collect();
            prop_assert_eq!(mine.len(), s);
            let held: usize = mine.iter().map(|j| (j + 1) * train / shards - j * train / shards).sum();
            prop_assert_eq!(held, samples.len());
            let classes: BTreeSet<u8> = samples.iter().map(|&i| data.train.labels[i as usize]).collect();
            if train.div_ceil(shards) <= *counts.iter().min().unwrap() {
                prop_assert!(classes.len() <= 2 * s);
            }
        }
    }

    #[test]
    fn equal_amounts_are_iid_sample_for_sample((counts, mut config) in possible(&[Iid, Quantity])) {
        let data = dataset(&counts);
        config.data.size_spread = 0.0;
        config.data.partition = Iid;
        let iid = partition(&config, &data).unwrap();
        config.data.partition = Quantity;
        let quantity = partition(&config, &data).unwrap();
        for device in 0..config.data.devices as usize {
            prop_assert_eq!(samples_of(&*iid, device), samples_of(&*quantity, device));
        }
    }
}

#[test]
fn a_seed_is_one_split_and_another_seed_another() {
    let data = dataset(&[100, 100, 100]);
    for &kind in ALL {
        let mut config = config(kind, 5, 20);
        let first = samples_of(&*partition(&config, &data).unwrap(), 3);
        config.run.seed = 1;
        assert_ne!(first, samples_of(&*partition(&config, &data).unwrap(), 3), "{kind:?}");
    }
}

#[test]
fn log_normal_sizes_have_mean_b_and_their_variance() {
    let (b, sigma) = (100, 0.5f64);
    let mut config = config(Quantity, 20_000, b);
    config.data.sharing = Some(Sharing::Overlapping);
    config.data.size_spread = sigma;
    let split = partition(&config, &dataset(&[5000, 5000])).unwrap();
    let sizes: Vec<f64> = (0..20_000).map(|m| split.size_of(DeviceId(m)) as f64).collect();
    assert_mean(&sizes, b as f64);
    // Var[1 + (B−1)·X] = (B−1)²·(e^σ² − 1), and 1/12 for rounding.
    let squares: Vec<f64> = sizes.iter().map(|n| (n - b as f64).powi(2)).collect();
    assert_mean(&squares, 99.0 * 99.0 * ((sigma * sigma).exp() - 1.0) + 1.0 / 12.0);
    // The median of a log-normal is e^(−σ²/2) times its mean: half of the devices are below.
    let median = 1.0 + 99.0 * (-sigma * sigma / 2.0).exp();
    let below = sizes.iter().filter(|&&n| n < median).count() as f64;
    assert!((below - 10_000.0).abs() < 5.0 * 5000f64.sqrt(), "{below} of 20 000 below {median}");
}

#[test]
fn disjoint_log_normal_sizes_share_the_samples_in_proportion() {
    let (devices, b) = (50usize, 40usize);
    let mut config = config(Quantity, devices, b);
    config.data.size_spread = 1.2;
    let split = partition(&config, &dataset(&[1000, 1000])).unwrap();
    let amounts: Vec<f64> = (0..devices as u64)
        .map(|m| (1.2 * crate::rng::stream(0, Purpose::Partition, 2, m).normal()).exp())
        .collect();
    let total: f64 = amounts.iter().sum();
    for (m, amount) in amounts.iter().enumerate() {
        let share = 1.0 + ((b - 1) * devices) as f64 * amount / total;
        let size = split.size_of(DeviceId::new(m)) as f64;
        assert!((size - share).abs() <= 1.0 + 1e-9, "device {m}: {size} for a share of {share}");
    }
}

#[test]
fn dirichlet_class_counts_have_the_moments_of_the_dirichlet_multinomial() {
    let (classes, b) = (4.0, 20.0);
    let data = dataset(&[400; 4]);
    for alpha in [0.05, 0.5, 1.0, 20.0] {
        let mut config = config(Dirichlet, 20_000, b as usize);
        config.data.alpha = alpha;
        let split = partition(&config, &data).unwrap();
        let counts: Vec<[f64; 4]> = (0..20_000)
            .map(|device| {
                let mut counts = [0.0; 4];
                samples_of(&*split, device).iter().for_each(|&i| counts[data.train.label(i as usize)] += 1.0);
                counts
            })
            .collect();
        let p = 1.0 / classes;
        let factor = b * (b + classes * alpha) / (1.0 + classes * alpha);
        for c in 0..4 {
            let of = |value: &dyn Fn(&[f64; 4]) -> f64| counts.iter().map(value).collect::<Vec<f64>>();
            assert_mean(&of(&|n| n[c]), b * p);
            assert_mean(&of(&|n| (n[c] - b * p).powi(2)), p * (1.0 - p) * factor);
            assert_mean(&of(&|n| (n[c] - b * p) * (n[(c + 1) % 4] - b * p)), -p * p * factor);
        }
    }
}

#[test]
fn free_dirichlet_sizes_have_mean_b_and_deviation_b_over_root_alpha_c() {
    let (b, alpha) = (50.0, 2.0);
    let mut config = config(Dirichlet, 20_000, 50);
    (config.data.alpha, config.data.sizes) = (alpha, Sizes::Free);
    let split = partition(&config, &dataset(&[600; 4])).unwrap();
    let sizes: Vec<f64> = (0..20_000).map(|m| split.size_of(DeviceId(m)) as f64).collect();
    assert_mean(&sizes, b);
    let squares: Vec<f64> = sizes.iter().map(|n| (n - b).powi(2)).collect();
    assert_mean(&squares, b * b / (4.0 * alpha) + 1.0 / 12.0);
}

#[test]
fn a_dirichlet_device_that_has_all_of_a_class_goes_on_with_others_or_stays_smaller() {
    let data = dataset(&[5, 7, 1000, 0]);
    let mut config = config(Dirichlet, 200, 100);
    config.data.alpha = 1e-3;
    let report = |config: &Config| describe(&*partition(config, &data).unwrap(), &data, 200);
    let equal = report(&config);
    assert!(equal.class_counts.iter().any(|n| n[0] == 5) && equal.class_counts.iter().any(|n| n[1] == 7));
    assert_eq!(equal.sizes, [100; 200]);
    // Even a mix so sharp that nothing else is left of it as a float.
    config.data.alpha = 1e-9;
    assert_eq!(report(&config).sizes, [100; 200]);
    config.data.alpha = 0.2;
    config.data.sizes = Sizes::Free;
    let free = report(&config);
    assert!(free.class_counts.iter().any(|n| n[0] == 5 && n[1] < 7), "taken up, and not made up for");
    assert!(free.class_counts.iter().all(|n| n[0] <= 5 && n[1] <= 7 && n[3] == 0));
}

/// ½·Σ_c |n_c/n − p_c| in floats.
fn distance(counts: &[usize], p: &[f64]) -> f64 {
    let n = counts.iter().sum::<usize>() as f64;
    counts.iter().zip(p).map(|(&c, p)| (c as f64 / n - p).abs()).sum::<f64>() / 2.0
}

fn ln_choose(n: usize, k: usize) -> f64 {
    (0..k).map(|i| ((n - i) as f64 / (i + 1) as f64).ln()).sum()
}

#[test]
fn the_heterogeneity_of_iid_devices_is_that_of_the_hypergeometric_distribution() {
    let (counts, b, train) = ([300, 200, 500], 50, 1000);
    let data = dataset(&counts);
    let mut config = config(Iid, 1000, b);
    config.data.sharing = Some(Sharing::Overlapping);
    let report = describe(&*partition(&config, &data).unwrap(), &data, 1000);
    let p = counts.map(|count| count as f64 / f64::from(train));
    let expected: f64 = counts
        .iter()
        .zip(p)
        .flat_map(|(&count, p)| (0..=b).map(move |n| (count, p, n)))
        .map(|(count, p, n)| {
            let ln = ln_choose(count, n) + ln_choose(1000 - count, b - n) - ln_choose(1000, b);
            ln.exp() * (n as f64 / b as f64 - p).abs() / 2.0
        })
        .sum();
    let distances: Vec<f64> = report.class_counts.iter().map(|counts| distance(counts, &p)).collect();
    assert_mean(&distances, expected);
    assert!((report.heterogeneity - mean(&distances).0).abs() < 1e-12);
    assert_eq!((report.train_counts, report.sizes), (counts.to_vec(), vec![b; 1000]));
}

#[test]
fn two_balanced_classes_of_ten_are_four_fifths_away_from_iid() {
    let data = dataset(&[100; 10]);
    let report = describe(&*partition(&config(Classes, 40, 60), &data).unwrap(), &data, 40);
    assert!((report.heterogeneity - 0.8).abs() < 1e-12, "{}", report.heterogeneity);
}

#[test]
fn a_dirichlet_split_tends_to_iid_for_large_alpha_and_to_one_class_for_small() {
    let (b, data) = (60, dataset(&[1000; 10]));
    let report = |alpha| {
        let mut config = config(Dirichlet, 1000, b);
        config.data.alpha = alpha;
        describe(&*partition(&config, &data).unwrap(), &data, 1000)
    };
    // ½·Σ_c E|n_c/B − 1/10| with n_c ~ Binomial(B, 1/10).
    let expected: f64 = (0..=b)
        .map(|n| {
            let ln = ln_choose(b, n) + n as f64 * 0.1f64.ln() + (b - n) as f64 * 0.9f64.ln();
            5.0 * ln.exp() * (n as f64 / b as f64 - 0.1).abs()
        })
        .sum();
    let distances: Vec<f64> =
        report(1e9).class_counts.iter().map(|counts| distance(counts, &[0.1; 10])).collect();
    assert_mean(&distances, expected);

    let sharp = report(1e-9);
    assert!(sharp.class_counts.iter().all(|counts| counts.contains(&b)), "one class on every device");
    assert!((sharp.heterogeneity - 0.9).abs() < 1e-12);
    let by_alpha = [1e-2, 0.1, 1.0, 10.0, 1e3].map(|alpha| report(alpha).heterogeneity);
    assert!(by_alpha.is_sorted_by(|a, b| a > b), "{by_alpha:?}");
}

#[test]
fn a_report_on_very_many_devices_looks_at_the_first_thousand_and_says_so() {
    let data = dataset(&[50, 50]);
    let report = describe(&*partition(&config(Classes, 5000, 10), &data).unwrap(), &data, 5000);
    assert_eq!((report.devices, report.described), (5000, 1000));
    assert_eq!((report.sizes.len(), report.class_counts.len()), (1000, 1000));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((json["devices"].as_u64(), json["described"].as_u64()), (Some(5000), Some(1000)));
    assert_eq!(json["train_counts"], serde_json::json!([50, 50]));
}

#[test]
fn a_split_that_cannot_be_names_the_key_and_the_allowed_range() {
    let data = dataset(&[40, 30, 50]);
    let with = |kind, devices, per_device, change: fn(&mut Config)| {
        let mut config = config(kind, devices, per_device);
        change(&mut config);
        error(&config, &data)
    };
    let problems = [
        (with(Iid, 1, 121, |_| ()), "data.samples_per_device: is 121, but must be in 1..=120"),
        (with(Iid, 5, 25, |_| ()), "data.devices: is 5, but must be in 1..=4"),
        (with(Quantity, 5, 25, |_| ()), "data.devices: is 5, but must be in 1..=4"),
        (with(Quantity, 1, 121, |_| ()), "data.samples_per_device: is 121, but must be in 1..=120"),
        (
            with(Classes, 5, 20, |c| c.data.classes_per_device = 4),
            "data.classes_per_device: is 4, but must be in 1..=3",
        ),
        (with(Classes, 5, 61, |_| ()), "data.samples_per_device: is 61, but must be in 2..=60"),
        (with(Classes, 5, 1, |_| ()), "data.samples_per_device: is 1, but must be in 2..=60"),
        (with(Dirichlet, 5, 121, |_| ()), "data.samples_per_device: is 121, but must be in 1..=120"),
        (with(Dirichlet, 5, 20, |c| c.data.alpha = f64::NAN), "data.alpha: is NaN, but must be a number in"),
        (
            with(Dirichlet, 5, 20, |c| c.data.alpha = 0.0),
            "data.alpha: is 0, but must be a number in 1e-9..=1e9",
        ),
        (with(Shards, 121, 1, |_| ()), "data.devices: is 121, but must be in 1..=120"),
        (with(Shards, 61, 1, |_| ()), "data.shards_per_device: is 2, but must be in 1..=1"),
        (
            with(Shards, 5, 1, |c| c.data.shards_per_device = u64::from(u32::MAX)),
            "data.shards_per_device: is 4294967295, but must be in 1..=24",
        ),
    ];
    for (message, start) in problems {
        assert!(message.starts_with(start), "{message:?} does not start with {start:?}");
    }
    let message = error(&config(Classes, 5, 20), &dataset(&[40, 0]));
    assert_eq!(
        message,
        "data.samples_per_device: cannot be met: mixed has no training samples of class 1; \
         partition = \"dirichlet\" does without"
    );
}

#[test]
fn distinct_draws_are_distinct_and_every_choice_is_equally_likely() {
    let mut counts: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut s = stream(0, Purpose::Test, 0, 0);
    for _ in 0..20_000 {
        let mut drawn = Vec::new();
        draw_distinct(&mut s, 6, 3, &mut drawn, |i| i as u32);
        drawn.sort_unstable();
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]) && drawn[2] < 6);
        *counts.entry(drawn).or_default() += 1;
    }
    assert_eq!(counts.len(), 20);
    let chi2: f64 = counts.values().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi2 < 52.0, "χ² = {chi2} on 19 degrees of freedom (p < 1e-4)");
}
