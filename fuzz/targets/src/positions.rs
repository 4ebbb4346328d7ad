//! Any bytes are one finite position of each device, or its track, or an error.

use fedlink::base::units::DeviceId;
use fedlink::radio::cell::layout::{Layout, Positions, Tracks};

pub fn run(file: &[u8]) {
    let Ok(text) = std::str::from_utf8(file) else { return };
    // As many devices as the text has rows, with and without a header.
    let rows = text.lines().filter(|row| !row.trim().is_empty()).count();
    for devices in [rows, rows.saturating_sub(1)] {
        if let Ok(positions) = Positions::parse(text, devices) {
            for device in DeviceId::all(devices) {
                assert!(positions.position(device).distance_m().is_finite());
            }
        }
        if let Ok(tracks) = Tracks::parse(text, devices.min(2)) {
            for device in DeviceId::all(devices.min(2)) {
                let at = |seconds| tracks.at(seconds, device).distance_m();
                assert!([-1e9, 0.0, 0.5, 7.0, 1e9].into_iter().all(|seconds| at(seconds).is_finite()));
            }
        }
    }
}
