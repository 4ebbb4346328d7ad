//! One federated round, from broadcast to aggregation.

use crate::error::Error;
use crate::radio::{Carried, Links};
use crate::record::Arrival;
use crate::system::clock::{Clock, Uploads};
use crate::system::fleet::{Fleet, Sent};
use crate::system::genie;
use crate::system::server::{Scheduled, Server, Upload};

/// Round `t` (from 0): θ(t) becomes θ(t+1).
pub fn round(server: &mut Server, fleet: &mut Fleet, clock: &Clock, t: u64) -> Result<(), Error> {
    // 1. The server broadcasts θ(t): every device that it reaches, and whose battery lasts, reads it where it
    //    lies.
    let Links { gains, known } = server.links(t);
    let present = clock.present(t, server.radio(), |m| server.spent_j(m), &known);

    // 2. The channel is drawn. The knowledge of the server decides which devices may be scheduled: those
    //    train, and report the numbers that the policy needs, if they can before the deadline.
    fleet.set_control(server.control());
    let call = server.begin(t, known, |device| present.contains(device))?;
    let mut trained = fleet.train(server.theta(), &call, |device| present.contains(device))?;
    let mut timing = clock.begin(t, &trained.devices, server.radio());
    let reports = clock.in_time(&mut timing, &call, std::mem::take(&mut trained.reports));
    // Where the policy names a genie, only the devices that it chooses report.
    let reports = genie::choose(server, fleet, &trained, &call, reports)?;

    // 3. The policy picks 𝓜(t), |𝓜| ≤ K, each with a bit weight and a weight. 4. The n symbols are split so
    //    that bits are proportional to the bit weights.
    let scheduled = server.report(reports)?;

    // 5. Each scheduled device compresses its update to at most R = n_m·C_m bits, and sends it. The true
    //    channel decides which uploads arrive.
    let sent = fleet.send(&mut trained, server.theta(), &scheduled, t)?;
    let carry = |(one, sent): (&Scheduled, &Sent)| server.carry(one, sent.bits(), gains[one.device.index()]);
    let mut carried: Vec<Carried> = scheduled.iter().zip(&sent).map(carry).collect::<Result<_, Error>>()?;
    let (powers, spent_j) = (&server.known()?.powers, |m| server.spent_j(m));
    let uploads = Uploads::new(&call, &trained.devices, &scheduled, powers, &spent_j);
    let (cost, late) = clock.finish(&timing, &present, &uploads, &mut carried);

    // 6. The server decodes, judges and aggregates: θ(t+1) = θ(t) + c·Σ weight·Δ̂. A device that is silent,
    //    late or in outage, or whose upload cannot be decoded or fails the audit, adds nothing and still
    //    counts.
    let uploads: Vec<Upload> = (0..sent.len()).map(|i| sent[i].upload_over(&carried[i], late[i])).collect();
    let record = server.deliver(&uploads, trained.training, cost)?;
    let delivered: Vec<bool> = if fleet.waits_for_use() {
        record.transmissions.iter().map(|sent| sent.arrival == Arrival::Used).collect()
    } else {
        (0..sent.len()).map(|i| carried[i].delivered && !late[i]).collect()
    };
    fleet.settle(t, trained, sent, &delivered);
    Ok(())
}
