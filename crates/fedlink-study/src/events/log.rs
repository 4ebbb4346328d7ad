//! Appends to `events.jsonl`, and reads its lines.

use super::event::{Event, Line};
use crate::environment::host_name;
use crate::error::Error;
use crate::folder::output::FolderFiles;
use crate::folder::own::append_own;
use fedlink::base::files;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the file in a folder of results.
pub const EVENTS: &str = "events.jsonl";
/// The most bytes that are read at once.
const CHUNK: u64 = 16 << 20;
/// The longest line; a longer one is skipped.
const MAX_LINE: usize = 1 << 20;

/// Appends events to the file of a folder. Several processes may append at the same time: every line is one
/// write.
pub struct EventLog {
    path: PathBuf,
    process: String,
    file: Mutex<File>,
}

impl EventLog {
    /// The log of a folder, which must exist. The line of a process that was killed while it wrote is ended.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(EVENTS);
        FolderFiles::new(folder).note(EVENTS)?;
        let open = || {
            let mut file = append_own(&path, &folder.join(format!("{EVENTS}.partial")))?;
            if !ends_with_newline(&path)? {
                file.write_all(b"\n")?;
            }
            Ok(file)
        };
        let file = open().map_err(Error::file("write", &path))?;
        let process = format!("{}-{}", host_name(), std::process::id());
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
    path: PathBuf,
    offset: u64,
}

impl EventReader {
    /// A reader that begins with the first event.
    pub fn new(folder: &Path) -> Self {
        Self { path: folder.join(EVENTS), offset: 0 }
    }

    /// The events that were appended since the last call; at most 16 MB of them. A line that is not yet
    /// complete is left for the next call; a line that is no event is skipped. No file is no event.
    pub fn read(&mut self) -> Result<Vec<Line>, Error> {
        let mut file = match files::open(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(Error::file("read", &self.path))?,
        };
        let mut bytes = Vec::new();
        let read = || {
            // A shorter file is another one.
            if file.metadata()?.len() < self.offset {
                self.offset = 0;
            }
            file.seek(SeekFrom::Start(self.offset))?;
            file.take(CHUNK).read_to_end(&mut bytes)
        };
        read().map_err(Error::file("read", &self.path))?;
        let complete = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            // A line without an end fills the chunk: it is no line of ours.
            None if bytes.len() as u64 == CHUNK => bytes.len(),
            None => 0,
        };
        self.offset += complete as u64;
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
