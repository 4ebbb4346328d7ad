//! Tests of the page as a whole. Behavior in a browser is tested by `cargo xtask browser`.

use super::charts::color_style;
use super::example::pages;
use super::{GoalValue, Interval, Report, ReportCurve, SCRIPT, STYLE, SplitTable, TEMPLATE};
use crate::chart::{COLORS, DARK_COLORS, DASHES, Look, MARKERS};
use fedlink_study::goals::{Median, Reading};
use proptest::prelude::*;
use roxmltree::{Document, Node, ParsingOptions};

/// The page without parts that are invalid in XML: the contents of its scripts and styles.
fn skeleton(page: &str) -> String {
    let mut kept = String::new();
    let mut rest = page;
    while let Some(start) = ["<script", "<style"].iter().filter_map(|tag| rest.find(tag)).min() {
        let inside = start + rest[start..].find('>').unwrap() + 1;
        let end = inside + rest[inside..].find("</s").unwrap();
        kept += &rest[..inside];
        rest = &rest[end..];
        let after = rest.find('>').unwrap() + 1;
        kept += &rest[..after];
        rest = &rest[after..];
    }
    kept + rest
}

fn with_page<T>(page: &str, check: impl Fn(&Document) -> T) -> T {
    let skeleton = skeleton(page);
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    check(
        &Document::parse_with_options(&skeleton, options)
            .unwrap_or_else(|error| panic!("{error}\n{skeleton}")),
    )
}

fn data(page: &str) -> serde_json::Value {
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..end]).unwrap()
}

fn with_id<'a>(page: &'a Document, id: &str) -> Node<'a, 'a> {
    page.descendants().find(|node| node.attribute("id") == Some(id)).unwrap_or_else(|| panic!("no {id}"))
}

fn text(node: Node) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}

/// `cargo xtask browser` names a folder; the pages are then left there for the browser.
#[test]
fn the_example_pages_are_well_formed_and_always_the_same() {
    let folder = std::env::var_os("FEDLINK_EXAMPLE_PAGES").map(std::path::PathBuf::from);
    for (name, report) in pages() {
        let page = report.html();
        assert_eq!(page, report.html(), "{name}");
        with_page(&page, |page| {
            let elements = || page.descendants().filter(Node::is_element);
            for link in elements().filter_map(|node| node.attribute("href")) {
                if let Some(id) = link.strip_prefix('#') {
                    with_id(page, id);
                } else {
                    assert_eq!(link, "data:,");
                }
            }
            let mut ids: Vec<&str> = elements().filter_map(|node| node.attribute("id")).collect();
            ids.sort_unstable();
            assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{name}: {ids:?}");
            assert!(elements().all(|node| node.attribute("src").is_none()), "{name}");
            for table in elements().filter(|node| node.has_tag_name("table")) {
                let has = |tag: &str| table.children().any(|node| node.has_tag_name(tag));
                assert!(has("caption") && has("thead") && has("tbody"), "{name}");
                assert!(
                    table
                        .descendants()
                        .filter(|n| n.has_tag_name("th"))
                        .all(|n| n.attribute("scope").is_some())
                );
            }
        });
        if let Some(folder) = &folder {
            std::fs::write(folder.join(format!("{name}.html")), page).unwrap();
        }
    }
}

#[test]
fn every_slot_of_the_template_is_filled_and_nothing_else_is() {
    let page = Report::default().html();
    assert!(!page.contains("{{"));
    let odd = Report { title: "{{data}}".into(), ..Report::default() }.html();
    assert!(odd.contains("<h1>{{data}}</h1>"));
}

#[test]
fn a_label_with_markup_stays_text_everywhere() {
    let label = "</script><script>alert(1)</script><b x=\"'>&amp;";
    let curve = ReportCurve {
        label: label.into(),
        policy: label.into(),
        status: label.into(),
        ..ReportCurve::default()
    };
    let report = Report {
        title: label.into(),
        generated_by: label.into(),
        reproduce: vec![label.into()],
        config_toml: label.into(),
        notes: vec![label.into()],
        curves: vec![curve],
        ..Report::default()
    };
    let page = report.html();
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
    assert_eq!(data(&page)["curves"][0]["label"], label);
    with_page(&page, |page| {
        assert_eq!(text(with_id(page, "config-text")), label);
        assert_eq!(text(with_id(page, "reproduce-text")), label);
        assert_eq!(text(page.descendants().find(|node| node.has_tag_name("h1")).unwrap()), label);
    });
}

