use super::*;
use crate::base::rng::{Purpose, stream};
use crate::compress::{Encoded, Scratch, SparseScheme, SparseUpdate, Stc, TopK};
use crate::parts::{Scope, find};
use proptest::prelude::*;
use toml::Table;

fn part(name: &str) -> Box<dyn ErrorFeedback> {
    find::<dyn ErrorFeedback>(name).unwrap().build(&Table::new(), &Scope::default(), &()).unwrap()
}

fn compressed(scheme: &impl SparseScheme, v: &[f32], q: usize) -> Encoded {
    let mut out = SparseUpdate::default();
    scheme.compress(v, q, &mut stream(0, Purpose::Test, 0, 0), &mut Scratch::default(), &mut out);
    Encoded::Sparse(out)
}

fn dense(sent: &Encoded, dim: usize) -> Vec<f64> {
    let mut dense = vec![0.0; dim];
    sent.for_each(|i, value| dense[i as usize] = f64::from(value));
    dense
}

fn energy(v: impl IntoIterator<Item = f64>) -> f64 {
    v.into_iter().map(|x| x * x).sum()
}

fn wide(v: &[f32]) -> impl Iterator<Item = f64> + '_ {
    v.iter().map(|&x| f64::from(x))
}

#[test]
fn parameters_out_of_range_name_their_table_and_key() {
    for (name, key, wrong) in [
        ("decay", "lambda", 1.5),
        ("decay", "lambda", -0.1),
        ("momentum", "mu", 1.0),
        ("momentum", "mu", f64::NAN),
        ("ef21", "kappa", 0.0),
        ("ef21", "kappa", 1.01),
    ] {
        let own = Table::from_iter([(key.to_owned(), toml::Value::Float(wrong))]);
        let error = find::<dyn ErrorFeedback>(name).unwrap().build(&own, &Scope::default(), &());
        let error = error.err().unwrap().to_string();
        assert!(error.starts_with(&format!("compress.{name}.{key}: ")), "{error}");
    }
}

