//! The looks of series: color, dash pattern and marker.
//!
//! The colors are those of Okabe and Ito, which people with any common color blindness can distinguish,
//! without the yellow, which is too light on white. Dash patterns and markers have other periods, so that
//! thirty curves differ in one of the two even in grayscale, and two hundred and ten in one of the three.

use serde::{Deserialize, Serialize};

/// Red, green and blue.
pub type Rgb = (u8, u8, u8);

/// The colors of series.
pub const COLORS: [Rgb; 7] = [
    (0x00, 0x72, 0xb2), // blue
    (0xd5, 0x5e, 0x00), // vermilion
    (0x00, 0x9e, 0x73), // bluish green
    (0xcc, 0x79, 0xa7), // reddish purple
    (0xe6, 0x9f, 0x00), // orange
    (0x56, 0xb4, 0xe9), // sky blue
    (0x00, 0x00, 0x00), // black
];

/// The same colors on a dark background.
pub const DARK_COLORS: [Rgb; 7] = [
    (0x4c, 0x97, 0xe8),
    (0xf2, 0x78, 0x3a),
    (0x1f, 0xbd, 0x8e),
    (0xdd, 0x93, 0xbb),
    (0xf0, 0xb1, 0x2c),
    (0x93, 0xd3, 0xf8),
    (0xf4, 0xf4, 0xf4),
];

/// Lengths of dashes and gaps in turn, in pixels.
pub const DASHES: [&[f64]; 5] = [&[], &[9.0, 4.0], &[3.0, 3.0], &[11.0, 3.0, 3.0, 3.0], &[5.0, 2.0]];

/// Corners of the markers after the disc, in units of their radius.
#[rustfmt::skip]
pub const MARKERS: [&[(f64, f64)]; 6] = [
    &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
    &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
    &[
        (-0.4, -1.3), (0.4, -1.3), (0.4, -0.4), (1.3, -0.4), (1.3, 0.4), (0.4, 0.4),
        (0.4, 1.3), (-0.4, 1.3), (-0.4, 0.4), (-1.3, 0.4), (-1.3, -0.4), (-0.4, -0.4),
    ],
    &[
        (-1.2, -0.65), (-0.65, -1.2), (0.0, -0.55), (0.65, -1.2), (1.2, -0.65), (0.55, 0.0),
        (1.2, 0.65), (0.65, 1.2), (0.0, 0.55), (-0.65, 1.2), (-1.2, 0.65), (-0.55, 0.0),
    ],
];

/// The number of markers by index, the disc included: a period that colors and dashes do not have.
const MARKERS_BY_INDEX: usize = 6;

/// The look of one series: indices into `COLORS`, `DASHES` and the markers, with the disc first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The color of line, marker and band.
    pub color: usize,
    /// The dash pattern.
    pub dash: usize,
    /// The marker; none for a line without markers.
    pub marker: Option<usize>,
}

impl Look {
    /// A line for comparison: black, dashed, without markers.
    pub const REFERENCE: Self = Self { color: 6, dash: 1, marker: None };

    /// The look of the series at `index` by default.
    pub fn of(index: usize) -> Self {
        Self::new(index, index, index % MARKERS_BY_INDEX)
    }

    /// A look by any indices: the lists repeat.
    pub fn new(color: usize, dash: usize, marker: usize) -> Self {
        Self {
            color: color % COLORS.len(),
            dash: dash % DASHES.len(),
            marker: Some(marker % (MARKERS.len() + 1)),
        }
    }

    /// The color on white paper.
    pub fn rgb(self) -> Rgb {
        COLORS[self.color % COLORS.len()]
    }

    /// The dash pattern; empty for a solid line.
    pub fn dashes(self) -> &'static [f64] {
        DASHES[self.dash % DASHES.len()]
    }
}

/// One line of a legend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The name of the series.
    pub label: String,
    /// The heading above it; none if empty.
    pub group: String,
    /// Its look.
    pub look: Look,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_curves_differ_without_color_and_two_hundred_with_it() {
        let gray = |i| (Look::of(i).dash, Look::of(i).marker);
        for i in 0..30 {
            assert!((0..i).all(|j| gray(i) != gray(j)), "{i}");
        }
        for i in 0..210 {
            assert!((0..i).all(|j| Look::of(i) != Look::of(j)), "{i}");
        }
    }
}
