//! The server's side of a run, built from its configuration.

mod clock;
mod radio;

pub use clock::clock;
pub use radio::{link_budget, radio};

use crate::compress::uncompressed::Uncompressed;
use crate::compress::{BudgetRule, Compressor, Context, ErrorFeedback, LevelRule, Scratch};
use crate::config::{Config, ConfigError};
use crate::learn::model::validate_dim;
use crate::learn::rate::Rate;
use crate::memory;
use crate::parts::Parts;
use crate::privacy::Mechanism;
use crate::radio::PayloadMode;
use crate::registry::PartConfig as _;
use crate::schedule::policy::ideal::Ideal;
use crate::schedule::{Policy, ReportCode, Sampling};
use crate::server::aggregate::Aggregator;
use crate::server::optimizer::ServerOptimizer;
use crate::server::{Cap, Clip, Defense, SampleCounts, Server, ServerParts};
use crate::units::Bits;
use std::sync::Arc;

/// `radio.report_floor` if it is left out, bits a symbol.
const REPORT_FLOOR: f64 = 0.1;

/// The server of a run on other people's nodes: `theta` is θ(0), `samples` the training
/// samples of each device.
pub fn server_of(
    config: &Config,
    parts: &Parts,
    theta: Vec<f32>,
    samples: SampleCounts,
) -> Result<Server, ConfigError> {
    check_theta0("theta0", &theta)?;
    let compressor = compressor(config, parts)?;
    let aggregator = config.build::<dyn Aggregator>(&config.learn.aggregate, &())?;
    if config.learn.correction != "none" {
        let problem = format!(
            "is \"{}\", but nodes train by their own code, to which the server adds nothing; write \"none\"",
            config.learn.correction
        );
        return Err(ConfigError::new("learn.correction", problem));
    }
    if aggregator.by_steps() {
        let problem = format!(
            "is \"{}\", but nodes do not report their local steps; write \"mean\" or \"by-size\"",
            config.learn.aggregate
        );
        return Err(ConfigError::new("learn.aggregate", problem));
    }
    server(config, parts, compressor, aggregator, samples, theta)
}

/// The server with its parts.
pub(crate) fn server(
    config: &Config,
    parts: &Parts,
    compressor: Arc<dyn Compressor>,
    aggregator: Box<dyn Aggregator>,
    samples: SampleCounts,
    theta: Vec<f32>,
) -> Result<Server, ConfigError> {
    let policy = parts.build_policy(config)?;
    let (devices, dim) = (config.data.devices, theta.len());
    let numbers = policy.state_numbers(devices, dim as u64);
    memory::check_policy(&config.schedule.policy, numbers, devices, dim)?;
    let defense = &config.defense;
    let feedback = config.build::<dyn ErrorFeedback>(&config.compress.feedback, &())?;
    let cap = Cap {
        devices: config.data.devices,
        k: config.schedule.k,
        rounds: config.run.rounds,
        slack: defense.cap_slack,
    };
    let rate = Rate {
        base: config.learn.server_rate,
        schedule: config.learn.server_rate_schedule,
        rounds: config.run.rounds,
    };
    check_slots(config, &*policy)?;
    let privacy = mechanism(config, policy.sampling());
    Ok(Server::new(ServerParts {
        radio: radio(config, parts, theta.len())?,
        policy,
        policy_name: config.schedule.policy.clone(),
        report_code: report_code(config),
        compressor,
        state_decay: feedback.state_decay(),
        custom_compressor: custom_compressor(config),
        aggregator,
        optimizer: config.build::<dyn ServerOptimizer>(&config.learn.server_optimizer, &())?,
        server_rate: config.learn.server_rate,
        defense: Defense {
            strikes: defense.audit.then_some(defense.strikes as u32),
            clip: defense.clip,
            cap: defense.participation_cap.then_some(cap),
            privacy,
        },
        exact: config.compress.budget == BudgetRule::Formula && config.compress.level == LevelRule::Largest,
        samples,
        seed: config.run.seed,
        theta,
    })
    .with_rate(rate))
}

