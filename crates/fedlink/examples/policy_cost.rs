//! What each policy takes to decide a round: `cargo run --release -p fedlink --example policy_cost [M]`.
//!
//! Only the server's part is timed: who trains, who is scheduled, and the grants. A policy whose state over all devices
//! is too large for the machine is named with its error.

use fedlink::config::Config;
use fedlink::parts::Parts;
use fedlink::record::Training;
use fedlink::registry::Kind;
use fedlink::schedule::{Policy, Reports};
use fedlink::session::Session;
use std::time::Instant;

const ROUNDS: u64 = 5;

/// Milliseconds of the fastest of a few rounds.
fn milliseconds(policy: &str, devices: u64, k: u64) -> Result<f64, fedlink::Error> {
    let mut config = Config::default();
    (config.data.devices, config.schedule.k) = (devices, k);
    config.schedule.policy = policy.into();
    let mut session = Session::of(&config, &Parts::default(), vec![0.0; 10], None)?;
    let mut best = f64::INFINITY;
    for t in 0..ROUNDS {
        let known = session.links(t).known;
        let start = Instant::now();
        let call = session.begin(t, known, |_| true)?;
        let begun = start.elapsed();
        let answer = |i: usize| ((i * 7919 + t as usize * 31) % 1009) as f32 + 1.0;
        let values = (0..call.candidates.len() * call.asks.len()).map(answer).collect();
        let reports = Reports::new(call.candidates, call.asks.len(), values);
        let start = Instant::now();
        session.report(reports)?;
        best = best.min(1e3 * (begun + start.elapsed()).as_secs_f64());
        session.deliver_messages(&[], Training::new(k as usize, 0.5))?;
    }
    Ok(best)
}

fn main() {
    let devices = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100_000);
    println!("M = {devices}: milliseconds of a round's decisions at K = 10, 100, 1000");
    for entry in <dyn Policy>::entries() {
        let times = [10, 100, 1000].map(|k| match milliseconds(entry.name, devices, k) {
            Ok(time) => format!("{time:8.2}"),
            Err(error) => error.to_string(),
        });
        let same = times.iter().all(|time| *time == times[0]);
        println!("{:18} {}", entry.name, if same { times[0].clone() } else { times.join(" ") });
    }
}
