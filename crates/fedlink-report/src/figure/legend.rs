//! The legend: a sample of each look with its name.

use super::canvas::{Anchor, Canvas, MUTED, Pixel, Style, WHITE};
use super::frame::{EDGE, SMALL, SMALL_LINE, WIDTH};
use super::text;
use crate::chart::{Entry, Look, MARKERS};

const MARKER_RADIUS: f64 = 4.0;
const STROKE: f64 = 2.0;
const SWATCH: f64 = 38.0;
/// Side of the sample of an area.
const AREA: f64 = 13.0;
const GAP: f64 = 8.0;
/// Further entries are counted, not listed.
const MAX_ENTRIES: usize = 60;

/// Draws a line of a look.
pub fn draw_line(canvas: &mut Canvas, look: Look, points: &[Pixel]) {
    canvas.polyline(points, look.rgb(), STROKE, look.dashes());
}

/// Draws the marker of a look, with a white rim that separates it from the lines below.
pub fn draw_marker(canvas: &mut Canvas, look: Look, at: Pixel) {
    match look.marker {
        None => {}
        Some(0) => canvas.disc(at, MARKER_RADIUS, look.rgb(), WHITE),
        Some(marker) => {
            let corner = |&(x, y): &Pixel| (at.0 + x * MARKER_RADIUS, at.1 + y * MARKER_RADIUS);
            let mut corners: Vec<Pixel> = MARKERS[(marker - 1) % MARKERS.len()].iter().map(corner).collect();
            corners.push(corners[0]);
            canvas.polygon(&corners, look.rgb(), 1.0, Some((0.75, WHITE)));
        }
    }
}

/// The samples of a legend.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// Lines with their markers.
    Line,
    /// Areas.
    Area,
}

/// The legend of a figure.
pub struct Legend {
    /// Looks with their names; a name without a look heads a group or counts the rest.
    entries: Vec<(Option<Look>, String)>,
    sample: Sample,
    column: f64,
    /// The number of entries of each group, its name included; empty: there are no groups, and entries
    /// fill rows.
    groups: Vec<usize>,
}

impl Legend {
    /// A legend of `key`, in groups if entries have them; entries with an empty label are left out.
    pub fn new(key: &[Entry], sample: Sample) -> Self {
        let key: Vec<&Entry> = key.iter().filter(|entry| !entry.label.trim().is_empty()).collect();
        let room = WIDTH - SWATCH - GAP - 60.0;
        let line = |entry: &&Entry| (Some(entry.look), text::shorten(&entry.label, SMALL, false, room));
        let mut entries: Vec<(Option<Look>, String)> = key.iter().take(MAX_ENTRIES).map(line).collect();
        let widest = text::widest(entries.iter().map(|(_, label)| &**label), SMALL);
        let mut groups = Vec::new();
        if key.len() > MAX_ENTRIES {
            entries.push((None, format!("and {} more", key.len() - MAX_ENTRIES)));
        } else if key.iter().any(|entry| !entry.group.is_empty()) {
            let mut names: Vec<&str> = Vec::new();
            for entry in &key {
                if !names.contains(&entry.group.as_str()) {
                    names.push(&entry.group);
                }
            }
            entries.clear();
            for name in names {
                let members = key.iter().filter(|entry| entry.group == name);
                entries.push((None, name.to_owned()));
                entries.extend(members.clone().map(line));
                groups.push(1 + members.count());
            }
        }
        let swatch = if sample == Sample::Line { SWATCH } else { AREA };
        Self { entries, sample, column: swatch + GAP + widest, groups }
    }

    /// Whether it fits beside a plot area of the given height and leaves room for the data.
    pub fn fits_beside(&self, height: f64) -> bool {
        self.column <= 0.3 * WIDTH && self.entries.len() as f64 * SMALL_LINE <= height
    }

    /// Its height beside the plot area.
    pub fn height_beside(&self) -> f64 {
        self.entries.len() as f64 * SMALL_LINE
    }

    /// Its width beside the plot area, with the space around it.
    pub fn width_beside(&self) -> f64 {
        if self.entries.is_empty() { EDGE } else { self.column + 16.0 + EDGE }
    }

    /// Its height in one or more rows across the page.
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

    /// Column and row of every entry. Groups fill columns from the top, and no group is split.
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
        // One column of all rows always suffices.
        (count.div_ceil(columns)..=count).find_map(within).unwrap_or_default()
    }

    fn draw(&self, canvas: &mut Canvas, (left, top): Pixel, columns: usize) {
        for ((look, label), (column, row)) in self.entries.iter().zip(self.layout(columns)) {
            let x = left + column as f64 * (self.column + 22.0);
            let y = top + (row as f64 + 0.5) * SMALL_LINE;
            let baseline = y + f64::from(SMALL) * 0.36;
            let style = Style::new(SMALL, Anchor::Start);
            match (look, self.sample) {
                (None, _) => canvas.text((x, baseline), label, Style { color: MUTED, ..style }),
                (Some(look), Sample::Line) => {
                    draw_line(canvas, *look, &[(x, y), (x + SWATCH, y)]);
                    draw_marker(canvas, *look, (x + SWATCH / 2.0, y));
                    canvas.text((x + SWATCH + GAP, baseline), label, style);
                }
                (Some(look), Sample::Area) => {
                    canvas.rect((x, y - AREA / 2.0), (x + AREA, y + AREA / 2.0), look.rgb());
                    canvas.text((x + AREA + GAP, baseline), label, style);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_in_one_column_under_its_name() {
        let entries = [("channel", 4), ("norm", 5), ("unbiased", 7), ("loss", 3), ("reference", 5)];
        let entry = |group: &str, i: usize| Entry {
            label: format!("{group} {i}"),
            group: group.into(),
            look: Look::of(i),
        };
        let members = entries.iter().flat_map(|&(group, count)| (0..count).map(move |i| entry(group, i)));
        let legend = Legend::new(&members.collect::<Vec<Entry>>(), Sample::Line);
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
