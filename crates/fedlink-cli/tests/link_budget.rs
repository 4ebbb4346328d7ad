//! Refusals of the radio, the cell, the clock and the energy meter, through the command: impossible values,
//! and keys without an effect.

use assert_cmd::Command;
use fedlink::spec::all_keys;
use std::collections::BTreeSet;
use std::fmt::Write;
use tempfile::TempDir;

/// Settings, `key=value` as in `--set`, and the words that the message must contain.
type Refused = (&'static [&'static str], &'static [&'static str]);

fn fedlink(folder: &TempDir) -> Command {
    let mut command = Command::cargo_bin("fedlink").unwrap();
    command.current_dir(folder.path());
    command
}

/// The one line on standard error with which a command ends that is refused with exit code 2.
fn refused(command: &mut Command) -> String {
    let output = command.assert().code(2).get_output().clone();
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: "), "{message}");
    message
}

/// The settings as a file: numbers, lists and truth values as they are, everything else as text.
fn file(settings: &[&str]) -> String {
    let mut text = String::new();
    for setting in settings {
        let (key, value) = setting.split_once('=').unwrap();
        let plain =
            value.parse::<f64>().is_ok() || value.starts_with('[') || ["true", "false"].contains(&value);
        let _ = if plain { writeln!(text, "{key} = {value}") } else { writeln!(text, "{key} = {value:?}") };
    }
    text
}

/// Refuses the settings as those of `fedlink run` and of `fedlink link-budget`, and as a file, with one
/// message.
fn assert_refused(folder: &TempDir, (settings, wanted): Refused) {
    let words: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    std::fs::write(folder.path().join("mine.toml"), file(settings)).unwrap();
    let messages = [
        refused(fedlink(folder).arg("run").args(&words)),
        refused(fedlink(folder).arg("link-budget").args(&words)),
        refused(fedlink(folder).args(["run", "mine.toml"])),
    ];
    for message in messages {
        for part in wanted {
            assert!(message.contains(part), "{settings:?}: no\n{part}\nin\n{message}");
        }
        assert!(message.lines().count() <= 2, "{settings:?}: one message, not\n{message}");
    }
    std::fs::remove_file(folder.path().join("mine.toml")).unwrap();
}

/// A physical radio.
const W: &str = "radio.bandwidth_hz=1e6";
const DISC: &str = "cell.layout=disc";

