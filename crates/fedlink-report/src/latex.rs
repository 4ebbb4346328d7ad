//! Results for a paper: a table (booktabs) and a plot (pgfplots), each to be read in with `\input`.
//!
//! Labels are escaped, so that they print as they are. A character beyond ASCII is passed on: whether it
//! prints depends on the TeX engine and its fonts. The same results always give the same text.

use crate::figure::{COLORS, DASHES, MAX_BANDS};
use fedlink_study::claims::Metric;
use fedlink_study::results::{CurveResult, Status, target_name};
use fedlink_study::statistics::Estimate;
use fedlink_study::table::number as four_digits;
use std::borrow::Borrow;
use std::fmt::Write;

/// Points drawn of a curve at most.
const MAX_POINTS: usize = 100;
/// Points on a line of text.
const POINTS_A_LINE: usize = 6;
/// Where there is no number.
const MISSING: &str = "--";

/// A row for each curve: means over the seeds, the final accuracy with its 95 % interval. Seconds and joules
/// are there where some run has them.
pub fn table(results: &[CurveResult]) -> String {
    let target = target_name(results).replace(" %", "\\,\\%");
    let costs = results.iter().any(CurveResult::has_costs);
    let mut header = vec![
        "Curve".to_owned(),
        "Final (\\%)".into(),
        "Best (\\%)".into(),
        "Area (\\%)".into(),
        "Instability (points)".into(),
        format!("Rounds to {target}"),
    ];
    if costs {
        header.extend([format!("Seconds to {target}"), format!("Joules to {target}")]);
        header.extend(["Seconds", "Joules", "Worst device (J)"].map(str::to_owned));
    }
    let mut text = format!(
        "% \\usepackage{{booktabs}}\n\
         % Means over seeds; final accuracy with its 95 % interval.\n{}\
         \\begin{{tabular}}{{l{}}}\n\\toprule\n{} \\\\\n\\midrule\n",
        shortened(results),
        "r".repeat(header.len() - 1),
        header.join(" & "),
    );
    for curve in results {
        let percent = |metric| number(curve.estimate(metric), 100.0, 2);
        let mut cells = vec![
            name(curve),
            with_interval(curve.estimate(Metric::Final)),
            percent(Metric::Best),
            percent(Metric::Area),
            percent(Metric::Instability),
            number(curve.estimate(Metric::RoundsToTarget), 1.0, 0),
        ];
        if costs {
            cells.extend(COSTS.map(|metric| spent(curve.estimate(metric))));
        }
        let _ = writeln!(text, "{} \\\\", cells.join(" & "));
    }
    text + "\\bottomrule\n\\end{tabular}\n"
}

/// The columns of seconds and joules.
const COSTS: [Metric; 5] = [
    Metric::SecondsToTarget,
    Metric::JoulesToTarget,
    Metric::TotalSeconds,
    Metric::TotalJoules,
    Metric::WorstDeviceJoules,
];

/// Seconds or joules with about four digits.
fn spent(estimate: Option<Estimate>) -> String {
    let known = estimate.filter(|estimate| estimate.mean.is_finite());
    known.map_or_else(
        || MISSING.into(),
        |estimate| {
            let text = four_digits(estimate.mean);
            match text.split_once('e') {
                Some((mantissa, power)) => format!("${mantissa} \\cdot 10^{{{power}}}$"),
                None => format!("${text}$"),
            }
        },
    )
}