proptest! {
    #[test]
    fn decay_keeps_the_stated_share_of_the_unsent_part(
        updates in prop::collection::vec(prop::collection::vec(-9.0..9.0f32, 20), 1..6), q in 1usize..20,
    ) {
        let (decay, mut state, mut e) = (part("decay"), Vec::new(), vec![0.0f64; 20]);
        for delta in updates {
            let mut v = delta.clone();
            decay.prepare(&mut state, &mut v, 1);
            let sent = compressed(&TopK {}, &v, q);
            decay.settle(&mut state, &v, &sent, 1);
            // The same in double precision, with the same indices: e ← 0.9·(Δ + e − v̂).
            let whole: Vec<f64> = wide(&delta).zip(&e).map(|(delta, e)| delta + e).collect();
            let mut rest = whole;
            sent.for_each(|i, value| rest[i as usize] -= f64::from(value));
            e = rest.into_iter().map(|rest| 0.9 * rest).collect();
            prop_assert!(state.iter().zip(&e).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-4));
        }
    }

    #[test]
    fn momentum_correction_is_the_loop_of_the_formula_and_masks_sent_entries(
        updates in prop::collection::vec(prop::collection::vec(-9.0..9.0f32, 20), 1..8), q in 1usize..20,
    ) {
        let (momentum, mut state) = (part("momentum"), Vec::new());
        let (mut u, mut z) = (vec![0.0f64; 20], vec![0.0f64; 20]);
        for delta in updates {
            let mut v = delta.clone();
            momentum.prepare(&mut state, &mut v, 1);
            let sent = compressed(&TopK {}, &v, q);
            for i in 0..20 {
                u[i] = 0.9 * u[i] + f64::from(delta[i]);
                z[i] += u[i];
            }
            prop_assert!(wide(&v).zip(&z).all(|(v, z)| (v - z).abs() < 1e-3));
            momentum.settle(&mut state, &v, &sent, 1);
            sent.for_each(|i, _| (u[i as usize], z[i as usize]) = (0.0, 0.0));
            prop_assert!(wide(&state).zip(u.iter().chain(&z)).all(|(a, b)| (a - b).abs() < 1e-3));
            sent.for_each(|i, _| assert!(state[i as usize] == 0.0 && state[20 + i as usize] == 0.0));
        }
    }

    #[test]
    fn at_frozen_updates_the_potential_falls_by_exactly_the_sent_energy(
        deltas in prop::collection::vec(prop::collection::vec(-9.0..9.0f32, 30), 3),
        turns in prop::collection::vec((0usize..3, 1usize..20, any::<bool>()), 1..20),
    ) {
        let ef21 = part("ef21");
        let mut states = vec![Vec::new(); 3];
        let innovation = |states: &mut Vec<Vec<f32>>, m: usize| {
            let mut v = deltas[m].clone();
            ef21.prepare(&mut states[m], &mut v, 1);
            v
        };
        let potential = |states: &mut Vec<Vec<f32>>| -> f64 {
            (0..3).map(|m| energy(wide(&innovation(states, m)))).sum()
        };
        for (m, q, stc) in turns {
            let before = potential(&mut states);
            let v = innovation(&mut states, m);
            let sent = if stc { compressed(&Stc {}, &v, q) } else { compressed(&TopK {}, &v, q) };
            ef21.settle(&mut states[m], &v, &sent, 1);
            let fall = before - potential(&mut states);
            let sent_energy = energy(dense(&sent, 30));
            // Exact but for the rounding of 32-bit numbers.
            prop_assert!((fall - sent_energy).abs() <= 1e-5 * before + 1e-9, "{} {}", fall, sent_energy);
        }
    }

    #[test]
    fn a_state_nears_a_constant_update_by_the_root_of_one_minus_delta(
        delta in prop::collection::vec(-9.0..9.0f32, 30), q in 1usize..20,
    ) {
        let (ef21, mut state) = (part("ef21"), Vec::new());
        for _ in 0..6 {
            let mut v = delta.clone();
            ef21.prepare(&mut state, &mut v, 1);
            let sent = compressed(&TopK {}, &v, q);
            let before = energy(wide(&v));
            if before < 1e-6 {
                break;
            }
            // δ of this upload, from its definition.
            let left: Vec<f64> = wide(&v).zip(dense(&sent, 30)).map(|(v, sent)| v - sent).collect();
            let contraction = (energy(left) / before).sqrt();
            // Top-q has δ ≥ q/d whatever the update.
            prop_assert!(contraction <= (1.0 - q as f64 / 30.0).sqrt() + 1e-6);
            ef21.settle(&mut state, &v, &sent, 1);
            let mut after = delta.clone();
            ef21.prepare(&mut state, &mut after, 1);
            let ratio = (energy(wide(&after)) / before).sqrt();
            prop_assert!((ratio - contraction).abs() < 1e-4, "{} {}", ratio, contraction);
        }
    }
}

#[test]
fn a_silent_upload_moves_no_state() {
    let (ef21, mut state) = (part("ef21"), vec![1.0, 2.0]);
    ef21.settle(&mut state, &[5.0, 5.0], &Encoded::Silent, 1);
    assert_eq!(state, [1.0, 2.0]);
}

#[test]
fn a_state_ages_by_kappa_for_each_round_since_its_last_upload() {
    let own = Table::from_iter([("kappa".to_owned(), toml::Value::Float(0.5))]);
    let ef21 = find::<dyn ErrorFeedback>("ef21").unwrap().build(&own, &Scope::default(), &()).unwrap();
    let mut state = vec![8.0, -4.0];
    let mut v = vec![1.0, 1.0];
    ef21.prepare(&mut state, &mut v, 3);
    assert_eq!(v, [1.0 - 1.0, 1.0 + 0.5]);
    ef21.settle(&mut state, &v, &Encoded::Dense(vec![0.0, 1.5]), 3);
    assert_eq!(state, [1.0, 1.0]);
}