/// Impossible values and combinations, and the words that the message must contain.
const IMPOSSIBLE: &[Refused] = &[
    // The shape of a fading law, and where there is none: the law and its range.
    (&["radio.fading=rician", "radio.rician.k_factor=-1"], &["radio.rician.k_factor: is -1", "0"]),
    (&["radio.fading=rician", "radio.rician.k_factor=nan"], &["radio.rician.k_factor: is NaN"]),
    (&["radio.fading=nakagami", "radio.nakagami.shape=0.4"], &["radio.nakagami.shape: is 0.4", "0.5..=1e9"]),
    (&["radio.rician.k_factor=3"], &["radio.rician.k_factor: has no effect", "radio.fading = \"rician\""]),
    (
        &["radio.fading=static", "radio.nakagami.shape=2"],
        &["radio.nakagami.shape: has no effect", "radio.fading = \"nakagami\""],
    ),
    (&["radio.antennas=0"], &["radio.antennas: is 0, but must be in 1..=1024"]),
    (&["radio.antennas=1025"], &["radio.antennas: is 1025, but must be in 1..=1024"]),
    // Correlation: which of the two to drop.
    (&["radio.correlation=1"], &["radio.correlation: is 1, but must be > -1 and < 1"]),
    (&["radio.correlation=-1"], &["radio.correlation: is -1"]),
    (&["radio.correlation=nan"], &["radio.correlation: is NaN"]),
    (
        &["radio.correlation=0.5", "radio.speed_kmh=3", "radio.carrier_hz=2e9", "radio.period_s=0.1"],
        &["radio.correlation: and radio.speed_kmh both set", "leave one of them out"],
    ),
    (
        &["radio.correlation=0.5", "radio.fading=trace", "radio.trace.file=gains.csv"],
        &["radio.correlation: has no effect on radio.fading = \"trace\"", "leave it out"],
    ),
    // Speed: the missing key.
    (&["radio.speed_kmh=-3"], &["radio.speed_kmh: is -3"]),
    (&["radio.speed_kmh=3", "radio.period_s=0.1"], &["radio.speed_kmh: is 3, which needs radio.carrier_hz"]),
    (&["radio.speed_kmh=3", "radio.carrier_hz=2e9"], &["radio.speed_kmh: is 3, which needs radio.period_s"]),
    // Bandwidth: the two modes.
    (&["radio.bandwidth_hz=0"], &["radio.bandwidth_hz: is 0, but must be > 0"]),
    (&["radio.bandwidth_hz=-1e6"], &["radio.bandwidth_hz: is -1000000"]),
    (&[W, "radio.symbols=100"], &["radio.symbols: belongs to the radio without units", "radio.bandwidth_hz"]),
    (&[W, "radio.power=2"], &["radio.power: belongs to the radio without units", "write radio.power_dbm"]),
    (&[W, "radio.noise=2"], &["radio.noise: belongs to the radio without units", "write radio.noise_dbm_hz"]),
    // Time of the uplink: the n that results.
    (&["radio.bandwidth_hz=100", "radio.uplink_s=0.005"], &["radio.uplink_s: gives n", "= 0.5 symbols"]),
    (
        &["radio.bandwidth_hz=1e12", "radio.uplink_s=1e5"],
        &["radio.uplink_s: gives n", "= 100000000000000000 symbols, but must give 1 ..= 2^53"],
    ),
    // Power: both values.
    (
        &[W, "radio.power_dbm=25", "radio.power_max_dbm=20"],
        &["radio.power_dbm: is 25, above radio.power_max_dbm, which is 20"],
    ),
    (&[W, "radio.power_dbm=30"], &["radio.power_dbm: is 30, above radio.power_max_dbm, which is 23"]),
    (&[W, "radio.power_dbm=inf"], &["radio.power_dbm: is inf"]),
    (&[W, "radio.power_dbm=nan"], &["radio.power_dbm: is NaN"]),
    (&["radio.csi_error=-0.1"], &["radio.csi_error: is -0.1, but must be ≥ 0 and < 1"]),
    (&["radio.csi_error=1"], &["radio.csi_error: is 1, but must be ≥ 0 and < 1"]),
    // The error of short packets.
    (
        &["radio.rate=finite-blocklength", "radio.finite-blocklength.error=0"],
        &["radio.finite-blocklength.error: is 0"],
    ),
    (
        &["radio.rate=finite-blocklength", "radio.finite-blocklength.error=0.6"],
        &["radio.finite-blocklength.error: is 0.6"],
    ),
    // The table of modulation and coding: the index of the offender.
    (&["radio.rate=mcs", "radio.mcs.thresholds_db=[1.0, 2.0]"], &["radio.mcs.thresholds_db: ", "15"]),
    (
        &["radio.rate=mcs", "radio.mcs.thresholds_db=[1,2,3,4,5,6,7,7,9,10,11,12,13,14,15]"],
        &["radio.mcs.thresholds_db", "7"],
    ),
    (
        &["radio.access=ofdma", W, "schedule.k=8", "radio.ofdma.resource_blocks=5"],
        &["radio.ofdma.resource_blocks: is 5, but must be in 8..=4096"],
    ),
    (
        &["radio.access=ofdma", "radio.profile=tdl-a30"],
        &["radio.access: is \"ofdma\"", "set radio.bandwidth_hz"],
    ),
    // Transmission over the air is not modeled; the message lists the access schemes.
    (&["radio.access=air"], &["radio.access: is \"air\", which is not one of", "tdma, fdma, ofdma"]),
    // The cell: device and distance.
    (
        &[W, DISC, "cell.pathloss=umi", "cell.radius_m=50", "cell.min_m=60"],
        &["cell.min_m: is 60, but must be below cell.radius_m, which is 50"],
    ),
    (&[DISC, "cell.pathloss=umi"], &["cell.pathloss: has no effect here", "set radio.bandwidth_hz"]),
    (
        &[W, "cell.layout=ring", "cell.radius_m=500", "cell.pathloss=cost231-hata"],
        &["cell.pathloss: device 0 is 500.0 m from the server", "1000..=20000 m", "cell.extrapolate = true"],
    ),
    // The clock: rates above zero, and a deadline that leaves time (the sum).
    (&[W, "clock.compute=flops", "clock.flops.per_s=0"], &["clock.flops.per_s: is 0"]),
    (&[W, "clock.compute=cycles", "clock.cycles.hz=0"], &["clock.cycles.hz: is 0"]),
    (&[W, "clock.compute=rate", "clock.rate.samples_per_s=-1"], &["clock.rate.samples_per_s: is -1"]),
    (&[W, "clock.deadline_s=0.004"], &["clock.deadline_s: is 0.004, but the uplink alone takes 0.005 s"]),
    (
        &[W, "clock.downlink=broadcast", "clock.broadcast.bps=1e7", "clock.deadline_s=0.5"],
        &[
            "clock.deadline_s: is 0.5, but the downlink and the uplink take at least 0.6563 s",
            "(0.6513 + 0.0050)",
        ],
    ),
    (&[W, "energy.battery_j=-1"], &["energy.battery_j: is -1"]),
];

