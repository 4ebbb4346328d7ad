//! Ctrl-C: a run ends cleanly at the first and at once at the second; a download ends at once.
//!
//! The handler belongs to the process, so it is installed once, and only in a process that allows it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

static STOP: AtomicBool = AtomicBool::new(false);
/// How the process ends at once; set if Ctrl-C is ours to handle.
static QUIT: OnceLock<fn()> = OnceLock::new();
static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
static AT_CTRL_C: Mutex<AtCtrlC> = Mutex::new(AtCtrlC::Stop);

/// What Ctrl-C does.
enum AtCtrlC {
    /// Ends the run after this round.
    Stop,
    /// Removes the folder, if there is one, and quits with this message.
    Quit { cleanup_dir: Option<PathBuf>, message: String },
}

/// Lets commands handle Ctrl-C in this process; `quit` must end it. To be called by a program before
/// [`run`](crate::run), not by a library.
pub fn quit_on_interrupt(quit: fn()) {
    let _ = QUIT.set(quit);
}

/// Asks the run in progress to save itself and to end after this round, as the first Ctrl-C does.
pub fn stop() {
    STOP.store(true, Ordering::SeqCst);
}

/// Starts to listen for a wish to [stop].
pub(crate) fn listen() -> anyhow::Result<()> {
    STOP.store(false, Ordering::SeqCst);
    *at_ctrl_c() = AtCtrlC::Stop;
    install()
}

/// Whether the run was asked to end.
pub(crate) fn asked() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// Starts to listen; Ctrl-C then removes the [folder](set_cleanup_dir) and quits with this message.
pub(crate) fn quit_at_once(message: String) -> anyhow::Result<()> {
    *at_ctrl_c() = AtCtrlC::Quit { cleanup_dir: None, message };
    install()
}

/// The folder that is to go if Ctrl-C comes.
pub(crate) fn set_cleanup_dir(folder: Option<PathBuf>) {
    if let AtCtrlC::Quit { cleanup_dir, .. } = &mut *at_ctrl_c() {
        *cleanup_dir = folder;
    }
}

fn at_ctrl_c() -> MutexGuard<'static, AtCtrlC> {
    AT_CTRL_C.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handler, if it is ours to install and not there yet.
fn install() -> anyhow::Result<()> {
    let Some(&quit) = QUIT.get() else { return Ok(()) };
    let handler = move || match &mut *at_ctrl_c() {
        AtCtrlC::Stop if STOP.swap(true, Ordering::SeqCst) => quit(),
        AtCtrlC::Stop => {
            eprintln!(
                "\nstopping after this round and saving what is there; press Ctrl-C again to quit at once"
            );
        }
        AtCtrlC::Quit { cleanup_dir, message } => {
            if let Some(folder) = cleanup_dir.take() {
                // Once more if a file came in meanwhile.
                let _ = std::fs::remove_dir_all(&folder).or_else(|_| std::fs::remove_dir_all(&folder));
            }
            eprintln!("\n{message}");
            quit();
        }
    };
    let installed = INSTALLED.get_or_init(|| ctrlc::set_handler(handler).map_err(|error| error.to_string()));
    installed.clone().map_err(|problem| anyhow::anyhow!("cannot handle Ctrl-C: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_not_allowed_it_keeps_its_own_handler_and_is_stopped_by_the_flag() {
        listen().unwrap();
        listen().unwrap();
        assert!(INSTALLED.get().is_none() && !asked());
        stop();
        assert!(asked());
        listen().unwrap();
        assert!(!asked());
    }
}
