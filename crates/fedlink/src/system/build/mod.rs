//! The server's side of a run, built from its configuration.

mod clock;
mod radio;

pub use clock::clock;
pub use radio::{link_budget, radio};

use crate::aggregate::Aggregator;
use crate::aggregate::Clip;
use crate::base::memory;
use crate::compress::{BudgetRule, Compressor, LevelRule};
use crate::learn::correction::Correction;
use crate::learn::model::validate_dim;
use crate::learn::rate::Rate;
use crate::parts::parts_with;
use crate::privacy::Mechanism;
use crate::schedule::{ReportCode, Sampling};
use crate::spec::{ConfigError, Spec};
use crate::system::server::{Cap, Defense, SampleCounts, Server, ServerParts};
use std::sync::Arc;

/// The server of a run on other people's nodes: `theta` is θ(0), `samples` the training
/// samples of each device.
pub fn server_of(spec: &Spec, theta: Vec<f32>, samples: SampleCounts) -> Result<Server, ConfigError> {
    check_theta0("theta0", &theta)?;
    let compressor = compressor(spec)?;
    let aggregator = spec.parts().aggregate.build(&spec.scope(), &())?;
    check_local_steps(spec)?;
    server(spec, compressor, aggregator, samples, theta)
}

/// Refuses a run that only a simulation can do: nodes train by their own code over real links.
pub fn check_nodes(spec: &Spec) -> Result<(), ConfigError> {
    check_local_steps(spec)?;
    let policy = &spec.facts().policy;
    let why = match (policy.genie, policy.is_a_link) {
        (Some(_), _) => "chooses by what no server can know",
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

/// The server with its parts.
pub(crate) fn server(
    spec: &Spec,
    compressor: Arc<dyn Compressor>,
    aggregator: Box<dyn Aggregator>,
    samples: SampleCounts,
    theta: Vec<f32>,
) -> Result<Server, ConfigError> {
    let policy = spec.parts().policy.build(&spec.scope(), &())?;
    let (devices, dim) = (spec.data.devices, theta.len());
    let numbers = policy.state_numbers(devices, dim as u64);
    memory::check_policy(&spec.schedule.policy, numbers, devices, dim)?;
    let defense = &spec.defense;
    let cap = Cap {
        devices: spec.data.devices,
        k: spec.schedule.k,
        rounds: spec.run.rounds,
        slack: defense.cap_slack,
    };
    let rate = Rate {
        base: spec.learn.server_rate,
        schedule: spec.learn.server_rate_schedule,
        rounds: spec.run.rounds,
    };
    let privacy = mechanism(spec, policy.sampling());
    Ok(Server::new(ServerParts {
        radio: radio(spec, theta.len())?,
        policy,
        policy_name: spec.schedule.policy.clone(),
        report_code: report_code(spec),
        compressor,
        state_decay: spec.facts().feedback.state_decay,
        custom_compressor: custom_compressor(spec),
        aggregator,
        optimizer: spec.parts().server_optimizer.build(&spec.scope(), &())?,
        server_rate: spec.learn.server_rate,
        defense: Defense {
            strikes: defense.audit.then_some(defense.strikes as u32),
            clip: defense.clip,
            cap: defense.participation_cap.then_some(cap),
            privacy,
        },
        exact: spec.compress.budget == BudgetRule::Formula && spec.compress.level == LevelRule::Largest,
        samples,
        seed: spec.run.seed,
        theta,
    })
    .with_rate(rate))
}

/// What reports cost, and what is left of them.
fn report_code(spec: &Spec) -> ReportCode {
    ReportCode { bits: spec.schedule.report_bits as u32, floor: spec.radio.report_floor() }
}

/// Vectors of d numbers that the server keeps of the devices.
pub(crate) fn server_vectors(spec: &Spec) -> usize {
    if spec.facts().feedback.state_decay.is_some() { spec.data.devices as usize } else { 0 }
}

/// The noise of a run; none if there is none.
fn mechanism(spec: &Spec, sampling: Sampling) -> Option<Mechanism> {
    let Clip::Norm(clip) = spec.defense.clip else { return None };
    let share = match sampling {
        Sampling::Other => 1.0 / spec.schedule.k as f64,
        Sampling::Poisson { rate } => 1.0 / (rate * spec.data.devices as f64),
    };
    let (noise, delta) = (spec.privacy.noise, spec.privacy.delta);
    (noise > 0.0).then_some(Mechanism { noise, clip, share, delta })
}

/// The name of the compressor, if it is not this library's.
pub(crate) fn custom_compressor(spec: &Spec) -> Option<String> {
    let scheme = &spec.parts().scheme;
    scheme.is_custom().then(|| scheme.name().to_owned())
}

/// The compressor.
pub fn compressor(spec: &Spec) -> Result<Arc<dyn Compressor>, ConfigError> {
    Ok(spec.parts().scheme.build(&spec.scope(), &())?.into())
}

/// Refuses a θ(0) that is none; `key` is where it comes from.
pub(crate) fn check_theta0(key: &str, theta0: &[f32]) -> Result<(), ConfigError> {
    if let Some(i) = theta0.iter().position(|weight| !weight.is_finite()) {
        return Err(ConfigError::new(key, format!("θ(0) is {} in entry {i}", theta0[i])));
    }
    if theta0.is_empty() {
        return Err(ConfigError::new(key, "θ(0) is empty, so there is nothing to learn"));
    }
    validate_dim(key, theta0.len())
}
