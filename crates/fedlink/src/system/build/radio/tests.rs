//! The uplink of configurations.

use super::*;
use crate::base::units::{DeviceId, dbm_to_watt, to_db};
use crate::parts::Parts;
use crate::radio::fading::Constant;
use crate::radio::rate::FiniteBlocklength;
use crate::spec::Config;

/// The uplink of a configuration, or its error.
fn built(text: &str) -> Result<Radio, String> {
    let config = Config::from_toml(text).map_err(|error| error.to_string())?;
    config.resolve(&Parts::default()).and_then(|spec| radio(&spec, 1000)).map_err(|error| error.to_string())
}

fn refused(text: &str) -> String {
    built(text).err().unwrap_or_else(|| panic!("accepted: {text}"))
}

/// A trace with this text, as a path in a configuration.
fn trace(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    format!("[radio.trace]\nfile = {:?}\n", path.display().to_string())
}

#[test]
fn resource_blocks_of_a_trace_are_those_that_devices_choose_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = trace(&folder, "blocks.csv", "round,device,gain,rb\n0,0,1,0\n0,0,9,1\n0,1,8,0\n0,1,2,1\n");
    let head = "[data]\ndevices = 2\n[schedule]\nk = 2\n[radio]\nfading = \"trace\"\n";
    let text = format!("{head}access = \"ofdma\"\nbandwidth_hz = 1e6\n{file}");
    let radio = built(&format!("{text}[radio.ofdma]\nresource_blocks = 2")).unwrap();
    let links = radio.links(0);
    assert_eq!(links.gains, [5.0, 5.0]);
    assert_eq!(links.known.blocks(DeviceId(0)), [0.2, 1.8]);
    assert_eq!(links.known.blocks(DeviceId(1)), [1.6, 0.4]);
    // Each device has only its best block, with all its power: log2(1 + γ·2) with the gain of the block.
    let devices: Vec<DeviceId> = DeviceId::all(2).collect();
    let grants = radio.grant(&devices, &[1.0, 1.0], &links.known);
    for (grant, gain) in grants.iter().zip([9.0, 8.0]) {
        let snr = gain * links.known.power(DeviceId(0)).0 / radio.noise() * 2.0;
        assert!((grant.budget.0 / (2500.0 * (1.0 + snr).log2()) - 1.0).abs() < 1e-12, "{grant:?}");
    }
    let error = refused(&format!("{text}[radio.ofdma]\nresource_blocks = 3"));
    assert_eq!(error, "radio.ofdma.resource_blocks: is 3, but the trace has 2 resource blocks");
}

/// 0 dB at 1 MHz and 20 dBm is −7 dB at 5 MHz, 10 dB at 0.1 MHz, and −10 dB with 10 dBm.
#[test]
fn snrs_hold_at_their_bandwidth_and_power() {
    let snr_db = |keys: &str| {
        let radio = built(&format!("[radio]\nfading = \"static\"\nsnr_db = [20, 0]\n{keys}")).unwrap();
        let links = radio.links(0);
        to_db(links.gains[39] * links.known.powers[39] / radio.noise())
    };
    let at = "snr_bandwidth_hz = 1e6\nsnr_power_dbm = 20.0\n";
    for (bandwidth, power, wanted) in
        [(1e6, 20.0, 0.0), (5e6, 20.0, -6.989_700_043_360_188), (1e5, 20.0, 10.0), (1e6, 10.0, -10.0)]
    {
        let own = format!("bandwidth_hz = {bandwidth}\npower_dbm = {power:?}\n");
        let anchored = snr_db(&format!("{at}{own}"));
        assert!((anchored - wanted).abs() < 1e-9, "{own}: {anchored}");
        // Without a reference they hold where they are used.
        assert!(snr_db(&own).abs() < 1e-9, "{own}");
    }
    let error = refused("[radio]\nsnr_db = 3\nsnr_power_dbm = 20.0");
    assert!(error.contains("radio.snr_power_dbm: has no effect here"), "{error}");
}

