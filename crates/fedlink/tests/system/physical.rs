//! Whole runs over a radio with units: seconds, joules, losses, and independence of threads and of
//! interruptions.

use crate::common::{blobs, resumed, run, small_config};
use fedlink::base::units::DeviceId;
use fedlink::prelude::*;
use fedlink::radio::cell::pathloss::free_space_db;
use fedlink::record::{Arrival, Energy};

/// The small configuration with the keys of `text` set on top.
fn config(text: &str) -> Config {
    let mut config = small_config();
    config.radio.symbols = Config::default().radio.symbols;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (key, value) = line.split_once(" = ").unwrap();
        let value: toml::Table = toml::from_str(&format!("x = {value}")).unwrap();
        config.set(key, value["x"].clone()).unwrap();
    }
    config.validate().unwrap();
    config
}

fn simulation(config: &Config) -> Simulation {
    Simulation::of(config, blobs(20, 600, 90)).unwrap()
}

fn records(config: &Config) -> Vec<RoundRecord> {
    let mut simulation = simulation(config);
    (0..config.run.rounds).map(|_| simulation.step().unwrap()).collect()
}

/// A cell with nearly all features on.
const EVERYTHING: &str = "
    radio.bandwidth_hz = 20e3
    radio.uplink_s = 0.01
    radio.power_dbm = 10.0
    radio.power_max_dbm = 23.0
    radio.overhead = 0.1
    radio.antennas = 2
    radio.csi_error = 0.05
    radio.backoff_db = 2.0
    radio.rate = \"finite-blocklength\"
    radio.finite-blocklength.error = 0.3
    radio.attempts = 2
    cell.layout = \"disc\"
    cell.radius_m = 300.0
    cell.pathloss = \"umi\"
    cell.shadowing_db = 6.0
    cell.correlation_m = 20.0
    clock.compute = \"cycles\"
    clock.cycles.per_sample = [1e6, 3e6]
    clock.spread = \"lognormal\"
    clock.jitter = \"shifted-exponential\"
    clock.downlink = \"broadcast\"
    clock.broadcast.quantile = 0.9
    clock.report_bits = 16.0
    clock.deadline_s = 0.08
    energy.battery_j = 0.3
    energy.circuit_w = 0.1
    energy.receive_w = 0.2
    energy.idle_w = 0.01
";

/// A trace of four devices and seven rounds; the other devices use it from other rows on.
fn trace() -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("four-devices.csv");
    let row =
        |t: u32| (0..4).map(|m| format!("{}", 0.2 + f64::from((3 * t + 5 * m) % 7))).collect::<Vec<_>>();
    let rows: Vec<String> = (0..7).map(|t| row(t).join(",")).collect();
    std::fs::write(&path, rows.join("\n")).unwrap();
    path.display().to_string()
}

/// The same with the keys of a case, and without keys that have no effect in it.
fn everything(case: &str) -> String {
    let idle = |line: &&str| {
        (line.contains("radio.power_dbm") && case.contains("\"inversion\""))
            || (line.contains("radio.antennas") && case.contains("\"trace\""))
            || ((line.contains("radio.csi_error") || line.contains("radio.backoff_db"))
                && case.contains("\"static\""))
    };
    let lines: Vec<&str> = EVERYTHING.lines().filter(|line| !idle(line)).collect();
    let case = if case.contains("TRACE") { case.replace("TRACE", &trace()) } else { case.to_owned() };
    format!("{}\n{case}", lines.join("\n"))
}

/// The keys of each case: every fading law, access scheme, correlation and loss.
const CASES: [&str; 11] = [
    "radio.correlation = 0.9",
    "radio.speed_kmh = 30.0\nradio.carrier_hz = 3.5e9\nradio.period_s = 0.1\ncell.drift = true",
    "radio.fading = \"rician\"\nradio.power_policy = \"queue\"",
    "radio.fading = \"nakagami\"\nradio.access = \"fdma\"\nradio.power_policy = \"fixed\"",
    "radio.access = \"ofdma\"\nradio.profile = \"tdl-c300\"\nradio.csi_error = 0.0\nradio.backoff_db = 0.0\n\
     radio.ofdma.resource_blocks = 16",
    "radio.power_policy = \"equal-energy\"\nradio.rate = \"mcs\"\nradio.mcs.loss = 0.1",
    "radio.power_policy = \"inversion\"\ncompress.feedback = \"always\"",
    "radio.fading = \"static\"\nradio.loss_threshold_db = 3.0",
    "radio.fading = \"trace\"\nradio.trace.file = \"TRACE\"",
    "radio.fading = \"rician\"\nradio.speed_kmh = 30.0\nradio.carrier_hz = 3.5e9\nradio.period_s = 0.1\n\
     radio.csi_error = 0.0\nradio.csi_delay_s = 0.002",
    "radio.rate = \"shannon\"\nradio.combining = \"chase\"",
];

