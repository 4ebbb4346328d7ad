//! A download over HTTP with limits of time and size, resumed after a break.

use super::meter::Meter;
use anyhow::anyhow;
use fedlink_study::output::{append_own, create_own};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::http::{HeaderMap, header};

/// Time to reach the server.
const CONNECT: Duration = Duration::from_secs(10);
/// Time without a byte after which a connection is broken.
const STALL: Duration = Duration::from_secs(30);
/// Attempts per download.
const TRIES: u32 = 4;
/// The slowest connection that is kept.
const PACE: Pace = Pace { bytes: 60 << 10, within: Duration::from_mins(1) };

/// The bytes that must arrive within a time, so that no server keeps a download open without limit.
#[derive(Clone, Copy, Debug)]
struct Pace {
    bytes: u64,
    within: Duration,
}

/// A stretch of a download.
struct Stretch {
    pace: Pace,
    began: Instant,
    start: u64,
}

impl Stretch {
    fn new(pace: Pace, start: u64) -> Self {
        Self { pace, began: Instant::now(), start }
    }

    /// Whether too few bytes have arrived by `now`, `here` being the bytes so far.
    fn is_too_slow(&mut self, here: u64, now: Instant) -> bool {
        if now.saturating_duration_since(self.began) < self.pace.within {
            return false;
        }
        let is_too_slow = here - self.start < self.pace.bytes;
        (self.began, self.start) = (now, here);
        is_too_slow
    }
}

