//! A matrix of values as colors: samples per device and class, a bound over two parameters, …

use super::axis::{Axis, Quantity, drawable};
use super::look::Rgb;
use serde::{Deserialize, Serialize};

/// More rows or columns than this are averaged in blocks, since finer cells would be invisible.
const MAX_CELLS: usize = 200;

/// The colors of values from the lowest to the highest: viridis, whose lightness rises steadily.
#[rustfmt::skip]
const SHADES: [Rgb; 17] = [
    (0x44, 0x01, 0x54), (0x48, 0x18, 0x6a), (0x47, 0x2d, 0x7b), (0x42, 0x40, 0x86), (0x3b, 0x52, 0x8b),
    (0x33, 0x63, 0x8d), (0x2c, 0x72, 0x8e), (0x26, 0x82, 0x8e), (0x21, 0x91, 0x8c), (0x1f, 0xa0, 0x88),
    (0x28, 0xae, 0x80), (0x3f, 0xbc, 0x73), (0x5e, 0xc9, 0x62), (0x84, 0xd4, 0x4b), (0xad, 0xdc, 0x30),
    (0xd8, 0xe2, 0x19), (0xfd, 0xe7, 0x25),
];

/// The color at a share in `0..=1` of the scale of values.
pub(crate) fn shade(share: f64) -> Rgb {
    let at = share.clamp(0.0, 1.0) * (SHADES.len() - 1) as f64;
    let low = SHADES[at as usize];
    let high = SHADES[(at as usize + 1).min(SHADES.len() - 1)];
    let mix = |a: u8, b: u8| (f64::from(a) + at.fract() * (f64::from(b) - f64::from(a))).round() as u8;
    (mix(low.0, high.0), mix(low.1, high.1), mix(low.2, high.2))
}

/// Values in rows and columns, the first row on top, as colors from dark (low) to light (high).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// The heading; none if empty.
    pub title: String,
    /// The label of the columns.
    pub x_label: String,
    /// The label of the rows.
    pub y_label: String,
    /// The scale of the values.
    pub scale: Axis,
    /// The value of each cell, row by row; none if it is unknown.
    pub cells: Vec<Vec<Option<f64>>>,
    /// Rows and columns of the data; the values of a block are averaged into one cell.
    pub count: [usize; 2],
    /// Rows and columns of a block.
    pub block: [usize; 2],
    /// The names of the columns of cells; none: the number of the first column in each, from zero.
    pub x_names: Option<Vec<String>>,
    /// The names of the rows of cells; none: the number of the first row in each, from zero.
    pub y_names: Option<Vec<String>>,
}

impl HeatMap {
    /// A map of `rows`; `value` is the quantity. Rows shorter than the longest lack values.
    pub fn new(
        title: impl Into<String>,
        (x_label, y_label): (&str, &str),
        value: &Quantity,
        rows: &[Vec<f64>],
    ) -> Self {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let count = [if columns == 0 { 0 } else { rows.len() }, columns];
        let block = count.map(|n| n.div_ceil(MAX_CELLS).max(1));
        let mean = |rows: &[Vec<f64>], from: usize| {
            let end = |row: &Vec<f64>| row.len().min(from + block[1]);
            let values = rows.iter().flat_map(|row| &row[from.min(row.len())..end(row)]);
            // A running mean stays inside the range of its values, even for very large ones.
            let (mean, n) = values
                .filter(|v| drawable(**v))
                .fold((0.0, 0.0), |(mean, n), v| (mean + (v - mean) / (n + 1.0), n + 1.0));
            (n > 0.0).then_some(mean)
        };
        let row = |rows: &[Vec<f64>]| (0..columns).step_by(block[1]).map(|from| mean(rows, from)).collect();
        let cells: Vec<Vec<Option<f64>>> = rows[..count[0]].chunks(block[0]).map(row).collect();
        Self {
            title: title.into(),
            x_label: x_label.to_owned(),
            y_label: y_label.to_owned(),
            scale: value.clone().margin(0.0).axis(cells.iter().flatten().filter_map(|cell| *cell)),
            cells,
            count,
            block,
            ..Self::default()
        }
    }

    /// The same map with names for its columns and rows.
    #[must_use]
    pub fn with_names(self, x: Vec<String>, y: Vec<String>) -> Self {
        let of_blocks = |names: Vec<String>, block| Some(names.into_iter().step_by(block).collect());
        let [rows, columns] = self.block;
        Self { x_names: of_blocks(x, columns), y_names: of_blocks(y, rows), ..self }
    }
}
