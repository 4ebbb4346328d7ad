//! The cell as a whole.

use super::layout::{Area, Disc, Origin, Positions, Ring, Tracks};
use super::pathloss::{Cost231Hata, LogDistance, MacroCell, Off, Umi};
use super::*;
use crate::base::units::from_db;

const AREA: Area = Area { devices: 40, radius_m: 500.0, min_m: 35.0 };

fn parts(layout: Box<dyn Layout>, pathloss: Box<dyn PathLoss>) -> CellParts {
    CellParts {
        devices: 40,
        seed: 3,
        layout,
        pathloss,
        shadowing_db: 0.0,
        correlation_m: 0.0,
        line_of_sight: LineOfSight::Drawn,
        carrier_hz: 2e9,
        gain_tx_dbi: 0.0,
        gain_rx_dbi: 0.0,
        drift: None,
        period_s: 1.0,
        extrapolate: false,
    }
}

fn disc() -> Box<dyn Layout> {
    Box::new(Disc { area: AREA, seed: 3 })
}

fn umi() -> Box<dyn PathLoss> {
    Box::new(Umi { carrier_hz: 2e9, heights: Umi::HEIGHTS })
}

#[test]
fn a_ring_at_the_cell_edge_has_the_link_budget_of_a_phone_at_full_power() {
    // 23 dBm, 1 MHz, −174 dBm/Hz, noise figure 5 dB: 15.2 dB at 500 m; 0 dB at 7.8 dBm.
    let cell = Cell::new(parts(Box::new(Ring { area: AREA }), Box::new(MacroCell))).unwrap();
    let noise_dbm = -174.0 + 5.0 + 60.0;
    for device in DeviceId::all(40) {
        let snr_db = 23.0 + cell.gain_db(7, device) - noise_dbm;
        assert!((snr_db - 15.2).abs() < 0.05, "{snr_db}");
        assert!((from_db(7.8 + cell.gain_db(0, device) - noise_dbm) - 1.0).abs() < 0.01);
    }
}

#[test]
fn antenna_gains_and_shadowing_add_in_decibels() {
    let plain = Cell::new(parts(disc(), Box::new(MacroCell))).unwrap();
    let more = CellParts {
        gain_tx_dbi: 1.0,
        gain_rx_dbi: 14.0,
        shadowing_db: 8.0,
        ..parts(disc(), Box::new(MacroCell))
    };
    let more = Cell::new(more).unwrap();
    let mut differs = false;
    for device in DeviceId::all(40) {
        let link = more.path(0, device);
        let expected = plain.gain_db(0, device) + 15.0 + link.shadowing_db;
        assert!((more.gain_db(0, device) - expected).abs() < 1e-12);
        differs |= link.shadowing_db.abs() > 1.0;
    }
    assert!(differs, "shadowing of 8 dB must show");
}

#[test]
fn the_loss_is_at_least_that_of_free_space_and_gains_are_finite_at_the_server() {
    let at = |text: &str| Box::new(Positions::parse(text, 2).unwrap());
    let near = CellParts { devices: 2, ..parts(at("0,10,0\n1,0,0\n"), Box::new(MacroCell)) };
    let cell = Cell::new(near).unwrap();
    assert!((cell.path(0, DeviceId(0)).loss_db - free_space_db(10.0, 2e9)).abs() < 1e-12);
    assert_eq!(cell.path(0, DeviceId(1)).loss_db, 0.0);
    let weak = LogDistance { exponent: 1.0, loss_db: 0.0, reference_m: 1.0, heights: Heights::NONE };
    let cell = Cell::new(CellParts { devices: 2, ..parts(at("0,100,0\n1,0,0\n"), Box::new(weak)) }).unwrap();
    assert!((cell.gain_db(0, DeviceId(0)) + free_space_db(100.0, 2e9)).abs() < 1e-12);
}

#[test]
fn no_layout_and_no_path_loss_leave_gains_at_one() {
    let cell = Cell::new(parts(Box::new(Origin), Box::new(Off))).unwrap();
    assert!(DeviceId::all(40).all(|device| from_db(cell.gain_db(9, device)) == 1.0));
}

#[test]
fn devices_outside_the_domain_of_a_law_are_named_with_their_distance() {
    let law =
        || Box::new(Cost231Hata { carrier_hz: 2e9, heights: Cost231Hata::HEIGHTS, metropolitan: false });
    let error = Cell::new(parts(Box::new(Ring { area: AREA }), law())).err().unwrap().to_string();
    assert_eq!(
        error,
        "cell.pathloss: device 0 is 500.0 m from the server, but this law holds for 1000..=20000 m; move \
         devices by cell.min_m, cell.radius_m or cell.layout, or set cell.extrapolate = true"
    );
    let allowed = CellParts { extrapolate: true, ..parts(Box::new(Ring { area: AREA }), law()) };
    let loss = Cell::new(allowed).unwrap().path(0, DeviceId(0)).loss_db;
    assert!(loss < 137.744 && loss > 120.0, "{loss}");
}

