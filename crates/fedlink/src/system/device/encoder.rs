//! The device's side of a round: reports on its update, and the transmitted form of the update.

use super::{Request, Sender};
use crate::base::buffers::Pool;
use crate::base::kernels::{has_finite_norm, norm};
use crate::base::rng::{Purpose, Stream, stream};
use crate::base::units::{Bits, Shape};
use crate::compress::wire::{Coder, bit_length};
use crate::compress::{BudgetRule, Compressor, Context, Encoded, LevelRule, Scratch, Spent, plain};
use crate::error::Error;
use crate::learn::task::Losses;
use crate::schedule::Ask;
use crate::spec::Spec;
use std::sync::Arc;

/// The sending half of a device: compression, reports and bytes. From one update to the next it keeps only
/// buffers, so one encoder is for all devices, in a simulation and on a node alike.
pub struct Encoder {
    seed: u64,
    compressor: Arc<dyn Compressor>,
    /// The name of a compressor from outside this library: its results are checked.
    custom: Option<String>,
    budget: BudgetRule,
    level: LevelRule,
    /// The layers of the model; empty if they are not known.
    shapes: Vec<Shape>,
    spares: Pool<Spare>,
    coders: Pool<Coder>,
}

/// The memory that a worker reuses from update to update.
#[derive(Default)]
struct Spare {
    scratch: Scratch,
    encoded: Encoded,
}

/// The message of a node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// Δ̂ as the device has it, for its residual.
    pub own: Encoded,
    /// The bits and the level that it spent.
    pub spent: Spent,
    /// The bytes; none if the budget held nothing.
    pub payload: Option<Vec<u8>>,
}

/// The update that a device gives to the server.
pub(crate) enum Given {
    /// Δ̂ as the device has it.
    Own,
    /// Another Δ̂, by an adversarial device.
    Other(Encoded),
    /// The bytes of its payload, where updates are sent as bytes.
    Payload,
    /// Values that no server accepts, with bytes or without.
    Unreadable,
}

impl Encoder {
    /// The encoder of a run, for its nodes.
    pub fn of(spec: &Spec) -> Result<Self, Error> {
        Ok(Self::new(spec, crate::system::build::compressor(spec)?))
    }

    pub(crate) fn new(spec: &Spec, compressor: Arc<dyn Compressor>) -> Self {
        let scheme = &spec.parts().scheme;
        Self {
            seed: spec.run.seed,
            compressor,
            custom: scheme.is_custom().then(|| scheme.name().to_owned()),
            budget: spec.compress.budget,
            level: spec.compress.level,
            shapes: Vec::new(),
            spares: Pool::new(),
            coders: Pool::new(),
        }
    }

    /// With the layers of the model, for schemes that use them.
    #[must_use]
    pub fn with_shapes(self, shapes: Vec<Shape>) -> Self {
        Self { shapes, ..self }
    }

