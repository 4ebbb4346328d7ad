//! Federated learning over wireless links.
//!
//! M devices train locally; a fading uplink with n symbols per round carries at most its capacity; a policy
//! selects up to K devices by channel and by update; a compressor fits each update into its share. This
//! library is that system, after *Convergence of Update Aware Device Scheduling for Federated Learning at the
//! Wireless Edge* (Amiri, Gündüz, Kulkarni, Poor).
//!
//! # Features
//! - `threads` (default): work is spread over the threads of the current `rayon` pool. Results are the same
//!   without it.
//! - `files` (default): gzip and NPZ data files can be read. Plain IDX, CIFAR-10 and CSV files always can.
//!
//! # Reading it
//! A [`Config`](spec::Config) is text; it resolves to a [`Spec`](spec::Spec), which is typed and valid; a
//! [`Simulation`](system::simulation::Simulation) runs it. Data flows one way: [`data`] → [`learn`] →
//! [`schedule`] → [`radio`] → [`compress`] → [`aggregate`] → [`record`]. Start reading at [`system::round`].
//!
//! ```
//! use fedlink::prelude::*;
//! # fn main() -> Result<(), fedlink::Error> {
//! let spec = Spec::builder().dataset(Dataset::digits()).model(Softmax {}).k(4).rounds(3).build()?;
//! let outcome = Simulation::new(spec)?.run(|round| println!("{round}"))?;
//! println!("{:.1} % after {} rounds", 100.0 * outcome.final_accuracy.unwrap(), outcome.rounds);
//! # Ok(())
//! # }
//! ```

// The kernels say where and why.
#![deny(unsafe_code)]

// The attribute #[keys] names this crate as others do.
extern crate self as fedlink;

pub mod adversary;
pub mod aggregate;
pub mod base;
pub mod clock;
pub mod compress;
pub mod data;
#[cfg(test)]
#[path = "../tests/parts/mod.rs"]
mod documented;
mod error;
pub mod learn;
pub mod parts;
pub mod privacy;
pub mod radio;
pub mod record;
pub mod schedule;
pub mod shown;
pub mod spec;
pub mod system;

pub use error::Error;

/// The types that most programs need.
pub mod prelude {
    pub use crate::Error;
    pub use crate::base::rng::Stream;
    pub use crate::base::state::{Persist, State, StateError};
    pub use crate::base::units::{Bits, DeviceId};
    pub use crate::compress::{
        Codec, Compressor, Context, Encoded, Evidence, Properties, Scratch, SparseUpdate, Spent, Values,
    };
    pub use crate::data::Dataset;
    pub use crate::learn::model::cnn::CnnConfig as Cnn;
    pub use crate::learn::model::mlp::MlpConfig as Mlp;
    pub use crate::learn::model::softmax::SoftmaxConfig as Softmax;
    pub use crate::learn::task::{Evaluation, Job, Task, TaskError};
    pub use crate::parts::Parts;
    pub use crate::parts::{ConfigError, PartConfig, Scope, keys, own};
    pub use crate::radio::fading::Fading;
    pub use crate::record::{Outcome, RoundRecord};
    pub use crate::schedule::policy::best_channel_best_norm::BestChannelBestNormConfig as BcBn2;
    pub use crate::schedule::policy::{
        BestChannel as Bc, BestCompressedNorm as Bn2C, BestNorm as Bn2, Random, RoundRobin,
    };
    pub use crate::schedule::{Ask, Pick, Policy, Reports, Sampling, Schedule, View, Weight};
    pub use crate::spec::Config;
    pub use crate::spec::Spec;
    pub use crate::system::server::Server;
    pub use crate::system::simulation::Simulation;
}

/// The programs of `docs/adding-parts.md`, which are tested with the rest of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-parts.md")]
pub struct AddingParts;
