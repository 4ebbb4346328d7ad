//! How a device answers what it is asked, and turns its update into what it sends.

use super::diverged;
use super::send::Given;
use crate::compress::feedback::age_factor;
use crate::compress::wire::{Coder, bit_length};
use crate::compress::{
    BudgetRule, Compressor, Context, Encoded, ErrorFeedback, LevelRule, Scratch, Spent, plain,
};
use crate::config::Config;
use crate::error::Error;
use crate::kernels::{has_finite_norm, norm};
use crate::learn::task::Losses;
use crate::parts::Parts;
use crate::pool::Pool;
use crate::rng::{Purpose, Stream, stream};
use crate::schedule::Ask;
use crate::units::{Bits, DeviceId, Shape};
use std::sync::Arc;

/// The sending half of a device: compression, reports and bytes. It keeps nothing from one update to the next
/// but memory, so one serves all devices, in a simulation and on a node alike.
pub struct Encoder {
    seed: u64,
    compressor: Arc<dyn Compressor>,
    /// The name of a compressor that is not this library's: what it returns is checked.
    custom: Option<String>,
    budget: BudgetRule,
    /// κ of the states that both sides keep; 1 without them.
    kappa: f64,
    level: LevelRule,
    /// The layers of the model; empty if they are not known.
    shapes: Vec<Shape>,
    spares: Pool<Spare>,
    coders: Pool<Coder>,
}

/// What a worker reuses from update to update.
#[derive(Default)]
struct Spare {
    scratch: Scratch,
    encoded: Encoded,
}

/// What a node sends.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// Δ̂ as the device has it, for its residual.
    pub own: Encoded,
    /// What it spent of its budget.
    pub spent: Spent,
    /// The bytes; none if the budget held nothing.
    pub payload: Option<Vec<u8>>,
}

impl Encoder {
    /// The encoder of a run, for its nodes.
    pub fn of(config: &Config, parts: &Parts) -> Result<Self, Error> {
        let mut config = config.clone();
        parts.declare(&mut config);
        config.validate()?;
        let compressor = crate::setup::compressor(&config, parts)?;
        Ok(Self::new(&config, compressor))
    }

