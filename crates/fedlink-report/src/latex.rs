//! Results for a paper: a table (booktabs) and a plot (pgfplots), each for `\input`.
//!
//! Labels are escaped, so that they print unchanged. The minus sign, × and raised digits become commands;
//! other characters beyond ASCII are passed on, and the TeX engine and its fonts decide whether they
//! print. The same results always give the same text.

use crate::chart::{Axis, Lines, Look, MAX_BANDS, seven_digits};
use crate::looks::distinct;
use fedlink_study::goals::{Cost, Goal, Metric};
use fedlink_study::results::{CurveResult, Status, target_name};
use fedlink_study::statistics::Estimate;
use fedlink_study::table::number as four_digits;
use std::borrow::Borrow;
use std::fmt::Write;

/// The most ticks of an axis.
const TICKS: usize = 6;
/// Points per line of text.
const POINTS_A_LINE: usize = 6;
/// The text in place of a missing number.
const MISSING: &str = "--";

/// A row for each curve: means over the seeds, and the final accuracy with its 95 % interval. Columns of
/// seconds and joules exist if some run has them.
pub fn table(results: &[CurveResult]) -> String {
    let target = target_name(results).replace(" %", "\\,\\%");
    let costs = results.iter().any(CurveResult::has_costs);
    let worst_class = results.iter().any(|curve| curve.worst_class().is_some());
    let mut header = vec!["Curve".to_owned(), "Final (\\%)".into(), "Best (\\%)".into()];
    header.extend(worst_class.then(|| "Worst class (\\%)".into()));
    header.extend([
        "Area (\\%)".into(),
        "Instability (points)".into(),
        "Trainings per round".into(),
        format!("Rounds to {target}"),
    ]);
    if costs {
        header.extend([format!("Seconds to {target}"), format!("Joules to {target}")]);
        header.extend(["Seconds", "Joules", "Worst device (J)"].map(str::to_owned));
    }
    let mut text = format!(
        "% \\usepackage{{booktabs}}\n\
         % Means over seeds; final accuracy with its 95 % interval; costs to a target as medians over\n\
         % seeds, (7/10): 7 of 10 seeds reached it, $>$ 60: the median lies beyond.\n{}\
         \\begin{{tabular}}{{l{}}}\n\\toprule\n{} \\\\\n\\midrule\n",
        shortened(results),
        "r".repeat(header.len() - 1),
        header.join(" & "),
    );
    for curve in results {
        let estimate = |metric| curve.estimate(&Goal::Plain(metric));
        let percent = |metric| number(estimate(metric), 100.0, 2);
        let mut cells = vec![name(curve), with_interval(estimate(Metric::Final)), percent(Metric::Best)];
        cells.extend(worst_class.then(|| number(curve.worst_class(), 100.0, 2)));
        cells.extend([
            percent(Metric::Area),
            percent(Metric::Instability),
            format!("${:.1}$", curve.trainings_per_round()),
            to_target(curve, Cost::Rounds),
        ]);
        if costs {
            cells.extend([Cost::Seconds, Cost::Joules].map(|cost| to_target(curve, cost)));
            cells.extend(COSTS.map(|metric| spent(estimate(metric))));
        }
        let _ = writeln!(text, "{} \\\\", cells.join(" & "));
    }
    text + "\\bottomrule\n\\end{tabular}\n"
}

/// The columns of seconds and joules.
const COSTS: [Metric; 3] = [Metric::TotalSeconds, Metric::TotalJoules, Metric::WorstDeviceJoules];

/// The median of a cost until the target.
fn to_target(curve: &CurveResult, cost: Cost) -> String {
    let Some(median) = curve.median(&Goal::target(cost)) else { return MISSING.into() };
    let text =
        median.text(|value| if cost == Cost::Rounds { format!("${value:.0}$") } else { in_digits(value) });
    text.replace("> ", "$>$ ")
}

