//! Real nodes: their messages, their samples, and the states that the server shares with them.

use super::call::Decided;
use super::{Body, Server, Upload};
use crate::base::units::{Bits, DeviceId};
use crate::compress::wire::bit_length;
use crate::compress::{Encoded, ErrorFeedback, Spent, plain};
use crate::error::Error;
use crate::parts::parts_with;
use crate::record::{Arrival, Training};
use crate::system::device;
use std::sync::atomic::Ordering;

/// The message of a node as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The sender.
    pub device: DeviceId,
    /// The bytes; none if its budget held nothing.
    pub payload: Option<&'a [u8]>,
    /// The part of its budget that the node spent, by its own account.
    pub spent: Spent,
    /// Entries of Δ̂, by its own account.
    pub entries: usize,
}

impl<'a> Message<'a> {
    /// The message that a node sent, as it arrives.
    pub fn of(device: DeviceId, sent: &'a device::Message) -> Self {
        let payload = sent.payload.as_deref();
        Self { device, payload, spent: sent.spent, entries: sent.own.entries() }
    }

    /// The upload of a node that was granted `budget`; `decoded` is the content of its bytes if the scheme
    /// has no codec.
    fn upload(&self, budget: Bits, dim: usize, has_codec: bool, decoded: Option<&'a Encoded>) -> Upload<'a> {
        let Spent { bits, level } = self.spent;
        let within = bits.0 >= 0.0 && bits.0 <= budget.0;
        let body = match (self.payload, decoded) {
            (None, _) if level == 0 => Body::Silent,
            (Some(payload), _) if within && level > 0 && has_codec => Body::Payload(payload),
            (Some(_), Some(update)) if within && level > 0 => Body::Update(update),
            _ => Body::Unreadable,
        };
        let spent = match body {
            Body::Silent => Spent::default(),
            _ if within => self.spent,
            _ => Spent { bits: Bits(0.0), level },
        };
        let wire_bits = self.payload.map(bit_length);
        Upload { device: self.device, spent, entries: self.entries.min(dim), wire_bits, airtime: None, body }
    }
}

impl Server {
    /// Takes the messages of nodes, in any order. A scheduled device without a message is lost. Bytes
    /// are decoded by the configured scheme; a claim of more bits than granted is treated as bytes that
    /// cannot be decoded.
    pub fn deliver_messages(
        &mut self,
        messages: &[Message],
        training: Training,
    ) -> Result<Vec<Arrival>, Error> {
        let decided = self.open.as_ref().and_then(|open| open.decided.as_ref());
        let Some(Decided { schedule, grants, .. }) = decided else {
            return Err(Error::order("deliver: no device has reported yet"));
        };
        if messages.iter().any(|message| !schedule.devices().any(|device| device == message.device)) {
            return Err(Error::order("deliver: there is an upload of a device that was not scheduled"));
        }
        let granted: Vec<(DeviceId, Bits)> =
            schedule.devices().zip(grants).map(|(device, grant)| (device, grant.budget)).collect();
        let (dim, has_codec) = (self.theta.len(), self.decoder.compressor.codec().is_some());
        let of = |device: DeviceId| messages.iter().find(|message| message.device == device);
        // The bytes of a scheme without a codec are decoded here.
        let decoded: Vec<Option<Encoded>> = granted
            .iter()
            .map(|(device, _)| {
                of(*device)?.payload.filter(|_| !has_codec).and_then(|bytes| plain::read(bytes, dim))
            })
            .collect();
        let mut uploads = Vec::with_capacity(granted.len());
        for ((device, budget), decoded) in granted.iter().zip(&decoded) {
            let upload = of(*device).map(|message| message.upload(*budget, dim, has_codec, decoded.as_ref()));
            uploads.push(upload.unwrap_or_else(|| Upload::lost(*device)));
        }
        let record = self.deliver(&uploads, training, None)?;
        Ok(record.transmissions.iter().map(|sent| sent.arrival).collect())
    }

    /// Sets the training samples of a device, at least 1, which nodes may report as late as with their norm.
    /// A checkpoint does not contain them.
    pub fn set_samples(&self, device: DeviceId, samples: usize) {
        if let Some(count) = self.given_samples.get(device.index()) {
            count.store(samples.max(1), Ordering::Relaxed);
        }
    }

    /// Resets h_m of a device that has lost its own: both sides start from zero again.
    pub fn forget(&mut self, device: DeviceId) -> Result<(), Error> {
        let states = self.states.as_mut().filter(|_| device.index() < self.radio.devices());
        let states = states.ok_or_else(|| {
            let with_states = parts_with::<dyn ErrorFeedback>(|facts| facts.state_decay.is_some());
            let problem =
                format!("forget: the server keeps no state of such a device; it does with {with_states}");
            Error::Order(problem.into())
        })?;
        states.forget(device);
        Ok(())
    }

    /// The round, from 1, of the last upload in h_m, 0 if there is none; none if the server keeps no h_m.
    pub fn acknowledged(&self, device: DeviceId) -> Option<u64> {
        self.states.as_ref().map(|states| states.round(device))
    }

    /// h_m of a device, as it was after its last upload; none if it has none.
    pub fn device_state(&self, device: DeviceId) -> Option<&[f32]> {
        self.states.as_ref()?.state(device)
    }
}
