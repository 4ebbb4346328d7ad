//! Devices that move along given ways.

use super::position_rows::{PositionRow, read_text};
use super::{Area, Layout, LayoutFacts, Position};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::path::Path;

/// The entry of this layout.
pub const ENTRY: Entry<dyn Layout> = Entry::of::<TrackConfig>();

/// `[cell.track]`.
#[keys]
#[derive(Clone, Debug)]
pub struct TrackConfig {
    /// file of the time_s, device, x_m, y_m and perhaps z_m (height) of each device, in meters from the
    /// server
    #[key(allowed = "the path of a CSV file with one row or more for each device, in rising time", file)]
    pub path: String,
}

impl PartConfig for TrackConfig {
    type Part = dyn Layout;
    const NAME: &'static str = "track";
    const MEANING: &'static str =
        "where devices are by time, from the file cell.track.path; needs radio.period_s";

    fn facts(&self) -> LayoutFacts {
        LayoutFacts { moves: true, ..LayoutFacts::default() }
    }

    fn build(self, _: &Scope, area: &Area) -> Result<Box<dyn Layout>, ConfigError> {
        if self.path.is_empty() {
            return Err(ConfigError::new("path", "is empty, but must be the path of a CSV file"));
        }
        Ok(Box::new(Tracks::read(Path::new(&self.path), area.devices)?))
    }
}

/// Bytes that a file of tracks may have.
const MAX_FILE: u64 = 256 << 20;

/// Ways that are given: a device goes straight and evenly from one of its positions to the next, waits at its
/// first one until that one's time, and stays at its last one.
///
/// Any motion, including random waypoints, can be given as such a trace. Round t is at t·`radio.period_s`
/// seconds. Invariants: pure in the time; a position lies on the line between two that are given.
///
/// ```
/// use fedlink::radio::cell::layout::{Layout, Tracks};
/// use fedlink::base::units::DeviceId;
/// let tracks = Tracks::parse("time_s,device,x_m,y_m\n0,0,30,40\n10,0,30,90\n", 1).unwrap();
/// assert_eq!(tracks.at(5.0, DeviceId(0)).y_m, 65.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tracks {
    /// Times and positions of each device, times strictly rising, at least one.
    of: Vec<Vec<(f64, Position)>>,
}

impl Tracks {
    /// Reads the way of each of `devices` devices.
    pub fn read(path: &Path, devices: usize) -> Result<Self, ConfigError> {
        let tracks =
            read_text(path, MAX_FILE, "use a part of it").and_then(|text| Self::parse(&text, devices));
        tracks.map_err(|problem| ConfigError::new("path", format!("{}: {problem}", path.display())))
    }

    /// The rows `time_s,device,x_m,y_m` or `time_s,device,x_m,y_m,z_m` of `text`, those of a device in rising
    /// time. A first row whose first field is not a number is a header; empty rows are
    /// skipped.
    pub fn parse(text: &str, devices: usize) -> Result<Self, String> {
        let mut of: Vec<Vec<(f64, Position)>> = vec![Vec::new(); devices];
        PositionRow::for_each(text, devices, "time_s,device,x_m,y_m", |row| {
            let (line, time, device) = (row.line, row.number(0, "seconds")?, row.device(1)?);
            let position = row.position(2)?;
            let way = &mut of[device];
            if let Some((before, last)) = way.last() {
                if time <= *before {
                    let problem =
                        format!("time_s {time} of device {device} is not above {before} of its row before");
                    return Err(format!("line {line}: {problem}; times must rise"));
                }
                if last.z_m.is_some() != position.z_m.is_some() {
                    return Err(format!(
                        "line {line}: device {device} has a height in some of its rows only"
                    ));
                }
            }
            way.push((time, position));
            Ok(())
        })?;
        match of.iter().position(Vec::is_empty) {
            Some(device) => {
                Err(format!("device {device} is missing: each of the {devices} devices needs a row"))
            }
            None => Ok(Self { of }),
        }
    }
}

impl Layout for Tracks {
    fn position(&self, device: DeviceId) -> Position {
        self.at(0.0, device)
    }

    fn at(&self, seconds: f64, device: DeviceId) -> Position {
        let way = &self.of[device.index()];
        let next = way.partition_point(|(time, _)| *time <= seconds);
        if next == 0 || next == way.len() {
            return way[next.saturating_sub(1)].1;
        }
        let ((before, from), (after, to)) = (way[next - 1], way[next]);
        let part = (seconds - before) / (after - before);
        let between = |from: f64, to: f64| from + part * (to - from);
        Position {
            x_m: between(from.x_m, to.x_m),
            y_m: between(from.y_m, to.y_m),
            z_m: from.z_m.zip(to.z_m).map(|(from, to)| between(from, to)),
        }
    }

    fn moves(&self) -> bool {
        true
    }

    fn places(&self, device: DeviceId) -> Vec<Position> {
        self.of[device.index()].iter().map(|(_, position)| *position).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_goes_evenly_from_one_position_to_the_next_and_stays_at_the_ends() {
        let text = "time_s,device,x_m,y_m,z_m\n2,1,0,100,1\n0,0,5,5,2\n4,1,50,100,3\n12,1,50,20,3\n";
        let tracks = Tracks::parse(text, 2).unwrap();
        let at = |seconds| {
            let Position { x_m, y_m, z_m } = tracks.at(seconds, DeviceId(1));
            [x_m, y_m, z_m.unwrap()]
        };
        for (seconds, place) in [
            (-1.0, [0.0, 100.0, 1.0]),
            (0.0, [0.0, 100.0, 1.0]),
            (2.0, [0.0, 100.0, 1.0]),
            (3.0, [25.0, 100.0, 2.0]),
            (4.0, [50.0, 100.0, 3.0]),
            (6.0, [50.0, 80.0, 3.0]),
            (12.0, [50.0, 20.0, 3.0]),
            (1e9, [50.0, 20.0, 3.0]),
        ] {
            assert_eq!(at(seconds), place, "{seconds}");
        }
        assert_eq!(tracks.position(DeviceId(1)), tracks.at(0.0, DeviceId(1)));
        assert_eq!(tracks.at(99.0, DeviceId(0)), Position { x_m: 5.0, y_m: 5.0, z_m: Some(2.0) });
        assert_eq!(tracks.places(DeviceId(1)).len(), 3);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, problem) in [
            ("time_s,device,x,y\n0,0,1,2", "device 1 is missing"),
            (
                "0,0,1,2\n0,0,1,2\n",
                "line 2: time_s 0 of device 0 is not above 0 of its row before; times must rise",
            ),
            ("0,0,1,2\n0,1,x,2\n", "line 2: \"x\" must be a number of meters"),
            ("0,0,1,2\nNaN,1,1,2\n", "line 2: \"NaN\" must be a number of seconds"),
            ("0,0,1,2\n0,2,1,2\n", "line 2: device \"2\" must be a whole number below data.devices = 2"),
            ("0,0,1,2\n0,1,1\n", "line 2: has 3 fields, but needs time_s,device,x_m,y_m[,z_m]"),
            ("0,0,1,2\n1,0,1,2,3\n", "line 2: device 0 has a height in some of its rows only"),
        ] {
            let error = Tracks::parse(text, 2).unwrap_err();
            assert!(error.starts_with(problem), "{error}\nshould begin with\n{problem}");
        }
        let missing = Tracks::read(Path::new("no such file.csv"), 1).unwrap_err().to_string();
        assert!(missing.starts_with("path: no such file.csv: "), "{missing}");
    }
}