#[test]
fn estimates_of_measured_snrs_are_snrs_too() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<String> = (0..400).map(|t| format!("{t},0,{}", 10 + t % 2)).collect();
    let file = trace(&folder, "snr.csv", &format!("round,device,snr_db\n{}\n", rows.join("\n")));
    let head = "[data]\ndevices = 1\n[schedule]\nk = 1\n[run]\nrounds = 400\n[radio]\nfading = \"trace\"\n";
    let radio = built(&format!("{head}csi_error = 0.01\nbandwidth_hz = 1e6\n{file}")).unwrap();
    let ratio = |t: u64| {
        let links = radio.links(t);
        let snr = links.gains[0] * links.known.powers[0] / radio.noise();
        assert!((to_db(snr) - (10 + t % 2) as f64).abs() < 1e-9);
        links.known.gains[0] / links.gains[0]
    };
    let mean = (0..400).map(ratio).sum::<f64>() / 400.0;
    // An error of 1 % moves a gain by some 20 %; in another unit it would be off by orders of magnitude.
    assert!((mean - 1.0).abs() < 0.05, "{mean}");
}

#[test]
fn keys_whose_effect_measured_values_contain_are_refused_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    let snr = trace(&folder, "snr.csv", "round,device,snr_db\n0,0,10\n");
    let rate = trace(&folder, "rate.csv", "round,device,rate_bps\n0,0,1e6\n");
    let head = "[radio]\nfading = \"trace\"\nbandwidth_hz = 1e6\n";
    let cell = "[cell]\nlayout = \"ring\"\npathloss = \"3gpp-macro\"\n";
    for (text, key) in [
        (format!("{head}{snr}{cell}"), "cell.pathloss: has no effect on SNRs that were measured"),
        (format!("{head}{rate}{cell}"), "cell.pathloss: has no effect on rates that were measured"),
        (format!("{head}snr_db = 3\n{snr}"), "radio.snr_db: has no effect on SNRs that were measured"),
        (format!("{head}csi_error = 0.1\n{rate}"), "radio.csi_error: has no effect on rates"),
        (format!("{head}rate = \"mcs\"\n{rate}"), "radio.rate: has no effect on rates"),
        (format!("{head}csi_delay_s = 0.1\n{snr}"), "radio.csi_delay_s: has no effect here: radio.fading"),
    ] {
        let error = refused(&text);
        assert!(error.starts_with(key), "{error}\nshould start with\n{key}");
    }
    assert!(built(&format!("{head}{snr}")).is_ok() && built(&format!("{head}{rate}")).is_ok());
    let timed = trace(&folder, "timed.csv", "time_s,device,gain\n0,0,1\n1,0,2\n");
    assert!(built(&format!("{head}csi_delay_s = 0.1\nperiod_s = 0.5\n{timed}")).is_ok());
}

#[test]
fn a_custom_law_brings_its_antennas_and_its_correlation() {
    let parts = Parts::default().fading("mine", "a test", |_, _| Ok(Box::new(Constant)));
    let error = |change: &dyn Fn(&mut Config)| {
        let mut config = Config::default();
        config.radio.fading = "mine".into();
        change(&mut config);
        config.resolve(&parts).and_then(|spec| radio(&spec, 1000)).err().map(|error| error.to_string())
    };
    assert_eq!(error(&|_| ()), None);
    let antennas = error(&|config| config.radio.antennas = 2).unwrap();
    assert!(antennas.starts_with("radio.antennas: has no effect on radio.fading = \"mine\""));
    let correlation = error(&|config| config.radio.correlation = 0.5).unwrap();
    assert!(correlation.starts_with("radio.correlation: has no effect on radio.fading = \"mine\""));
}

#[test]
fn devices_drift_also_where_fading_has_no_amplitude() {
    let folder = tempfile::tempdir().unwrap();
    let file = trace(&folder, "ones.csv", "1,1\n");
    for fading in ["static", "nakagami", "trace"] {
        let file = if fading == "trace" { file.as_str() } else { "" };
        let moving = format!(
            "[radio]\nfading = \"{fading}\"\nbandwidth_hz = 1e6\nspeed_kmh = 36.0\ncarrier_hz = 2e9\n\
             period_s = 1.0\n{file}[cell]\nlayout = \"disc\"\npathloss = \"3gpp-macro\"\n"
        );
        let radio = built(&format!("{moving}drift = true")).unwrap();
        assert_ne!(radio.mean_gain(0, DeviceId(0)), radio.mean_gain(5, DeviceId(0)), "{fading}");
        let error = refused(&moving);
        assert!(error.contains("radio.speed_kmh: has no effect on"), "{fading}: {error}");
    }
}