/// A comment on every way in which curves were shortened: such numbers are not those of the experiment.
fn shortened<C: Borrow<CurveResult>>(results: &[C]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for shortened in results.iter().filter_map(|curve| curve.borrow().shortened) {
        let line = format!("% Shortened: {shortened}.\n");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.concat()
}

/// The label, and how the curve ended if that is not as it should.
fn name(curve: &CurveResult) -> String {
    let remark = match curve.status() {
        Status::Finished => String::new(),
        other => format!(" ({})", other.name()),
    };
    escape(&curve.label) + &remark
}

fn number(estimate: Option<Estimate>, scale: f64, decimals: usize) -> String {
    let known = estimate.filter(|estimate| estimate.mean.is_finite());
    known.map_or_else(|| MISSING.into(), |estimate| format!("${:.decimals$}$", scale * estimate.mean))
}

fn with_interval(estimate: Option<Estimate>) -> String {
    match estimate {
        Some(Estimate { mean, half_width }) if mean.is_finite() && half_width.is_finite() => {
            format!("${:.2} \\pm {:.2}$", 100.0 * mean, 100.0 * half_width)
        }
        other => number(other, 100.0, 2),
    }
}

/// Accuracy by round: a line for each curve and, for more than one seed and not too many curves,
/// its 95 % band.
pub fn plot<C: Borrow<CurveResult>>(results: &[C]) -> String {
    let results: Vec<&CurveResult> = results.iter().map(Borrow::borrow).collect();
    let mut text = format!(
        "% \\usepackage{{pgfplots}} \\pgfplotsset{{compat=1.18}}\n\
         % Means over seeds, at most {MAX_POINTS} evaluations of a curve; \
         95 % bands of up to {MAX_BANDS} curves.\n{}\
         \\begin{{tikzpicture}}\n",
        shortened(&results)
    );
    for (i, (red, green, blue)) in COLORS.iter().enumerate().take(results.len()) {
        let _ = writeln!(text, "\\definecolor{{fedlink{i}}}{{RGB}}{{{red},{green},{blue}}}");
    }
    let _ = writeln!(
        text,
        "\\begin{{axis}}[xlabel={{Round}}, ylabel={{Test accuracy (\\%)}}, \
         grid=major, grid style={{black!10}},\n\
         legend style={{at={{(0.5,-0.22)}}, anchor=north, legend columns=2, draw=none, font=\\small, \
         /tikz/every even column/.append style={{column sep=1em}}}}, \
         legend cell align=left]"
    );
    // Bands first, so that no band lies on a line.
    let banded = if results.len() <= MAX_BANDS { &results[..] } else { &[] };
    for (i, curve) in banded.iter().enumerate() {
        let _ = write!(text, "{}", band(i, &points(curve)));
    }
    for (i, curve) in results.iter().enumerate() {
        let line: Vec<(u64, f64)> = points(curve).into_iter().map(|(round, at)| (round, at.mean)).collect();
        // A line through one point cannot be seen.
        let mark = if line.len() == 1 { ", mark=*" } else { "" };
        let (color, dash) = (i % COLORS.len(), dash(i));
        let _ = writeln!(text, "\\addplot[fedlink{color}, thick{dash}{mark}] coordinates {{");
        let _ = writeln!(text, "{}}};\n\\addlegendentry{{{}}}", coordinates(line), name(curve));
    }
    text + "\\end{axis}\n\\end{tikzpicture}\n"
}

/// Rounds with their estimates, evenly thinned, the first and the last kept.
fn points(curve: &CurveResult) -> Vec<(u64, Estimate)> {
    let estimates = curve.by_row(|row| row.test_accuracy);
    let rounds = curve.runs.iter().take(1).flat_map(|run| &run.rows).map(|row| row.round);
    let all: Vec<(u64, Estimate)> =
        rounds.zip(estimates).filter(|(_, estimate)| estimate.mean.is_finite()).collect();
    if all.len() <= MAX_POINTS {
        return all;
    }
    let last = all.len() - 1;
    (0..MAX_POINTS).map(|i| all[i * last / (MAX_POINTS - 1)]).collect()
}

/// The band as one closed shape; nothing for a single seed. An interval may reach beyond what an accuracy can
/// be: it is cut there.
fn band(index: usize, points: &[(u64, Estimate)]) -> String {
    let known: Vec<&(u64, Estimate)> =
        points.iter().filter(|(_, estimate)| estimate.half_width.is_finite()).collect();
    if known.is_empty() {
        return String::new();
    }
    let low = known.iter().map(|(round, accuracy)| (*round, accuracy.ends_within(0.0, 1.0).0));
    let high = known.iter().rev().map(|(round, accuracy)| (*round, accuracy.ends_within(0.0, 1.0).1));
    format!(
        "\\addplot[draw=none, fill=fedlink{}, fill opacity=0.15, forget plot] \
         coordinates {{\n{}}} -- cycle;\n",
        index % COLORS.len(),
        coordinates(low.chain(high))
    )
}

/// Points of rounds and shares, the shares in percent.
fn coordinates(points: impl IntoIterator<Item = (u64, f64)>) -> String {
    let points: Vec<String> = points.into_iter().map(|(x, y)| format!("({x},{:.3})", 100.0 * y)).collect();
    points.chunks(POINTS_A_LINE).fold(String::new(), |text, line| text + &line.join(" ") + "\n")
}

/// The dash pattern of the curve at `index`, half as long in points as it is in pixels on the screen.
fn dash(index: usize) -> String {
    let pattern = DASHES[index % DASHES.len()].chunks_exact(2);
    let parts: Vec<String> =
        pattern.map(|pair| format!("on {}pt off {}pt", 0.5 * pair[0], 0.5 * pair[1])).collect();
    if parts.is_empty() { String::new() } else { format!(", dash pattern={}", parts.join(" ")) }
}

/// Text that prints as it is.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out += "\\textbackslash{}",
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            '<' => out += "\\textless{}",
            '>' => out += "\\textgreater{}",
            '|' => out += "\\textbar{}",
            '"' => out += "''",
            '{' | '}' | '$' | '&' | '#' | '%' | '_' => out.extend(['\\', c]),
            // Two of these in a row would join into another sign.
            '-' | '\'' | '`' | ',' if out.ends_with(c) => out.extend(['{', '}', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink_study::example::{curve, curve_of, results, with_units};
    use fedlink_study::experiment::Shortened;
    use proptest::prelude::*;

    /// What is wrong with the braces, the environments or the special characters, if anything.
    fn fault(text: &str) -> Option<String> {
        let (mut depth, mut open, mut maths) = (0i32, Vec::new(), false);
        let columns = text.split("\\begin{tabular}{").nth(1).and_then(|rest| rest.find('}')).unwrap_or(6);
        for line in text.lines().filter(|line| !line.starts_with('%')) {
            let bare = line.replace("\\\\", "");
            for piece in bare.split("\\begin{").skip(1) {
                open.push(piece.split('}').next()?.to_owned());
            }
            for piece in bare.split("\\end{").skip(1) {
                let name = piece.split('}').next()?;
                if open.pop().as_deref() != Some(name) {
                    return Some(format!("{name} ends and was not begun"));
                }
            }
            let (mut escaped, mut cells) = (false, 1);
            for c in bare.chars() {
                match c {
                    _ if escaped => {}
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    '$' => maths = !maths,
                    '&' => cells += 1,
                    '^' if maths => {}
                    '%' | '#' | '_' | '^' | '~' => return Some(format!("bare {c} in {line}")),
                    _ => {}
                }
                if depth < 0 {
                    return Some(format!("a brace closes too much in {line}"));
                }
                escaped = c == '\\' && !escaped;
            }
            if cells > 1 && cells != columns {
                return Some(format!("{cells} cells in {line}"));
            }
        }
        (depth != 0 || maths || !open.is_empty()).then(|| format!("left open: {depth}, {maths}, {open:?}"))
    }

    #[test]
    fn the_table_gives_the_numbers_that_a_person_works_out() {
        // Finals 90, 91, 92: 91 ± 4.3027/√3. Trapezoids: mean of (50 + final)/2. The last third is one value.
        let seeds: [&[f64]; 3] = [&[0.5, 0.90], &[0.5, 0.91], &[0.5, 0.92]];
        let table = table(&[curve_of("bn2_c k=1", &seeds)]);
        assert!(
            table.contains("bn2\\_c k=1 & $91.00 \\pm 2.48$ & $91.00$ & $70.50$ & -- & $20$ \\\\\n"),
            "{table}"
        );
        assert_eq!(fault(&table), None);
    }

    #[test]
    fn seconds_and_joules_have_columns_where_some_run_has_them() {
        // 80 % after 20 rounds of 0.25 s and 3 J; a tenth of the 60 J on one device.
        let curves = [with_units(curve_of("bc", &[&[0.5, 0.9]])), curve_of("bn2", &[&[0.5, 0.9]])];
        let text = table(&curves);
        assert!(text.contains("\\begin{tabular}{lrrrrrrrrrr}"), "{text}");
        assert!(text.contains(
            "& Seconds to 80\\,\\% & Joules to 80\\,\\% & Seconds & Joules & Worst device (J) \\\\"
        ));
        assert!(text.contains("& $20$ & $5.000$ & $60.00$ & $5.000$ & $60.00$ & $6.000$ \\\\"), "{text}");
        assert!(text.contains("& $20$ & -- & -- & -- & -- & -- \\\\"), "{text}");
        assert_eq!(fault(&text), None);
        let large = Estimate { mean: 2.5e9, half_width: f64::NAN };
        assert_eq!(spent(Some(large)), "$2.50 \\cdot 10^{9}$");
    }

    #[test]
    fn one_seed_has_no_interval_and_a_run_that_ended_early_no_numbers() {
        let mut curve = curve_of("bc", &[&[0.5, 0.6]]);
        assert!(table(&[curve.clone()]).contains("bc & $60.00$ & $60.00$ & $55.00$ & -- & -- \\\\"));
        curve.runs[0].status = Status::Diverged("it is {large}".into());
        assert!(table(&[curve]).contains("bc (diverged) & -- & -- & -- & -- & -- \\\\"));
    }

    #[test]
    fn the_target_is_that_of_the_runs_and_a_shortened_figure_says_so() {
        let mut curve = curve_of("bc", &[&[0.5, 0.9]]);
        curve.config.run.target = 0.9;
        let short =
            Shortened { rounds: 60, of_rounds: 500, seeds: 3, of_seeds: 10, quick: false, draws: false };
        curve.shortened = Some(short);
        let text = table(&[curve.clone()]);
        assert!(text.contains("Rounds to 90\\,\\% \\\\"), "{text}");
        assert!(text.contains("& $20$ \\\\"), "{text}");
        for text in [text, plot(&[curve.clone()])] {
            assert!(text.contains("\n% Shortened: 60 of 500 rounds, 3 of 10 seeds.\n"), "{text}");
            assert_eq!(fault(&text), None);
        }
    }

    #[test]
    fn the_plot_has_a_line_for_each_curve_and_a_band_for_several_seeds() {
        let results = results();
        let plot = plot(&results);
        assert_eq!(fault(&plot), None);
        assert_eq!(plot.matches("\\addlegendentry").count(), 3);
        assert_eq!(plot.matches("-- cycle;").count(), 2);
        assert!(plot.contains("\\addlegendentry{50 \\% \\& \\{a\\_b\\}\\textbackslash{}c, ''x''}"));
        // Fifty points, a hundred of 120, and twenty; a band has two ends for each point.
        let points = plot.lines().filter(|line| line.starts_with('(')).flat_map(|line| line.split(' '));
        assert_eq!(points.count(), (50 + 100 + 20) + 2 * (50 + 100));
        assert!(plot.contains("(10,") && plot.contains("(1200,"));
    }

    #[test]
    fn many_curves_have_no_bands() {
        let bands = |curves| {
            let results: Vec<CurveResult> = (0..curves).map(|i| curve(&format!("curve {i}"), 2, 3)).collect();
            plot(&results).matches("-- cycle;").count()
        };
        assert_eq!((bands(MAX_BANDS), bands(MAX_BANDS + 1)), (MAX_BANDS, 0));
    }

    #[test]
    fn long_curves_are_thinned_and_keep_their_ends() {
        for evaluations in [1, 99, 100, 101, 250, 10_000] {
            let thinned = points(&curve("bc", 2, evaluations));
            assert_eq!(thinned.len(), MAX_POINTS.min(evaluations as usize));
            assert_eq!((thinned[0].0, thinned[thinned.len() - 1].0), (10, 10 * evaluations));
            assert!(thinned.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }

    #[test]
    fn a_band_stays_within_what_an_accuracy_can_be() {
        // 0.5 ± 12.7·0.4: the interval covers everything, from 0 to 100.
        let plot = plot(&[curve_of("bc", &[&[0.1], &[0.9]])]);
        assert!(plot.contains("(10,0.000) (10,100.000)"), "{plot}");
        assert!(plot.contains("mark=*] coordinates {\n(10,50.000)\n};"), "{plot}");
    }

    #[test]
    fn nothing_gives_an_empty_table_and_plot() {
        for text in [table(&[]), plot::<CurveResult>(&[]), plot(&[curve("bc", 1, 0)])] {
            assert_eq!(fault(&text), None);
        }
    }

    #[test]
    fn characters_that_join_are_kept_apart() {
        assert_eq!(escape("a--b---c,,''"), "a-{}-b-{}-{}-c,{},'{}'");
        assert_eq!(escape("x\ny\u{7}é"), "x y é");
    }

    proptest! {
        #[test]
        fn no_label_breaks_the_text(label in "\\PC{0,30}") {
            let results = [curve(&label, 2, 3)];
            prop_assert_eq!(fault(&table(&results)), None);
            prop_assert_eq!(fault(&plot(&results)), None);
        }

        #[test]
        fn no_label_of_special_characters_breaks_the_text(label in "[\\\\{}$&#%_^~<>|\"'`,-]{0,12}") {
            let results = [curve(&label, 2, 3)];
            prop_assert_eq!(fault(&table(&results)), None);
            prop_assert_eq!(fault(&plot(&results)), None);
        }
    }
}
