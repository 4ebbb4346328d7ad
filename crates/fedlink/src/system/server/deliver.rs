//! Uploads at the server: decoded, audited and aggregated into one step of the model.

use super::book::Underpriced;
use super::call::{Call, Decided, Open};
use super::recorded::{details, not_scheduled, record};
use super::{Body, Server, Upload};
use crate::aggregate::{Clip, WINDOW, clip};
use crate::aggregate::{Contribution, Delta, normalize_steps};
use crate::base::buffers::Pool;
use crate::base::parallel::prelude::*;
use crate::base::units::{Airtime, Bits, DeviceId, Power, Shape};
use crate::compress::wire::Coder;
use crate::compress::{Compressor, Context, Encoded, Evidence};
use crate::error::Error;
use crate::learn::correction::AddUpdate;
use crate::radio::access::Grant;
use crate::record::{Arrival, Cost, RoundRecord, Training};
use crate::schedule::{Pick, Schedule, Weight};
use std::sync::Arc;

/// Decodes uploads, on several threads.
pub(super) struct Decoder {
    pub compressor: Arc<dyn Compressor>,
    seed: u64,
    /// The layers of the model; empty if they are not known.
    pub shapes: Vec<Shape>,
    coders: Pool<Coder>,
    decoded: Pool<Encoded>,
}

impl Decoder {
    /// A decoder for a model whose layers are not known.
    pub fn new(compressor: Arc<dyn Compressor>, seed: u64) -> Self {
        Self { compressor, seed, shapes: Vec::new(), coders: Pool::new(), decoded: Pool::new() }
    }

    /// The common knowledge of both ends about an upload of `dim` numbers within `budget`, by round and
    /// device.
    fn context(&self, dim: usize, budget: Bits, who: (u64, DeviceId)) -> Context<'_> {
        Context::new(dim, budget).of(self.seed, who).with_shapes(&self.shapes)
    }

    /// The decoded upload. A payload is decoded from the server's knowledge of the round alone.
    fn read<'a>(&self, upload: &Upload<'a>, context: &Context) -> Received<'a> {
        match upload.body {
            Body::Silent => Received::Nothing(Arrival::Silent),
            Body::Lost => Received::Nothing(Arrival::Lost),
            Body::Outage => Received::Nothing(Arrival::Outage),
            Body::Late => Received::Nothing(Arrival::Late),
            Body::Unreadable => Received::Nothing(Arrival::Undecodable),
            Body::Update(update) => Received::Handed(update),
            Body::Payload(payload) => {
                let mut update = self.decoded.take(Encoded::default);
                let read = self.compressor.codec().map(|codec| {
                    self.coders.with(Coder::default, |coder| codec.read(coder, context, payload, &mut update))
                });
                match read {
                    Some(Ok(())) => Received::Decoded(update),
                    Some(Err(_)) | None => Received::Nothing(Arrival::Undecodable),
                }
            }
        }
    }
}

/// The server's view of an upload.
pub(super) enum Received<'a> {
    Handed(&'a Encoded),
    Decoded(Encoded),
    Nothing(Arrival),
}

impl Received<'_> {
    fn update(&self) -> Result<&Encoded, Arrival> {
        match self {
            Self::Handed(update) => Ok(update),
            Self::Decoded(update) => Ok(update),
            Self::Nothing(arrival) => Err(*arrival),
        }
    }
}

