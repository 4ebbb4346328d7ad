//! The cell: positions and mean gains of the devices.

pub mod layout;
pub mod mobility;
pub mod pathloss;
pub mod shadowing;

use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use crate::parts::ConfigError;
use layout::{Layout, Position};
use mobility::Drift;
use pathloss::{Heights, LineOfSight, Path, PathLoss, free_space_db};
use shadowing::Shadowing;

/// The components of a [`Cell`].
#[non_exhaustive]
pub struct CellParts {
    /// M.
    pub devices: usize,
    /// The run's seed.
    pub seed: u64,
    /// The positions of devices when the run begins.
    pub layout: Box<dyn Layout>,
    /// The attenuation of a signal, by distance.
    pub pathloss: Box<dyn PathLoss>,
    /// σ of shadowing in dB; 0: none.
    pub shadowing_db: f64,
    /// Distance over which shadowing loses its correlation, in meters; 0: independent devices.
    pub correlation_m: f64,
    /// The rule for lines of sight.
    pub line_of_sight: LineOfSight,
    /// f_c.
    pub carrier_hz: f64,
    /// Gain of a device's antenna in dBi.
    pub gain_tx_dbi: f64,
    /// Gain of the server's antenna in dBi.
    pub gain_rx_dbi: f64,
    /// The motion of devices; none: they do not move, or the layout has their tracks.
    pub drift: Option<Drift>,
    /// Seconds between rounds, by which a layout has them.
    pub period_s: f64,
    /// Whether the law may be used at distances outside its domain.
    pub extrapolate: bool,
}

/// The large-scale part of the links: β_m(t) = 10^((G_tx + G_rx − PL(d) + X)/10), with path loss PL and
/// shadowing X. Fading multiplies it.
///
/// PL is at least that of free space at f_c (unless there is no path loss at all), and at least 0 dB, so that
/// gains are finite at every distance. A device is in line of sight if its uniform number, one for the run,
/// is below the law's probability at its distance.
///
/// Invariants: pure in (seed, t, device). Where nothing moves, gains are computed once. A law is used outside
/// its domain only with `extrapolate`: positions outside it are rejected; a device that drifts too near to
/// the server has the loss of the nearest distance that the law holds for.
pub struct Cell {
    parts: CellParts,
    shadowing: Shadowing,
    heights: Heights,
    /// In dB, by device, if nothing moves.
    gains: Option<Vec<f64>>,
}

/// The large-scale part of one link.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CellLink {
    /// Distances over ground and in space, and whether there is a line of sight.
    pub path: Path,
    /// PL in dB.
    pub loss_db: f64,
    /// X in dB.
    pub shadowing_db: f64,
}

impl Cell {
    /// The cell made of `parts`; an error if a device is where the path loss law does not hold.
    pub fn new(parts: CellParts) -> Result<Self, ConfigError> {
        let shadowing = Shadowing::new(parts.shadowing_db, parts.correlation_m, parts.seed);
        let heights = parts.pathloss.heights();
        let mut cell = Self { parts, shadowing, heights, gains: None };
        cell.check_positions()?;
        if !cell.moves() {
            let gains = DeviceId::all(cell.parts.devices).map(|device| cell.link_gain_db(0, device));
            cell.gains = Some(gains.collect());
        }
        Ok(cell)
    }

