//! Appends to `events.jsonl`, and reads its lines.

use super::event::{Event, Line};
use crate::environment::host_name;
use crate::error::Error;
use crate::folder::output::FolderFiles;
use crate::folder::own::{append_own, check_own};
use fedlink::base::files;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the file in a folder of results.
pub const EVENTS: &str = "events.jsonl";
/// The most bytes that are read at once.
const CHUNK: u64 = 16 << 20;
/// The most files with events that are read in a folder: one per machine.
const MAX_FILES: usize = 1000;
/// The most bytes of the first line, which names the machine.
const MAX_OWNER: u64 = 4096;
/// The longest line; a longer one is skipped.
const MAX_LINE: usize = 1 << 20;

/// Appends events to a folder. Processes of one machine may append to one file at the same time: every line
/// is one write. Network file systems do not keep appends of several machines apart, so that every machine
/// but the one that began `events.jsonl` has a file of its own, `events-HOST.jsonl`.
pub struct EventLog {
    path: PathBuf,
    process: String,
    file: Mutex<File>,
}

impl EventLog {
    /// The log of a folder, which must exist. The line of a process that was killed while it wrote is ended.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::open_on(folder, &host_name())
    }

    /// The log of a folder on a machine of this name.
    fn open_on(folder: &Path, host: &str) -> Result<Self, Error> {
        let name = file_of(folder, host).map_err(Error::file("write", &folder.join(EVENTS)))?;
        let path = folder.join(&name);
        FolderFiles::new(folder).note(&name)?;
        let open = || {
            let mut file = append_own(&path, &folder.join(format!("{name}.partial")))?;
            match files::open(&path)?.metadata()?.len() {
                // The first line names the machine.
                0 => file.write_all(owner_line(host).as_bytes())?,
                _ if !ends_with_newline(&path)? => file.write_all(b"\n")?,
                _ => {}
            }
            Ok(file)
        };
        let file = open().map_err(Error::file("write", &path))?;
        let process = format!("{host}-{}", std::process::id());
        Ok(Self { path, process, file: Mutex::new(file) })
    }

    /// Appends an event.
    pub fn append(&self, event: Event) -> Result<(), Error> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        // Milliseconds are enough, and short.
        let time = (1e3 * time).round() / 1e3;
        let mut line = serde_json::to_string(&Line { time, process: self.process.clone(), event })?;
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).map_err(Error::file("write", &self.path))
    }
}

