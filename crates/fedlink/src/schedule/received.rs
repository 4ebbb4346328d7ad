//! The latest update that the server received from every device, for policies that compare updates.

use crate::base::parallel::prelude::*;
use crate::base::state::{State, StateError};
use crate::base::units::DeviceId;
use serde::{Deserialize, Serialize};

/// An update by its entries, whatever form it arrived in.
pub trait Entries {
    /// Calls `visit` with the index and the value of every entry, indices ascending; all others are zero.
    fn visit(&self, visit: &mut dyn FnMut(u32, f32));
}

/// The last Δ̂ that arrived of each device, and the Euclidean distances between them.
///
/// A device that was scheduled without an update arriving has Δ̂ = 0 until one arrives.
/// Memory is of order (entries received) + M², at most [`LastUpdates::numbers`]; a round costs K·M distances.
#[derive(Clone, Debug)]
pub struct LastUpdates {
    updates: Vec<Option<Kept>>,
    /// Row after row; those of `stale` devices are out of date.
    distances: Vec<f64>,
    stale: Vec<bool>,
}

/// The entries of an update that are not zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Kept {
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Kept {
    fn of(update: &dyn Entries) -> Self {
        let mut kept = Self::default();
        update.visit(&mut |index, value| {
            if value != 0.0 {
                kept.indices.push(index);
                kept.values.push(value);
            }
        });
        kept
    }

    /// ‖a − b‖₂.
    fn distance(&self, other: &Self) -> f64 {
        let (mut i, mut j, mut sum) = (0, 0, 0.0);
        loop {
            let difference = match (self.indices.get(i), other.indices.get(j)) {
                (None, None) => return libm::sqrt(sum),
                (Some(a), Some(b)) if a == b => {
                    (i, j) = (i + 1, j + 1);
                    f64::from(self.values[i - 1]) - f64::from(other.values[j - 1])
                }
                (Some(a), b) if b.is_none_or(|b| a < b) => {
                    i += 1;
                    f64::from(self.values[i - 1])
                }
                _ => {
                    j += 1;
                    f64::from(other.values[j - 1])
                }
            };
            sum += difference * difference;
        }
    }

    /// Whether it could be a result of [`Kept::of`].
    fn is_sound(&self) -> bool {
        self.indices.len() == self.values.len()
            && self.indices.windows(2).all(|pair| pair[0] < pair[1])
            && self.values.iter().all(|value| value.is_finite())
    }
}

impl LastUpdates {
    /// No updates of `devices` devices.
    pub fn new(devices: usize) -> Self {
        Self { updates: vec![None; devices], distances: Vec::new(), stale: vec![true; devices] }
    }

    /// Numbers of four bytes that it holds at most: indices and values of M updates, and M² distances of
    /// eight.
    pub fn numbers(devices: u64, dim: u64) -> u128 {
        let (devices, dim) = (u128::from(devices), u128::from(dim));
        2 * devices * dim + 2 * devices * devices
    }

    /// M.
    pub fn devices(&self) -> usize {
        self.updates.len()
    }

    /// Whether an update of a device has arrived.
    pub fn is_known(&self, device: DeviceId) -> bool {
        self.updates[device.index()].is_some()
    }

    /// Notes an update that arrived from a device.
    pub fn receive(&mut self, device: DeviceId, update: &dyn Entries) {
        self.set(device, Kept::of(update));
    }

    /// Records that a device was scheduled, whether or not its upload arrived.
    pub fn note_scheduled(&mut self, device: DeviceId) {
        if !self.is_known(device) {
            self.set(device, Kept::default());
        }
    }

    fn set(&mut self, device: DeviceId, update: Kept) {
        self.updates[device.index()] = Some(update);
        self.stale[device.index()] = true;
    }

