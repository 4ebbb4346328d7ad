//! A small HTTP server on 127.0.0.1 with scripted behavior.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The behavior of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As it should, with ranges.
    Normal,
    /// It closes the first connection half-way.
    DropsOnce,
    /// It closes the first connection half-way, and sends the whole file for any requested range.
    DropsOnceAndIgnoresRanges,
    /// It closes every connection after a thousand bytes.
    AlwaysDrops,
    /// It sends half of the file and then no more, without closing.
    Stalls,
    /// A byte in the middle is another.
    WrongByte,
    /// It has no files.
    NotFound,
    /// It fails.
    Error,
    /// It sends without end and gives no length.
    Endless,
    /// It declares a length beyond any limit.
    OffersTooMuch,
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The requested file.
    pub name: String,
    /// The first requested byte.
    pub from: Option<usize>,
    /// The status answered.
    pub status: u16,
    /// Bytes of the body that went out.
    pub sent: usize,
}

pub struct Server {
    pub address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Serves these files, each by its name, until the process ends.
    pub fn start(files: impl IntoIterator<Item = (String, Vec<u8>)>, mode: Mode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let files: HashMap<String, Vec<u8>> = files.into_iter().collect();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            for (count, stream) in listener.incoming().enumerate() {
                answer(stream.unwrap(), &files, mode, count == 0, &log);
            }
        });
        Self { address, seen }
    }

    /// The requests so far. The last answer may still be in transit.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    files: &HashMap<String, Vec<u8>>,
    mode: Mode,
    first: bool,
    log: &Mutex<Vec<Seen>>,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(request)) = lines.next() else { return };
    let name = request.split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
    let mut from = None;
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
            from = Some(range.trim_end_matches('-').parse().unwrap());
        }
    }
    let file = files.get(&name).filter(|_| mode != Mode::NotFound);
    let (status, head, body) = match (file, mode) {
        (_, Mode::Error) => (503, "content-length: 0\r\n".to_owned(), &[][..]),
        (None, _) => (404, "content-length: 0\r\n".to_owned(), &[][..]),
        (Some(_), Mode::Endless) => (200, String::new(), &[][..]),
        (Some(file), Mode::OffersTooMuch) => (200, format!("content-length: {}\r\n", 1u64 << 40), &file[..]),
        (Some(file), _) => match from.filter(|_| mode != Mode::DropsOnceAndIgnoresRanges) {
            Some(from) if from >= file.len() => {
                (416, format!("content-range: bytes */{}\r\ncontent-length: 0\r\n", file.len()), &[][..])
            }
            Some(from) => {
                let (last, length) = (file.len() - 1, file.len());
                let rest = &file[from..];
                let head = format!("content-range: bytes {from}-{last}/{length}\r\n");
                (206, format!("{head}content-length: {}\r\n", rest.len()), rest)
            }
            None => (200, format!("content-length: {}\r\n", file.len()), &file[..]),
        },
    };
    let mut body = body.to_vec();
    let half = body.len() / 2;
    let index = {
        let mut log = log.lock().unwrap();
        log.push(Seen { name, from, status, sent: 0 });
        log.len() - 1
    };
    if stream.write_all(format!("HTTP/1.1 {status} x\r\nconnection: close\r\n{head}\r\n").as_bytes()).is_err()
    {
        return;
    }
    match mode {
        Mode::DropsOnce | Mode::DropsOnceAndIgnoresRanges if first => body.truncate(half),
        Mode::AlwaysDrops => body.truncate(1000),
        Mode::Stalls => body.truncate(half),
        Mode::WrongByte if half > 0 => body[half] ^= 1,
        Mode::Endless if status == 200 => body = vec![7; 1 << 16],
        _ => {}
    }
    for piece in body.chunks(1 << 16) {
        loop {
            if stream.write_all(piece).is_err() {
                return;
            }
            log.lock().unwrap()[index].sent += piece.len();
            if mode != Mode::Endless {
                break;
            }
        }
    }
    if mode == Mode::Stalls {
        // Held open by a thread that waits for the other side to go.
        thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
    }
}