/// The name of the file to which this machine appends.
fn file_of(folder: &Path, host: &str) -> std::io::Result<String> {
    let path = folder.join(EVENTS);
    check_own(&path)?;
    // Exactly one machine makes it, on network file systems too.
    match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(_) => return Ok(EVENTS.to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let mut first = Vec::new();
    files::open(&path)?.take(MAX_OWNER).read_to_end(&mut first)?;
    // An empty file is that of a process that has just made it.
    let is_own = first.starts_with(owner_line(host).trim_end().as_bytes());
    Ok(if is_own { EVENTS.to_owned() } else { format!("events-{}.jsonl", file_name(host)) })
}

/// The line with which the file of a machine begins.
fn owner_line(host: &str) -> String {
    let host = serde_json::to_string(host).unwrap_or_default();
    format!("{{\"machine\":{host}}}\n")
}

/// The name of a machine as a part of the name of a file.
fn file_name(host: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' };
    host.chars().map(plain).take(64).collect()
}

/// Whether a file of this name has events.
fn has_events(name: &str) -> bool {
    let own = name.strip_prefix("events-").and_then(|rest| rest.strip_suffix(".jsonl"));
    name == EVENTS || own.is_some()
}

fn ends_with_newline(path: &Path) -> std::io::Result<bool> {
    let mut file = files::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Reads the events of a folder, each once.
pub struct EventReader {
    folder: PathBuf,
    /// The bytes of each file that were read.
    offsets: BTreeMap<String, u64>,
}

impl EventReader {
    /// A reader that begins with the first event.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.into(), offsets: BTreeMap::new() }
    }

    /// The events that were appended since the last call, in the order of their times if several machines
    /// wrote them; at most 16 MB of each file. A line that is not yet complete is left for the next call; a
    /// line that is no event is skipped, and so is a link. No file is no event.
    pub fn read(&mut self) -> Result<Vec<Line>, Error> {
        let mut lines = Vec::new();
        let files = self.files()?;
        for name in &files {
            lines.extend(self.read_file(name)?);
        }
        if files.len() > 1 {
            lines.sort_by(|a, b| a.time.total_cmp(&b.time));
        }
        Ok(lines)
    }

    /// The files with events.
    fn files(&self) -> Result<Vec<String>, Error> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(Error::file("read", &self.folder))?,
        };
        let regular = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let names = regular.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| has_events(name)).take(MAX_FILES).collect();
        names.sort();
        Ok(names)
    }

    fn read_file(&mut self, name: &str) -> Result<Vec<Line>, Error> {
        let path = self.folder.join(name);
        let offset = self.offsets.entry(name.to_owned()).or_default();
        let mut bytes = Vec::new();
        let mut read = || {
            let mut file = files::open(&path)?;
            // A shorter file is another one.
            if file.metadata()?.len() < *offset {
                *offset = 0;
            }
            file.seek(SeekFrom::Start(*offset))?;
            file.take(CHUNK).read_to_end(&mut bytes)
        };
        match read() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(Error::file("read", &path))?,
        };
        let complete = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            // A line without an end fills the chunk: it is no line of ours.
            None if bytes.len() as u64 == CHUNK => bytes.len(),
            None => 0,
        };
        *offset += complete as u64;
        let lines = bytes[..complete].split(|byte| *byte == b'\n');
        Ok(lines
            .filter(|line| !line.is_empty() && line.len() <= MAX_LINE)
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpointed(round: u64) -> Event {
        Event::Checkpointed { run: "bc-k1".into(), round }
    }

    #[test]
    fn a_reader_gets_every_event_once_and_waits_for_the_end_of_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = EventReader::new(folder.path());
        assert_eq!(reader.read().unwrap(), []);
        let log = EventLog::open(folder.path()).unwrap();
        log.append(checkpointed(1)).unwrap();
        log.append(checkpointed(2)).unwrap();
        let events =
            |reader: &mut EventReader| reader.read().unwrap().into_iter().map(|line| line.event).collect();
        let read: Vec<Event> = events(&mut reader);
        assert_eq!(read, [checkpointed(1), checkpointed(2)]);
        let path = folder.path().join(EVENTS);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"time\":1,\"process\":\"x\",\"event\":\"check").unwrap();
        let read: Vec<Event> = events(&mut reader);
        assert_eq!(read, []);
        // The process that wrote it was killed; the next one ends the line.
        EventLog::open(folder.path()).unwrap().append(checkpointed(3)).unwrap();
        let read: Vec<Event> = events(&mut reader);
        assert_eq!(read, [checkpointed(3)]);
    }

    #[test]
    fn every_machine_appends_to_a_file_of_its_own_and_readers_see_all() {
        let folder = tempfile::tempdir().unwrap();
        let log = |host: &str| EventLog::open_on(folder.path(), host).unwrap();
        let names = || -> Vec<String> { EventReader::new(folder.path()).files().unwrap() };
        log("node7").append(checkpointed(1)).unwrap();
        assert_eq!(names(), [EVENTS]);
        log("node8/../x").append(checkpointed(2)).unwrap();
        log("node7").append(checkpointed(3)).unwrap();
        assert_eq!(names(), ["events-node8_.._x.jsonl", EVENTS]);
        let mut rounds: Vec<u64> = Vec::new();
        for line in EventReader::new(folder.path()).read().unwrap() {
            if let Event::Checkpointed { round, .. } = line.event {
                rounds.push(round);
            }
        }
        rounds.sort_unstable();
        assert_eq!(rounds, [1, 2, 3]);
        let noted = std::fs::read_to_string(folder.path().join("files.txt")).unwrap();
        assert!(noted.contains("events.jsonl") && noted.contains("events-node8_.._x.jsonl"), "{noted}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_neither_written_nor_read() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other.txt");
        std::fs::write(
            &other,
            "{\"time\":1,\"process\":\"x\",\"event\":\"closed\",\"state\":\"finished\"}\n",
        )
        .unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join(EVENTS)).unwrap();
        assert!(EventLog::open(folder.path()).is_err());
        assert_eq!(EventReader::new(folder.path()).read().unwrap(), []);
    }

    #[test]
    fn an_event_of_a_later_version_is_unknown() {
        let line = r#"{"time":1,"process":"x","event":"teleported","run":"bc","where":"Mars"}"#;
        assert_eq!(serde_json::from_str::<Line>(line).unwrap().event, Event::Unknown);
    }

    #[test]
    fn lines_of_several_writers_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let folder = folder.path();
                scope.spawn(move || {
                    let log = EventLog::open(folder).unwrap();
                    (0..50).for_each(|i| log.append(checkpointed(100 * writer + i)).unwrap());
                });
            }
        });
        assert_eq!(EventReader::new(folder.path()).read().unwrap().len(), 200);
    }
}
