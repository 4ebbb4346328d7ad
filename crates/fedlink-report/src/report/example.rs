//! Reports made up for the tests, here and in the browser: the numbers are formulas, not results.

use super::{
    ClaimVerdict, CurveCosts, CurveFairness, DeviceTotals, Interval, PairedDifference, Report, ReportCurve,
    SplitTable,
};
use crate::chart::{CellMap, cdf};
use fedlink_study::goals::{Median, Reading};

/// Every page, with the name of its file.
pub fn pages() -> [(&'static str, Report); 5] {
    [
        ("typical", typical()),
        ("units", units()),
        ("many", many()),
        ("single", single()),
        ("empty", Report::default()),
    ]
}

fn around(mean: f64, half: f64) -> Interval {
    Interval { mean, low: mean - half, high: mean + half }
}

/// A curve that rises to `height`; `phase` shifts its wiggles, `favor` its preference for some devices.
fn curve(label: &str, k: u64, seeds: usize, devices: usize, shape: (f64, f64, f64)) -> ReportCurve {
    let (height, phase, favor) = shape;
    let rounds: Vec<u64> = (0..=50).map(|i| 10 * i).collect();
    let time = || rounds.iter().map(|&round| round as f64);
    let rise = |t: f64| 1.0 - (-t / 90.0).exp();
    let wiggle = |t: f64| 0.02 * (0.11 * t + phase).sin() * (-t / 400.0).exp();
    let accuracy: Vec<f64> = time().map(|t| 0.1 + (height - 0.1) * rise(t) + wiggle(t)).collect();
    let half = |t: f64| if seeds > 1 { 0.012 + 0.03 * (-t / 150.0).exp() } else { 0.0 };
    let band = |sign: f64| accuracy.iter().zip(time()).map(|(a, t)| a + sign * half(t)).collect();
    let bits_per_round: Vec<f64> =
        time().map(|t| 16_000.0 + 900.0 * phase + 700.0 * (0.05 * t + phase).sin()).collect();
    let per_round = 16_000.0 + 900.0 * phase;
    let fair = k as f64 / devices as f64;
    let mut scheduled: Vec<f64> =
        (0..devices).map(|m| fair * (1.0 + favor * (m as f64 * 1.7 + phase).sin()).max(0.0)).collect();
    if seeds > 1 {
        // By rank, as means over seeds are.
        scheduled.sort_by(|a, b| b.total_cmp(a));
    }
    let end = *accuracy.last().unwrap();
    let best = accuracy.iter().copied().fold(0.0, f64::max);
    let spread = if seeds > 1 { 0.004 } else { 0.0 };
    let to_target = rounds.iter().zip(&accuracy).find(|(_, a)| **a >= 0.8).map(|(&round, _)| round as f64);
    let wide = |mean: f64| around(mean, if seeds > 1 { 0.08 * mean } else { 0.0 });
    ReportCurve {
        scatter: None,
        groups: Vec::new(),
        label: label.into(),
        keys: Vec::new(),
        policy: label.split(' ').next().unwrap_or_default().to_lowercase(),
        family: String::new(),
        look: None,
        k,
        seeds,
        status: "finished".into(),
        fair_share: fair,
        bits: time().map(|t| per_round * t).collect(),
        symbols: time().map(|t| 5000.0 * t).collect(),
        seconds: Vec::new(),
        joules: Vec::new(),
        costs: None,
        fairness: None,
        low: band(-1.0),
        high: band(1.0),
        loss: time().map(|t| 0.3 / height + 2.0 * (-t / 100.0).exp() - wiggle(t)).collect(),
        mean_q: bits_per_round.iter().map(|bits| bits / 8.1 / k as f64).collect(),
        bits_per_round,
        final_accuracy: around(end, spread),
        best_accuracy: around(best, spread),
        trainings_per_round: k as f64 + 0.5,
        rounds_to_target: to_target.map(|rounds| costs(rounds, seeds)),
        bits_to_target: to_target.map(|rounds| costs(rounds * per_round, seeds)),
        goals: Vec::new(),
        area_under_curve: around(accuracy.iter().sum::<f64>() / accuracy.len() as f64, spread),
        instability: around(0.004 + 0.001 * phase, spread / 10.0),
        ranked: seeds > 1,
        devices: DeviceTotals {
            least: wide(scheduled.iter().copied().fold(f64::INFINITY, f64::min)),
            median: wide(fair),
            most: wide(scheduled.iter().copied().fold(0.0, f64::max)),
            evenness: wide(1.0 / (1.0 + favor)),
            highest_power: wide(scheduled.iter().copied().fold(0.0, f64::max) / fair),
            above: wide(scheduled.iter().filter(|share| **share > fair).count() as f64),
        },
        power: scheduled.iter().map(|share| share / fair).collect(),
        scheduled,
        digest: (0..seeds)
            .map(|seed| format!("{:064x}", 0x9e37_79b9 * (seed as u128 + 1) * 0xffff_ffff_ffff))
            .collect(),
        rounds,
        accuracy,
    }
}

fn split(devices: usize) -> SplitTable {
    let mut counts = vec![vec![0; 10]; devices];
    for (m, held) in counts.iter_mut().enumerate() {
        held[(3 * m + m / 10) % 10] += 500;
        held[(7 * m + 4) % 10] += 500;
    }
    SplitTable {
        title: "Two classes per device, 1000 samples each".into(),
        classes: 10,
        counts,
        heterogeneity: 0.8,
    }
}

fn pairs(curves: &[ReportCurve]) -> Vec<PairedDifference> {
    let pair = |a: &ReportCurve, b: &ReportCurve| PairedDifference {
        a: a.label.clone(),
        b: b.label.clone(),
        difference: around(a.final_accuracy.mean - b.final_accuracy.mean, 0.006),
    };
    curves.iter().enumerate().flat_map(|(i, a)| curves[i + 1..].iter().map(move |b| pair(a, b))).collect()
}

/// Four policies, five seeds, forty devices.
fn typical() -> Report {
    let shapes = [
        ("BC", 0.78, 0.0, 0.1),
        ("BN2", 0.775, 1.0, 0.9),
        ("BC-BN2", 0.815, 2.0, 0.45),
        ("BN2-C", 0.83, 3.0, 0.6),
    ];
    let curves: Vec<ReportCurve> = shapes
        .iter()
        .map(|&(label, height, phase, favor)| curve(label, 10, 5, 40, (height, phase, favor)))
        .collect();
    let claim = |claim: &str, verdict: &str, mean: f64, detail: &str| ClaimVerdict {
        claim: claim.into(),
        verdict: verdict.into(),
        difference: Some(around(mean, 0.006)),
        detail: detail.into(),
    };
    Report {
        head: String::new(),
        scatter_goal: String::new(),
        goals: Vec::new(),
        title: "Example: four policies on non-IID data".into(),
        generated_by: "fedlink 0.2.0".into(),
        reproduce: vec![
            "cargo install --path crates/fedlink-cli".into(),
            "fedlink run config.toml --seeds 5 --out results/example".into(),
        ],
        config_toml:
            "name = \"example\"\n\n[data]\ndataset = \"digits\"\ndevices = 40\nsamples_per_device = 1000\n\n\
                      [radio]\nsymbols = 5000\npower = 1.0\n\n[run]\nrounds = 500\nseeds = 5\n"
                .into(),
        devices: 40,
        average_power: 1.0,
        power_unit: String::new(),
        panels: Vec::new(),
        cells: Vec::new(),
        snr: None,
        target: 0.8,
        differences: pairs(&curves),
        split: Some(split(40)),
        claims: vec![
            claim("BN2-C ends above BC", "holds", 0.05, "The interval lies above zero on five shared seeds."),
            claim("BN2 ends above BC", "does not hold", -0.008, "The interval lies below zero."),
            claim(
                "BN2-C ends above BC-BN2",
                "undecided",
                0.004,
                "The interval holds zero: more seeds would decide.",
            ),
        ],
        notes: vec!["These numbers are made up to show the page; they are no results.".into()],
        curves,
    }
}

/// The same in physical units, with a cell; the last curve has none.
fn units() -> Report {
    let mut report = typical();
    report.title = "Example: four policies in seconds and joules".into();
    report.average_power = 0.00603;
    report.power_unit = "W".into();
    let position = |m: u32| {
        let (radius, angle) = (40.0 + 11.0 * f64::from(m), 2.4 * f64::from(m));
        (radius * angle.cos(), radius * angle.sin())
    };
    let positions: Vec<(f64, f64)> = (0..40).map(position).collect();
    let gains: Vec<f64> = positions.iter().map(|(x, y)| -15.3 - 37.6 * x.hypot(*y).log10()).collect();
    for (i, curve) in report.curves.iter_mut().enumerate().take(3) {
        let class = |c: i32| around(0.9 - 0.04 * f64::from(c) - 0.01 * i as f64, 0.02);
        curve.fairness = Some(CurveFairness {
            // The test set has none of class 3.
            classes: (0..10).map(|c| (c != 3).then(|| class(c))).collect(),
            worst_class: Some(class(9)),
            worst_tenth: Some(class(8)),
            device_deviation: Some(around(0.031, 0.004)),
            jain: Some(around(0.72, 0.05)),
            max_age: Some(around(61.0, 7.0)),
            mean_age: Some(around(11.5, 0.6)),
        });
        let (train_s, rounds) = (0.2 * (i as f64 + 1.0), 500.0);
        let phases_s = [0.05, train_s, 0.01, 0.005];
        let energy_j = [4.0 * train_s, 0.01, 0.12, 0.02, 0.3];
        let (seconds, joules) = (phases_s.iter().sum::<f64>(), energy_j.iter().sum::<f64>());
        curve.power.iter_mut().for_each(|power| *power *= 0.00603);
        curve.devices.highest_power = around(1.4 * 0.00603, 0.0002);
        curve.seconds = curve.rounds.iter().map(|&round| seconds * round as f64).collect();
        curve.joules = curve.rounds.iter().map(|&round| joules * round as f64).collect();
        let share = |m: usize| (m as f64 + 1.0) / 820.0 * rounds;
        let rounds_to_target = curve.rounds_to_target.as_ref().and_then(|median| median.value);
        let to_target = |each: f64| rounds_to_target.map(|rounds| costs(each * rounds, 3));
        curve.costs = Some(CurveCosts {
            seconds_to_target: to_target(seconds),
            joules_to_target: to_target(joules),
            total_seconds: Some(around(seconds * rounds, 1.0)),
            total_joules: Some(around(joules * rounds, 2.0)),
            worst_device_joules: Some(around(joules * share(39), 0.5)),
            outages: 12.4,
            late: i as f64,
            phases_s,
            energy_j,
            device_energy_j: (0..40).rev().map(|m| energy_j.map(|kind| kind * share(m))).collect(),
        });
        let title = format!("Cell: {}", curve.label);
        let map = CellMap::new(&title, &positions, &gains, Some(&curve.scheduled));
        report.cells.push(CellMap { subtitle: "seed 1".into(), ..map });
    }
    let snrs = gains.iter().map(|gain| gain + 120.0).collect();
    report.snr = Some(cdf("", "SNR (dB)", &[("all devices".into(), None, snrs)]));
    report
}

/// The median of costs around a number; the last of several seeds did not reach the goal.
fn costs(around: f64, seeds: usize) -> Median {
    let seed = |i: usize| match i {
        0 => Reading::Known(around),
        i if i + 1 == seeds => Reading::Beyond(2.0 * around),
        i => Reading::Known(around * (1.0 + 0.01 * i as f64)),
    };
    Median::of(&(0..seeds.max(1)).map(seed).collect::<Vec<_>>()).unwrap()
}

/// Forty curves, a thousand devices, labels that would break a careless page, and
/// curves with missing numbers.
fn many() -> Report {
    let mut curves: Vec<ReportCurve> = (0..40)
        .map(|i| {
            let (x, k, tau) = (f64::from(i), 1 + i % 8, 1 + i / 8);
            let shape = (0.7 + 0.005 * x, 0.3 * x, 0.02 * x);
            let keys = [("schedule.k", k), ("learn.local_steps", tau)];
            ReportCurve {
                keys: keys.map(|(key, value)| (key.to_owned(), value.to_string())).to_vec(),
                ..curve(&format!("BN2-C K={k} τ={tau}"), 10, 3, 1000, shape)
            }
        })
        .collect();
    curves[3].label =
        "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
            .into();
    curves[4].label =
        "a very long label without a single position to break it at: ".to_owned() + &"x".repeat(80);
    let diverged = &mut curves[5];
    diverged.status = "diverged".into();
    for series in [&mut diverged.accuracy, &mut diverged.low, &mut diverged.high, &mut diverged.loss] {
        series.truncate(20);
        series[10] = f64::NAN;
    }
    diverged.final_accuracy = Interval { mean: f64::NAN, low: f64::NAN, high: f64::NAN };
    diverged.bits_to_target = None;
    diverged.scheduled[7] = f64::INFINITY;
    let missing = curves[5].final_accuracy;
    curves[6] = ReportCurve {
        final_accuracy: missing,
        best_accuracy: missing,
        area_under_curve: missing,
        instability: missing,
        label: "never started".into(),
        status: "interrupted".into(),
        ..ReportCurve::default()
    };
    Report {
        title: "Example: a sweep & \"odd\" <labels> {{data}}".into(),
        devices: 1000,
        differences: pairs(&curves[..20]),
        split: Some(split(1000)),
        config_toml: "name = '<script>document.title=\"taken\"</script> ]]> {{script}} '\n".repeat(40),
        curves,
        ..typical()
    }
}

/// One curve of one seed: no interval anywhere.
fn single() -> Report {
    Report {
        title: "Example: one curve, one seed".into(),
        curves: vec![curve("BC", 1, 1, 5, (0.91, 0.0, 0.3))],
        devices: 5,
        differences: Vec::new(),
        split: None,
        claims: Vec::new(),
        notes: Vec::new(),
        ..typical()
    }
}
