//! `fedlink link-budget`: the link budget of an experiment, without training.

use super::{check_free, filled};
use crate::args::LinkBudgetOptions;
use crate::custom::PartLoader;
use crate::failure::Exit;
use anyhow::bail;
use fedlink::base::units::to_db;
use fedlink::spec::Spec;
use fedlink_report::chart::{CellMap, Look, cdf};
use fedlink_report::figure::Figure;
use fedlink_study::data_folders;
use fedlink_study::experiment::{Experiment, FileKind, Source, Sweep};
use fedlink_study::link_budget::{
    DeviceLink, GroupShare, LinkBudgetOptions as Choices, LinkBudgetStudy, LinkRow, PolicyCost, link_budget,
};
use fedlink_study::output::OutputFolder;
use fedlink_study::statistics::Estimate;
use fedlink_study::table::{number, table};
use std::fmt::Write;

pub fn run(options: &LinkBudgetOptions, loader: &dyn PartLoader) -> anyhow::Result<Exit> {
    options.out.as_deref().map_or(Ok(()), |out| check_free(out, options.force))?;
    let parts = loader.load(&options.parts)?;
    let source = match &options.experiment {
        None => Source::of_text("", ""),
        Some(name) => Source::open(name)?,
    };
    if source.kind() != FileKind::System {
        bail!(
            "{} is about the bound and has no radio; name an experiment that runs the system",
            source.given
        );
    }
    let mut experiment = Experiment::read(&source, &parts)?;
    super::apply(&options.settings, |key, value| experiment.set(key, value))?;
    experiment.add_unnamed(&parts)?;
    let sweep = experiment.expand(&parts)?;
    sweep.check_effects()?;
    let curve = &sweep.curves[0];
    let folders = data_folders(options.data_dir.as_deref());
    let (policies, seeds) = (options.policies.clone(), options.seeds.unwrap_or(1));
    let choices = Choices { policies, seeds, ..Choices::default() };
    let study = link_budget(&curve.spec, &parts, &folders, &choices)?;
    let json = serde_json::to_string_pretty(&study)? + "\n";
    let written = match &options.out {
        Some(out) => {
            let mut names = String::new();
            let written = filled(out, options.force, |folder| {
                names = write_figures(folder, &curve.spec, &study)?;
                folder.write("link_budget.json", &json)?;
                Ok(folder.write("links.csv", csv(&study)?)?)
            })?;
            Some((written, names))
        }
        None => None,
    };
    if options.json {
        out!("{json}")?;
        return Ok(Exit::Done);
    }
    out!("{}", heading(&sweep))?;
    out!("{}", header(&curve.spec, &study))?;
    out!("\n{}", links(&study))?;
    out!("\n{}", costs(&study))?;
    if choices.seeds > 1 {
        out!("\n{}", spread(&study, choices.seeds))?;
    }
    for caution in &study.cautions {
        outln!("\nnote: {caution}")?;
    }
    if let Some((folder, names)) = written {
        outln!("\n{}", folder.display())?;
        outln!("  {names}link_budget.json  links.csv")?;
    }
    Ok(Exit::Done)
}

/// The curve of the sweep that is shown; empty if there is only one.
fn heading(sweep: &Sweep) -> String {
    let (label, curves) = (&sweep.curves[0].label, sweep.curves.len());
    if curves == 1 {
        return String::new();
    }
    let name = if sweep.experiment.name.is_empty() { "the experiment" } else { &sweep.experiment.name };
    format!("{label}: the first of {curves} curves of {name}; --set KEY=VALUE chooses another\n\n")
}

/// Watts as dBm, or a number without a unit.
fn power(study: &LinkBudgetStudy, value: f64) -> String {
    match study.bandwidth_hz {
        // Rounded first, so that −0.0 is not printed.
        Some(_) => format!("{:.1} dBm", (10.0 * (to_db(value) + 30.0)).round() / 10.0 + 0.0),
        None => number(value),
    }
}

