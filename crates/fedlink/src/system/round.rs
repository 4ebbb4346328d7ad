//! One federated round, from broadcast to aggregation.

use crate::error::Error;
use crate::radio::{Carried, Links};
use crate::record::Arrival;
use crate::system::clock::{Clock, Uploads};
use crate::system::fleet::Fleet;
use crate::system::genie;
use crate::system::server::{Scheduled, Upload};
use crate::system::session::Session;

/// All parties of a run.
pub struct World {
    /// The parameter server, with its policy, its uplink and the record of its rounds.
    pub session: Session,
    /// The devices.
    pub fleet: Fleet,
    /// Seconds and joules; it counts nothing where the radio has no units.
    pub clock: Clock,
}

/// Round `t` (from 0): θ(t) becomes θ(t+1).
pub fn round(world: &mut World, t: u64) -> Result<(), Error> {
    let World { session, fleet, clock } = world;

    // 1. The server broadcasts θ(t): every device that it reaches, and whose battery lasts, reads it where it
    //    lies.
    let Links { gains, known } = session.links(t);
    let present = clock.present(t, &session.server().radio, |m| session.spent_j(m), &known);

    // 2. The channel is drawn. The knowledge of the server decides which devices may be scheduled: those
    //    train, and report what the policy asks, if they can before the deadline.
    fleet.set_control(session.server().control());
    let call = session.begin(t, known, |device| present.contains(device))?;
    let mut trained = fleet.train(session.theta(), &call, |device| present.contains(device))?;
    let mut timing = clock.begin(t, &trained.devices, &session.server().radio);
    let reports = clock.in_time(&mut timing, &call, std::mem::take(&mut trained.reports));
    // Where the policy names a genie, only the devices that it chooses answer.
    let reports = genie::choose(session.server(), fleet, &trained, &call, reports)?;

    // 3. The policy picks 𝓜(t), |𝓜| ≤ K, with bit weights and shares. 4. The n symbols are split so that bits
    //    are proportional to the weights.
    let scheduled = session.report(reports)?;

    // 5. Each scheduled device compresses its update to at most R = n_m·C_m bits, and sends it. The channel
    //    as it is decides what arrives.
    let sent = fleet.send(&mut trained, session.theta(), &scheduled, t)?;
    let server = session.server();
    let carry = |one: &Scheduled| server.carry(one, gains[one.device.index()]);
    let mut carried: Vec<Carried> = scheduled.iter().map(carry).collect::<Result<_, Error>>()?;
    let (powers, spent_j) = (&server.known()?.powers, |m| session.spent_j(m));
    let uploads = Uploads::new(&call, &trained.devices, &scheduled, powers, &spent_j);
    let (cost, late) = clock.finish(&timing, &present, &uploads, &mut carried);

    // 6. The server decodes, judges and aggregates: θ(t+1) = θ(t) + c·Σ share·Δ̂. A device that is silent,
    //    late or in outage, or whose upload cannot be decoded or fails the audit, adds nothing and still
    //    counts.
    let uploads: Vec<Upload> = (0..sent.len()).map(|i| sent[i].upload_over(&carried[i], late[i])).collect();
    let record = session.deliver(&uploads, trained.training, cost)?;
    let delivered: Vec<bool> = if fleet.waits_for_use() {
        record.transmissions.iter().map(|sent| sent.arrival == Arrival::Used).collect()
    } else {
        (0..sent.len()).map(|i| carried[i].delivered && !late[i]).collect()
    };
    fleet.settle(t, trained, sent, &delivered);
    Ok(())
}
