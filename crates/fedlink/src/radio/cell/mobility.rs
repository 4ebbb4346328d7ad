//! Devices that move.

use super::layout::Position;
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;

/// Drift: each device moves straight at one speed, in its own direction, and is reflected by the walls of a
/// square around the server.
///
/// x(t) = fold(x₀ + v·cos φ·t·period), the same for y with sin φ, where fold is the triangle wave of
/// amplitude R. In closed form at any time, so any round can be had alone. φ ~ U(0, 2π) by device. Heights
/// stay.
///
/// Invariants: pure in (seed, t, device); |x|, |y| ≤ R; the distance between two rounds is at most v·period.
///
/// ```
/// use fedlink::radio::cell::{layout::Position, mobility::Drift};
/// use fedlink::base::units::DeviceId;
/// let drift = Drift { speed_m_s: 1.5, period_s: 2.0, half_side_m: 100.0, seed: 0 };
/// let start = Position::new(10.0, 0.0);
/// assert_eq!(drift.position(0, DeviceId(0), start), start);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// v, at least 0.
    pub speed_m_s: f64,
    /// Time between two rounds.
    pub period_s: f64,
    /// R: walls are at ±R in both directions; above 0.
    pub half_side_m: f64,
    /// The run's seed.
    pub seed: u64,
}

impl Drift {
    /// The position in round `t` of a device that was at `start`, within the walls, in round 0.
    pub fn position(&self, t: u64, device: DeviceId, start: Position) -> Position {
        let way = self.speed_m_s * self.period_s * t as f64;
        if way == 0.0 {
            return start;
        }
        let uniform = stream(self.seed, Purpose::Mobility, 0, u64::from(device.0)).uniform();
        let angle = std::f64::consts::TAU * uniform;
        let x_m = fold(start.x_m + way * libm::cos(angle), self.half_side_m);
        let y_m = fold(start.y_m + way * libm::sin(angle), self.half_side_m);
        Position { x_m, y_m, ..start }
    }
}

/// The triangle wave that is x between −half and half and is reflected there.
fn fold(x: f64, half: f64) -> f64 {
    let phase = (x + half).rem_euclid(4.0 * half);
    (if phase > 2.0 * half { 4.0 * half - phase } else { phase }) - half
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIFT: Drift = Drift { speed_m_s: 3.0, period_s: 0.5, half_side_m: 20.0, seed: 7 };

    #[test]
    fn a_device_takes_steps_of_one_length_and_bounces_off_the_walls() {
        // Independent: the same way, step by step.
        for device in DeviceId::all(20) {
            let start = Position { x_m: 5.0, y_m: -12.0, z_m: Some(2.0) };
            let first = DRIFT.position(1, device, start);
            let (mut at, mut step) = (start, (first.x_m - start.x_m, first.y_m - start.y_m));
            assert!((libm::hypot(step.0, step.1) - 1.5).abs() < 1e-12);
            for t in 1..400 {
                (at.x_m, at.y_m) = (at.x_m + step.0, at.y_m + step.1);
                if at.x_m.abs() > 20.0 {
                    at.x_m = at.x_m.signum() * 40.0 - at.x_m;
                    step.0 = -step.0;
                }
                if at.y_m.abs() > 20.0 {
                    at.y_m = at.y_m.signum() * 40.0 - at.y_m;
                    step.1 = -step.1;
                }
                let now = DRIFT.position(t, device, start);
                assert!(
                    (now.x_m - at.x_m).abs() < 1e-9 && (now.y_m - at.y_m).abs() < 1e-9,
                    "{t}: {now:?}, {at:?}"
                );
                assert_eq!(now.z_m, Some(2.0));
            }
        }
    }

    #[test]
    fn devices_go_in_different_directions_and_stay_within_the_walls_for_ever() {
        let start = Position::default();
        assert_ne!(DRIFT.position(1, DeviceId(0), start), DRIFT.position(1, DeviceId(1), start));
        for t in [1 << 20, 1 << 40, u64::MAX] {
            let at = DRIFT.position(t, DeviceId(4), start);
            assert!(at.x_m.abs() <= 20.0 && at.y_m.abs() <= 20.0, "{at:?}");
        }
    }

    #[test]
    fn a_device_without_speed_stays() {
        let start = Position { x_m: 1.0, y_m: 2.0, z_m: None };
        assert_eq!(Drift { speed_m_s: 0.0, ..DRIFT }.position(99, DeviceId(0), start), start);
    }
}
