//! Who sends in a round, and with what share of the bits.

pub mod policy;

use crate::radio::Channels;
use crate::units::DeviceId;

/// What a candidate tells the parameter server before selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// Nothing: the channel alone decides.
    Nothing,
    /// ‖Δ‖₂, the norm of its update.
    Norm,
    /// ‖Δ̂(q*)‖₂, the norm of its update as compressed if it had all n symbols to itself.
    QuantisedNorm,
}

/// A policy's decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// 𝓜(t), the devices that send.
    pub devices: Vec<DeviceId>,
    /// The weight `w_m` of each one's share of the bits.
    pub weights: Vec<f64>,
}

impl Schedule {
    /// A schedule is exactly K distinct candidates with finite weights ≥ 0.
    pub(crate) fn check(&self, candidates: &[DeviceId], k: usize) -> Result<(), String> {
        let Self { devices, weights } = self;
        if devices.len() != k || weights.len() != k {
            return Err(format!("{} devices and {} weights, but K = {k}", devices.len(), weights.len()));
        }
        if let Some(device) = duplicate(devices) {
            return Err(format!("device {device} is scheduled twice"));
        }
        let mut sorted = candidates.to_vec();
        sorted.sort_unstable();
        if let Some(device) = devices.iter().find(|device| sorted.binary_search(device).is_err()) {
            return Err(format!("device {device} is scheduled but was no candidate"));
        }
        if let Some(weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
            return Err(format!("a weight is {weight}, but must be finite and at least 0"));
        }
        Ok(())
    }
}

/// A scheduling policy. It speaks in two steps, because a radio does: first the channel is known, then the
/// candidates report one number each.
///
/// The same trait serves the simulator and a parameter server of real nodes. To write your own, see
/// `docs/own-policy.md`.
pub trait Policy: Send {
    /// The devices that must train before selection, judged by channel alone. At least `k` of them.
    fn candidates(&mut self, channels: &Channels, k: usize) -> Vec<DeviceId>;

    /// What a candidate reports.
    fn report(&self) -> ReportKind;

    /// Picks `k` of the candidates and weighs them. `reports[i]` is what `candidates[i]` said (0 where
    /// nothing is reported).
    fn select(&mut self, candidates: &[DeviceId], reports: &[f32], channels: &Channels, k: usize)
    -> Schedule;

    /// What the policy remembers from round to round, for a checkpoint. A policy that remembers anything must give
    /// it here and take it up in [`Policy::restore`], or a resumed run will differ.
    fn state(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes up what [`Policy::state`] gave; an error says why it cannot.
    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        if state.is_empty() { Ok(()) } else { Err("this policy remembers nothing".into()) }
    }
}

/// All M devices.
pub fn everyone(channels: &Channels) -> Vec<DeviceId> {
    (0..channels.devices()).map(DeviceId::new).collect()
}

/// The `count` devices with the largest `value` (of a place in `devices`), ties to the lower device; the
/// result ascends by device.
pub fn largest(devices: &[DeviceId], count: usize, value: impl Fn(usize) -> f64) -> Vec<DeviceId> {
    largest_places(devices, count, value).into_iter().map(|place| devices[place]).collect()
}

/// The `k` candidates with the largest reports, each weighed by what it reported.
pub fn largest_reports(candidates: &[DeviceId], reports: &[f32], k: usize) -> Schedule {
    let places = largest_places(candidates, k, |place| f64::from(reports[place]));
    Schedule {
        devices: places.iter().map(|&place| candidates[place]).collect(),
        weights: places.iter().map(|&place| f64::from(reports[place])).collect(),
    }
}

fn largest_places(devices: &[DeviceId], count: usize, value: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..devices.len()).collect();
    if count < places.len() {
        let better = |&a: &usize, &b: &usize| value(b).total_cmp(&value(a)).then(devices[a].cmp(&devices[b]));
        places.select_nth_unstable_by(count, better);
        places.truncate(count);
    }
    places.sort_unstable_by_key(|&place| devices[place]);
    places
}

/// Candidates are at least K distinct devices.
pub(crate) fn check_candidates(candidates: &[DeviceId], devices: usize, k: usize) -> Result<(), String> {
    if let Some(device) = candidates.iter().find(|device| device.index() >= devices) {
        return Err(format!("candidate {device} does not exist; devices are 0..{devices}"));
    }
    if let Some(device) = duplicate(candidates) {
        return Err(format!("candidate {device} is named twice"));
    }
    if candidates.len() < k {
        return Err(format!("{} candidates, but K = {k} are to be scheduled", candidates.len()));
    }
    Ok(())
}

fn duplicate(devices: &[DeviceId]) -> Option<DeviceId> {
    let mut sorted = devices.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
