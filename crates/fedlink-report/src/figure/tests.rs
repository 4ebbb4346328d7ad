//! Every kind of figure as a document: well formed, complete, deterministic, and without a panic.

use proptest::prelude::*;

use super::*;
use crate::chart::{Curve, Entry, Look, MAX_BANDS, Quantity, cdf};

fn lines(log: bool, curves: Vec<Curve>) -> Lines {
    let y = Quantity::plain("");
    Lines::new("", &Quantity::plain("").margin(0.02), &if log { y.log() } else { y }, curves)
}

fn map(rows: &[Vec<f64>]) -> HeatMap {
    HeatMap::new("", ("", ""), &Quantity::plain(""), rows)
}

fn whole(bars: &[(String, f64)]) -> Bars {
    Bars::whole("", "", "", bars, None)
}

/// Deterministic noise in `-1..1`.
fn noise(i: u64) -> f64 {
    let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn accuracy() -> Lines {
    let curve = |(k, (label, end)): (usize, (&str, f64))| {
        let points: Vec<(f64, f64)> = (0..=20)
            .map(|i| {
                let t = f64::from(i) * 20.0;
                (t, end - 0.25 * libm::exp(-t / 60.0) + 0.004 * noise(100 * k as u64 + i as u64))
            })
            .collect();
        let band = points.iter().map(|&(t, y)| (y - 0.004 - 0.5 / (t + 20.0), y + 0.004 + 0.3 / (t + 20.0)));
        Curve { label: label.into(), band: Some(band.collect()), points, ..Curve::default() }
    };
    let policies = [("BC", 0.912), ("BN2", 0.917), ("BC-BN2 (Kc = 10)", 0.923), ("BN2-C", 0.931)];
    let curves = policies.into_iter().enumerate().map(curve).collect();
    let (x, y) = (Quantity::plain("Round t").margin(0.02), Quantity::share("Test accuracy"));
    Lines::new("Test accuracy by scheduling policy, IID", &x, &y, curves)
        .with_subtitle("M = 40 devices, K = 1, n = 5000 symbols, mean and range of 5 seeds")
}

fn bound() -> Lines {
    let curve = |k: u32| Curve {
        label: format!("K = {k}"),
        points: (0..=1000)
            .map(|t| {
                (
                    f64::from(t),
                    1250.0 * libm::exp(-f64::from(t) / (100.0 + 60.0 * f64::from(k))) + f64::from(k),
                )
            })
            .collect(),
        ..Curve::default()
    };
    let (x, y) = (Quantity::plain("Round t"), Quantity::plain("Bound on E[F(θ(t))] − F*").log());
    let curves = [1, 3, 5, 10, 15, 20].map(curve).into();
    Lines::new("Convergence bound, Γ = 1, G = 1", &x, &y, curves)
}

fn labels() -> HeatMap {
    let count =
        |m: u64, c: u64| if (m * 7 + 3) % 10 == c || (m * 3 + m / 10) % 10 == c { 500.0 } else { 0.0 };
    let rows: Vec<Vec<f64>> =
        (0..40).map(|m| (0..10).map(|c| count(m, c) + 8.0 * (m + c) as f64).collect()).collect();
    let title = "Samples of each class on each device, 2 classes per device";
    HeatMap::new(title, ("Class", "Device"), &Quantity::plain("Samples"), &rows)
}

fn power() -> Bars {
    let bars: Vec<(String, f64)> = (0..40).map(|m| (m.to_string(), (1.0 + 0.9 * noise(m)).powi(2))).collect();
    Bars::whole(
        "Average transmit power of each device under BN2",
        "Device",
        "Average power (multiples of the limit)",
        &bars,
        Some(("Limit on average power".into(), 1.0)),
    )
}

fn cell() -> CellMap {
    let angle = |m: u64| 2.4 * m as f64;
    let distance = |m: u64| 35.0 + 11.0 * m as f64;
    let position = |m| (distance(m) * libm::cos(angle(m)), distance(m) * libm::sin(angle(m)));
    let positions: Vec<(f64, f64)> = (0..40).map(position).collect();
    let gains: Vec<f64> = (0..40).map(|m| -37.6 * libm::log10(distance(m)) - 15.3 + 4.0 * noise(m)).collect();
    let shares: Vec<f64> = (0..40).map(|m| 0.2 / (1.0 + f64::from(m))).collect();
    CellMap::new("Cell of 40 devices", &positions, &gains, Some(&shares))
}

fn snrs() -> Lines {
    let group = |mean: f64, seed: u64| (0..20).map(|m| mean + 4.0 * noise(seed + m)).collect();
    let groups = [("near".to_owned(), None, group(20.0, 0)), ("far".to_owned(), None, group(0.0, 50))];
    cdf("SNR of the devices", "mean SNR (dB)", &groups)
}

fn phases() -> Bars {
    let bar = |i: u64| {
        let name = format!("BN2-C, K = {i}, n = 5000 symbols");
        (name, vec![0.004, 0.02 + 0.002 * i as f64, 0.001, 0.005])
    };
    let parts = ["downlink", "training before selection", "reports", "uplink"];
    let bars: Vec<(String, Vec<f64>)> = (1..=16).map(bar).collect();
    Bars::stacked("Seconds per round", "", "mean duration of a round (s)", &parts, &bars)
}

/// Left, top, right and bottom of the space that a text takes.
fn space(node: roxmltree::Node<'_, '_>) -> [f64; 4] {
    let number = |a| node.attribute(a).unwrap().parse::<f64>().unwrap();
    let (x, y, size) = (number("x"), number("y"), number("font-size"));
    let bold = node.descendants().any(|d| d.attribute("font-weight") == Some("bold"));
    let content: String =
        node.descendants().filter(roxmltree::Node::is_text).filter_map(|d| d.text()).collect();
    let width = text::width(&content, size as u32, bold);
    let before = match node.attribute("text-anchor").unwrap() {
        "start" => 0.0,
        "middle" => width / 2.0,
        "end" => width,
        other => panic!("anchor {other}"),
    };
    let (up, down) = (0.76 * size, 0.24 * size);
    match node.attribute("transform") {
        None => [x - before, y - up, x - before + width, y + down],
        Some(turn) => {
            assert_eq!(turn, format!("rotate(-90,{x},{y})"));
            [x - up, y + before - width, x + down, y + before]
        }
    }
}

/// The texts of a document, after a check that it is well formed and self-contained, and that no text
/// leaves the page or overlaps another.
fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|e| panic!("{e}\n{svg}"));
    assert!(svg.starts_with("<svg ") && svg.matches("xmlns").count() == 1);
    for node in document.descendants() {
        assert!(!node.has_tag_name("image") && !node.has_tag_name("script") && !node.has_tag_name("style"));
        for attribute in node.attributes() {
            assert!(
                !attribute.name().ends_with("href") && !attribute.value().contains("url("),
                "{attribute:?}"
            );
            assert!(
                !attribute.value().contains("NaN") && !attribute.value().contains("inf"),
                "{attribute:?}"
            );
        }
    }
    let size = |a| document.root_element().attribute(a).unwrap().parse::<f64>().unwrap();
    let nodes: Vec<_> = document.descendants().filter(|n| n.has_tag_name("text")).collect();
    let content = |n: &roxmltree::Node<'_, '_>| -> String {
        n.descendants().filter(roxmltree::Node::is_text).filter_map(|d| d.text().map(str::to_owned)).collect()
    };
    let spaces: Vec<[f64; 4]> = nodes.iter().map(|&n| space(n)).collect();
    for (i, a) in spaces.iter().enumerate() {
        let inside = a[0] >= 0.0 && a[1] >= 0.0 && a[2] <= size("width") && a[3] <= size("height");
        assert!(inside, "{:?} leaves the page: {a:?}", content(&nodes[i]));
        for (j, b) in spaces[..i].iter().enumerate() {
            let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
            assert!(apart, "{:?} lies upon {:?}: {a:?}, {b:?}", content(&nodes[i]), content(&nodes[j]));
        }
    }
    nodes.iter().map(content).collect()
}