#[test]
fn with_all_features_no_result_depends_on_threads_or_on_an_interruption() {
    for case in CASES {
        for policy in ["bc", "bn2-c"] {
            let config =
                config(&format!("{}\nschedule.policy = \"{policy}\"\nrun.rounds = 8", everything(case)));
            let one = run(&config, blobs(20, 600, 90), 1);
            assert!(one.seconds().unwrap() > 0.0 && one.joules().unwrap() > 0.0);
            for threads in [2, 3] {
                assert_eq!(run(&config, blobs(20, 600, 90), threads), one, "{case} {policy} {threads}");
            }
            for stop in [1, 5] {
                let resumed = resumed(&config, || blobs(20, 600, 90), &Parts::default(), stop);
                assert_eq!(resumed, one, "{case} {policy} stopped after {stop}");
            }
        }
    }
}

#[test]
fn losses_deadlines_and_batteries_all_occur_in_those_runs() {
    let (mut outages, mut late, mut absent) = (0, 0, false);
    for case in CASES {
        // Weak links, too: a device that sends fewer bits than were granted hardly loses them.
        let config = config(&format!("{}\nschedule.policy = \"random\"\nrun.rounds = 30", everything(case)));
        let outcome = run(&config, blobs(20, 600, 90), 2);
        outages += outcome.outages;
        late += outcome.late;
        let spent: Vec<f64> = outcome.device_energy.iter().map(Energy::total).collect();
        // A device with an empty battery neither trains nor sends; waiting (0.01 W for 30 rounds of 0.08
        // s at most) continues.
        assert!(spent.iter().all(|joules| *joules < 0.3 + 0.03), "{spent:?}");
        absent |= outcome.scheduled.iter().sum::<u32>() < 30 * config.schedule.k as u32;
    }
    assert!(outages > 0 && late > 0 && absent, "{outages} {late} {absent}");
}

#[test]
fn a_device_whose_battery_is_too_low_for_a_payload_is_silent() {
    for access in ["tdma", "fdma"] {
        let config = config(&format!(
            "radio.mode = \"payload\"\nradio.payload_bits = 4000.0\nradio.bandwidth_hz = 20e3\n\
             schedule.k = 3\n\
             radio.access = \"{access}\"\nradio.snr_db = 10.0\nradio.fading = \"static\"\n\
             radio.power_dbm = 20.0\n\
             energy.battery_j = 0.05\nschedule.policy = \"random\"\nrun.rounds = 40"
        ));
        let outcome = run(&config, blobs(20, 600, 90), 1);
        let spent: Vec<f64> = outcome.device_energy.iter().map(Energy::total).collect();
        // An upload takes about 6 mJ (TDMA) or 12 mJ (FDMA): every battery ends below the energy of a
        // further one.
        assert!(spent.iter().all(|joules| *joules <= 0.05 && *joules > 0.03), "{access}: {spent:?}");
    }
}

#[test]
fn joules_by_device_and_by_kind_have_the_same_sum() {
    for case in CASES {
        let config = config(&format!("{}\nrun.rounds = 10", everything(case)));
        let outcome = run(&config, blobs(20, 600, 90), 2);
        let total = outcome.joules().unwrap();
        let by_device: f64 = outcome.device_energy.iter().map(Energy::total).sum();
        let Energy { compute_j, report_j, transmit_j, receive_j, idle_j } = outcome.energy.unwrap();
        let by_kind = compute_j + report_j + transmit_j + receive_j + idle_j;
        assert!((by_device / total - 1.0).abs() < 1e-9 && (by_kind / total - 1.0).abs() < 1e-9);
        let by_round: f64 =
            records(&config).iter().map(|record| record.cost.as_ref().unwrap().energy.total()).sum();
        assert!((by_round / total - 1.0).abs() < 1e-9);
    }
}

#[test]
fn radiated_energy_is_power_times_airtime() {
    // Neither circuits nor an amplifier: the transmit energy is that of the columns.
    for access in ["tdma", "fdma"] {
        let config = config(&format!(
            "radio.bandwidth_hz = 20e3\nradio.uplink_s = 0.01\nradio.access = \"{access}\"\nschedule.k = 3"
        ));
        for record in records(&config) {
            let sent = record.transmissions.iter().map(|sent| sent.power.0 * sent.airtime.0 / 20e3);
            let radiated: f64 = sent.sum();
            let counted = record.cost.unwrap().energy.transmit_j;
            assert!((radiated / counted - 1.0).abs() < 1e-12, "{radiated} {counted}");
        }
    }
}

