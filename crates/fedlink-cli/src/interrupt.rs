//! Ctrl-C: a run ends cleanly at the first and at once at the second; a download ends at once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

static ASKED: AtomicBool = AtomicBool::new(false);
static LITTER: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Starts to listen.
pub fn listen() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        eprintln!("\nstopping after this round and saving what is there; press Ctrl-C again to quit at once");
    })?;
    Ok(())
}

/// Whether the run was asked to end.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Starts to listen; Ctrl-C then removes the [litter](set_litter) and quits with these last words.
pub fn quit_at_once(last_words: String) -> anyhow::Result<()> {
    ctrlc::set_handler(move || {
        if let Some(folder) = LITTER.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Once more if a file came in meanwhile.
            let _ = std::fs::remove_dir_all(&folder).or_else(|_| std::fs::remove_dir_all(&folder));
        }
        eprintln!("\n{last_words}");
        std::process::exit(130);
    })?;
    Ok(())
}

/// The folder that is to go if Ctrl-C comes.
pub fn set_litter(folder: Option<PathBuf>) {
    *LITTER.lock().unwrap_or_else(PoisonError::into_inner) = folder;
}
