//! The accuracy of each class, and of each device from its mix of classes.

use super::evenness::{deviation, gini, worst_tenth};
use crate::base::parallel::prelude::*;
use crate::base::units::DeviceId;
use crate::learn::task::{ClassScore, Evaluation, Task};

/// The prefix of the metric of a class, before its number.
const CLASS: &str = "class_";

/// The metric of the device with the lowest accuracy. It follows from the accuracies of the classes and from
/// the split, and no digest depends on it.
pub const WORST_DEVICE: &str = "worst_device";

/// The number of training samples of each class on each device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassTable {
    /// Row after row; empty if the task does not give label counts.
    counts: Vec<u32>,
    classes: usize,
}

impl ClassTable {
    /// The table of the `devices` of a task; empty if the task does not give label counts.
    pub fn of(task: &dyn Task, devices: usize) -> Self {
        let ids: Vec<DeviceId> = DeviceId::all(devices).collect();
        let rows: Option<Vec<Vec<u32>>> = ids.par_iter().map(|device| task.label_counts(*device)).collect();
        Self::new(rows.unwrap_or_default())
    }

    /// A table with one row for each device.
    pub fn new(rows: Vec<Vec<u32>>) -> Self {
        let classes = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut counts = Vec::with_capacity(rows.len() * classes);
        for row in rows {
            counts.extend(row.iter().copied().chain(std::iter::repeat(0)).take(classes));
        }
        Self { counts, classes }
    }

    /// acc_m of every device, from the accuracy of each class; empty if the table is empty. A class without
    /// test samples has no accuracy and is left out of the mix. A device with no other class has no accuracy
    /// (NaN).
    pub fn accuracies(&self, by_class: &[Option<f64>]) -> Vec<f64> {
        let of_device = |counts: &[u32]| {
            let known = counts.iter().zip(by_class).filter_map(|(&count, class)| Some((count, (*class)?)));
            let (right, all) = known.fold((0.0, 0.0), |(right, all), (count, accuracy)| {
                (right + f64::from(count) * accuracy, all + f64::from(count))
            });
            right / all
        };
        if self.classes == 0 {
            Vec::new()
        } else {
            self.counts.chunks_exact(self.classes).map(of_device).collect()
        }
    }

    /// Adds the metrics of classes and devices to an evaluation, if they are known.
    pub fn add_to(&self, evaluation: &mut Evaluation) {
        let by_class: Vec<Option<f64>> = evaluation.classes.iter().map(ClassScore::accuracy).collect();
        for (class, accuracy) in by_class.iter().enumerate() {
            if let Some(accuracy) = accuracy {
                evaluation.metrics.push((format!("{CLASS}{class}"), *accuracy));
            }
        }
        if let Some(worst) = by_class.iter().flatten().copied().reduce(f64::min) {
            evaluation.metrics.push(("worst_class".into(), worst));
        }
        let mut devices = self.accuracies(&by_class);
        devices.retain(|accuracy| !accuracy.is_nan());
        if !devices.is_empty() {
            let [tenth, deviation, gini] = [worst_tenth, deviation, gini].map(|of| of(&mut devices));
            evaluation.metrics.extend([
                ("worst_tenth".into(), tenth),
                ("device_deviation".into(), deviation),
                ("device_gini".into(), gini),
                (WORST_DEVICE.into(), devices.iter().copied().fold(f64::INFINITY, f64::min)),
            ]);
        }
    }
}

