//! A simulation, built from its configuration.

use super::server::{ServerMaterial, check_theta0, server_vectors};
use super::{clock, compressor};
use crate::adversary::Adversary;
use crate::aggregate::Aggregator;
use crate::base::memory;
use crate::base::units::DeviceId;
use crate::clock::compute::Load;
use crate::data::partition::Grouped;
use crate::error::Error;
use crate::learn::correction::Correction;
use crate::learn::inputs::Inputs;
use crate::learn::local_training::LocalTraining;
use crate::learn::rate::Rate;
use crate::learn::steps::StepCounts;
use crate::learn::task::{Task, Work};
use crate::learn::{DescentOptions, ModelTask};
use crate::parts::{Parts, parts_with};
use crate::schedule::{Facts, LabelCounts};
use crate::spec::{BatchSize, Config, ConfigError, Spec};
use crate::system::device::Encoder;
use crate::system::fleet::{Fleet, FleetParts, Keeps};
use crate::system::genie;
use crate::system::server::{SampleCounts, StepsOf};
use crate::system::simulation::Simulation;
use std::borrow::Borrow;
use std::sync::Arc;

impl Simulation {
    /// Prepares the run.
    pub fn new(spec: impl Borrow<Spec>) -> Result<Self, Error> {
        let spec = spec.borrow();
        let work = spec.work().ok_or_else(no_work)?;
        memory::check(spec.data.devices, 0, 0)?;
        if spec.run.fairness {
            check_class_table(spec, work)?;
        }
        let task = task(spec, work)?;
        let theta = task.theta0();
        check_theta0("task", &theta)?;
        let compressor = compressor(spec)?;
        let aggregator = spec.parts().aggregate.build(&spec.scope(), &())?;
        let correction: Arc<dyn Correction> = spec.parts().correction.build(&spec.scope(), &())?.into();
        check_steps(spec, &*task, aggregator.by_steps())?;
        let devices = spec.data.devices as usize;
        // Refused before anything of that size is made.
        let own = if correction.keeps_state() { devices.saturating_add(3) } else { 0 };
        memory::check(spec.data.devices, theta.len(), own.saturating_add(2))?;
        let mut fleet = Fleet::new(FleetParts {
            task: Arc::clone(&task),
            devices,
            encoder: Encoder::new(spec, Arc::clone(&compressor)).with_shapes(task.shapes()),
            feedback: spec.parts().feedback.build(&spec.scope(), &())?,
            wire: spec.radio.wire,
            by_size: aggregator.by_size(),
            adversary: adversary(spec)?,
        })
        .with_correction(Arc::clone(&correction), devices, theta.len());
        // The model, its aggregate, its noise, and the states of the devices and of the server.
        let own = 2 + usize::from(spec.privacy.noise > 0.0);
        let kept = fleet.state_vectors().saturating_add(server_vectors(spec));
        memory::check(spec.data.devices, theta.len(), kept.saturating_add(own))?;
        // The model, and the vectors that are broadcast with it.
        let broadcast = theta.len().saturating_mul(1 + correction.broadcast_vectors());
        let [stepping, sampled, labeled] = std::array::from_fn(|_| Arc::clone(&task));
        let steps: StepsOf = Arc::new(move |t, device| stepping.local_steps(t, device));
        let samples: SampleCounts = Arc::new(move |device| sampled.samples(device));
        let given_samples = Arc::default();
        let material =
            ServerMaterial { compressor, aggregator, correction, steps, samples, given_samples, theta };
        let mut server = material.server(spec)?.with_shapes(task.shapes());
        if let Some(genie) = server.genie() {
            genie::check(genie, spec, fleet.task())?;
            fleet.keep(Keeps::All);
            // The updates, and the transmitted part of each.
            let vectors = fleet.state_vectors().saturating_add(3 * spec.data.devices as usize);
            memory::check(spec.data.devices, server.theta().len(), vectors)?;
        }
        // A scheduled device whose update was dropped would have to train again. If reports of few bits are
        // equal, the larger gain decides, whatever the norms are.
        let by_report = server.selection().largest_reports && spec.schedule.report_bits == 0;
        if server.genie().is_none() && !by_report {
            fleet.keep(Keeps::WhatFits);
        }
        let clock = clock(spec, server.radio(), broadcast, work_of(spec, &task))?;
        let labels: LabelCounts = Arc::new(move |device| labeled.label_counts(device));
        server.inform(Facts { train_s: clock.expected_s(), labels: Some(labels) });
        Ok(Self::with_parties(server, fleet, clock))
    }

    /// Resolves a configuration, with a data set or a custom [task](crate::learn::task::Task), and prepares
    /// the run.
    pub fn of(config: &Config, work: impl Into<Work>) -> Result<Self, Error> {
        Self::with_parts(config, work, &Parts::default())
    }

    /// As [`Simulation::of`], with custom parts for the names that `config` chooses.
    pub fn with_parts(config: &Config, work: impl Into<Work>, parts: &Parts) -> Result<Self, Error> {
        Self::new(config.resolve_on(work, parts)?)
    }
}