#[test]
fn a_round_of_the_cell_of_the_paper_takes_the_seconds_and_joules_computed_by_hand() {
    let config = config(
        "radio.bandwidth_hz = 1e6
        radio.power_max_dbm = 30.0
        radio.fading = \"static\"
        cell.layout = \"ring\"
        cell.radius_m = 500.0
        cell.pathloss = \"3gpp-macro\"
        clock.compute = \"flops\"
        clock.downlink = \"broadcast\"
        clock.report_bits = 32.0
        schedule.policy = \"bn2\"",
    );
    let simulation = simulation(&config);
    let dim = simulation.theta().len() as f64;
    let record = records(&config).swap_remove(0);
    let cost = record.cost.unwrap();
    let (m, k) = (config.data.devices as f64, config.schedule.k as f64);
    // 128.1 + 37.6·log10(0.5) dB; 46 dBm into 20 MHz with −174 dBm/Hz and 9 dB.
    let gain = 10f64.powf(-(128.1 + 37.6 * 0.5f64.log10()) / 10.0);
    let server_snr = 10f64.powf(1.6) * gain / (10f64.powf(-20.4 + 0.9) * 20e6);
    let down = 32.0 * dim / (20e6 * (1.0 + server_snr).log2());
    let samples = config.learn.local_steps as f64 * 10.0;
    assert_eq!(
        config.learn.batch,
        fedlink::spec::BatchSize::Count(10),
        "the samples above are of this batch"
    );
    let train = 6.0 * dim * samples / 1e9;
    let report = m * 32.0 / 0.1523 / 1e6;
    for (a, b) in [
        (cost.phases.down_s, down),
        (cost.phases.train_s, train),
        (cost.phases.report_s, report),
        (cost.phases.up_s, 0.005),
        (cost.energy.compute_j, m * 0.8 * train),
        // All n symbols are used, at M·P̄/K.
        (cost.energy.transmit_j, m / k * 10f64.powf(0.78 - 3.0) * 0.005),
    ] {
        assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
    }
    // P̄·β/σ² = 1 at the cell's edge.
    let snr = record.transmissions[0].gain * 10f64.powf(0.78 - 3.0) / (10f64.powf(-20.4 + 0.5) * 1e6);
    assert!((snr - 1.0).abs() < 0.01, "{snr}");
    // The lower limit of free space is far from here.
    assert!(free_space_db(500.0, 2e9) < 100.0);
}

#[test]
fn groups_have_their_mean_snr_for_any_k() {
    for k in [1, 4] {
        let config = config(&format!(
            "radio.snr_db = [20.0, 0.0]\nradio.fading = \"static\"\nschedule.k = {k}\n\
                                      schedule.policy = \"random\"\nrun.rounds = 30"
        ));
        for sent in records(&config).iter().flat_map(|record| &record.transmissions) {
            let snr = if sent.device.0 < 6 { 100.0 } else { 1.0 };
            assert!((sent.capacity - f64::log2(1.0 + snr)).abs() < 1e-12, "{}", sent.capacity);
        }
    }
}

#[test]
fn equal_energy_is_the_rule_of_the_paper_for_one_device_and_costs_the_same_for_many() {
    let plain = "radio.bandwidth_hz = 20e3\nradio.uplink_s = 0.01\nradio.power_max_dbm = 60.0\n\
                 cell.layout = \"ring\"\ncell.pathloss = \"3gpp-macro\"";
    let digest = |policy: &str| {
        run(
            &config(&format!("{plain}\nschedule.k = 1\nradio.power_policy = \"{policy}\"")),
            blobs(20, 600, 90),
            1,
        )
        .digest
    };
    assert_eq!(digest("fair-share"), digest("equal-energy"));
    let transmit = |k: u64, policy: &str| {
        let config = config(&format!("{plain}\nschedule.k = {k}\nradio.power_policy = \"{policy}\""));
        run(&config, blobs(20, 600, 90), 1).energy.unwrap().transmit_j
    };
    for k in [2, 5] {
        assert!((transmit(k, "equal-energy") / transmit(1, "equal-energy") - 1.0).abs() < 1e-9);
        assert!((transmit(k, "fair-share") * k as f64 / transmit(1, "fair-share") - 1.0).abs() < 1e-9);
    }
}