/// Seconds, joules, hertz with a prefix.
fn with_prefix(value: f64, unit: &str) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")];
    if !value.is_finite() {
        return "∞".into();
    }
    let fits = |&&(factor, _): &&(f64, &str)| value.abs() >= 0.9995 * factor;
    match prefixes.iter().find(fits) {
        Some((factor, prefix)) => {
            let scaled = value / factor;
            let digits = if scaled.abs() < 9.995 { 2 } else { usize::from(scaled.abs() < 99.95) };
            let text = format!("{scaled:.digits$}");
            let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            format!("{text} {prefix}{unit}")
        }
        None => format!("0 {unit}"),
    }
}

fn percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0 %".into(),
        percent if percent < 1.0 => format!("{percent:.2} %"),
        percent => format!("{percent:.1} %"),
    }
}

/// The properties of the radio that links and policies share.
fn header(spec: &Spec, study: &LinkBudgetStudy) -> String {
    let radio = &spec.radio;
    let mut lines: Vec<(&str, String)> = Vec::new();
    let devices = format!("M = {}, K = {}, d = {} weights", study.devices, study.k, study.dim);
    lines.push(("devices", devices));
    if let Some(hertz) = study.bandwidth_hz {
        lines.push(("bandwidth", format!("W = {}", with_prefix(hertz, "Hz"))));
    }
    lines.push((
        "uplink",
        match (study.payload_bits, study.uplink_s) {
            (Some(bits), _) => format!("{} per upload, of any duration", with_prefix(bits, "bit")),
            (None, Some(seconds)) => {
                format!("T = {}, n = {} symbols", with_prefix(seconds, "s"), study.symbols)
            }
            (None, None) => format!("n = {} symbols", study.symbols),
        },
    ));
    let sent: Vec<f64> = study.links.iter().map(|link| link.power).collect();
    let (low, high) = (
        sent.iter().copied().fold(f64::INFINITY, f64::min),
        sent.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    );
    let between = if high - low > 1e-9 * high {
        format!("{} to {}", power(study, low), power(study, high))
    } else {
        power(study, high)
    };
    let policy = match (&radio.snr_db, radio.power_policy.as_str()) {
        (Some(_), _) => match study.bandwidth_hz {
            None => "gains are such that its SNR is radio.snr_db".to_owned(),
            Some(hertz) => format!(
                "its SNR is radio.snr_db at {} and {} dBm",
                with_prefix(radio.snr_bandwidth_hz.unwrap_or(hertz), "Hz"),
                number(radio.snr_power_dbm.unwrap_or_else(|| radio.power_dbm()))
            ),
        },
        (None, "fair-share") => "fair-share: M·P̄/K".to_owned(),
        (None, name) => name.to_owned(),
    };
    let average = power(study, study.average_power);
    lines.push(("power", format!("P̄ = {average}; a device sends with {between} ({policy})")));
    let interference = radio.interference_w.is_some_and(|watts| watts > 0.0);
    let with = if interference { ", with interference" } else { "" };
    lines.push(("noise", format!("σ² = {}{with}", power(study, study.noise))));
    let mut fading = radio.fading.clone();
    if radio.antennas > 1 {
        let _ = write!(fading, ", {} antennas", radio.antennas);
    }
    if radio.correlation != 0.0 {
        let _ = write!(fading, ", correlation {} from round to round", radio.correlation);
    }
    if radio.speed_kmh > 0.0 {
        let _ = write!(fading, ", {} km/h", radio.speed_kmh);
    }
    if radio.csi_error > 0.0 || radio.csi_delay_s > 0.0 {
        let _ = write!(
            fading,
            "; estimates with an error of {}, {} s old, back-off {} dB",
            percent(radio.csi_error),
            radio.csi_delay_s,
            radio.backoff_db
        );
    }
    lines.push(("fading", fading));
    lines.push(("rate", format!("{} over {}", radio.rate, radio.access)));
    if spec.cell.pathloss != "none" {
        let cell = &spec.cell;
        let shadowing = match cell.shadowing_db {
            0.0 => String::new(),
            db => format!(", shadowing of {db} dB"),
        };
        lines.push(("cell", format!("{}, path loss {}{shadowing}", cell.layout, cell.pathloss)));
    }
    let smallest = study.smallest_bits.map_or_else(
        || "no budget is enough for an update".to_owned(),
        |bits| format!("the smallest update takes {bits:.1} bits"),
    );
    lines.push(("compressor", format!("{}; {smallest}", spec.compress.scheme)));
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.iter().fold(String::new(), |text, (name, value)| text + &format!("{name:<width$}  {value}\n"))
}

