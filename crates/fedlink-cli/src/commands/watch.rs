//! `fedlink watch`: folders of results as a live page.

use crate::args::WatchOptions;
use crate::failure::{Exit, MachineFault};
use crate::interrupt;
use anyhow::bail;
use fedlink_watch::{Access, Server, Stop};
use std::fmt::Write;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The first choice of a port.
const PORT: u16 = 8765;
/// Bytes of a token.
const TOKEN: usize = 16;

pub fn run(options: &WatchOptions) -> anyhow::Result<Exit> {
    for folder in &options.folders {
        if !folder.is_dir() {
            bail!("{} is not a folder; name the folder of `fedlink run --out`", folder.display());
        }
    }
    let access = match options.listen {
        None => Access::local(),
        Some(_) => Access::with_token(token()?, &fedlink_study::host_name()),
    };
    let server = bind(options.listen, options.port, access, &options.folders)?;
    interrupt::listen_quietly()?;
    outln!("{}", server.url()?)?;
    errln!("the page is open until Ctrl-C");
    let stop: Stop = Arc::new(AtomicBool::new(false));
    let thread = server.spawn(Arc::clone(&stop))?;
    while !interrupt::stop_requested() && !thread.is_finished() {
        std::thread::sleep(Duration::from_millis(50));
    }
    stop.store(true, Ordering::SeqCst);
    join(thread)?;
    Ok(Exit::Done)
}

/// A page beside a command that fills its folder.
pub struct Beside {
    stop: Stop,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

/// Shows the folder that this command fills, until the page is dropped.
pub fn beside(folder: &Path) -> anyhow::Result<Beside> {
    let server = bind(None, None, Access::local(), &[folder.to_owned()])?;
    errln!("live page: {}", server.url()?);
    let stop: Stop = Arc::new(AtomicBool::new(false));
    let thread = Some(server.spawn(Arc::clone(&stop))?);
    Ok(Beside { stop, thread })
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // The results do not depend on the page.
            let _ = thread.join();
        }
    }
}

fn join(thread: JoinHandle<std::io::Result<()>>) -> anyhow::Result<()> {
    match thread.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(MachineFault(format!("the server of the page has failed: {error}")).into()),
        Err(_) => Err(MachineFault("the server of the page has failed".into()).into()),
    }
}

/// A server on the port, or on the first choice or a free one.
fn bind(
    listen: Option<IpAddr>,
    port: Option<u16>,
    access: Access,
    folders: &[PathBuf],
) -> anyhow::Result<Server> {
    let address = |port: u16| SocketAddr::new(listen.unwrap_or(Ipv4Addr::LOCALHOST.into()), port);
    let first = address(port.unwrap_or(PORT));
    let server = match Server::bind(first, access.clone(), folders) {
        Err(error) if port.is_none() && error.kind() == ErrorKind::AddrInUse => {
            Server::bind(address(0), access, folders)
        }
        bound => bound,
    };
    server.map_err(|error| MachineFault(format!("cannot listen on {first}: {error}")).into())
}

/// A random token.
fn token() -> anyhow::Result<String> {
    let mut bytes = [0; TOKEN];
    getrandom::fill(&mut bytes).map_err(|error| MachineFault(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
