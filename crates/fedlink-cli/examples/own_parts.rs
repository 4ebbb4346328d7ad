//! The `fedlink` command with a policy of this program.

use fedlink::prelude::*;
use std::path::PathBuf;
use std::process::ExitCode;

/// The K devices that have waited longest. `[schedule.longest-wait]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
struct LongestWait {}

impl PartConfig for LongestWait {
    type Part = dyn Policy;
    const NAME: &'static str = "longest-wait";
    const MEANING: &'static str = "the K devices that have waited longest";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for LongestWait {}

impl Policy for LongestWait {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let devices = view.eligible();
        fedlink::schedule::largest(&devices, view.k, |i| view.devices.age(devices[i], view.t) as f64)
    }
}

/// The parts of this program.
struct Own;

impl fedlink_cli::PartLoader for Own {
    fn load(&self, _: &[PathBuf]) -> anyhow::Result<Parts> {
        Ok(Parts::default().add::<LongestWait>("own_parts 1.0"))
    }
}

fn main() -> ExitCode {
    fedlink_cli::run(std::env::args_os(), &Own)
}