impl Server {
    /// Receives one upload per scheduled device, in their order: θ(t) becomes θ(t+1), and the round is over.
    /// `cost` is its cost in seconds and joules, where these are known.
    pub fn deliver<'a>(
        &mut self,
        uploads: &[Upload<'a>],
        training: Training,
        cost: Option<Cost>,
    ) -> Result<&RoundRecord, Error> {
        let (call, known, decided) = match self.open.take() {
            Some(Open { call, known, decided: Some(decided) }) if decided.waits_for(uploads) => {
                (call, known, decided)
            }
            refused => {
                let problem = match &refused {
                    None => "deliver: no round has begun",
                    Some(Open { decided: None, .. }) => "deliver: no device has reported yet",
                    Some(_) => "deliver: there must be one upload of each scheduled device, in their order",
                };
                self.open = refused;
                return Err(Error::order(problem));
            }
        };
        let (decoder, dim) = (&self.decoder, self.theta.len());
        let read = |(upload, grant): (&Upload<'a>, &Grant)| {
            decoder.read(upload, &decoder.context(dim, grant.budget, (call.t, upload.device)))
        };
        let received: Vec<Received> = uploads.par_iter().zip(&decided.grants).map(read).collect();
        self.note_underpriced(call.t, &received, uploads);
        let arrivals = self.judge(&call, &decided, &received, uploads);
        let weights = self.weights(call.t, &decided.schedule, &arrivals);
        if self.states.is_some() {
            self.update_from_states(call.t, uploads, &received, &arrivals);
        } else {
            self.update(call.t, &received, &arrivals, &weights);
        }
        for ((one, arrival), upload) in received.iter().zip(&arrivals).zip(uploads) {
            if let (Arrival::Used, Ok(update)) = (arrival, one.update()) {
                self.policy.receive(upload.device, update);
            }
        }
        self.correct(call.t, &received, &arrivals, uploads);
        let used =
            decided.schedule.devices().zip(&arrivals).filter(|(_, arrival)| **arrival == Arrival::Used);
        self.aggregator.observe(&used.map(|(device, _)| device).collect::<Vec<DeviceId>>());
        for device in decided.schedule.devices() {
            self.book.devices.note_scheduled(device, call.t);
        }
        for one in received {
            if let Received::Decoded(update) = one {
                self.decoder.decoded.give(update);
            }
        }
        let mut record = record(&call, &known, &decided, uploads, &arrivals, training);
        record.cost = cost;
        if self.log_all || self.policy.observes_all() {
            record.others = not_scheduled(&call, &known, &decided);
        }
        if let Some(notes) = self.notes.take() {
            record.details = details(&self.radio, &known, call.t, notes.decisions());
        }
        let sent = record.transmissions.iter().map(|sent| (sent.device, sent.power, sent.airtime));
        self.radio.settle(&sent.collect::<Vec<(DeviceId, Power, Airtime)>>());
        self.policy.observe(&record);
        self.check_policy(call.t)?;
        self.rounds_done = record.round;
        Ok(self.last.insert(record))
    }

    /// Counts the uploads of a custom compressor that claims fewer bits than the information in its uploads.
    fn note_underpriced(&mut self, t: u64, received: &[Received], uploads: &[Upload]) {
        if !self.spec.parts().scheme.is_custom() {
            return;
        }
        for (one, upload) in received.iter().zip(uploads) {
            let Ok(Encoded::Sparse(update)) = one.update() else { continue };
            let (needed, claimed) = (update.information(self.theta.len()), upload.spent.bits);
            if claimed < needed {
                let (count, first) = &mut self.book.underpriced;
                *count += 1;
                first.get_or_insert(Underpriced {
                    round: t + 1,
                    device: upload.device.0,
                    entries: update.indices.len(),
                    claimed: claimed.0,
                    needed: needed.0,
                });
            }
        }
    }

    /// The arrival of each upload. One that cannot be decoded or fails the audit is a strike.
    fn judge(
        &mut self,
        call: &Call,
        decided: &Decided,
        received: &[Received],
        uploads: &[Upload],
    ) -> Vec<Arrival> {
        let judge = |(i, upload): (usize, &Upload)| {
            let arrival = match received[i].update() {
                Err(arrival) => arrival,
                Ok(update) if self.defense.strikes.is_some() => {
                    let row = decided.reports.index_of(upload.device).unwrap_or_default();
                    let index = call.candidates.iter().position(|device| *device == upload.device);
                    let (dim, budget) = (self.theta.len(), decided.grants[i].budget);
                    let context = self.decoder.context(dim, budget, (call.t, upload.device));
                    let honest = call.asks.iter().zip(decided.reports.row(row)).all(|(&ask, &report)| {
                        let evidence = Evidence {
                            ask,
                            context,
                            alone: call.alone[index.unwrap_or_default()],
                            exact: self.exact,
                            received: update,
                        };
                        evidence.allows(&*self.decoder.compressor, report)
                    });
                    if honest { Arrival::Used } else { Arrival::Flagged }
                }
                Ok(_) => Arrival::Used,
            };
            if matches!(arrival, Arrival::Undecodable | Arrival::Flagged) {
                let strikes = &mut self.book.strikes;
                strikes.resize(strikes.len().max(self.book.devices.len()), 0);
                let count = &mut strikes[upload.device.index()];
                *count = count.saturating_add(1);
            }
            arrival
        };
        uploads.iter().enumerate().map(judge).collect()
    }

    /// The weight of each scheduled device's update. An update that was lost has no weight; one that was
    /// silent, cannot be decoded or fails the audit has its weight and adds nothing.
    fn weights(&self, t: u64, schedule: &Schedule, arrivals: &[Arrival]) -> Vec<f32> {
        let counting: Vec<DeviceId> =
            schedule.devices().zip(arrivals).filter(|(_, a)| **a != Arrival::Lost).map(|(m, _)| m).collect();
        let mut by_rule = self.aggregator.weights_of(&counting, &|i| (self.samples)(counting[i])).into_iter();
        let weight = |(pick, arrival): (&Pick, &Arrival)| {
            let rule = if *arrival == Arrival::Lost { 0.0 } else { by_rule.next().unwrap_or_default() };
            match pick.weight {
                Weight::Rule => rule,
                Weight::Own(weight) => weight as f32,
            }
        };
        let mut weights: Vec<f32> = schedule.picks.iter().zip(arrivals).map(weight).collect();
        if self.aggregator.by_steps() {
            let steps: Vec<u64> =
                schedule.devices().map(|m| (self.steps)(t, m).map_or(1, |steps| steps.count)).collect();
            normalize_steps(&mut weights, &steps);
        }
        weights
    }