#[test]
fn seconds_joules_and_the_cell_have_sections_where_there_are_units() {
    let [typical, units] = ["typical", "units"].map(|name| {
        let found = pages().into_iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("no {name}")).1.html()
    });
    for id in ["id=\"costs\"", "id=\"cell\"", "value=\"seconds\"", "value=\"joules\""] {
        assert!(units.contains(id) && !typical.contains(id), "{id}");
    }
    with_page(&units, |page| {
        let section = with_id(page, "costs");
        let words = text(section);
        for word in
            ["training before selection", "waiting", "mean duration of a round (s)", "rank of a device"]
        {
            assert!(words.contains(word), "{word}");
        }
        // Two charts of all curves, and one by device for each of the three that have units.
        assert_eq!(section.descendants().filter(|node| node.attribute("role") == Some("img")).count(), 5);
        let rows: Vec<Node> =
            with_id(page, "costs-table").descendants().filter(|n| n.has_tag_name("tr")).collect();
        // 500 rounds of 0.265 s, and of 0.8 + 0.45 J; the fourth curve has no units.
        assert!(
            text(rows[1]).contains("132.5\u{a0}s") && text(rows[1]).contains("625.0\u{a0}J"),
            "{}",
            text(rows[1])
        );
        assert_eq!(text(rows[4]).matches('–').count(), 7, "{}", text(rows[4]));
        let maps = with_id(page, "cell").descendants().filter(|node| node.attribute("role") == Some("img"));
        assert_eq!(maps.count(), 4);
        assert!(text(with_id(page, "scheduling-table")).contains("P̄ = 0.00603\u{a0}W"));
    });
}

#[test]
fn fairness_has_a_section_where_it_was_recorded() {
    let [typical, units] = ["typical", "units"].map(|name| {
        let found = pages().into_iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("no {name}")).1.html()
    });
    assert!(units.contains("id=\"fairness\"") && !typical.contains("fairness"));
    with_page(&units, |page| {
        let rows = |id| -> Vec<String> {
            let rows = with_id(page, id).descendants().filter(|node| node.has_tag_name("tr"));
            rows.map(|row| text(row)).collect()
        };
        let (devices, classes) = (rows("fairness-table"), rows("classes-table"));
        assert!(devices[1].contains("54.00\u{a0}%") && devices[1].contains("0.720"), "{}", devices[1]);
        assert!(classes[0].contains("Class 0") && classes[0].contains("Class 9"), "{}", classes[0]);
        // Class 3 has no test samples; the fourth curve recorded nothing.
        assert!(
            classes[1].contains("90.00\u{a0}%") && classes[1].matches('–').count() == 1,
            "{}",
            classes[1]
        );
        assert_eq!((devices[4].matches('–').count(), classes[4].matches('–').count()), (6, 10));
    });
}

#[test]
fn numbers_that_are_not_finite_are_missing() {
    let nothing = Interval { mean: f64::NAN, low: f64::NEG_INFINITY, high: f64::INFINITY };
    let curve = ReportCurve {
        rounds: vec![1, 2],
        accuracy: vec![f64::NAN, f64::INFINITY],
        final_accuracy: nothing,
        bits_to_target: Median::of(&[Reading::Known(f64::NAN)]),
        rounds_to_target: Median::of(&[Reading::Beyond(f64::INFINITY)]),
        scheduled: vec![f64::NAN],
        power: vec![f64::NAN],
        ..ReportCurve::default()
    };
    let page = Report { curves: vec![curve], target: f64::NAN, ..Report::default() }.html();
    let embedded = data(&page);
    assert!(embedded["curves"][0]["accuracy"][0].is_null() && embedded["curves"][0]["accuracy"][1].is_null());
    assert!(embedded["curves"][0]["final_accuracy"]["mean"].is_null() && embedded["target"].is_null());
    with_page(&page, |page| {
        let table = text(with_id(page, "results-table"));
        assert!(table.contains('–') && !table.contains("NaN") && !table.contains("inf"), "{table}");
    });
}

#[test]
fn the_results_table_shows_the_embedded_numbers() {
    let (_, report) = &pages()[0];
    let page = report.html();
    with_page(&page, |page| {
        let rows = with_id(page, "results-table")
            .descendants()
            .filter(|node| node.attribute("data-curve").is_some());
        let rows: Vec<Node> = rows.filter(|node| node.has_tag_name("tr")).collect();
        assert_eq!(rows.len(), report.curves.len());
        for (row, curve) in rows.iter().zip(&report.curves) {
            let first = row.children().find(|node| node.attribute("data-value").is_some()).unwrap();
            assert_eq!(first.attribute("data-value").unwrap().parse::<f64>(), Ok(curve.final_accuracy.mean));
            let Interval { mean, low, high } = curve.final_accuracy;
            let expected = format!("{:.2}\u{a0}% [{:.2}, {:.2}]", 100.0 * mean, 100.0 * low, 100.0 * high);
            assert_eq!(text(first), expected);
        }
    });
}

#[test]
fn the_page_makes_no_requests_to_the_network() {
    for part in [TEMPLATE, STYLE, SCRIPT] {
        // The name of SVG's language is no address that anyone opens.
        let part = part.replace("http://www.w3.org/2000/svg", "");
        for word in [
            "http:",
            "https:",
            "//cdn",
            "@import",
            "url(\"",
            "fetch(",
            "XMLHttpRequest",
            "innerHTML",
            "eval(",
        ] {
            assert!(!part.contains(word), "{word}");
        }
    }
    assert!(TEMPLATE.contains("default-src 'none'"));
}

