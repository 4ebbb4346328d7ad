//! Federated learning over wireless links.
//!
//! M devices train locally; a fading uplink with n symbols a round carries only what capacity allows; a
//! policy picks up to K devices by their channel and by how much their update matters; a compressor squeezes
//! each update into its share. This library is that system, after *Convergence of Update Aware Device
//! Scheduling for Federated Learning at the Wireless Edge* (Amiri, Gündüz, Kulkarni, Poor).
//!
//! # Features
//! - `threads` (default): work is spread over the threads of the current `rayon` pool. Results are the same
//!   without it.
//! - `files` (default): gzip and NPZ data files can be read. Plain IDX, CIFAR-10 and CSV files always can.
//!
//! # Reading it
//! Data flows one way: [`data`] → [`learn`] → [`schedule`] → [`radio`] → [`compress`] → [`server`] →
//! [`record`]. Start reading at [`round`](mod@round).
//!
//! ```
//! use fedlink::prelude::*;
//! # fn main() -> Result<(), fedlink::Error> {
//! let mut config = Config::default();
//! config.learn.model = "softmax".into();
//! config.run.rounds = 3;
//! let mut simulation = Simulation::new(&config, fedlink::data::load("digits", &[])?)?;
//! let outcome = simulation.run(&mut ())?;
//! println!("{:.1} % after {} rounds", 100.0 * outcome.final_accuracy.unwrap(), outcome.rounds);
//! # Ok(())
//! # }
//! ```

// The kernels say where and why.
#![deny(unsafe_code)]

pub mod adversary;
pub mod checkpoint;
pub mod clock;
pub mod compress;
pub mod config;
pub mod data;
mod error;
pub mod fleet;
mod genie;
pub mod hex;
pub mod identity;
pub mod kernels;
pub mod learn;
pub mod memory;
mod parallel;
pub mod parts;
mod pool;
pub mod privacy;
pub mod radio;
pub mod record;
pub mod registry;
pub mod rng;
pub mod round;
pub mod schedule;
pub mod server;
pub mod session;
pub mod setup;
pub mod simulation;
pub mod state;
pub mod units;
pub mod world;

pub use error::Error;

/// The types that most programs need.
pub mod prelude {
    pub use crate::Error;
    pub use crate::compress::{
        Codec, Compressor, Context, Encoded, Evidence, Properties, Scratch, SparseUpdate, Spent, Values,
    };
    pub use crate::config::Config;
    pub use crate::learn::task::{Evaluation, Job, Task, TaskError};
    pub use crate::parts::Parts;
    pub use crate::radio::fading::Fading;
    pub use crate::record::{Outcome, RoundRecord};
    pub use crate::rng::Stream;
    pub use crate::schedule::{Ask, Pick, Policy, Reports, Sampling, Schedule, Share, View};
    pub use crate::session::Session;
    pub use crate::simulation::Simulation;
    pub use crate::state::{Persist, State, StateError};
    pub use crate::units::{Bits, DeviceId};
}

/// The programs of `docs/adding-parts.md`, which are tested with the rest of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-parts.md")]
pub struct AddingParts;
