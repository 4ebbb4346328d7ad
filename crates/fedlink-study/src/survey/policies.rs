//! What a round costs by a policy.

use super::PolicyCost;
use super::gauge::norm_at;
use crate::error::Error;
use fedlink::clock::compute::Load;
use fedlink::config::{BatchSize, Config, ConfigError};
use fedlink::learn::model::Model;
use fedlink::learn::optimizer::{Optimizer, StateMode};
use fedlink::parts::Parts;
use fedlink::radio::Carried;
use fedlink::record::{Energy, Phases, Training};
use fedlink::registry::find;
use fedlink::rng::{Purpose, stream};
use fedlink::schedule::{Ask, Reports};
use fedlink::server::{Call, Upload};
use fedlink::session::Session;
use fedlink::setup;
use fedlink::units::DeviceId;
use std::sync::Arc;

/// Rounds that every policy schedules.
pub(super) const POLICY_ROUNDS: u64 = 200;
/// Spread of the drawn norms: standard deviation of their logarithm.
const NORM_SPREAD: f64 = 0.25;

/// What drives the policies.
pub(super) struct Driven<'a> {
    pub config: &'a Config,
    pub parts: &'a Parts,
    pub model: &'a dyn Model,
    pub smallest: Option<f64>,
    pub norms: &'a [(f64, f64)],
    pub rounds: u64,
}