fn every_kind() -> Vec<(&'static str, Box<dyn Figure>)> {
    vec![
        ("accuracy", Box::new(accuracy())),
        ("bound", Box::new(bound())),
        ("labels", Box::new(labels())),
        ("power", Box::new(power())),
        ("cell", Box::new(cell())),
        ("snrs", Box::new(snrs())),
        ("empty_cell", Box::new(CellMap::new("", &[], &[], None))),
        ("empty_cdf", Box::new(cdf("", "", &[]))),
        ("phases", Box::new(phases())),
        ("empty_stack", Box::new(Bars::stacked("", "", "", &["a"], &[]))),
        ("empty_lines", Box::new(lines(false, vec![]))),
        ("empty_map", Box::new(map(&[]))),
        ("empty_bars", Box::new(whole(&[]))),
    ]
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    for (name, figure) in every_kind() {
        assert_eq!(figure.svg(), figure.svg(), "{name}");
        assert_eq!(figure.png().unwrap(), figure.png().unwrap(), "{name}");
    }
}

#[test]
fn every_figure_is_a_self_contained_document_with_its_labels() {
    for (name, figure) in every_kind() {
        let texts = texts(&figure.svg());
        assert_eq!(texts.iter().any(|t| t == "no data"), name.starts_with("empty"), "{name}: {texts:?}");
        let png = figure.png().unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        assert_eq!(reader.info().width, 1600, "{name}");
    }
    let texts = texts(&accuracy().svg());
    for expected in ["Test accuracy by scheduling policy, IID", "Round t", "Test accuracy (%)", "BN2-C", "90"]
    {
        assert!(texts.iter().any(|t| t == expected), "{expected} is missing from {texts:?}");
    }
}

