//! Ctrl-C: the first asks the run to end cleanly, the second ends it at once.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

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