    /// Checks that the law is valid wherever a device is or may move, away from the server.
    fn check_positions(&self) -> Result<(), ConfigError> {
        let domain = self.parts.pathloss.domain_m();
        let advice =
            "move devices by cell.min_m, cell.radius_m or cell.layout, or set cell.extrapolate = true";
        let refuse = |problem: String| Err(ConfigError::new("cell.pathloss", problem));
        let holds = format!("but this law holds for {}..={} m", domain.start(), domain.end());
        for device in DeviceId::all(self.parts.devices) {
            let position = self.parts.layout.position(device);
            for place in self.parts.layout.places(device) {
                let distance = place.distance_m();
                if !(domain.contains(&distance) || self.parts.extrapolate) {
                    return refuse(format!(
                        "device {device} is {distance:.1} m from the server, {holds}; {advice}"
                    ));
                }
                let heights = self.parts.pathloss.heights_of_devices();
                let given = place.z_m.filter(|z_m| !(heights.contains(z_m) || self.parts.extrapolate));
                if let Some(z_m) = given {
                    return refuse(format!(
                        "device {device} is {z_m} m high, but this law holds for {}..={} m; change its z_m, \
                         or set cell.extrapolate = true",
                        heights.start(),
                        heights.end()
                    ));
                }
            }
            if let Some(drift) = self.parts.drift
                && position.x_m.abs().max(position.y_m.abs()) > drift.half_side_m
            {
                let problem = format!(
                    "is {}, but device {device} begins {:.1} m east and {:.1} m north of the server: a \
                     device that moves must begin inside the square of ±cell.radius_m",
                    drift.half_side_m, position.x_m, position.y_m
                );
                return Err(ConfigError::new("cell.radius_m", problem));
            }
        }
        if let Some(drift) = self.parts.drift {
            let corner = drift.half_side_m * std::f64::consts::SQRT_2;
            if corner > *domain.end() && !self.parts.extrapolate {
                return refuse(format!("devices that move come as far as {corner:.1} m, {holds}; {advice}"));
            }
        }
        Ok(())
    }

    /// M.
    pub fn devices(&self) -> usize {
        self.parts.devices
    }

    /// Whether devices move, so that gains differ from round to round.
    pub fn moves(&self) -> bool {
        self.parts.drift.is_some() || self.parts.layout.moves()
    }

    /// The position of a device in round `t`.
    pub fn position(&self, t: u64, device: DeviceId) -> Position {
        if self.parts.layout.moves() {
            return self.parts.layout.at(t as f64 * self.parts.period_s, device);
        }
        let start = self.parts.layout.position(device);
        self.parts.drift.map_or(start, |drift| drift.position(t, device, start))
    }

    /// 10·log10 β_m(t).
    pub fn gain_db(&self, t: u64, device: DeviceId) -> f64 {
        match &self.gains {
            Some(gains) => gains[device.index()],
            None => self.link_gain_db(t, device),
        }
    }

    /// The terms of the gain.
    pub fn path(&self, t: u64, device: DeviceId) -> CellLink {
        let position = self.position(t, device);
        let ground = position.distance_m();
        let law = &self.parts.pathloss;
        let line_of_sight = match (self.parts.line_of_sight, law.line_of_sight_probability(ground)) {
            (LineOfSight::Always, _) => true,
            (LineOfSight::Never, _) | (LineOfSight::Drawn, None) => false,
            (LineOfSight::Drawn, Some(probability)) => {
                let mut draws = stream(self.parts.seed, Purpose::LineOfSight, 0, u64::from(device.0));
                draws.uniform() < probability
            }
        };
        let heights = Heights { ut_m: position.z_m.unwrap_or(self.heights.ut_m), ..self.heights };
        let path = Path::new(ground, heights, line_of_sight);
        let loss_db = self.loss_db(&path, heights);
        CellLink { path, loss_db, shadowing_db: self.shadowing.db(device, &position) }
    }

    /// PL within its bounds.
    fn loss_db(&self, path: &Path, heights: Heights) -> f64 {
        let law = &self.parts.pathloss;
        let mut used = *path;
        if !self.parts.extrapolate {
            let nearest = path.distance_2d_m.clamp(*law.domain_m().start(), *law.domain_m().end());
            used = Path::new(nearest, heights, path.line_of_sight);
        }
        let loss = law.loss_db(&used);
        if !law.bounded_by_free_space() {
            return loss;
        }
        // At distance 0 both are −∞; a passive link has no gain.
        loss.max(free_space_db(path.distance_3d_m, self.parts.carrier_hz)).max(0.0)
    }

    fn link_gain_db(&self, t: u64, device: DeviceId) -> f64 {
        let link = self.path(t, device);
        self.parts.gain_tx_dbi + self.parts.gain_rx_dbi - link.loss_db + link.shadowing_db
    }
}

#[cfg(test)]
mod tests;
