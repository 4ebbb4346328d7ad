//! A device: error feedback, answers to the server, compression.
//!
//! [`Device`] is one device by itself, as on a node. The [fleet](crate::system::fleet) of a simulation has
//! the state of all devices, and its rounds use the same encoder and the same memory of error feedback.

mod encoder;
mod residual;
#[cfg(test)]
mod tests;

pub(crate) use encoder::Given;
pub use encoder::{Encoder, Message};
pub(crate) use residual::{PersistentState, Residual};

use crate::base::state::{Persist, State, StateError};
use crate::base::units::{Bits, DeviceId, Shape};
use crate::compress::{Encoded, ErrorFeedback, plain};
use crate::error::Error;
use crate::learn::task::Losses;
use crate::schedule::Ask;
use crate::spec::Spec;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A device in a round. It is the key of the random numbers of its compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The round, counted from 0.
    pub t: u64,
    /// The device.
    pub device: DeviceId,
}

/// The part of a round's [call](crate::system::server::Call) that goes to one candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request<'a> {
    /// The candidate and the round.
    pub sender: Sender,
    /// The numbers that it must report.
    pub asks: &'a [Ask],
    /// The bits that it could send if it had the whole band.
    pub alone: Bits,
    /// The round, from 1, of its last upload in the state that the server keeps of it, 0 if there is none;
    /// none if the server keeps no such state (it does with `compress.feedback = "ef21"`).
    pub acknowledged: Option<u64>,
}

/// The report of a candidate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// One answer per requested number.
    pub answers: Vec<f32>,
    /// Whether the device has lost the state that the server acknowledged. It has started again from zero,
    /// and the server must do so too ([`Server::forget`](crate::system::server::Server::forget)).
    pub lost_state: bool,
}

/// One device, on a node of its own.
///
/// A round is [`report`](Device::report) → [`send`](Device::send) → [`settle`](Device::settle); a device that
/// is not scheduled only reports. For the same calls of a server it gives the same answers and uploads as the
/// device of a simulation. Between messages its state can be [saved](Persist::save): a clone that loads it
/// continues as the device would have. An empty state is that of a device that has sent nothing. After an
/// error the state is undefined: load an earlier one.
///
/// ```
/// use fedlink::prelude::*;
/// use fedlink::system::device::{Device, Request, Sender};
/// # fn main() -> Result<(), fedlink::Error> {
/// let mut config = Config::default();
/// (config.compress.scheme, config.compress.feedback) = ("top-k".into(), "scheduled".into());
/// let mut device = Device::new(&config.resolve(&Parts::default())?, Vec::new())?;
///
/// let sender = Sender { t: 0, device: DeviceId(3) };
/// let request = Request { sender, asks: &[Ask::Norm], alone: Bits(500.0), acknowledged: None };
/// let report = device.report(&request, vec![3.0, 4.0], 0.7)?;
/// assert_eq!(report.answers, [5.0]);
/// let sent = device.send(Bits(0.0))?; // too little for any entry
/// assert_eq!(sent.payload, None);
/// device.settle(true);
/// // All of the update is in the residual, and is added to the next update.
/// let report = device.report(&request, vec![0.0, 0.0], 0.7)?;
/// assert_eq!(report.answers, [5.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Device {
    encoder: Arc<Encoder>,
    feedback: Arc<dyn ErrorFeedback>,
    residual: Residual,
    /// The update that waits to be sent.
    trained: Option<Trained>,
    /// The upload that may yet count.
    sent: Option<Sent>,
}

/// v of a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Trained {
    sender: Sender,
    update: Vec<f32>,
}

/// v of a round and v̂, in the bytes of [`plain`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Sent {
    t: u64,
    update: Vec<f32>,
    bytes: Vec<u8>,
}

impl Device {
    /// A device of the run that has sent nothing yet; `shapes` are the layers of the model, for schemes that
    /// use them. Clones share the parts of the run.
    pub fn new(spec: &Spec, shapes: Vec<Shape>) -> Result<Self, Error> {
        let encoder = Arc::new(Encoder::of(spec)?.with_shapes(shapes));
        let feedback = spec.parts().feedback.build(&spec.scope(), &())?.into();
        Ok(Self { encoder, feedback, residual: Residual::default(), trained: None, sent: None })
    }

