//! The state of the watched folders as numbered parts.

use fedlink_report::report::live_parts;
use fedlink_study::events::{EventReader, Study};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The most studies on a page.
const MAX_STUDIES: usize = 200;
/// Reads between two searches for new folders.
const SEARCH_EVERY: u64 = 10;
/// Reads after which the parts of a study that writes nothing are made anew: its processes may have died.
const REFRESH_EVERY: u64 = 20;

/// A part of a study as JSON, and the number of the change that made it.
#[derive(Clone, Debug)]
pub struct Part {
    pub version: u64,
    pub line: Arc<str>,
}

/// All parts of all studies.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The number of the last change.
    pub version: u64,
    pub parts: BTreeMap<(usize, String), Part>,
}

impl Snapshot {
    /// The parts that changed after a change, as server-sent events.
    pub fn since(&self, version: u64) -> String {
        let mut text = String::new();
        for part in self.parts.values().filter(|part| part.version > version) {
            let _ = write!(text, "event: part\ndata: {}\n\n", part.line);
        }
        let _ = write!(text, "event: shown\ndata: {:.3}\n\n", now());
        text
    }
}

/// A study with the reader of its events.
struct Watched {
    folder: PathBuf,
    reader: EventReader,
    study: Study,
    problem: Option<String>,
}

/// The watched folders.
pub struct Feed {
    given: Vec<PathBuf>,
    watched: Vec<Watched>,
    snapshot: Snapshot,
    reads: u64,
}

impl Feed {
    /// A feed of folders of results, or of folders with such folders.
    pub fn new(folders: &[PathBuf]) -> Self {
        Self { given: folders.to_vec(), watched: Vec::new(), snapshot: Snapshot::default(), reads: 0 }
    }

    /// Reads what was appended; none if nothing has changed.
    pub fn read(&mut self) -> Option<Snapshot> {
        if self.reads.is_multiple_of(SEARCH_EVERY) {
            self.search();
        }
        let before = self.snapshot.version;
        let refresh = self.reads.is_multiple_of(REFRESH_EVERY);
        self.reads += 1;
        for index in 0..self.watched.len() {
            let own = &mut self.watched[index];
            let (mut has_news, problem) = match own.reader.read() {
                Ok(lines) => {
                    let has_news = !lines.is_empty();
                    lines.into_iter().for_each(|line| own.study.apply(line));
                    (has_news, None)
                }
                Err(error) => (false, Some(error.to_string())),
            };
            has_news |= problem != own.problem;
            own.problem = problem;
            if has_news || refresh {
                self.update(index);
            }
        }
        (self.snapshot.version > before).then(|| self.snapshot.clone())
    }

    /// The folders that are there now. One that has no events itself stands for those in it.
    fn search(&mut self) {
        let mut found: Vec<PathBuf> = Vec::new();
        for given in &self.given {
            let inside = if has_events(given) { Vec::new() } else { folders_in(given) };
            if inside.is_empty() {
                found.push(given.clone());
            }
            found.extend(inside);
        }
        for folder in found {
            let is_known = self.watched.iter().any(|own| own.folder == folder);
            if !is_known && self.watched.len() < MAX_STUDIES {
                let reader = EventReader::new(&folder);
                self.watched.push(Watched { folder, reader, study: Study::default(), problem: None });
                self.update(self.watched.len() - 1);
            }
        }
    }

    /// Makes the parts of a study anew; those that differ get the number of a new change.
    fn update(&mut self, index: usize) {
        let own = &self.watched[index];
        let mut parts = live_parts(&own.study, now());
        let folder = own.folder.display().to_string();
        let folder =
            own.problem.as_ref().map_or_else(|| folder.clone(), |problem| format!("{folder}: {problem}"));
        parts.insert("folder".into(), serde_json::to_string(&folder).unwrap_or_default());
        let version = self.snapshot.version + 1;
        for (name, value) in parts {
            let part = serde_json::to_string(&name).unwrap_or_default();
            let line: Arc<str> = format!("{{\"study\":{index},\"part\":{part},\"value\":{value}}}").into();
            let known = self.snapshot.parts.get(&(index, name.clone()));
            if known.is_none_or(|known| known.line != line) {
                self.snapshot.parts.insert((index, name), Part { version, line });
                self.snapshot.version = version;
            }
        }
    }
}

/// Whether a folder has a file of events.
fn has_events(folder: &Path) -> bool {
    folder.join(fedlink_study::events::EVENTS).symlink_metadata().is_ok_and(|there| there.is_file())
}

/// The folders with events in a folder, by name. Links are not followed.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let inside = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut inside: Vec<PathBuf> = inside.map(|entry| entry.path()).filter(|path| has_events(path)).collect();
    inside.sort();
    inside
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink_study::events::{Event, EventLog};

    fn opened(name: &str) -> Event {
        Event::Opened { study: name.into(), kind: "sweep".into(), runs: 3, goal: None }
    }

    #[test]
    fn only_parts_that_changed_are_sent_again() {
        let folder = tempfile::tempdir().unwrap();
        let log = EventLog::open(folder.path()).unwrap();
        log.append(opened("hall")).unwrap();
        let mut feed = Feed::new(&[folder.path().to_owned()]);
        let first = feed.read().unwrap();
        assert!(first.since(0).contains("hall") && first.since(0).contains("\"part\":\"charts\""));
        assert!(feed.read().is_none());
        log.append(opened("hall 2")).unwrap();
        let second = feed.read().unwrap().since(first.version);
        assert!(second.contains("hall 2") && !second.contains("\"part\":\"charts\""), "{second}");
    }

    #[test]
    fn a_folder_of_folders_stands_for_those_that_have_events() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        for name in ["a", "b"] {
            EventLog::open(&folder.path().join(name)).unwrap().append(opened(name)).unwrap();
        }
        let mut feed = Feed::new(&[folder.path().to_owned()]);
        feed.read().unwrap();
        assert_eq!(feed.watched.len(), 2);
    }
}
