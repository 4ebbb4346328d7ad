//! One federated round, from broadcast to aggregation.

use crate::error::Error;
use crate::fleet::Fleet;
use crate::server::Upload;
use crate::session::Session;

/// All parties of a run.
pub struct World {
    /// The parameter server, with its policy, its uplink and the record of its rounds.
    pub session: Session,
    /// The devices.
    pub fleet: Fleet,
}

/// Round `t` (from 0): θ(t) becomes θ(t+1).
pub fn round(world: &mut World, t: u64) -> Result<(), Error> {
    let World { session, fleet } = world;

    // 1. The server broadcasts θ(t), error-free: every device reads it where it lies.

    // 2. The channel is drawn. What the server knows of it decides who may be scheduled: those train, and
    //    report what the policy asks.
    let links = session.links(t);
    let call = session.begin(t, links.known, |_| true)?;
    let mut trained = fleet.train(session.theta(), &call)?;

    // 3. The policy picks 𝓜(t), |𝓜| ≤ K, with bit weights and shares. 4. The n symbols are split so that bits
    //    are proportional to the weights.
    let scheduled = session.report(trained.reports.clone())?;

    // 5. Each scheduled device compresses its update to at most R = n_m·C_m bits, and sends it.
    let sent = fleet.send(&mut trained, session.theta(), &scheduled, t)?;

    // 6. The server decodes, judges and aggregates: θ(t+1) = θ(t) + c·Σ share·Δ̂. A device that is silent, or
    //    whose upload cannot be decoded or fails the audit, adds nothing and still counts.
    let uploads: Vec<Upload> = sent.iter().map(|one| one.upload()).collect();
    session.deliver(&uploads, trained.training)?;
    fleet.settle(trained, sent);
    Ok(())
}