#[test]
fn without_a_back_off_about_half_of_the_uploads_are_lost_and_a_back_off_saves_them() {
    // P_out = ½(1 − tr/√(tr² + 4b(1−ε)ε)), tr = 1 − b(1−ε), for devices that are not selected by their
    // channel.
    for (backoff_db, truth) in
        [(0.0, 0.417_800_506_347_321_35), (3.010_299_956_639_812, 0.104_101_337_088_218)]
    {
        let config = config(&format!(
            "radio.csi_error = 0.1\nradio.backoff_db = {backoff_db:?}\n\
             schedule.policy = \"random\"\nschedule.k = 12\n\
             radio.symbols = 100000\nrun.rounds = 150\nlearn.local_steps = 1"
        ));
        let records = records(&config);
        let sent: Vec<_> = records.iter().flat_map(|record| &record.transmissions).collect();
        let lost = sent.iter().filter(|sent| sent.arrival == Arrival::Outage).count() as f64;
        let n = sent.len() as f64;
        assert!(sent.iter().all(|sent| sent.arrival != Arrival::Silent));
        let slack = 4.0 * (truth * (1.0 - truth) / n).sqrt();
        assert!(
            (lost / n - truth).abs() < slack,
            "{backoff_db} dB: {} is not within {slack} of {truth}",
            lost / n
        );
    }
}

#[test]
fn estimates_lose_the_same_share_of_uploads_for_every_access_scheme_and_mode() {
    // The closed form for devices that are not selected by their channel; it depends neither on power nor
    // on the share of the band. Blocks with separate fading have another law: there an error of zero must
    // lose nothing.
    let payload = "radio.mode = \"payload\"\nradio.payload_bits = 400.0";
    let selective = "radio.profile = \"tdl-a30\"";
    let exact = [(1e-12, 1.0, 0.0)];
    let half = [(0.1, 0.0, 0.417_800_506_347_321_35), (0.1, 3.010_299_956_639_812, 0.104_101_337_088_218)];
    let cases = [
        ("fdma", "", &half[..]),
        ("ofdma", "", &half),
        ("tdma", payload, &half),
        ("fdma", payload, &half),
        ("ofdma", payload, &half),
        ("fdma", payload, &exact),
        ("ofdma", payload, &exact),
        ("ofdma", selective, &exact),
        ("tdma", "radio.rate = \"mcs\"", &exact),
    ];
    for (access, more, truths) in cases {
        for &(error, backoff_db, truth) in truths {
            let config = config(&format!(
                "radio.csi_error = {error:?}\nradio.backoff_db = {backoff_db:?}\n\
                 schedule.policy = \"random\"\n\
                 schedule.k = 12\nradio.bandwidth_hz = 1e6\nradio.access = \"{access}\"\n{more}\n\
                 radio.snr_db = 10.0\nrun.rounds = 100\nlearn.local_steps = 1"
            ));
            let records = records(&config);
            let sent: Vec<_> = records.iter().flat_map(|record| &record.transmissions).collect();
            let lost = sent.iter().filter(|sent| sent.arrival == Arrival::Outage).count() as f64;
            let n = sent.len() as f64;
            let slack = 4.0 * (truth * (1.0 - truth) / n).sqrt();
            assert!((lost / n - truth).abs() <= slack, "{access} {more}: {} of {truth} ± {slack}", lost / n);
        }
    }
}

/// The probability that a code of `symbols`, whose SNR carries `budget` bits with probability 1 − `error`,
/// loses `bits`: Q((n·C − k + ½·log2(2n))/√(n·V)) at the SNR that the budget needs.
fn loss_of(budget: f64, bits: f64, symbols: f64, error: f64) -> f64 {
    use fedlink::radio::rate::{FiniteBlocklength, Rate};
    let rate = FiniteBlocklength::new(error);
    let (mut low, mut high) = (-20.0f64, 20.0f64);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if rate.bits(middle.exp(), symbols) < budget { low = middle } else { high = middle }
    }
    let snr = high.exp();
    let dispersion = (1.0 - (1.0 + snr).powi(-2)) * std::f64::consts::LOG2_E.powi(2);
    let margin = symbols * (1.0 + snr).log2() - bits + 0.5 * (2.0 * symbols).log2();
    0.5 * libm::erfc(margin / (symbols * dispersion).sqrt() / std::f64::consts::SQRT_2)
}

