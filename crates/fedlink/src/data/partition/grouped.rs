//! Groups of devices that hold certain classes only (`data.group_classes`).

use super::{Draw, Partition, by_class, draw_distinct, stream};
use crate::base::units::DeviceId;
use crate::data::Dataset;
use crate::parts::{ConfigError, Scope};

/// The samples of the devices whose group names its classes: B of all training samples of these classes,
/// drawn uniformly without replacement within a device. Devices draw independently and may share samples. The
/// devices of other groups have theirs by the partition of the run.
pub struct Grouped {
    others: Box<dyn Partition>,
    seed: u64,
    per_device: usize,
    /// The last device of each group, and the samples of its classes, if it names any.
    groups: Vec<(usize, Option<Vec<u32>>)>,
}

impl Grouped {
    /// The split of `dataset` in a run of `scope`, of groups with the `classes` and the `sizes`; those
    /// without classes follow `others`.
    pub fn new(
        others: Box<dyn Partition>,
        classes: &[Vec<u64>],
        sizes: &[u64],
        scope: &Scope,
        dataset: &Dataset,
    ) -> Result<Self, ConfigError> {
        let (of_class, per_device) = (by_class(dataset), scope.samples_per_device as usize);
        let (mut groups, mut end) = (Vec::new(), 0);
        let refuse = |problem: String| ConfigError::new("data.group_classes", problem);
        for (group, (labels, size)) in classes.iter().zip(sizes).enumerate() {
            end += *size as usize;
            let mut pool = Vec::new();
            for (index, &label) in labels.iter().enumerate() {
                let samples = usize::try_from(label).ok().and_then(|label| of_class.get(label));
                let samples = samples.ok_or_else(|| {
                    let last = dataset.classes.saturating_sub(1);
                    refuse(format!("has class {label}, but {} has the classes 0 ..= {last}", dataset.name))
                })?;
                if labels[..index].contains(&label) {
                    return Err(refuse(format!("names class {label} twice in group {}", group + 1)));
                }
                pool.extend_from_slice(samples);
            }
            if !labels.is_empty() && pool.len() < per_device {
                return Err(refuse(format!(
                    "gives group {} {} training samples, but data.samples_per_device is {per_device}",
                    group + 1,
                    pool.len()
                )));
            }
            groups.push((end, (!labels.is_empty()).then_some(pool)));
        }
        Ok(Self { others, seed: scope.seed, per_device, groups })
    }

    /// The samples that a device draws from; none if it follows the partition of the run.
    fn pool(&self, device: DeviceId) -> Option<&[u32]> {
        self.groups.iter().find(|(end, _)| device.index() < *end)?.1.as_deref()
    }
}

impl Partition for Grouped {
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>) {
        let Some(pool) = self.pool(device) else { return self.others.samples_of(device, samples) };
        samples.clear();
        let mut stream = stream(self.seed, Draw::Samples, device);
        draw_distinct(&mut stream, pool.len(), self.per_device, samples, |i| pool[i]);
    }

    fn size_of(&self, device: DeviceId) -> usize {
        if self.pool(device).is_some() { self.per_device } else { self.others.size_of(device) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Iid, Sharing};
    use super::*;
    use crate::data::digits::digits;

    #[test]
    fn devices_of_a_group_hold_its_classes_and_the_others_those_of_the_partition() {
        let dataset = digits();
        let scope = Scope { devices: 5, samples_per_device: 50, seed: 3, ..Scope::default() };
        let other = || Box::new(Iid::new(Sharing::Disjoint, &scope, &dataset).unwrap());
        let classes = [vec![], vec![7, 1]];
        let grouped = Grouped::new(other(), &classes, &[3, 2], &scope, &dataset).unwrap();
        let (mut own, mut plain) = (Vec::new(), Vec::new());
        for device in DeviceId::all(5) {
            grouped.samples_of(device, &mut own);
            assert_eq!((own.len(), grouped.size_of(device)), (50, 50));
            if device.index() < 3 {
                other().samples_of(device, &mut plain);
                assert_eq!(own, plain);
                continue;
            }
            let label = |sample: &u32| dataset.train.labels[*sample as usize];
            let ones = own.iter().filter(|sample| label(sample) == 1).count();
            assert!(own.iter().all(|sample| [1, 7].contains(&label(sample))), "{device:?}");
            // About half of 50: ±4.5 standard deviations.
            assert!((9..=41).contains(&ones), "{ones}");
            own.sort_unstable();
            own.dedup();
            assert_eq!(own.len(), 50);
        }
    }

    #[test]
    fn classes_that_the_data_set_has_not_and_too_few_samples_are_refused() {
        let dataset = digits();
        let error = |classes: Vec<u64>, samples_per_device: u64| {
            let scope = Scope { devices: 2, samples_per_device, ..Scope::default() };
            let others = Iid::new(Sharing::Overlapping, &Scope { samples_per_device: 1, ..scope }, &dataset);
            let grouped = Grouped::new(Box::new(others.unwrap()), &[classes], &[2], &scope, &dataset);
            grouped.err().unwrap().to_string()
        };
        assert!(error(vec![0, 10], 5).contains("has class 10, but digits has the classes 0 ..= 9"));
        assert!(error(vec![3, 3], 5).contains("names class 3 twice in group 1"));
        assert!(error(vec![3], 100_000).contains("training samples, but data.samples_per_device is 100000"));
    }
}
