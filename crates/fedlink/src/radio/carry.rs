//! Uploads on their way: losses and repetitions.

use super::access::{Band, Grant};
use super::rate::Rate;
use super::{Combining, Known, Links, Radio, RadioParts};
use crate::base::rng::{Purpose, stream};
use crate::base::units::{Airtime, Bits, DeviceId};

/// An upload on its way.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    /// The grant.
    pub grant: &'a Grant,
    /// The bits that are sent of it, at most its budget.
    pub bits: Bits,
}

impl<'a> Transfer<'a> {
    /// An upload that fills its grant.
    pub fn whole(grant: &'a Grant) -> Self {
        Self { grant, bits: grant.budget }
    }
}

/// The fate of an upload on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Carried {
    /// Whether it arrived.
    pub delivered: bool,
    /// The time for which the device sent, including repetitions.
    pub airtime: Airtime,
}

impl Radio {
    /// The fate of a scheduled device's upload in round `t`, by the true channel.
    ///
    /// With estimates that are not exact it is lost if the channel carries less than the bits that were
    /// granted; besides, packets are lost by the rate model at the bits that are sent, and by
    /// `radio.loss_threshold_db`. A packet that is lost is sent again, up to `radio.attempts` times in all,
    /// over the same channel: fading is constant within a round. Earlier receptions help by the rule of
    /// [`Combining`].
    pub fn carry(&self, t: u64, device: DeviceId, grant: &Grant, links: &Links) -> Carried {
        let gain = links.gains[device.index()];
        self.carry_of(&self.band(), t, device, &Transfer::whole(grant), gain, &links.known)
    }

    /// The same where only the symbols of `band` were left for updates; `gain` is the true power gain of the
    /// device.
    pub fn carry_of(
        &self,
        band: &Band,
        t: u64,
        device: DeviceId,
        transfer: &Transfer,
        gain: f64,
        known: &Known,
    ) -> Carried {
        let grant = transfer.grant;
        let RadioParts { csi, rate, access, budget, loss, seed, .. } = &self.parts;
        if grant.budget.0 <= 0.0 {
            return Carried { delivered: true, airtime: grant.airtime };
        }
        // The true gain relative to the gain that the grant counted on.
        let counted_on = csi.backoff * known.gain(device);
        let ratio = if counted_on > 0.0 { gain / counted_on } else { 0.0 };
        let power = known.power(device);
        let by_threshold = loss
            .threshold
            .map_or(0.0, |m| -libm::expm1(-m * budget.noise / (grant.power.0 * self.mean_gain(t, device))));
        // The SNR that the bits were chosen for (power and band of the access scheme included), times that
        // ratio.
        let snr = if rate.is_soft() { ratio * snr_of(&**rate, grant) } else { 0.0 };
        let mut rng = stream(*seed, Purpose::Packet, t, u64::from(device.0));
        // One draw for all attempts: if a packet is decoded from some transmissions, it is decoded from more
        // of them.
        let one_draw = (loss.combining != Combining::None && rate.is_soft()).then(|| rng.uniform());
        for sent in 1..=loss.attempts {
            let (stronger, longer) = loss.combining.of(sent);
            if !csi.is_perfect() && !rate.is_soft() {
                let link = self.uplink(stronger * gain * power.0 / budget.noise, power, &**rate, &[]);
                let carried = access.carried(grant, &link, stronger * ratio, longer, band);
                // The budget follows from the estimate; the factor allows for rounding.
                if carried < grant.budget.0 * (1.0 - 1e-12) {
                    continue;
                }
            }
            let by_rate =
                rate.loss(stronger * snr, longer * grant.symbols.0, transfer.bits.0.min(grant.budget.0));
            let decoded = one_draw.is_none_or(|draw| draw >= by_rate);
            let lost = 1.0 - (1.0 - by_threshold) * if one_draw.is_some() { 1.0 } else { 1.0 - by_rate };
            if decoded && (lost <= 0.0 || rng.uniform() >= lost) {
                let used = sent as f64 / loss.attempts as f64;
                return Carried { delivered: true, airtime: Airtime(grant.airtime.0 * used) };
            }
        }
        Carried { delivered: false, airtime: grant.airtime }
    }
}

/// The smallest SNR at which a grant's symbols carry its bits: by bisection on its logarithm, a fixed number
/// of times.
fn snr_of(rate: &dyn Rate, grant: &Grant) -> f64 {
    let (mut low, mut high) = (-80.0f64, 80.0f64);
    for _ in 0..70 {
        let middle = 0.5 * (low + high);
        if rate.bits(libm::exp(middle), grant.symbols.0) < grant.budget.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::exp(high)
}