/// The table of links.
fn links(study: &LinkBudgetStudy) -> String {
    let (placed, units) = (study.links.iter().any(|link| link.distance_m.is_some()), study.bandwidth_hz);
    let (payload, k) = (study.payload_bits.is_some(), study.k);
    let shared = format!("bits at 1/{k}");
    let q_shared = format!("q at 1/{k}");
    let mut header = vec!["link", "devices"];
    if placed {
        header.extend(["distance", "path loss", "shadowing loss"]);
    }
    header.extend(["mean SNR", "bits/symbol"]);
    if units.is_some() {
        header.push("rate");
    }
    if payload {
        header.extend(["upload, median", "90 %", "q"]);
    } else {
        header.extend(["bits alone", "q"]);
        if k > 1 {
            header.extend([shared.as_str(), q_shared.as_str()]);
        }
        header.push("silent");
    }
    header.push("lost");
    let row = |row: &LinkRow| {
        let link = &row.link;
        let level = |q: usize| format!("{q}{}", if row.highest_level == Some(q) { "*" } else { "" });
        let db = |value: Option<f64>| value.map_or_else(|| "–".into(), |db| format!("{db:.1} dB"));
        let mut cells = vec![row.label.clone(), row.devices.to_string()];
        if placed {
            cells.push(link.distance_m.map_or_else(|| "–".into(), |meters| format!("{meters:.0} m")));
            cells.extend([db(link.loss_db), db(link.shadowing_db)]);
        }
        cells.extend([db(Some(link.snr_db)), format!("{:.3}", link.bits_per_symbol)]);
        if let Some(rate) = link.rate_bps.filter(|_| units.is_some()) {
            cells.push(with_prefix(rate, "bit/s"));
        }
        if let Some(upload_s) = link.upload_s {
            cells.extend(upload_s.map(|seconds| with_prefix(seconds, "s")));
            cells.push(level(row.level_shared));
        } else {
            cells.extend([format!("{:.0}", link.bits_alone), level(row.level_alone)]);
            if k > 1 {
                cells.extend([format!("{:.0}", link.bits_shared), level(row.level_shared)]);
            }
            cells.push(percent(link.silent));
        }
        cells.push(percent(link.lost));
        cells
    };
    let rows: Vec<Vec<String>> = study.rows.iter().map(row).collect();
    let mut text = table(&header, &rows);
    let _ = write!(text, "means over {} rounds; ", study.rounds);
    if !payload {
        text += "silent: too few bits for an update; ";
    }
    text += "lost: by CSI error, rate model or threshold";
    if k > 1 && !payload {
        let _ = write!(text, "; both with 1/{k} of the symbols");
    }
    text.push('\n');
    if rows.iter().flatten().any(|cell| cell.ends_with('*')) {
        text += "*: the largest q; a larger budget would not be used\n";
    }
    text
}

