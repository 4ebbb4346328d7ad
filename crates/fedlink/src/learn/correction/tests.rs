//! Contracts of every correction in the registry.

use super::*;
use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::Scope;
use proptest::prelude::*;
use std::sync::Arc;
use toml::Table;

const DIM: usize = 4;
const DEVICES: usize = 5;

fn build(entry: &Entry<dyn Correction>) -> Arc<dyn Correction> {
    entry.build(&Table::new(), &Scope::default(), &()).expect("defaults build").into()
}

/// A server and devices that follow one correction.
struct Pair {
    rule: Arc<dyn Correction>,
    devices: DeviceCorrections,
    control: Vec<f32>,
    theta: Vec<f32>,
}

impl Pair {
    fn new(rule: &Arc<dyn Correction>) -> Self {
        let devices = DeviceCorrections::new(Arc::clone(rule), DEVICES, DIM);
        Self { rule: Arc::clone(rule), devices, control: vec![0.0; DIM], theta: vec![0.0; DIM] }
    }

    /// A round in which the updates of these devices arrive.
    fn round(&mut self, sent: &[(u32, Vec<f32>)], length: f64) {
        self.devices.set_control(&self.control);
        let add = |update: &[f32], target: &mut [f32], scale: f32| {
            target.iter_mut().zip(update).for_each(|(entry, value)| *entry += scale * value);
        };
        let adders: Vec<_> = sent
            .iter()
            .map(|(_, update)| move |target: &mut [f32], scale| add(update, target, scale))
            .collect();
        for ((device, _), adder) in sent.iter().zip(&adders) {
            self.devices.settle(DeviceId(*device), adder, length);
        }
        let updates: Vec<(AddUpdate, f64)> =
            adders.iter().map(|adder| (adder as AddUpdate, length)).collect();
        self.rule.settle_server(&mut self.control, &updates, DEVICES, &mut self.theta);
    }

    /// The vectors that the devices add to their gradients.
    fn linear(&mut self) -> Vec<Vec<f32>> {
        self.devices.set_control(&self.control);
        let of = |m| self.devices.linear(DeviceId(m), || vec![f32::NAN; DIM]);
        (0..DEVICES as u32).map(of).collect()
    }
}

/// Rounds in which some devices send; values are multiples of 1/8.
fn rounds() -> impl Strategy<Value = Vec<Vec<(u32, Vec<f32>)>>> {
    let values = prop::collection::vec((-16i8..16).prop_map(|x| f32::from(x) / 8.0), DIM);
    let round = prop::collection::btree_map(0..DEVICES as u32, values, 0..=DEVICES);
    prop::collection::vec(round.prop_map(|sent| sent.into_iter().collect()), 1..6)
}

proptest! {
    #[test]
    fn devices_and_server_agree_on_the_terms_added_to_gradients(
        rounds in rounds(),
    ) {
        for entry in CORRECTIONS {
            let rule = build(entry);
            let mut pair = Pair::new(&rule);
            for sent in &rounds {
                pair.round(sent, 0.5);
                let linear = pair.linear();
                if !rule.keeps_state() {
                    prop_assert!(linear.iter().all(Vec::is_empty), "{}", entry.name);
                    continue;
                }
                for i in 0..DIM {
                    let mean = linear.iter().map(|term| f64::from(term[i])).sum::<f64>() / DEVICES as f64;
                    // SCAFFOLD: Σ (c − c_m)/M = 0. FedDyn: Σ h_m/M = H.
                    let exact = if entry.name == "feddyn" { -f64::from(pair.control[i]) } else { 0.0 };
                    let size: f64 = linear.iter().map(|term| f64::from(term[i].abs())).sum();
                    let name = entry.name;
                    prop_assert!((mean - exact).abs() <= 1e-5 * (1.0 + size), "{name}: {mean} {exact}");
                }
            }
        }
    }

    #[test]
    fn device_state_survives_a_checkpoint_and_other_state_is_rejected(rounds in rounds()) {
        for entry in CORRECTIONS {
            let rule = build(entry);
            let (mut whole, mut resumed) = (Pair::new(&rule), Pair::new(&rule));
            for sent in &rounds {
                let state = resumed.devices.save();
                resumed.devices = DeviceCorrections::new(Arc::clone(&rule), DEVICES, DIM);
                resumed.devices.load(state).unwrap();
                let other = DeviceCorrections::new(Arc::clone(&rule), DEVICES + 1, DIM).save();
                prop_assert_eq!(resumed.devices.load(other).is_err(), rule.keeps_state());
                whole.round(sent, 0.25);
                resumed.round(sent, 0.25);
                prop_assert_eq!(whole.linear(), resumed.linear(), "{}", entry.name);
                prop_assert_eq!(&whole.theta, &resumed.theta);
            }
        }
    }
}

#[test]
fn control_variates_of_scaffold_equal_the_gradients_if_all_devices_send() {
    // c_m⁺ = c_m − c − Δ̂_m/(τη); in the first round c = c_m = 0, so that c_m = −Δ̂_m/(τη) and c is their
    // mean.
    let rule: Arc<dyn Correction> = Arc::new(Scaffold {});
    let mut pair = Pair::new(&rule);
    // Four of the five devices send zeros, so that all quotients are exact.
    let sent: Vec<(u32, Vec<f32>)> =
        (0..5).map(|m| (m, vec![if m == 2 { -1.25 } else { 0.0 }; DIM])).collect();
    pair.round(&sent, 0.5);
    assert_eq!(pair.control, [0.5; DIM]);
    let linear = pair.linear();
    for (m, term) in linear.iter().enumerate() {
        assert_eq!(term, &[if m == 2 { 0.5 - 2.5 } else { 0.5 }; DIM]);
    }
    let sum: f32 = linear.iter().map(|term| term[0]).sum();
    assert_eq!(sum, 0.0);
}

#[test]
fn feddyn_moves_the_model_by_the_sum_of_all_updates_over_m() {
    let rule: Arc<dyn Correction> = Arc::new(FedDyn { alpha: 0.25 });
    let mut pair = Pair::new(&rule);
    pair.round(&[(0, vec![5.0; DIM])], 1.0);
    // H = −0.25·5/5 and θ moves by −H/α = 1; in the next round H is the same and θ moves again.
    assert_eq!((pair.control[0], pair.theta[0]), (-0.25, 1.0));
    pair.round(&[], 1.0);
    assert_eq!((pair.control[0], pair.theta[0]), (-0.25, 2.0));
    assert_eq!(pair.linear()[0], [1.25; DIM]);
}
