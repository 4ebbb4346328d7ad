//! A policy of your own: round robin over the devices with a better channel than the median.
//!
//! Run it with `cargo run --release --package fedlink --example own_policy`.

use fedlink::config::Config;
use fedlink::radio::Channels;
use fedlink::schedule::{Policy, ReportKind, Schedule, everyone, largest};
use fedlink::simulation::Simulation;
use fedlink::units::DeviceId;

/// Whose turn it is, among those the channel favours.
struct FairRoundRobin {
    waiting: Vec<u32>,
}

impl Policy for FairRoundRobin {
    fn candidates(&mut self, channels: &Channels, k: usize) -> Vec<DeviceId> {
        self.waiting.resize(channels.devices(), 0);
        let half = (channels.devices() / 2).max(k);
        let favoured = largest(&everyone(channels), half, |m| channels.gains[m]);
        let chosen = largest(&favoured, k, |place| f64::from(self.waiting[favoured[place].index()]));
        self.waiting.iter_mut().for_each(|rounds| *rounds += 1);
        chosen.iter().for_each(|device| self.waiting[device.index()] = 0);
        chosen
    }

    fn report(&self) -> ReportKind {
        ReportKind::Nothing
    }

    fn select(&mut self, candidates: &[DeviceId], _: &[f32], _: &Channels, k: usize) -> Schedule {
        Schedule { devices: candidates.to_vec(), weights: vec![1.0; k] }
    }
}

fn main() -> Result<(), fedlink::Error> {
    let mut config = Config::default();
    config.learn.model = fedlink::learn::model::ModelKind::Softmax;
    config.schedule.k = 4;
    config.run.rounds = 50;
    let dataset = fedlink::data::load(&config.data, &[])?;
    let policy = Box::new(FairRoundRobin { waiting: Vec::new() });
    let outcome = Simulation::with_policy(&config, dataset, policy)?.run(&mut ())?;
    println!(
        "{:.1} % after {} rounds; worst average power {:.2}",
        100.0 * outcome.final_accuracy.unwrap_or(0.0),
        outcome.rounds,
        outcome.worst_average_power.0
    );
    Ok(())
}
