//! Federated learning over wireless links.
//!
//! M devices train locally; a fading TDMA uplink with n symbols a round carries only what Shannon capacity
//! allows; a policy picks K devices by their channel and by how much their update matters; a quantiser squeezes
//! each update into its share. This library is that system, after *Convergence of Update Aware Device
//! Scheduling for Federated Learning at the Wireless Edge* (Amiri, Gündüz, Kulkarni, Poor).
//!
//! Data flows one way: [`data`] → [`learn`] → [`schedule`] → [`radio`] → [`compress`] → [`round`] →
//! [`simulation`] → records. Start reading at [`round`].
//!
//! ```
//! use fedlink::config::Config;
//! use fedlink::simulation::Simulation;
//! # fn main() -> Result<(), fedlink::Error> {
//! let mut config = Config::default();
//! config.learn.model = fedlink::learn::model::ModelKind::Softmax;
//! config.run.rounds = 3;
//! let mut simulation = Simulation::new(&config, fedlink::data::load(&config.data, &[])?)?;
//! let outcome = simulation.run(&mut ())?;
//! println!("{:.1} % after {} rounds", 100.0 * outcome.final_accuracy.unwrap(), outcome.rounds);
//! # Ok(())
//! # }
//! ```

pub mod adversary;
pub mod checkpoint;
pub mod compress;
pub mod config;
pub mod data;
pub mod defence;
mod error;
mod fleet;
pub mod learn;
mod learner;
pub mod parts;
mod pool;
pub mod radio;
pub mod record;
pub mod rng;
pub mod round;
pub mod schedule;
pub mod simulation;
mod system;
pub mod units;
mod uplink;

pub use error::Error;