#[test]
fn impossible_values_are_refused_with_the_remedy() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("gains.csv"), "1,1\n").unwrap();
    for &row in IMPOSSIBLE {
        assert_refused(&folder, row);
    }
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["gains.csv"], "nothing half-written");
}

#[test]
fn a_trace_that_cannot_be_is_refused_with_its_line() {
    let folder = TempDir::new().unwrap();
    let traces = [
        ("round,device,gain\n0,0,1\n0,1,2\n1,1,2\n", "line 4: device 0 has no row"),
        ("round,device,gain\n0,0,1\n1,0,nan\n", "line 3"),
        ("round,device,gain\n0,0,1\n1,0,-2\n", "line 3"),
        ("time_s,device,gain\n0,0,1\n2,0,1\n2,0,3\n", "line 4"),
        ("round,device,gain\n", "gains.csv"),
        ("1,2\n3,x\n", "line 2"),
        ("1,2\n3\n", "line 2"),
        ("", "gains.csv"),
    ];
    let words = ["run", "--set", "radio.fading=trace", "--set", "radio.trace.file=gains.csv"];
    let times = ["--set", "radio.period_s=1"];
    for (text, wanted) in traces {
        std::fs::write(folder.path().join("gains.csv"), text).unwrap();
        let more = if text.starts_with("time") { &times[..] } else { &[] };
        let message = refused(fedlink(&folder).args(words).args(more));
        assert!(message.contains("radio.trace.file: ") && message.contains(wanted), "{text}: {message}");
    }
    std::fs::remove_file(folder.path().join("gains.csv")).unwrap();
    let message = refused(fedlink(&folder).args(words));
    assert!(message.contains("radio.trace.file: ") && message.contains("gains.csv"), "{message}");
}

#[test]
fn allowed_but_unusual_settings_give_a_note() {
    let folder = TempDir::new().unwrap();
    let cases: [(&[&str], &str); 3] = [
        (&["radio.csi_error=0.01"], "about 47 % of the uploads will be lost"),
        (&[W, "radio.mode=payload", "schedule.policy=random"], "has no finite mean"),
        (&["radio.csi_error=0.01", "radio.backoff_db=1"], ""),
    ];
    let small = ["learn.model=softmax", "data.devices=8", "data.samples_per_device=50", "run.rounds=1"];
    for (settings, wanted) in cases {
        let words: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let output =
            fedlink(&folder).arg("link-budget").args(&words).assert().success().get_output().stdout.clone();
        let survey = String::from_utf8(output).unwrap();
        let mut run = fedlink(&folder);
        run.arg("run").args(&words).args(["--out", "mine", "--force", "--set", "schedule.k=2"]);
        run.args(small.iter().flat_map(|setting| ["--set", setting]));
        if !settings.iter().any(|setting| setting.starts_with("schedule.policy")) {
            run.args(["--set", "schedule.policy=bc"]);
        }
        let output = run.assert().success().get_output().clone();
        let told = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        for text in [survey, told] {
            if wanted.is_empty() {
                assert!(!text.contains("note: radio.csi"), "{settings:?}: {text}");
            } else {
                assert!(text.contains(wanted), "{settings:?}: no {wanted} in\n{text}");
            }
        }
    }
}

