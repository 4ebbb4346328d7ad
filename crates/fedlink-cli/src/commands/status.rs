//! `fedlink status`: the progress of the runs in a folder.

use crate::args::StatusOptions;
use crate::failure::Exit;
use crate::progress::duration;
use fedlink::shown::one_line;
use fedlink_study::sweep::{CurveProgress, GoalProgress, RunState, RunStatus, SweepStatus, status};
use std::fmt::Write;

/// The most characters of the message of a failed run.
const MESSAGE: usize = 1000;

pub fn run(options: &StatusOptions) -> anyhow::Result<Exit> {
    let status = status(&options.folder)?;
    if options.json {
        outln!("{}", serde_json::to_string_pretty(&status)?)?;
    } else {
        out!("{}", text(&status))?;
    }
    Ok(Exit::Done)
}

fn text(status: &SweepStatus) -> String {
    let SweepStatus { of, done, running, waiting, failed, .. } = status;
    let mut text = format!("{done} of {of} done, {running} running, {waiting} to go");
    if *failed > 0 {
        let _ = write!(text, ", {failed} failed");
    }
    if let Some(seconds) = status.seconds_left {
        let _ = write!(text, ", about {} left", duration(seconds));
    }
    let best = status.goals.first().and_then(|goal| goal.curves.first());
    // A cost that no run has reached yet ranks nothing.
    let is_reached = |best: &&CurveProgress| best.median.as_ref().is_none_or(|median| median.reached > 0);
    if let Some(best) = best.filter(is_reached) {
        let _ = write!(text, "; best so far {}: {}", best.curve, best.text);
    }
    text.push('\n');
    for GoalProgress { name, goal, curves, .. } in status.goals.iter().filter(|goal| !goal.curves.is_empty())
    {
        let whose = if name == goal { String::new() } else { format!("{name}: ") };
        let _ = writeln!(text, "goal     {whose}{goal}");
        for CurveProgress { curve, text: value, .. } in curves {
            let _ = writeln!(text, "         {curve}: {value}");
        }
    }
    for RunStatus { label, name, rounds, state, .. } in &status.runs {
        let _ = match state {
            RunState::Running(progress) => {
                let accuracy =
                    progress.accuracy.map_or_else(String::new, |share| format!(", {:.1} %", 100.0 * share));
                writeln!(
                    text,
                    "running  {label}: round {}/{rounds}{accuracy}; {}",
                    progress.round,
                    progress.holder()
                )
            }
            RunState::Failed { message } => {
                writeln!(text, "failed   {label} ({name}): {}", one_line(message, MESSAGE))
            }
            // Done and waiting runs are counted above.
            _ => Ok(()),
        };
    }
    text
}
