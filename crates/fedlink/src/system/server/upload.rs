//! Uploads as they arrive at the server.

use crate::base::units::{Airtime, DeviceId};
use crate::compress::{Encoded, Spent};

/// The upload of one scheduled device, as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Upload<'a> {
    /// The device that sent it.
    pub device: DeviceId,
    /// The bits and the level that the device spent.
    pub spent: Spent,
    /// Entries of Δ̂ as the device has it.
    pub entries: usize,
    /// The length of the payload in bits, if updates are encoded.
    pub wire_bits: Option<u64>,
    /// The time for which the device sent, where it differs from the grant.
    pub airtime: Option<Airtime>,
    /// The content.
    pub body: Body<'a>,
}

/// The content of an upload.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Body<'a> {
    /// The budget held nothing: it adds zero and counts.
    Silent,
    /// Δ̂ itself.
    Update(&'a Encoded),
    /// Bytes that must be decoded first.
    Payload(&'a [u8]),
    /// Something that no server accepts.
    Unreadable,
    /// Nothing: the device is gone, or the link failed. It does not count.
    Lost,
    /// Nothing, since the channel did not carry it: it adds zero and counts.
    Outage,
    /// Nothing, since it came after the deadline: it adds zero and counts.
    Late,
}

impl Upload<'_> {
    /// An upload of a device that sent nothing that arrived.
    pub fn lost(device: DeviceId) -> Self {
        Self { device, spent: Spent::default(), entries: 0, wire_bits: None, airtime: None, body: Body::Lost }
    }
}
