//! What the user sees while curves run: bars on a terminal, plain lines elsewhere.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Progress of all curves.
pub struct Progress {
    curves: Vec<CurveProgress>,
}

/// Progress of one curve, over all its seeds.
struct CurveProgress {
    label: String,
    rounds: u64,
    view: View,
    state: Mutex<State>,
}

struct State {
    done: u64,
    accuracy: Option<f64>,
    started: Option<Instant>,
    tenths: u64,
}

enum View {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

impl Progress {
    /// Progress of curves with their labels and total rounds.
    pub fn new(curves: &[(String, u64)], quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let width = curves.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
        let style =
            ProgressStyle::with_template("{prefix} {bar:32} round {pos:>5}/{len} {msg:>9}  {eta:>5} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("━╸─");
        let curve = |(label, rounds): &(String, u64)| {
            let view = match (quiet, terminal) {
                (true, _) => View::Nothing,
                (false, false) => View::Lines,
                (false, true) => {
                    let bar = bars.add(ProgressBar::new(*rounds).with_style(style.clone()));
                    bar.set_prefix(format!("{label:<width$}"));
                    bar.set_message("");
                    bar.enable_steady_tick(Duration::from_millis(250));
                    View::Bar(bar)
                }
            };
            let state = State { done: 0, accuracy: None, started: None, tenths: 0 };
            CurveProgress {
                label: format!("{label:<width$}"),
                rounds: *rounds,
                view,
                state: Mutex::new(state),
            }
        };
        Self { curves: curves.iter().map(curve).collect() }
    }

    /// One more round of curve `index`, with the accuracy if it was evaluated.
    pub fn round(&self, index: usize, accuracy: Option<f64>) {
        let curve = &self.curves[index];
        let mut state = curve.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let started = *state.started.get_or_insert_with(Instant::now);
        state.done += 1;
        state.accuracy = accuracy.or(state.accuracy);
        let percent = state.accuracy.map(|accuracy| format!("{:.2} %", 100.0 * accuracy));
        match &curve.view {
            View::Nothing => {}
            View::Bar(bar) => {
                bar.set_message(percent.unwrap_or_default());
                bar.inc(1);
            }
            View::Lines => {
                let tenths = state.done * 10 / curve.rounds;
                if tenths > state.tenths {
                    state.tenths = tenths;
                    let spent = started.elapsed().as_secs_f64();
                    let left = spent / state.done as f64 * (curve.rounds - state.done) as f64;
                    eprintln!(
                        "{}  round {:>5}/{}  accuracy {:>8}  {left:.0} s left",
                        curve.label,
                        state.done,
                        curve.rounds,
                        percent.unwrap_or_else(|| "–".into()),
                    );
                }
            }
        }
    }

    /// Curve `index` will do no more rounds.
    pub fn end(&self, index: usize, message: Option<&str>) {
        match (&self.curves[index].view, message) {
            (View::Nothing, _) | (View::Lines, None) => {}
            (View::Bar(bar), None) => bar.finish(),
            (View::Bar(bar), Some(message)) => bar.abandon_with_message(message.to_owned()),
            (View::Lines, Some(message)) => eprintln!("{}  {message}", self.curves[index].label),
        }
    }
}
