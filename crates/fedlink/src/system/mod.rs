//! A run: the server, the devices, the clock, one round, and rounds in sequence.

pub mod build;
pub mod checkpoint;
pub mod clock;
pub mod device;
pub mod fleet;
mod genie;
pub mod round;
pub mod server;
pub mod simulation;
