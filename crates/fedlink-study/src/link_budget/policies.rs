//! The cost of a round for a policy.

use super::PolicyCost;
use super::probe::norm_at;
use crate::error::Error;
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::DeviceId;
use fedlink::clock::compute::Load;
use fedlink::learn::model::Model;
use fedlink::learn::optimizer::StateMode;
use fedlink::parts::Parts;
use fedlink::radio::{Carried, Links};
use fedlink::record::{Energy, Phases, Training};
use fedlink::schedule::{Ask, Reports};
use fedlink::spec::{BatchSize, ConfigError, Spec};
use fedlink::system::build;
use fedlink::system::clock::Uploads;
use fedlink::system::server::{Call, Scheduled, Server, Upload};
use std::sync::Arc;

/// The rounds that every policy schedules.
pub(super) const POLICY_ROUNDS: u64 = 200;
/// Spread of the drawn norms: standard deviation of their logarithm.
const NORM_SPREAD: f64 = 0.25;

/// The common setting of all policies.
#[derive(Clone, Copy)]
pub(super) struct PolicyStudy<'a> {
    pub spec: &'a Spec,
    pub parts: &'a Parts,
    pub model: &'a dyn Model,
    pub smallest: Option<f64>,
    pub norms: &'a [(f64, f64)],
    pub rounds: u64,
}

impl PolicyStudy<'_> {
    /// The cost of a round for the policy `name`; a policy that the configuration refuses has the reason
    /// instead.
    pub(super) fn cost(&self, name: &str) -> Result<PolicyCost, Error> {
        let refused = |error: &ConfigError| PolicyCost { refused: Some(error.to_string()), ..empty(name) };
        let mut config = self.spec.config().clone();
        config.schedule.policy = name.into();
        let spec = match config.resolve(self.parts) {
            Ok(spec) => spec,
            Err(error) => return Ok(refused(&error)),
        };
        match self.rounds(&spec, name) {
            Err(fedlink::Error::Config(error)) if name != self.spec.schedule.policy => Ok(refused(&error)),
            done => done.map_err(Error::System),
        }
    }

    /// Whether devices that are not candidates train too, because of the state that they keep.
    pub(super) fn everyone_trains(&self) -> Result<bool, ConfigError> {
        let optimizer = self.spec.parts().optimizer.build(&self.spec.scope(), &())?;
        let keeps = self.spec.learn.state == StateMode::Keep && !optimizer.starts().is_empty();
        Ok(keeps || self.spec.facts().feedback.everyone_trains)
    }

    fn rounds(&self, spec: &Spec, name: &str) -> Result<PolicyCost, fedlink::Error> {
        let devices = spec.data.devices as usize;
        let samples = spec.data.samples_per_device;
        let dim = self.model.dim();
        let mut server = Server::of(spec, vec![0.0; dim], Some(vec![samples as usize; devices]))?;
        let batch = match spec.learn.batch {
            BatchSize::Count(batch) => batch as f64,
            BatchSize::Full => samples as f64,
        };
        let load = Load {
            samples: spec.learn.local_steps as f64 * batch,
            flops_per_sample: self.model.flops_per_sample(),
        };
        let radio = server.radio();
        let clock = build::clock(spec, radio, dim, Arc::new(move |_| load))?;
        let everyone = self.everyone_trains()?;
        let mut cost = empty(name);
        (cost.scheduled, cost.airtime) = (vec![0; devices], vec![0.0; devices]);
        let mut spent = vec![0.0; devices];
        // No battery runs empty here: the costs are those of a round in which every device is alive.
        let full = |_: usize| 0.0;
        let rounds = self.rounds;
        let mut seconds = Vec::with_capacity(rounds as usize);
        let (mut sent, mut silent, mut lost, mut late_count) = (0u64, 0u64, 0u64, 0u64);
        let mut asked = 0u64;
        for t in 0..rounds {
            let Links { gains, known, .. } = server.links(t);
            let radio = server.radio();
            let present = clock.present(t, radio, full, &known);
            let call = server.begin(t, known, |device| present.contains(device))?;
            let mut trained = call.candidates.clone();
            if everyone {
                trained = DeviceId::all(devices).filter(|device| present.contains(*device)).collect();
            }
            let mut timing = clock.begin(t, &trained, server.radio());
            let reports = clock.in_time(&mut timing, &call, self.reports(&call, spec.run.seed));
            let scheduled = server.report(reports)?;
            let carry = |one: &Scheduled| server.carry(one, one.grant.budget, gains[one.device.index()]);
            let mut carried: Vec<Carried> =
                scheduled.iter().map(carry).collect::<Result<_, fedlink::Error>>()?;
            let uploads = Uploads::new(&call, &trained, &scheduled, &server.known()?.powers, &full);
            let (round, late) = clock.finish(&timing, &present, &uploads, &mut carried);
            cost.trains += trained.len() as f64;
            for ((one, carried), late) in scheduled.iter().zip(&carried).zip(&late) {
                cost.scheduled[one.device.index()] += 1;
                cost.airtime[one.device.index()] += carried.airtime.0;
                cost.bits += one.grant.budget.0;
                sent += 1;
                silent += u64::from(self.smallest.is_none_or(|smallest| one.grant.budget.0 < smallest));
                lost += u64::from(!carried.delivered);
                late_count += u64::from(*late);
            }
            asked += (call.candidates.len() as u64).max(scheduled.len() as u64);
            if let Some(round) = &round {
                *cost.phases.get_or_insert_default() += round.phases;
                seconds.push(round.phases.total());
                late_count += round.unreported;
                *cost.energy.get_or_insert_default() += round.energy;
                for (device, energy) in &round.devices {
                    spent[device.index()] += energy.total();
                }
            }
            let uploads: Vec<Upload> = scheduled.iter().map(|one| Upload::lost(one.device)).collect();
            server.deliver(&uploads, Training::new(trained.len(), 0.0), round)?;
        }
        let share = |count: u64, all: u64| if all == 0 { 0.0 } else { count as f64 / all as f64 };
        (cost.silent, cost.lost) = (share(silent, sent), share(lost, sent));
        cost.late = share(late_count, asked);
        // A device on mains has no limit.
        let battery = |device| spec.battery_j(device).unwrap_or(f64::INFINITY);
        let mut lives: Vec<f64> = DeviceId::all(devices)
            .zip(&spent)
            .map(|(m, joules)| battery(m) * rounds as f64 / joules)
            .collect();
        lives.sort_by(f64::total_cmp);
        let marks = [lives[0], lives[(devices - 1) / 2], lives[devices - 1]];
        cost.battery_rounds = marks[0].is_finite().then_some(marks);
        cost.trains /= rounds as f64;
        cost.bits /= rounds as f64;
        cost.heard = cost.scheduled.iter().filter(|count| **count > 0).count();
        seconds.sort_by(f64::total_cmp);
        cost.median_round_s = seconds.get(seconds.len() / 2).copied();
        cost.phases = cost.phases.map(|sum| mean_phases(sum, rounds));
        cost.energy = cost.energy.map(|sum| mean_energy(sum, rounds));
        Ok(cost)
    }

    /// The reports of the candidates, drawn as the documentation of the module states.
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
        airtime: Vec::new(),
        bits: 0.0,
        silent: 0.0,
        lost: 0.0,
        late: 0.0,
        phases: None,
        median_round_s: None,
        energy: None,
        battery_rounds: None,
        groups: Vec::new(),
        over_seeds: Vec::new(),
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