/// Seconds or joules with about four digits.
fn spent(estimate: Option<Estimate>) -> String {
    let known = estimate.filter(|estimate| estimate.mean.is_finite());
    known.map_or_else(|| MISSING.into(), |estimate| in_digits(estimate.mean))
}

/// A number with about four digits.
fn in_digits(value: f64) -> String {
    let text = four_digits(value);
    match text.split_once('e') {
        Some((mantissa, power)) => format!("${mantissa} \\cdot 10^{{{power}}}$"),
        None => format!("${text}$"),
    }
}

/// A comment on every shortening of curves: such numbers are not those of the experiment.
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

/// The label, and the end of the curve if it is not the planned one.
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

/// A chart of one panel as a plot; `results` are its curves; a comment states their shortening.
pub fn plot<C: Borrow<CurveResult>>(chart: &Lines, results: &[C]) -> String {
    let mut text = format!(
        "% \\usepackage{{pgfplots}} \\pgfplotsset{{compat=1.18}}\n\
         % Means over seeds; 95 % bands of up to {MAX_BANDS} curves.\n{}\
         \\begin{{tikzpicture}}\n",
        shortened(results)
    );
    for color in distinct(chart.key.iter().map(|entry| entry.look.color)) {
        let (red, green, blue) = Look::new(color, 0, 0).rgb();
        let _ = writeln!(text, "\\definecolor{{fedlink{color}}}{{RGB}}{{{red},{green},{blue}}}");
    }
    let _ = writeln!(
        text,
        "\\begin{{axis}}[{},\n{},\n\
         grid=major, grid style={{black!10}}, mark size=1.5pt,\n\
         legend style={{at={{(0.5,-0.22)}}, anchor=north, legend columns=2, draw=none, font=\\small, \
         /tikz/every even column/.append style={{column sep=1em}}}}, \
         legend cell align=left]",
        axis(&chart.x, 'x'),
        axis(&chart.y, 'y'),
    );
    for entry in &chart.key {
        let _ = writeln!(text, "\\addlegendimage{{{}{}}}", line(entry.look), mark(entry.look));
        let _ = writeln!(text, "\\addlegendentry{{{}}}", escape(&entry.label));
    }
    let series = || chart.panels.iter().flat_map(|panel| &panel.series);
    let point = |x: f64, y: f64| (at(&chart.x, x), at(&chart.y, y));
    let mut add = |options: &str, points: &mut dyn Iterator<Item = (f64, f64)>, end: &str| {
        let _ = writeln!(
            text,
            "\\addplot[{options}, forget plot] coordinates {{\n{}}}{end};",
            coordinates(points)
        );
    };
    // Bands first, so that no band covers a line.
    for (one, run) in series().flat_map(|one| one.bands.iter().map(move |run| (one, run))) {
        let fill = format!("draw=none, fill=fedlink{}, fill opacity=0.15", chart.key[one.key].look.color);
        let upper = run.iter().rev().map(|[x, _, high]| point(*x, *high));
        add(&fill, &mut run.iter().map(|[x, low, _]| point(*x, *low)).chain(upper), " -- cycle");
    }
    for one in series() {
        let look = chart.key[one.key].look;
        for run in one.runs.iter().filter(|run| run.len() > 1) {
            add(&line(look), &mut run.iter().map(|(x, y)| point(*x, *y)), "");
        }
        if look.marker.is_some() && !one.marks.is_empty() {
            let options = format!("fedlink{}, only marks{}", look.color, mark(look));
            add(&options, &mut one.marks.iter().map(|(x, y)| point(*x, *y)), "");
        }
    }
    text + "\\end{axis}\n\\end{tikzpicture}\n"
}

