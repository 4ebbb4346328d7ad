use super::*;
use crate::example::{curve, curve_of, with_units};
use crate::experiment::Experiment;
use crate::tables::summary;
use fedlink::base::units::Power;

/// Three seeds in each of which another device was scheduled most.
fn shifted() -> CurveResult {
    let mut curve = curve_of("bn2", &[&[0.5, 0.9], &[0.5, 0.8], &[0.5, 0.7]]);
    crate::example::change(&mut curve, |config| {
        config.data.devices = 3;
        config.radio.power = 1.0;
    });
    let often = [[10, 5, 5], [5, 5, 10], [4, 12, 4]];
    for (run, scheduled) in curve.runs.iter_mut().zip(often) {
        run.outcome.scheduled = scheduled.to_vec();
        run.outcome.average_power = scheduled.iter().map(|&times| 0.1 * f64::from(times)).collect();
        run.outcome.worst_average_power =
            Power(run.outcome.average_power.iter().copied().fold(0.0, f64::max));
    }
    curve
}

#[test]
fn devices_are_measured_in_each_seed_and_never_pooled() {
    let used = shifted().device_use();
    // Twenty rounds: the busiest device had 1/2, 1/2 and 12/20 of them. Pooled by index none had more than
    // 0.367.
    assert!((used.most.mean - (0.5 + 0.5 + 0.6) / 3.0).abs() < 1e-12);
    assert!((used.least.mean - (0.25 + 0.25 + 0.2) / 3.0).abs() < 1e-12);
    assert!((used.median.mean - (0.25 + 0.25 + 0.2) / 3.0).abs() < 1e-12);
    // Jain by hand: 20²/(3·150) twice, 20²/(3·176).
    assert!((used.evenness.mean - (2.0 * 400.0 / 450.0 + 400.0 / 528.0) / 3.0).abs() < 1e-12);
    // 1.0, 1.0 and 1.2: mean 1.0667, deviation 0.11547, Student's 4.3027 for two degrees of freedom.
    assert!((used.highest_power.mean - 3.2 / 3.0).abs() < 1e-12);
    assert!((used.highest_power.half_width - 4.302_652_73 * 0.115_470_05 / 3f64.sqrt()).abs() < 1e-6);
    assert!((used.above.mean - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn summary_and_table_have_the_mean_of_the_highest_powers_not_their_highest() {
    let curves = [shifted()];
    let summary: serde_json::Value = serde_json::from_str(&summary::json(&curves).unwrap()).unwrap();
    let power = summary[0]["worst_average_power"].as_f64().unwrap();
    assert!((power - 3.2 / 3.0).abs() < 1e-12, "{power}");
    let ends = summary[0]["worst_average_power_interval"].as_array().unwrap();
    assert!(ends[0].as_f64().unwrap() < power && ends[1].as_f64().unwrap() > power);
    assert_eq!(summary[0]["target"], 0.8);
    assert!(table(&curves).contains(" 1.07 "), "{}", table(&curves));
}

#[test]
fn ranks_are_averaged_over_seeds_and_one_seed_keeps_its_devices() {
    let curve = shifted();
    let ranked = curve.by_device(RunResult::scheduled_shares);
    for (ours, expected) in ranked.iter().zip([1.6 / 3.0, 0.7 / 3.0, 0.7 / 3.0]) {
        assert!((ours - expected).abs() < 1e-12, "{ranked:?}");
    }
    let one = CurveResult { runs: vec![curve.runs[1].clone()], ..curve };
    assert_eq!(one.by_device(RunResult::scheduled_shares), [0.25, 0.25, 0.5]);
}

#[test]
fn warnings_of_runs_are_below_the_table_once_per_kind() {
    let mut curve = shifted();
    let heard = |count: u32| format!("heard {count}/60: most devices were never scheduled");
    curve.runs[1].outcome.warnings = vec![heard(13), "weights were all zero".into()];
    curve.runs[2].outcome.warnings = vec![heard(11)];
    assert_eq!(curve.warnings(), [(1, heard(13).as_str()), (1, "weights were all zero")]);
    let text = table(&[curve.clone()]);
    assert!(text.contains("bn2 (seed 1): heard 13/60: most devices were never scheduled\n"), "{text}");
    // Values that follow from the configuration alone are printed before a run.
    crate::example::change(&mut curve, |config| config.schedule.policy = "optimal".into());
    let caution = curve.spec.cautions().pop().expect("unbiased shares with a biased scheme");
    curve.runs[0].outcome.warnings = vec![caution.clone()];
    assert!(curve.warnings().iter().all(|(_, warning)| *warning != caution));
}

#[test]
fn the_target_follows_the_configuration() {
    let mut curve = curve_of("bc", &[&[0.5, 0.9]]);
    assert!(table(&[curve.clone()]).contains("rounds to 80 %"));
    crate::example::change(&mut curve, |config| config.run.target = 0.455);
    let text = table(&[curve.clone()]);
    assert!(text.contains("rounds to 45.5 %"), "{text}");
    assert!(table(&[curve, curve_of("bn2", &[&[0.5]])]).contains("rounds to target"));
    assert_eq!([0.8, 0.9, 0.999, 0.07].map(percent_of), ["80 %", "90 %", "99.9 %", "7 %"]);
}

fn swept(seeds: u64) -> Sweep {
    let text = format!(
        "[run]\nrounds = 20\nseeds = {seeds}\n[sweep]\n\"schedule.policy\" = [\"bc\", \"bn2\", \"bn2-c\"]\n"
    );
    Experiment::parse("x", &text).unwrap().expand(&fedlink::parts::Parts::default()).unwrap()
}

#[test]
fn a_stopped_run_is_in_no_mean_with_finished_ones_and_is_listed() {
    let [mut first, mut second, third] =
        <[RunResult; 3]>::try_from(curve_of("x", &[&[0.5, 0.9], &[0.5, 0.8], &[0.1]]).runs).unwrap();
    let mut stopped = third;
    stopped.status = Status::Interrupted;
    (first.seed, second.seed, stopped.seed) = (0, 1, 2);
    let single = RunResult { seed: 0, ..stopped.clone() };
    let runs = vec![(0, first), (0, second), (0, stopped), (1, single)];
    let (curves, unfinished) = gather(&swept(3), &[0.0; 3], runs);
    assert_eq!(curves.len(), 2);
    assert_eq!((curves[0].runs.len(), curves[0].status().name()), (2, "interrupted"));
    assert!((curves[0].at_the_end(|run| run.outcome.final_accuracy).unwrap().mean - 0.85).abs() < 1e-12);
    // No run of the second curve has ended, so that it shows the interrupted one.
    assert_eq!((curves[1].runs.len(), curves[1].status().name()), (1, "interrupted"));
    let listed: Vec<String> = unfinished.iter().map(ToString::to_string).collect();
    let expected = [
        "bc seed 2 (round 10 of 20)",
        "bn2 seed 0 (round 10 of 20)",
        "bn2 seed 1 (not finished)",
        "bn2 seed 2 (not finished)",
        "bn2-c seed 0 (not finished)",
        "bn2-c seed 1 (not finished)",
        "bn2-c seed 2 (not finished)",
    ];
    assert_eq!(listed, expected);
    let summary: serde_json::Value = serde_json::from_str(&summary::json(&curves).unwrap()).unwrap();
    assert_eq!((&summary[0]["seeds"], &summary[0]["unfinished_seeds"]), (&2.into(), &vec![2].into()));
    assert_eq!(summary[0]["shortened"]["of_seeds"], 3);
}

#[test]
fn a_curve_with_a_diverged_seed_has_no_mean_at_the_end() {
    let mut curve = curve("bc", 3, 4);
    curve.runs[1].status = Status::Diverged("in round 3".into());
    assert_eq!(curve.at_the_end(|run| run.outcome.final_accuracy), None);
    let summary: serde_json::Value = serde_json::from_str(&summary::json(&[curve]).unwrap()).unwrap();
    assert!(summary[0]["final_accuracy"].is_null() && summary[0]["area_under_curve"].is_null());
}

#[test]
fn a_saturated_budget_is_named() {
    let mut curve = curve("bc", 2, 4);
    assert_eq!(curve.saturated(), None);
    for (run, (highest, used)) in curve.runs.iter_mut().zip([(1.0, 0.58), (0.9, 0.6)]) {
        (run.outcome.at_highest_level, run.outcome.budget_used) = (Some(highest), Some(used));
    }
    let text = table(&[curve.clone()]);
    assert!(
        text.contains("bc: d-sgd was at its highest level in 95 % of the uploads, and used 59 % of the bits"),
        "{text}"
    );
    curve.runs[0].outcome.at_highest_level = Some(0.05);
    assert_eq!(curve.saturated(), None);
}

#[test]
fn without_units_the_tables_have_no_seconds_and_no_joules() {
    let curves = [curve_of("bc", &[&[0.5, 0.9]])];
    let text = table(&curves);
    assert!(text.starts_with(
        "curve    final     best  rounds to 80 %  trainings/round  bits/round  mean q  highest power        \
         digest  \x20 status\n"
    ));
    assert!(text.contains("against radio.power;\n") && !text.contains("joules"), "{text}");
    let csv = String::from_utf8(csv(&curves).unwrap()).unwrap();
    let header = "curve,policy,k,seed,round,test_accuracy,test_loss,train_loss,trained,bits,total_bits,\
                  mean_q,silent_devices,wire_bits,undecodable,flagged,lost\n";
    assert!(csv.starts_with(header), "{csv}");
    let summary: serde_json::Value = serde_json::from_str(&summary::json(&curves).unwrap()).unwrap();
    assert!(summary[0].get("total_seconds").is_none() && summary[0].get("outages").is_none());
}

#[test]
fn seeds_that_miss_the_target_are_counted_and_goals_and_the_worst_class_have_columns() {
    let mut curve = curve_of("bc", &[&[0.5, 0.9, 0.7], &[0.9, 0.9, 0.9], &[0.5, 0.6, 0.7], &[0.5, 0.6, 0.9]]);
    for (seed, run) in curve.runs.iter_mut().enumerate() {
        for row in &mut run.rows {
            row.metrics = vec![("worst_class".into(), row.test_accuracy - 0.1 * seed as f64)];
            row.trained = 120;
        }
    }
    curve.goals = ["bits until accuracy >= 0.85 for 2 evaluations", "final worst-class"]
        .map(|goal| (format!("my {}", goal[..5].trim()), goal.parse().unwrap()))
        .into();
    let mut never = curve_of("bn2", &[&[0.5, 0.6, 0.7]]);
    never.goals.clone_from(&curve.goals);
    let text = table(&[curve.clone(), never.clone()]);
    let cells = |line: usize| -> Vec<&str> {
        text.lines().nth(line).unwrap().split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
    };
    let column = |name: &str| cells(0).iter().position(|head| *head == name).unwrap();
    // 20, 10, more than 30, 30: the median is 25. Twice in a row: 10, and of the others more than 20, 30 or
    // 20 rounds' bits, so that it lies beyond 20 rounds.
    for (name, ours, others) in [
        ("rounds to 80 %", "25 (3/4)", "> 30 (0/1)"),
        ("worst class", "65.00 %", "–"),
        ("my bits", "> 833333 (1/4)", "> 1000000 (0/1)"),
        ("my final", "65.00 %", "–"),
        ("trainings/round", "12.0", "0.0"),
    ] {
        assert_eq!((cells(2)[column(name)], cells(3)[column(name)]), (ours, others), "{name}\n{text}");
    }
    assert!(text.contains("\nmy bits: bits until accuracy >= 0.85 for 2 evaluations\n"), "{text}");
    assert!(text.contains("(7/10): 7 of 10 seeds reached it"), "{text}");
    let summary: serde_json::Value = serde_json::from_str(&summary::json(&[curve]).unwrap()).unwrap();
    let summary = &summary[0];
    assert_eq!((&summary["rounds_to_target"], &summary["reached_target"]), (&25.0.into(), &3.into()));
    assert!(summary["rounds_to_target_interval"].is_null());
    assert_eq!(summary["trainings_per_round"], 12.0);
    let goal = &summary["goals"]["my bits"];
    assert_eq!((&goal["reached"], &goal["of"], &goal["value"]), (&1.into(), &4.into(), &().into()));
}

#[test]
fn with_units_every_table_has_seconds_and_joules() {
    // 80 % after 20 rounds of 0.25 s and 3 J; 30 rounds in all, a tenth of the joules on one device.
    let curves = [with_units(curve_of("bc", &[&[0.5, 0.9, 0.9]])), curve_of("bn2", &[&[0.5]])];
    let text = table(&curves);
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect())
        .collect();
    let cell = |row: usize, name: &str| {
        let column =
            lines[0].iter().position(|head| *head == name).unwrap_or_else(|| panic!("{name}\n{text}"));
        lines[row][column]
    };
    let expected = [
        ("seconds to 80 %", "5.000", "–"),
        ("joules to 80 %", "60.00", "–"),
        ("highest power", "10.00 dBm", "1.50"),
        ("seconds", "7.500", "–"),
        ("joules", "90.00", "–"),
        ("worst device", "9.000", "–"),
        ("outages", "2.0", "0.0"),
        ("late", "1.0", "0.0"),
    ];
    for (name, with, without) in expected {
        assert_eq!((cell(2, name), cell(3, name)), (with, without), "{name}\n{text}");
    }
    assert!(text.contains("against radio.power or radio.power_dbm;"), "{text}");
    assert!(table(&curves[..1]).contains("against radio.power_dbm;"));
    let csv = String::from_utf8(csv(&curves).unwrap()).unwrap();
    assert!(csv.lines().next().unwrap().ends_with(
        "late,total_seconds,down_s,train_s,report_s,up_s,total_joules,compute_j,\
         report_j,transmit_j,receive_j,idle_j,worst_device_joules"
    ));
    assert!(
        csv.lines().nth(1).unwrap().ends_with(",2.5,0.05,0.1,0.02,0.08,30,1.5,0.1,0.9,0.3,0.2,3"),
        "{csv}"
    );
    assert!(csv.lines().nth(4).unwrap().ends_with(",,,,,,,,,,,,"), "{csv}");
    let summary: serde_json::Value = serde_json::from_str(&summary::json(&curves).unwrap()).unwrap();
    let numbers =
        ["seconds_to_target", "joules_to_target", "total_seconds", "total_joules", "worst_device_joules"];
    for (name, value) in numbers.into_iter().zip([5.0, 60.0, 7.5, 90.0, 9.0]) {
        let ours = summary[0][name].as_f64().unwrap();
        assert!((ours - value).abs() < 1e-9, "{name}: {ours}");
    }
}

#[test]
fn devices_above_their_power_are_counted_in_the_units_of_the_radio() {
    // 7.8 dBm are 6.03 mW: no device is above them at 5 mW, two are at 7 mW.
    let mut curve = with_units(curve_of("bc", &[&[0.5]]));
    assert_eq!(curve.device_use().above.mean, 0.0);
    curve.runs[0].outcome.average_power[..2].fill(0.007);
    assert_eq!(curve.device_use().above.mean, 2.0);
}
