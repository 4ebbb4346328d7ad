//! `fedlink watch`: the page, the conditions for reading it, and its content.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn fedlink() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("fedlink"))
}

/// A running `fedlink watch`, which ends with the test.
struct Watch {
    child: Child,
    address: String,
    query: String,
}

impl Watch {
    fn new(arguments: &[&str], folder: &Path) -> Self {
        let mut command = fedlink();
        command.arg("watch").arg(folder).args(["--port", "0"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{line:?}"));
        let (address, query) = url.split_once('/').unwrap();
        Self { child, address: address.into(), query: query.into() }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Sends the head of a request.
    fn request(&self, method: &str, path: &str, host: &str) -> TcpStream {
        let mut stream = self.connect();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        stream
    }

    /// The status and the whole answer; 0 if the connection was closed.
    fn answer(&self, method: &str, path: &str, host: &str) -> (u16, String) {
        let mut text = Vec::new();
        let _ = self.request(method, path, host).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, text)
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.answer("GET", path, &self.address)
    }

    /// The parts of the first study, read until `enough` of them are there.
    fn parts(&self, enough: impl Fn(&BTreeMap<String, Value>) -> bool) -> BTreeMap<String, Value> {
        let stream = self.request("GET", &format!("/events{}", self.query), &self.address);
        let mut parts = BTreeMap::new();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            let Some(data) = line.strip_prefix("data: {") else { continue };
            let part: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
            if part["study"] == 0 {
                parts.insert(part["part"].as_str().unwrap().to_owned(), part["value"].clone());
            }
            if enough(&parts) {
                break;
            }
        }
        parts
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The events of a sweep of two runs that was killed, a long time ago.
fn killed(folder: &Path) {
    let head = r#"{"time":1000,"process":"node7-1","event":"#;
    let run = |name: &str| {
        format!(
            r#"{head}"planned","run":"{name}","label":"{name}","curve":"{name}","seed":0,"rounds":9,"cost":1}}"#
        )
    };
    let lines = [
        format!(
            r#"{head}"opened","study":"hall","kind":"sweep","runs":2,"goal":"rounds until accuracy >= 0.5"}}"#
        ),
        run("bc"),
        run("<b>bn2</b>"),
        format!(r#"{head}"begun","run":"bc","label":"bc","seed":0,"rounds":9,"rounds_done":0}}"#),
        format!(r#"{head}"evaluated","run":"bc","round":5,"accuracy":0.6}}"#),
        format!(r#"{head}"failed","run":"<b>bn2</b>","error":"the disk is full"}}"#),
        "no event".to_owned(),
        // The process was killed while it wrote.
        format!(r#"{head}"evaluated","run":"bc","round":6,"acc"#),
    ];
    std::fs::write(folder.join("events.jsonl"), lines.join("\n")).unwrap();
    std::fs::write(folder.join("secret.txt"), "secret").unwrap();
}

#[test]
fn the_page_is_served_to_this_machine_alone_and_names_no_file() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path());
    let watch = Watch::new(&[], folder.path());
    assert!(watch.address.starts_with("127.0.0.1:") && watch.query.is_empty());
    let (status, page) = watch.get("/");
    assert_eq!(status, 200);
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    for header in ["script-src 'self'", "default-src 'none'", "nosniff", "frame-ancestors 'none'"] {
        assert!(head.contains(header), "{head}");
    }
    assert!(!body.contains("http://") && !body.contains("https://") && !body.contains("<style"), "{body}");
    for path in [
        "/secret.txt",
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/events/../secret.txt",
        "/events.jsonl",
        "//etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/study/0",
    ] {
        let (status, text) = watch.get(path);
        assert_eq!(status, 404, "{path}: {text}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "", "evil.example:80"] {
        for path in ["/", "/events", "/style.css"] {
            let (status, text) = watch.answer("GET", path, host);
            assert!([400, 421].contains(&status), "{host} {path}: {text}");
        }
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(watch.answer(method, "/", &watch.address).0, 405, "{method}");
    }
}

#[test]
fn with_listen_only_those_who_have_the_token_may_read() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path());
    let watch = Watch::new(&["--listen", "127.0.0.1"], folder.path());
    assert!(watch.query.starts_with("?token=") && watch.query.len() == 7 + 32, "{}", watch.query);
    assert_eq!(watch.get(&format!("/{}", watch.query)).0, 200);
    let wrong = format!("{}x", watch.query);
    for path in
        ["/", "/events", "/?token=", "/events?token=0", &format!("/{wrong}"), &format!("/events{wrong}")]
    {
        let (status, text) = watch.get(path);
        assert!(status == 401 && !text.contains("hall"), "{path}: {text}");
    }
    assert!(watch.parts(|parts| parts.contains_key("head")).contains_key("head"));
}

#[test]
fn a_sweep_that_was_killed_is_silent_and_its_failure_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path());
    let watch = Watch::new(&[], folder.path());
    let parts = watch.parts(|parts| parts.contains_key("runs"));
    let head = &parts["head"];
    assert_eq!(
        (&head["state"], &head["name"], &head["failed"]),
        (&"silent".into(), &"hall".into(), &1.into())
    );
    assert_eq!(head["failures"][0], serde_json::json!(["<b>bn2</b>", "the disk is full"]));
    assert_eq!(head["best"], serde_json::json!(["bc", "5"]));
    assert_eq!(parts["runs"][0], serde_json::json!(["bc", "its process is silent", 5, 9, 0.6]));
    // An event that is appended arrives while the page is open.
    let more = "\n{\"time\":1001,\"process\":\"node7-1\",\"event\":\"evaluated\",\"run\":\"bc\",\
                \"round\":7,\"accuracy\":0.7}\n";
    let mut file = std::fs::OpenOptions::new().append(true).open(folder.path().join("events.jsonl")).unwrap();
    file.write_all(more.as_bytes()).unwrap();
    let parts = watch.parts(|parts| parts.get("runs").is_some_and(|runs| runs[0][2] == 7));
    assert_eq!(parts["runs"][0][4], 0.7);
}

#[test]
fn a_thousand_connections_and_clients_that_do_not_read_leave_the_page_readable() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path());
    let watch = Watch::new(&[], folder.path());
    // They have asked for the events and read nothing.
    let slow: Vec<TcpStream> = (0..20).map(|_| watch.request("GET", "/events", &watch.address)).collect();
    let mut idle = Vec::new();
    for i in 0..1000 {
        let stream = TcpStream::connect(&watch.address).unwrap();
        if i % 2 == 0 {
            idle.push(stream);
        }
    }
    // Connections without a request are closed after some seconds.
    let started = Instant::now();
    while watch.get("/").0 != 200 {
        assert!(started.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(watch.parts(|parts| parts.contains_key("head")).contains_key("head"));
    drop((slow, idle));
}

#[test]
fn the_live_page_of_a_finished_sweep_has_the_curves_of_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let settings = [
        "run.rounds=6",
        "run.evaluate_every=2",
        "data.devices=4",
        "data.samples_per_device=20",
        "learn.model=softmax",
        "learn.state=reset",
        "schedule.k=2",
        "radio.bandwidth_hz=1e6",
        "radio.snr_db=[20.0, 0.0]",
        "run.target=0.1",
    ];
    let mut run = fedlink();
    run.args(["run", "demo", "--quiet", "--seeds", "2", "--out"]).arg(&results);
    run.args(settings.iter().flat_map(|setting| ["--set", setting]));
    assert!(run.status().unwrap().success());
    let page = std::fs::read_to_string(results.join("report.html")).unwrap();
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    let curves = data["curves"].as_array().unwrap();
    // A folder of folders stands for those in it.
    let watch = Watch::new(&[], folder.path());
    let last = format!("curve/{}", curves.len() - 1);
    let parts = watch.parts(|parts| parts.contains_key(&last) && parts.contains_key("head"));
    assert_eq!(parts["head"]["state"], "finished");
    for (i, curve) in curves.iter().enumerate() {
        let live = &parts[&format!("curve/{i}")];
        for field in [
            "label", "keys", "seeds", "rounds", "accuracy", "low", "high", "loss", "bits", "symbols",
            "seconds", "joules", "scatter", "groups",
        ] {
            assert_eq!(live[field], curve[field], "{field} of {}", curve["label"]);
        }
        assert!(curve["groups"].as_array().unwrap().len() == 2);
    }
    for axes in ["x", "scatter", "key"] {
        assert_eq!(parts["charts"][2][axes], data["charts"][axes], "{axes}");
    }
    assert_eq!(parts["charts"][2]["y"]["accuracy"], data["charts"]["y"]["accuracy"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_cleanly_while_a_page_is_open() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path());
    let mut watch = Watch::new(&[], folder.path());
    let page = watch.request("GET", "/events", &watch.address);
    BufReader::new(page.try_clone().unwrap()).read_line(&mut String::new()).unwrap();
    let kill = Command::new("kill").args(["-INT", &watch.child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let started = Instant::now();
    let status = loop {
        if let Some(status) = watch.child.try_wait().unwrap() {
            break status;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_missing_folder_and_an_address_in_use_are_errors_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let missing = fedlink().arg("watch").arg(folder.path().join("none")).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("is not a folder"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let used = fedlink().arg("watch").arg(folder.path()).args(["--port", &port]).output().unwrap();
    assert_eq!(used.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&used.stderr).contains("cannot listen on 127.0.0.1:"), "{used:?}");
}
