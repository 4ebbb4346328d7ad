//! The uplink: fading, the server's knowledge of it, grants of scheduled devices, and lost uploads.

pub mod access;
pub mod budget;
mod carry;
pub mod cell;
mod csi;
mod decay;
pub mod fading;
mod grants;
mod known;
pub mod link;
mod loss;
pub mod math;
pub mod mean_gains;
pub mod power;
pub mod rate;
mod settings;
pub mod trace;
mod uplink;

pub use carry::{Carried, Transfer};
pub use csi::Csi;
pub use decay::Decay;
pub use known::{CapacityAt, Known, Links};
pub use loss::{Combining, Loss};
pub use mean_gains::MeanGains;
pub use settings::{PayloadMode, Snrs};
pub use uplink::{Radio, RadioParts};