/// The error of a run without a data set or a task.
fn no_work() -> ConfigError {
    let problem = "is named, and the run has no data; give it with Config::on, Spec::with_work or the \
                   builder's \
                   dataset";
    ConfigError::new("data.dataset", problem)
}

/// Refuses a table of devices by classes that is beyond the machine's memory.
fn check_class_table(spec: &Spec, work: &Work) -> Result<(), ConfigError> {
    let Work::Dataset(dataset) = work else { return Ok(()) };
    let devices = spec.data.devices;
    memory::check(devices, dataset.classes, devices as usize).map_err(|_| {
        let problem = format!(
            "keeps the numbers of samples of {} classes for {devices} devices, which exceed this \
             machine's memory; set it to false, or data.devices to a smaller number",
            dataset.classes
        );
        ConfigError::new("run.fairness", problem)
    })
}

/// The load of one local training of a device: τ batches.
fn work_of(spec: &Spec, task: &Arc<dyn Task>) -> Arc<dyn Fn(DeviceId) -> Load + Send + Sync> {
    let (steps, batch) = (step_counts(spec), spec.learn.batch);
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

/// The number of local steps of each device.
fn step_counts(spec: &Spec) -> StepCounts {
    let learn = &spec.learn;
    StepCounts { max: learn.local_steps, min: learn.local_steps_min, seed: spec.run.seed }
}

/// Rejects parts that need the number of local steps, if the task does not state it.
fn check_steps(spec: &Spec, task: &dyn Task, by_steps: bool) -> Result<(), ConfigError> {
    if task.local_steps(0, DeviceId(0)).is_some() {
        return Ok(());
    }
    let (correction, aggregate) = (&spec.learn.correction, &spec.learn.aggregate);
    let name = task.name();
    if spec.facts().correction.corrects {
        let problem = format!(
            "is \"{correction}\", but the task {name} makes its local steps by code of its own, so that the \
             correction of the gradient of each step cannot be applied from outside; write {} and correct \
             the gradients in the task, or use keys of the server in its place: compress.feedback, \
             learn.server_optimizer (a task in Rust may add Job::adjustment to its gradients and define \
             Task::local_steps)",
            parts_with::<dyn Correction>(|facts| !facts.corrects)
        );
        return Err(ConfigError::new("learn.correction", problem));
    }
    if by_steps {
        let problem = format!(
            "is \"{aggregate}\", but the task {name} does not state its local steps; write {}",
            parts_with::<dyn Aggregator>(|facts| !facts.by_steps)
        );
        return Err(ConfigError::new("learn.aggregate", problem));
    }
    Ok(())
}

fn adversary(spec: &Spec) -> Result<Option<Adversary>, ConfigError> {
    let attack = spec.parts().attack.build(&spec.scope(), &())?;
    let devices = spec.data.devices as usize;
    Ok(Adversary::new(devices, spec.adversary.share, spec.run.seed, attack))
}

/// The task of the devices.
fn task(spec: &Spec, work: &Work) -> Result<Arc<dyn Task>, ConfigError> {
    let dataset = match work {
        Work::Custom(task) => {
            let mut devices = DeviceId::all(spec.data.devices as usize);
            if let Some(device) = devices.find(|device| task.samples(*device) == 0) {
                let problem =
                    format!("{} has no samples on device {device}; each needs at least one", task.name());
                return Err(ConfigError::new("task", problem));
            }
            return Ok(Arc::clone(task));
        }
        Work::Dataset(dataset) => Arc::clone(dataset),
    };
    let model = spec.parts().model.build(&spec.scope(), &dataset)?;
    memory::check(spec.data.devices, model.dim(), 2)?;
    let inputs = if model.takes_non_zeros() { Inputs::new } else { Inputs::dense };
    let training = LocalTraining {
        model,
        inputs: inputs(Arc::clone(&dataset), spec.data.scaling),
        optimizer: spec.parts().optimizer.build(&spec.scope(), &())?,
        steps: step_counts(spec),
        batch: spec.learn.batch,
        rate: Rate { base: spec.rate(), schedule: spec.learn.rate_schedule, rounds: spec.run.rounds },
        options: DescentOptions {
            weight_decay: spec.learn.weight_decay,
            clip: if spec.learn.gradient_clip > 0.0 { spec.learn.gradient_clip } else { f64::INFINITY },
        },
        seed: spec.run.seed,
    };
    let mut partition = spec.parts().partition.build(&spec.scope(), &dataset)?;
    if let (Some(classes), Some(sizes)) = (&spec.data.group_classes, &spec.radio.group_sizes) {
        partition = Box::new(Grouped::new(partition, classes, sizes, &spec.scope(), &dataset)?);
    }
    Ok(Arc::new(ModelTask::new(dataset, partition, training, spec.learn.init, spec.learn.state)))
}
