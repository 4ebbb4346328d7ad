//! The rows of a file of positions.

use super::Position;
use crate::base::files;
use crate::base::rows::{Rows, is_header, shortened};
use csv::StringRecord;
use std::path::Path;

/// The text of a file of at most `max` bytes; `fix` is the advice for a longer one.
pub(super) fn read_text(path: &Path, max: u64, fix: &str) -> Result<String, String> {
    let bytes = files::read_up_to(path, max).map_err(|error| error.to_string())?;
    let bytes = bytes.ok_or_else(|| format!("is longer than {max} bytes; {fix}"))?;
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".into())
}

/// One row of a file of positions.
pub(super) struct PositionRow<'a> {
    pub(super) line: u64,
    devices: usize,
    row: &'a StringRecord,
}

impl PositionRow<'_> {
    /// Calls `visit` with each row of `text`. It has the fields `names`, which may be followed by `z_m`. A
    /// first row whose first field is not a number is a header; empty rows are skipped.
    pub(super) fn for_each(
        text: &str,
        devices: usize,
        names: &str,
        mut visit: impl FnMut(PositionRow) -> Result<(), String>,
    ) -> Result<(), String> {
        let width = names.split(',').count();
        let mut rows = Rows::new(text);
        while let Some((line, row)) = rows.next() {
            if row.iter().eq([""]) || line == 1 && is_header(row) {
                continue;
            }
            if !(width..=width + 1).contains(&row.len()) {
                return Err(format!("line {line}: has {} fields, but needs {names}[,z_m]", row.len()));
            }
            visit(PositionRow { line, devices, row })?;
        }
        Ok(())
    }

    /// The device in field `index`.
    pub(super) fn device(&self, index: usize) -> Result<usize, String> {
        let (line, devices, field) = (self.line, self.devices, &self.row[index]);
        field.parse::<usize>().ok().filter(|device| *device < devices).ok_or_else(|| {
            let given = shortened(field);
            format!("line {line}: device \"{given}\" must be a whole number below data.devices = {devices}")
        })
    }

    /// The number of `unit` in field `index`.
    pub(super) fn number(&self, index: usize, unit: &str) -> Result<f64, String> {
        let field = &self.row[index];
        let number = field.parse::<f64>().ok().filter(|value| value.is_finite() && value.abs() <= 1e9);
        number.ok_or_else(|| {
            let given = shortened(field);
            format!("line {}: \"{given}\" must be a number of {unit}, at most 1e9", self.line)
        })
    }

    /// The position in the fields from `index` on.
    pub(super) fn position(&self, index: usize) -> Result<Position, String> {
        let meters = |index| self.number(index, "meters");
        let z_m = if self.row.len() > index + 2 { Some(meters(index + 2)?) } else { None };
        Ok(Position { x_m: meters(index)?, y_m: meters(index + 1)?, z_m })
    }
}
