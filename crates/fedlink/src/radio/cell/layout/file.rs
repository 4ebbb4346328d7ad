//! Positions from a file.

use super::position_rows::{PositionRow, read_text};
use super::{Area, Layout, Position};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::path::Path;

/// The entry of this layout.
pub const ENTRY: Entry<dyn Layout> = Entry::of::<FileConfig>();

/// `[cell.file]`.
#[keys]
#[derive(Clone, Debug)]
pub struct FileConfig {
    /// file of the device, x_m, y_m and perhaps z_m (height) of each device, in meters from the server
    #[key(allowed = "the path of a CSV file with one row for each device", file)]
    pub path: String,
}

impl PartConfig for FileConfig {
    type Part = dyn Layout;
    const NAME: &'static str = "file";
    const MEANING: &'static str = "positions from the file cell.file.path";

    fn build(self, _: &Scope, area: &Area) -> Result<Box<dyn Layout>, ConfigError> {
        if self.path.is_empty() {
            return Err(ConfigError::new("path", "is empty, but must be the path of a CSV file"));
        }
        Ok(Box::new(Positions::read(Path::new(&self.path), area.devices)?))
    }
}

/// Bytes that a row may take.
const BYTES_PER_ROW: u64 = 256;

/// Positions that are given, one for each device.
///
/// ```
/// use fedlink::radio::cell::layout::{Layout, Positions};
/// use fedlink::base::units::DeviceId;
/// let positions = Positions::parse("device,x_m,y_m\n1,30,40\n0,-5,0\n", 2).unwrap();
/// assert_eq!(positions.position(DeviceId(1)).distance_m(), 50.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Positions {
    of: Vec<Position>,
}

impl Positions {
    /// Reads the position of each of `devices` devices.
    pub fn read(path: &Path, devices: usize) -> Result<Self, ConfigError> {
        let max = BYTES_PER_ROW * (devices as u64 + 16);
        let positions =
            read_text(path, max, "give one row for each device").and_then(|text| Self::parse(&text, devices));
        positions.map_err(|problem| ConfigError::new("path", format!("{}: {problem}", path.display())))
    }

    /// The rows `device,x_m,y_m` or `device,x_m,y_m,z_m` of `text`, in any order, each device once. A first
    /// row whose first field is not a number is a header; empty rows are skipped.
    pub fn parse(text: &str, devices: usize) -> Result<Self, String> {
        let mut of = vec![None; devices];
        PositionRow::for_each(text, devices, "device,x_m,y_m", |row| {
            let device = row.device(0)?;
            if of[device].replace(row.position(1)?).is_some() {
                return Err(format!("line {}: device {device} is given twice", row.line));
            }
            Ok(())
        })?;
        if let Some(device) = of.iter().position(Option::is_none) {
            return Err(format!("device {device} is missing: each of the {devices} devices needs a row"));
        }
        Ok(Self { of: of.into_iter().flatten().collect() })
    }
}

impl Layout for Positions {
    fn position(&self, device: DeviceId) -> Position {
        self.of[device.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_come_in_any_order_with_or_without_header_and_height() {
        let text = "\u{feff}device,x_m,y_m,z_m\r\n1, -3.5,4e2,1.5\r\n\r\n0,1,2,0\r\n";
        let parsed = Positions::parse(text, 2).unwrap();
        assert_eq!(parsed.position(DeviceId(0)), Position { x_m: 1.0, y_m: 2.0, z_m: Some(0.0) });
        assert_eq!(parsed.position(DeviceId(1)), Position { x_m: -3.5, y_m: 400.0, z_m: Some(1.5) });
        let bare = Positions::parse("0,1,2", 1).unwrap();
        assert_eq!(bare.position(DeviceId(0)), Position { x_m: 1.0, y_m: 2.0, z_m: None });
    }

    #[test]
    fn errors_name_the_line() {
        for (text, problem) in [
            ("device,x,y\n0,1,2", "device 1 is missing"),
            ("0,1,2\n0,1,2\n", "line 2: device 0 is given twice"),
            ("0,1,2\n1,x,2\n", "line 2: \"x\" must be a number of meters"),
            ("0,1,2\n1,NaN,2\n", "line 2: \"NaN\" must be a number of meters"),
            ("0,1,2\n2,1,2\n", "line 2: device \"2\" must be a whole number below data.devices = 2"),
            ("0,1,2\n1,1\n", "line 2: has 2 fields, but needs device,x_m,y_m[,z_m]"),
            ("0,1,2\n-1,1,1\n", "line 2: device \"-1\" must be a whole number"),
        ] {
            let error = Positions::parse(text, 2).unwrap_err();
            assert!(error.starts_with(problem), "{error}\nshould begin with\n{problem}");
        }
    }

    #[test]
    fn a_file_that_is_missing_or_far_too_long_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("positions.csv");
        assert!(Positions::read(&path, 2).unwrap_err().to_string().contains("positions.csv"));
        std::fs::write(&path, "0,1,2\n".repeat(10_000)).unwrap();
        assert!(Positions::read(&path, 2).unwrap_err().to_string().contains("is longer than"));
        std::fs::write(&path, "0,1,2\n1,3,4\n").unwrap();
        assert_eq!(Positions::read(&path, 2).unwrap().position(DeviceId(1)).distance_m(), 5.0);
    }
}