#[test]
fn markup_in_labels_is_text() {
    let label = r#"a < b && "c" > $d$ \$e ]]> <script>x</script>"#;
    let curve = Curve { label: label.into(), points: vec![(0.0, 1.0), (1.0, 2.0)], ..Curve::default() };
    let chart = Lines::new("", &Quantity::plain(label), &Quantity::plain(label), vec![curve]);
    let chart = texts(&chart.svg());
    assert_eq!(chart.iter().filter(|t| *t == label).count(), 3, "{chart:?}");
    let map = HeatMap::new("", (label, ""), &Quantity::plain(label), &vec![vec![1.0, 2.0]; 40]);
    assert_eq!(texts(&map.svg()).iter().filter(|t| *t == label).count(), 2);
    let bars = Bars::whole("", "", "", &[("a".into(), 2.0)], Some((label.into(), 1.0)));
    assert_eq!(texts(&bars.svg()).iter().filter(|t| *t == label).count(), 1);
}

/// The number of drawn elements with a fill of this color.
fn filled(svg: &str, color: &str) -> usize {
    svg.matches(&format!("fill=\"{color}\"")).count()
}

#[test]
fn points_that_cannot_be_shown_interrupt_the_line() {
    let y = [1.0, 2.0, f64::NAN, 3.0, f64::INFINITY, 0.0, -1.0, 4.0, 5.0];
    let points: Vec<(f64, f64)> = y.iter().enumerate().map(|(i, &y)| (i as f64, y)).collect();
    let curves = vec![Curve { points, ..Curve::default() }];
    let drawn = |log| {
        let svg = lines(log, curves.clone()).svg();
        texts(&svg);
        (svg.matches("stroke=\"#0072b2\"").count(), filled(&svg, "#0072b2"))
    };
    // (1, 2), the single 3, (0, −1, 4, 5): two lines and seven markers; on a logarithmic axis (4, 5)
    // remains.
    assert_eq!(drawn(false), (2, 7));
    assert_eq!(drawn(true), (2, 5));
}

#[test]
fn many_curves_have_no_bands_and_no_room_for_them() {
    let curve = Curve {
        points: vec![(0.0, 0.5), (1.0, 0.6), (2.0, 0.5)],
        band: Some(vec![(-90.0, 90.0); 3]),
        ..Curve::default()
    };
    let drawn = |curves| {
        let svg = lines(false, vec![curve.clone(); curves]).svg();
        (svg.matches("opacity=\"0.15\"").count(), texts(&svg).iter().any(|text| text == "50"))
    };
    assert_eq!(drawn(MAX_BANDS), (MAX_BANDS, true));
    assert_eq!(drawn(MAX_BANDS + 1), (0, false));
}