/// What reports cost, and what is left of them.
fn report_code(config: &Config) -> ReportCode {
    let floor = config.radio.report_floor.unwrap_or(REPORT_FLOOR);
    ReportCode { bits: config.schedule.report_bits as u32, floor }
}

/// Vectors of d numbers that the server keeps of the devices.
pub(crate) fn server_vectors(config: &Config) -> Result<usize, ConfigError> {
    let feedback = config.build::<dyn ErrorFeedback>(&config.compress.feedback, &())?;
    Ok(if feedback.state_decay().is_some() { config.data.devices as usize } else { 0 })
}

/// Refuses coins where the uploads of devices depend on one another all the same.
fn check_slots(config: &Config, policy: &dyn Policy) -> Result<(), ConfigError> {
    if policy.sampling() == Sampling::Other {
        return Ok(());
    }
    let (name, radio) = (&config.schedule.policy, &config.radio);
    if radio.access != "tdma" || radio.mode != PayloadMode::Airtime || config.clock.pipeline {
        let problem = format!(
            "is \"{name}\", which gives every device n/K symbols; it needs radio.access = \"tdma\", \
             radio.mode = \"airtime\" and clock.pipeline = false"
        );
        return Err(ConfigError::new("schedule.policy", problem));
    }
    Ok(())
}

/// The noise of a run; none if there is none.
fn mechanism(config: &Config, sampling: Sampling) -> Option<Mechanism> {
    let Clip::Norm(clip) = config.defense.clip else { return None };
    let share = match sampling {
        Sampling::Other => 1.0 / config.schedule.k as f64,
        Sampling::Poisson { rate } => 1.0 / (rate * config.data.devices as f64),
    };
    let (noise, delta) = (config.privacy.noise, config.privacy.delta);
    (noise > 0.0).then_some(Mechanism { noise, clip, share, delta })
}

/// The name of the compressor, if it is not this library's.
pub(crate) fn custom_compressor(config: &Config) -> Option<String> {
    let scheme = &config.compress.scheme;
    config.custom.contains_key(scheme).then(|| scheme.clone())
}

/// The compressor, if it can do what the rest of the configuration asks of it.
pub fn compressor(config: &Config, parts: &Parts) -> Result<Arc<dyn Compressor>, ConfigError> {
    let compressor: Arc<dyn Compressor> = if sends_everything(config) {
        Arc::new(Uncompressed {})
    } else {
        parts.build_compressor(config)?.into()
    };
    let mut scheme = &config.compress.scheme;
    if sends_everything(config) {
        if *scheme != Config::default().compress.scheme {
            let problem = format!(
                "is \"{scheme}\", which has no effect: schedule.policy = \"{}\" sends updates as they are; \
                 leave it out",
                Ideal::NAME
            );
            return Err(ConfigError::new("compress.scheme", problem));
        }
        scheme = &config.schedule.policy;
    }
    if config.defense.audit && config.custom.contains_key(scheme) {
        let problem = format!("knows what the built-in schemes can send, not \"{scheme}\"; set it to false");
        return Err(ConfigError::new("defense.audit", problem));
    }
    let needs_bytes = [
        (config.radio.wire, "radio.wire", "false"),
        (config.compress.budget == BudgetRule::Wire, "compress.budget", "\"formula\""),
    ];
    for (_, key, instead) in needs_bytes.into_iter().filter(|(asked, ..)| *asked) {
        if compressor.codec().is_none() {
            let problem =
                format!("needs a scheme with bytes, and \"{scheme}\" has none; set it to {instead}");
            return Err(ConfigError::new(key, problem));
        }
    }
    if config.compress.level == LevelRule::Best {
        let probe = Context::new(1, Bits(f64::INFINITY));
        if compressor.best_budget(&[1.0], &probe, &mut Scratch::default()).is_none() {
            let problem = format!(
                "is \"best\", which has no effect with \"{scheme}\": more bits never have less energy there; \
                 set it to \"largest\", or compress.scheme to \"d-sgd\" or \"stc\""
            );
            return Err(ConfigError::new("compress.level", problem));
        }
    }
    Ok(compressor)
}

/// Whether the policy is the one that sends updates as they are.
fn sends_everything(config: &Config) -> bool {
    config.schedule.policy == Ideal::NAME
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