    /// Brings the distances up to date.
    pub fn refresh(&mut self) {
        let devices = self.devices();
        let nothing = Kept::default();
        let of = |m: usize| self.updates[m].as_ref().unwrap_or(&nothing);
        if self.distances.is_empty() {
            self.distances = vec![0.0; devices * devices];
        }
        for m in (0..devices).filter(|&m| self.stale[m]) {
            // Pairs of two stale devices are computed once, by the lower.
            let others: Vec<usize> = (0..devices).filter(|&j| j > m || !self.stale[j]).collect();
            let row: Vec<f64> = others.par_iter().map(|&j| of(m).distance(of(j))).collect();
            for (j, distance) in others.into_iter().zip(row) {
                self.distances[m * devices + j] = distance;
                self.distances[j * devices + m] = distance;
            }
        }
        self.stale.fill(false);
    }

    /// ‖Δ̂_a − Δ̂_b‖₂ as of the last [`Self::refresh`]; a device without an update so far has Δ̂ = 0.
    pub fn distance(&self, a: usize, b: usize) -> f64 {
        self.distances[a * self.devices() + b]
    }

    /// The state between rounds.
    pub fn save(&self) -> State {
        State::of(&self.updates)
    }

    /// Restores a [saved](Self::save) state; an invalid one changes nothing.
    pub fn load(&mut self, state: &State) -> Result<(), StateError> {
        let updates: Vec<Option<Kept>> = state.read()?;
        if updates.len() != self.devices() {
            return Err(StateError(format!(
                "it has updates of {} devices, not of {}",
                updates.len(),
                self.devices()
            )));
        }
        if updates.iter().flatten().any(|update| !update.is_sound()) {
            return Err(StateError("its updates are none".into()));
        }
        *self = Self { updates, ..Self::new(self.devices()) };
        Ok(())
    }
}

#[cfg(test)]
pub(in crate::schedule) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All entries written out.
    pub struct Dense<'a>(pub &'a [f32]);

    impl Entries for Dense<'_> {
        fn visit(&self, visit: &mut dyn FnMut(u32, f32)) {
            (0..).zip(self.0).for_each(|(i, &value)| visit(i, value));
        }
    }

    fn vectors() -> impl Strategy<Value = Vec<Vec<f32>>> {
        let entry = prop_oneof![Just(0.0f32), -10.0..10.0f32];
        prop::collection::vec(prop::collection::vec(entry, 6), 1..7)
    }

    proptest! {
        #[test]
        fn distances_are_those_of_the_vectors_written_out(vectors in vectors(), again in 0usize..7) {
            let m = vectors.len();
            let mut last = LastUpdates::new(m + 1);
            for (device, vector) in DeviceId::all(m).zip(&vectors) {
                last.receive(device, &Dense(vector));
            }
            last.refresh();
            // One is replaced, and only its distances are computed anew.
            let mut vectors = vectors;
            let changed = again % m;
            vectors[changed].iter_mut().for_each(|value| *value += 1.0);
            last.receive(DeviceId::new(changed), &Dense(&vectors[changed]));
            last.refresh();
            vectors.push(vec![0.0; 6]);
            for a in 0..=m {
                for b in 0..=m {
                    let squared = |(x, y): (&f32, &f32)| (f64::from(*x) - f64::from(*y)).powi(2);
                    let square: f64 = vectors[a].iter().zip(&vectors[b]).map(squared).sum();
                    prop_assert!((last.distance(a, b) - square.sqrt()).abs() < 1e-12);
                }
            }
            let mut other = LastUpdates::new(m + 1);
            other.load(&last.save()).unwrap();
            other.refresh();
            prop_assert_eq!(&other.distances, &last.distances);
            prop_assert!(LastUpdates::new(m).load(&last.save()).is_err());
        }
    }

    #[test]
    fn a_state_with_unsound_updates_is_refused_and_changes_nothing() {
        let mut last = LastUpdates::new(1);
        for (indices, values) in [(vec![1, 1], vec![1.0, 1.0]), (vec![1], vec![]), (vec![1], vec![f32::NAN])]
        {
            let state = State::of(&vec![Some(Kept { indices, values })]);
            assert!(last.load(&state).is_err());
            assert!(!last.is_known(DeviceId(0)));
        }
        last.note_scheduled(DeviceId(0));
        assert!(last.is_known(DeviceId(0)));
    }
}
