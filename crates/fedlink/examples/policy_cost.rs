//! The server's processor time per round, by policy:
//! `cargo run --release -p fedlink --example policy_cost [M [NAME…]]`.
//!
//! Only the server's part is timed: selection of trainers, scheduling, and grants. The time is the processor
//! time of the thread, the minimum over many rounds, so that other load on the machine has little effect. A
//! policy that schedules all devices is timed at K = M. If the state of a policy over all devices is too
//! large for the machine, or if a server of nodes cannot run it, its row shows the error.

use cpu_time::ThreadTime;
use fedlink::parts::Parts;
use fedlink::parts::{Entry, Kind};
use fedlink::record::Training;
use fedlink::schedule::{Policy, Reports};
use fedlink::spec::Config;
use fedlink::system::server::Server;

const ROUNDS: u64 = 25;

fn config(policy: &str, devices: u64, k: u64) -> Config {
    let mut config = Config::default();
    (config.data.devices, config.schedule.k) = (devices, k);
    config.schedule.policy = policy.into();
    config
}

/// Milliseconds of the fastest of the rounds.
fn milliseconds(policy: &str, devices: u64, k: u64) -> Result<f64, fedlink::Error> {
    let config = config(policy, devices, k);
    let mut server = Server::of(&config.resolve(&Parts::default()).unwrap(), vec![0.0; 10], None)?;
    let mut best = f64::INFINITY;
    for t in 0..ROUNDS {
        let known = server.links(t).known;
        let start = ThreadTime::now();
        let call = server.begin(t, known, |_| true)?;
        let begun = start.elapsed();
        let answer = |i: usize| ((i * 7919 + t as usize * 31) % 1009) as f32 + 1.0;
        let values = (0..call.candidates.len() * call.asks.len()).map(answer).collect();
        let reports = Reports::new(call.candidates, call.asks.len(), values);
        let start = ThreadTime::now();
        server.report(reports)?;
        best = best.min(1e3 * (begun + start.elapsed()).as_secs_f64());
        server.deliver_messages(&[], Training::new(k as usize, 0.5))?;
    }
    Ok(best)
}

fn main() {
    let devices = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100_000);
    println!("M = {devices}: milliseconds of processor time of a round's decisions at K = 10, 100, 1000");
    let named: Vec<String> = std::env::args().skip(2).collect();
    let asked = |entry: &&Entry<dyn Policy>| named.is_empty() || named.iter().any(|name| name == entry.name);
    for entry in <dyn Policy>::entries().iter().filter(asked) {
        let some = config(entry.name, devices, 10).validate().is_ok();
        let counts = if some { vec![10, 100, 1000] } else { vec![devices] };
        let time = |&k: &u64| match milliseconds(entry.name, devices, k) {
            Ok(time) => format!("{time:8.2}"),
            Err(error) => error.to_string(),
        };
        let mut times: Vec<String> = counts.iter().map(time).collect();
        times.dedup();
        println!("{:18} {}{}", entry.name, times.join(" "), if some { "" } else { " at K = M" });
    }
}