    /// θ(t+1) from θ(t) and the updates that arrived and passed the audit.
    fn update(&mut self, t: u64, received: &[Received], arrivals: &[Arrival], weights: &[f32]) {
        let privacy = self.defense.privacy;
        let mut used: Vec<Contribution> = Vec::with_capacity(received.len());
        for ((one, arrival), &weight) in received.iter().zip(arrivals).zip(weights) {
            if let (Arrival::Used, Ok(update)) = (arrival, one.update()) {
                // Under privacy the weight of a device is the same whichever other devices sent.
                let weight = privacy.map_or(weight, |mechanism| mechanism.weight as f32);
                used.push(Contribution { update, weight, factor: 1.0 });
            }
        }
        if self.defense.clip != Clip::Off {
            let norms: Vec<f32> = used.iter().map(|one| one.update.norm()).collect();
            self.book.norms.extend(&norms);
            let old = self.book.norms.len().saturating_sub(WINDOW);
            self.book.norms.drain(..old);
            let limit = self.defense.clip.limit(self.book.norms.make_contiguous());
            used.iter_mut().zip(norms).for_each(|(one, norm)| one.factor = clip::factor(norm, limit));
        }
        let counting = arrivals.iter().filter(|arrival| **arrival != Arrival::Lost).count();
        let mut delta = self.aggregator.aggregate(&used, counting);
        if let (Some(mechanism), Delta::Sum(terms)) = (privacy, &mut delta) {
            // In every round, also in a round without any upload.
            let mut noise = match std::mem::take(&mut self.noise) {
                Encoded::Dense(values) => values,
                _ => vec![0.0; self.theta.len()],
            };
            mechanism.fill(&mut noise, self.spec.run.seed, t);
            self.noise = Encoded::Dense(noise);
            terms.push((&self.noise, 1.0));
        }
        self.optimizer.step(&mut self.theta, &delta, self.rate.at(t) as f32);
    }

    /// The effect of the correction of local steps on the updates that arrived.
    fn correct(&mut self, t: u64, received: &[Received], arrivals: &[Arrival], uploads: &[Upload]) {
        if !self.correction.keeps_state() {
            return;
        }
        let mut updates = Vec::with_capacity(received.len());
        for ((one, arrival), upload) in received.iter().zip(arrivals).zip(uploads) {
            if let (Arrival::Used, Ok(update), Some(steps)) =
                (arrival, one.update(), (self.steps)(t, upload.device))
            {
                let add = move |target: &mut [f32], scale: f32| update.add_to(target, scale);
                updates.push((add, steps.length()));
            }
        }
        let updates: Vec<(AddUpdate, f64)> =
            updates.iter().map(|(add, length)| (add as AddUpdate, *length)).collect();
        self.control.resize(self.theta.len(), 0.0);
        let devices = self.radio.devices();
        self.correction.settle_server(&mut self.control, &updates, devices, &mut self.theta);
    }

    /// θ(t+1) from θ(t) and h_m of all devices, after the updates that arrived and passed the audit have
    /// changed some.
    fn update_from_states(
        &mut self,
        t: u64,
        uploads: &[Upload],
        received: &[Received],
        arrivals: &[Arrival],
    ) {
        let Some(states) = &mut self.states else { return };
        let dim = self.theta.len();
        for ((upload, one), arrival) in uploads.iter().zip(received).zip(arrivals) {
            if let (Arrival::Used, Ok(update)) = (arrival, one.update()) {
                states.advance(upload.device, t, update, dim);
                if self.defense.clip != Clip::Off {
                    self.book.norms.push_back(states.norm(upload.device));
                }
            }
        }
        let devices = self.radio.devices();
        let weights = self.aggregator.weights(devices, &|m| (self.samples)(DeviceId(m as u32)));
        let mut all = states.contributions(t, &weights);
        if self.defense.clip != Clip::Off {
            let old = self.book.norms.len().saturating_sub(WINDOW);
            self.book.norms.drain(..old);
            let limit = self.defense.clip.limit(self.book.norms.make_contiguous());
            for one in &mut all {
                one.factor *= clip::factor(one.factor * one.update.norm(), limit);
            }
        }
        let delta = self.aggregator.aggregate(&all, devices);
        self.optimizer.step(&mut self.theta, &delta, self.rate.at(t) as f32);
    }
}
