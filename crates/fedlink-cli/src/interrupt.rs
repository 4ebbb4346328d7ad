//! Ctrl-C and other termination signals: a run ends cleanly at the first and at once at a second, deliberate
//! one; a download ends at once.
//!
//! The handler belongs to the process: it is installed once, and only in a process that allows it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

static STOP: AtomicBool = AtomicBool::new(false);
/// Ends the process at once; set if this process handles Ctrl-C.
static QUIT: OnceLock<fn()> = OnceLock::new();
static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
static SIGNALS: Mutex<Signals> = Mutex::new(Signals::new());
static AT_CTRL_C: Mutex<AtCtrlC> = Mutex::new(AtCtrlC::Stop);

/// The effect of Ctrl-C.
enum AtCtrlC {
    /// Ends the run after this round.
    Stop,
    /// Ends the command soon.
    StopQuietly,
    /// Removes the folder, if there is one, and quits with this message.
    Quit { cleanup_dir: Option<PathBuf>, message: String },
}

/// Lets commands handle Ctrl-C in this process; `quit` must end it. A program calls it before
/// [`run`](crate::run); a library does not.
pub fn quit_on_interrupt(quit: fn()) {
    let _ = QUIT.set(quit);
}

/// Stops the run in progress: it saves its state and ends after this round, as after the first Ctrl-C.
pub fn stop() {
    STOP.store(true, Ordering::SeqCst);
}

/// Starts to handle signals; the first one [stops](stop) the run.
pub(crate) fn listen() -> anyhow::Result<()> {
    STOP.store(false, Ordering::SeqCst);
    *SIGNALS.lock().unwrap_or_else(PoisonError::into_inner) = Signals::new();
    *at_ctrl_c() = AtCtrlC::Stop;
    install()
}

/// As [`listen`], for a command that has nothing to save.
pub(crate) fn listen_quietly() -> anyhow::Result<()> {
    listen()?;
    *at_ctrl_c() = AtCtrlC::StopQuietly;
    Ok(())
}

/// Whether a stop was requested.
pub(crate) fn stop_requested() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// Lets signals end the process at once until [`save_first`] is called: nothing is there to be saved.
pub(crate) fn quit_until_saving(message: String) {
    *at_ctrl_c() = AtCtrlC::Quit { cleanup_dir: None, message };
}

/// Lets signals [stop] the run again.
pub(crate) fn save_first() {
    *at_ctrl_c() = AtCtrlC::Stop;
}

/// Lets a write beyond the limit of a file's size (`ulimit -f`) be an error instead of the end of the
/// process, if the process allows it.
pub(crate) fn survive_file_limits() {
    #[cfg(unix)]
    if QUIT.get().is_some() {
        // An error leaves the default, which ends the process.
        let flag = std::sync::Arc::new(AtomicBool::new(false));
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, flag);
    }
}

/// Starts to handle signals; Ctrl-C then removes the [folder](set_cleanup_dir) and quits with this message.
pub(crate) fn quit_at_once(message: String) -> anyhow::Result<()> {
    *at_ctrl_c() = AtCtrlC::Quit { cleanup_dir: None, message };
    install()
}

/// Sets the folder that Ctrl-C removes.
pub(crate) fn set_cleanup_dir(folder: Option<PathBuf>) {
    if let AtCtrlC::Quit { cleanup_dir, .. } = &mut *at_ctrl_c() {
        *cleanup_dir = folder;
    }
}

fn at_ctrl_c() -> MutexGuard<'static, AtCtrlC> {
    AT_CTRL_C.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handler once, if this process allows it.
fn install() -> anyhow::Result<()> {
    let Some(&quit) = QUIT.get() else { return Ok(()) };
    let installed = INSTALLED.get_or_init(|| install_handler(move |request| handle(request, quit)));
    installed.clone().map_err(|problem| anyhow::anyhow!("cannot handle Ctrl-C: {problem}"))
}

/// The request of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// Ctrl-C, by a person.
    Interrupt,
    /// A termination signal of a program or the system; it often comes twice at once.
    Terminate,
}