#[test]
fn lines_of_sight_are_drawn_with_their_probability_or_set() {
    let area = Area { devices: 20_000, radius_m: 50.0, min_m: 10.0 };
    let ring = || Box::new(Ring { area });
    let share = |line_of_sight| {
        let cell = Cell::new(CellParts { devices: 20_000, line_of_sight, ..parts(ring(), umi()) }).unwrap();
        DeviceId::all(20_000).filter(|&device| cell.path(0, device).path.line_of_sight).count() as f64
            / 20_000.0
    };
    assert!((share(LineOfSight::Drawn) - 0.5196).abs() < 5.0 * (0.25f64 / 20_000.0).sqrt());
    assert_eq!([share(LineOfSight::Always), share(LineOfSight::Never)], [1.0, 0.0]);
}

#[test]
fn heights_of_a_file_replace_those_of_the_law() {
    let layout = || Box::new(Positions::parse("0,100,0,1.5\n1,100,0,10\n2,100,0\n", 3).unwrap());
    let cell = Cell::new(CellParts { devices: 3, ..parts(layout(), umi()) }).unwrap();
    let distance = |device| cell.path(0, DeviceId(device)).path.distance_3d_m;
    assert_eq!(distance(0), distance(2));
    assert_eq!(distance(1), 100.0);
    assert!((distance(0) - 100.360_6).abs() < 1e-4);
    // 22.4 + 35.3·log10 d + 21.3·log10 f − 0.3·(h_UT − 1.5), with d = 100 m and h_UT = 10 m.
    let never = CellParts { devices: 3, line_of_sight: LineOfSight::Never, ..parts(layout(), umi()) };
    let loss = Cell::new(never).unwrap().path(0, DeviceId(1)).loss_db;
    assert!((loss - (22.4 + 70.6 + 21.3 * 2f64.log10() - 0.3 * 8.5)).abs() < 1e-9, "{loss}");
    let high = Box::new(Positions::parse("0,100,0,30\n", 1).unwrap());
    let error = Cell::new(CellParts { devices: 1, ..parts(high, umi()) }).err().unwrap().to_string();
    assert!(error.starts_with("cell.pathloss: device 0 is 30 m high, but this law holds for 1.5..=22.5 m"));
}

#[test]
fn devices_on_tracks_have_the_loss_of_where_they_are() {
    let ways = || Box::new(Tracks::parse("0,0,100,0\n10,0,400,0\n0,1,50,0\n", 2).unwrap());
    let parts = || CellParts { devices: 2, period_s: 0.5, ..parts(ways(), Box::new(MacroCell)) };
    let cell = Cell::new(parts()).unwrap();
    for (t, distance) in [(0, 100.0), (10, 250.0), (20, 400.0), (99, 400.0)] {
        let loss = 128.1 + 37.6 * f64::log10(distance / 1000.0);
        assert!((cell.path(t, DeviceId(0)).loss_db - loss).abs() < 1e-9, "{t}");
        assert!((cell.gain_db(t, DeviceId(0)) + loss).abs() < 1e-9, "{t}");
    }
    assert_eq!(cell.gain_db(0, DeviceId(1)), cell.gain_db(50, DeviceId(1)));
    // Positions that are reached later are checked too.
    let far = Box::new(Tracks::parse("0,0,100,0\n10,0,9000,0\n0,1,50,0\n", 2).unwrap());
    let error = Cell::new(CellParts { layout: far, pathloss: umi(), ..parts() }).err().unwrap().to_string();
    assert!(error.contains("device 0 is 9000.0 m from the server"), "{error}");
}

#[test]
fn devices_that_move_change_their_gains_within_bounds_at_any_round() {
    let drift = Drift { speed_m_s: 20.0, period_s: 1.0, half_side_m: 500.0, seed: 3 };
    let moving =
        || CellParts { drift: Some(drift), shadowing_db: 4.0, correlation_m: 10.0, ..parts(disc(), umi()) };
    let cell = Cell::new(moving()).unwrap();
    let far = free_space_db(8.5, 2e9);
    let gains: Vec<f64> = (0..200).map(|t| cell.gain_db(t, DeviceId(5))).collect();
    assert!(gains.windows(2).any(|pair| pair[0] != pair[1]));
    // One round alone, from a cell that has computed nothing before.
    assert_eq!(Cell::new(moving()).unwrap().gain_db(150, DeviceId(5)), gains[150]);
    for t in 0..2000 {
        for device in DeviceId::all(10) {
            let link = cell.path(t, device);
            assert!(link.loss_db.is_finite() && link.loss_db >= far, "{t}: {link:?}");
        }
    }
    let still = Cell::new(CellParts { drift: None, ..moving() }).unwrap();
    assert_eq!(still.gain_db(0, DeviceId(5)), gains[0]);
    assert_eq!(still.gain_db(99, DeviceId(5)), gains[0]);
    // Their square must lie in the domain, and they in the square.
    let wide = CellParts { drift: Some(Drift { half_side_m: 4000.0, ..drift }), ..moving() };
    assert!(Cell::new(wide).err().unwrap().to_string().contains("come as far as 5656.9 m"));
    let narrow = CellParts { drift: Some(Drift { half_side_m: 50.0, ..drift }), ..moving() };
    assert!(Cell::new(narrow).err().unwrap().to_string().starts_with("cell.radius_m: is 50, but device"));
}