#[test]
fn shares_beyond_one_are_shown() {
    let curve = Curve { points: vec![(0.0, 0.5), (1.0, 1.0), (2.0, 1.5)], ..Curve::default() };
    let svg = Lines::new("", &Quantity::plain(""), &Quantity::share(""), vec![curve]).svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let heights: Vec<f64> = document.descendants().filter_map(|n| n.attribute("cy")?.parse().ok()).collect();
    assert!(heights[0] - heights[1] > 50.0 && heights.len() == 3, "{heights:?}");
    assert!((heights[0] - 2.0 * heights[1] + heights[2]).abs() <= 0.5, "{heights:?}");
}

#[test]
fn a_curve_of_one_point_is_a_marker() {
    let one = Curve {
        label: "one".into(),
        points: vec![(3.0, 0.5)],
        band: Some(vec![(0.4, 0.6)]),
        ..Curve::default()
    };
    let chart = lines(false, vec![one, Curve { label: "none".into(), ..Curve::default() }]);
    let svg = chart.svg();
    // One in the plot and one in the legend.
    assert_eq!(filled(&svg, "#0072b2"), 2, "{svg}");
    assert!(texts(&svg).contains(&"none (no data)".to_owned()));
}

#[test]
fn the_height_of_a_bar_is_its_value() {
    let bars = [("a", 1.0), ("b", 3.0), ("c", f64::NAN), ("d", -2.0)];
    let svg = whole(&bars.map(|(name, value)| (name.into(), value))).svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let rects = document.descendants().filter(|n| n.attribute("fill") == Some("#56b4e9"));
    let side = |n: roxmltree::Node<'_, '_>, a| n.attribute(a).unwrap().parse::<f64>().unwrap();
    let drawn: Vec<(f64, f64)> = rects.map(|n| (side(n, "y"), side(n, "height"))).collect();
    assert_eq!(drawn.len(), 3);
    assert!((drawn[1].1 - 3.0 * drawn[0].1).abs() <= 1.0, "{drawn:?}");
    assert!((drawn[2].1 - 2.0 * drawn[0].1).abs() <= 1.0, "{drawn:?}");
    // The positive bars end, and the negative one begins, on the line of zero.
    assert_eq!(drawn[0].0 + drawn[0].1, drawn[2].0);
    assert_eq!(drawn[1].0 + drawn[1].1, drawn[2].0);
}

#[test]
fn the_parts_of_a_bar_are_stacked() {
    let bars = [("x".to_owned(), vec![1.0, 2.0, f64::NAN]), ("y".to_owned(), vec![3.0, -1.0, 1.0])];
    let svg = Bars::stacked("", "", "", &["a", "b", "c"], &bars).svg();
    texts(&svg);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let side = |n: roxmltree::Node<'_, '_>, a| n.attribute(a).unwrap().parse::<f64>().unwrap();
    let part = |color: &str| -> Vec<(f64, f64)> {
        let rects = document.descendants().filter(|n| n.has_tag_name("rect"));
        // The last one belongs to the key.
        let mut drawn: Vec<_> = rects
            .filter(|n| n.attribute("fill") == Some(color))
            .map(|n| (side(n, "y"), side(n, "height")))
            .collect();
        drawn.pop();
        drawn
    };
    let (a, b, c) = (part("#0072b2"), part("#d55e00"), part("#009e73"));
    assert_eq!((a.len(), b.len(), c.len()), (2, 1, 1));
    assert!(
        (b[0].1 - 2.0 * a[0].1).abs() <= 1.0 && (a[1].1 - 3.0 * c[0].1).abs() <= 1.0,
        "{a:?} {b:?} {c:?}"
    );
    assert!((b[0].0 + b[0].1 - a[0].0).abs() <= 0.5 && (c[0].0 + c[0].1 - a[1].0).abs() <= 0.5);
}

#[test]
fn the_lowest_and_highest_cells_have_the_ends_of_the_color_scale() {
    let svg = map(&[vec![-1.0, 0.0], vec![f64::NAN, 1.0], vec![0.5]]).svg();
    let cells: Vec<_> = svg.split("<rect ").skip(2).take(6).collect();
    // Viridis runs from #440154 to #fde725; the missing value and the one beyond the short row are gray.
    for (cell, fill) in [(0, "#440154"), (2, "#d0d0d0"), (3, "#fde725"), (5, "#d0d0d0")] {
        assert!(cells[cell].contains(fill), "{cell}: {cells:?}");
    }
}

