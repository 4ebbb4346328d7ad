//! The use of groups of devices, such as near and far ones.

use crate::events::GroupUse;
use fedlink::base::units::DeviceId;
use fedlink::radio::Snrs;
use fedlink::record::{Energy, Outcome};
use fedlink::spec::Spec;

/// The name of a group of devices: its own, or its mean SNR, or its number.
pub fn group_label(spec: &Spec, group: usize) -> String {
    let levels = spec.radio.snr_db.as_ref().map_or(&[][..], Snrs::levels);
    match levels.get(group) {
        Some(level) if levels.len() > 1 && spec.data.group_names.is_none() => format!("group of {level} dB"),
        _ => spec.group_name(group),
    }
}

/// The use of each group of devices in a run; empty if its devices have no groups.
pub fn group_use(spec: &Spec, outcome: &Outcome) -> Vec<GroupUse> {
    let mut groups: Vec<GroupUse> = Vec::new();
    for device in DeviceId::all(outcome.scheduled.len()) {
        let Some(group) = spec.group_of(device) else { return Vec::new() };
        while groups.len() <= group {
            let name = group_label(spec, groups.len());
            groups.push(GroupUse { group: name, ..GroupUse::default() });
        }
        let (own, times) = (&mut groups[group], outcome.scheduled[device.index()]);
        own.devices += 1;
        own.heard += u64::from(times > 0);
        own.uploads += u64::from(times);
        if let Some(joules) = outcome.device_energy.get(device.index()).map(Energy::total) {
            own.joules = Some(own.joules.unwrap_or(0.0) + joules);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{change, curve_of};

    #[test]
    fn every_upload_and_joule_belongs_to_one_group() {
        let mut curve = curve_of("bc", &[&[0.5]]);
        assert!(group_use(&curve.spec, &curve.runs[0].outcome).is_empty());
        change(&mut curve, |config| {
            config.data.devices = 4;
            config.radio.snr_db = Some(Snrs::Groups(vec![20.0, 0.0]));
            config.radio.group_sizes = Some(vec![1, 3]);
        });
        let outcome = &mut curve.runs[0].outcome;
        outcome.scheduled = vec![7, 0, 2, 1];
        let energy = |transmit_j| Energy { transmit_j, ..Energy::default() };
        outcome.device_energy = vec![energy(1.0), energy(0.0), energy(4.0), energy(2.0)];
        let groups = group_use(&curve.spec, outcome);
        let numbers: Vec<(u64, u64, u64, Option<f64>)> =
            groups.iter().map(|own| (own.devices, own.heard, own.uploads, own.joules)).collect();
        assert_eq!(numbers, [(1, 1, 7, Some(1.0)), (3, 2, 3, Some(6.0))]);
    }
}
