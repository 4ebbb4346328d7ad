//! Scheduling: the devices that send in a round, their bit weights, and the weights of their updates.

pub mod contract;
mod notes;
pub mod policy;
pub mod priced;
pub mod queues;
pub mod received;
mod report_code;
mod reports;
pub mod sampling;
mod view;

pub use notes::Notes;
pub use received::Entries;
pub use report_code::ReportCode;
pub use reports::{Ask, Reports};
pub use view::{DeviceTable, Facts, LabelCounts, View};

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, Kind, Scope};
use crate::record::RoundRecord;

/// A policy's decision: up to K devices.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Schedule {
    /// 𝓜(t), the devices that send.
    pub picks: Vec<Pick>,
}

/// One scheduled device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pick {
    /// The device that sends.
    pub device: DeviceId,
    /// w_m: bits are shared in proportion to it. Finite and ≥ 0; bit weights that
    /// are all zero mean equal ones.
    pub bit_weight: f64,
    /// The weight of its update in θ(t+1).
    pub weight: Weight,
}

/// The weight of an update in θ(t+1) = θ(t) + Σ weight·Δ̂.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Weight {
    /// As `learn.aggregate` specifies: 1/K each, or by size.
    #[default]
    Rule,
    /// This weight, whatever the weights of the others; 1/(M·p) makes a selection with probability p
    /// unbiased. Finite and ≥ 0.
    Own(f64),
}

impl Pick {
    /// A device with its bit weight; `learn.aggregate` specifies the weight of its update.
    pub fn new(device: DeviceId, bit_weight: f64) -> Self {
        Self { device, bit_weight, weight: Weight::Rule }
    }

    /// The same with a weight of its update.
    #[must_use]
    pub fn with_weight(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }
}

impl Schedule {
    /// These devices.
    pub fn new(picks: Vec<Pick>) -> Self {
        Self { picks }
    }

    /// `devices` with equal bit weights.
    pub fn equal(devices: impl IntoIterator<Item = DeviceId>) -> Self {
        Self { picks: devices.into_iter().map(|device| Pick::new(device, 1.0)).collect() }
    }

    /// The scheduled devices, in the policy's order.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = DeviceId> + Clone + '_ {
        self.picks.iter().map(|pick| pick.device)
    }

    /// A schedule is up to K distinct candidates with finite bit weights and weights ≥ 0.
    pub(crate) fn check(&self, candidates: &[DeviceId], k: usize) -> Result<(), String> {
        if self.picks.len() > k {
            return Err(format!("it schedules {} devices, but K = {k}", self.picks.len()));
        }
        let devices: Vec<DeviceId> = self.devices().collect();
        if let Some(device) = duplicate(&devices) {
            return Err(format!("device {device} is scheduled twice"));
        }
        let mut sorted = candidates.to_vec();
        sorted.sort_unstable();
        if let Some(device) = devices.iter().find(|device| sorted.binary_search(device).is_err()) {
            return Err(format!("device {device} is scheduled but was no candidate"));
        }
        for pick in &self.picks {
            let refuse = |what: &str, value: f64| {
                Err(format!(
                    "the {what} of device {} is {value}, but must be finite and at least 0",
                    pick.device
                ))
            };
            let allowed = |value: f64| value.is_finite() && value >= 0.0;
            match pick.weight {
                _ if !allowed(pick.bit_weight) => return refuse("bit weight", pick.bit_weight),
                Weight::Own(weight) if !allowed(weight) => return refuse("weight", weight),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A policy's sampling of devices, as far as privacy and slots depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Sampling {
    /// In any other way.
    #[default]
    Other,
    /// Every device is sampled independently with probability `rate`, whatever data and channels are, up to K
    /// devices: each then has n/K symbols and the weight 1/(rate·M), so that the upload of a device does not
    /// depend on the samples of others.
    Poisson {
        /// q.
        rate: f64,
    },
}

/// The facts that a policy declares of its selection: lists, warnings and contract tests follow from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact")]
pub struct Selection {
    /// Whether the mean of the step over its random selections is Σ π·Δ.
    pub bias: Bias,
    /// The devices that must train before it selects.
    pub trains: Trains,
    /// Whether it sets the weight of each update ([`Weight::Own`]).
    pub own_weights: bool,
    /// Whether those with the largest first reports are scheduled, so that no other update need be kept.
    pub largest_reports: bool,
    /// Whether a device with a poor channel is left out while others have a better one.
    pub by_channel: bool,
    /// Whether the policy uses P̄.
    pub by_average_power: bool,
    /// Whether the same devices are scheduled in all rounds on purpose.
    pub always_the_same: bool,
}

/// Whether the mean of the step over the selections of a policy is Σ π·Δ, if every update arrives unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bias {
    /// It is in every round.
    Unbiased,
    /// It is over many rounds: a cycle, or channels with equal means.
    OverRounds,
    /// It is not, or not known to be.
    Biased,
}

/// The devices that must train before a policy selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trains {
    /// Only the scheduled devices.
    Scheduled,
    /// More devices than are scheduled, and not all.
    Some,
    /// All devices.
    Everyone,
}

