//! Contracts of every split, and the distribution of each split.

use super::*;
use crate::base::rng::{Purpose, stream};
use crate::data::{Features, Samples};
use crate::parts::find;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};
use toml::{Table, Value};

/// Training samples with these numbers of each class, in mixed order.
fn dataset(counts: &[usize]) -> Dataset {
    let mut labels: Vec<u8> = (0u8..).zip(counts).flat_map(|(label, &count)| vec![label; count]).collect();
    stream(5, Purpose::Test, 0, 0).shuffle(&mut labels);
    let train = Samples { features: Features::Bytes(vec![0; labels.len()]), labels };
    let test = Samples { features: Features::Bytes(vec![0]), labels: vec![0] };
    Dataset { name: "mixed".into(), features: 1, shape: [1, 1, 1], classes: counts.len(), train, test }
}

/// A split under test: its part, the part's own table, and the run.
#[derive(Clone, Debug)]
struct Split {
    kind: &'static str,
    own: Table,
    scope: Scope,
}

fn split(kind: &'static str, devices: usize, per_device: usize) -> Split {
    let scope =
        Scope { devices: devices as u64, samples_per_device: per_device as u64, seed: 0, ..Scope::default() };
    Split { kind, own: Table::new(), scope }
}

impl Split {
    /// The same with a key of the part's own table.
    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.own.insert(key.into(), value.into());
        self
    }

    fn seeded(mut self, seed: u64) -> Self {
        self.scope.seed = seed;
        self
    }

    fn devices(&self) -> usize {
        self.scope.devices as usize
    }

    fn per_device(&self) -> usize {
        self.scope.samples_per_device as usize
    }

    /// A key of the own table, or its default.
    fn value(&self, key: &str) -> Value {
        let own = find::<dyn Partition>(self.kind).unwrap().resolve(&self.own, &self.scope).unwrap();
        own[key].clone()
    }

    fn is_disjoint(&self) -> bool {
        match self.kind {
            "iid" | "quantity" => self.value("sharing").as_str() == Some("disjoint"),
            kind => kind == "shards",
        }
    }

    fn try_of(&self, dataset: &Dataset) -> Result<Box<dyn Partition>, ConfigError> {
        find::<dyn Partition>(self.kind)?.build(&self.own, &self.scope, dataset)
    }

    fn of(&self, dataset: &Dataset) -> Box<dyn Partition> {
        self.try_of(dataset).unwrap()
    }

    fn error(&self, dataset: &Dataset) -> String {
        self.try_of(dataset).map(|_| ()).unwrap_err().to_string()
    }

    fn report(&self, dataset: &Dataset) -> SplitReport {
        describe(&*self.of(dataset), dataset, self.devices())
    }
}

