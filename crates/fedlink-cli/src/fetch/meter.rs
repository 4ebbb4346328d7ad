//! Bytes that have come so far: a bar on a terminal, plain lines elsewhere.

use fedlink::shown::escaped;
use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Time between plain lines.
const PACE: Duration = Duration::from_secs(2);

/// Progress of one download.
pub struct Meter {
    name: String,
    view: View,
    last_line: Instant,
}

enum View {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

impl Meter {
    /// Progress of the file of this name.
    pub fn new(name: &str, quiet: bool) -> Self {
        let view = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => View::Nothing,
            (false, false) => View::Lines,
            (false, true) => {
                let form = "  {prefix} {bar:24} {decimal_bytes:>10}/{decimal_total_bytes} \
                    {decimal_bytes_per_sec:>12} {eta:>5} left";
                let style = ProgressStyle::with_template(form)
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("━╸─");
                View::Bar(ProgressBar::no_length().with_style(style).with_prefix(name.to_owned()))
            }
        };
        Self { name: name.to_owned(), view, last_line: Instant::now() }
    }

    /// Shows the bytes so far, and the total if that is known.
    pub fn at(&mut self, here: u64, total: Option<u64>) {
        match &self.view {
            View::Nothing => {}
            View::Bar(bar) => {
                if let Some(total) = total {
                    bar.set_length(total);
                }
                bar.set_position(here);
            }
            View::Lines => {
                if self.last_line.elapsed() >= PACE {
                    self.last_line = Instant::now();
                    let of = total.map(|total| format!(" of {}", DecimalBytes(total))).unwrap_or_default();
                    errln!("  {}: {}{of}", self.name, DecimalBytes(here));
                }
            }
        }
    }

    /// Prints a line without breaking the progress bar.
    pub fn print(&self, line: &str) {
        match &self.view {
            View::Nothing => {}
            View::Bar(bar) => bar.println(escaped(&format!("  {}: {line}", self.name))),
            View::Lines => errln!("  {}: {line}", self.name),
        }
    }

    /// All is here.
    pub fn end(&self, here: u64) {
        match &self.view {
            View::Nothing => {}
            View::Bar(bar) => bar.finish(),
            View::Lines => errln!("  {}: {}, complete", self.name, DecimalBytes(here)),
        }
    }
}
