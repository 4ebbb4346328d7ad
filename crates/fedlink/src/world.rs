//! All parties of a run, built from its configuration.

use crate::adversary::{Adversary, Attack};
use crate::clock::compute::Load;
use crate::compress::ErrorFeedback;
use crate::config::{BatchSize, Config, ConfigError};
use crate::error::Error;
use crate::fleet::{Encoder, Fleet, FleetParts, Keeps};
use crate::genie;
use crate::learn::correction::Correction;
use crate::learn::inputs::Inputs;
use crate::learn::local_training::LocalTraining;
use crate::learn::model::Model;
use crate::learn::optimizer::Optimizer;
use crate::learn::rate::Rate;
use crate::learn::steps::StepCounts;
use crate::learn::task::{Task, Work};
use crate::learn::{DescentOptions, ModelTask};
use crate::memory;
use crate::parts::Parts;
use crate::round::World;
use crate::schedule::{Facts, LabelCounts};
use crate::server::aggregate::Aggregator;
use crate::server::{SampleCounts, StepsOf};
use crate::session::Session;
use crate::setup::{check_theta0, clock, compressor, server, server_vectors};
use crate::units::DeviceId;
use std::sync::Arc;

impl World {
    /// The run that `config` describes, learning on a data set or a custom task, with custom parts where it
    /// names them.
    pub fn new(config: &Config, work: impl Into<Work>, parts: &Parts) -> Result<Self, Error> {
        let work = work.into();
        let config = described(config, &work, parts);
        config.validate()?;
        memory::check(config.data.devices, 0, 0)?;
        if config.run.fairness {
            check_class_table(&config, &work)?;
        }
        let task = task(&config, work, parts)?;
        let theta = task.theta0();
        check_theta0("task", &theta)?;
        let compressor = compressor(&config, parts)?;
        let aggregator = config.build::<dyn Aggregator>(&config.learn.aggregate, &())?;
        let correction: Arc<dyn Correction> =
            config.build::<dyn Correction>(&config.learn.correction, &())?.into();
        check_steps(&config, &*task, aggregator.by_steps())?;
        let devices = config.data.devices as usize;
        // Refused before anything of that size is made.
        let own = if correction.keeps_state() { devices.saturating_add(3) } else { 0 };
        memory::check(config.data.devices, theta.len(), own.saturating_add(2))?;
        let mut fleet = Fleet::new(FleetParts {
            task: Arc::clone(&task),
            devices,
            encoder: Encoder::new(&config, Arc::clone(&compressor)).with_shapes(task.shapes()),
            feedback: config.build::<dyn ErrorFeedback>(&config.compress.feedback, &())?,
            wire: config.radio.wire,
            by_size: aggregator.by_size(),
            adversary: adversary(&config)?,
        })
        .with_correction(Arc::clone(&correction), devices, theta.len());
        // The model, its aggregate, the noise on it, and what the devices keep and the server of them.
        let own = 2 + usize::from(config.privacy.noise > 0.0);
        let kept = fleet.state_vectors().saturating_add(server_vectors(&config)?);
        memory::check(config.data.devices, theta.len(), kept.saturating_add(own))?;
        // The model, and what is broadcast with it.
        let broadcast = theta.len().saturating_mul(1 + correction.broadcast_vectors());
        let steps = Arc::clone(&task);
        let steps_of: StepsOf = Arc::new(move |t, device| steps.local_steps(t, device));
        let work = work_of(&config, &task);
        let shapes = task.shapes();
        let labeled = Arc::clone(&task);
        let samples: SampleCounts = Arc::new(move |device| task.samples(device));
        let mut server = server(&config, parts, compressor, aggregator, samples, theta)?
            .with_correction(correction, steps_of);
        server.set_shapes(shapes);
        if let Some(genie) = server.genie() {
            genie::check(genie, config.data.devices, config.schedule.k, fleet.task())?;
            fleet.keep(Keeps::All);
            // The updates, and what is sent of each.
            let vectors = fleet.state_vectors().saturating_add(3 * config.data.devices as usize);
            memory::check(config.data.devices, server.theta().len(), vectors)?;
        }
        // A device that is scheduled whose update was dropped would have to train again. Equal reports of few
        // bits go to the larger gain, whatever the norms are.
        let by_report = server.selection().largest_reports && config.schedule.report_bits == 0;
        if server.genie().is_none() && !by_report {
            fleet.keep(Keeps::WhatFits);
        }
        let clock = clock(&config, parts, &server.radio, broadcast, work)?;
        let labels: LabelCounts = Arc::new(move |device| labeled.label_counts(device));
        server.inform(Facts { train_s: clock.expected_s(), labels: Some(labels) });
        if config.clock.pipeline && !server.asks().is_empty() {
            let problem = format!(
                "sends before all have trained, but schedule.policy = \"{}\" selects by what they report; \
                 set it to false",
                config.schedule.policy
            );
            return Err(ConfigError::new("clock.pipeline", problem).into());
        }
        Ok(Self { session: Session::new(config, server), fleet, clock })
    }
}