/// The label, range and ticks of an axis.
fn axis(axis: &Axis, name: char) -> String {
    let ticks = axis.ticks(TICKS);
    let list = |texts: Vec<String>| texts.join(",");
    let (low, high) = if axis.log {
        (libm::pow(10.0, axis.low), libm::pow(10.0, axis.high))
    } else {
        (at(axis, axis.low), at(axis, axis.high))
    };
    format!(
        "{}{name}label={{{}}}, {name}min={low}, {name}max={high}, {name}tick={{{}}}, {name}ticklabels={{{}}}",
        if axis.log { format!("{name}mode=log, ") } else { String::new() },
        escape(&axis.label),
        list(ticks.iter().map(|tick| at(axis, tick.at).to_string()).collect()),
        list(ticks.iter().map(|tick| escape(&tick.label)).collect()),
    )
}

/// A value in the notation of its axis.
fn at(axis: &Axis, value: f64) -> f64 {
    seven_digits(if axis.log { value } else { value * axis.factor })
}

/// The color and dash pattern of a look; lengths in points are half of those in pixels on the screen.
fn line(look: Look) -> String {
    let pairs = look.dashes().chunks_exact(2);
    let dashes: Vec<String> =
        pairs.map(|pair| format!("on {}pt off {}pt", 0.5 * pair[0], 0.5 * pair[1])).collect();
    let pattern =
        if dashes.is_empty() { String::new() } else { format!(", dash pattern={}", dashes.join(" ")) };
    format!("fedlink{}, thick{pattern}", look.color)
}

/// The marker of a look; the last two are not filled because pgfplots has no filled ones like them.
fn mark(look: Look) -> &'static str {
    const MARKS: [&str; 7] = [
        ", mark=*, mark options={solid}",
        ", mark=square*, mark options={solid}",
        ", mark=triangle*, mark options={solid}",
        ", mark=diamond*, mark options={solid}",
        ", mark=triangle*, mark options={solid, rotate=180}",
        ", mark=+, mark options={solid, thick}",
        ", mark=x, mark options={solid, thick}",
    ];
    look.marker.map_or("", |marker| MARKS[marker % MARKS.len()])
}

/// Points, several per line of text.
fn coordinates(points: &mut dyn Iterator<Item = (f64, f64)>) -> String {
    let points: Vec<String> = points.map(|(x, y)| format!("({x},{y})")).collect();
    points.chunks(POINTS_A_LINE).fold(String::new(), |text, line| text + &line.join(" ") + "\n")
}