/// The accuracy of each class in the metrics of an evaluation; none for a class without a metric.
pub fn class_accuracies(metrics: &[(String, f64)]) -> Vec<Option<f64>> {
    let mut classes = Vec::new();
    for (name, accuracy) in metrics {
        let class = name.strip_prefix(CLASS).and_then(|number| number.parse::<u8>().ok());
        if let Some(class) = class.map(usize::from) {
            classes.resize(classes.len().max(class + 1), None);
            classes[class] = Some(*accuracy);
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn evaluation(classes: &[(u64, u64)]) -> Evaluation {
        let mut evaluation = Evaluation::new(0.5, 1.0);
        evaluation.classes =
            classes.iter().map(|&(correct, samples)| ClassScore { correct, samples }).collect();
        evaluation
    }

    fn value(evaluation: &Evaluation, name: &str) -> Option<f64> {
        evaluation.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    #[test]
    fn devices_with_the_same_mix_have_the_same_accuracy() {
        // As with IID data on average: every class is a tenth of every device, at any size.
        let table = ClassTable::new((1..=20).map(|size| vec![size; 10]).collect());
        let mut evaluation =
            evaluation(&[(3, 10), (1, 7), (9, 9), (0, 4), (5, 8), (1, 1), (2, 3), (3, 5), (0, 1), (4, 6)]);
        let classes: Vec<Option<f64>> = evaluation.classes.iter().map(ClassScore::accuracy).collect();
        let mean = classes.iter().flatten().sum::<f64>() / 10.0;
        assert!(table.accuracies(&classes).iter().all(|accuracy| (accuracy - mean).abs() < 1e-15));
        table.add_to(&mut evaluation);
        assert!((value(&evaluation, "worst_tenth").unwrap() - mean).abs() < 1e-15);
        assert!(value(&evaluation, "device_deviation").unwrap() < 1e-15);
        assert!(value(&evaluation, "device_gini").unwrap() < 1e-15);
    }

    #[test]
    fn a_class_without_test_samples_has_no_metric_and_leaves_the_mix() {
        let table = ClassTable::new(vec![vec![5, 5, 0], vec![0, 1, 3], vec![0, 9, 0]]);
        let mut evaluation = evaluation(&[(1, 4), (0, 0), (3, 4)]);
        table.add_to(&mut evaluation);
        let names: Vec<&str> = evaluation.metrics.iter().map(|(name, _)| name.as_str()).collect();
        let devices = ["worst_class", "worst_tenth", "device_deviation", "device_gini", "worst_device"];
        assert_eq!(names, [&["class_0", "class_2"], &devices[..]].concat());
        assert_eq!(class_accuracies(&evaluation.metrics), [Some(0.25), None, Some(0.75)]);
        let devices = table.accuracies(&class_accuracies(&evaluation.metrics));
        assert_eq!(devices[..2], [0.25, 0.75]);
        assert!(devices[2].is_nan(), "the test set has no class of the device");
        assert_eq!(value(&evaluation, "worst_tenth"), Some(0.25));
        assert_eq!(value(&evaluation, "device_deviation"), Some(0.25));
    }

    #[test]
    fn a_task_without_classes_adds_nothing() {
        let mut evaluation = Evaluation::new(0.5, 1.0);
        ClassTable::default().add_to(&mut evaluation);
        assert_eq!(evaluation, Evaluation::new(0.5, 1.0));
    }

    proptest! {
        /// A device's accuracy by brute force: its own test set, in which each of its training samples is
        /// replaced by all test samples of its class.
        #[test]
        fn accuracy_from_shares_is_that_of_a_test_set_in_the_device_s_mix(
            rights in prop::collection::vec(prop::collection::vec(any::<bool>(), 1..6), 2..5),
            counts in prop::collection::vec(prop::collection::vec(0u32..5, 5), 1..40),
        ) {
            let classes = rights.len();
            let rows: Vec<Vec<u32>> = counts
                .iter()
                .map(|row| {
                    let mut row = row[..classes].to_vec();
                    row[0] += u32::from(row.iter().sum::<u32>() == 0);
                    row
                })
                .collect();
            let scores: Vec<(u64, u64)> = rights
                .iter()
                .map(|class| (class.iter().filter(|right| **right).count() as u64, class.len() as u64))
                .collect();
            // Each class has 60 copies of its answers in all, for any number of its test samples.
            let brute: Vec<f64> = rows
                .iter()
                .map(|row| {
                    let own: Vec<bool> = row
                        .iter()
                        .zip(&rights)
                        .flat_map(|(&count, class)| {
                            let copies = count as usize * 60 / class.len();
                            (0..copies).flat_map(|_| class.iter().copied())
                        })
                        .collect();
                    own.iter().filter(|right| **right).count() as f64 / own.len() as f64
                })
                .collect();
            let table = ClassTable::new(rows);
            let mut evaluation = evaluation(&scores);
            let by_class: Vec<Option<f64>> = evaluation.classes.iter().map(ClassScore::accuracy).collect();
            for (ours, brute) in table.accuracies(&by_class).iter().zip(&brute) {
                prop_assert!((ours - brute).abs() < 1e-12, "{ours} against {brute}");
            }
            table.add_to(&mut evaluation);
            // The worst tenth by removing the lowest values one by one; Gini over all pairs.
            let (mut left, mut worst) = (brute.clone(), Vec::new());
            for _ in 0..brute.len().div_ceil(10) {
                let lowest = (0..left.len()).min_by(|&a, &b| left[a].total_cmp(&left[b])).unwrap();
                worst.push(left.swap_remove(lowest));
            }
            let tenth = worst.iter().sum::<f64>() / worst.len() as f64;
            prop_assert!((value(&evaluation, "worst_tenth").unwrap() - tenth).abs() < 1e-12);
            let (many, sum) = (brute.len() as f64, brute.iter().sum::<f64>());
            let pairs: f64 = brute.iter().flat_map(|a| brute.iter().map(move |b| (a - b).abs())).sum();
            let by_pairs = if sum > 0.0 { pairs / (2.0 * many * sum) } else { 0.0 };
            prop_assert!((value(&evaluation, "device_gini").unwrap() - by_pairs).abs() < 1e-12);
            let of_squares = brute.iter().map(|a| a * a).sum::<f64>() / many - (sum / many) * (sum / many);
            let deviation = value(&evaluation, "device_deviation").unwrap();
            prop_assert!((deviation * deviation - of_squares).abs() < 1e-12);
        }
    }
}
