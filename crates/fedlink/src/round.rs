//! One federated round, from broadcast to aggregation.

use crate::defence::{Delivery, Guard};
use crate::error::Error;
use crate::fleet::Fleet;
use crate::radio::channel::Channel;
use crate::radio::slots::{SlotKind, split_slots};
use crate::record::{RoundRecord, Transmission};
use crate::schedule::{Policy, check_candidates};
use crate::units::{Bits, Power};
use crate::uplink::Uplink;

/// What stays the same from round to round.
pub struct System {
    /// M.
    pub devices: usize,
    /// K.
    pub k: usize,
    /// n.
    pub symbols: u64,
    /// P̄.
    pub average_power: Power,
    /// σ².
    pub noise: f64,
    /// Real or whole slots.
    pub slots: SlotKind,
    /// Where the gains come from.
    pub channel: Box<dyn Channel>,
    /// The devices.
    pub fleet: Fleet,
    /// How their updates get to the server.
    pub uplink: Uplink,
}

/// Round `t` (from 0): θ(t) becomes θ(t+1).
pub fn round(
    system: &System,
    policy: &mut dyn Policy,
    guard: &mut Guard,
    theta: &mut [f32],
    t: u64,
) -> Result<RoundRecord, Error> {
    let System { symbols, fleet, uplink, .. } = system;
    let broken = |problem| Error::Policy { round: t + 1, problem };

    // 1. The server broadcasts θ(t), error-free: every device reads `theta`.

    // 2. The channel is drawn; it alone says who may be scheduled, but for those whom the server does not let send.
    //    They train, and report what the policy asks.
    let channels = system.channels(t);
    let candidates = policy.candidates(&guard.shown(&channels, t), system.k);
    check_candidates(&candidates, system.devices, system.k).map_err(broken)?;
    let candidates = guard.admit(candidates, t);
    let k = system.k.min(candidates.len());
    let mut trained = fleet.train(theta, t, &candidates, policy.report(), &channels, k)?;

    // 3. The policy picks 𝓜(t), |𝓜| = K, and the weights w.
    let schedule = policy.select(&candidates, &trained.reports, &channels, k);
    schedule.check(&candidates, k).map_err(broken)?;

    // 4. The n symbols are shared so that bits are proportional to w.
    let capacities: Vec<f64> = schedule.devices.iter().map(|&m| channels.capacity(m)).collect();
    let slots = split_slots(&schedule.weights, &capacities, *symbols, system.slots);

    // 5. Each scheduled device compresses its update to at most R = n_m·C_m bits, and sends it.
    let updates: Vec<Vec<f32>> =
        schedule.devices.iter().map(|&m| fleet.update_of(&mut trained, theta, t, m)).collect();
    let budgets: Vec<Bits> = slots.iter().zip(&capacities).map(|(n, c)| Bits(n.0 * c)).collect();
    let uploads = uplink.carry(fleet, &updates, &schedule.devices, &budgets, t)?;

    // 6. θ(t+1) = θ(t) + (1/K)·Σ Δ̂, or weighted by size; a device that is silent (q = 0), or whose upload cannot be
    //    read or believed, adds nothing and still counts.
    let delivery = |(i, upload)| {
        let device = schedule.devices[i];
        let place = candidates.iter().position(|c| *c == device).expect("scheduled from the candidates");
        Delivery {
            device,
            report: trained.reports[place],
            alone: Bits(*symbols as f64 * capacities[i]),
            upload,
        }
    };
    let deliveries: Vec<Delivery> = uploads.iter().enumerate().map(delivery).collect();
    let arrivals = guard.judge(&deliveries, policy.report(), fleet, theta.len());
    guard.aggregate(theta, &uploads, &arrivals, &fleet.shares(&schedule.devices));

    let transmission = |(i, Delivery { device, report, upload, .. }): (usize, &Delivery)| Transmission {
        device: *device,
        gain: channels.gain(*device),
        capacity: capacities[i],
        report: *report,
        weight: schedule.weights[i],
        symbols: slots[i],
        budget: upload.budget,
        q: upload.q,
        bits: if upload.q == 0 { Bits(0.0) } else { fleet.compressor.bits(theta.len(), upload.q) },
        entries: upload.sent.indices.len(),
        wire_bits: upload.wire_bits,
        arrival: arrivals[i],
    };
    let record = RoundRecord {
        round: t + 1,
        transmissions: deliveries.iter().enumerate().map(transmission).collect(),
        trained: trained.count,
        train_loss: trained.loss,
        evaluation: None,
    };
    for ((&device, update), upload) in schedule.devices.iter().zip(updates).zip(uploads) {
        fleet.settle(device, update, uplink.reuse(upload));
    }
    fleet.release(trained);
    Ok(record)
}