    /// Adds error feedback to `update`, Δ of the request's round, keeps the sum until it is sent, and answers
    /// the request. An update of another round that was kept is discarded, and an upload that was not settled
    /// is lost.
    pub fn report(
        &mut self,
        request: &Request,
        mut update: Vec<f32>,
        loss: impl Into<Losses>,
    ) -> Result<Report, Error> {
        let kept = self.residual.vectors.len();
        if kept > 0 && kept != self.feedback.vectors() * update.len() {
            return Err(Error::order(
                "report: the error feedback of this device is of an update of another size; it belongs to \
                 another run",
            ));
        }
        let lost_state = !self.acknowledge(request.acknowledged)?;
        let sender = request.sender;
        self.residual.prepare(&*self.feedback, sender.t, &mut update);
        let answers = self.encoder.answers(request, &update, loss)?;
        self.trained = Some(Trained { sender, update });
        Ok(Report { answers, lost_state })
    }

    /// The round, from 0, of the update that waits to be sent.
    pub fn waiting(&self) -> Option<u64> {
        self.trained.as_ref().map(|trained| trained.sender.t)
    }

    /// The vectors of error feedback, one after another; empty: zeros.
    pub fn residual(&self) -> &[f32] {
        &self.residual.vectors
    }

    /// Compresses the waiting update within the granted bits.
    pub fn send(&mut self, budget: Bits) -> Result<Message, Error> {
        let trained = self.trained.take();
        let Trained { sender, update } =
            trained.ok_or(Error::order("send: no update waits to be sent; report before send"))?;
        let message = self.encoder.message(&update, budget, sender)?;
        if self.feedback.vectors() > 0 {
            let mut bytes = Vec::new();
            plain::write(&message.own, &mut bytes);
            self.sent = Some(Sent { t: sender.t, update, bytes });
        }
        Ok(message)
    }

    /// Records whether the last upload arrived. If it did not, the device has the state of one that was not
    /// scheduled. Where an upload counts only if the server uses it, the next request decides, and this
    /// changes nothing.
    pub fn settle(&mut self, delivered: bool) {
        if self.feedback.state_decay().is_some() {
            return;
        }
        if let Some(sent) = self.sent.take().filter(|_| delivered) {
            self.count(&sent);
        }
    }

    /// Receives the round of the last upload that counts. False: the device has lost the state that the
    /// server has of it, and starts again from zero.
    fn acknowledge(&mut self, acknowledged: Option<u64>) -> Result<bool, Error> {
        let sent = self.sent.take();
        if self.feedback.state_decay().is_none() {
            return Ok(true);
        }
        let Some(round) = acknowledged else {
            return Err(Error::order(
                "report: with this compress.feedback, whose states the server has too, the server must give \
                 the round of the last upload that it used",
            ));
        };
        if let Some(sent) = sent.filter(|sent| sent.t + 1 == round) {
            self.count(&sent);
            self.residual.acknowledged = round;
        }
        let known = self.residual.acknowledged == round;
        if !known {
            self.residual = Residual::default();
        }
        Ok(known || round == 0)
    }

    /// Records that an upload counts.
    fn count(&mut self, Sent { t, update, bytes }: &Sent) {
        let sent = plain::read(bytes, update.len()).unwrap_or(Encoded::Silent);
        self.residual.settle(&*self.feedback, *t, update, &sent);
    }
}

impl Persist for Device {
    fn save(&self) -> State {
        State::of(&(&self.residual, self.residual.acknowledged, &self.trained, &self.sent))
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        if state.is_empty() {
            (self.residual, self.trained, self.sent) = (Residual::default(), None, None);
            return Ok(());
        }
        let (residual, acknowledged, trained, sent): (Residual, u64, _, _) = state.read()?;
        (self.residual, self.trained, self.sent) = (Residual { acknowledged, ..residual }, trained, sent);
        Ok(())
    }
}
