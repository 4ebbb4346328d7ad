//! The parts of the clock: how long training takes, how devices and rounds differ, how the model goes out.

pub mod compute;
pub mod downlink;
pub mod jitter;
pub mod spread;
