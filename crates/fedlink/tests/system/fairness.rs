//! The accuracy of classes and of devices, and the evenness of scheduling.

use crate::common::{blobs, resumed, run, small_config};
use fedlink::data::{Dataset, Features, Samples};
use fedlink::parts::Parts;
use fedlink::prelude::*;
use std::sync::Arc;

fn unequal() -> Config {
    let mut config = small_config();
    config.data.partition = "classes".into();
    config.run.fairness = true;
    config
}

/// `dataset` with these of its test samples as its test set.
fn with_test_set(dataset: &Dataset, samples: &[usize]) -> Arc<Dataset> {
    let Features::Bytes(bytes) = &dataset.test.features else { panic!("blobs are bytes") };
    let pick = |&i: &usize| bytes[i * dataset.features..(i + 1) * dataset.features].to_vec();
    let features = Features::Bytes(samples.iter().flat_map(pick).collect());
    let labels = samples.iter().map(|&i| dataset.test.labels[i]).collect();
    Arc::new(Dataset { test: Samples { features, labels }, ..dataset.clone() })
}

#[test]
fn the_accuracy_of_a_device_is_that_of_a_test_set_with_its_mix_of_classes() {
    let (config, dataset) = (unequal(), blobs(20, 600, 90));
    let mut simulation = Simulation::of(&config, dataset.clone()).unwrap();
    let outcome = simulation.run(|_| ()).unwrap();
    assert_eq!(outcome.device_accuracy.len(), 12);
    // Each class has thirty test samples. The test set of a device contains them in proportion to its
    // training samples of the class.
    let of_class = |class: u8| (0..90).filter(move |i| i % 3 == usize::from(class));
    let partition = config.resolve(&Parts::default()).and_then(|spec| spec.partition(&dataset)).unwrap();
    let mut own = Vec::new();
    for device in DeviceId::all(12) {
        partition.samples_of(device, &mut own);
        let samples: Vec<usize> =
            own.iter().flat_map(|&i| of_class(dataset.train.labels[i as usize])).collect();
        let alone = Simulation::of(&config, with_test_set(&dataset, &samples)).unwrap();
        let brute = alone.fleet.task().evaluate(simulation.theta()).unwrap().accuracy;
        let ours = outcome.device_accuracy[device.index()].unwrap();
        assert!((ours - brute).abs() < 1e-12, "device {device}: {ours} against {brute}");
    }
    let metric = |name: &str| {
        let metrics = &simulation.rows().last().unwrap().metrics;
        metrics.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}")).1
    };
    let devices: Vec<f64> = outcome.device_accuracy.iter().map(|accuracy| accuracy.unwrap()).collect();
    let mut sorted = devices.clone();
    sorted.sort_by(f64::total_cmp);
    // Two of twelve are the worst tenth.
    assert!((metric("worst_tenth") - 0.5 * (sorted[0] + sorted[1])).abs() < 1e-15);
    let classes = ["class_0", "class_1", "class_2"].map(metric);
    assert!((classes.iter().sum::<f64>() / 3.0 - outcome.final_accuracy.unwrap()).abs() < 1e-12);
    assert_eq!(metric("worst_class"), classes.into_iter().fold(1.0, f64::min));
}

#[test]
fn participation_is_counted_from_the_transmissions() {
    let mut config = unequal();
    config.schedule.policy = "bc".into();
    let mut simulation = Simulation::of(&config, blobs(20, 600, 90)).unwrap();
    let (mut counts, mut last) = ([0u64; 12], [0u64; 12]);
    while simulation.rounds_done() < config.run.rounds {
        let record = simulation.step().unwrap();
        for sent in &record.transmissions {
            counts[sent.device.index()] += 1;
            last[sent.device.index()] = record.round;
        }
        let Some(evaluation) = &record.evaluation else { continue };
        let sum = counts.iter().sum::<u64>() as f64;
        let squares: f64 = counts.iter().map(|&x| (x * x) as f64).sum();
        let ages: Vec<u64> = last.iter().map(|&t| record.round - t).collect();
        let expected = [
            ("jain", sum * sum / (12.0 * squares)),
            ("max_age", *ages.iter().max().unwrap() as f64),
            ("mean_age", ages.iter().sum::<u64>() as f64 / 12.0),
        ];
        for (name, value) in expected {
            let ours = evaluation.metrics.iter().find(|(known, _)| known == name).unwrap().1;
            assert!((ours - value).abs() < 1e-12, "{name}: {ours} against {value}");
        }
    }
}

#[test]
fn a_run_that_records_it_takes_the_same_steps_and_survives_threads_and_restarts() {
    let dataset = blobs(20, 600, 90);
    let mut config = unequal();
    let with = run(&config, dataset.clone(), 1);
    assert_eq!(with, run(&config, dataset.clone(), 3));
    assert_eq!(with, resumed(&config, || dataset.clone(), &Parts::default(), 3));
    config.run.fairness = false;
    let without = run(&config, dataset.clone(), 1);
    assert_eq!(with.final_accuracy, without.final_accuracy);
    assert_eq!(with.scheduled, without.scheduled);
    assert!(without.device_accuracy.is_empty());
    assert_ne!(with.digest, without.digest, "the recorded metrics are in the digest");
}