#[test]
fn the_page_draws_from_the_specification_of_its_charts() {
    let style = color_style();
    for (i, (red, green, blue)) in COLORS.iter().chain(&DARK_COLORS).enumerate() {
        let color = format!("--c{}: #{red:02x}{green:02x}{blue:02x};", i % COLORS.len());
        assert_eq!(style.matches(&color).count(), 1, "{color}");
    }
    let (_, report) = &pages()[0];
    let page = report.html();
    assert!(page.contains(&style));
    let charts = &data(&page)["charts"];
    assert_eq!(charts["dashes"], serde_json::json!(DASHES));
    assert_eq!(charts["markers"], serde_json::json!(MARKERS));
    for (i, curve) in report.curves.iter().enumerate() {
        let entry = &charts["key"][i];
        assert_eq!(entry["label"], curve.label);
        assert_eq!(entry["look"], serde_json::json!(Look::of(i)));
    }
    // The page and the static chart have the same axes.
    let still = super::charts::still_chart(report);
    assert_eq!(charts["x"]["rounds"], serde_json::json!(still.x));
    assert_eq!(charts["y"]["accuracy"], serde_json::json!(still.y));
    assert_eq!(charts["y"]["accuracy"]["label"], "test accuracy (%)");
    assert_eq!(charts["split"]["count"], serde_json::json!([10, 40]));
}

#[test]
fn a_long_run_is_thinned_without_losing_its_peak() {
    let mut curve = ReportCurve {
        rounds: (0..5000).collect(),
        accuracy: (0..5000).map(|i| if i == 1234 { 0.9 } else { 0.5 }).collect(),
        bits: (0..5000).map(f64::from).collect(),
        ..ReportCurve::default()
    };
    curve.thin();
    assert!(curve.rounds.len() <= 800 && curve.rounds.len() == curve.bits.len());
    let peak = curve.rounds.iter().position(|round| *round == 1234).unwrap();
    assert_eq!((curve.accuracy[peak], curve.bits[peak], curve.rounds[0]), (0.9, 1234.0, 0));
    assert_eq!(curve.rounds.last(), Some(&4999));
}

#[test]
fn series_keep_seven_digits_and_rounds_all() {
    let curve = ReportCurve {
        rounds: vec![u64::MAX],
        bits: vec![1.0 / 3.0, 123_456_789.0],
        final_accuracy: Interval { mean: 1.0 / 3.0, low: 0.0, high: 1.0 },
        ..ReportCurve::default()
    };
    let page = Report { curves: vec![curve], ..Report::default() }.html();
    let curve = &data(&page)["curves"][0];
    assert_eq!(curve["rounds"][0].as_u64(), Some(u64::MAX));
    assert_eq!(curve["bits"][0].as_f64(), Some(0.333_333_3));
    assert_eq!(curve["bits"][1].as_f64(), Some(123_456_800.0));
    assert_eq!(curve["final_accuracy"]["mean"].as_f64(), Some(1.0 / 3.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_report_gives_a_well_formed_page_that_holds_its_data(
        words in proptest::collection::vec(any::<String>(), 6),
        numbers in proptest::collection::vec(any::<f64>(), 12),
        counts in proptest::collection::vec(proptest::collection::vec(any::<u64>(), 0..3), 0..4),
        classes in any::<usize>(),
        devices in any::<usize>(),
    ) {
        let interval = Interval { mean: numbers[0], low: numbers[1], high: numbers[2] };
        let curve = ReportCurve {
            label: words[0].clone(),
            policy: words[1].clone(),
            status: words[2].clone(),
            rounds: vec![3, 1],
            accuracy: numbers.clone(),
            final_accuracy: interval,
            instability: interval,
            rounds_to_target: Median::of(&[Reading::Known(numbers[0]), Reading::Beyond(numbers[1])]),
            bits_to_target: Median::of(&numbers.iter().map(|&n| Reading::Known(n)).collect::<Vec<_>>()),
            goals: vec![GoalValue {
                value: Some(numbers[2]),
                text: words[1].clone(),
                interval: words[2].clone(),
                is_cost: true,
                ..GoalValue::default()
            }],
            scheduled: numbers[3..6].to_vec(),
            power: numbers[6..].to_vec(),
            fair_share: numbers[7],
            ..ReportCurve::default()
        };
        let report = Report {
            title: words[3].clone(),
            config_toml: words[4].clone(),
            notes: vec![words[5].clone()],
            target: numbers[8],
            average_power: numbers[9],
            devices,
            split: Some(SplitTable { title: words[0].clone(), classes, counts, heterogeneity: numbers[10] }),
            differences: vec![super::PairedDifference {
                a: words[0].clone(),
                b: words[1].clone(),
                difference: interval,
            }],
            curves: vec![curve],
            ..Report::default()
        };
        let page = report.html();
        prop_assert_eq!(&data(&page)["title"], &words[3]);
        with_page(&page, |page| with_id(page, "results-table").range());
    }
}