/// Each key in a combination in which it has no effect: the key, the settings.
const IDLE: &[(&str, &[&str])] = &[
    ("radio.antennas", &["radio.antennas=2", "radio.fading=trace", "radio.trace.file=gains.csv"]),
    ("radio.correlation", &["radio.correlation=0.5", "radio.fading=static"]),
    ("radio.correlation", &["radio.correlation=0.5", "radio.fading=nakagami"]),
    (
        "radio.speed_kmh",
        &["radio.speed_kmh=3", "radio.carrier_hz=2e9", "radio.period_s=1", "radio.fading=static"],
    ),
    ("radio.period_s", &["radio.period_s=1"]),
    ("radio.period_s", &["radio.period_s=1", "radio.fading=trace", "radio.trace.file=gains.csv"]),
    ("radio.profile", &[W, "radio.profile=tdl-a30"]),
    ("radio.profile", &[W, "radio.profile=tdl-a30", "radio.access=ofdma", "radio.fading=nakagami"]),
    (
        "radio.delay_spread_s",
        &[W, "radio.access=ofdma", "radio.profile=tdl-a30", "radio.delay_spread_s=1e-7"],
    ),
    ("radio.mean_gains", &["radio.mean_gains=gains.csv", "radio.snr_db=10"]),
    ("radio.snr_db", &["radio.snr_db=10", "radio.fading=trace", "radio.trace.file=snrs.csv"]),
    ("radio.group_sizes", &["radio.group_sizes=[10, 30]"]),
    ("radio.snr_bandwidth_hz", &["radio.snr_db=10", "radio.snr_bandwidth_hz=1e6"]),
    ("radio.snr_power_dbm", &[W, "radio.snr_power_dbm=20"]),
    ("clock.group_speeds", &[W, "radio.group_sizes=[10, 30]", "clock.group_speeds=[1, 2]"]),
    ("energy.group_battery_j", &["radio.group_sizes=[10, 30]", "energy.group_battery_j=[0, 2]"]),
    ("radio.csi_error", &["radio.csi_error=0.1", "radio.fading=static"]),
    (
        "radio.csi_error",
        &[
            "radio.csi_error=0.1",
            "radio.csi_delay_s=0.1",
            "radio.speed_kmh=3",
            "radio.carrier_hz=2e9",
            "radio.period_s=1",
        ],
    ),
    ("radio.csi_delay_s", &["radio.csi_delay_s=0.1"]),
    ("radio.backoff_db", &["radio.backoff_db=1"]),
    ("radio.payload_bits", &["radio.payload_bits=1000"]),
    ("radio.symbols", &[W, "radio.symbols=100"]),
    ("radio.power", &["radio.power=2", "radio.power_policy=inversion"]),
    ("radio.power", &["radio.power=2", "radio.fading=trace", "radio.trace.file=snrs.csv"]),
    ("radio.power_max", &[W, "radio.power_max=3"]),
    ("radio.noise", &["radio.noise=2", "radio.snr_db=10"]),
    ("radio.noise", &["radio.noise=2", "radio.fading=trace", "radio.trace.file=snrs.csv"]),
    ("radio.uplink_s", &["radio.uplink_s=0.01"]),
    ("radio.uplink_s", &[W, "radio.mode=payload", "radio.uplink_s=0.01"]),
    ("radio.power_dbm", &["radio.power_dbm=10"]),
    ("radio.power_dbm", &[W, "radio.power_dbm=10", "radio.power_policy=open-loop"]),
    ("radio.power_max_dbm", &["radio.power_max_dbm=10"]),
    ("radio.noise_dbm_hz", &["radio.noise_dbm_hz=-170"]),
    ("radio.noise_figure_db", &["radio.noise_figure_db=3"]),
    (
        "radio.noise_figure_db",
        &[W, "radio.noise_figure_db=3", "radio.fading=trace", "radio.trace.file=snrs.csv"],
    ),
    ("radio.interference_w", &["radio.interference_w=1e-10"]),
    ("radio.overhead", &["radio.overhead=0.1"]),
    ("radio.carrier_hz", &["radio.carrier_hz=2e9"]),
    ("radio.gain_tx_dbi", &[W, "radio.gain_tx_dbi=3"]),
    ("radio.gain_rx_dbi", &[W, "radio.gain_rx_dbi=14"]),
    ("radio.power_policy", &["radio.power_policy=fixed", "radio.snr_db=10"]),
    ("radio.rate", &[W, "radio.rate=gap", "radio.fading=trace", "radio.trace.file=rates.csv"]),
    ("radio.attempts", &["radio.attempts=2"]),
    ("radio.attempts", &["radio.attempts=2", "radio.rate=mcs"]),
    ("radio.combining", &["radio.combining=chase", "radio.csi_error=0.1"]),
    ("radio.report_floor", &["radio.report_floor=0.2"]),
    ("radio.slots", &["radio.slots=whole", "radio.access=fdma"]),
    ("radio.ofdma.eesm_beta", &[W, "radio.access=ofdma", "radio.ofdma.eesm_beta=2"]),
    ("radio.ofdma.power", &[W, "radio.access=ofdma", "radio.ofdma.power=waterfilling"]),
    ("cell.layout", &[W, DISC]),
    ("cell.radius_m", &[W, "cell.radius_m=100"]),
    ("cell.min_m", &[W, "cell.layout=ring", "cell.pathloss=umi", "cell.min_m=20"]),
    ("cell.pathloss", &[DISC, "cell.pathloss=umi"]),
    ("cell.height_bs_m", &[W, DISC, "cell.pathloss=3gpp-macro", "cell.height_bs_m=30"]),
    ("cell.height_ut_m", &[W, DISC, "cell.pathloss=3gpp-pico", "cell.height_ut_m=2"]),
    ("cell.los", &[W, DISC, "cell.pathloss=3gpp-macro", "cell.los=never"]),
    ("cell.extrapolate", &[W, DISC, "cell.pathloss=3gpp-macro", "cell.extrapolate=true"]),
    ("cell.shadowing_db", &[W, "cell.shadowing_db=8"]),
    ("cell.correlation_m", &[W, DISC, "cell.pathloss=umi", "cell.correlation_m=10"]),
    ("cell.drift", &[W, DISC, "cell.pathloss=umi", "cell.drift=true"]),
    ("clock.compute", &["clock.compute=flops"]),
    ("clock.spread", &[W, "clock.spread=uniform"]),
    ("clock.jitter", &[W, "clock.jitter=shifted-exponential"]),
    ("clock.downlink", &["clock.downlink=broadcast"]),
    ("clock.report_bits", &["clock.report_bits=32"]),
    ("clock.report_efficiency", &[W, "clock.report_efficiency=1"]),
    ("clock.deadline_s", &["clock.deadline_s=1"]),
    ("clock.pipeline", &[W, "clock.pipeline=true"]),
    (
        "clock.broadcast.quantile",
        &[W, "clock.downlink=broadcast", "clock.broadcast.bps=1e9", "clock.broadcast.quantile=0.9"],
    ),
    (
        "clock.broadcast.server_dbm",
        &[W, "clock.downlink=broadcast", "clock.broadcast.bps=1e9", "clock.broadcast.server_dbm=30"],
    ),
    ("energy.compute_w", &[W, "energy.compute_w=1"]),
    ("energy.compute_w", &[W, "clock.compute=cycles", "energy.compute_w=1"]),
    ("energy.kappa", &[W, "clock.compute=flops", "energy.kappa=1e-27"]),
    ("energy.circuit_w", &["energy.circuit_w=0.1"]),
    ("energy.pa_efficiency", &["energy.pa_efficiency=0.4"]),
    ("energy.receive_w", &["energy.receive_w=0.1"]),
    ("energy.idle_w", &["energy.idle_w=0.1"]),
    ("energy.battery_j", &["energy.battery_j=10"]),
];