/// The table of policies.
fn costs(study: &LinkBudgetStudy) -> String {
    let units = study.policies.iter().any(|cost| cost.phases.is_some());
    let mut header = vec!["policy", "train", "heard", "granted bits", "silent", "lost"];
    if units {
        header.extend([
            "late",
            "down",
            "training",
            "reports",
            "up",
            "round",
            "median",
            "compute",
            "radio",
            "joules/round",
        ]);
    }
    let grouped = study.policies.iter().any(|cost| !cost.groups.is_empty());
    if grouped {
        header.extend(["uploads by group", "airtime by group"]);
    }
    let batteries = study.policies.iter().any(|cost| cost.battery_rounds.is_some());
    if batteries {
        header.push("rounds of batteries");
    }
    let row = |cost: &PolicyCost| {
        let mut cells = vec![cost.policy.clone()];
        if cost.refused.is_some() {
            cells.resize(header.len(), "–".into());
            return cells;
        }
        cells.extend([
            format!("{:.0}", cost.trains),
            format!("{} of {}", cost.heard, study.devices),
            format!("{:.0}", cost.bits),
            percent(cost.silent),
            percent(cost.lost),
        ]);
        if let (Some(phases), Some(energy)) = (cost.phases, cost.energy) {
            cells.push(percent(cost.late));
            let seconds = [phases.down_s, phases.train_s, phases.report_s, phases.up_s, phases.total()];
            cells.extend(seconds.map(|seconds| with_prefix(seconds, "s")));
            cells.push(with_prefix(cost.median_round_s.unwrap_or(0.0), "s"));
            let air = energy.transmit_j + energy.report_j;
            cells.extend([energy.compute_j, air, energy.total()].map(|joules| with_prefix(joules, "J")));
        }
        if grouped {
            cells.extend([by_group(cost, |group| group.uploads), by_group(cost, |group| group.airtime)]);
        }
        if let Some(rounds) = cost.battery_rounds {
            cells.push(rounds.map(lasting).join(" / "));
        }
        cells
    };
    let rows: Vec<Vec<String>> = study.policies.iter().map(row).collect();
    let mut text = table(&header, &rows);
    let _ = writeln!(
        text,
        "means over {} rounds, scheduled by random norms exp(0.25·N(0, 1)): nothing is trained\n\
         heard: devices that were scheduled at least once; granted bits: of a round, of which a device sends \
         as many\nas its compressor fills{}{}",
        study.policy_rounds,
        if batteries {
            "; rounds of batteries: until the first, the half and\n\
             the last is empty, at the joules of a round with all alive"
        } else {
            ""
        },
        if units {
            "; radio: joules of uploads and reports; joules/round: all devices, all kinds"
        } else {
            ""
        }
    );
    if study.everyone_trains {
        text +=
            "every device trains in every round, for the state that it keeps; else --set learn.state=reset\n";
    }
    for cost in &study.policies {
        if let Some(refused) = &cost.refused {
            let _ = writeln!(text, "{}: {refused}", cost.policy);
        }
    }
    text
}

/// Rounds that a battery lasts.
fn lasting(rounds: f64) -> String {
    if rounds.is_finite() { format!("{:.0}", rounds.floor()) } else { "∞".into() }
}

/// A share of each group, in percent.
fn by_group(cost: &PolicyCost, share: impl Fn(&GroupShare) -> f64) -> String {
    let shares: Vec<String> =
        cost.groups.iter().map(|group| format!("{:.0}", 100.0 * share(group))).collect();
    shares.join(" / ") + " %"
}

/// The table of the numbers that differ from seed to seed.
fn spread(study: &LinkBudgetStudy, seeds: u64) -> String {
    let names: Vec<&str> =
        study.policies.iter().map(|cost| cost.over_seeds.len()).max().map_or_else(Vec::new, |most| {
            let widest = study.policies.iter().find(|cost| cost.over_seeds.len() == most);
            widest.into_iter().flat_map(|cost| &cost.over_seeds).map(|(name, _)| name.as_str()).collect()
        });
    let cell = |name: &str, Estimate { mean, half_width }: Estimate| {
        let shown = |value: f64| match name {
            "silent" | "lost" | "late" => percent(value),
            "seconds" => with_prefix(value, "s"),
            "joules" => with_prefix(value, "J"),
            _ if name.starts_with("uploads_") || name.starts_with("airtime_") => percent(value),
            _ => number(value),
        };
        if half_width > 0.0 { format!("{} ± {}", shown(mean), shown(half_width)) } else { shown(mean) }
    };
    let row = |cost: &PolicyCost| {
        let found = |name: &&str| cost.over_seeds.iter().find(|(known, _)| known == name);
        let value = |name: &&str| found(name).map_or_else(|| "–".into(), |(_, value)| cell(name, *value));
        [cost.policy.clone()].into_iter().chain(names.iter().map(value)).collect::<Vec<String>>()
    };
    let rows: Vec<Vec<String>> = study.policies.iter().map(row).collect();
    let header: Vec<String> = names.iter().map(|name| name.replace('_', " ")).collect();
    let header: Vec<&str> = ["policy"].into_iter().chain(header.iter().map(String::as_str)).collect();
    let mut text = table(&header, &rows);
    let _ = writeln!(
        text,
        "means over {seeds} seeds with 95 % intervals; the tables above are of the first seed\n\
         bits: granted in a round; uploads 1, airtime 1: the share of the first group of devices; first and \
         half empty:\nrounds until the first and the half of the batteries is empty"
    );
    text
}

