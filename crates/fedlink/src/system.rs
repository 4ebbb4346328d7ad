//! The parts of a round one by one, for who runs rounds elsewhere: on real nodes, in another process.
//!
//! Rounds are counted from 0 here: round t turns θ(t) into θ(t+1). (Records count what is done, from 1.)

use crate::compress::{Compressor, SparseUpdate, add_all};
use crate::config::{Config, ConfigError};
use crate::error::Error;
use crate::fleet::Fleet;
use crate::learn::task::Work;
use crate::radio::Channels;
use crate::radio::channel::channel;
use crate::radio::link::{capacity, transmit_power};
use crate::record::Evaluation;
use crate::round::System;
use crate::schedule::ReportKind;
use crate::units::{Bits, DeviceId, Power};
use crate::uplink::Uplink;

impl System {
    /// The system that `config` describes, learning on a data set or a task of one's own.
    pub fn new(config: &Config, work: impl Into<Work>) -> Result<Self, Error> {
        Self::with_compressor(config, work, None)
    }

    pub(crate) fn with_compressor(
        config: &Config,
        work: impl Into<Work>,
        compressor: Option<Box<dyn Compressor>>,
    ) -> Result<Self, Error> {
        config.validate()?;
        if compressor.is_some() && config.defence.audit {
            let problem = "knows what the built-in schemes can send, not yours; set it to false";
            return Err(ConfigError::new("defence.audit", problem).into());
        }
        Ok(Self {
            devices: config.data.devices as usize,
            k: config.schedule.k as usize,
            symbols: config.radio.symbols,
            average_power: Power(config.radio.power),
            noise: config.radio.noise,
            slots: config.radio.slots,
            channel: channel(config.radio.channel, config.run.seed),
            fleet: Fleet::new(config, work.into(), compressor)?,
            uplink: Uplink::new(config),
        })
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.fleet.learner.dim()
    }

    /// θ(0).
    pub fn theta0(&self) -> Vec<f32> {
        self.fleet.learner.theta0()
    }

    /// P = M·P̄/K, what a scheduled device sends with.
    pub fn power(&self) -> Power {
        transmit_power(self.devices, self.k, self.average_power)
    }

    /// The uplink in round `t`.
    pub fn channels(&self, t: u64) -> Channels {
        let gains = self.channel.gains(t, self.devices);
        let power = self.power();
        let capacities = gains.iter().map(|&gain| capacity(gain, power, self.noise)).collect();
        Channels { gains, capacities }
    }

    /// Whether a device's update depends on earlier rounds too (`learn.state = "keep"` with an optimiser that has a
    /// state, or error feedback). Then [`System::update`] is not what a simulation would see.
    pub fn remembers(&self) -> bool {
        self.fleet.remembers()
    }

    /// Δ of a device trained from `theta` (d entries) in round `t`, and its training loss.
    pub fn update(&self, theta: &[f32], t: u64, device: DeviceId) -> (Vec<f32>, f64) {
        self.fleet.update(theta, t, device)
    }

    /// The number that a device reports of its `update` in round `t`.
    pub fn report(&self, kind: ReportKind, update: &[f32], t: u64, device: DeviceId) -> f32 {
        let capacity = self.channels(t).capacity(device);
        self.fleet.report_of(kind, update, capacity, (t, device))
    }

    /// q and Δ̂(q) of a device's `update` in round `t`, within `budget`.
    pub fn compress(&self, update: &[f32], budget: Bits, t: u64, device: DeviceId) -> (usize, SparseUpdate) {
        let q = self.fleet.compressor.largest_q(update.len(), budget);
        let mut sent = SparseUpdate::default();
        self.fleet.compress(update, q, t, device, &mut sent);
        (q, sent)
    }

    /// θ(t+1) from θ(t): adds what the scheduled devices sent, each with the share that `learn.aggregate` gives it.
    pub fn aggregate(&self, theta: &mut [f32], devices: &[DeviceId], sent: &[SparseUpdate]) {
        let parts: Vec<(&SparseUpdate, f32)> = sent.iter().zip(self.fleet.shares(devices)).collect();
        add_all(theta, &parts);
    }

    /// Accuracy and loss of `theta` (d entries) on the test set.
    pub fn evaluate(&self, theta: &[f32]) -> Evaluation {
        self.fleet.learner.evaluate(theta)
    }
}