    pub(crate) fn new(config: &Config, compressor: Arc<dyn Compressor>) -> Self {
        // It was validated with the rest of the configuration.
        let feedback = config.build::<dyn ErrorFeedback>(&config.compress.feedback, &());
        Self {
            seed: config.run.seed,
            compressor,
            custom: crate::setup::custom_compressor(config),
            budget: config.compress.budget,
            kappa: feedback.ok().and_then(|feedback| feedback.state_decay()).unwrap_or(1.0),
            level: config.compress.level,
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

    /// What the server knows, too, of an upload of `dim` numbers within `budget`.
    pub fn context(&self, dim: usize, budget: Bits, who: (u64, DeviceId)) -> Context<'_> {
        Context::new(dim, budget).of(self.seed, who).with_shapes(&self.shapes)
    }

    pub(super) fn compressor(&self) -> &dyn Compressor {
        &*self.compressor
    }

    /// κ^gap: what a node multiplies its h_m by that is `gap` rounds old (`compress.feedback = "ef21"`).
    pub fn age_factor(&self, gap: u64) -> f32 {
        age_factor(self.kappa, gap)
    }

    /// What must fit into the budget.
    pub(super) fn budget(&self) -> BudgetRule {
        self.budget
    }

    /// What a device answers to `asks` in round `t`, honestly, of an update and its training loss (or
    /// losses); `alone` are the bits that it could send if the whole band were its own. An update or an
    /// answer that is not finite is an error.
    pub fn answers(
        &self,
        asks: &[Ask],
        (update, loss): (&[f32], impl Into<Losses>),
        alone: Bits,
        (t, device): (u64, DeviceId),
    ) -> Result<Vec<f32>, Error> {
        // A broken update must be noticed also where nothing is asked.
        if !has_finite_norm(update) {
            return Err(diverged(t, device));
        }
        let Losses { mean, rms } = loss.into();
        let answer = |ask: &Ask| match ask {
            Ask::Norm => Ok(norm(update) as f32),
            Ask::CompressedNorm => self.compressed_norm(update, alone, (t, device)),
            Ask::Loss => Ok(mean as f32),
            Ask::RmsLoss => Ok(rms as f32),
        };
        let answers: Vec<f32> = asks.iter().map(answer).collect::<Result<_, Error>>()?;
        if answers.iter().any(|answer| !answer.is_finite()) {
            return Err(diverged(t, device));
        }
        Ok(answers)
    }

    /// ‖Δ̂‖ of a device's update within `alone` bits.
    pub fn compressed_norm(&self, update: &[f32], alone: Bits, who: (u64, DeviceId)) -> Result<f32, Error> {
        self.spares.with(Spare::default, |Spare { scratch, encoded }| {
            self.encode_with(update, alone, who, scratch, encoded)?;
            Ok(encoded.norm())
        })
    }

    /// Δ̂ of a device's update in round `t`, within `budget`.
    pub fn encode(
        &self,
        update: &[f32],
        budget: Bits,
        who: (u64, DeviceId),
        out: &mut Encoded,
    ) -> Result<Spent, Error> {
        self.spares
            .with(Spare::default, |spare| self.encode_with(update, budget, who, &mut spare.scratch, out))
    }

    fn encode_with(
        &self,
        update: &[f32],
        budget: Bits,
        (t, device): (u64, DeviceId),
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Result<Spent, Error> {
        let mut rng = self.rng(t, device);
        let mut context = self.context(update.len(), budget, (t, device));
        if self.level == LevelRule::Best {
            let best = self.compressor.best_budget(update, &context, scratch);
            context = context.within(best.unwrap_or(budget));
        }
        let spent = self.compressor.encode(update, &context, &mut rng, scratch, out);
        match &self.custom {
            None => Ok(spent),
            Some(name) => {
                let failed = self.compressor.failure().map_or(Ok(()), Err);
                failed.and_then(|()| check(&spent, budget, out, update.len())).map_err(|problem| {
                    Error::Compressor { name: name.clone(), round: t + 1, device: device.0, problem }
                })?;
                Ok(spent)
            }
        }
    }

    /// As [`Encoder::encode`] where Δ̂ is Δ itself, without a copy: `update` becomes a part of `out` and is
    /// undefined from then on. None, and nothing is changed, where it must be encoded.
    pub(super) fn encode_whole(
        &self,
        update: &mut Vec<f32>,
        budget: Bits,
        who: (u64, DeviceId),
        out: &mut Encoded,
    ) -> Option<Spent> {
        if self.custom.is_some() || self.level != LevelRule::Largest {
            return None;
        }
        let context = self.context(update.len(), budget, who);
        self.compressor.encode_whole(update, &context, out)
    }

    /// Compresses an update within `granted` bits. Bytes are written to `payload`, if they are wanted and the
    /// scheme has any; `given` chooses what is transmitted for Δ̂.
    pub(super) fn fit(
        &self,
        update: &[f32],
        granted: Bits,
        (t, device): (u64, DeviceId),
        own: &mut Encoded,
        payload: Option<&mut Vec<u8>>,
        given: impl Fn(&Encoded) -> Given,
    ) -> Result<(Spent, Option<u64>, Given), Error> {
        let mut bytes = payload.and_then(|payload| Some((self.compressor.codec()?, payload)));
        let mut limit = granted;
        loop {
            let spent = self.encode(update, limit, (t, device), own)?;
            if spent.level == 0 {
                // Nothing fits; what was tried goes nowhere.
                let wire_bits = bytes.map(|(_, payload)| payload.clear()).map(|()| 0);
                return Ok((spent, wire_bits, Given::Own));
            }
            let given = given(own);
            let Some((codec, payload)) = &mut bytes else { return Ok((spent, None, given)) };
            // What cannot be read is sent all the same; its bytes are as many as those of an honest value.
            let out = if let Given::Other(update) = &given { update } else { &*own };
            let context = self.context(update.len(), granted, (t, device));
            let bits = self
                .coders
                .with(Coder::default, |coder| codec.write(coder, &context, out, payload))
                .map_err(|problem| Error::Wire { round: t + 1, device: device.0, problem })?;
            if self.budget == BudgetRule::Formula || bits as f64 <= granted.0 {
                return Ok((spent, Some(bits), given));
            }
            // One level down.
            limit = Bits(spent.bits.0.next_down());
        }
    }

    /// What a node sends of its update in round `t` within the bits that it was granted.
    pub fn message(&self, update: &[f32], granted: Bits, who: (u64, DeviceId)) -> Result<Message, Error> {
        let (mut own, mut payload) = (Encoded::default(), Vec::new());
        let (spent, wire_bits, _) =
            self.fit(update, granted, who, &mut own, Some(&mut payload), |_| Given::Own)?;
        if spent.level == 0 {
            return Ok(Message { own: Encoded::Silent, spent, payload: None });
        }
        if wire_bits.is_none() {
            plain::write(&own, &mut payload);
        }
        Ok(Message { own, spent, payload: Some(payload) })
    }

    /// Randomness of compression. A device that compresses twice in a round, once for its report and once for
    /// the air, draws the same numbers, so that the reported norm is that of what it will send.
    fn rng(&self, t: u64, device: DeviceId) -> Stream {
        stream(self.seed, Purpose::Sparsify, t, u64::from(device.0))
    }
}

impl Message {
    /// The length of the payload in bits; none if there is none.
    pub fn wire_bits(&self) -> Option<u64> {
        self.payload.as_deref().map(bit_length)
    }
}

/// What is wrong with the result of a custom compressor, if anything.
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
