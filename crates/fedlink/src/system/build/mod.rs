//! The parties of a run, built from its configuration.

mod clock;
mod radio;
mod server;
mod simulation;

pub use clock::clock;
pub use radio::{link_budget, radio};
pub use server::check_nodes;

use crate::compress::Compressor;
use crate::spec::{ConfigError, Spec};
use std::sync::Arc;

/// The compressor.
pub fn compressor(spec: &Spec) -> Result<Arc<dyn Compressor>, ConfigError> {
    Ok(spec.parts().scheme.build(&spec.scope(), &())?.into())
}
