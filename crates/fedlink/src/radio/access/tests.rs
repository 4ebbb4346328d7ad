//! The invariants of every access scheme in the registry.

use super::*;
use crate::parts::Scope;
use crate::radio::rate::{FiniteBlocklength, Gap, Mcs, Shannon, mcs::Table};
use proptest::prelude::*;

pub const BAND: Band = Band { symbols: 5000 };
pub const SHANNON: Shannon = Shannon {};

/// A link of power 2 at Shannon's rate.
pub fn link(snr: f64) -> Uplink<'static> {
    Uplink { snr, power: Power(2.0), max_power: None, energy_kept: false, rate: &SHANNON, blocks: &[] }
}

fn all(slots: SlotKind) -> Vec<(&'static str, Box<dyn Access>)> {
    let build = |entry: &Entry<dyn Access>| {
        (entry.name, entry.build(&toml::Table::new(), &Scope::default(), &slots).unwrap())
    };
    let mut all: Vec<_> = ACCESSES.iter().map(build).collect();
    for assign in [ofdma::Assign::Hungarian, ofdma::Assign::Contiguous] {
        all.push(("ofdma", Box::new(Ofdma { blocks: 7, assign, slots, ..Ofdma::default() })));
    }
    all
}

fn proper(grant: &Grant) -> bool {
    [grant.symbols.0, grant.power.0, grant.airtime.0, grant.budget.0]
        .iter()
        .all(|x| x.is_finite() && *x >= 0.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_finite_input_gives_proper_grants_that_fit_into_the_round(
        devices in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u8>()), 1..7),
        n in prop_oneof![1..20_000u64, Just(1u64 << 53)],
        blocks in prop::collection::vec(prop_oneof![Just(0.0), 1e-9..10.0f64], 100),
    ) {
        let finite = |bits: u64| Some(f64::from_bits(bits).abs()).filter(|x| x.is_finite()).unwrap_or(0.0);
        let table = Mcs::of(Table::Nr256Qam);
        let rates: [&dyn Rate; 4] = [&SHANNON, &Gap { ratio: 2.0 }, &table, &FiniteBlocklength::new(1e-3)];
        let weights: Vec<f64> = devices.iter().map(|device| finite(device.0)).collect();
        let bits: Vec<f64> = devices.iter().map(|device| (device.2 % 100_000) as f64).collect();
        let links: Vec<Uplink> = devices
            .iter()
            .map(|&(_, snr, power, flags)| {
                let power = Power((power % 1000) as f64);
                Uplink {
                    snr: finite(snr),
                    power,
                    max_power: (flags & 1 > 0).then_some(Power(3.0 * power.0)),
                    // Without a bound the power of a tiny share could be any number.
                    energy_kept: flags & 3 == 3,
                    rate: rates[usize::from(flags >> 2 & 3)],
                    blocks: if flags & 16 > 0 { &blocks } else { &[] },
                }
            })
            .collect();
        let band = Band { symbols: n };
        for slots in [SlotKind::Real, SlotKind::Whole] {
            for (name, access) in all(slots) {
                let grants = access.grant(&weights, &links, &band);
                prop_assert_eq!(grants.len(), links.len());
                prop_assert!(grants.iter().all(proper), "{}: {:?}", name, grants);
                let total: f64 = grants.iter().map(|grant| grant.symbols.0).sum();
                prop_assert!(total <= n as f64 * (1.0 + 1e-9), "{}: {} of {}", name, total, n);
                for link in &links {
                    prop_assert!(proper(&access.transfer(&grants[0], link, &band)), "{}", name);
                    prop_assert!(access.alone(link, &band).0.is_finite(), "{}", name);
                }
                let ready = vec![3.0; links.len()];
                let sent = access.payload(&bits, &links, &ready, &band);
                prop_assert_eq!(sent.len(), links.len());
                prop_assert!(sent.iter().all(proper), "{}: {:?}", name, sent);
            }
        }
    }

    #[test]
    fn bits_rise_with_symbols_and_with_the_link(
        db in -20.0..40.0f64, more in 0.0..10.0f64, low in 0.0..5000.0f64, high in 0.0..5000.0f64,
    ) {
        let (low, high) = (low.min(high), low.max(high));
        let links = [db, db + more].map(|db| link(f64::powf(10.0, db / 10.0)));
        for (name, access) in all(SlotKind::Real) {
            let bits = access.bits(&links[0], low, &BAND);
            prop_assert!(bits <= access.bits(&links[0], high, &BAND) * (1.0 + 1e-12), "{}", name);
            prop_assert!(bits <= access.bits(&links[1], low, &BAND) * (1.0 + 1e-12), "{}", name);
        }
    }
}

#[test]
fn one_device_alone_gets_the_whole_band_and_takes_over_its_own_grant_unchanged() {
    for (name, access) in all(SlotKind::Real) {
        let link = link(12.0);
        let grant = access.grant(&[0.7], &[link], &BAND)[0];
        if name != "ofdma" || grant.symbols.0 > 4999.0 {
            assert_eq!(grant.budget, access.alone(&link, &BAND), "{name}");
            assert!((grant.symbols.0 - 5000.0).abs() < 1e-9, "{name}");
        }
        assert_eq!(access.transfer(&grant, &link, &BAND), grant, "{name}");
    }
}

#[test]
fn a_dead_link_gets_nothing_unless_all_are_dead() {
    for (name, access) in all(SlotKind::Real) {
        let grants = access.grant(&[1.0, 1.0], &[link(0.0), link(3.0)], &BAND);
        assert_eq!((grants[0].symbols, grants[0].budget), (Symbols(0.0), Bits(0.0)), "{name}");
        assert!(grants[1].budget.0 > 0.0, "{name}");
        let dead = access.grant(&[1.0, 1.0], &[link(0.0); 2], &BAND);
        assert!(
            dead.iter().all(|grant| grant.symbols.0 > 0.0 && grant.budget == Bits(0.0)),
            "{name}: {dead:?}"
        );
    }
}