#[test]
fn a_map_has_its_devices_at_their_positions_and_the_server_in_the_middle() {
    let map = CellMap::new("", &[(100.0, 0.0), (-50.0, 0.0), (0.0, 100.0)], &[-90.0, -80.0, -100.0], None);
    let svg = map.svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let discs = document.descendants().filter(|n| n.has_tag_name("circle"));
    let side = |n: roxmltree::Node<'_, '_>, a| n.attribute(a).unwrap().parse::<f64>().unwrap();
    let at: Vec<(f64, f64)> = discs.map(|n| (side(n, "cx"), side(n, "cy"))).collect();
    // The server is two thirds of the way from the second to the first device, and below the third by its
    // distance to the left of the first.
    let server = (at[1].0 + (at[0].0 - at[1].0) / 3.0, at[0].1);
    assert!((at[2].0 - server.0).abs() <= 0.5, "{at:?}");
    assert!((server.1 - at[2].1 - (at[0].0 - server.0)).abs() <= 0.5, "{at:?}");
    // The strongest device has the light end of viridis, the weakest the dark one.
    assert!(svg.contains("#fde725") && svg.contains("#440154"));
    let texts = texts(&svg);
    assert!(texts.iter().any(|t| t.ends_with("m, ring to ring")), "{texts:?}");
    assert!(texts.contains(&"mean gain (dB)".to_owned()) && texts.contains(&"server".to_owned()));
}

#[test]
fn a_figure_of_many_noisy_curves_stays_small() {
    let curve = |c: u64| Curve {
        label: format!("curve {c}"),
        points: (0..1000).map(|i| (i as f64, c as f64 + noise(1000 * c + i))).collect(),
        band: Some((0..1000).map(|i| (c as f64 - 1.0 + 0.3 * noise(i), c as f64 + 1.0)).collect()),
        ..Curve::default()
    };
    let chart = lines(false, (0..20).map(curve).collect());
    let svg = chart.svg();
    chart.png().unwrap();
    assert!(svg.len() < 600_000, "{} bytes", svg.len());
}

#[test]
fn enormous_input_gives_figures_of_ordinary_size() {
    let long = "name ".repeat(100_000);
    let curves = (0..500).map(|c| Curve {
        label: long.clone(),
        points: vec![(0.0, f64::from(c))],
        ..Curve::default()
    });
    let lines = Lines::new(&long, &Quantity::plain(""), &Quantity::plain(&long), curves.collect());
    let rows: Vec<Vec<f64>> = (0..1000).map(|i| (0..1000).map(|j| noise(i * 1000 + j)).collect()).collect();
    let map = map(&rows).with_names(vec![long.clone(); 1000], vec![long.clone(); 1000]);
    let bars: Vec<(String, f64)> = (0..100_000).map(|i| (format!("bar {i}"), noise(i))).collect();
    let bars = whole(&bars);
    for figure in [&lines as &dyn Figure, &map, &bars] {
        let svg = figure.svg();
        texts(&svg);
        assert!(svg.len() < 4_000_000, "{} bytes", svg.len());
    }
}

fn any_values() -> impl Strategy<Value = Vec<f64>> {
    let odd =
        prop_oneof![proptest::num::f64::ANY, -2.0..2.0f64, Just(0.0), Just(f64::NAN), Just(f64::INFINITY)];
    proptest::collection::vec(odd, 0..12)
}

/// Figures of every kind from arbitrary numbers and labels.
fn any_figures() -> impl Strategy<Value = (Lines, HeatMap, Bars, CellMap)> {
    let numbers = (any_values(), any_values(), any_values());
    (numbers, ".{0,40}", any::<bool>(), any::<bool>()).prop_map(|((xs, ys, ends), label, log, percent)| {
        let band = ends.iter().zip(&ys).map(|(&a, &b)| (a, b)).collect();
        let points = xs.iter().zip(&ys).map(|(&x, &y)| (x, y)).collect();
        let curve = Curve { label: label.clone(), points, band: Some(band), ..Curve::default() };
        let y = if percent { Quantity::share(&label) } else { Quantity::plain(&label) };
        let y = if log { y.log() } else { y };
        let lines = Lines::new(&label, &Quantity::plain(&label), &y, vec![curve]).with_subtitle(&label);
        let rows = [xs.clone(), ys.clone()];
        let map = HeatMap::new("", ("", ""), &Quantity::plain(&label), &rows);
        let names = |n| vec![label.clone(); n];
        let map = if log { map.with_names(names(9), names(2)) } else { map };
        let bars: Vec<(String, f64)> = ys.iter().map(|&y| (label.clone(), y)).collect();
        let reference = xs.first().map(|&x| (label.clone(), x));
        let bars = Bars::whole("", "", &label, &bars, reference);
        let positions: Vec<(f64, f64)> = xs.iter().copied().zip(ys.iter().copied()).collect();
        let cell = CellMap {
            subtitle: label.clone(),
            ..CellMap::new(&label, &positions, &ends, log.then_some(&ends[..]))
        };
        (lines, map, bars, cell)
    })
}

