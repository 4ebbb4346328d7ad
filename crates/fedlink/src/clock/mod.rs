//! The parts of the clock: duration of training, differences between devices and rounds, and the downlink.

pub mod compute;
pub mod downlink;
pub mod jitter;
pub mod spread;
