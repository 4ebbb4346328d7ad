//! Ranges of the keys of all sections.

use crate::parts::count::BatchSize;
use crate::parts::{ConfigError, Keys as _, number, within};
use crate::spec::Config;

/// Checks each key of the sections against its range, also where the range depends on another key.
pub(in crate::spec) fn check_ranges(config: &Config) -> Result<(), ConfigError> {
    let Config { data, learn, radio, cell, clock, energy, schedule, compress, .. } = config;
    let Config { adversary, defense, privacy, run, .. } = config;
    data.check()?;
    let devices = format!(" (data.devices is {})", data.devices);
    within("schedule.k", schedule.k, 1..=data.devices, &devices)?;
    learn.check()?;
    radio.check()?;
    cell.check()?;
    clock.check()?;
    energy.check()?;
    schedule.check()?;
    compress.check()?;
    adversary.check()?;
    defense.check()?;
    privacy.check()?;
    run.check()?;
    if let BatchSize::Count(batch) = learn.batch {
        within("learn.batch", batch, 1..=u64::from(u32::MAX), " or \"full\"")?;
    }
    if let Some(min) = learn.local_steps_min {
        let note = format!(" (learn.local_steps is {})", learn.local_steps);
        within("learn.local_steps_min", min, 1..=learn.local_steps, &note)?;
    }
    within("schedule.k_min", schedule.k_min, 1..=schedule.k, " (from 1 to schedule.k)")?;
    if ![0, 8, 16, 32].contains(&schedule.report_bits) {
        let problem = format!("is {}, but must be 0, 8, 16 or 32", schedule.report_bits);
        return Err(ConfigError::new("schedule.report_bits", problem));
    }
    if let crate::aggregate::Clip::Norm(norm) = defense.clip {
        number("defense.clip", norm, |x| x > 0.0, "a finite number above 0, \"median\" or \"off\"")?;
    }
    within("run.seed", run.seed, 0..=(i64::MAX as u64 - run.seeds), "")
}