impl Driven<'_> {
    /// What a round costs by the policy called `name`; one that this configuration does not allow says why.
    pub(super) fn cost(&self, name: &str) -> Result<PolicyCost, Error> {
        let mut config = self.config.clone();
        config.schedule.policy = name.into();
        let refused = |error: &ConfigError| PolicyCost { refused: Some(error.to_string()), ..empty(name) };
        if let Err(error) = config.validate() {
            return Ok(refused(&error));
        }
        match self.rounds(&config, name) {
            Err(fedlink::Error::Config(error)) if name != self.config.schedule.policy => Ok(refused(&error)),
            done => done.map_err(Error::System),
        }
    }

    /// Rounds that every policy schedules.
    pub(super) fn policy_rounds(&self) -> u64 {
        self.rounds
    }

    /// Whether a device that is no candidate trains too, for the state that it keeps.
    pub(super) fn everyone_trains(&self) -> Result<bool, ConfigError> {
        let Config { learn, compress, .. } = self.config;
        let own = self.config.own_table("learn", &learn.optimizer);
        let optimizer = find::<dyn Optimizer>(&learn.optimizer)?.build(own, &self.config.scope(), &())?;
        let keeps = learn.state == StateMode::Keep && !optimizer.starts().is_empty();
        Ok(keeps || compress.feedback == "always")
    }

    fn rounds(&self, config: &Config, name: &str) -> Result<PolicyCost, fedlink::Error> {
        let devices = config.data.devices as usize;
        let samples = config.data.samples_per_device;
        let dim = self.model.dim();
        let mut session =
            Session::of(config, self.parts, vec![0.0; dim], Some(vec![samples as usize; devices]))?;
        let batch = match config.learn.batch {
            BatchSize::Count(batch) => batch as f64,
            BatchSize::Full => samples as f64,
        };
        let load = Load {
            samples: config.learn.local_steps as f64 * batch,
            flops_per_sample: self.model.flops_per_sample(),
        };
        let radio = &session.server().radio;
        let clock = setup::clock(config, self.parts, radio, dim, Arc::new(move |_| load))?;
        if config.clock.pipeline && !session.server().asks().is_empty() {
            let problem = "sends before all have trained, but this policy selects by what they report";
            return Err(ConfigError::new("clock.pipeline", problem).into());
        }
        let everyone = self.everyone_trains()?;
        let mut cost = empty(name);
        cost.scheduled = vec![0; devices];
        let mut spent = vec![0.0; devices];
        let rounds = self.policy_rounds();
        let mut seconds = Vec::with_capacity(rounds as usize);
        let (mut sent, mut silent, mut lost, mut late_count) = (0u64, 0u64, 0u64, 0u64);
        for t in 0..rounds {
            let links = session.links(t);
            let radio = &session.server().radio;
            let present = clock.present(t, radio, |m| spent[m], &links.known);
            let call = session.begin(t, links.known.clone(), |device| present.contains(device))?;
            let mut trained = call.candidates.clone();
            if everyone {
                trained = DeviceId::all(devices).filter(|device| present.contains(*device)).collect();
            }
            let timing = clock.begin(t, &trained, &session.server().radio);
            let reports = clock.in_time(&timing, &call, self.reports(&call, config.run.seed));
            let scheduled = session.report(reports)?;
            let radio = &session.server().radio;
            let carried: Vec<Carried> = scheduled
                .iter()
                .map(|one| radio.carry_of(&one.band, t, one.device, &one.grant, &links))
                .collect();
            let (round, late) =
                clock.finish(&timing, &call, &trained, &scheduled, &carried, &links.known.powers);
            cost.trains += trained.len() as f64;
            for ((one, carried), late) in scheduled.iter().zip(&carried).zip(&late) {
                cost.scheduled[one.device.index()] += 1;
                cost.bits += one.grant.budget.0;
                sent += 1;
                silent += u64::from(self.smallest.is_none_or(|smallest| one.grant.budget.0 < smallest));
                lost += u64::from(!carried.delivered);
                late_count += u64::from(*late);
            }
            if let Some(round) = &round {
                *cost.phases.get_or_insert_default() += round.phases;
                seconds.push(round.phases.total());
                *cost.energy.get_or_insert_default() += round.energy;
                for (device, energy) in &round.devices {
                    spent[device.index()] += energy.total();
                }
            }
            let uploads: Vec<Upload> = scheduled.iter().map(|one| Upload::lost(one.device)).collect();
            session.deliver(&uploads, Training::new(trained.len(), 0.0), round)?;
        }
        let share = |count: u64| if sent == 0 { 0.0 } else { count as f64 / sent as f64 };
        (cost.silent, cost.lost, cost.late) = (share(silent), share(lost), share(late_count));
        cost.trains /= rounds as f64;
        cost.bits /= rounds as f64;
        cost.heard = cost.scheduled.iter().filter(|count| **count > 0).count();
        seconds.sort_by(f64::total_cmp);
        cost.median_round_s = seconds.get(seconds.len() / 2).copied();
        cost.phases = cost.phases.map(|sum| mean_phases(sum, rounds));
        cost.energy = cost.energy.map(|sum| mean_energy(sum, rounds));
        Ok(cost)
    }

    /// What the candidates report: drawn, see the module.
    fn reports(&self, call: &Call, seed: u64) -> Reports {
        let mut values = Vec::with_capacity(call.candidates.len() * call.asks.len());
        for (device, alone) in call.candidates.iter().zip(&call.alone) {
            let mut rng = stream(seed, Purpose::Schedule, call.t, u64::MAX - u64::from(device.0));
            let norm = libm::exp(NORM_SPREAD * rng.normal());
            for ask in &call.asks {
                let value =
                    if *ask == Ask::CompressedNorm { norm * norm_at(self.norms, alone.0) } else { norm };
                values.push(value as f32);
            }
        }
        Reports::new(call.candidates.clone(), call.asks.len(), values)
    }
}

fn empty(name: &str) -> PolicyCost {
    PolicyCost {
        policy: name.into(),
        refused: None,
        trains: 0.0,
        heard: 0,
        scheduled: Vec::new(),
        bits: 0.0,
        silent: 0.0,
        lost: 0.0,
        late: 0.0,
        phases: None,
        median_round_s: None,
        energy: None,
    }
}

fn mean_phases(sum: Phases, rounds: u64) -> Phases {
    let mean = |total: f64| total / rounds as f64;
    let Phases { down_s, train_s, report_s, up_s } = sum;
    Phases { down_s: mean(down_s), train_s: mean(train_s), report_s: mean(report_s), up_s: mean(up_s) }
}

fn mean_energy(sum: Energy, rounds: u64) -> Energy {
    let mean = |total: f64| total / rounds as f64;
    let Energy { compute_j, report_j, transmit_j, receive_j, idle_j } = sum;
    Energy {
        compute_j: mean(compute_j),
        report_j: mean(report_j),
        transmit_j: mean(transmit_j),
        receive_j: mean(receive_j),
        idle_j: mean(idle_j),
    }
}
