//! The invariants of every path loss law in the registry.

use super::*;
use crate::parts::Scope;
use toml::Table;

const SITE: Site = Site { carrier_hz: 2e9, height_bs_m: None, height_ut_m: None, extrapolate: false };

#[test]
fn every_law_rises_with_distance_in_its_domain_and_is_finite() {
    for entry in PATH_LOSSES {
        let law = entry.build(&Table::new(), &Scope::default(), &SITE).unwrap();
        let domain = law.domain_m();
        assert!(domain.contains(&law.min_distance_m()), "{}", entry.name);
        for line_of_sight in [true, false] {
            let loss = |d: f64| law.loss_db(&Path::new(d, law.heights(), line_of_sight));
            let mut last = f64::NEG_INFINITY;
            for i in 0..4000 {
                let distance = 1.0025f64.powi(i);
                if domain.contains(&distance) {
                    let here = loss(distance);
                    assert!(here.is_finite() && here >= last - 1e-9, "{}: {distance} m: {here}", entry.name);
                    last = here;
                }
            }
            let shadowing = law.shadowing_db(line_of_sight);
            assert!((0.0..=10.0).contains(&shadowing), "{}", entry.name);
        }
        let clear = |d: f64| law.loss_db(&Path::new(d, law.heights(), true));
        let blocked = |d: f64| law.loss_db(&Path::new(d, law.heights(), false));
        assert!(
            (1..50).all(|i| blocked(f64::from(i) * 100.0) >= clear(f64::from(i) * 100.0)),
            "{}",
            entry.name
        );
    }
}

#[test]
fn carriers_and_heights_outside_a_law_are_refused_by_their_key_unless_extrapolated() {
    let build = |name: &str, site: Site| {
        let entry = PATH_LOSSES.iter().find(|entry| entry.name == name).unwrap();
        entry.build(&Table::new(), &Scope::default(), &site).map(|_| ()).map_err(|error| error.to_string())
    };
    for (name, site, key) in [
        ("cost231-hata", Site { carrier_hz: 3.5e9, ..SITE }, "radio.carrier_hz: is 3500000000,"),
        ("cost231-hata", Site { height_bs_m: Some(10.0), ..SITE }, "cell.height_bs_m: is 10,"),
        ("cost231-hata", Site { height_ut_m: Some(0.5), ..SITE }, "cell.height_ut_m: is 0.5,"),
        ("umi", Site { carrier_hz: 1e8, ..SITE }, "radio.carrier_hz: is 100000000,"),
        ("uma", Site { height_ut_m: Some(20.0), ..SITE }, "cell.height_ut_m: is 20,"),
    ] {
        let error = build(name, site).unwrap_err();
        assert!(error.starts_with(key) && error.contains("cell.extrapolate = true"), "{error}");
        assert_eq!(build(name, Site { extrapolate: true, ..site }), Ok(()));
        assert!(build(name, Site { carrier_hz: f64::NAN, extrapolate: true, ..site }).is_err());
    }
}
