//! How series are distinguished, and the legend that names them.
//!
//! Colors are those of Okabe and Ito, which people with any common color blindness can distinguish, without
//! the yellow, which is lost on white. Dash patterns and markers repeat at other periods, so that thirty
//! curves differ in one of the two even in grayscale, and two hundred and ten in one of the three.

use super::canvas::{Anchor, Canvas, INK, MUTED, Pixel, Rgb, Style, WHITE};
use super::frame::{EDGE, SMALL, SMALL_LINE, WIDTH};
use super::line_chart::CurveStyle;
use super::text;

pub(crate) const COLORS: [Rgb; 7] = [
    (0x00, 0x72, 0xb2), // blue
    (0xd5, 0x5e, 0x00), // vermilion
    (0x00, 0x9e, 0x73), // bluish green
    (0xcc, 0x79, 0xa7), // reddish purple
    (0xe6, 0x9f, 0x00), // orange
    (0x56, 0xb4, 0xe9), // sky blue
    (0x00, 0x00, 0x00), // black
];

pub(crate) const DASHES: [&[f64]; 5] = [&[], &[9.0, 4.0], &[3.0, 3.0], &[11.0, 3.0, 3.0, 3.0], &[5.0, 2.0]];

/// Corners of the markers after the disc, in units of their radius.
pub(crate) const MARKERS: [&[Pixel]; 6] = [
    &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
    &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
    &[
        (-0.4, -1.3),
        (0.4, -1.3),
        (0.4, -0.4),
        (1.3, -0.4),
        (1.3, 0.4),
        (0.4, 0.4),
        (0.4, 1.3),
        (-0.4, 1.3),
        (-0.4, 0.4),
        (-1.3, 0.4),
        (-1.3, -0.4),
        (-0.4, -0.4),
    ],
    &[
        (-1.2, -0.65),
        (-0.65, -1.2),
        (0.0, -0.55),
        (0.65, -1.2),
        (1.2, -0.65),
        (0.55, 0.0),
        (1.2, 0.65),
        (0.65, 1.2),
        (0.0, 0.55),
        (-0.65, 1.2),
        (-1.2, 0.65),
        (-0.55, 0.0),
    ],
];

/// Markers by the index of a curve repeat after so many, the disc counted: a period that colors and dashes do
/// not have.
pub(crate) const MARKERS_BY_INDEX: usize = 6;

const MARKER_RADIUS: f64 = 4.0;
const STROKE: f64 = 2.0;
const SWATCH: f64 = 38.0;
const GAP: f64 = 8.0;
/// More entries than this are counted, not listed.
const MAX_ENTRIES: usize = 60;

/// The color, dash pattern and marker of one series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesStyle {
    /// The color of line, marker and band.
    pub color: Rgb,
    dash: &'static [f64],
    marker: Option<usize>,
}

impl SeriesStyle {
    /// The style of the series at `index`.
    pub fn of(index: usize) -> Self {
        Self {
            color: COLORS[index % COLORS.len()],
            dash: DASHES[index % DASHES.len()],
            marker: Some(index % MARKERS_BY_INDEX),
        }
    }

    /// The style of the curve at `index`: the one that it was given, or that of its index.
    pub fn of_curve(index: usize, given: Option<&CurveStyle>) -> Self {
        let Some(CurveStyle { color, dash, marker, .. }) = given else { return Self::of(index) };
        Self {
            color: COLORS[color % COLORS.len()],
            dash: DASHES[dash % DASHES.len()],
            marker: Some(marker % (MARKERS.len() + 1)),
        }
    }

    /// A dashed line without markers, for values to compare with.
    pub fn reference() -> Self {
        Self { color: INK, dash: DASHES[1], marker: None }
    }

    /// Draws a line.
    pub fn draw_line(&self, canvas: &mut Canvas, points: &[Pixel]) {
        canvas.polyline(points, self.color, STROKE, self.dash);
    }

    /// Draws a marker, with a white rim that lifts it off the lines beneath.
    pub fn draw_marker(&self, canvas: &mut Canvas, at: Pixel) {
        let Some(marker) = self.marker else { return };
        if marker == 0 {
            canvas.disc(at, MARKER_RADIUS, self.color, WHITE);
            return;
        }
        let corner = |&(x, y): &Pixel| (at.0 + x * MARKER_RADIUS, at.1 + y * MARKER_RADIUS);
        let mut corners: Vec<Pixel> = MARKERS[marker - 1].iter().map(corner).collect();
        corners.push(corners[0]);
        canvas.polygon(&corners, self.color, 1.0, Some((0.75, WHITE)));
    }
}

/// The key of a figure.
pub struct Legend {
    entries: Vec<(Option<SeriesStyle>, String)>,
    column: f64,
    /// The number of entries of each group, its name counted; empty: there are no groups, and entries run
    /// across.
    groups: Vec<usize>,
}

impl Legend {
    /// A key of the labeled styles; those with an empty label are left out.
    pub fn new(entries: impl IntoIterator<Item = (SeriesStyle, String)>) -> Self {
        let mut entries: Vec<_> = entries
            .into_iter()
            .filter(|(_, label)| !label.trim().is_empty())
            .map(|(style, label)| {
                (Some(style), text::shorten(&label, SMALL, false, WIDTH - SWATCH - GAP - 60.0))
            })
            .collect();
        if entries.len() > MAX_ENTRIES {
            let more = entries.len() - MAX_ENTRIES;
            entries.truncate(MAX_ENTRIES);
            entries.push((None, format!("and {more} more")));
        }
        let widest = text::widest(entries.iter().map(|(_, l)| &**l), SMALL);
        Self { entries, column: SWATCH + GAP + widest, groups: Vec::new() }
    }