/// The configuration as it is recorded: custom parts declared, and of a custom task no data set
/// that is never used.
fn described(config: &Config, work: &Work, parts: &Parts) -> Config {
    let mut config = config.clone();
    parts.declare(&mut config);
    if let Work::Custom(task) = work {
        let name = task.name();
        for key in [
            &mut config.data.dataset,
            &mut config.data.partition,
            &mut config.learn.model,
            &mut config.learn.optimizer,
        ] {
            key.clone_from(&name);
        }
        config.custom.insert(name, "task".into());
    }
    config
}

/// Refuses a table of devices by classes that is beyond the machine's memory.
fn check_class_table(config: &Config, work: &Work) -> Result<(), ConfigError> {
    let Work::Dataset(dataset) = work else { return Ok(()) };
    let devices = config.data.devices;
    memory::check(devices, dataset.classes, devices as usize).map_err(|_| {
        let problem = format!(
            "keeps how many samples of {} classes each of {devices} devices has, which is more than this \
             machine's memory; set it to false, or data.devices to a smaller number",
            dataset.classes
        );
        ConfigError::new("run.fairness", problem)
    })
}

/// What one local training of a device processes: τ batches.
fn work_of(config: &Config, task: &Arc<dyn Task>) -> Arc<dyn Fn(DeviceId) -> Load + Send + Sync> {
    let (steps, batch) = (step_counts(config), config.learn.batch);
    let flops_per_sample = task.flops_per_sample();
    let task = Arc::clone(task);
    Arc::new(move |device| {
        let batch = match batch {
            BatchSize::Count(batch) => batch as f64,
            BatchSize::Full => task.samples(device) as f64,
        };
        Load { samples: steps.of(device) as f64 * batch, flops_per_sample }
    })
}

/// How many local steps each device takes.
fn step_counts(config: &Config) -> StepCounts {
    let learn = &config.learn;
    StepCounts { max: learn.local_steps, min: learn.local_steps_min, seed: config.run.seed }
}

/// What needs to know of local steps is refused for a task that does not tell.
fn check_steps(config: &Config, task: &dyn Task, by_steps: bool) -> Result<(), ConfigError> {
    if task.local_steps(0, DeviceId(0)).is_some() {
        return Ok(());
    }
    let (correction, aggregate) = (&config.learn.correction, &config.learn.aggregate);
    let name = task.name();
    if correction != "none" {
        let problem = format!(
            "is \"{correction}\", but the task {name} does not add corrections to its gradients; write \
             \"none\", or let the task tell its local steps"
        );
        return Err(ConfigError::new("learn.correction", problem));
    }
    if by_steps {
        let problem = format!(
            "is \"{aggregate}\", but the task {name} does not tell its local steps; write \"mean\" or \
             \"by-size\""
        );
        return Err(ConfigError::new("learn.aggregate", problem));
    }
    Ok(())
}

fn adversary(config: &Config) -> Result<Option<Adversary>, ConfigError> {
    let attack = config.build::<dyn Attack>(&config.adversary.kind, &())?;
    let devices = config.data.devices as usize;
    Ok(Adversary::new(devices, config.adversary.share, config.run.seed, attack))
}

/// What the devices learn.
fn task(config: &Config, work: Work, parts: &Parts) -> Result<Arc<dyn Task>, ConfigError> {
    let dataset = match work {
        Work::Custom(task) => {
            let mut devices = DeviceId::all(config.data.devices as usize);
            if let Some(device) = devices.find(|device| task.samples(*device) == 0) {
                let problem =
                    format!("{} has no samples on device {device}; each needs at least one", task.name());
                return Err(ConfigError::new("task", problem));
            }
            return Ok(task);
        }
        Work::Dataset(dataset) => dataset,
    };
    let model = config.build::<dyn Model>(&config.learn.model, &dataset)?;
    memory::check(config.data.devices, model.dim(), 2)?;
    let inputs = if model.takes_non_zeros() { Inputs::new } else { Inputs::dense };
    let training = LocalTraining {
        model,
        inputs: inputs(Arc::clone(&dataset), config.data.scaling),
        optimizer: config.build::<dyn Optimizer>(&config.learn.optimizer, &())?,
        steps: step_counts(config),
        batch: config.learn.batch,
        rate: Rate { base: config.rate()?, schedule: config.learn.rate_schedule, rounds: config.run.rounds },
        options: DescentOptions {
            weight_decay: config.learn.weight_decay,
            clip: if config.learn.gradient_clip > 0.0 { config.learn.gradient_clip } else { f64::INFINITY },
        },
        seed: config.run.seed,
    };
    let partition = parts.build_partition(config, &dataset)?;
    Ok(Arc::new(ModelTask::new(dataset, partition, training, config.learn.init, config.learn.state)))
}