proptest! {
    #[test]
    fn any_numbers_and_labels_give_a_sound_document((lines, map, bars, cell) in any_figures()) {
        texts(&lines.svg());
        texts(&map.svg());
        texts(&bars.svg());
        texts(&cell.svg());
    }
}

proptest! {
    // An image takes a tenth of a second.
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_numbers_and_labels_can_be_drawn_as_png((lines, map, bars, cell) in any_figures()) {
        prop_assert!(lines.png().is_ok() && map.png().is_ok() && bars.png().is_ok() && cell.png().is_ok());
    }
}

#[test]
fn panels_share_axes_and_a_legend_in_groups() {
    let curve = |label: &str, color: usize, group: &str, top: f64| Curve {
        label: label.into(),
        // Seven rounds: none of their labels is one of the accuracies.
        points: vec![(0.0, 0.1), (7.0, top)],
        band: Some(vec![(0.05, 0.15), (top - 0.1, top + 0.1)]),
        look: Some(Look::new(color, 0, 0)),
        group: group.into(),
    };
    let panel = |name: &str, top: f64| {
        (name.to_owned(), vec![curve("bc", 0, "channel", top), curve("bn2", 1, "norm", 0.5)])
    };
    let chart = |panels| {
        let x = Quantity::plain("round").from_zero().margin(0.0);
        Lines::in_panels("policies", &x, &Quantity::share("test accuracy"), panels)
    };
    let two = chart(vec![panel("partition = iid", 0.9), panel("partition = classes", 0.6)]);
    let svg = two.svg();
    let written = texts(&svg);
    for once in ["partition = iid", "partition = classes", "bc", "bn2", "channel", "norm"] {
        assert_eq!(written.iter().filter(|text| *text == once).count(), 1, "{once}: {written:?}");
    }
    // The y labels occur once, at the left panel of the row, and suffice to read a value.
    for once in ["20", "40", "60", "80", "test accuracy (%)"] {
        assert_eq!(written.iter().filter(|text| *text == once).count(), 1, "{once}: {written:?}");
    }
    // A line in each panel and one in the legend, in the color of the family; a band in each panel.
    assert_eq!(svg.matches("stroke=\"#0072b2\"").count(), 3);
    assert_eq!(svg.matches("opacity=\"0.15\"").count(), 4);
    assert!(two.png().is_ok());
    assert!(chart(vec![]).svg().contains("<svg"));
    let written = texts(&chart(vec![panel("x", 0.9); 5]).svg());
    for twice in ["20", "40", "60", "80"] {
        assert_eq!(written.iter().filter(|text| *text == twice).count(), 2, "{twice}: a row each");
    }
    let broken = chart(vec![("x".into(), vec![Curve::default()]); 30]);
    assert_eq!(broken.panels.len(), 24);
    assert!(texts(&broken.svg()).contains(&"no data".to_owned()));
}

#[test]
fn a_chart_looks_the_same_after_a_trip_through_json() {
    fn again<T: Figure + serde::Serialize + serde::de::DeserializeOwned>(chart: &T) {
        let json = serde_json::to_string(chart).unwrap();
        assert_eq!(serde_json::from_str::<T>(&json).unwrap().svg(), chart.svg());
    }
    again(&accuracy());
    again(&bound());
    again(&labels());
    again(&power());
    again(&phases());
    again(&cell());
}

#[test]
fn entries_of_a_legend_are_drawn_in_the_order_of_the_chart() {
    let chart = accuracy();
    let drawn = texts(&chart.svg());
    let places: Vec<usize> =
        chart.key.iter().map(|Entry { label, .. }| drawn.iter().position(|t| t == label).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
}