fn samples_of(partition: &dyn Partition, device: usize) -> Vec<u32> {
    // The old content of the vector must not matter.
    let mut samples = vec![u32::MAX; 3];
    partition.samples_of(DeviceId::new(device), &mut samples);
    samples
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

const ALL: &[&str] = &["iid", "classes", "dirichlet", "shards", "quantity"];

#[test]
fn the_tests_know_every_partition() {
    assert_eq!(PARTITIONS.iter().map(|entry| entry.name).collect::<Vec<_>>(), ALL);
}

/// A training set and a valid split of it, by one of `kinds`.
fn possible(kinds: &'static [&'static str]) -> impl Strategy<Value = (Vec<usize>, Split)> {
    let kinds = prop::sample::select(kinds);
    let numbers = (any::<[u16; 4]>(), any::<[bool; 2]>(), 0u64..1 << 40, -9.0..9.0, 0.0..3.0);
    (prop::collection::vec(1usize..40, 1..8), kinds, numbers).prop_map(
        |(counts, kind, ([a, b, c, d], [overlapping, free], seed, log_alpha, spread))| {
            let pick = |raw: u16, max: usize| 1 + usize::from(raw) % max;
            let (train, fewest) = (counts.iter().sum::<usize>(), *counts.iter().min().unwrap());
            let devices = pick(a, train.min(20));
            let choice = ["iid", "quantity"].contains(&kind);
            let disjoint = kind == "shards" || (choice && !overlapping);
            let mut split = split(kind, devices, pick(b, if disjoint { train / devices } else { train }));
            split.scope.seed = seed;
            if choice && overlapping {
                split = split.with("sharing", "overlapping");
            }
            match kind {
                "dirichlet" => {
                    let sizes = if free { "free" } else { "equal" };
                    split = split.with("alpha", 10f64.powf(log_alpha)).with("sizes", sizes);
                }
                "quantity" => split = split.with("spread", spread),
                "shards" => split = split.with("per_device", pick(c, train / devices) as i64),
                "classes" => {
                    let chosen = pick(c, counts.len());
                    split = split.with("per_device", chosen as i64);
                    split.scope.samples_per_device =
                        (chosen + usize::from(d) % (chosen * (fewest - 1) + 1)) as u64;
                }
                _ => {}
            }
            (counts, split)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_device_has_distinct_existing_samples_as_many_as_it_declares(
        (counts, split) in possible(ALL),
    ) {
        let data = dataset(&counts);
        let partition = split.of(&data);
        let (devices, b) = (split.devices(), split.per_device());
        let mut total = 0;
        for device in 0..devices {
            let samples = samples_of(&*partition, device);
            let distinct: BTreeSet<u32> = samples.iter().copied().collect();
            prop_assert!(!samples.is_empty());
            prop_assert_eq!(distinct.len(), samples.len());
            prop_assert!((*distinct.last().unwrap() as usize) < data.train.len());
            prop_assert_eq!(partition.size_of(DeviceId::new(device)), samples.len());
            let equal = match split.kind {
                "iid" | "classes" => true,
                "dirichlet" => split.value("sizes").as_str() == Some("equal"),
                _ => false,
            };
            prop_assert!(!equal || samples.len() == b);
            total += samples.len();
        }
        match (split.kind, split.is_disjoint()) {
            ("shards", _) => prop_assert_eq!(total, data.train.len()),
            ("quantity", true) => prop_assert_eq!(total, devices * b),
            _ => {}
        }
    }

    #[test]
    fn disjoint_devices_share_no_sample((counts, split) in possible(&["iid", "shards", "quantity"])) {
        prop_assume!(split.is_disjoint());
        let data = dataset(&counts);
        let partition = split.of(&data);
        let mut taken = BTreeSet::new();
        for device in 0..split.devices() {
            prop_assert!(samples_of(&*partition, device).into_iter().all(|sample| taken.insert(sample)));
        }
    }

    #[test]
    fn the_samples_of_a_device_do_not_depend_on_other_devices_or_their_order(
        (counts, split) in possible(ALL),
    ) {
        let data = dataset(&counts);
        let devices = split.devices();
        let one = split.of(&data);
        let forward: Vec<_> = (0..devices).map(|device| samples_of(&*one, device)).collect();
        let other = split.of(&data);
        let last_only = samples_of(&*other, devices - 1);
        prop_assert_eq!(&last_only, &forward[devices - 1]);
        for device in (0..devices).rev() {
            prop_assert_eq!(&samples_of(&*other, device), &forward[device]);
        }
    }

    #[test]
    fn a_device_has_its_classes_equally_often((counts, split) in possible(&["classes"])) {
        let data = dataset(&counts);
        for counts in split.report(&data).class_counts {
            let there: Vec<usize> = counts.into_iter().filter(|&count| count > 0).collect();
            prop_assert_eq!(Some(there.len() as i64), split.value("per_device").as_integer());
            prop_assert!(there.iter().max().unwrap() - there.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn a_device_has_whole_shards_of_the_sorted_training_set((counts, split) in possible(&["shards"])) {
        let train: usize = counts.iter().sum();
        let (devices, s) = (split.devices(), split.value("per_device").as_integer().unwrap() as usize);
        let data = dataset(&counts);
        let partition = split.of(&data);
        let mut sorted: Vec<usize> = (0..train).collect();
        sorted.sort_by_key(|&sample| data.train.labels[sample]);
        let mut position = vec![0; train];
        sorted.iter().enumerate().for_each(|(at, &sample)| position[sample] = at);
        let shards = devices * s;
        let shard_at = |at: usize| (0..shards).rfind(|j| j * train / shards <= at).unwrap();
        for device in 0..devices {
            let samples = samples_of(&*partition, device);
            let mine: BTreeSet<usize> = samples.iter().map(|&i| shard_at(position[i as usize])).collect();
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
    fn equal_amounts_are_iid_sample_for_sample((counts, split) in possible(&["iid", "quantity"])) {
        let data = dataset(&counts);
        let sharing = split.value("sharing");
        let of = |kind| {
            Split { kind, own: Table::new(), scope: split.scope }.with("sharing", sharing.clone())
        };
        let (iid, quantity) = (of("iid").of(&data), of("quantity").with("spread", 0.0).of(&data));
        for device in 0..split.devices() {
            prop_assert_eq!(samples_of(&*iid, device), samples_of(&*quantity, device));
        }
    }
}

#[test]
fn a_seed_determines_the_split() {
    let data = dataset(&[100, 100, 100]);
    for &kind in ALL {
        let first = samples_of(&*split(kind, 5, 20).of(&data), 3);
        assert_eq!(first, samples_of(&*split(kind, 5, 20).of(&data), 3), "{kind}");
        assert_ne!(first, samples_of(&*split(kind, 5, 20).seeded(1).of(&data), 3), "{kind}");
    }
}

#[test]
fn log_normal_sizes_have_mean_b_and_their_variance() {
    let (b, sigma) = (100, 0.5f64);
    let split = split("quantity", 20_000, b).with("sharing", "overlapping").with("spread", sigma);
    let partition = split.of(&dataset(&[5000, 5000]));
    let sizes: Vec<f64> = (0..20_000).map(|m| partition.size_of(DeviceId(m)) as f64).collect();
    assert_mean(&sizes, b as f64);
    // Var[1 + (B−1)·X] = (B−1)²·(e^σ² − 1), and 1/12 for rounding.
    let squares: Vec<f64> = sizes.iter().map(|n| (n - b as f64).powi(2)).collect();
    assert_mean(&squares, 99.0 * 99.0 * ((sigma * sigma).exp() - 1.0) + 1.0 / 12.0);
    // The median of a log-normal is e^(−σ²/2) times its mean: half of the devices are below it.
    let median = 1.0 + 99.0 * (-sigma * sigma / 2.0).exp();
    let below = sizes.iter().filter(|&&n| n < median).count() as f64;
    assert!((below - 10_000.0).abs() < 5.0 * 5000f64.sqrt(), "{below} of 20 000 below {median}");
}

#[test]
fn disjoint_log_normal_sizes_share_the_samples_in_proportion() {
    let (devices, b) = (50usize, 40usize);
    let partition = split("quantity", devices, b).with("spread", 1.2).of(&dataset(&[1000, 1000]));
    let amounts: Vec<f64> = (0..devices as u64)
        .map(|m| (1.2 * crate::base::rng::stream(0, Purpose::Partition, 2, m).normal()).exp())
        .collect();
    let total: f64 = amounts.iter().sum();
    for (m, amount) in amounts.iter().enumerate() {
        let share = 1.0 + ((b - 1) * devices) as f64 * amount / total;
        let size = partition.size_of(DeviceId::new(m)) as f64;
        assert!((size - share).abs() <= 1.0 + 1e-9, "device {m}: {size} for a share of {share}");
    }
}

#[test]
fn dirichlet_class_counts_have_the_moments_of_the_dirichlet_multinomial() {
    let (classes, b) = (4.0, 20.0);
    let data = dataset(&[400; 4]);
    for alpha in [0.05, 0.5, 1.0, 20.0] {
        let partition = split("dirichlet", 20_000, b as usize).with("alpha", alpha).of(&data);
        let counts: Vec<[f64; 4]> = (0..20_000)
            .map(|device| {
                let mut counts = [0.0; 4];
                samples_of(&*partition, device)
                    .iter()
                    .for_each(|&i| counts[data.train.label(i as usize)] += 1.0);
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
    let split = split("dirichlet", 20_000, 50).with("alpha", alpha).with("sizes", "free");
    let partition = split.of(&dataset(&[600; 4]));
    let sizes: Vec<f64> = (0..20_000).map(|m| partition.size_of(DeviceId(m)) as f64).collect();
    assert_mean(&sizes, b);
    let squares: Vec<f64> = sizes.iter().map(|n| (n - b).powi(2)).collect();
    assert_mean(&squares, b * b / (4.0 * alpha) + 1.0 / 12.0);
}

#[test]
fn a_dirichlet_device_with_a_whole_class_continues_with_others_or_stays_smaller() {
    let data = dataset(&[5, 7, 1000, 0]);
    let report = |alpha: f64, sizes: &str| {
        split("dirichlet", 200, 100).with("alpha", alpha).with("sizes", sizes).report(&data)
    };
    let equal = report(1e-3, "equal");
    assert!(equal.class_counts.iter().any(|n| n[0] == 5) && equal.class_counts.iter().any(|n| n[1] == 7));
    assert_eq!(equal.sizes, [100; 200]);
    // Even a mix so sharp that all other shares underflow.
    assert_eq!(report(1e-9, "equal").sizes, [100; 200]);
    let free = report(0.2, "free");
    assert!(free.class_counts.iter().any(|n| n[0] == 5 && n[1] < 7), "a whole class, without other samples");
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
    let report = split("iid", 1000, b).with("sharing", "overlapping").report(&data);
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
    let report = split("classes", 40, 60).report(&data);
    assert!((report.heterogeneity - 0.8).abs() < 1e-12, "{}", report.heterogeneity);
}

#[test]
fn a_dirichlet_split_tends_to_iid_for_large_alpha_and_to_one_class_for_small() {
    let (b, data) = (60, dataset(&[1000; 10]));
    let report = |alpha: f64| split("dirichlet", 1000, b).with("alpha", alpha).report(&data);
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
fn a_report_on_very_many_devices_covers_the_first_thousand_and_records_it() {
    let data = dataset(&[50, 50]);
    let report = split("classes", 5000, 10).report(&data);
    assert_eq!((report.devices, report.described), (5000, 1000));
    assert_eq!((report.sizes.len(), report.class_counts.len()), (1000, 1000));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((json["devices"].as_u64(), json["described"].as_u64()), (Some(5000), Some(1000)));
    assert_eq!(json["train_counts"], serde_json::json!([50, 50]));
}

#[test]
fn the_error_of_an_impossible_split_names_the_key_and_the_allowed_range() {
    let data = dataset(&[40, 30, 50]);
    let error = |split: Split| split.error(&data);
    let problems = [
        (error(split("iid", 1, 121)), "data.samples_per_device: is 121, but must be in 1..=120"),
        (error(split("iid", 5, 25)), "data.devices: is 5, but must be in 1..=4"),
        (error(split("quantity", 5, 25)), "data.devices: is 5, but must be in 1..=4"),
        (error(split("quantity", 1, 121)), "data.samples_per_device: is 121, but must be in 1..=120"),
        (
            error(split("classes", 5, 20).with("per_device", 4)),
            "data.classes.per_device: is 4, but must be in 1..=3",
        ),
        (error(split("classes", 5, 61)), "data.samples_per_device: is 61, but must be in 2..=60"),
        (error(split("classes", 5, 1)), "data.samples_per_device: is 1, but must be in 2..=60"),
        (error(split("dirichlet", 5, 121)), "data.samples_per_device: is 121, but must be in 1..=120"),
        (
            error(split("dirichlet", 5, 20).with("alpha", f64::NAN)),
            "data.dirichlet.alpha: is NaN, but must be finite and in",
        ),
        (
            error(split("dirichlet", 5, 20).with("alpha", 0.0)),
            "data.dirichlet.alpha: is 0, but must be in 1e-9..=1e9",
        ),
        (error(split("shards", 121, 1)), "data.devices: is 121, but must be in 1..=120"),
        (error(split("shards", 61, 1)), "data.shards.per_device: is 2, but must be in 1..=1"),
        (
            error(split("shards", 5, 1).with("per_device", i64::from(u32::MAX))),
            "data.shards.per_device: is 4294967295, but must be in 1..=24",
        ),
    ];
    for (message, start) in problems {
        assert!(message.starts_with(start), "{message:?} does not start with {start:?}");
    }
    let message = split("classes", 5, 20).error(&dataset(&[40, 0]));
    assert_eq!(
        message,
        "data.samples_per_device: cannot be met: mixed has no training samples of class 1; \
         choose another data.partition, which needs no samples of every class"
    );
    // For a disjoint split, the message names the key that allows sharing.
    for kind in ["iid", "quantity"] {
        let message = error(split(kind, 5, 25));
        let way_out = format!("or write data.{kind}.sharing = \"overlapping\"");
        assert!(message.ends_with(&way_out), "{message}");
        assert!(split(kind, 5, 25).with("sharing", "overlapping").try_of(&data).is_ok());
    }
}

#[test]
fn only_two_partitions_have_the_key_sharing() {
    for (kind, disjoint, choice) in [
        ("iid", true, true),
        ("quantity", true, true),
        ("shards", true, false),
        ("classes", false, false),
        ("dirichlet", false, false),
    ] {
        let data = dataset(&[30, 30]);
        assert_eq!(split(kind, 3, 10).is_disjoint(), disjoint, "{kind}");
        for sharing in ["disjoint", "overlapping"] {
            let split = split(kind, 3, 10).with("sharing", sharing);
            assert_eq!(split.try_of(&data).is_ok(), choice, "{kind} {sharing}");
            if !choice {
                let message = split.error(&data);
                assert!(message.starts_with(&format!("data.{kind}.sharing: is not a key")), "{message}");
            }
        }
    }
}

#[test]
fn listed_indices_are_checked_and_kept() {
    let data = dataset(&[3, 3]);
    let indices = Indices::new(vec![vec![5, 0], vec![1, 5, 2]], 2, &data).unwrap();
    assert_eq!(samples_of(&indices, 0), [5, 0]);
    assert_eq!(samples_of(&indices, 1), [1, 5, 2]);
    assert_eq!((indices.size_of(DeviceId(0)), indices.size_of(DeviceId(1))), (2, 3));
    let error = |lists: Vec<Vec<u32>>| Indices::new(lists, 2, &data).unwrap_err().to_string();
    let problems = [
        (error(vec![vec![0]]), "data.partition: has lists for 1 devices, but data.devices is 2"),
        (error(vec![vec![0], vec![]]), "data.partition: device 1 has no sample; each needs at least one"),
        (error(vec![vec![0], vec![6]]), "data.partition: device 1 has sample 6, but mixed has 0..6"),
        (error(vec![vec![4, 0, 4], vec![1]]), "data.partition: device 0 has sample 4 twice"),
    ];
    for (message, expected) in problems {
        assert_eq!(message, expected);
    }
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

#[test]
fn distinct_draws_equal_floyds_algorithm_with_bits_and_with_slots() {
    // Most of a small range, some of a middle one, few of a large one: with bits, and with slots.
    for (bound, count) in [(7, 7), (60, 40), (60_000, 1000), (1_000_000, 300), (40_000_000, 5)] {
        let (mut drawn, mut expected) = (Vec::new(), Vec::new());
        draw_distinct(&mut stream(3, Purpose::Test, 0, 0), bound, count, &mut drawn, |i| i as u32);
        let mut s = stream(3, Purpose::Test, 0, 0);
        for last in bound - count..bound {
            let number = s.below(last as u64 + 1) as u32;
            expected.push(if expected.contains(&number) { last as u32 } else { number });
        }
        assert_eq!(drawn, expected);
    }
}