impl Selection {
    /// A selection with this bias, before which these devices train.
    pub const fn new(bias: Bias, trains: Trains) -> Self {
        Self {
            bias,
            trains,
            own_weights: false,
            largest_reports: false,
            by_channel: false,
            by_average_power: false,
            always_the_same: false,
        }
    }

    /// The facts of a policy that declares none.
    pub const fn undeclared() -> Self {
        Self::new(Bias::Biased, Trains::Some).by_average_power()
    }

    /// The same with weights of its own.
    #[must_use]
    pub const fn with_weights(self) -> Self {
        Self { own_weights: true, ..self }
    }

    /// The same for the largest first reports.
    #[must_use]
    pub const fn of_largest_reports(self) -> Self {
        Self { largest_reports: true, ..self }
    }

    /// The same by the channel, if `by_channel`.
    #[must_use]
    pub const fn by_channel(self, by_channel: bool) -> Self {
        Self { by_channel, ..self }
    }

    /// The same with a use of P̄.
    #[must_use]
    pub const fn by_average_power(self) -> Self {
        Self { by_average_power: true, ..self }
    }

    fn in_words(self, asks: &[Ask]) -> String {
        let trains = match self.trains {
            Trains::Scheduled => "the scheduled train",
            Trains::Some => "some train",
            Trains::Everyone => "everyone trains",
        };
        let asks: Vec<&str> = asks.iter().map(|ask| ask.name()).collect();
        let asks = if asks.is_empty() { "nothing".to_owned() } else { asks.join(", ") };
        let bias = match self.bias {
            Bias::Unbiased => "unbiased",
            Bias::OverRounds => "unbiased over rounds",
            Bias::Biased => "biased",
        };
        format!("{trains}; asks {asks}; {bias}")
    }
}

/// A scheduling policy. It is called twice per round: before training, when only the channel is known, and
/// after the candidates have reported.
///
/// The same trait serves the simulator and a parameter server of real nodes. A policy that keeps a state
/// between rounds must save it in [`Persist::save`], or a resumed run differs. To write one, see
/// `docs/adding-parts.md`.
pub trait Policy: Persist + Send {
    /// The number of devices that share the power of this round, in 1..=`view.k`; by default as many as may
    /// be scheduled. The links of the round, and [`View::k`] of the calls that follow, are then those of a
    /// run with this K.
    fn round_k(&mut self, view: &View) -> usize {
        view.k
    }

    /// The devices that must train before selection, from information that exists before training. Devices
    /// that may not send are dropped from them.
    fn candidates(&mut self, view: &View) -> Vec<DeviceId>;

    /// The numbers that every candidate reports; the same in all rounds. None by default.
    fn asks(&self) -> &[Ask] {
        &[]
    }

    /// The facts of its selection; by default those that hold for any policy.
    fn selection(&self) -> Selection {
        Selection::undeclared()
    }

    /// Its sampling of devices; the same in all rounds.
    fn sampling(&self) -> Sampling {
        Sampling::Other
    }

    /// Picks up to `view.k` of those that reported; by default all of them with equal bits, for a policy that
    /// chooses its [candidates](Self::candidates) alone.
    fn select(&mut self, _view: &View, reports: &Reports) -> Schedule {
        Schedule::equal(reports.devices.iter().copied())
    }

    /// Called after every round, before [`Self::observe`], with each update that arrived and is used: Δ̂ as
    /// it was decoded, before any clipping.
    fn receive(&mut self, _device: DeviceId, _update: &dyn Entries) {}

    /// Whether it uses the labels of the devices ([`View::label_counts`]).
    fn uses_labels(&self) -> bool {
        false
    }

    /// Numbers of four bytes that the policy keeps at most in a run of M devices and updates of d entries, if
    /// they are of order M·d or M²; a run that exceeds the memory is rejected.
    fn state_numbers(&self, _devices: u64, _dim: u64) -> u128 {
        0
    }

    /// Whether [`Self::observe`] reads the devices that were not scheduled ([`RoundRecord::others`]), with
    /// their links and reports.
    fn observes_all(&self) -> bool {
        false
    }

    /// Called after every round with its record.
    fn observe(&mut self, _outcome: &RoundRecord) {}

    /// The genie that selects in place of the policy, by knowledge that no server has; for simulations.
    fn genie(&self) -> Option<Genie> {
        None
    }

    /// The own key that needs a radio in physical units, if it is set.
    fn needs_units(&self) -> Option<&'static str> {
        None
    }

    /// Whether devices send within their budgets; one that does not is for simulations.
    fn is_a_link(&self) -> bool {
        true
    }

    /// The reason why a call failed, for parts written in another language, whose calls may fail; the round
    /// then ends with it as its error.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// A selection by knowledge that no server has. The simulator makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Genie {
    /// By all updates: those with the largest projection on their mean.
    Align,
    /// By the loss on all training data.
    Loss,
}