/// The reason for a failed download.
#[derive(Debug)]
pub enum Failure {
    /// The server does not have it.
    NotFound,
    /// Any other error.
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

/// The end of a download attempt.
enum Outcome {
    /// All bytes have arrived.
    Complete,
    /// The connection broke, with the reason.
    Broken(String),
    /// The server cannot resume the download: the file was removed.
    Restart,
}

/// A client with the bounds of time above.
pub fn agent() -> Agent {
    Agent::config_builder()
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(STALL))
        .timeout_per_read(Some(STALL))
        .http_status_as_error(false)
        .user_agent(concat!("fedlink/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// Downloads at most `limit` bytes of `url` to `partial`, resuming its present content. Returns whether some
/// of it is from an earlier connection, and so perhaps of an earlier file.
///
/// A connection that breaks leaves `partial` to resume from; a file that is too long leaves nothing.
pub fn download(
    agent: &Agent,
    url: &str,
    partial: &Path,
    limit: u64,
    meter: &mut Meter,
) -> Result<bool, Failure> {
    let mut resumed = length(partial) > 0;
    let mut tries = 0;
    loop {
        tries += 1;
        match attempt(agent, url, partial, limit, meter)? {
            Outcome::Complete => {
                meter.end(length(partial));
                return Ok(resumed);
            }
            Outcome::Restart if tries < TRIES => meter.print("starting again from the beginning"),
            Outcome::Broken(why) if tries < TRIES && length(partial) > 0 => {
                meter.print(&format!("the connection broke ({why}); resuming"));
            }
            Outcome::Broken(why) => {
                return Err(
                    anyhow!("{url}: the connection broke ({why}) after {} bytes", length(partial)).into()
                );
            }
            Outcome::Restart => {
                return Err(anyhow!("{url}: the server does not serve it in one piece").into());
            }
        }
        resumed = length(partial) > 0;
    }
}

fn attempt(
    agent: &Agent,
    url: &str,
    partial: &Path,
    limit: u64,
    meter: &mut Meter,
) -> Result<Outcome, Failure> {
    let have = length(partial);
    let mut request = agent.get(url).header(header::ACCEPT_ENCODING, "identity");
    if have > 0 {
        request = request.header(header::RANGE, format!("bytes={have}-"));
    }
    let mut response = request.call().map_err(|error| anyhow!("{url}: {error}"))?;
    let range = content_range(response.headers());
    let (start, total) = match response.status().as_u16() {
        // The whole file, even if a part was requested.
        200 => (0, content_length(response.headers())),
        206 if range.is_some_and(|(start, _)| start == Some(have)) => {
            let rest = content_length(response.headers()).map(|rest| have.saturating_add(rest));
            (have, range.and_then(|(_, total)| total).or(rest))
        }
        // The file is complete.
        416 if range.is_some_and(|(_, total)| total == Some(have)) => return Ok(Outcome::Complete),
        206 | 416 if have > 0 => {
            remove(partial)?;
            return Ok(Outcome::Restart);
        }
        404 | 410 => return Err(Failure::NotFound),
        status => return Err(anyhow!("{url}: the server answered {status}").into()),
    };
    if let Some(total) = total.filter(|&total| total > limit) {
        remove(partial)?;
        return Err(anyhow!("{url}: the server offers {total} bytes, more than the {limit} allowed").into());
    }
    let cannot = |error| anyhow::Error::new(error).context(format!("cannot write {}", partial.display()));
    let mut file = match start {
        0 => create_own(partial),
        _ => append_own(partial, &partial.with_added_extension("partial")),
    }
    .map_err(cannot)?;

    let mut body = response.body_mut().as_reader();
    let mut buffer = vec![0; 1 << 16];
    let mut here = start;
    let mut stretch = Stretch::new(PACE, here);
    loop {
        if stretch.is_too_slow(here, Instant::now()) {
            let Pace { bytes, within } = PACE;
            let why = format!("fewer than {bytes} bytes in {} s", within.as_secs());
            return Ok(Outcome::Broken(why));
        }
        let count = match body.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Ok(Outcome::Broken(error.to_string())),
        };
        if count == 0 {
            let short = total.filter(|&total| here < total);
            return Ok(
                short.map_or(Outcome::Complete, |total| Outcome::Broken(format!("{here} of {total} bytes")))
            );
        }
        here += count as u64;
        if here > limit {
            drop(file);
            remove(partial)?;
            return Err(anyhow!("{url}: more than the {limit} bytes allowed keep coming").into());
        }
        file.write_all(&buffer[..count]).map_err(cannot)?;
        meter.at(here, total);
    }
}

/// Bytes in a file; none if it is not there.
fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(anyhow!("cannot remove {}: {error}", path.display()).into())
        }
        _ => Ok(()),
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// The start, if some bytes follow, and the total, if it is known, of `bytes START-END/TOTAL` or
/// `bytes */TOTAL`.
fn content_range(headers: &HeaderMap) -> Option<(Option<u64>, Option<u64>)> {
    let (range, total) =
        headers.get(header::CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-').and_then(|(start, _)| start.trim().parse().ok());
    Some((start, total.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_of_a_byte_a_second_is_given_up_and_a_slow_one_is_kept() {
        let pace = Pace { bytes: 100, within: Duration::from_secs(10) };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut stretch = Stretch { pace, began: start, start: 0 };
        assert!((0..10).all(|seconds| !stretch.is_too_slow(seconds, at(seconds))));
        assert!(stretch.is_too_slow(10, at(10)));
        let mut stretch = Stretch { pace, began: start, start: 500 };
        assert!((0..100).all(|seconds| !stretch.is_too_slow(500 + 10 * seconds, at(seconds))));
        // It has begun well.
        let mut stretch = Stretch { pace, began: start, start: 0 };
        assert!(!stretch.is_too_slow(1000, at(10)) && stretch.is_too_slow(1050, at(20)));
    }

    #[test]
    fn content_ranges_are_read_in_both_forms_and_nonsense_is_none() {
        let read = |text: &'static str| {
            content_range(&HeaderMap::from_iter([(header::CONTENT_RANGE, text.parse().unwrap())]))
        };
        assert_eq!(read("bytes 5-9/10"), Some((Some(5), Some(10))));
        assert_eq!(read("bytes 5-9/*"), Some((Some(5), None)));
        assert_eq!(read("bytes */10"), Some((None, Some(10))));
        assert_eq!(read("lines 1-2/3"), None);
        assert_eq!(read("bytes"), None);
        assert_eq!(content_range(&HeaderMap::new()), None);
    }
}
