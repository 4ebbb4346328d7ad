//! One federated round, from broadcast to aggregation.

use crate::compress::SparseUpdate;
use crate::error::Error;
use crate::fleet::Fleet;
use crate::radio::Channels;
use crate::radio::channel::Channel;
use crate::radio::link::{capacity, transmit_power};
use crate::radio::slots::{SlotKind, split_slots};
use crate::record::{RoundRecord, Transmission};
use crate::schedule::{Policy, check_candidates};
use crate::units::{Bits, Power};
use rayon::prelude::*;

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
}

/// Round `t` (from 0): θ(t) becomes θ(t+1).
pub fn round(
    system: &System,
    policy: &mut dyn Policy,
    theta: &mut [f32],
    t: u64,
) -> Result<RoundRecord, Error> {
    let System { k, symbols, fleet, .. } = system;
    let broken = |problem| Error::Policy { round: t + 1, problem };

    // 1. The server broadcasts θ(t), error-free: every device reads `theta`.

    // 2. The channel is drawn; it alone says who may be scheduled. Those train, and report what the policy asks.
    let channels = system.channels(t);
    let candidates = policy.candidates(&channels, *k);
    check_candidates(&candidates, system.devices, *k).map_err(broken)?;
    let mut trained = fleet.train(theta, t, &candidates, policy.report(), &channels, *k)?;

    // 3. The policy picks 𝓜(t), |𝓜| = K, and the weights w.
    let schedule = policy.select(&candidates, &trained.reports, &channels, *k);
    schedule.check(&candidates, *k).map_err(broken)?;

    // 4. The n symbols are shared so that bits are proportional to w.
    let capacities: Vec<f64> = schedule.devices.iter().map(|&m| channels.capacity(m)).collect();
    let slots = split_slots(&schedule.weights, &capacities, *symbols, system.slots);

    // 5. Each scheduled device compresses its update to at most R = n_m·C_m bits.
    let updates: Vec<Vec<f32>> =
        schedule.devices.iter().map(|&m| fleet.update_of(&mut trained, theta, t, m)).collect();
    let compress = |(i, update): (usize, &Vec<f32>)| {
        let budget = Bits(slots[i].0 * capacities[i]);
        let q = fleet.compressor.largest_q(update.len(), budget);
        (budget, q, fleet.compress(update, q, t, schedule.devices[i]))
    };
    let sent: Vec<(Bits, usize, SparseUpdate)> = updates.par_iter().enumerate().map(compress).collect();

    // 6. θ(t+1) = θ(t) + (1/K)·Σ Δ̂, or weighted by size; a silent device (q = 0) adds nothing and still counts.
    for ((_, _, compressed), share) in sent.iter().zip(fleet.shares(&schedule.devices)) {
        compressed.add_to(theta, share);
    }

    let transmission = |i: usize| {
        let (device, (budget, q, compressed)) = (schedule.devices[i], &sent[i]);
        let place = candidates.iter().position(|c| *c == device).expect("scheduled from the candidates");
        Transmission {
            device,
            gain: channels.gain(device),
            capacity: capacities[i],
            report: trained.reports[place],
            weight: schedule.weights[i],
            symbols: slots[i],
            budget: *budget,
            q: *q,
            bits: if *q == 0 { Bits(0.0) } else { fleet.compressor.bits(theta.len(), *q) },
            entries: compressed.indices.len(),
        }
    };
    let record = RoundRecord {
        round: t + 1,
        transmissions: (0..*k).map(transmission).collect(),
        trained: trained.count,
        train_loss: trained.loss,
        evaluation: None,
    };
    for ((&device, update), (_, _, compressed)) in schedule.devices.iter().zip(updates).zip(sent) {
        fleet.settle(device, update, compressed);
    }
    fleet.release(trained);
    Ok(record)
}

impl System {
    /// P = M·P̄/K, what a scheduled device sends with.
    pub fn power(&self) -> Power {
        transmit_power(self.devices, self.k, self.average_power)
    }

    /// The uplink in round `t`.
    pub(crate) fn channels(&self, t: u64) -> Channels {
        let gains = self.channel.gains(t, self.devices);
        let power = self.power();
        let capacities = gains.iter().map(|&gain| capacity(gain, power, self.noise)).collect();
        Channels { gains, capacities }
    }
}
