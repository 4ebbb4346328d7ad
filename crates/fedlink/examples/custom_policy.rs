//! A custom policy: the devices that have waited longest, of those with a better channel than the median.
//!
//! Run it with `cargo run --release --package fedlink --example custom_policy`.

use fedlink::prelude::*;
use fedlink::schedule::largest;

/// Fair turns among the devices with good channels.
#[derive(Default)]
struct FairTurns {
    /// Rounds since each device was scheduled.
    waiting: Vec<u32>,
}

/// The state between rounds goes into checkpoints, so that a resumed run is the same run.
impl Persist for FairTurns {
    fn save(&self) -> State {
        State::of(&self.waiting)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        self.waiting = state.read()?;
        Ok(())
    }
}

impl Policy for FairTurns {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.waiting.resize(view.links.devices(), 0);
        let half = (view.links.devices() / 2).max(view.k);
        let favored = largest(&view.everyone(), half, |m| view.links.gains[m]);
        largest(&favored, view.k, |index| f64::from(self.waiting[favored[index].index()]))
    }

    fn select(&mut self, _: &View, reports: &Reports) -> Schedule {
        self.waiting.iter_mut().for_each(|rounds| *rounds += 1);
        reports.devices.iter().for_each(|device| self.waiting[device.index()] = 0);
        Schedule::equal(reports.devices.iter().copied())
    }
}

fn main() -> Result<(), Error> {
    let mut config = Config::default();
    config.learn.model = "softmax".into();
    config.schedule.policy = "fair-turns".into();
    config.schedule.k = 4;
    config.run.rounds = 50;
    let parts = Parts::default().policy("fair-turns", file!(), |_, _| Ok(Box::new(FairTurns::default())));
    let dataset = fedlink::data::load(&config.data.dataset, &[])?;
    let outcome = Simulation::with_parts(&config, dataset, &parts)?.run(|_| ())?;
    println!(
        "{:.1} % after {} rounds; worst average power {:.2}",
        100.0 * outcome.final_accuracy.unwrap_or(0.0),
        outcome.rounds,
        outcome.worst_average_power.0
    );
    Ok(())
}
