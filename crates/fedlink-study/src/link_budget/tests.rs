use super::*;
use crate::experiment::Experiment;

fn of(settings: &[(&str, &str)]) -> LinkBudgetStudy {
    let mut experiment = Experiment::default();
    for (key, value) in settings {
        experiment.set(key, value).unwrap();
    }
    link_budget(
        &experiment.only_spec(&fedlink::parts::Parts::default()).unwrap(),
        &Parts::default(),
        &[],
        &LinkBudgetOptions::default(),
    )
    .unwrap()
}

#[test]
fn over_seeds_are_the_means_of_the_budgets_of_each_seed() {
    let settings = [&CELL[..], &[("radio.snr_db", "[20, 0]"), ("schedule.k", "4")]].concat();
    let settings: Vec<(&str, &str)> =
        settings.into_iter().filter(|(key, _)| !key.starts_with("cell.")).collect();
    let of_seeds = |seed: &str, seeds: u64, policies: &[&str]| {
        let mut experiment = Experiment::default();
        settings.iter().for_each(|(key, value)| experiment.set(key, value).unwrap());
        experiment.set("run.seed", seed).unwrap();
        let policies = policies.iter().map(|&name| name.to_owned()).collect();
        let options = LinkBudgetOptions { rounds: Some(20), policies, seeds };
        let spec = experiment.only_spec(&Parts::default()).unwrap();
        link_budget(&spec, &Parts::default(), &[], &options).unwrap().policies
    };
    let policies = ["round-robin", "proportional-fair"];
    let all = of_seeds("3", 3, &policies);
    assert_eq!(all.iter().map(|cost| cost.policy.as_str()).collect::<Vec<_>>(), policies);
    let alone: Vec<Vec<PolicyCost>> =
        ["3", "4", "5"].map(|seed| of_seeds(seed, 1, &policies)).into_iter().collect();
    for (index, cost) in all.iter().enumerate() {
        assert!(alone[0][index].over_seeds.is_empty() && cost.bits == alone[0][index].bits);
        let names: Vec<&str> = cost.over_seeds.iter().map(|(name, _)| name.as_str()).collect();
        assert!(
            ["bits", "seconds", "joules", "uploads_1", "airtime_2"].iter().all(|name| names.contains(name))
        );
        for (name, estimate) in &cost.over_seeds {
            let values = alone
                .iter()
                .map(|seed| seed[index].numbers().into_iter().find(|(known, _)| known == name).unwrap().1);
            let values: Vec<f64> = values.collect();
            let mean = values.iter().sum::<f64>() / 3.0;
            let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
            assert!((estimate.mean - mean).abs() <= 1e-9 * mean.abs().max(1e-12), "{name}");
            // Student's 97.5 % point of two degrees of freedom.
            let half = 4.302_652_73 * deviation / 3f64.sqrt();
            assert!((estimate.half_width - half).abs() <= 1e-6 * half.max(1e-9), "{name}");
        }
    }
    // Twenty near and twenty far devices take turns.
    let groups = &all[0].groups;
    assert!(
        (groups[0].uploads - 0.5).abs() < 1e-12
            && (groups[0].uploads + groups[1].uploads - 1.0).abs() < 1e-12
    );
}

const CELL: [(&str, &str); 7] = [
    ("radio.bandwidth_hz", "1e6"),
    ("radio.power_max_dbm", "24"),
    ("cell.layout", "ring"),
    ("cell.radius_m", "500"),
    ("cell.pathloss", "3gpp-macro"),
    ("clock.compute", "flops"),
    ("learn.state", "reset"),
];

#[test]
fn means_over_rayleigh_fading_are_the_closed_forms() {
    // γ̄ = 40: E[log2(1 + 40·g)] = e^(1/40)·E₁(1/40)/ln 2 = 4.639576675.
    let study = of(&[("schedule.k", "1")]);
    assert_eq!((study.rows.len(), study.rounds, study.bandwidth_hz), (1, 2000, None));
    let link = &study.rows[0].link;
    assert!((link.snr_db - 16.02).abs() < 0.05, "{}", link.snr_db);
    assert!((link.bits_per_symbol - 4.6396).abs() < 0.03, "{}", link.bits_per_symbol);
    assert!((link.bits_alone - link.bits_shared).abs() < 1e-6 * link.bits_alone);
    assert!(study.policies.iter().all(|policy| policy.phases.is_none() && policy.energy.is_none()));
}