#[cfg(unix)]
fn install_handler(handler: impl Fn(Request) + Send + 'static) -> Result<(), String> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut wanted = vec![SIGINT, SIGTERM];
    // A process under `nohup` must outlive the terminal.
    if !is_ignored(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let mut signals = signal_hook::iterator::Signals::new(wanted).map_err(|error| error.to_string())?;
    let listen = move || {
        for signal in signals.forever() {
            handler(if signal == SIGINT { Request::Interrupt } else { Request::Terminate });
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(listen)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Whether this process was started with a signal ignored, if the system reports it.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(not(unix))]
fn install_handler(handler: impl Fn(Request) + Send + 'static) -> Result<(), String> {
    ctrlc::set_handler(move || handler(Request::Interrupt)).map_err(|error| error.to_string())
}

/// Executes the request of a signal.
fn handle(request: Request, quit: fn()) {
    match &mut *at_ctrl_c() {
        AtCtrlC::Stop => {
            let quits = SIGNALS.lock().unwrap_or_else(PoisonError::into_inner).quits(request, Instant::now());
            if STOP.swap(true, Ordering::SeqCst) {
                if quits {
                    quit();
                }
                return;
            }
            errln!("\nstopping after this round and saving the state; press Ctrl-C again to quit at once");
        }
        AtCtrlC::StopQuietly => {
            if STOP.swap(true, Ordering::SeqCst) {
                quit();
            }
        }
        AtCtrlC::Quit { cleanup_dir, message } => {
            if let Some(folder) = cleanup_dir.take() {
                // Repeated in case a file was added meanwhile.
                let _ = std::fs::remove_dir_all(&folder).or_else(|_| std::fs::remove_dir_all(&folder));
            }
            errln!("\n{message}");
            quit();
        }
    }
}

/// The signals that have come since a run began to listen.
struct Signals {
    first: Option<Instant>,
    /// The first Ctrl-C.
    interrupt: Option<Instant>,
}

impl Signals {
    /// After this a signal is a request of its own.
    const LATER: Duration = Duration::from_secs(1);
    /// Two Ctrl-C within this are one, sent to a process and to its group.
    const ECHO: Duration = Duration::from_millis(50);

    const fn new() -> Self {
        Self { first: None, interrupt: None }
    }

    /// Whether to quit at once: at a second Ctrl-C, or at any signal more than a second after the first. A
    /// program that wants another to end often sends the signal twice at once, and means: save and end.
    fn quits(&mut self, request: Request, now: Instant) -> bool {
        let later = self.first.is_some_and(|first| now.duration_since(first) > Self::LATER);
        let again = request == Request::Interrupt
            && self.interrupt.is_some_and(|before| now.duration_since(before) > Self::ECHO);
        self.first.get_or_insert(now);
        if request == Request::Interrupt {
            self.interrupt.get_or_insert(now);
        }
        later || again
    }
}

#[cfg(test)]
mod tests {
    use super::Request::{Interrupt, Terminate};
    use super::*;

    #[test]
    fn a_process_that_has_not_allowed_it_keeps_its_own_handler_and_is_stopped_by_the_flag() {
        listen().unwrap();
        listen().unwrap();
        assert!(INSTALLED.get().is_none() && !stop_requested());
        stop();
        assert!(stop_requested());
        listen().unwrap();
        assert!(!stop_requested());
    }

    #[test]
    fn a_second_ctrl_c_or_a_signal_after_a_second_quits_and_an_echo_does_not() {
        let start = Instant::now();
        let quits = |signals: &[(Request, u64)]| -> Vec<bool> {
            let mut seen = Signals::new();
            let at = |millis: u64| start + Duration::from_millis(millis);
            signals.iter().map(|&(request, millis)| seen.quits(request, at(millis))).collect()
        };
        assert_eq!(quits(&[(Interrupt, 0), (Interrupt, 300)]), [false, true]);
        assert_eq!(quits(&[(Interrupt, 0), (Interrupt, 1)]), [false, false]);
        assert_eq!(quits(&[(Terminate, 0), (Terminate, 0), (Terminate, 900)]), [false, false, false]);
        assert_eq!(quits(&[(Terminate, 0), (Terminate, 1001)]), [false, true]);
        assert_eq!(quits(&[(Terminate, 0), (Interrupt, 300), (Interrupt, 600)]), [false, false, true]);
    }
}