/// Text that prints unchanged.
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
            // Two of these in a row would join into another character.
            '-' | '\'' | '`' | ',' if out.ends_with(c) => out.extend(['{', '}', c]),
            '\u{2212}' => out += "$-$",
            '×' => out += "$\\times$",
            '⁻' => out += "$^-$",
            raised if "⁰¹²³⁴⁵⁶⁷⁸⁹".contains(raised) => {
                let digit = "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|other| other == raised).unwrap_or(0);
                let _ = write!(out, "$^{digit}$");
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plots::accuracy_charts;
    use fedlink_study::claims::Shortened;
    use fedlink_study::example::{curve, curve_of, results, with_units};
    use proptest::prelude::*;

    /// The plot of all curves.
    fn plot(results: &[CurveResult]) -> String {
        let charts = accuracy_charts("", results);
        super::plot(&charts[0].chart, results)
    }

    /// The first error in the braces, the environments or the special characters.
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
    fn the_table_has_the_numbers_computed_by_hand() {
        // Finals 90, 91, 92: 91 ± 4.3027/√3. Trapezoids: mean of (50 + final)/2. The last third is one value.
        let seeds: [&[f64]; 3] = [&[0.5, 0.90], &[0.5, 0.91], &[0.5, 0.92]];
        let table = table(&[curve_of("bn2_c k=1", &seeds)]);
        assert!(
            table.contains("bn2\\_c k=1 & $91.00 \\pm 2.48$ & $91.00$ & $70.50$ & -- & $0.0$ & $20$ \\\\\n"),
            "{table}"
        );
        assert_eq!(fault(&table), None);
    }

    #[test]
    fn seconds_and_joules_have_columns_if_some_run_has_them() {
        // 80 % after 20 rounds of 0.25 s and 3 J; a tenth of the 60 J on one device.
        let curves = [with_units(curve_of("bc", &[&[0.5, 0.9]])), curve_of("bn2", &[&[0.5, 0.9]])];
        let text = table(&curves);
        assert!(text.contains("\\begin{tabular}{lrrrrrrrrrrr}"), "{text}");
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
        assert!(
            table(&[curve.clone()])
                .contains("bc & $60.00$ & $60.00$ & $55.00$ & -- & $0.0$ & $>$ $20$ (0/1) \\\\")
        );
        curve.runs[0].status = Status::Diverged("it is {large}".into());
        assert!(table(&[curve]).contains("bc (diverged) & -- & -- & -- & -- & $0.0$ & $>$ $20$ (0/1) \\\\"));
    }

    #[test]
    fn the_table_has_the_target_of_the_runs_and_states_a_shortening() {
        let mut curve = curve_of("bc", &[&[0.5, 0.9]]);
        fedlink_study::example::change(&mut curve, |config| config.run.target = 0.9);
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
        // A line and a band with two ends for each evaluation, and markers at some of them.
        let points = |start: &str| -> usize {
            let blocks = plot.split("\\addplot[").filter(|block| block.starts_with(start));
            blocks.map(|block| block.split("};").next().map_or(0, |b| b.matches('(').count())).sum()
        };
        assert_eq!(points("draw=none"), 2 * (50 + 120));
        let solid = points("fedlink0, thick]") + points("fedlink0, thick, forget");
        let dashed = points("fedlink1, thick") + points("fedlink2, thick");
        assert_eq!((solid, dashed), (50, 120 + 20));
        assert!(plot.contains("(10,") && plot.contains("(1200,"));
    }

    #[test]
    fn axes_have_their_units_ranges_and_ticks_and_lines_the_looks_of_the_chart() {
        let results = results();
        let plot = plot(&results);
        assert!(plot.contains("ylabel={test accuracy (\\%)}"), "{plot}");
        assert!(plot.contains("xlabel={round}, xmin=0, xmax=1200, xtick={0,"), "{plot}");
        let chart = &accuracy_charts("", &results)[0].chart;
        for entry in &chart.key {
            let image = format!("\\addlegendimage{{{}{}}}", line(entry.look), mark(entry.look));
            assert!(
                plot.contains(&format!("{image}\n\\addlegendentry{{{}}}", escape(&entry.label))),
                "{plot}"
            );
        }
        assert_eq!(line(Look::of(1)), "fedlink1, thick, dash pattern=on 4.5pt off 2pt");
        // No label of an axis or a legend has a character that pdfTeX lacks.
        assert_eq!(escape("bits (×10⁻¹²), \u{2212}5"), "bits ($\\times$10$^-$$^1$$^2$), $-$5");
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
        for evaluations in [1, 99, 250, 9000] {
            let plot = plot(&[curve("bc", 1, evaluations)]);
            let last = format!("({},", 10 * evaluations);
            assert!(plot.contains("(10,") && plot.contains(&last), "{evaluations}");
            assert!(plot.matches('(').count() < 900, "{evaluations}");
        }
    }

    #[test]
    fn a_band_stays_within_the_range_of_an_accuracy() {
        // 0.5 ± 12.7·0.4: the interval covers everything, from 0 to 100.
        let plot = plot(&[curve_of("bc", &[&[0.1], &[0.9]])]);
        assert!(plot.contains("(10,0) (10,100)"), "{plot}");
        assert!(
            plot.contains(
                "only marks, mark=*, mark options={solid}, forget plot] coordinates {\n(10,50)\n};"
            ),
            "{plot}"
        );
    }

    #[test]
    fn no_results_give_an_empty_table_and_plot() {
        for text in [table(&[]), plot(&[]), plot(&[curve("bc", 1, 0)])] {
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