#[test]
fn the_nearest_distance_is_that_of_the_law_unless_it_is_given() {
    let nearest = |law: &str, more: &str| {
        let radio = built(&format!(
            "[data]\ndevices = 2000\n[radio]\nbandwidth_hz = 1e6\n[cell]\nlayout = \"disc\"\n\
             radius_m = 200\n\
             pathloss = \"{law}\"\n{more}"
        ));
        let radio = radio.unwrap();
        let cell = radio.cell().unwrap();
        let distances = DeviceId::all(2000).map(|device| cell.position(0, device).distance_m());
        distances.fold(f64::INFINITY, f64::min)
    };
    for (law, more, least) in
        [("3gpp-macro", "", 35.0), ("umi", "", 10.0), ("free-space", "", 1.0), ("umi", "min_m = 50", 50.0)]
    {
        let got = nearest(law, more);
        assert!((least..least + 5.0).contains(&got), "{law}: {got}");
    }
    let square =
        "[radio]\nbandwidth_hz = 1e6\n[cell]\nlayout = \"square\"\npathloss = \"3gpp-macro\"\nmin_m = 0";
    assert!(built(square).is_ok());
}

#[test]
fn no_access_scheme_lets_a_device_exceed_its_largest_power() {
    for access in ["tdma", "fdma", "ofdma"] {
        for k in [1, 4] {
            let radio = built(&format!(
                "[schedule]\nk = {k}\n[radio]\nbandwidth_hz = 1e6\npower_policy = \"equal-energy\"\n\
                 access = \"{access}\"\npower_dbm = 20\n"
            ));
            let radio = radio.unwrap();
            let links = radio.links(0);
            let devices: Vec<DeviceId> = DeviceId::all(k).collect();
            let max = dbm_to_watt(23.0) * (1.0 + 1e-12);
            assert!(links.known.powers.iter().all(|power| *power <= max), "{access}");
            let grants = radio.grant(&devices, &vec![1.0; k], &links.known);
            assert!(grants.iter().all(|grant| grant.power.0 <= max), "{access}: {grants:?}");
        }
    }
}

#[test]
fn combined_transmissions_decode_the_bits_that_the_channel_carries_in_all_of_them() {
    let head = "[data]\ndevices = 200\n[schedule]\nk = 1\n[radio]\nsnr_db = 6\n\
        csi_error = 0.1\nbackoff_db = 1\n";
    let backoff = from_db(-1.0);
    for attempts in [2u64, 3] {
        for (combining, decoded) in [
            ("chase", (|j: f64, g: f64| (1.0 + j * g).log2()) as fn(f64, f64) -> f64),
            ("incremental-redundancy", |j, g| j * (1.0 + g).log2()),
        ] {
            let text = format!("{head}attempts = {attempts}\ncombining = \"{combining}\"");
            let radio = built(&text).unwrap();
            let (mut lost, mut count) = (0.0, 0.0);
            for t in 0..100 {
                let links = radio.links(t);
                for device in DeviceId::all(200) {
                    let (g, seen) = (links.gains[device.index()], links.known.gain(device));
                    let grant = radio.grant(&[device], &[1.0], &links.known)[0];
                    // A transmission has n/A symbols, at the estimated rate minus the back-off.
                    let target = (1.0 + backoff * seen * links.known.power(device).0 / radio.noise()).log2();
                    assert!((grant.budget.0 / (5000.0 / attempts as f64 * target) - 1.0).abs() < 1e-9);
                    let truth = g * links.known.power(device).0 / radio.noise();
                    let needed = (1..=attempts).find(|&j| decoded(j as f64, truth) >= target);
                    let carried = radio.carry(t, device, &grant, &links);
                    assert_eq!(carried.delivered, needed.is_some());
                    let sent = needed.unwrap_or(attempts) as f64 / attempts as f64;
                    assert!((carried.airtime.0 / grant.airtime.0 - sent).abs() < 1e-12);
                    lost += f64::from(u8::from(!carried.delivered));
                    count += 1.0;
                }
            }
            if combining == "chase" {
                // A transmissions have the same effect as a back-off by A: ½(1 − tr/√(tr² + 4b(1−ε)ε)), tr =
                // 1 − b(1−ε).
                let b = backoff / attempts as f64;
                let tr = 1.0 - 0.9 * b;
                let truth = 0.5 * (1.0 - tr / (tr * tr + 4.0 * b * 0.9 * 0.1).sqrt());
                let slack = 4.0 * (truth * (1.0 - truth) / count).sqrt();
                assert!((lost / count - truth).abs() < slack, "{}: {truth}", lost / count);
            }
        }
    }
    let error = refused("[radio]\nattempts = 2\ncombining = \"chase\"");
    assert!(error.contains("radio.attempts: has no effect here"), "{error}");
    let error = refused("[radio]\ncsi_error = 0.1\ncombining = \"chase\"");
    assert!(
        error
            .contains("radio.combining: has no effect here: it combines the transmissions of radio.attempts"),
        "{error}"
    );
}

