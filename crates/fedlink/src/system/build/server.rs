//! The server of a run, built from its configuration.

use super::{compressor, radio};
use crate::aggregate::Aggregator;
use crate::base::memory;
use crate::base::units::DeviceId;
use crate::compress::Compressor;
use crate::error::Error;
use crate::learn::correction::{Correction, NoCorrection};
use crate::learn::model::validate_dim;
use crate::parts::parts_with;
use crate::spec::{ConfigError, Spec};
use crate::system::server::{SampleCounts, Server, ServerParts, StepsOf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

impl Server {
    /// The server of a run on real nodes: `theta` is θ(0), `samples` are the training samples of each device
    /// (none: one each).
    pub fn of(spec: &Spec, theta: Vec<f32>, samples: Option<Vec<usize>>) -> Result<Self, Error> {
        memory::check(spec.data.devices, theta.len(), server_vectors(spec).saturating_add(2))?;
        let devices = spec.data.devices as usize;
        let samples = samples.unwrap_or_else(|| vec![1; devices]);
        if samples.len() != devices {
            let problem = format!("are those of {} devices, but data.devices is {devices}", samples.len());
            return Err(ConfigError::new("samples", problem).into());
        }
        if let Some(device) = samples.iter().position(|&count| count == 0) {
            let problem = format!("device {device} has none, but must have at least one");
            return Err(ConfigError::new("samples", problem).into());
        }
        check_nodes(spec)?;
        check_theta0("theta0", &theta)?;
        let given_samples: Arc<[AtomicUsize]> = samples.into_iter().map(AtomicUsize::new).collect();
        let shared = Arc::clone(&given_samples);
        let samples = move |device: DeviceId| {
            shared.get(device.index()).map_or(1, |count| count.load(Ordering::Relaxed))
        };
        let material = ServerMaterial {
            compressor: compressor(spec)?,
            aggregator: spec.parts().aggregate.build(&spec.scope(), &())?,
            correction: Arc::new(NoCorrection {}),
            steps: Arc::new(|_, _| None),
            samples: Arc::new(samples),
            given_samples,
            theta,
        };
        Ok(material.server(spec)?)
    }
}

/// The material of a server that differs between a simulation and a run on nodes.
pub(super) struct ServerMaterial {
    pub compressor: Arc<dyn Compressor>,
    pub aggregator: Box<dyn Aggregator>,
    pub correction: Arc<dyn Correction>,
    pub steps: StepsOf,
    pub samples: SampleCounts,
    pub given_samples: Arc<[AtomicUsize]>,
    pub theta: Vec<f32>,
}

impl ServerMaterial {
    /// The server of a run.
    pub fn server(self, spec: &Spec) -> Result<Server, ConfigError> {
        let policy = spec.parts().policy.build(&spec.scope(), &())?;
        let (devices, dim) = (spec.data.devices, self.theta.len());
        let numbers = policy.state_numbers(devices, dim as u64);
        memory::check_policy(&spec.schedule.policy, numbers, devices, dim)?;
        Ok(Server::new(ServerParts {
            spec: spec.clone(),
            radio: radio(spec, dim)?,
            policy,
            compressor: self.compressor,
            aggregator: self.aggregator,
            optimizer: spec.parts().server_optimizer.build(&spec.scope(), &())?,
            correction: self.correction,
            steps: self.steps,
            samples: self.samples,
            given_samples: self.given_samples,
            theta: self.theta,
        }))
    }
}

/// Rejects a run that is possible only in simulation: nodes train by their own code over real links.
pub fn check_nodes(spec: &Spec) -> Result<(), ConfigError> {
    check_local_steps(spec)?;
    let policy = &spec.facts().policy;
    let why = match (policy.genie, policy.is_a_link) {
        (Some(_), _) => "chooses from information that no server has",
        (None, false) => "sends more than any link carries",
        (None, true) => return Ok(()),
    };
    let name = &spec.schedule.policy;
    let problem =
        format!("is \"{name}\", which {why} and is for simulations; choose another policy for real nodes");
    Err(ConfigError::new("schedule.policy", problem))
}

/// Refuses parts that need the local steps of the devices.
fn check_local_steps(spec: &Spec) -> Result<(), ConfigError> {
    if spec.facts().correction.corrects {
        let problem = format!(
            "is \"{}\", but nodes train by their own code, to which the server adds nothing; write {}",
            spec.learn.correction,
            parts_with::<dyn Correction>(|facts| !facts.corrects)
        );
        return Err(ConfigError::new("learn.correction", problem));
    }
    if spec.facts().aggregate.by_steps {
        let problem = format!(
            "is \"{}\", but nodes do not report their local steps; write {}",
            spec.learn.aggregate,
            parts_with::<dyn Aggregator>(|facts| !facts.by_steps)
        );
        return Err(ConfigError::new("learn.aggregate", problem));
    }
    Ok(())
}

/// Vectors of d numbers that the server keeps of the devices.
pub(super) fn server_vectors(spec: &Spec) -> usize {
    if spec.facts().feedback.state_decay.is_some() { spec.data.devices as usize } else { 0 }
}

/// Rejects an invalid θ(0); `key` is its origin.
pub(super) fn check_theta0(key: &str, theta0: &[f32]) -> Result<(), ConfigError> {
    if let Some(i) = theta0.iter().position(|weight| !weight.is_finite()) {
        return Err(ConfigError::new(key, format!("θ(0) is {} in entry {i}", theta0[i])));
    }
    if theta0.is_empty() {
        return Err(ConfigError::new(key, "θ(0) is empty, so there is nothing to learn"));
    }
    validate_dim(key, theta0.len())
}
