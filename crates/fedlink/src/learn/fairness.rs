//! How evenly a model serves the classes and the devices, and how evenly devices are used (`run.fairness`).
//!
//! Devices have no test sets of their own. Where they differ only in their mix of classes, the accuracy of
//! device m is acc_m = Σ_c p_mc·acc_c, with p_mc the share of class c in its training samples and acc_c the
//! accuracy on the test samples of class c: one evaluation gives that of all devices.
//!
//! | metric | what it is |
//! |---|---|
//! | `class_0`, `class_1`, … | acc_c, the share of right answers among the test samples of a class |
//! | `worst_class` | the lowest of them |
//! | `worst_tenth` | the mean acc_m of the ⌈M/10⌉ devices with the lowest |
//! | `device_deviation` | the standard deviation of acc_m over the M devices (divided by M) |
//! | `device_gini` | the Gini coefficient of acc_m, Σ_ij abs(acc_i − acc_j)/(2M·Σ acc) |
//! | `jain` | Jain's index of how often devices were scheduled so far, (Σx)²/(M·Σx²) |
//! | `max_age`, `mean_age` | over the devices, rounds since they were scheduled last; 0 in the round itself |

use super::task::{ClassScore, Evaluation, Task};
use crate::parallel::prelude::*;
use crate::units::DeviceId;

/// What the metric of a class is called, but for its number.
const CLASS: &str = "class_";

/// How many training samples of each class each device has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassTable {
    /// Row after row; empty if the task does not tell.
    counts: Vec<u32>,
    classes: usize,
}

impl ClassTable {
    /// The table of the `devices` of a task; an empty one if the task does not tell.
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

    /// acc_m of every device, from the accuracy of each class; empty if the table is. A class without an
    /// accuracy, because the test set has none of it, is left out of the mix; a device that has no other has
    /// no accuracy (NaN).
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

    /// Adds the metrics of classes and devices to an evaluation, as far as they are known.
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
            ]);
        }
    }
}

/// The accuracy of each class in the metrics of an evaluation; none for a class that is not there.
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

/// The mean of the lowest tenth, rounded up to whole devices; sorts `values`.
fn worst_tenth(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let worst = &values[..values.len().div_ceil(10)];
    worst.iter().sum::<f64>() / worst.len() as f64
}

/// The standard deviation, divided by how many there are.
fn deviation(values: &mut [f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / values.len() as f64).sqrt()
}

/// The Gini coefficient; 0 if all are 0. Sorts `values`.
fn gini(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let (count, sum) = (values.len() as f64, values.iter().sum::<f64>());
    let ranked: f64 =
        values.iter().enumerate().map(|(i, value)| (2.0 * i as f64 + 1.0 - count) * value).sum();
    if sum > 0.0 { ranked / (count * sum) } else { 0.0 }
}

/// Jain's index of counts, (Σx)²/(M·Σx²): 1 if all are equal, 1/M if one has all; 1 if all are 0.
///
/// ```
/// use fedlink::learn::fairness::jain;
/// assert_eq!(jain([3, 3, 3, 3]), 1.0);
/// assert_eq!(jain([0, 7, 0, 0]), 0.25);
/// ```
pub fn jain(counts: impl IntoIterator<Item = u32>) -> f64 {
    let (mut many, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for count in counts.into_iter().map(f64::from) {
        many += 1.0;
        sum += count;
        squares += count * count;
    }
    if sum > 0.0 { sum * sum / (many * squares) } else { 1.0 }
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
    fn jain_is_one_for_equal_counts_and_one_over_m_for_a_single_device() {
        for m in 1..50u32 {
            assert_eq!(jain((0..m).map(|_| 17)), 1.0);
            let alone = jain((0..m).map(|i| if i == m / 2 { 9 } else { 0 }));
            assert!((alone - 1.0 / f64::from(m)).abs() < 1e-15, "{m}: {alone}");
        }
        assert_eq!(jain([0; 5]), 1.0);
    }

    #[test]
    fn devices_with_the_same_mix_have_the_same_accuracy() {
        // As IID data would have in the mean: every device a tenth of each class, whatever its size.
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
        let devices = ["worst_class", "worst_tenth", "device_deviation", "device_gini"];
        assert_eq!(names, [&["class_0", "class_2"], &devices[..]].concat());
        assert_eq!(class_accuracies(&evaluation.metrics), [Some(0.25), None, Some(0.75)]);
        let devices = table.accuracies(&class_accuracies(&evaluation.metrics));
        assert_eq!(devices[..2], [0.25, 0.75]);
        assert!(devices[2].is_nan(), "the device has nothing that the test set has");
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
        /// A device's accuracy by brute force: a test set of its own, in which every one of its training
        /// samples stands for all test samples of its class.
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
            // 60 copies of a class's answers in all, however many test samples it has.
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
            // The worst tenth by taking the lowest away one by one; Gini by all pairs.
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