/// A row for each device.
fn csv(study: &LinkBudgetStudy) -> anyhow::Result<Vec<u8>> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    let columns = "device,group,x_m,y_m,distance_m,loss_db,shadowing_db,power,snr_db,bits_per_symbol,\
                   rate_bps,bits_alone,bits_shared,silent,lost,upload_median_s,upload_90_s";
    let scheduled = study.policies.iter().map(|cost| format!("scheduled_{}", cost.policy));
    writer.write_record(columns.split(',').map(str::to_owned).chain(scheduled))?;
    for (m, link) in study.links.iter().enumerate() {
        let numbers = [
            link.x_m,
            link.y_m,
            link.distance_m,
            link.loss_db,
            link.shadowing_db,
            Some(link.power),
            Some(link.snr_db),
            Some(link.bits_per_symbol),
            link.rate_bps,
            Some(link.bits_alone),
            Some(link.bits_shared),
            Some(link.silent),
            Some(link.lost),
            link.upload_s.map(|seconds| seconds[0]),
            link.upload_s.map(|seconds| seconds[1]),
        ];
        let group = link.group.map_or_else(String::new, |group| group.to_string());
        let count = |cost: &PolicyCost| cost.scheduled.get(m).map_or_else(String::new, u32::to_string);
        let before = [link.device.to_string(), group].into_iter().chain(numbers.map(number));
        writer.write_record(before.chain(study.policies.iter().map(count)))?;
    }
    Ok(writer.into_inner()?)
}

/// Writes the map of a cell and the CDF of the SNR; returns their names.
fn write_figures(folder: &OutputFolder, spec: &Spec, study: &LinkBudgetStudy) -> anyhow::Result<String> {
    let mut names = String::new();
    let positions: Vec<(f64, f64)> =
        study.links.iter().filter_map(|link| Some((link.x_m?, link.y_m?))).collect();
    if positions.len() == study.links.len() {
        let antennas = spec.radio.gain_tx_dbi.unwrap_or(0.0) + spec.radio.gain_rx_dbi.unwrap_or(0.0);
        let gains: Vec<f64> = study
            .links
            .iter()
            .map(|link| antennas + link.shadowing_db.unwrap_or(0.0) - link.loss_db.unwrap_or(0.0))
            .collect();
        let policy = &spec.schedule.policy;
        let scheduled = study.policies.iter().find(|cost| cost.policy == *policy && cost.refused.is_none());
        let shares = scheduled.map(|cost| {
            let share = |count: &u32| f64::from(*count) / study.policy_rounds as f64;
            cost.scheduled.iter().map(share).collect::<Vec<f64>>()
        });
        let map = CellMap::new(
            &format!("Cell: devices scheduled by {policy}"),
            &positions,
            &gains,
            shares.as_deref(),
        );
        folder.write("map.svg", map.svg())?;
        folder.write("map.png", map.png()?)?;
        names += "map.svg  map.png  ";
    }
    let groups = study.links.iter().filter_map(|link| link.group).max();
    let of = |wanted: Option<usize>| -> Vec<f64> {
        let fits = |link: &&DeviceLink| wanted.is_none() || link.group == wanted;
        study.links.iter().filter(fits).map(|link| link.snr_db).collect()
    };
    let series: Vec<(String, Option<Look>, Vec<f64>)> = match groups {
        Some(last) if last > 0 => {
            (0..=last).map(|group| (format!("group {}", group + 1), None, of(Some(group)))).collect()
        }
        _ => vec![("all devices".into(), None, of(None))],
    };
    let chart = cdf("SNR of the devices", "mean SNR while sending (dB)", &series);
    folder.write("snr.svg", chart.svg())?;
    folder.write("snr.png", chart.png()?)?;
    Ok(names + "snr.svg  snr.png  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_prefix() {
        let cases = [
            (0.0, "0 s"),
            (0.005, "5 ms"),
            (0.2344, "234 ms"),
            (1.2345, "1.23 s"),
            (12.345, "12.3 s"),
            (0.000_999_9, "1 ms"),
            (1500.0, "1.5 ks"),
            (f64::INFINITY, "∞"),
        ];
        for (value, text) in cases {
            assert_eq!(with_prefix(value, "s"), text);
        }
        assert_eq!([percent(0.0), percent(0.0012), percent(0.475)], ["0 %", "0.12 %", "47.5 %"]);
    }
}