#[test]
fn short_packets_have_the_loss_rate_of_the_bits_that_are_sent_for_every_access_scheme() {
    let error = 0.05;
    for access in ["tdma", "fdma", "ofdma"] {
        for more in ["", "radio.attempts = 2"] {
            let blocks = if access == "ofdma" {
                "radio.profile = \"tdl-a30\"\nradio.ofdma.resource_blocks = 24"
            } else {
                ""
            };
            let config = config(&format!(
                "radio.bandwidth_hz = 1e6\nradio.access = \"{access}\"\nradio.rate = \"finite-blocklength\"\n\
                 radio.finite-blocklength.error = {error}\nradio.snr_db = [15.0, -3.0]\n\
                 schedule.policy = \"random\"\n\
                 schedule.k = 12\nrun.rounds = 120\nlearn.local_steps = 1\n{blocks}\n{more}"
            ));
            let records = records(&config);
            let sent: Vec<_> = records
                .iter()
                .flat_map(|record| &record.transmissions)
                .filter(|sent| sent.budget.0 > 50.0)
                .collect();
            let lost = sent.iter().filter(|sent| sent.arrival == Arrival::Outage).count() as f64;
            let attempts = if more.contains("attempts") { 2 } else { 1 };
            let truths: Vec<f64> = sent
                .iter()
                .map(|sent| loss_of(sent.budget.0, sent.bits.0, sent.symbols.0, error).powi(attempts))
                .collect();
            let truth: f64 = truths.iter().sum();
            let slack = 4.0 * truths.iter().map(|p| p * (1.0 - p)).sum::<f64>().sqrt() + 1.0;
            assert!((lost - truth).abs() < slack, "{access} {more}: {lost} of {truth} ± {slack}");
            // Some fill their budgets, and some send far fewer bits.
            assert!(
                truths.iter().any(|p| *p > 0.8 * error.powi(attempts)) && truths.iter().any(|p| *p < 1e-6)
            );
        }
    }
}

#[test]
fn a_lost_upload_adds_nothing_and_moves_no_residual() {
    // With a threshold far above every SNR all uploads are lost: θ does not change.
    let config = config("radio.loss_threshold_db = 60.0\ncompress.feedback = \"scheduled\"\nrun.rounds = 4");
    let mut simulation = simulation(&config);
    let before = simulation.theta().to_vec();
    for _ in 0..4 {
        let record = simulation.step().unwrap();
        assert!(record.transmissions.iter().all(|sent| sent.arrival == Arrival::Outage));
    }
    assert_eq!(simulation.theta(), before);
    assert_eq!(simulation.outcome().outages, 4 * config.schedule.k);
}

#[test]
fn payloads_of_fixed_size_take_the_time_of_their_channel() {
    for access in ["tdma", "fdma"] {
        let config = config(&format!(
            "radio.mode = \"payload\"\nradio.payload_bits = 400.0\nradio.bandwidth_hz = 20e3\n\
             radio.access = \"{access}\"\n\
             radio.snr_db = 10.0\nradio.fading = \"static\"\nschedule.k = 3"
        ));
        for record in records(&config) {
            assert!(record.transmissions.iter().all(|sent| (sent.budget.0 - 400.0).abs() < 1e-6));
            let up_s = record.cost.unwrap().phases.up_s;
            let rate = if access == "tdma" {
                // One after another at log2(11) bit/s/Hz.
                11f64.log2() * 20e3
            } else {
                // Each of three in a third of the band, at three times the SNR there.
                31f64.log2() * 20e3
            };
            assert!((up_s / (3.0 * 400.0 / rate) - 1.0).abs() < 1e-6, "{access}: {up_s}");
        }
    }
}

#[test]
fn the_channel_of_a_round_does_not_depend_on_the_rounds_before() {
    for case in CASES {
        let config = config(&everything(case));
        let radio = fedlink::system::build::radio(&config.resolve(&Parts::default()).unwrap(), 10).unwrap();
        let in_order: Vec<Vec<f64>> = (0..40).map(|t| radio.links(t).gains).collect();
        let fresh = fedlink::system::build::radio(&config.resolve(&Parts::default()).unwrap(), 10).unwrap();
        for t in [39u64, 3, 17] {
            assert_eq!(fresh.links(t).gains, in_order[t as usize]);
            assert_eq!(fresh.gain(t, DeviceId(5)), in_order[t as usize][5]);
        }
    }
}

#[test]
fn a_deadline_that_leaves_no_time_for_the_uplink_is_refused_with_the_sum() {
    let config = config(
        "radio.bandwidth_hz = 20e3\nclock.downlink = \"broadcast\"\nclock.broadcast.bps = 1000.0\n\
                         clock.deadline_s = 0.5",
    );
    let error = Simulation::of(&config, blobs(20, 600, 90)).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("clock.deadline_s: is 0.5, but the downlink and the uplink"), "{error}");
}
