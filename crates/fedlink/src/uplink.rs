//! From the update of a scheduled device to what the server has of it.
//!
//! Without `radio.wire` the server is handed Δ̂ itself. With it devices encode, the server decodes, and nothing but bytes
//! lies between them. Both ends take the format from the round: d, and the largest q that the budget holds by the
//! scheme's formula.

use crate::adversary::Adversary;
use crate::compress::wire::{Coder, Format, Layout, WireError, bit_length, check_values};
use crate::compress::{Budget, SparseUpdate};
use crate::config::Config;
use crate::error::Error;
use crate::fleet::Fleet;
use crate::pool::Pool;
use crate::units::{Bits, DeviceId};
use rayon::prelude::*;

/// How updates get to the server.
pub struct Uplink {
    wire: bool,
    budget: Budget,
    layout: Layout,
    coders: Pool<Coder>,
    payloads: Pool<Vec<u8>>,
    arrived: Pool<SparseUpdate>,
}

/// What a scheduled device made of its budget, and what arrived.
pub(crate) struct Upload {
    /// R.
    pub budget: Bits,
    /// The largest q that the budget holds by the formula, as both ends know.
    pub most: usize,
    /// The q that was sent; 0 means that the device was silent.
    pub q: usize,
    /// Δ̂(q) as the device has it.
    pub sent: SparseUpdate,
    /// The length of the payload in bits, if there is one.
    pub wire_bits: Option<u64>,
    payload: Vec<u8>,
    received: Received,
}

/// What the server has of an upload.
enum Received {
    /// Δ̂ as the device has it.
    AsSent,
    /// What was decoded, or was given out as Δ̂ by a hostile device.
    Other(SparseUpdate),
    /// Nothing that can be read.
    Nothing,
}

impl Upload {
    /// What the server has; none if it cannot read it.
    pub fn received(&self) -> Option<&SparseUpdate> {
        match &self.received {
            Received::AsSent => Some(&self.sent),
            Received::Other(update) => Some(update),
            Received::Nothing => None,
        }
    }
}

impl Uplink {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            wire: config.radio.wire,
            budget: config.compress.budget,
            layout: Layout::of(config.compress.scheme),
            coders: Pool::new(),
            payloads: Pool::new(),
            arrived: Pool::new(),
        }
    }

    /// Carries the `updates` of the scheduled `devices` to the server in round `t`, each within its budget.
    pub(crate) fn carry(
        &self,
        fleet: &Fleet,
        updates: &[Vec<f32>],
        devices: &[DeviceId],
        budgets: &[Bits],
        t: u64,
    ) -> Result<Vec<Upload>, Error> {
        let send = |(i, update): (usize, &Vec<f32>)| {
            self.send(fleet, update, devices[i], budgets[i], t).map_err(|problem| {
                let device = devices[i].0;
                Error::Wire { round: t + 1, device, problem }
            })
        };
        let mut uploads: Vec<Upload> =
            updates.par_iter().enumerate().map(send).collect::<Result<_, Error>>()?;
        if self.wire {
            let dim = updates.first().map_or(0, Vec::len);
            if let Some(adversary) = &fleet.adversary {
                self.be_hostile(adversary, devices, &mut uploads, (t, dim));
            }
            uploads.par_iter_mut().for_each(|upload| self.receive(dim, upload));
        }
        Ok(uploads)
    }

    /// One device compresses, and encodes if there is a wire or the length of the payload decides on q.
    fn send(
        &self,
        fleet: &Fleet,
        update: &[f32],
        device: DeviceId,
        budget: Bits,
        t: u64,
    ) -> Result<Upload, WireError> {
        let most = fleet.compressor.largest_q(update.len(), budget);
        let encodes = self.wire || self.budget == Budget::Wire;
        let mut upload = Upload {
            budget,
            most,
            q: most,
            sent: fleet.spare(),
            wire_bits: None,
            payload: if encodes { self.payloads.take(Vec::new) } else { Vec::new() },
            received: Received::AsSent,
        };
        loop {
            fleet.compress(update, upload.q, t, device, &mut upload.sent);
            if upload.q == 0 {
                // Nothing fits; what was tried goes nowhere.
                upload.payload.clear();
                (upload.wire_bits, upload.received) = (encodes.then_some(0), Received::AsSent);
                return Ok(upload);
            }
            let tampered =
                fleet.adversary.as_ref().and_then(|hostile| hostile.tampered(device, &upload.sent));
            upload.received = tampered.map_or(Received::AsSent, |update| given_out(self.layout, update));
            if !encodes {
                return Ok(upload);
            }
            let format = Format::new(self.layout, update.len(), most)?;
            let mut payload = std::mem::take(&mut upload.payload);
            // What cannot be read is sent all the same; its bytes are as many as those of an honest value.
            let out = upload.received().unwrap_or(&upload.sent);
            let bits = self.coders.with(Coder::default, |coder| coder.encode(&format, out, &mut payload))?;
            upload.payload = payload;
            upload.wire_bits = Some(bits);
            if self.budget == Budget::Formula || bits as f64 <= budget.0 {
                return Ok(upload);
            }
            upload.q -= 1;
        }
    }

    /// Lets hostile devices put other bytes on the air.
    fn be_hostile(
        &self,
        adversary: &Adversary,
        devices: &[DeviceId],
        uploads: &mut [Upload],
        (t, dim): (u64, usize),
    ) {
        let mut payloads: Vec<Vec<u8>> =
            uploads.iter_mut().map(|upload| std::mem::take(&mut upload.payload)).collect();
        let room = |upload: &Upload| {
            let longest = Format::new(self.layout, dim, upload.most).map_or(0, |format| format.longest());
            longest.min(upload.budget.0 as u64)
        };
        let room: Vec<u64> = uploads.iter().map(room).collect();
        adversary.transmit(t, devices, &room, &mut payloads);
        for (upload, payload) in uploads.iter_mut().zip(payloads) {
            upload.wire_bits = Some(bit_length(&payload));
            upload.payload = payload;
        }
    }

    /// The server decodes a payload, by what it knows of the round alone.
    fn receive(&self, dim: usize, upload: &mut Upload) {
        let payload = std::mem::take(&mut upload.payload);
        let unreadable = matches!(upload.received, Received::Nothing);
        if upload.q > 0 && !unreadable {
            let mut arrived = self.arrived.take(SparseUpdate::default);
            let decoded = Format::new(self.layout, dim, upload.most).and_then(|format| {
                self.coders.with(Coder::default, |coder| coder.decode(&format, &payload, &mut arrived))
            });
            upload.received = match decoded {
                Ok(()) => Received::Other(arrived),
                Err(_) => Received::Nothing,
            };
        }
        self.payloads.give(payload);
    }

    /// Takes an upload's memory back; what is left is Δ̂ as the device has it.
    pub(crate) fn reuse(&self, upload: Upload) -> SparseUpdate {
        if let Received::Other(update) = upload.received {
            self.arrived.give(update);
        }
        upload.sent
    }
}

/// What the server has of a Δ̂ that an adversarial device gives out. Values that no payload carries, such as
/// those that are not finite, are nothing to a server, with bytes or without.
fn given_out(layout: Layout, update: SparseUpdate) -> Received {
    if check_values(layout, &update.values).is_ok() { Received::Other(update) } else { Received::Nothing }
}
