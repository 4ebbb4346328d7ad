//! The invariants of every rate model in the registry.

use super::*;
use crate::parts::Scope;
use proptest::prelude::*;
use toml::Table;

fn all() -> impl Iterator<Item = (&'static str, Box<dyn Rate>)> {
    let tables =
        [("", ""), ("mcs", "table = \"nr-256qam\"\nloss = 0.1"), ("finite-blocklength", "error = 0.5")];
    tables.into_iter().flat_map(|(only, own)| {
        RATES.iter().filter(move |entry| only.is_empty() || entry.name == only).map(move |entry| {
            let own: Table = own.parse().unwrap();
            (entry.name, entry.build(&own, &Scope::default(), &()).unwrap())
        })
    })
}

/// Allows for the last digits of a sum of logarithms.
fn at_most(a: f64, b: f64) -> bool {
    a <= b * (1.0 + 1e-12) + 1e-12
}

proptest! {
    #[test]
    fn rates_are_non_negative_monotone_and_at_most_capacity(
        snr_db in -60.0..80.0f64,
        more_db in 0.0..10.0f64,
        symbols in 0.0..20_000f64,
        longer in 1.0..3.0f64,
    ) {
        let (snr, more) = (f64::powf(10.0, snr_db / 10.0), f64::powf(10.0, (snr_db + more_db) / 10.0));
        for (name, rate) in all() {
            let bits = rate.bits(snr, symbols);
            prop_assert!(bits.is_finite() && bits >= 0.0, "{}: {}", name, bits);
            prop_assert!(at_most(bits, Shannon {}.bits(snr, symbols)), "{}: {}", name, bits);
            prop_assert!(at_most(bits, rate.bits(more, symbols)), "{}: {}", name, bits);
            prop_assert!(at_most(bits, rate.bits(snr, symbols * longer)), "{}: {}", name, bits);
            if let Some(slope) = rate.slope(snr) {
                prop_assert_eq!(bits.to_bits(), (symbols * slope).to_bits(), "{}", name);
            }
            let loss = rate.loss(snr, symbols, bits);
            prop_assert!((0.0..=1.0).contains(&loss), "{}: {}", name, loss);
            prop_assert!(loss <= rate.loss(snr, symbols, bits + 10.0), "{}", name);
        }
    }

    #[test]
    fn spread_energy_is_monotone_at_least_the_plain_rate_and_at_most_the_limit_of_the_energy(
        energy_db in -20.0..80.0f64,
        more in 1.0..4.0f64,
        max_db in -20.0..90.0f64,
        symbols in 1e-3..20_000f64,
        longer in 1.0..3.0f64,
    ) {
        let (energy, max) = (f64::powf(10.0, energy_db / 10.0), f64::powf(10.0, max_db / 10.0));
        for (name, rate) in all() {
            let spread = |snr, max_snr, symbols| rate.spread(&Energy { snr, over: 1.0, max_snr }, symbols);
            let bits = spread(energy, max, symbols);
            prop_assert!(bits.is_finite() && bits >= 0.0, "{}: {}", name, bits);
            prop_assert!(at_most(bits, energy * std::f64::consts::LOG2_E), "{}: {}", name, bits);
            prop_assert!(at_most(bits, spread(energy, max, symbols * longer)), "{}: {}", name, bits);
            prop_assert!(at_most(bits, spread(energy * more, max, symbols)), "{}: {}", name, bits);
            prop_assert!(at_most(bits, spread(energy, max * more, symbols)), "{}: {}", name, bits);
            let plain = rate.bits((energy / symbols).min(max), symbols);
            prop_assert!(at_most(plain, bits), "{}: {} above {}", name, plain, bits);
        }
    }
}

#[test]
fn nothing_is_carried_by_no_symbols_or_no_power_and_huge_numbers_stay_finite() {
    let spread = |rate: &dyn Rate, snr: f64, symbols: f64| {
        rate.spread(&Energy { snr, over: 7.0, max_snr: f64::MAX }, symbols)
    };
    for (name, rate) in all() {
        assert_eq!(rate.bits(0.0, 5000.0), 0.0, "{name}");
        assert_eq!(rate.bits(100.0, 0.0), 0.0, "{name}");
        assert_eq!(spread(&*rate, 100.0, 0.0), 0.0, "{name}");
        assert_eq!(spread(&*rate, 0.0, 100.0), 0.0, "{name}");
        for snr in [f64::MIN_POSITIVE, 1e-200, 1e200, f64::MAX] {
            for symbols in [f64::MIN_POSITIVE, 1.0, 9e15] {
                let bits = rate.bits(snr, symbols);
                assert!(bits.is_finite() && bits >= 0.0, "{name}: b({snr}, {symbols}) = {bits}");
                let bits = spread(&*rate, snr, symbols);
                assert!(bits.is_finite() && bits >= 0.0, "{name}: spread({snr}, {symbols}) = {bits}");
            }
        }
    }
}

/// The fact that a rate model contradicts, if any.
fn contradiction(rate: &dyn Rate) -> Option<&'static str> {
    let snrs = || (-40..=60).map(|db| f64::powf(10.0, f64::from(db) / 10.0));
    let loss = |snr: f64, symbols: f64| rate.loss(snr, symbols, rate.bits(snr, symbols));
    let loses = snrs().any(|snr| [10.0, 100.0, 5000.0].iter().any(|&symbols| loss(snr, symbols) > 0.0));
    (loses && !rate.loses()).then_some("loses")
}

/// Loses one upload in ten and does not declare it.
struct Liar;
impl Rate for Liar {
    fn bits(&self, snr: f64, symbols: f64) -> f64 {
        Shannon {}.bits(snr, symbols)
    }
    fn slope(&self, snr: f64) -> Option<f64> {
        Shannon {}.slope(snr)
    }
    fn loss(&self, _: f64, _: f64, _: f64) -> f64 {
        0.1
    }
}

#[test]
fn a_model_that_declares_no_losses_and_loses_uploads_is_caught() {
    for (name, rate) in all() {
        assert_eq!(contradiction(&*rate), None, "{name}");
    }
    assert_eq!(contradiction(&Liar), Some("loses"));
}