/// Keys that have an effect for any values of the others.
const ALWAYS: [&str; 6] = [
    "radio.fading",
    "radio.mode",
    "radio.bandwidth_hz",
    "radio.loss_threshold_db",
    "radio.access",
    // The result is the same by its meaning; that real bytes are sent is the effect.
    "radio.wire",
];

#[test]
fn a_key_without_effect_is_an_error_that_says_so() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("gains.csv", "1,1\n1,2\n");
    write("snrs.csv", "round,device,snr_db\n0,0,10\n");
    write("rates.csv", "round,device,rate_bps\n0,0,1e6\n");
    for (key, settings) in IDLE {
        let words = settings.iter().flat_map(|setting| ["--set", setting]);
        let message = refused(fedlink(&folder).arg("link-budget").args(words));
        let says =
            ["has no effect", "and radio.snr_db both set", "and radio.csi_delay_s both set", "belongs to"];
        let said = says.iter().any(|words| message.contains(&format!("{key}: {words}")));
        assert!(said, "{settings:?}: {message}");
    }
}

#[test]
fn every_key_of_the_radio_and_the_clock_is_tried_without_effect() {
    let section = |key: &&String| {
        let (section, name) = key.split_once('.').unwrap();
        ["radio", "cell", "clock", "energy"].contains(&section) && !name.contains('.')
    };
    let all: BTreeSet<&str> = all_keys().iter().filter(section).map(String::as_str).collect();
    let tried: BTreeSet<&str> = IDLE.iter().map(|(key, _)| *key).chain(ALWAYS).collect();
    assert_eq!(all.difference(&tried).collect::<Vec<_>>(), [""; 0].iter().collect::<Vec<_>>());
}