#[test]
fn seconds_and_joules_of_a_round_are_those_worked_out_by_hand() {
    // 3·64 samples of 6·203 530 operations at 1e9 a second and 0.8 W; 5 ms with 40·P̄ up.
    let study = of(&CELL);
    let (train, transmit) = (192.0 * 6.0 * 203_530.0 / 1e9, 40.0 * 10f64.powf(0.78) * 1e-3 * 0.005);
    for (policy, trains) in [("bc", 1.0), ("bn2", 40.0), ("bc-bn2", 10.0), ("bn2-c", 40.0)] {
        let cost = study.policies.iter().find(|cost| cost.policy == policy).unwrap();
        let (phases, energy) = (cost.phases.unwrap(), cost.energy.unwrap());
        assert_eq!(cost.trains, trains, "{policy}");
        assert!((phases.train_s - train).abs() < 1e-9 && (phases.up_s - 0.005).abs() < 1e-12);
        assert!((energy.compute_j - 0.8 * trains * train).abs() < 1e-9, "{policy}");
        assert!((energy.transmit_j - transmit).abs() < 1e-9, "{policy}: {}", energy.transmit_j);
        assert_eq!(cost.scheduled.iter().sum::<u32>(), 200);
    }
}

#[test]
fn groups_have_their_snr_and_the_best_channel_leaves_the_far_ones_out() {
    let study = of(&[("radio.snr_db", "[20, 0]"), ("schedule.k", "10")]);
    let snrs: Vec<f64> = study.rows.iter().map(|row| row.link.snr_db).collect();
    assert!((snrs[0] - 20.0).abs() < 0.1 && (snrs[1]).abs() < 0.1, "{snrs:?}");
    let far = |cost: &PolicyCost| cost.scheduled[20..].iter().sum::<u32>();
    let shares: Vec<u32> = study.policies.iter().map(far).collect();
    assert!(shares[0] < 20 && shares[1] > 500, "{shares:?}");
}

#[test]
fn estimation_errors_lose_the_share_of_uploads_of_the_closed_form() {
    // ε = 0.01: 47.5 % without back-off, 12.0 % at b = 0.8.
    for (backoff, lost) in [("0", 0.4749), ("0.9691", 0.1201)] {
        let study = of(&[("radio.csi_error", "0.01"), ("radio.backoff_db", backoff)]);
        let found = study.rows[0].link.lost;
        assert!((found - lost).abs() < 0.006, "{backoff} dB: {found}, not {lost}");
    }
}

#[test]
fn rows_of_a_disc_go_from_the_nearest_to_the_farthest_device() {
    let mut cell = CELL;
    cell[2].1 = "disc";
    let study = of(&cell);
    let distances: Vec<f64> = study.rows.iter().filter_map(|row| row.link.distance_m).collect();
    assert_eq!(distances.len(), 5);
    assert!(distances.is_sorted(), "{distances:?}");
    let nearest = study.links.iter().filter_map(|link| link.distance_m).fold(f64::MAX, f64::min);
    assert_eq!(distances[0], nearest);
}

#[test]
fn updates_without_enough_bits_are_silent_and_a_payload_is_timed() {
    let study = of(&[("radio.symbols", "1")]);
    assert!(study.rows[0].link.silent > 0.99 && study.rows[0].level_shared == 0);
    assert!(study.smallest_bits.unwrap() > 10.0);
    let mut cell = CELL.to_vec();
    cell.extend([
        ("radio.mode", "payload"),
        ("radio.payload_bits", "10000"),
        ("radio.fading", "static"),
        ("radio.power_policy", "fixed"),
    ]);
    // 7.8 dBm at 500 m: SNR 1, 1 bit per symbol, 10 ms.
    let study = of(&cell);
    let [median, high] = study.rows[0].link.upload_s.unwrap();
    assert!((median - 0.01).abs() < 1e-4 && median == high, "{median}");
    // One round like the other: the median is the mean.
    let cost = &study.policies[0];
    assert!((cost.median_round_s.unwrap() - cost.phases.unwrap().total()).abs() < 1e-9);
}

#[test]
fn a_kept_state_makes_all_devices_train_and_a_saturated_budget_is_reported() {
    let mut cell = CELL.to_vec();
    assert!(!of(&cell).everyone_trains);
    cell[6] = ("learn.state", "keep");
    let study = of(&cell);
    assert!(study.everyone_trains && study.policies.iter().all(|cost| cost.trains == 40.0));
    let row = &of(&[("learn.model", "softmax")]).rows[0];
    assert_eq!((row.level_alone, row.highest_level), (3925, Some(3925)));
}

#[test]
fn a_trace_is_read_no_further_than_the_run_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gains.csv");
    // Five rounds of two devices, and no more.
    std::fs::write(&path, "1,0.5\n".repeat(5)).unwrap();
    let file = path.to_str().unwrap();
    let study = of(&[
        ("radio.fading", "trace"),
        ("radio.trace.file", file),
        ("radio.trace.end", "error"),
        ("data.devices", "2"),
        ("run.rounds", "5"),
    ]);
    assert_eq!((study.rounds, study.policy_rounds), (5, 5));
    // M·P̄/K = 2, and gains of 1 and ½.
    let snrs: Vec<f64> = study.links.iter().map(|link| link.snr_db).collect();
    assert!((snrs[0] - 3.0103).abs() < 1e-3 && snrs[1].abs() < 1e-9, "{snrs:?}");
}