    /// The common knowledge of device and server about an upload of `dim` numbers within `budget`.
    pub fn context(&self, dim: usize, budget: Bits, sender: Sender) -> Context<'_> {
        Context::new(dim, budget).of(self.seed, (sender.t, sender.device)).with_shapes(&self.shapes)
    }

    pub(crate) fn compressor(&self) -> &dyn Compressor {
        &*self.compressor
    }

    /// The length that must fit into the budget.
    pub(crate) fn budget(&self) -> BudgetRule {
        self.budget
    }

    /// The honest answers of a device to a request, from its update and its training loss (or losses). An
    /// update or an answer that is not finite is an error.
    pub fn answers(
        &self,
        request: &Request,
        update: &[f32],
        loss: impl Into<Losses>,
    ) -> Result<Vec<f32>, Error> {
        let Request { sender, asks, .. } = *request;
        // A broken update must be noticed even if no report is needed.
        if !has_finite_norm(update) {
            return Err(sender.diverged());
        }
        let Losses { mean, rms } = loss.into();
        let answer = |ask: &Ask| match ask {
            Ask::Norm => Ok(norm(update) as f32),
            Ask::CompressedNorm => self.compressed_norm(update, request.alone, sender),
            Ask::Loss => Ok(mean as f32),
            Ask::RmsLoss => Ok(rms as f32),
        };
        let answers: Vec<f32> = asks.iter().map(answer).collect::<Result<_, Error>>()?;
        if answers.iter().any(|answer| !answer.is_finite()) {
            return Err(sender.diverged());
        }
        Ok(answers)
    }

    /// ‖Δ̂‖ of a device's update within `alone` bits.
    pub fn compressed_norm(&self, update: &[f32], alone: Bits, sender: Sender) -> Result<f32, Error> {
        self.spares.with(Spare::default, |Spare { scratch, encoded }| {
            self.encode_with(update, alone, sender, scratch, encoded)?;
            Ok(encoded.norm())
        })
    }

    /// Compresses the update of a device to Δ̂, within `budget`.
    pub fn encode(
        &self,
        update: &[f32],
        budget: Bits,
        sender: Sender,
        out: &mut Encoded,
    ) -> Result<Spent, Error> {
        self.spares
            .with(Spare::default, |spare| self.encode_with(update, budget, sender, &mut spare.scratch, out))
    }

    fn encode_with(
        &self,
        update: &[f32],
        budget: Bits,
        sender: Sender,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Result<Spent, Error> {
        let mut rng = self.rng(sender);
        let mut context = self.context(update.len(), budget, sender);
        if self.level == LevelRule::Best {
            context = context.up_to(self.compressor.best_level(update, &context, scratch));
        }
        let spent = self.compressor.encode(update, &context, &mut rng, scratch, out);
        match &self.custom {
            None => Ok(spent),
            Some(name) => {
                let failed = self.compressor.failure().map_or(Ok(()), Err);
                failed.and_then(|()| check(&spent, budget, out, update.len())).map_err(|problem| {
                    let Sender { t, device } = sender;
                    Error::Compressor { name: name.clone(), round: t + 1, device: device.0, problem }
                })?;
                Ok(spent)
            }
        }
    }

    /// As [`Encoder::encode`] where Δ̂ is Δ itself, without a copy: `update` becomes a part of `out` and is
    /// undefined from then on. None, and nothing is changed, where it must be encoded.
    pub(crate) fn encode_whole(
        &self,
        update: &mut Vec<f32>,
        budget: Bits,
        sender: Sender,
        out: &mut Encoded,
    ) -> Option<Spent> {
        if self.custom.is_some() || self.level != LevelRule::Largest {
            return None;
        }
        let context = self.context(update.len(), budget, sender);
        self.compressor.encode_whole(update, &context, out)
    }

    /// Compresses an update within `granted` bits. Bytes are written to `payload`, if they are wanted and the
    /// scheme has any; `given` selects the transmitted Δ̂.
    pub(crate) fn fit(
        &self,
        update: &[f32],
        granted: Bits,
        sender: Sender,
        own: &mut Encoded,
        payload: Option<&mut Vec<u8>>,
        given: impl Fn(&Encoded) -> Given,
    ) -> Result<(Spent, Option<u64>, Given), Error> {
        let mut bytes = payload.and_then(|payload| Some((self.compressor.codec()?, payload)));
        let mut limit = granted;
        loop {
            let spent = self.encode(update, limit, sender, own)?;
            if spent.level == 0 {
                // Nothing fits; the bytes of the attempt are discarded.
                let wire_bits = bytes.map(|(_, payload)| payload.clear()).map(|()| 0);
                return Ok((spent, wire_bits, Given::Own));
            }
            let given = given(own);
            let Some((codec, payload)) = &mut bytes else { return Ok((spent, None, given)) };
            // A value that cannot be decoded is sent nevertheless, with as many bytes as an honest value.
            let out = if let Given::Other(update) = &given { update } else { &*own };
            let context = self.context(update.len(), granted, sender);
            let bits = self
                .coders
                .with(Coder::default, |coder| codec.write(coder, &context, out, payload))
                .map_err(|problem| Error::Wire {
                round: sender.t + 1,
                device: sender.device.0,
                problem,
            })?;
            if self.budget == BudgetRule::Formula || bits as f64 <= granted.0 {
                return Ok((spent, Some(bits), given));
            }
            // One level down.
            limit = Bits(spent.bits.0.next_down());
        }
    }

    /// The message of a node that sends its update within its granted bits.
    pub fn message(&self, update: &[f32], granted: Bits, sender: Sender) -> Result<Message, Error> {
        let (mut own, mut payload) = (Encoded::default(), Vec::new());
        let (spent, wire_bits, _) =
            self.fit(update, granted, sender, &mut own, Some(&mut payload), |_| Given::Own)?;
        if spent.level == 0 {
            return Ok(Message { own: Encoded::Silent, spent, payload: None });
        }
        if wire_bits.is_none() {
            plain::write(&own, &mut payload);
        }
        Ok(Message { own, spent, payload: Some(payload) })
    }

    /// Randomness of compression. A device that compresses twice in a round, once for its report and once for
    /// the air, draws the same numbers, so that the reported norm is the norm of the later upload.
    fn rng(&self, Sender { t, device }: Sender) -> Stream {
        stream(self.seed, Purpose::Sparsify, t, u64::from(device.0))
    }
}

impl Sender {
    pub(crate) fn diverged(self) -> Error {
        Error::Diverged { round: self.t + 1, device: self.device.0, remedy: "lower learn.rate".into() }
    }
}

impl Message {
    /// The length of the payload in bits; none if there is none.
    pub fn wire_bits(&self) -> Option<u64> {
        self.payload.as_deref().map(bit_length)
    }
}

/// The fault in the result of a custom compressor, if there is one.
fn check(spent: &Spent, budget: Bits, out: &Encoded, dim: usize) -> Result<(), String> {
    let Spent { bits: Bits(bits), level } = *spent;
    let silent = matches!(out, Encoded::Silent);
    if !(bits.is_finite() && bits >= 0.0) {
        return Err(format!(
            "it reports that it spent {bits} bits; it must be a finite number of at least 0"
        ));
    }
    if bits > budget.0 {
        return Err(format!("it reports that it spent {bits} bits, but was granted {}", budget.0));
    }
    if silent != (level == 0) {
        let [sent, other] = if silent { ["nothing", "0"] } else { ["an update", "at least 1"] };
        return Err(format!("it sends {sent} at level {level}, which must then be {other}"));
    }
    out.check(dim)
}