/// Refuses a run of a policy that schedules all devices with a K that is not M.
fn all_devices_fit(policy: &str, scope: &Scope) -> Result<(), ConfigError> {
    let Scope { k, devices, .. } = *scope;
    if k == devices {
        return Ok(());
    }
    let problem = format!(
        "is {k}, but schedule.policy = \"{policy}\" schedules all devices; write schedule.k = {devices}"
    );
    Err(ConfigError::new("schedule.k", problem))
}

/// Facts of a policy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PolicyFacts {
    /// The numbers that each candidate reports.
    pub asks: Vec<Ask>,
    /// The facts of its selection.
    pub selection: Selection,
    /// Its sampling of devices.
    pub sampling: Sampling,
    /// Whether it uses the labels of the devices.
    pub uses_labels: bool,
    /// The genie that it names.
    pub genie: Option<Genie>,
    /// Whether devices send within their budgets.
    pub is_a_link: bool,
    /// The own key that needs a radio in physical units.
    pub needs_units: Option<&'static str>,
}

impl Default for PolicyFacts {
    fn default() -> Self {
        Self {
            asks: Vec::new(),
            selection: Selection::undeclared(),
            sampling: Sampling::Other,
            uses_labels: false,
            genie: None,
            is_a_link: true,
            needs_units: None,
        }
    }
}

impl Kind for dyn Policy {
    type Material = ();
    type Facts = PolicyFacts;
    const PROBE: Option<&'static ()> = Some(&());
    const PLURAL: &'static str = "policies";
    const KEY: &'static str = "schedule.policy";
    const TABLE: &'static str = "schedule";

    fn entries() -> &'static [Entry<Self>] {
        policy::POLICIES
    }

    fn facts_of(policy: &Self) -> PolicyFacts {
        PolicyFacts {
            asks: policy.asks().to_vec(),
            selection: policy.selection(),
            sampling: policy.sampling(),
            uses_labels: policy.uses_labels(),
            genie: policy.genie(),
            is_a_link: policy.is_a_link(),
            needs_units: policy.needs_units(),
        }
    }

    fn declared(entry: &Entry<Self>) -> String {
        let built = entry.build(&toml::Table::new(), &Scope::default(), &());
        built.map_or_else(|_| String::new(), |policy| policy.selection().in_words(policy.asks()))
    }
}

/// The `count` devices with the largest `value` (of an index into `devices`), ties go to the lower device;
/// the result ascends by device.
pub fn largest(devices: &[DeviceId], count: usize, value: impl Fn(usize) -> f64) -> Vec<DeviceId> {
    largest_indices(devices, count, value).into_iter().map(|index| devices[index]).collect()
}

/// The `k` candidates with the largest first report, each with it as its bit weight. Equal reports go to the
/// larger gain where reports have a price, otherwise to the lower device number.
pub fn largest_reports(reports: &Reports, k: usize) -> Schedule {
    let value = |index: usize| f64::from(reports.first(index));
    let indices = largest_indices_by(&reports.devices, k, |index| (value(index), reports.tie(index)));
    Schedule {
        picks: indices.into_iter().map(|index| Pick::new(reports.devices[index], value(index))).collect(),
    }
}

/// The indices of the `count` devices with the largest `value`, a pair of which the second decides between
/// equal first ones, and the lower device between equal pairs; the result ascends by device.
pub fn largest_indices_by(
    devices: &[DeviceId],
    count: usize,
    value: impl Fn(usize) -> (f64, f64),
) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..devices.len()).collect();
    if count < indices.len() {
        // Each value once: it may take a logarithm or two.
        let values: Vec<(f64, f64)> = indices.iter().map(|&index| value(index)).collect();
        let better = |&a: &usize, &b: &usize| {
            let ((first_a, second_a), (first_b, second_b)) = (values[a], values[b]);
            first_b.total_cmp(&first_a).then(second_b.total_cmp(&second_a)).then(devices[a].cmp(&devices[b]))
        };
        indices.select_nth_unstable_by(count, better);
        indices.truncate(count);
    }
    indices.sort_unstable_by_key(|&index| devices[index]);
    indices
}

fn largest_indices(devices: &[DeviceId], count: usize, value: impl Fn(usize) -> f64) -> Vec<usize> {
    largest_indices_by(devices, count, |index| (value(index), 0.0))
}

/// Candidates are distinct devices that exist.
pub(crate) fn check_candidates(candidates: &[DeviceId], devices: usize) -> Result<(), String> {
    if let Some(device) = candidates.iter().find(|device| device.index() >= devices) {
        return Err(format!("candidate {device} does not exist; devices are 0..{devices}"));
    }
    match duplicate(candidates) {
        Some(device) => Err(format!("candidate {device} is named twice")),
        None => Ok(()),
    }
}

fn duplicate(devices: &[DeviceId]) -> Option<DeviceId> {
    let mut sorted = devices.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
