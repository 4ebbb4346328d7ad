//! The server's records of the devices.

use super::Server;
use crate::base::units::DeviceId;
use crate::schedule::DeviceTable;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The facts of the devices that the server keeps from round to round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DeviceBook {
    pub devices: DeviceTable,
    /// The number of times that each device was caught; empty: never any.
    pub strikes: Vec<u32>,
    /// The latest norms that arrived, if updates are clipped.
    pub norms: VecDeque<f32>,
    /// Rounds in which all bit weights were zero.
    pub zero_weights: u64,
    /// Uploads of a custom compressor with more bits of information than it claims, and the first of them.
    pub underpriced: (u64, Option<Underpriced>),
}

/// An upload whose entries take more bits than its compressor claims.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Underpriced {
    pub round: u64,
    pub device: u32,
    pub entries: usize,
    pub claimed: f64,
    pub needed: f64,
}

impl DeviceBook {
    /// The book of `devices` devices before the first round.
    pub fn new(devices: usize) -> Self {
        Self {
            devices: DeviceTable::new(devices),
            strikes: Vec::new(),
            norms: VecDeque::new(),
            zero_weights: 0,
            underpriced: (0, None),
        }
    }
}

impl Server {
    /// The devices that were caught too often.
    pub fn excluded(&self) -> Vec<DeviceId> {
        DeviceId::all(self.radio.devices()).filter(|device| self.is_excluded(device.index())).collect()
    }

    fn is_excluded(&self, m: usize) -> bool {
        let strikes = self.book.strikes.get(m).copied().unwrap_or(0);
        self.defense.strikes.is_some_and(|limit| strikes >= limit)
    }

    /// Whether device `m` may send in round `t` (from 0).
    pub(super) fn may_send(&self, m: usize, t: u64) -> bool {
        let scheduled = u64::from(self.book.devices.all_scheduled()[m]);
        let within = self.defense.cap.is_none_or(|cap| scheduled < cap.max_scheduled(t + 1));
        within && !self.is_excluded(m)
    }
}
