//! The path from the update of a scheduled device to its transmission.
//!
//! Without `radio.wire` the server receives Δ̂ itself. With it devices encode, the server decodes, and only
//! bytes pass between them. Both ends derive the format from their common knowledge of the round
//! ([`Context`](crate::compress::Context)): d, and the granted budget.

use super::{Fleet, Trained};
use crate::base::parallel::prelude::*;
use crate::base::units::{Bits, DeviceId};
use crate::compress::wire::bit_length;
use crate::compress::{BudgetRule, Encoded, Spent};
use crate::error::Error;
use crate::radio::Carried;
use crate::system::device::{Given, Sender};
use crate::system::server::{Body, Scheduled, Upload};

/// The upload of a scheduled device, and the bits that it took.
pub struct Sent {
    pub(super) device: DeviceId,
    /// Δ, with the residual of the device; undefined without error feedback.
    pub(super) update: Vec<f32>,
    /// Δ̂ as the device has it.
    pub(super) own: Encoded,
    pub(super) spent: Spent,
    /// The length of the payload in bits, if there is one.
    wire_bits: Option<u64>,
    pub(super) payload: Vec<u8>,
    given: Given,
}

impl Sent {
    /// The bits that it sends: those of the payload, or by the scheme's count.
    pub fn bits(&self) -> Bits {
        match (&self.given, self.wire_bits) {
            (Given::Payload, Some(bits)) => Bits(bits as f64),
            _ => self.spent.bits,
        }
    }

    /// The part of it that arrives, sent for `airtime`: nothing if it was late or the channel did not carry
    /// it. Silence always arrives.
    pub fn upload_over(&self, carried: &Carried, late: bool) -> Upload<'_> {
        let upload = self.upload();
        let body = match upload.body {
            Body::Silent => Body::Silent,
            _ if late => Body::Late,
            _ if !carried.delivered => Body::Outage,
            body => body,
        };
        // A device that was too late for its turn has sent nothing.
        if late && carried.airtime.0 == 0.0 {
            let (spent, wire_bits) = (Spent { bits: Bits(0.0), ..upload.spent }, upload.wire_bits.map(|_| 0));
            return Upload { body, airtime: Some(carried.airtime), spent, wire_bits, ..upload };
        }
        Upload { body, airtime: Some(carried.airtime), ..upload }
    }

    /// Its arrival over a link that loses nothing within its budget.
    pub fn upload(&self) -> Upload<'_> {
        let body = match &self.given {
            _ if self.spent.level == 0 => Body::Silent,
            Given::Own => Body::Update(&self.own),
            Given::Other(update) => Body::Update(update),
            Given::Payload => Body::Payload(&self.payload),
            Given::Unreadable => Body::Unreadable,
        };
        let Self { device, spent, wire_bits, .. } = *self;
        Upload { device, spent, entries: self.own.entries(), wire_bits, airtime: None, body }
    }
}

impl Fleet {
    /// In round `t` the scheduled devices compress their updates, each within its budget, and send them.
    pub fn send(
        &mut self,
        trained: &mut Trained,
        theta: &[f32],
        scheduled: &[Scheduled],
        t: u64,
    ) -> Result<Vec<Sent>, Error> {
        let devices: Vec<DeviceId> = scheduled.iter().map(|one| one.device).collect();
        let updates = self.updates_of(trained, theta, t, &devices)?;
        let fleet = &*self;
        let send = |(one, update): (&Scheduled, Vec<f32>)| fleet.send_one(one, update, t);
        let mut sent: Vec<Sent> =
            scheduled.par_iter().zip(updates).map(send).collect::<Result<_, Error>>()?;
        if self.wire {
            self.tamper_with_payloads(&mut sent, scheduled, t, theta.len());
            for one in sent.iter_mut().filter(|one| !matches!(one.given, Given::Unreadable)) {
                one.given = Given::Payload;
            }
        }
        Ok(sent)
    }

    /// One device compresses, and encodes if there is a wire or the length of the payload determines the
    /// level.
    fn send_one(&self, scheduled: &Scheduled, mut update: Vec<f32>, t: u64) -> Result<Sent, Error> {
        let Scheduled { device, grant, .. } = *scheduled;
        let sender = Sender { t, device };
        let bytes = self.wire || self.encoder.budget() == BudgetRule::Wire;
        let mut own = self.encoded.take(Encoded::default);
        let mut payload = if bytes { self.payloads.take(Vec::new) } else { Vec::new() };
        let given = |own: &Encoded| match self.adversary.as_ref().and_then(|a| a.tampered(device, own)) {
            None => Given::Own,
            Some(update) if self.is_acceptable(&update) => Given::Other(update),
            Some(_) => Given::Unreadable,
        };
        // Error feedback needs the update beside its transmitted part.
        if !bytes
            && self.feedback.vectors() == 0
            && let Some(spent) = self.encoder.encode_whole(&mut update, grant.budget, sender, &mut own)
        {
            let given = given(&own);
            return Ok(Sent { device, update, own, spent, wire_bits: None, payload, given });
        }
        let out = bytes.then_some(&mut payload);
        let (spent, wire_bits, given) =
            self.encoder.fit(&update, grant.budget, sender, &mut own, out, given)?;
        Ok(Sent { device, update, own, spent, wire_bits, payload, given })
    }

    /// Whether a server accepts such values, with bytes or without.
    fn is_acceptable(&self, update: &Encoded) -> bool {
        self.encoder.compressor().codec().map_or_else(|| update.is_finite(), |codec| codec.accepts(update))
    }

    /// Replaces the bytes of adversarial devices.
    fn tamper_with_payloads(&mut self, sent: &mut [Sent], scheduled: &[Scheduled], t: u64, dim: usize) {
        let (Some(adversary), Some(codec)) = (&mut self.adversary, self.encoder.compressor().codec()) else {
            return;
        };
        let mut payloads: Vec<Vec<u8>> =
            sent.iter_mut().map(|one| std::mem::take(&mut one.payload)).collect();
        let devices: Vec<DeviceId> = scheduled.iter().map(|one| one.device).collect();
        let encoder = &self.encoder;
        let room = |one: &Scheduled| {
            let budget = one.grant.budget;
            codec
                .longest(&encoder.context(dim, budget, Sender { t, device: one.device }))
                .min(budget.0 as u64)
        };
        let room: Vec<u64> = scheduled.iter().map(room).collect();
        adversary.transmit(t, &devices, &room, &mut payloads);
        for (one, payload) in sent.iter_mut().zip(payloads) {
            one.wire_bits = Some(bit_length(&payload));
            one.payload = payload;
        }
    }
}
