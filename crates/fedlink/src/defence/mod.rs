//! A parameter server that trusts nobody: whom it lets send, what it believes, and what it makes of it.
//!
//! | defence | against | acts on |
//! |---|---|---|
//! | [`audit`] | reports and uploads that contradict each other | what arrived; after `defence.strikes` on who may send |
//! | [`Clip`] | updates that are too large | what is added up |
//! | [`Combine`] | a minority with any values | what is added up |
//! | [`Cap`] | whoever would send all the time, and the power that takes | who may send |
//!
//! A device that may not send is shown to the policy as one whose link is dead, and struck from its candidates. So no
//! policy needs to know of any of this. If fewer than K may send, fewer are scheduled.

pub mod audit;
mod cap;
mod clip;
mod combine;

pub use cap::Cap;
pub use clip::{Clip, WINDOW};
pub use combine::{Combine, Part};

use crate::compress::{Budget, SchemeKind};
use crate::config::Config;
use crate::fleet::Fleet;
use crate::radio::Channels;
use crate::record::Arrival;
use crate::schedule::ReportKind;
use crate::units::{Bits, DeviceId};
use crate::uplink::Upload;
use audit::Evidence;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::VecDeque;

/// The defences of a run, and what they remember.
pub struct Guard {
    /// Strikes that exclude a device, if there is an audit.
    audit: Option<u32>,
    clip: Clip,
    combine: Combine,
    trim: f64,
    cap: Option<Cap>,
    scheme: SchemeKind,
    /// Whether devices send the q of the formula.
    exact: bool,
    memory: GuardMemory,
}

/// What the server remembers of the devices from round to round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GuardMemory {
    /// How often each device was caught.
    strikes: Vec<u32>,
    /// How often each device was scheduled.
    scheduled: Vec<u64>,
    /// The latest norms that arrived, if they are clipped to their median.
    norms: VecDeque<f32>,
}

/// What a scheduled device reported and what came of its upload.
pub(crate) struct Delivery<'a> {
    pub device: DeviceId,
    pub report: f32,
    /// The bits that all n symbols would have held for it.
    pub alone: Bits,
    pub upload: &'a Upload,
}

impl Guard {
    /// The defences that `config` describes.
    pub(crate) fn new(config: &Config) -> Self {
        let (defence, devices) = (&config.defence, config.data.devices);
        let cap = Cap { devices, k: config.schedule.k, rounds: config.run.rounds, slack: defence.cap_slack };
        Self {
            audit: defence.audit.then_some(defence.strikes as u32),
            clip: defence.clip,
            combine: defence.aggregate,
            trim: defence.trim,
            cap: defence.participation_cap.then_some(cap),
            scheme: config.compress.scheme,
            exact: config.compress.budget == Budget::Formula,
            memory: GuardMemory {
                strikes: vec![0; devices as usize],
                scheduled: vec![0; devices as usize],
                norms: VecDeque::new(),
            },
        }
    }

    pub(crate) fn memory(&self) -> &GuardMemory {
        &self.memory
    }

    /// Whether this could be the memory of this server.
    pub(crate) fn fits(&self, memory: &GuardMemory) -> bool {
        memory.strikes.len() == self.memory.strikes.len()
            && memory.scheduled.len() == self.memory.scheduled.len()
            && memory.norms.len() <= WINDOW
    }

    /// Takes up a memory that [fits](Guard::fits).
    pub(crate) fn remember(&mut self, memory: GuardMemory) {
        self.memory = memory;
    }

    /// The devices that were caught too often.
    pub(crate) fn excluded(&self) -> Vec<DeviceId> {
        (0..self.memory.strikes.len()).filter(|&m| self.is_excluded(m)).map(DeviceId::new).collect()
    }

    fn is_excluded(&self, m: usize) -> bool {
        self.audit.is_some_and(|limit| self.memory.strikes[m] >= limit)
    }

    /// Whether device `m` may send in round `t` (from 0).
    fn may_send(&self, m: usize, t: u64) -> bool {
        let within = self.cap.is_none_or(|cap| self.memory.scheduled[m] < cap.most(t + 1));
        within && !self.is_excluded(m)
    }

    /// The uplink of round `t` as the policy is shown it: a device that may not send has a dead link.
    pub(crate) fn shown<'a>(&self, channels: &'a Channels, t: u64) -> Cow<'a, Channels> {
        let mut shown = Cow::Borrowed(channels);
        for m in (0..channels.devices()).filter(|&m| !self.may_send(m, t)) {
            let shown = shown.to_mut();
            (shown.gains[m], shown.capacities[m]) = (0.0, 0.0);
        }
        shown
    }

    /// Those of the `candidates` who may send in round `t`.
    pub(crate) fn admit(&self, mut candidates: Vec<DeviceId>, t: u64) -> Vec<DeviceId> {
        candidates.retain(|device| self.may_send(device.index(), t));
        candidates
    }

    /// What the server makes of each delivery. An upload that cannot be read or believed is a strike.
    pub(crate) fn judge(
        &mut self,
        deliveries: &[Delivery],
        kind: ReportKind,
        fleet: &Fleet,
        dim: usize,
    ) -> Vec<Arrival> {
        let judge = |delivery: &Delivery| {
            let Delivery { device, report, alone, upload } = delivery;
            let arrival = match upload.received() {
                _ if upload.q == 0 => Arrival::Silent,
                None => Arrival::Undecodable,
                Some(received) if self.audit.is_some() => {
                    let alone = fleet.compressor.largest_q(dim, *alone);
                    let (scheme, exact, q) = (self.scheme, self.exact, upload.most);
                    let evidence = Evidence { scheme, kind, dim, q, exact, alone, received };
                    if evidence.allows(*report) { Arrival::Used } else { Arrival::Flagged }
                }
                Some(_) => Arrival::Used,
            };
            let m = device.index();
            self.memory.scheduled[m] += 1;
            if matches!(arrival, Arrival::Undecodable | Arrival::Flagged) {
                self.memory.strikes[m] = self.memory.strikes[m].saturating_add(1);
            }
            arrival
        };
        deliveries.iter().map(judge).collect()
    }

    /// θ(t+1) out of θ(t) and what arrived and was believed.
    pub(crate) fn aggregate(
        &mut self,
        theta: &mut [f32],
        uploads: &[Upload],
        arrivals: &[Arrival],
        shares: &[f32],
    ) {
        let used =
            uploads.iter().zip(arrivals).zip(shares).filter(|((_, arrival), _)| **arrival == Arrival::Used);
        let mut parts: Vec<Part> = used
            .filter_map(|((upload, _), &share)| Some(Part { update: upload.received()?, share, factor: 1.0 }))
            .collect();
        if self.clip != Clip::Off {
            let norms: Vec<f32> = parts.iter().map(|part| part.update.norm()).collect();
            self.memory.norms.extend(&norms);
            let old = self.memory.norms.len().saturating_sub(WINDOW);
            self.memory.norms.drain(..old);
            let limit = self.clip.limit(self.memory.norms.make_contiguous());
            parts.iter_mut().zip(norms).for_each(|(part, norm)| part.factor = clip::factor(norm, limit));
        }
        self.combine.apply(theta, &parts, uploads.len(), self.trim);
    }
}