#[test]
fn short_packets_that_are_combined_are_lost_as_one_of_their_length_and_strength() {
    // Both transmissions by the normal approximation, with twice the SNR or twice the symbols.
    for combining in ["chase", "incremental-redundancy"] {
        let radio = built(&format!(
            "[data]\ndevices = 400\n[schedule]\nk = 1\n[radio]\nfading = \"static\"\n\
             symbols = 60\nsnr_db = -8\n\
             rate = \"finite-blocklength\"\nattempts = 2\ncombining = \"{combining}\"\n\
             [radio.finite-blocklength]\nerror = 0.3"
        ));
        let radio = radio.unwrap();
        let (snr, n) = (from_db(-8.0), 30.0);
        let bits = FiniteBlocklength::new(0.3).bits(snr, n);
        let both = match combining {
            "chase" => FiniteBlocklength::new(0.3).loss(2.0 * snr, n, bits),
            _ => FiniteBlocklength::new(0.3).loss(snr, 2.0 * n, bits),
        };
        let (mut first, mut lost) = (0.0, 0.0);
        for t in 0..50 {
            let links = radio.links(t);
            for device in DeviceId::all(400) {
                let grant = radio.grant(&[device], &[1.0], &links.known)[0];
                assert!((grant.budget.0 / bits - 1.0).abs() < 1e-9);
                let carried = radio.carry(t, device, &grant, &links);
                lost += f64::from(u8::from(!carried.delivered));
                first += f64::from(u8::from(carried.airtime.0 < 0.75 * grant.airtime.0));
            }
        }
        let near = |share: f64, truth: f64| {
            let slack = 4.0 * (truth * (1.0 - truth) / 20_000.0f64).sqrt();
            assert!((share - truth).abs() < slack, "{combining}: {share}, not {truth} ± {slack}");
        };
        assert!(both > 0.01 && both < 0.2, "{both}");
        near(lost / 20_000.0, both);
        near(first / 20_000.0, 1.0 - FiniteBlocklength::new(0.3).loss(snr, n, bits));
    }
}

#[test]
fn keys_that_need_blocks_that_fade_apart_are_refused_over_a_flat_band() {
    let head = "[radio]\nbandwidth_hz = 1e6\naccess = \"ofdma\"\n";
    let (waterfilling, eesm) = ("power = \"waterfilling\"", "effective_snr = \"eesm\"");
    let flat = refused(&format!("{head}[radio.ofdma]\n{waterfilling}"));
    assert!(flat.starts_with("radio.ofdma.power: has no effect here: it needs resource blocks"), "{flat}");
    let selective = format!("{head}profile = \"tdl-a30\"\n");
    assert!(built(&format!("{selective}[radio.ofdma]\n{waterfilling}")).is_ok());
    let shannon = refused(&format!("{selective}[radio.ofdma]\n{eesm}"));
    assert!(shannon.starts_with("radio.ofdma.effective_snr: is \"eesm\", which is fitted"), "{shannon}");
    assert!(built(&format!("{selective}rate = \"mcs\"\n[radio.ofdma]\n{eesm}")).is_ok());
}

#[test]
fn overhead_takes_its_share_of_the_time_of_a_payload() {
    let airtime = |overhead: f64, access: &str| {
        let radio = built(&format!(
            "[schedule]\nk = 2\n[radio]\nfading = \"static\"\nmode = \"payload\"\n\
             payload_bits = 1e4\nsnr_db = 10\n\
             bandwidth_hz = 1e6\naccess = \"{access}\"\noverhead = {overhead:?}"
        ));
        let radio = radio.unwrap();
        let links = radio.links(0);
        radio.payload_airtime(DeviceId(0), &links.known).0 * radio.budget().symbol_s().unwrap()
    };
    // 10⁴ bits at log2(11) bits per symbol and 1e6·(1 − overhead) symbols per second.
    assert!((airtime(0.0, "tdma") - 1e4 / 11f64.log2() / 1e6).abs() < 1e-12);
    for access in ["tdma", "fdma", "ofdma"] {
        assert!((airtime(0.25, access) / airtime(0.0, access) - 4.0 / 3.0).abs() < 1e-9, "{access}");
    }
}