    /// A key in groups, each under its name: entries of a group with an empty name come as they are.
    pub fn grouped<'a>(entries: impl IntoIterator<Item = (&'a str, SeriesStyle, String)>) -> Self {
        let mut groups: Vec<(&str, Vec<(SeriesStyle, String)>)> = Vec::new();
        for (group, style, label) in entries {
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, members)) => members.push((style, label)),
                None => groups.push((group, vec![(style, label)])),
            }
        }
        let plain = groups.iter().all(|(group, _)| group.is_empty());
        let mut all = Self::new(groups.iter().flat_map(|(_, members)| members.iter().cloned()));
        if plain || all.entries.len() > MAX_ENTRIES {
            return all;
        }
        let mut entries = std::mem::take(&mut all.entries).into_iter();
        for (group, members) in &groups {
            let shown = members.iter().filter(|(_, label)| !label.trim().is_empty()).count();
            all.entries.push((None, (*group).to_owned()));
            all.entries.extend(entries.by_ref().take(shown));
            all.groups.push(1 + shown);
        }
        all
    }

    /// Whether it fits beside a plot area of the given height and leaves room for the data.
    pub fn fits_beside(&self, height: f64) -> bool {
        self.column <= 0.3 * WIDTH && self.entries.len() as f64 * SMALL_LINE <= height
    }

    /// Height it needs beside the plot area.
    pub fn height_beside(&self) -> f64 {
        self.entries.len() as f64 * SMALL_LINE
    }

    /// Width it needs beside the plot area, with the space around it.
    pub fn width_beside(&self) -> f64 {
        if self.entries.is_empty() { EDGE } else { self.column + 16.0 + EDGE }
    }

    /// Height it needs in a row or rows across the page.
    pub fn height_across(&self) -> f64 {
        if self.entries.is_empty() {
            0.0
        } else {
            let rows = self.layout(self.columns()).iter().map(|(_, row)| row + 1).max().unwrap_or(0);
            rows as f64 * SMALL_LINE + 8.0
        }
    }

    /// Draws it as one column from its top left corner.
    pub fn draw_beside(&self, canvas: &mut Canvas, at: Pixel) {
        self.draw(canvas, at, 1);
    }

    /// Draws it in columns that fill the page, from its top left corner.
    pub fn draw_across(&self, canvas: &mut Canvas, (x, y): Pixel) {
        self.draw(canvas, (x, y + 4.0), self.columns());
    }

    fn columns(&self) -> usize {
        ((WIDTH - 2.0 * EDGE - 40.0) / (self.column + 22.0)).max(1.0) as usize
    }

    /// Column and row of every entry. Groups run down the columns, and each stands in one.
    fn layout(&self, columns: usize) -> Vec<(usize, usize)> {
        let count = self.entries.len();
        if self.groups.is_empty() {
            return (0..count).map(|i| (i % columns, i / columns)).collect();
        }
        let within = |rows: usize| {
            let (mut places, mut column, mut row) = (Vec::with_capacity(count), 0, 0);
            for &size in &self.groups {
                if row > 0 && row + size > rows {
                    (column, row) = (column + 1, 0);
                }
                places.extend((row..row + size).map(|row| (column, row)));
                row += size;
            }
            (column < columns).then_some(places)
        };
        // All rows there are always suffice.
        (count.div_ceil(columns)..=count).find_map(within).unwrap_or_default()
    }

    fn draw(&self, canvas: &mut Canvas, (left, top): Pixel, columns: usize) {
        for ((style, label), (column, row)) in self.entries.iter().zip(self.layout(columns)) {
            let x = left + column as f64 * (self.column + 22.0);
            let y = top + (row as f64 + 0.5) * SMALL_LINE;
            if let Some(style) = style {
                style.draw_line(canvas, &[(x, y), (x + SWATCH, y)]);
                style.draw_marker(canvas, (x + SWATCH / 2.0, y));
            }
            let at = (x + SWATCH + GAP, y + f64::from(SMALL) * 0.36);
            if !self.groups.is_empty() && style.is_none() {
                // The name of a group.
                let style = Style { color: MUTED, ..Style::new(SMALL, Anchor::Start) };
                canvas.text((x, at.1), label, style);
                continue;
            }
            canvas.text(at, label, Style::new(SMALL, Anchor::Start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_curves_differ_without_color_and_two_hundred_with_it() {
        let gray = |i| (SeriesStyle::of(i).dash, SeriesStyle::of(i).marker);
        for i in 0..30 {
            assert!((0..i).all(|j| gray(i) != gray(j)), "{i}");
        }
        for i in 0..210 {
            assert!((0..i).all(|j| SeriesStyle::of(i) != SeriesStyle::of(j)), "{i}");
        }
    }

    #[test]
    fn a_group_stands_in_one_column_under_its_name() {
        let entries = [("channel", 4), ("norm", 5), ("unbiased", 7), ("loss", 3), ("reference", 5)];
        let members = entries.iter().flat_map(|&(group, count)| (0..count).map(move |i| (group, i)));
        let legend =
            Legend::grouped(members.map(|(group, i)| (group, SeriesStyle::of(i), format!("{group} {i}"))));
        for columns in 1..=6 {
            let layout = legend.layout(columns);
            assert_eq!(layout.len(), legend.entries.len());
            let mut seen = layout.clone();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), layout.len(), "two entries in one place");
            assert!(layout.iter().all(|(column, _)| *column < columns));
            let mut start = 0;
            for size in &legend.groups {
                let (column, first) = layout[start];
                for (i, place) in layout[start..start + size].iter().enumerate() {
                    assert_eq!(*place, (column, first + i));
                }
                start += size;
            }
        }
    }
}
